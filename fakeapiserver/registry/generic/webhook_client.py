"""The rules for webhooks' addresses, in definitions' conversions and in admission webhooks.

Upstream: k8s.io/apiserver/pkg/util/webhook/validation.go
"""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from fakeapiserver.apimachinery import names
from fakeapiserver.apimachinery.field import ErrorList, Path, invalid, required
from fakeapiserver.apimachinery.go.url import url_problem

_FORM: Final = "; desired format: https://host[/path]"
_MAX_PORT: Final = 65535


def address_errors(client: Mapping[str, Any], path: Path) -> ErrorList:
    """The errors in the URL or the service of a clientConfig at `path`."""
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        return [required(path, "exactly one of url or service is required")]
    return (
        _url_errors(url, path.child("url"))
        if url is not None
        else _service_errors(service or {}, path.child("service"))
    )


def _url_errors(url: str, path: Path) -> ErrorList:
    if problem := url_problem(url):
        return [required(path, f"url must be a valid URL: {problem}{_FORM}")]
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
