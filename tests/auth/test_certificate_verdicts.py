"""Client certificates, odd ones too, are judged as kube-apiserver 1.37.2 judged them (`--client-ca-file` with their roots)."""

import asyncio
import ssl
from http.client import HTTPSConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.auth.authenticators.x509 import X509
from fakeapiserver.auth.interfaces import Credentials
from fakeapiserver.testing.background import running_server
from tests.auth.chains import authority_cases, constraint_cases, leaf_cases, path_cases
from tests.auth.chains.shapes import Chain
from tests.auth.chains.writing import key, pem

CASES = {**leaf_cases.CASES, **authority_cases.CASES, **constraint_cases.CASES, **path_cases.CASES}


def user(chain: Chain) -> str | None:
    """Returns the name of the user; empty for a certificate without one, and None if it is refused."""
    leaf, *others = (certificate.der for certificate in chain.sent)
    authenticator = X509(b"".join(pem(certificate.der) for certificate in chain.trusted))
    try:
        found = asyncio.run(authenticator.authenticate(Credentials(peer_certificate=leaf, peer_chain=tuple(others))))
    except StatusError as error:
        return None if error.code == 401 else str(error)
    return found.name if found is not None else ""


@pytest.mark.parametrize(("expected", "chain"), CASES.values(), ids=CASES)
def test_verdict(expected: str | None, chain: Chain) -> None:
    assert user(chain) == expected


def test_no_case_is_named_twice() -> None:
    modules = (leaf_cases, authority_cases, constraint_cases, path_cases)
    assert len(CASES) == sum(len(module.CASES) for module in modules)


def test_a_certificate_that_cryptography_cannot_read_gets_an_answer(tmp_path: Path) -> None:
    certificate = leaf_cases.CASES["version 2"][1].sent[0]
    private = key(certificate.key).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (tmp_path / "client.pem").write_bytes(pem(certificate.der) + private)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(tmp_path / "client.pem")
    with running_server() as server:
        place = urlsplit(server.url)
        connection = HTTPSConnection(place.hostname or "", place.port, context=context, timeout=30)
        connection.request("GET", "/api")
        assert connection.getresponse().status == 401
        connection.close()
