"""Users in the headers of a front proxy. Upstream: headerrequest/requestheader_test.go, request/x509 (NewDynamicCAVerifier)."""

import asyncio

import pytest
from msgspec.structs import replace

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.auth.authenticators.requestheader import RequestHeader, RequestHeaderConfig
from fakeapiserver.auth.interfaces import Credentials, UserInfo
from fakeapiserver.clock import SystemClock
from fakeapiserver.transport.certificates import create_authority, issue_client
from fakeapiserver.transport.key_pair import KeyPair

AUTHORITY = create_authority("front-proxy-ca")
PROXY = issue_client(AUTHORITY, "front-proxy-client")
CONFIG = RequestHeaderConfig(AUTHORITY.certificate)
Headers = dict[str, str] | list[tuple[str, str]]


def der(pair: KeyPair) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding
    from cryptography.x509 import load_pem_x509_certificate

    return load_pem_x509_certificate(pair.certificate).public_bytes(Encoding.DER)


def told(headers: Headers, client: KeyPair | None = PROXY, config: RequestHeaderConfig = CONFIG) -> UserInfo | None:
    pairs = list(headers.items()) if isinstance(headers, dict) else headers
    sent = [(name.lower().encode(), value.encode()) for name, value in pairs]
    credentials = Credentials(peer_certificate=der(client) if client is not None else b"", headers=sent)
    return asyncio.run(RequestHeader(config, SystemClock()).authenticate(credentials))


def test_all_that_a_user_is() -> None:
    headers = [
        ("X-Remote-User", "zoë"),
        ("X-Remote-Uid", "7"),
        ("X-Remote-Group", "a"),
        ("X-Remote-Group", ""),
        ("X-Remote-Group", "b"),
        ("X-Remote-Extra-Example.com%2fScope", "x"),
        ("X-Remote-Extra-Example.com%2fScope", "y"),
    ]
    assert told(headers) == UserInfo("zoë", "7", ("a", "b"), {"example.com/scope": ("x", "y")})


def test_what_is_no_text_and_no_escape_is_taken_as_go_takes_it() -> None:
    sent = [(b"x-remote-user", b"a\xffb"), (b"x-remote-group", b"\xff"), (b"x-remote-extra-%41%", b"\xff")]
    credentials = Credentials(peer_certificate=der(PROXY), headers=sent)
    found = asyncio.run(RequestHeader(CONFIG, SystemClock()).authenticate(credentials))
    assert found == UserInfo("a\ufffdb", "", ("\ufffd",), {"%41%": ("\ufffd",)})


@pytest.mark.parametrize("headers", [{}, {"X-Remote-User": ""}, {"X-Remote-Group": "system:masters"}])
def test_no_user_is_named(headers: Headers) -> None:
    assert told(headers) is None


def test_without_a_certificate_headers_are_only_headers() -> None:
    assert told({"X-Remote-User": "ann"}, client=None) is None


@pytest.mark.parametrize(
    "client", [issue_client(create_authority(), "front-proxy-client"), issue_client(AUTHORITY, "somebody")]
)
def test_a_certificate_of_anybody_else_is_refused(client: KeyPair) -> None:
    with pytest.raises(StatusError):
        told({"X-Remote-User": "ann"}, client)


def test_without_allowed_names_every_name_is() -> None:
    user = told({"X-Remote-User": "ann"}, issue_client(AUTHORITY, "x"), replace(CONFIG, allowed_names=()))
    assert user == UserInfo("ann")


def test_the_first_header_with_a_value_names_the_user() -> None:
    config = replace(CONFIG, username_headers=("X-First", "X-Second"))
    assert told({"X-First": "", "X-Second": "ann"}, config=config) == UserInfo("ann")
