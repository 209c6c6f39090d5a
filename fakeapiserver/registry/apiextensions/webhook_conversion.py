"""Validation of a definition's conversion.

Upstream: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go (validateCustomResourceConversion)
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery import names
from fakeapiserver.apimachinery.field import ErrorList, Path, forbidden, invalid, not_supported, repetitions, required
from fakeapiserver.registry.core.key_pair import pem_blocks
from fakeapiserver.registry.generic.webhook_client import address_errors
from fakeapiserver.transport import x509_certificate

_REVIEW_VERSIONS: Final = ("v1", "v1beta1")


def conversion_errors(conversion: Mapping[str, Any] | None, path: Path, *, checks_bundle: bool) -> ErrorList:
    """The errors in spec.conversion. `checks_bundle`: whether a CA bundle that can't be read is refused."""
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
    errors = address_errors(client, path)
    bundle = client.get("caBundle")
    if bundle and checks_bundle and (problem := bundle_problem(bundle)):
        errors.append(invalid(path.child("caBundle"), bundle, problem))
    return errors


def bundle_problem(bundle: str) -> str:
    """Why a CA bundle (base64 of PEM) can't be used, empty if one of its certificates can (client-go/transport, rootCertPool)."""
    if not bundle:
        return ""
    blocks = list(pem_blocks(base64.b64decode(bundle)))
    certificates = [content for kind, content in blocks if kind == "CERTIFICATE"]
    if any(map(_is_certificate, certificates)):
        return ""
    why = "no valid certificate authority data seen" if blocks else "unable to parse bytes as PEM block"
    if certificates:
        why = "failed to parse certificate: x509: malformed certificate"
    return f"unable to load root certificates: {why}"


def _is_certificate(content: bytes) -> bool:
    try:
        x509_certificate.parsed(content)
    except ValueError:
        return False
    return True


def _review_version_errors(versions: Sequence[str], path: Path) -> ErrorList:
    if not versions:
        return [required(path)]
    errors: ErrorList = []
    repeated = repetitions(versions)
    for i, version in enumerate(versions):
        if i in repeated:
            errors.append(invalid(path.index(i), version, "duplicate version"))
        else:
            errors += [invalid(path.index(i), version, text) for text in names.is_dns1035_label(version)]
    if not set(_REVIEW_VERSIONS) & set(versions):
        errors.append(invalid(path, list(versions), f"must include at least one of {', '.join(_REVIEW_VERSIONS)}"))
    return errors
