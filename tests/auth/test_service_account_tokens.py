"""Service account tokens: whose they are, and the many ways in which they can be bad."""

import asyncio
import base64
import hashlib
import hmac
import json
import re
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from fakeapiserver import StatusError
from fakeapiserver.auth.authenticators.serviceaccount import ServiceAccountTokens
from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.auth.service_account_keys import ServiceAccountKeys, key_id
from fakeapiserver.transport.certificates import create_authority, save

NOW = 1_800_000_000
ISSUER = "https://issuer"
KEY = ec.generate_private_key(ec.SECP256R1())
PEM = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
PUBLIC = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
OTHER = ec.generate_private_key(ec.SECP256R1())
ACCOUNT = {"name": "robot", "uid": "u1"}
OBJECTS: dict[tuple[str, str, str], dict[str, Any]] = {
    ("serviceaccounts", "default", "robot"): {"metadata": {"uid": "u1"}},
    ("pods", "default", "p"): {"metadata": {"uid": "u2"}},
    ("secrets", "default", "s"): {"metadata": {"uid": "u3"}},
    ("nodes", "", "n"): {"metadata": {"uid": "u4"}},
    ("pods", "default", "going"): {"metadata": {"uid": "u5", "deletionTimestamp": "2027-01-15T07:58:00Z"}},
}


class Clock:
    def now(self) -> float:
        return NOW

    def monotonic(self) -> float:
        return NOW


class Objects:
    def get(self, resource: str, namespace: str, name: str) -> dict[str, Any] | None:
        return OBJECTS.get((resource, namespace, name))


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> ServiceAccountTokens:
    file = tmp_path_factory.mktemp("keys") / "key.pem"
    file.write_bytes(PEM)
    return ServiceAccountTokens(ServiceAccountKeys(file), [ISSUER], ["api"], Objects(), Clock())  # type: ignore[arg-type]


def claims(**changed: Any) -> dict[str, Any]:
    """Good ones; None leaves a claim out."""
    private = {"namespace": "default", "serviceaccount": ACCOUNT, **changed.pop("private", {})}
    good = {"iss": ISSUER, "aud": ["api"], "exp": NOW + 600, "iat": NOW, "nbf": NOW, "kubernetes.io": private}
    return {name: value for name, value in {**good, **changed}.items() if value is not None}


def signed(payload: dict[str, Any], key: Any = KEY, algorithm: str = "ES256", **headers: Any) -> str:
    return jwt.api_jws.encode(json.dumps(payload).encode(), key, algorithm, headers)


def user(tokens: ServiceAccountTokens, token: str, *audiences: str) -> UserInfo | None:
    return asyncio.run(tokens.authenticate_token(token, audiences))


def test_a_good_token_is_its_accounts(tokens: ServiceAccountTokens) -> None:
    assert user(tokens, signed(claims(jti="j"))) == UserInfo(
        "system:serviceaccount:default:robot",
        "u1",
        ("system:serviceaccounts", "system:serviceaccounts:default"),
        {"authentication.kubernetes.io/credential-id": ("JTI=j",)},
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"exp": None},
        {"exp": NOW - 59},
        {"exp": NOW + 0.5},
        {"nbf": NOW + 59},
        {"aud": None},
        {"aud": "api"},
        {"aud": ["x", "api"]},
        {"sub": "system:serviceaccount:kube-system:root"},
        {"private": {"pod": {"name": "p", "uid": "u2"}}},
        {"private": {"pod": {"name": "p", "uid": "u2"}, "node": {"name": "gone"}}},
        {"private": {"secret": {"name": "s", "uid": "u3"}}},
        {"private": {"node": {"name": "n", "uid": "u4"}}},
    ],
)
def test_what_may_differ(tokens: ServiceAccountTokens, changed: dict[str, Any]) -> None:
    found = user(tokens, signed(claims(**changed)))
    assert found is not None
    assert found.name == "system:serviceaccount:default:robot"


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"exp": NOW - 61}, "service account token has expired"),
        ({"nbf": NOW + 61}, "service account token is not valid yet"),
        ({"iat": NOW + 61}, "service account token is issued in the future"),
        ({"exp": str(NOW)}, "go-jose"),
        ({"exp": 1e30}, "go-jose"),
        ({"exp": float("nan")}, "go-jose"),
        ({"exp": True}, "go-jose"),
        ({"aud": ["x"]}, r'token audiences \["x"\] is invalid for the target audiences \["api"\]'),
        ({"aud": {"a": 1}}, "token audiences"),
        (
            {"private": {"serviceaccount": {"name": "robot", "uid": "u9"}}},
            r"service account UID \(u1\) does not match claim",
        ),
        ({"private": {"serviceaccount": {"name": "gone"}}}, 'serviceaccounts "gone" not found'),
        ({"private": {"serviceaccount": "robot"}}, "not found"),
        ({"private": {"namespace": "other"}}, "not found"),
        ({"kubernetes.io": None}, "not found"),
        ({"kubernetes.io": [1]}, "not found"),
        ({"private": {"pod": {"name": "gone", "uid": "u2"}}}, "service account token has been invalidated"),
        (
            {"private": {"pod": {"name": "p", "uid": "u9"}}},
            r"pod UID \(u2\) does not match service account pod ref claim \(u9\)",
        ),
        ({"private": {"pod": {"name": "going", "uid": "u5"}}}, "service account token has been invalidated"),
        ({"private": {"pod": "p"}}, "service account token has been invalidated"),
        ({"private": {"secret": {"name": "s", "uid": "u9"}}}, "secret UID"),
        ({"private": {"node": {"name": "gone"}}}, "service account token has been invalidated"),
    ],
)
def test_claims_that_are_refused(tokens: ServiceAccountTokens, changed: dict[str, Any], why: str) -> None:
    with pytest.raises(StatusError) as refused:
        user(tokens, signed(claims(**changed)))
    assert refused.value.code == 401
    assert re.search(why, str(refused.value.__cause__))


