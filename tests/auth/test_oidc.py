"""Tokens of other issuers, with a real one: a process of its own on loopback, over TLS."""

import asyncio
import base64
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from conformance.players.credentials import Credentials, prepared
from fakeapiserver.auth.authenticators.oidc import ALGORITHMS, JWTAuthenticator, JWTAuthenticators, validate
from fakeapiserver.auth.authenticators.oidc.expressions import of_claims
from fakeapiserver.auth.interfaces import RefusedError, UserInfo
from fakeapiserver.clock import SystemClock
from fakeapiserver.server.options import authentication_config
from fakeapiserver.server.options.config import Config


@pytest.fixture(scope="module")
def credentials(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Credentials]:
    with prepared(tmp_path_factory.mktemp("credentials")) as found:
        yield found


def jwt(credentials: Credentials, issuer: str = "claims", **mappings: Any) -> dict[str, Any]:
    authority = (credentials.folder / "ca.crt").read_text()
    where = {"url": f"{credentials.url}/{issuer}", "audiences": ["app"], "certificateAuthority": authority}
    return {"issuer": where, "claimMappings": {"username": {"claim": "sub", "prefix": "x:"}, **mappings}}


def token(credentials: Credentials, issuer: str = "claims", key: str = "issuer", **claims: Any) -> str:
    good = {"iss": f"{credentials.url}/{issuer}", "aud": "app", "exp": "now+600", "sub": "jane"}
    return credentials.token({"key": key, "claims": {**good, **claims}})


def user(config: dict[str, Any], *tokens: str) -> UserInfo | None:
    """Returns the user of the last token, after the others were tried."""

    async def run() -> UserInfo | None:
        authenticator = JWTAuthenticator(config, ALGORITHMS, (), SystemClock())
        assert await authenticator.look()
        response = None
        for text in tokens:
            response = await authenticator.authenticate_token(text, ["api"])
        return response.user if response is not None else None

    return asyncio.run(run())


def test_claims_become_a_user(credentials: Credentials) -> None:
    config = jwt(credentials, groups={"claim": "groups", "prefix": "g:"}, uid={"claim": "uid"})
    found = user(config, token(credentials, groups=["a", "b"], uid="7", jti="j"))
    extra = {"authentication.kubernetes.io/credential-id": ("JTI=j",)}
    assert found == UserInfo("x:jane", "7", ("g:a", "g:b"), extra)


def test_expressions_become_a_user(credentials: Credentials) -> None:
    config = jwt(
        credentials,
        username={"expression": "claims.sub + '@x'"},
        groups={"expression": "claims.roles.map(role, 'r:' + role)"},
        uid={"expression": "string(int(claims.number))"},
        extra=[
            {"key": "example.com/none", "valueExpression": "''"},
            {"key": "example.com/a", "valueExpression": "claims.roles"},
        ],
    )
    found = user(config, token(credentials, roles=["a", "b"], number=5))
    assert found == UserInfo("jane@x", "5", ("r:a", "r:b"), {"example.com/a": ("a", "b")})


def test_another_issuers_token_is_left_to_others(credentials: Credentials) -> None:
    assert user(jwt(credentials), token(credentials, "another")) is None


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"exp": "now-1"}, "token is expired"),
        ({"exp": None}, "invalid syntax"),
        ({"aud": "other"}, 'expected audience "app" got \\["other"\\]'),
        ({"nbf": "now+90"}, "before the nbf"),
        ({"sub": 5}, "cannot unmarshal number into Go struct field idToken.sub of type string"),
        ({"nbf": "1e400"}, 'strconv.ParseFloat: parsing "1e400": value out of range'),
        ({"exp": "NaN"}, "invalid number literal"),
        ({"exp": "9_999_999_999"}, "invalid number literal"),
        ({"exp": "1e30"}, "token is expired"),
        ({"key": "stranger"}, "failed to verify id token signature"),
    ],
)
def test_tokens_that_are_refused(credentials: Credentials, claims: dict[str, Any], why: str) -> None:
    with pytest.raises(RefusedError, match=why):
        user(jwt(credentials), token(credentials, **claims))


def test_a_symmetric_or_missing_signature_is_refused(credentials: Credentials) -> None:
    for algorithm in ("none", "HS256"):
        header = {"alg": algorithm}
        claims = {"iss": f"{credentials.url}/claims", "aud": "app", "exp": "now+600", "sub": "root"}
        forged = credentials.token({"key": "issuer", "claims": claims, "header": header})
        with pytest.raises(RefusedError, match="unsupported algorithm"):
            user(jwt(credentials), forged)


