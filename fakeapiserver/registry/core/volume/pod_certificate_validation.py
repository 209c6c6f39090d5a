"""Projected volumes with a certificate that the kubelet asks for (`podCertificate`, the gate PodCertificateRequest).

Upstream: pkg/apis/core/validation/validation.go (validateProjectionSources).
"""

from collections.abc import Callable, Iterator
from typing import Final

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.registry.certificates.podcertificaterequest_validation import (
    LONGEST,
    LONGEST_OWN,
    SHORTEST,
    is_kubernetes_signer,
    user_annotation_errors,
)
from fakeapiserver.registry.certificates.signer_name import signer_name_errors
from fakeapiserver.registry.core.field_formats import local_path_errors

_KEY_TYPES: Final = ("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")
_PLACES: Final = ("credentialBundlePath", "keyPath", "certificateChainPath")


def pod_certificate_errors(source: Object, path: Path, taken: Callable[[str], ErrorList]) -> ErrorList:
    """The errors in a projected pod certificate. `taken` reports a path in the volume that another source has already."""
    signer = source.get("signerName", "")
    errors = signer_name_errors(signer, path.child("signerName"))
    errors += user_annotation_errors(source.get("userAnnotations") or {}, path.child("userAnnotations"))
    if (kind := source.get("keyType", "")) not in _KEY_TYPES:
        errors.append(field.not_supported_text(path.child("keyType"), kind, _KEY_TYPES))
    errors += _lifetime_errors(source.get("maxExpirationSeconds"), signer, path.child("maxExpirationSeconds"))
    places = [name for name in _PLACES if source.get(name)]
    for name in places:
        errors += local_path_errors(source[name], path.child(name)) + taken(source[name])
    if not places:
        needed = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"
        errors.append(field.required(path, needed))
    return errors


def _lifetime_errors(seconds: int | None, signer: str, path: Path) -> Iterator[field.Error]:
    if seconds is None:
        return
    longest = LONGEST_OWN if is_kubernetes_signer(signer) else LONGEST
    if seconds < SHORTEST:
        yield field.invalid(path, seconds, f"if provided, maxExpirationSeconds must be >= {SHORTEST}")
    if seconds > longest:
        yield field.invalid(path, seconds, f"if provided, maxExpirationSeconds must be <= {longest}")
