"""Certificates and keys that don't fit, in Go's words."""

import pytest

from fakeapiserver.registry.core.key_pair import key_pair_problem
from fakeapiserver.transport import certificates

ONE, TWO = certificates.create_authority("one"), certificates.create_authority("two")


def block(kind: str, content: str = "YWJj") -> bytes:
    return f"-----BEGIN {kind}-----\n{content}\n-----END {kind}-----\n".encode()


@pytest.mark.parametrize(
    ("certificate", "key", "problem"),
    [
        (ONE.certificate, ONE.key, ""),
        (b"text\n" + ONE.certificate + TWO.certificate, block("EC PARAMETERS") + ONE.key, ""),
        (ONE.certificate, TWO.key, "tls: private key does not match public key"),
        (b"", b"", "tls: failed to find any PEM data in certificate input"),
        (block("CERTIFICATE", "!!!"), ONE.key, "tls: failed to find any PEM data in certificate input"),
        (
            block("PRIVATE KEY"),
            ONE.certificate,
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; "
            "PEM inputs may have been switched",
        ),
        (ONE.certificate, b"x", "tls: failed to find any PEM data in key input"),
        (ONE.certificate, TWO.certificate, "tls: found a certificate rather than a key in the PEM for the private key"),
        (
            ONE.certificate,
            block("EC PARAMETERS"),
            'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input after skipping PEM blocks of the '
            "following types: [EC PARAMETERS]",
        ),
        (block("CERTIFICATE"), ONE.key, "x509: malformed certificate"),
        (ONE.certificate, block("PRIVATE KEY"), "tls: failed to parse private key"),
    ],
)
def test_a_key_pair_is_accepted_or_has_an_error(certificate: bytes, key: bytes, problem: str) -> None:
    assert key_pair_problem(certificate, key) == problem