def test_rules_are_checked(credentials: Credentials) -> None:
    config = jwt(credentials) | {
        "claimValidationRules": [
            {"claim": "hd", "requiredValue": "x"},
            {"expression": "claims.level > 1", "message": "too low"},
        ],
        "userValidationRules": [{"expression": "user.username != 'x:root'", "message": "no root"}],
    }
    assert user(config, token(credentials, hd="x", level=2)) is not None
    for claims, why in (
        ({"level": 2}, "required claim hd not present"),
        ({"hd": "x", "level": 1}, "'claims.level > 1' failed: too low"),
        ({"hd": "x", "level": 2, "sub": "root"}, "failed: no root"),
    ):
        with pytest.raises(RefusedError, match=why):
            user(config, token(credentials, **claims))


@pytest.mark.parametrize(("verified", "good"), [(True, True), (False, False), ("true", False), (..., True)])
def test_an_address_must_not_be_unverified(credentials: Credentials, verified: Any, good: bool) -> None:
    claims = {"email": "jane@x"} | ({} if verified is ... else {"email_verified": verified})
    config = jwt(credentials, username={"claim": "email", "prefix": ""})
    if good:
        assert user(config, token(credentials, **claims)) == UserInfo("jane@x")
    else:
        with pytest.raises(RefusedError):
            user(config, token(credentials, **claims))


def test_a_claim_may_be_fetched_elsewhere(credentials: Credentials) -> None:
    elsewhere = token(credentials, "second", groups=["far"])
    endpoint = {"endpoint": f"{credentials.url}/claims?jwt={elsewhere}", "access_token": "claims"}
    sources = {"_claim_names": {"groups": "s"}, "_claim_sources": {"s": endpoint}}
    config = jwt(credentials, groups={"claim": "groups", "prefix": ""})
    found = user(config, token(credentials, **sources))
    assert found is not None
    assert found.groups == ("far",)
    endpoint["access_token"] = "wrong"
    with pytest.raises(RefusedError, match="could not expand distributed claims"):
        user(config, token(credentials, **sources))


def test_a_new_key_is_found_when_a_token_needs_it(credentials: Credentials) -> None:
    published = credentials.folder / "jwks.json"
    before = published.read_text()
    keys = json.loads(before)["keys"]
    published.write_text(json.dumps({"keys": keys[:1]}))
    try:
        with pytest.raises(RefusedError):
            user(jwt(credentials), token(credentials), token(credentials, key="issuer2"))

        async def rotated() -> None:
            authenticator = JWTAuthenticator(jwt(credentials), ALGORITHMS, (), SystemClock())
            await authenticator.look()
            assert await authenticator.authenticate_token(token(credentials), ["api"])
            published.write_text(before)
            assert await authenticator.authenticate_token(token(credentials, key="issuer2"), ["api"])

        asyncio.run(rotated())
    finally:
        published.write_text(before)


@contextmanager
def published(credentials: Credentials, change: Callable[[Any], list[Any]]) -> Iterator[None]:
    """Publishes other keys within the block: what `change` makes of the first."""
    path = credentials.folder / "jwks.json"
    before = path.read_text()
    path.write_text(json.dumps({"keys": change(json.loads(before)["keys"][0])}))
    try:
        yield
    finally:
        path.write_text(before)


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"alg": "RS256"},
        {"alg": "RS384"},
        {"alg": "PS256"},
        {"alg": "ES256"},
        {"alg": "HS256"},
        {"alg": "none"},
        {"alg": "RSA-OAEP", "use": "enc", "key_ops": ["encrypt"]},
        {"use": "sig"},
        {"use": "enc"},
        {"use": "other"},
        {"use": None},
        {"key_ops": ["verify"]},
        {"key_ops": ["sign"]},
        {"key_ops": ["encrypt"]},
        {"key_ops": []},
        {"key_ops": "encrypt"},
        {"key_ops": 1},
    ],
)
def test_what_a_key_is_for_does_not_matter(credentials: Credentials, members: dict[str, Any]) -> None:
    """kube-apiserver 1.36.3 and 1.37.2 accept all of these."""
    with published(credentials, lambda key: [{name: key[name] for name in ("kty", "n", "e", "kid")} | members]):
        assert user(jwt(credentials), token(credentials)) is not None


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@pytest.mark.parametrize(
    "members",
    [
        {"kty": "oct", "k": ""},
        {"kty": "OKP", "crv": "Ed25519", "x": ""},
        {"x5u": {}},
        {"x5t": encoded(b"a" * 20)},
        {"x5t": encoded(b"ab" * 20)},
        {"x5t#S256": encoded(b"a" * 32)},
        {"x5t#S256": encoded(b"ab" * 32)},
        {"key_ops": ["verify", "verify"], "ALG": 1, "ext": "x"},
    ],
)
def test_an_odd_key_keeps_the_others_of_its_set(credentials: Credentials, members: dict[str, Any]) -> None:
    """kube-apiserver 1.37.2 accepts a token of the other key."""
    with published(credentials, lambda key: [key, {**key, "kid": "other", **members}]):
        assert user(jwt(credentials), token(credentials)) is not None


