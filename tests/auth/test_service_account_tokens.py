"""Service account tokens: whose they are, and the many ways in which they can be bad."""

import asyncio
import base64
import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from fakeapiserver.auth.authenticators.serviceaccount import (
    LEGACY_ISSUER,
    BoundValidator,
    LegacyValidator,
    SignedTokens,
)
from fakeapiserver.auth.interfaces import RefusedError, Response, UserInfo
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
def tokens(tmp_path_factory: pytest.TempPathFactory) -> SignedTokens:
    file = tmp_path_factory.mktemp("keys") / "key.pem"
    file.write_bytes(PEM)
    return authenticator(ServiceAccountKeys(file))


def authenticator(keys: ServiceAccountKeys) -> SignedTokens:
    return SignedTokens(keys, [ISSUER], ["api"], BoundValidator(Objects(), Clock()))


def claims(**changed: Any) -> dict[str, Any]:
    """Good ones; None leaves a claim out."""
    private = {"namespace": "default", "serviceaccount": ACCOUNT, **changed.pop("private", {})}
    good = {"iss": ISSUER, "aud": ["api"], "exp": NOW + 600, "iat": NOW, "nbf": NOW, "kubernetes.io": private}
    return {name: value for name, value in {**good, **changed}.items() if value is not None}


def signed(payload: dict[str, Any], key: Any = KEY, algorithm: str = "ES256", **headers: Any) -> str:
    return jwt.api_jws.encode(json.dumps(payload).encode(), key, algorithm, headers)


def user(tokens: SignedTokens, token: str, *audiences: str) -> UserInfo | None:
    response = asyncio.run(tokens.authenticate_token(token, audiences or ("api",)))
    return response.user if response is not None else None


def test_a_good_token_is_its_accounts(tokens: SignedTokens) -> None:
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
def test_what_may_differ(tokens: SignedTokens, changed: dict[str, Any]) -> None:
    found = user(tokens, signed(claims(**changed)))
    assert found is not None
    assert found.name == "system:serviceaccount:default:robot"


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"exp": NOW - 61}, "service account token has expired"),
        ({"nbf": NOW + 61}, "service account token is not valid yet"),
        ({"iat": NOW + 61}, "service account token is issued in the future"),
        ({"exp": str(NOW)}, "expected number value to unmarshal NumericDate"),
        ({"exp": 1e30}, "service account token has expired"),
        ({"exp": True}, "expected number value to unmarshal NumericDate"),
        ({"jti": 5}, "json: cannot unmarshal number into Go value of type string"),
        ({"aud": ["x"]}, r'token audiences \["x"\] is invalid for the target audiences \["api"\]'),
        ({"aud": {"a": 1}}, "expected string or array value to unmarshal to Audience"),
        (
            {"private": {"serviceaccount": {"name": "robot", "uid": "u9"}}},
            r"service account UID \(u1\) does not match claim",
        ),
        ({"private": {"serviceaccount": {"name": "gone"}}}, 'serviceaccounts "gone" not found'),
        (
            {"private": {"serviceaccount": "robot"}},
            "json: cannot unmarshal string into Go value of type serviceaccount.ref",
        ),
        ({"private": {"namespace": "other"}}, "not found"),
        ({"kubernetes.io": None}, "resource name may not be empty"),
        ({"kubernetes.io": [1]}, "json: cannot unmarshal array into Go value of type serviceaccount.kubernetes"),
        ({"private": {"namespace": ""}}, "the server could not find the requested resource"),
        ({"private": {"namespace": "a/b"}}, r"invalid namespace \"a/b\": \[may not contain '/'\]"),
        ({"private": {"serviceaccount": {"name": ".."}}}, r"invalid resource name"),
        ({"private": {"pod": {"name": "gone", "uid": "u2"}}}, "service account token has been invalidated"),
        (
            {"private": {"pod": {"name": "p", "uid": "u9"}}},
            r"pod UID \(u2\) does not match service account pod ref claim \(u9\)",
        ),
        ({"private": {"pod": {"name": "going", "uid": "u5"}}}, "service account token has been invalidated"),
        ({"private": {"pod": "p"}}, "json: cannot unmarshal string into Go value of type serviceaccount.ref"),
        ({"private": {"pod": {}}}, "service account token has been invalidated"),
        ({"private": {"secret": {"name": "s", "uid": "u9"}}}, "secret UID"),
        ({"private": {"node": {"name": "gone"}}}, "service account token has been invalidated"),
    ],
)
def test_claims_that_are_refused(tokens: SignedTokens, changed: dict[str, Any], why: str) -> None:
    with pytest.raises(RefusedError, match=why):
        user(tokens, signed(claims(**changed)))


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
        f"{segment({'alg': 'ES256', 'b64': False})}.{PAYLOAD}.{SIGNATURE}",
        f"{segment({'alg': 'ES256', 'crit': ['exp']})}.{PAYLOAD}.{SIGNATURE}",
        f"{HEAD}.{segment(claims(exp=NOW + 1))}.{SIGNATURE}",
        f"{GOOD}AAAA",
        GOOD[:-4],
    ],
)
def test_signatures_that_are_refused(tokens: SignedTokens, token: str) -> None:
    with pytest.raises(RefusedError):
        user(tokens, token)


