"""Names of signers, as `example.com/signer`.

Upstream: pkg/apis/core/validation/names.go (ValidateSignerName).
"""

from collections.abc import Callable
from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.go.quote import go_quote

_MAX_DOMAIN: Final = 253
_MAX_NAME: Final = _MAX_DOMAIN + 1 + _MAX_DOMAIN + 63 + 1
_FORM: Final = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
_SEGMENTS: Final = "should be a domain with at least two segments separated by dots"


def signer_name_errors(name: str, path: Path) -> ErrorList:
    if not name:
        return [field.required(path)]
    parts = name.split("/")
    if len(parts) != 2:
        return [field.invalid(path, name, _FORM)]
    domain, rest = parts
    errors: ErrorList = [field.too_long(path, _MAX_DOMAIN)] if len(domain.encode()) > _MAX_DOMAIN else []
    labels = domain.split(".")
    errors += _first_wrong(labels, domain, path, names.is_dns1123_label)
    if len(labels) < 2:
        errors.append(field.invalid(path, domain, _SEGMENTS))
    errors += _first_wrong(rest.split("."), rest, path, names.is_dns1123_subdomain)
    if len(name.encode()) > _MAX_NAME:
        errors.append(field.too_long(path, _MAX_NAME))
    return errors


def _first_wrong(labels: list[str], whole: str, path: Path, rule: Callable[[str], list[str]]) -> ErrorList:
    """The errors in the first invalid label."""
    for label in labels:
        if problems := rule(label):
            return [field.invalid(path, whole, f"validating label {go_quote(label)}: {text}") for text in problems]
    return []