@pytest.mark.parametrize(
    "members",
    [
        {"use": 1},
        {"alg": 1},
        {"kid": 1},
        {"kty": 1},
        {"kty": "X"},
        {"kty": None},
        {"kty": "EC"},
        {"n": 1},
        {"n": "AA=="},
        {"n": None},
        {"e": "!!"},
        {"d": "AAAA"},
        {"kty": "OKP", "crv": "X25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"},
        {"kty": "OKP", "crv": "Ed448", "x": "AA"},
        {"kty": "OKP", "crv": "Ed25519"},
        {"kty": "oct"},
        {"x5u": "https://example.com/"},
        {"x5u": 5},
        {"x5u": []},
        {"x5t": "AA"},
        {"x5t": encoded(b"zz" * 20)},
        {"x5t#S256": encoded(b"zz" * 32)},
        {"x5t#S256": "AA"},
        {"crv": 1},
        {"x5c": 1},
        {"x5c": ["a"]},
        {"x5t": 1},
        "text",
        1,
        None,
    ],
)
def test_a_malformed_key_makes_its_set_useless(credentials: Credentials, members: Any) -> None:
    """kube-apiserver 1.36.3 and 1.37.2 answer 401 to a token of the other key."""

    def other(key: dict[str, Any]) -> Any:
        return {**key, "kid": "other", **members} if isinstance(members, dict) else members

    with (
        published(credentials, lambda key: [key, other(key)]),
        pytest.raises(RefusedError, match="failed to decode keys"),
    ):
        user(jwt(credentials), token(credentials))


def test_discovery_may_be_elsewhere(credentials: Credentials) -> None:
    config = jwt(credentials, "elsewhere")
    config["issuer"]["discoveryURL"] = f"{credentials.url}/discovery"
    assert user(config, token(credentials, "elsewhere")) is not None


def test_an_issuer_with_an_untrusted_certificate_is_not_believed(credentials: Credentials) -> None:
    config = jwt(credentials)
    config["issuer"]["certificateAuthority"] = (credentials.folder / "other.crt").read_text()

    async def run() -> None:
        authenticator = JWTAuthenticator(config, ALGORITHMS, (), SystemClock())
        assert not await authenticator.look()
        with pytest.raises(RefusedError, match="not initialized"):
            await authenticator.authenticate_token(token(credentials), ["api"])

    asyncio.run(run())


def test_another_configuration_takes_over_when_its_issuers_have_answered(credentials: Credentials) -> None:
    async def run() -> None:
        def issuer(name: str) -> JWTAuthenticator:
            return JWTAuthenticator(jwt(credentials, name), ALGORITHMS, (), SystemClock())

        first = issuer("claims")
        assert await first.look()
        authenticators = JWTAuthenticators([first])
        await authenticators.replace([issuer("second")])
        assert await authenticators.authenticate_token(token(credentials, "claims"), ["api"]) is not None
        await authenticators.replaced()
        assert await authenticators.authenticate_token(token(credentials, "claims"), ["api"]) is None
        assert await authenticators.authenticate_token(token(credentials, "second"), ["api"]) is not None

    asyncio.run(run())


ISSUER = {"url": "https://a", "audiences": ["x"]}
NAME = {"username": {"claim": "sub", "prefix": ""}}


