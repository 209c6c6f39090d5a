"""Checks a certificate and its key, in Go's words.

Upstream: crypto/tls/tls.go (X509KeyPair).
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

# A line that begins with five hyphens ends a block: so many beginnings are read in linear time.
_BLOCK: Final = re.compile(rb"-----BEGIN ([^\r\n-]*)-----[ \t]*\r?\n((?:(?!-----)[^\n]*\n)*)-----END \1-----")
_HEADER: Final = re.compile(rb"^[^\r\n]*:[^\r\n]*\r?\n", re.M)
_SPACES: Final = re.compile(rb"[ \t\r\n]+")
_CERTIFICATE: Final = "CERTIFICATE"
_KEY: Final = "PRIVATE KEY"


def key_pair_problem(certificate: bytes, key: bytes) -> str:
    """The problem of a certificate and its key, both in PEM; empty for a pair that a server can use."""
    block, skipped = _first(certificate, lambda kind: kind == _CERTIFICATE)
    if block is None:
        return _no_certificate(skipped)
    secret, skipped = _first(key, lambda kind: kind == _KEY or kind.endswith(" " + _KEY))
    if secret is None:
        return _no_key(skipped)
    return _mismatch(block, secret)


def _first(pem: bytes, wanted: Callable[[str], bool]) -> tuple[bytes | None, list[str]]:
    """The first block of a wanted kind, and the kinds of those before it."""
    skipped: list[str] = []
    for kind, content in pem_blocks(pem):
        if wanted(kind):
            return content, skipped
        skipped.append(kind)
    return None, skipped


def pem_blocks(pem: bytes) -> Iterator[tuple[str, bytes]]:
    """The kind and the content of each block; anything else is ignored."""
    for match in _BLOCK.finditer(pem):
        try:
            text = _SPACES.sub(b"", _HEADER.sub(b"", match[2]))
            yield match[1].decode(errors="replace"), base64.b64decode(text, validate=True)
        except binascii.Error:
            continue


def _no_certificate(skipped: list[str]) -> str:
    if not skipped:
        return "tls: failed to find any PEM data in certificate input"
    if len(skipped) == 1 and skipped[0].endswith(_KEY):
        return (
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; "
            "PEM inputs may have been switched"
        )
    return (
        'tls: failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM blocks of the following '
        f"types: [{' '.join(skipped)}]"
    )


def _no_key(skipped: list[str]) -> str:
    if not skipped:
        return "tls: failed to find any PEM data in key input"
    if skipped == [_CERTIFICATE]:
        return "tls: found a certificate rather than a key in the PEM for the private key"
    return (
        'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input after skipping PEM blocks of the '
        f"following types: [{' '.join(skipped)}]"
    )


def _mismatch(certificate: bytes, key: bytes) -> str:
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_private_key

    try:
        public: Any = x509.load_der_x509_certificate(certificate).public_key()
    except (ValueError, x509.InvalidVersion):
        return "x509: malformed certificate"
    except UnsupportedAlgorithm:
        return "tls: unknown public key algorithm"
    try:
        own: Any = load_der_private_key(key, None).public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return "tls: failed to parse private key"
    if type(public) is not type(own):
        return "tls: private key type does not match public key type"
    form = Encoding.DER, PublicFormat.SubjectPublicKeyInfo
    return "" if public.public_bytes(*form) == own.public_bytes(*form) else "tls: private key does not match public key"
