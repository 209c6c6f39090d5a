"""X.509 certificates read to their end, as Go does at once and the library only when it is asked.

Upstream: crypto/x509 (ParseCertificate).
"""

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.x509.oid import PublicKeyAlgorithmOID


def parsed(content: bytes) -> x509.Certificate:
    """Parses a certificate in DER. Raises ValueError for a certificate that Go refuses, in its words where these are known."""
    try:
        certificate = x509.load_der_x509_certificate(content)
        _ = certificate.issuer, certificate.subject, certificate.extensions
        certificate.public_key()
    except (ValueError, KeyError, x509.InvalidVersion):
        raise ValueError("x509: malformed certificate") from None
    except UnsupportedAlgorithm:  # a key of an unknown type is ignored, but its curve must be known
        if certificate.public_key_algorithm_oid == PublicKeyAlgorithmOID.EC_PUBLIC_KEY:
            raise ValueError("x509: unsupported elliptic curve") from None
    if certificate.serial_number < 0:
        raise ValueError("x509: negative serial number")
    if _algorithm(certificate.tbs_certificate_bytes, inside=True) != _algorithm(content, inside=False):
        raise ValueError("x509: inner and outer signature algorithm identifiers don't match")
    return certificate


def _algorithm(sequence: bytes, *, inside: bool) -> bytes:
    """The identifier of a signature's algorithm: behind what is signed, and in there behind version and serial number."""
    at, _ = _header(sequence, 0)
    before = 1 + (inside and sequence[at] == 0xA0)
    for _ in range(before):
        at, size = _header(sequence, at)
        at += size
    start, size = _header(sequence, at)
    return sequence[start : start + size]


def _header(data: bytes, at: int) -> tuple[int, int]:
    """The offset at which the content of a DER element begins, and its size."""
    size = data[at + 1]
    if size < 0x80:
        return at + 2, size
    end = at + 2 + size - 0x80
    return end, int.from_bytes(data[at + 2 : end], "big")
