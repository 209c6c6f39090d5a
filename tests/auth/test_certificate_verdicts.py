"""Client certificates, odd ones too, are judged as kube-apiserver 1.37.2 judged them (`--client-ca-file` with their roots)."""

import asyncio

import pytest

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.auth.authenticators.x509 import X509
from fakeapiserver.auth.interfaces import Credentials
from tests.auth.chains import authority_cases, constraint_cases, leaf_cases, path_cases
from tests.auth.chains.shapes import Chain
from tests.auth.chains.writing import pem

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