def test_a_symmetric_signature_with_the_public_key_is_refused(tokens: SignedTokens) -> None:
    body = f"{segment({'alg': 'HS256'})}.{PAYLOAD}"
    digest = hmac.new(PUBLIC, body.encode(), hashlib.sha256).digest()
    with pytest.raises(RefusedError):
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
        GOOD.replace(".", ".."),
        f"{HEAD}.{segment([])}.{SIGNATURE}",
        f"{segment({'alg': 5})}.{PAYLOAD}.{SIGNATURE}",
        f"{segment({'alg': 'ES256', 'kid': 5})}.{PAYLOAD}.{SIGNATURE}",
        signed(claims(), jwk={"kty": "RSA"}),
        signed(claims(), jwk={"kty": "oct", "k": "AA"}),
        signed(claims(), jwk={"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}),
        signed(claims(), x5c=["AA=="]),
        f"{segment([1])}.{PAYLOAD}.{SIGNATURE}",
        f"{segment({'alg': 'ES256', 'jwk': {}})}.{PAYLOAD}.{SIGNATURE}",
    ]
    + [signed(claims(iss=other)) for other in ("https://issuer/", "", 5, None, ["https://issuer"])],
)
def test_what_is_no_token_of_this_issuer_is_left_to_others(tokens: SignedTokens, token: str) -> None:
    assert user(tokens, token) is None


def test_another_audience_can_be_asked_for(tokens: SignedTokens) -> None:
    assert user(tokens, signed(claims(aud=["vault"])), "vault", "x") is not None
    with pytest.raises(RefusedError):
        user(tokens, signed(claims()), "vault")


def test_a_key_without_a_file_is_made(tokens: SignedTokens) -> None:
    keys = ServiceAccountKeys()
    own = authenticator(keys)
    assert user(own, keys.sign(claims())) is not None
    with pytest.raises(RefusedError):
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
    own = authenticator(keys)
    assert user(own, keys.sign(claims())) is not None


@pytest.mark.parametrize("content", [b"", b"hello", b"-----BEGIN PUBLIC KEY-----\nx\n-----END PUBLIC KEY-----\n"])
def test_a_file_without_a_usable_key_is_reported(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "key.pem"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=r"key.pem: data does not contain any valid RSA or ECDSA public keys"):
        ServiceAccountKeys(None, [file]).load()
    with pytest.raises(ValueError, match=r"key.pem: data does not contain a valid RSA or ECDSA private key"):
        ServiceAccountKeys(file).load()


@pytest.mark.parametrize("within", ["", '"kubernetes.io":', '"serviceaccount":'])
def test_a_claim_that_stands_there_twice_is_refused(tokens: SignedTokens, within: str) -> None:
    text = json.dumps(claims(), separators=(",", ":"))
    twice = text.replace(f"{within}{{", f'{within}{{"name":"a","name":"a",', 1)
    with pytest.raises(RefusedError, match="json: duplicate key 'name' in object"):
        user(tokens, jwt.api_jws.encode(twice.encode(), KEY, "ES256"))


LEGACY = "kubernetes.io/serviceaccount/"