def segment(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


GOOD = signed(claims())
HEAD, PAYLOAD, SIGNATURE = GOOD.split(".")


@pytest.mark.parametrize(
    "token",
    [
        signed(claims(), OTHER),
        signed(claims(), OTHER, kid=key_id(KEY.public_key())),
        signed(claims(), kid="../../etc/passwd"),
        signed(claims(), kid=key_id(OTHER.public_key())),
        signed(claims(), rsa.generate_private_key(65537, 2048), "RS256"),
        f"{segment({'alg': 'none'})}.{PAYLOAD}.{SIGNATURE}",
        f"{segment({'alg': 'NoNe'})}.{PAYLOAD}.{SIGNATURE}",
        f"{segment({'alg': 5})}.{PAYLOAD}.{SIGNATURE}",
        f"{segment({'alg': 'ES256', 'kid': 5})}.{PAYLOAD}.{SIGNATURE}",
        f"{segment([1])}.{PAYLOAD}.{SIGNATURE}",
        f"{segment({'alg': 'ES256', 'b64': False})}.{PAYLOAD}.{SIGNATURE}",
        f"{segment({'alg': 'ES256', 'crit': ['exp']})}.{PAYLOAD}.{SIGNATURE}",
        f"{segment({'alg': 'ES256', 'jwk': {}})}.{PAYLOAD}.{SIGNATURE}",
        f"{HEAD}.{segment(claims(exp=NOW + 1))}.{SIGNATURE}",
        f"{GOOD}AAAA",
        GOOD[:-4],
    ],
)
def test_signatures_that_are_refused(tokens: ServiceAccountTokens, token: str) -> None:
    with pytest.raises(StatusError, match="Unauthorized"):
        user(tokens, token)


def test_a_symmetric_signature_with_the_public_key_is_refused(tokens: ServiceAccountTokens) -> None:
    body = f"{segment({'alg': 'HS256'})}.{PAYLOAD}"
    digest = hmac.new(PUBLIC, body.encode(), hashlib.sha256).digest()
    with pytest.raises(StatusError, match="Unauthorized"):
        user(tokens, f"{body}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}")


@pytest.mark.parametrize(
    "token",
    [
        "",
        "abc",
        "a.b",
        "a.b.c.d",
        "a.b.c",
        f"{GOOD}=",
        f"{GOOD}\n",
        GOOD.replace(".", ".."),
        f"{HEAD}.{segment([])}.{SIGNATURE}",
    ]
    + [signed(claims(iss=other)) for other in ("https://issuer/", "", 5, None, ["https://issuer"])],
)
def test_what_is_no_token_of_this_issuer_is_left_to_others(tokens: ServiceAccountTokens, token: str) -> None:
    assert user(tokens, token) is None


def test_another_audience_can_be_asked_for(tokens: ServiceAccountTokens) -> None:
    assert user(tokens, signed(claims(aud=["vault"])), "vault", "x") is not None
    with pytest.raises(StatusError):
        user(tokens, signed(claims()), "vault")


def test_a_key_without_a_file_is_made(tokens: ServiceAccountTokens) -> None:
    keys = ServiceAccountKeys()
    own = ServiceAccountTokens(keys, [ISSUER], ["api"], Objects(), Clock())  # type: ignore[arg-type]
    assert user(own, keys.sign(claims())) is not None
    with pytest.raises(StatusError):
        user(tokens, keys.sign(claims()))


@pytest.mark.parametrize("bits", [0, 2048])
def test_certificates_and_rsa_keys_verify_as_envtest_gives_them(tmp_path: Path, bits: int) -> None:
    if bits:
        key = rsa.generate_private_key(65537, bits)
        (tmp_path / "sa.key").write_bytes(
            key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
        )
        public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        (tmp_path / "sa.crt").write_bytes(PUBLIC + public)
    else:
        save(tmp_path, "sa", create_authority())
    keys = ServiceAccountKeys(tmp_path / "sa.key", [tmp_path / "sa.crt"])
    keys.load()
    own = ServiceAccountTokens(keys, [ISSUER], ["api"], Objects(), Clock())  # type: ignore[arg-type]
    assert user(own, keys.sign(claims())) is not None


@pytest.mark.parametrize("content", [b"", b"hello", b"-----BEGIN PUBLIC KEY-----\nx\n-----END PUBLIC KEY-----\n"])
def test_a_file_without_a_usable_key_is_told(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "key.pem"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=r"key.pem holds"):
        ServiceAccountKeys(None, [file]).load()
    with pytest.raises(ValueError, match=r"key.pem holds"):
        ServiceAccountKeys(file).load()
