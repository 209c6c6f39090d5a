"""Checks the key and the signature of a PKCS #10 request, in Go's words; der.py checks its structure before.

Upstream: crypto/x509 (ParseCertificateRequest, CheckSignature), crypto/internal/fips140/nistec.
"""

from typing import TYPE_CHECKING, Any, Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

if TYPE_CHECKING:
    from cryptography import x509

_CURVES: Final = ("secp224r1", "secp256r1", "secp384r1", "secp521r1")
# The names of curves in DER: a point that isn't on its curve doesn't show which curve it is.
_NAMED: Final = {
    bytes.fromhex("06052b81040021"): "P224",
    bytes.fromhex("06082a8648ce3d030107"): "P256",
    bytes.fromhex("06052b81040022"): "P384",
    bytes.fromhex("06052b81040023"): "P521",
}
# The algorithm of keys on elliptic curves, in DER.
_EC_PUBLIC_KEY: Final = bytes.fromhex("06072a8648ce3d0201")
_MALFORMED: Final = "x509: malformed certificate request"
_UNIMPLEMENTED: Final = "x509: cannot verify signature: algorithm unimplemented"
_UNKNOWN_CURVE: Final = "x509: unsupported elliptic curve"


def problem(content: bytes) -> str:
    """The error in a request in DER; empty for a request that is signed with its own key."""
    try:
        request = x509.load_der_x509_csr(content)
        _ = request.subject
    except (ValueError, KeyError, x509.InvalidVersion):
        return _MALFORMED
    try:
        key = request.public_key()
    except ValueError:
        curve = next((name for text, name in _NAMED.items() if text in content), "")
        return f"{curve} point not on curve" if curve else _MALFORMED
    except UnsupportedAlgorithm:
        return _UNKNOWN_CURVE if _EC_PUBLIC_KEY in content else _UNIMPLEMENTED
    return _signature_problem(request, key)


def _signature_problem(request: "x509.CertificateSigningRequest", key: Any) -> str:
    if isinstance(key, ec.EllipticCurvePublicKey):
        failure = "x509: ECDSA verification failure"
        if key.curve.name not in _CURVES:
            return _UNKNOWN_CURVE
    elif isinstance(key, rsa.RSAPublicKey):
        failure = "crypto/rsa: verification error"
    elif isinstance(key, ed25519.Ed25519PublicKey):
        failure = "x509: Ed25519 verification failure"
    else:
        return _UNIMPLEMENTED
    try:
        _ = request.signature_hash_algorithm
        return "" if request.is_signature_valid else failure
    except UnsupportedAlgorithm:
        return _UNIMPLEMENTED
    except (ValueError, TypeError, InvalidSignature):
        return failure
