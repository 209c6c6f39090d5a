"""A definition's CA bundle, as the real server judges it."""

import base64

import pytest

from fakeapiserver.registry.apiextensions.webhook_conversion import bundle_problem
from fakeapiserver.transport.certificates import create_authority


def pem(kind: str, content: str) -> bytes:
    return f"-----BEGIN {kind}-----\n{content}-----END {kind}-----\n".encode()


NOT_PEM = "unable to load root certificates: unable to parse bytes as PEM block"
MALFORMED = "unable to load root certificates: failed to parse certificate: x509: malformed certificate"


@pytest.mark.parametrize(
    ("bundle", "problem"),
    [
        (b"", ""),
        (b"\n", NOT_PEM),
        (b"no certificate", NOT_PEM),
        (pem("PRIVATE KEY", "AAAA\n"), "unable to load root certificates: no valid certificate authority data seen"),
        (pem("CERTIFICATE", "not base64!\n"), NOT_PEM),
        (pem("CERTIFICATE", "AAAA\n"), MALFORMED),
        (pem("CERTIFICATE", ""), MALFORMED),
    ],
)
def test_what_is_no_certificate(bundle: bytes, problem: str) -> None:
    assert bundle_problem(base64.b64encode(bundle).decode()) == problem


def test_one_certificate_will_do() -> None:
    bundle = pem("CERTIFICATE", "AAAA\n") + create_authority().certificate
    assert bundle_problem(base64.b64encode(bundle).decode()) == ""