def legacy(**changed: Any) -> dict[str, Any]:
    private = {"namespace": "default", "secret.name": "t", "service-account.name": "robot", "service-account.uid": "u1"}
    private |= changed.pop("private", {})
    good = {"iss": "kubernetes/serviceaccount", "sub": "system:serviceaccount:default:robot", **changed}
    return {**good, **{LEGACY + name: value for name, value in private.items()}}


class Kept:
    """The secret `t` holds `token`, which the account `robot` belongs to; labels are remembered."""

    def __init__(self, token: str, *, listed: bool = False, labels: dict[str, str] | None = None) -> None:
        data = {"token": base64.b64encode(token.encode()).decode()}
        meta = {"namespace": "default", "name": "t", "uid": "u3", "labels": labels}
        account = {"metadata": {"uid": "u1"}, "secrets": [{"name": "t"}] if listed else []}
        self.objects = {"secrets": {"metadata": meta, "data": data}, "serviceaccounts": account}
        self.labelled: list[dict[str, str]] = []

    def get(self, resource: str, namespace: str, name: str) -> dict[str, Any] | None:
        return self.objects.get(resource)

    async def label(self, namespace: str, name: str, uid: str, labels: dict[str, str]) -> None:
        self.labelled.append(labels)


def legacy_response(kept: Kept, token: str, keys: ServiceAccountKeys, lookup: bool = True) -> Response | None:
    validator = LegacyValidator(kept, Clock(), kept.label, lookup)
    method = SignedTokens(keys, [LEGACY_ISSUER], ["api"], validator)
    return asyncio.run(method.authenticate_token(token, ["api"]))


def test_a_token_kept_in_a_secret_is_its_accounts_and_the_secret_is_labelled(tokens: SignedTokens) -> None:
    token = signed(legacy())
    kept = Kept(token)
    response = legacy_response(kept, token, tokens.keys)
    assert response is not None
    assert response.user.name == "system:serviceaccount:default:robot"
    assert response.user.extra == {}
    assert response.warnings == ()
    assert kept.labelled == [{"kubernetes.io/legacy-token-last-used": "2027-01-15"}]


def test_a_secret_that_was_labelled_today_is_left_alone(tokens: SignedTokens) -> None:
    token = signed(legacy())
    kept = Kept(token, labels={"kubernetes.io/legacy-token-last-used": "2027-01-15"})
    legacy_response(kept, token, tokens.keys)
    assert kept.labelled == []


def test_a_token_made_for_every_account_is_warned_about(tokens: SignedTokens) -> None:
    token = signed(legacy())
    response = legacy_response(Kept(token, listed=True), token, tokens.keys)
    assert response is not None
    assert response.warnings[0].startswith("Use tokens from the TokenRequest API")


def test_without_lookup_the_signature_is_enough(tokens: SignedTokens) -> None:
    assert legacy_response(Kept("another"), signed(legacy()), tokens.keys, lookup=False) is not None


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        (legacy(sub=""), "sub claim is missing"),
        (legacy(sub="system:serviceaccount:default:other"), "sub claim is invalid"),
        (legacy(private={"namespace": ""}), "namespace claim is missing"),
        (legacy(private={"secret.name": None}), "secretName claim is missing"),
        (legacy(private={"service-account.uid": "u9"}), "ServiceAccount UID \\(u1\\) does not match claim \\(u9\\)"),
        (legacy(private={"secret.name": 5}), "json: cannot unmarshal number into Go value of type string"),
        (legacy(aud=["x"]), "token audiences"),
    ],
)
def test_legacy_claims_that_are_refused(tokens: SignedTokens, payload: dict[str, Any], why: str) -> None:
    token = signed(payload)
    with pytest.raises(RefusedError, match=why):
        legacy_response(Kept(token), token, tokens.keys)


def test_a_legacy_token_must_be_the_one_in_its_secret(tokens: SignedTokens) -> None:
    with pytest.raises(RefusedError, match="Token does not match server's copy"):
        legacy_response(Kept("another"), signed(legacy()), tokens.keys)


def test_a_legacy_token_marked_invalid_is_refused(tokens: SignedTokens) -> None:
    token = signed(legacy())
    kept = Kept(token, labels={"kubernetes.io/legacy-token-invalid-since": "2027-01-01"})
    with pytest.raises(RefusedError, match="has been marked invalid"):
        legacy_response(kept, token, tokens.keys)