@pytest.mark.parametrize(
    ("jwts", "errors"),
    [
        ([{"issuer": ISSUER, "claimMappings": NAME}], []),
        ([{}], ["jwt[0].issuer.url: Required value", "jwt[0].claimMappings.username: Required value"]),
        ([{"issuer": {**ISSUER, "url": "http://a"}, "claimMappings": NAME}], ["URL scheme must be https"]),
        (
            [{"issuer": {**ISSUER, "url": "https://own"}, "claimMappings": NAME}],
            ["must not overlap with disallowed issuers"],
        ),
        ([{"issuer": {**ISSUER, "discoveryURL": "https://a/"}, "claimMappings": NAME}], ["must be different from URL"]),
        (
            [{"issuer": {**ISSUER, "audiences": ["x", "y"]}, "claimMappings": NAME}],
            ["must be MatchAny for multiple audiences"],
        ),
        ([{"issuer": {**ISSUER, "certificateAuthority": "x"}, "claimMappings": NAME}], ['Invalid value: "<omitted>"']),
        (
            [{"issuer": ISSUER, "claimMappings": {"username": {"claim": "sub"}}}],
            ["prefix is required when claim is set"],
        ),
        ([{"issuer": ISSUER, "claimMappings": {"username": {"expression": "claims."}}}], ["compilation failed"]),
        (
            [{"issuer": ISSUER, "claimMappings": {"username": {"expression": "claims.email"}}}],
            ["claims.email_verified must be used"],
        ),
        ([{"issuer": ISSUER, "claimMappings": NAME}] * 2, ['jwt[1].issuer.url: Duplicate value: "https://a"']),
        (
            [
                {
                    "issuer": ISSUER,
                    "claimMappings": {**NAME, "extra": [{"key": "k8s.io/a", "valueExpression": "claims.a"}]},
                }
            ],
            ["reserved for Kubernetes use"],
        ),
    ],
)
def test_what_a_configuration_must_say(jwts: list[dict[str, Any]], errors: list[str]) -> None:
    found = "\n".join(map(str, validate({"jwt": jwts}, ["https://own"])))
    assert all(error in found for error in errors), found
    assert bool(found) is bool(errors)


@pytest.mark.parametrize(
    ("expression", "uses"),
    [
        ("claims.email", True),
        ("claims.?email.orValue('')", True),
        ("[1].map(x, claims.email)[0]", True),
        ("{'a': claims.email}.a", True),
        ("claims['email']", False),
        ("claims.x.email", False),
        ("claims.email_verified", False),
    ],
)
def test_use_of_a_claim_is_seen_wherever_it_stands(expression: str, uses: bool) -> None:
    assert of_claims(expression).uses_claim("email") is uses


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty config data"),
        ("{}", "Object 'Kind' is missing in '{}'"),
        ("a: [", "yaml: line 1: did not find expected node content"),
        ("kind: Foo\napiVersion: apiserver.config.k8s.io/v1\n", 'no kind "Foo" is registered for version'),
        ("kind: AuthenticationConfiguration\napiVersion: apiserver.config.k8s.io/v1\nfoo: 1\n", 'unknown field "foo"'),
        (
            "kind: AuthenticationConfiguration\napiVersion: apiserver.config.k8s.io/v1\njwt: 5\n",
            "cannot unmarshal number",
        ),
    ],
)
def test_files_that_are_no_configuration(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        authentication_config.decode(text.encode())


@pytest.mark.parametrize(
    ("claim", "prefix", "expected"),
    [("sub", "", "https://a#"), ("sub", "-", ""), ("sub", "p:", "p:"), ("email", "", ""), ("email", "p:", "p:")],
)
def test_flags_prefix_names_with_the_issuer(claim: str, prefix: str, expected: str) -> None:
    config = Config(
        oidc_issuer_url="https://a", oidc_client_id="x", oidc_username_claim=claim, oidc_username_prefix=prefix
    )
    assert authentication_config.from_flags(config)["jwt"][0]["claimMappings"]["username"]["prefix"] == expected


def test_flags_name_the_files_of_upstream(tmp_path: Path) -> None:
    (tmp_path / "ca").write_text("nothing")
    config = Config(oidc_issuer_url="https://a", oidc_client_id="x", oidc_ca_file=tmp_path / "ca")
    with pytest.raises(ValueError, match="invalid authentication configuration"):
        authentication_config.from_flags(config)
