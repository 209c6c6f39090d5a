"""Tests authentication by certificate, by token, or without credentials."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.auth.authenticators.anonymous import ANONYMOUS, Anonymous
from fakeapiserver.auth.authenticators.bearertoken import BearerToken, bearer_token
from fakeapiserver.auth.authenticators.tokenfile import StaticTokens, admin_token, parse_tokens
from fakeapiserver.auth.authenticators.x509 import CREDENTIAL_ID, X509
from fakeapiserver.auth.interfaces import Credentials, UserInfo
from fakeapiserver.auth.union import Union

NOW = datetime.now(UTC)
OTHER_USAGES = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
CLIENT_USAGES = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])


class Authority:
    """A CA made like kubeadm's, and client certificates without SAN and AKI as kubeadm's are."""

    def __init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes")])
        builder = _builder(self.name, self.name, self.key.public_key(), timedelta(days=9))
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        certificate = builder.sign(self.key, hashes.SHA256())
        self.pem = certificate.public_bytes(serialization.Encoding.PEM)

    def client(
        self,
        usages: x509.ExtendedKeyUsage | None = CLIENT_USAGES,
        lasts: timedelta = timedelta(days=1),
        cn: str = "jane",
    ) -> bytes:
        names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in ("dev", "ops")]
        names += [x509.NameAttribute(NameOID.COMMON_NAME, cn)] if cn else []
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(self.name, x509.Name(names), key.public_key(), lasts)
        if usages is not None:
            builder = builder.add_extension(usages, critical=False)
        return builder.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


def _builder(
    issuer: x509.Name, subject: x509.Name, key: ec.EllipticCurvePublicKey, lasts: timedelta
) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().issuer_name(issuer).subject_name(subject).public_key(key)
    start = NOW - timedelta(days=2)
    return builder.serial_number(x509.random_serial_number()).not_valid_before(start).not_valid_after(NOW + lasts)


OURS, THEIRS = Authority(), Authority()
GOOD, UNTRUSTED = OURS.client(), THEIRS.client()


def who(credentials: Credentials) -> str:
    """The user's name, or the code of the refusal."""
    tokens = StaticTokens({"good": UserInfo("bob")})
    union = Union([X509(OURS.pem), BearerToken([admin_token("root"), tokens])], Anonymous())
    try:
        return asyncio.run(union.authenticate(credentials)).name
    except StatusError as error:
        return str(error.code)


@pytest.mark.parametrize(
    ("certificate", "authorization", "expected"),
    [
        (b"", "", "system:anonymous"),
        (b"", "Bearer good", "bob"),
        (b"", "bearer good", "bob"),
        (b"", "Bearer root", "system:apiserver"),
        (b"", "Bearer wrong", "401"),
        (b"", "Bearer ", "system:anonymous"),
        (b"", "Basic Ym9iOmJvYg==", "system:anonymous"),
        (GOOD, "", "jane"),
        (GOOD, "Bearer wrong", "jane"),
        (GOOD, "Bearer good", "jane"),
        (UNTRUSTED, "", "401"),
        (UNTRUSTED, "Bearer good", "bob"),
        (OURS.client(OTHER_USAGES), "", "401"),
        (OURS.client(None), "", "jane"),
        (OURS.client(lasts=-timedelta(hours=1)), "", "401"),
        (OURS.client(cn=""), "", "system:anonymous"),
        (b"not a certificate", "", "401"),
    ],
)
def test_first_success_wins_and_a_refused_credential_is_never_anonymous(
    certificate: bytes, authorization: str, expected: str
) -> None:
    assert who(Credentials(authorization, certificate)) == expected


def test_certificate_gives_groups_and_credential_id() -> None:
    user = asyncio.run(Union([X509(OURS.pem)]).authenticate(Credentials(peer_certificate=GOOD)))
    assert user.groups == ("dev", "ops", "system:authenticated")
    assert user.extra[CREDENTIAL_ID][0].startswith("X509SHA256=")


def test_anonymous_is_not_authenticated() -> None:
    assert asyncio.run(Union([], Anonymous()).authenticate(Credentials())) == ANONYMOUS


def test_anonymous_switched_off_is_401() -> None:
    with pytest.raises(StatusError, match="Unauthorized"):
        asyncio.run(Union([]).authenticate(Credentials()))


class Clock:
    """Time that stands still until it is set."""

    time = 0.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time


def test_each_certificate_is_checked_at_the_time_it_comes() -> None:
    """Whatever others were checked before it: one is good now, and one for a day longer."""
    clock = Clock()
    clock.time = NOW.timestamp()
    union, longer = Union([X509(OURS.pem, clock)]), OURS.client(lasts=timedelta(days=2))
    assert asyncio.run(union.authenticate(Credentials(peer_certificate=GOOD))).name == "jane"
    clock.time += 1.5 * 86400
    assert asyncio.run(union.authenticate(Credentials(peer_certificate=longer))).name == "jane"
    for certificate in (GOOD, OURS.client()):
        with pytest.raises(StatusError, match="Unauthorized"):
            asyncio.run(union.authenticate(Credentials(peer_certificate=certificate)))


def test_a_good_token_is_remembered_for_ten_seconds_and_a_bad_one_is_not() -> None:
    known, clock = {"good": UserInfo("bob")}, Clock()
    tokens = StaticTokens(known)
    union = Union([BearerToken([tokens], clock=clock)])
    user = asyncio.run(union.authenticate(Credentials("Bearer good")))
    tokens._tokens.clear()
    clock.time = 9.9
    assert asyncio.run(union.authenticate(Credentials("Bearer good"))) is user
    clock.time = 10.1
    with pytest.raises(StatusError):
        asyncio.run(union.authenticate(Credentials("Bearer good")))
    tokens._tokens |= known
    assert asyncio.run(union.authenticate(Credentials("Bearer good"))) == user


def test_anonymous_may_be_for_some_paths_only() -> None:
    union = Union([], Anonymous(["/livez"]))
    assert asyncio.run(union.authenticate(Credentials(path="/livez"))) == ANONYMOUS
    with pytest.raises(StatusError, match="Unauthorized"):
        asyncio.run(union.authenticate(Credentials(path="/livez/ping")))


def test_spaces_before_the_token_are_warned_about() -> None:
    credentials = Credentials("Bearer  good")
    assert asyncio.run(Union([BearerToken([])], Anonymous()).authenticate(credentials)) == ANONYMOUS
    assert credentials.warnings == [
        "the provided Authorization header contains extra space before the bearer token, and is ignored"
    ]


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer a", "a"),
        ("BEARER a b", "a"),
        (" Bearer a ", "a"),
        ("Bearer  a", ""),
        ("Bearer", ""),
        ("Token a", ""),
        ("Bearer a\u00a0", "a"),
    ],
)
def test_bearer_token(header: str, token: str) -> None:
    assert bearer_token(header) == token


def test_token_file() -> None:
    tokens = parse_tokens('a,jane,1\n\nb,bob,2,"g1,g2"\n,skipped,3\n')
    assert tokens == {"a": UserInfo("jane", "1"), "b": UserInfo("bob", "2", ("g1", "g2"))}


@pytest.mark.parametrize(
    ("text", "message"),
    [("a,b,c\na,b\n", "line 2: must have at least 3 columns"), ('a,b,"c\n', "line 1"), ('a,"b"x,c\n', "line 1")],
)
def test_malformed_token_file_names_the_line(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_tokens(text)
