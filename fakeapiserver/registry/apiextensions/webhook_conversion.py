"""What is wrong with a definition's conversion.

Upstream: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go (validateCustomResourceConversion),
k8s.io/apiserver/pkg/util/webhook/validation.go
"""

import base64
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from fakeapiserver.apimachinery import names
from fakeapiserver.apimachinery.field import ErrorList, Path, forbidden, invalid, not_supported, required

_FORM: Final = "; desired format: https://host[/path]"
_REVIEW_VERSIONS: Final = ("v1", "v1beta1")
_CERTIFICATE: Final = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.S)
_MAX_PORT: Final = 65535


def conversion_errors(conversion: Mapping[str, Any] | None, path: Path, *, checks_bundle: bool) -> ErrorList:
    """`checks_bundle`: whether a CA bundle that can't be read is refused."""
    if conversion is None:
        return []
    strategy, webhook = conversion.get("strategy", ""), conversion.get("webhook")
    errors: ErrorList = []
    if not strategy:
        errors.append(required(path.child("strategy")))
    elif strategy not in ("None", "Webhook"):
        errors.append(not_supported(path.child("strategy"), strategy, ("None", "Webhook")))
    client = (webhook or {}).get("clientConfig")
    versions = (webhook or {}).get("conversionReviewVersions") or []
    client_path, versions_path = path.child("webhookClientConfig"), path.child("conversionReviewVersions")
    if strategy == "Webhook":
        if client is None:
            errors.append(required(client_path, "required when strategy is set to Webhook"))
        else:
            errors += _client_errors(client, client_path, checks_bundle)
        return errors + _review_version_errors(versions, versions_path)
    detail = "should not be set when strategy is not set to Webhook"
    errors += [forbidden(client_path, detail)] if client is not None else []
    return errors + ([forbidden(versions_path, detail)] if versions else [])


def _client_errors(client: Mapping[str, Any], path: Path, checks_bundle: bool) -> ErrorList:
    url, service = client.get("url"), client.get("service")
    errors: ErrorList = []
    if (url is None) == (service is None):
        errors.append(required(path, "exactly one of url or service is required"))
    elif url is not None:
        errors += _url_errors(url, path.child("url"))
    elif service is not None:
        errors += _service_errors(service, path.child("service"))
    bundle = client.get("caBundle")
    if bundle and checks_bundle and (problem := bundle_problem(bundle)):
        errors.append(invalid(path.child("caBundle"), bundle, problem))
    return errors


def bundle_problem(bundle: str) -> str:
    """Why a CA bundle (base64 of PEM) can't be used, empty if it can."""
    if not bundle or _CERTIFICATE.search(base64.b64decode(bundle)):
        return ""
    return "unable to load root certificates: unable to parse bytes as PEM block"


def _url_errors(url: str, path: Path) -> ErrorList:
    parts = urlsplit(url)
    user, _, host = parts.netloc.rpartition("@")
    errors: ErrorList = []
    if parts.scheme != "https":
        errors.append(invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{_FORM}"))
    if not host:
        errors.append(invalid(path, host, f"host must be specified{_FORM}"))
    if "@" in parts.netloc:
        errors.append(invalid(path, user, "user information is not permitted in the URL"))
    if parts.fragment:
        errors.append(invalid(path, parts.fragment, "fragments are not permitted in the URL"))
    if parts.query:
        errors.append(invalid(path, parts.query, "query parameters are not permitted in the URL"))
    return errors


def _service_errors(service: Mapping[str, Any], path: Path) -> ErrorList:
    # Upstream takes one for the other here.
    errors = [
        required(path.child(other))
        for other, key in (("name", "namespace"), ("namespace", "name"))
        if not service.get(key)
    ]
    port = service.get("port", 0)
    if not 1 <= port <= _MAX_PORT:
        detail = f"port is not valid: must be between 1 and {_MAX_PORT}, inclusive"
        errors.append(invalid(path.child("port"), port, detail))
    return errors + _path_errors(service.get("path") or "", path.child("path"))


def _path_errors(text: str, path: Path) -> ErrorList:
    if text in ("", "/"):
        return []
    if text == "//":
        return [invalid(path, text, "segment[0] may not be empty")]
    errors = [] if text.startswith("/") else [invalid(path, text, "must start with a '/'")]
    for i, step in enumerate(text[1:].removesuffix("/").split("/")):
        complaints = names.is_dns1123_subdomain(step) if step else ()
        errors += [invalid(path, text, f"segment[{i}]: {complaint}") for complaint in complaints]
        errors += [] if step else [invalid(path, text, f"segment[{i}] may not be empty")]
    return errors


def _review_version_errors(versions: Sequence[str], path: Path) -> ErrorList:
    if not versions:
        return [required(path)]
    errors: ErrorList = []
    for i, version in enumerate(versions):
        if version in versions[:i]:
            errors.append(invalid(path.index(i), version, "duplicate version"))
        else:
            errors += [invalid(path.index(i), version, text) for text in names.is_dns1035_label(version)]
    if not set(_REVIEW_VERSIONS) & set(versions):
        errors.append(invalid(path, list(versions), f"must include at least one of {', '.join(_REVIEW_VERSIONS)}"))
    return errors
