"""Signatures of certificates, by the algorithms that Go takes.

Upstream: crypto/x509/x509.go {CheckSignatureFrom,checkSignature,getSignatureAlgorithmFromAI}. Go has MD5 and SHA-1 too, but refuses both.
"""

from typing import Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa

from fakeapiserver.auth.certificates.certificate import Algorithm, Certificate
from fakeapiserver.auth.certificates.der import NULL, Malformed, Reader

_LEAST_RSA_BITS: Final = 1024
_RSA: Final[dict[str, hashes.HashAlgorithm]] = {
    "1.2.840.113549.1.1.11": hashes.SHA256(),
    "1.2.840.113549.1.1.12": hashes.SHA384(),
    "1.2.840.113549.1.1.13": hashes.SHA512(),
}
_ECDSA: Final[dict[str, hashes.HashAlgorithm]] = {
    "1.2.840.10045.4.3.2": hashes.SHA256(),
    "1.2.840.10045.4.3.3": hashes.SHA384(),
    "1.2.840.10045.4.3.4": hashes.SHA512(),
}
_ED25519: Final = "1.3.101.112"
_PSS: Final = "1.2.840.113549.1.1.10"
_MGF1: Final = "1.2.840.113549.1.1.8"
_DIGESTS: Final[dict[str, hashes.HashAlgorithm]] = {
    "2.16.840.1.101.3.4.2.1": hashes.SHA256(),
    "2.16.840.1.101.3.4.2.2": hashes.SHA384(),
    "2.16.840.1.101.3.4.2.3": hashes.SHA512(),
}


def is_signed_by(child: Certificate, parent: Certificate) -> bool:
    """Reports whether `parent` is an authority, and has made the signature of `child`."""
    extensions, key = parent.extensions, parent.key
    if (
        (extensions.authority is None and parent.version == 3)
        or extensions.authority is False
        or extensions.forbids_signing
    ):
        return False
    try:
        if isinstance(key, rsa.RSAPublicKey):
            return _rsa_signed(child, key)
        if isinstance(key, ec.EllipticCurvePublicKey) and child.algorithm.oid in _ECDSA:
            key.verify(child.signature, child.signed, ec.ECDSA(_ECDSA[child.algorithm.oid]))
            return True
        if isinstance(key, ed25519.Ed25519PublicKey) and child.algorithm == Algorithm(_ED25519, b""):
            key.verify(child.signature, child.signed)
            return True
    except (InvalidSignature, UnsupportedAlgorithm, ValueError):
        return False
    return False


def _rsa_signed(child: Certificate, key: rsa.RSAPublicKey) -> bool:
    algorithm = child.algorithm
    digest = _pss_digest(algorithm) if algorithm.oid == _PSS else _RSA.get(algorithm.oid)
    if digest is None or key.key_size < _LEAST_RSA_BITS:
        return False
    is_pss = algorithm.oid == _PSS
    scheme = padding.PSS(padding.MGF1(digest), digest.digest_size) if is_pss else padding.PKCS1v15()
    key.verify(child.signature, child.signed, scheme, digest)
    return True


def _pss_digest(algorithm: Algorithm) -> hashes.HashAlgorithm | None:
    """Only with parameters as they should be: one digest for all, and a salt of its size."""
    try:
        parameters = Reader(algorithm.parameters[1:])
        digest = Reader(parameters.content(0xA0)).inner()
        generation = Reader(parameters.content(0xA1)).inner()
        salt = Reader(parameters.content(0xA2)).integer()
        trailer = parameters.optional(0xA3)
        oid, mask, inner = digest.oid(), generation.oid(), generation.inner()
        same = inner.oid() == oid and not (digest.content(NULL) or inner.content(NULL))
    except Malformed:
        return None
    found = _DIGESTS.get(oid)
    is_usual = (
        mask == _MGF1 and same and trailer in (None, b"\2\1\1") and found is not None and salt == found.digest_size
    )
    return found if is_usual else None
