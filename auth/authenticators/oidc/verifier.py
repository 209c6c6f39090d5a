"""Whether an ID token is what its issuer has signed: discovery, the issuer's keys and their rotation, the registered claims.

Upstream: github.com/coreos/go-oidc (v2) {oidc.go,jwks.go,verify.go}.
"""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from jwt import PyJWK
from jwt.exceptions import PyJWTError

from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.auth import jose
from fakeapiserver.auth.interfaces import RefusedError
from fakeapiserver.auth.service_account_keys import verify
from fakeapiserver.clock import Clock
from fakeapiserver.transport.fetch import Fetcher, FetchError
from fakeapiserver.transport.webhook import Response

# What Google calls itself, and what it should.
_GOOGLE: Final = ("https://accounts.google.com", "accounts.google.com")
WELL_KNOWN: Final = "/.well-known/openid-configuration"
_NOT_SIGNED: Final = "failed to verify id token signature"
# Keys are fetched again where a token fits none and they are about to expire anyway.
_EXPIRY_DELTA: Final = 30.0
_NBF_LEEWAY: Final = 60.0
_MAX_AGE: Final = re.compile(r"(?:^|[\s,])max-age=\"?(\d+)", re.IGNORECASE)
_NOT_CACHEABLE: Final = re.compile(r"\b(no-store|no-cache|private)\b", re.IGNORECASE)


# What becomes of numbers that int64 can't hold.
_FARTHEST: Final = "292277026596-12-04 15:30:08 +0000 UTC"
_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)

Claims = Mapping[str, Any]


class ProviderError(ValueError):
    """An issuer that can't be asked, or doesn't answer as one."""


async def discover(client: Fetcher, issuer: str, discovery_url: str = "") -> str:
    """Returns the address of the issuer's keys. Raises ProviderError."""
    url = discovery_url or issuer.removesuffix("/") + WELL_KNOWN
    try:
        response = await client.get(url)
    except FetchError as error:
        raise ProviderError(str(error)) from error
    if response.status != 200:
        raise ProviderError(f"{response.status}: {response.body.decode('utf-8', 'replace')}")
    document = _json(response, "oidc: failed to decode provider discovery object: ")
    if document.get("issuer") != issuer:
        raise ProviderError(
            "oidc: issuer did not match the issuer returned by provider, "
            f"expected {go_quote(issuer)} got {go_quote(str(document.get('issuer') or ''))}"
        )
    keys = document.get("jwks_uri")
    if not isinstance(keys, str) or not keys:
        raise ProviderError("provider did not return JWKS URL")
    return keys


class RemoteKeys:
    """The keys that an issuer publishes, fetched when a token needs one that isn't known."""

    def __init__(self, client: Fetcher, url: str, clock: Clock) -> None:
        self._client = client
        self._url = url
        self._clock = clock
        self._keys: list[tuple[str, Any]] = []
        self._expiry = 0.0
        self._fetching: asyncio.Task[None] | None = None

    async def check(self, signed: jose.Signed) -> None:
        """RefusedError unless one of the keys has made the signature."""
        if self._verifies(signed):
            return
        if self._clock.now() + _EXPIRY_DELTA <= self._expiry:
            raise RefusedError(_NOT_SIGNED)
        if self._fetching is None:
            self._fetching = asyncio.create_task(self._fetch())
        try:
            await asyncio.shield(self._fetching)
        except ProviderError as error:
            raise RefusedError(f"fetching keys {error}") from error
        finally:
            self._fetching = None
        if not self._verifies(signed):
            raise RefusedError(_NOT_SIGNED)

    def _verifies(self, signed: jose.Signed) -> bool:
        try:
            algorithm = signed.check_header()
        except RefusedError:
            return False
        named = [key for kid, key in self._keys if signed.kid in ("", kid)]
        return any(verify(key, algorithm, signed.signed, signed.signature) for key in named)

    async def _fetch(self) -> None:
        try:
            response = await self._client.get(self._url)
        except FetchError as error:
            raise ProviderError(f"oidc: get keys failed {error}") from error
        if response.status != 200:
            text = response.body.decode("utf-8", "replace")
            raise ProviderError(f"oidc: get keys failed: {response.status} {text}")
        document = _json(response, "oidc: failed to decode keys: ")
        published = document.get("keys") or ()
        try:
            for jwk in published:
                jose.check_published_key(jwk)
        except (TypeError, ValueError) as error:
            raise ProviderError(f"oidc: failed to decode keys: {error}") from None
        self._keys = [(kid, key) for jwk in published for kid, key in _key(jwk)]
        self._expiry = self._clock.now() + _seconds_to_keep(response)


def _key(jwk: Any) -> list[tuple[str, Any]]:
    """Returns `[(key id, public key)]`, or `[]` if the JWK is not a supported public key."""
    if not isinstance(jwk, dict) or jwk.get("kty") not in ("RSA", "EC") or "d" in jwk:
        return []
    try:
        return [(str(jwk.get("kid") or ""), PyJWK.from_dict({**jwk, "alg": _algorithm_of(jwk)}).key)]
    except (PyJWTError, ValueError, TypeError):
        return []


def _algorithm_of(jwk: dict[str, Any]) -> str:
    curves = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}
    return "RS256" if jwk["kty"] == "RSA" else curves.get(str(jwk.get("crv")), "")


def _seconds_to_keep(response: Response) -> float:
    """Returns the seconds in Cache-Control; without one the keys expire at once."""
    control = response.headers.get("cache-control", "")
    match = _MAX_AGE.search(control)
    return float(match[1]) if match and not _NOT_CACHEABLE.search(control) else 0.0


def _json(response: Response, complaint: str) -> dict[str, Any]:
    try:
        document = json.loads(response.body)
    except (ValueError, RecursionError) as error:
        raise ProviderError(f"{complaint}{error}") from None
    if not isinstance(document, dict):
        raise ProviderError(f"{complaint}it is no object")
    return document


class Verifier:
    """Tokens of one issuer for one of `audiences`, signed with one of `algorithms`."""

    def __init__(
        self, issuer: str, audiences: Sequence[str], algorithms: Sequence[str], keys: RemoteKeys, clock: Clock
    ) -> None:
        self._issuer = issuer
        self._audiences = tuple(audiences)
        self._algorithms = tuple(algorithms)
        self._keys = keys
        self._clock = clock

    async def verify(self, token: str) -> jose.JSONObject:
        """The claims. RefusedError."""
        if token.count(".") > 2:
            raise RefusedError("oidc: malformed jwt")
        try:
            signed = jose.parse(token)
        except jose.MalformedError as error:
            raise RefusedError(f"oidc: malformed jwt: {error}") from None
        algorithm = signed.header.get("alg") or ""
        if algorithm not in self._algorithms:
            wanted = " ".join(map(go_quote, self._algorithms))
            raise RefusedError(
                f"oidc: id token signed with unsupported algorithm, expected [{wanted}] got {go_quote(algorithm)}"
            )
        try:
            await self._keys.check(signed)
        except RefusedError as error:
            raise RefusedError(f"failed to verify signature: {error}") from error
        claims = jose.JSONObject() if signed.payload is None else signed.payload
        self._check_claims(jose.folded(claims))
        return claims

    def _check_claims(self, claims: Claims) -> None:
        for name in ("iss", "sub", "nonce", "at_hash"):
            if not isinstance(claims.get(name), str | None):
                raise _mismatch(claims[name], name, "string")
        audiences, expiry, start = _audiences(claims), _time(claims, "exp"), _time(claims, "nbf")
        _time(claims, "iat")
        _check_sources(claims)
        issuer = claims.get("iss") or ""
        if issuer != self._issuer and (self._issuer, issuer) != _GOOGLE:
            raise RefusedError(
                f"oidc: id token issued by a different provider, expected {go_quote(self._issuer)} got {go_quote(issuer)}"
            )
        got = f"[{' '.join(map(go_quote, audiences))}]"
        several = len(self._audiences) > 1
        if not several and self._audiences[0] not in audiences:
            raise RefusedError(f"oidc: expected audience {go_quote(self._audiences[0])} got {got}")
        now = self._clock.now()
        if expiry is None or expiry < now:
            raise RefusedError(f"oidc: token is expired (Token Expiry: {_shown(expiry)})")
        if start is not None and now + _NBF_LEEWAY < start:
            raise RefusedError(f"oidc: current time {_shown(now)} before the nbf (not before) time: {_shown(start)}")
        if several and not set(self._audiences) & set(audiences):
            wanted = " ".join(map(go_quote, sorted(self._audiences)))
            raise RefusedError(f"oidc: expected audience in [{wanted}] got {got}")


def _mismatch(value: Any, name: str, go_type: str) -> RefusedError:
    kind = jose.json_kind(value)
    text = f"json: cannot unmarshal {kind} into Go struct field idToken.{name} of type {go_type}"
    return RefusedError(f"oidc: failed to unmarshal claims: {text}")


def _audiences(claims: Claims) -> list[str]:
    audiences = claims.get("aud", [])
    if isinstance(audiences, str | None):
        return [audiences or ""]
    if not isinstance(audiences, list):
        raise _mismatch(audiences, "aud", "[]string")
    for item in audiences:
        if not isinstance(item, str | None):
            raise _mismatch(item, "aud", "string")
    return [item or "" for item in audiences]


def _time(claims: Claims, name: str) -> float | None:
    """Seconds since the Unix epoch; None where it isn't said."""
    value = claims.get(name)
    if value is None:
        if name in claims and name != "nbf":  # only nbf is a pointer to Go
            raise RefusedError('oidc: failed to unmarshal claims: strconv.ParseFloat: parsing "": invalid syntax')
        return None
    if isinstance(value, str):
        if not _NUMBER.fullmatch(value):
            quoted = go_quote(go_quote(value))
            text = f"json: invalid number literal, trying to unmarshal {quoted} into Number"
            raise RefusedError(f"oidc: failed to unmarshal claims: {text}")
        value = jose.loads(value.encode())
    if jose.json_kind(value) != "number":
        raise _mismatch(value, name, "json.Number")
    if isinstance(value, jose.OutOfRange):
        text = f"strconv.ParseFloat: parsing {go_quote(value.text)}: value out of range"
        raise RefusedError(f"oidc: failed to unmarshal claims: {text}")
    return jose.numeric_date(value)


def _check_sources(claims: Claims) -> None:
    """Distributed claims must name sources that are there."""
    claim_names, sources = claims.get("_claim_names"), claims.get("_claim_sources")
    for name, value in (("_claim_names", claim_names), ("_claim_sources", sources)):
        if not isinstance(value, dict | None):
            go_type = "map[string]string" if name == "_claim_names" else "map[string]oidc.claimSource"
            raise _mismatch(value, name, go_type)
    for source in (claim_names or {}).values():
        if not isinstance(source, str):
            raise _mismatch(source, "_claim_names", "string")
        if not source:
            raise RefusedError("oidc: failed to obtain source from claim name")
        if source not in (sources or {}):
            raise RefusedError("oidc: source does not exist")


def _shown(seconds: float | None) -> str:
    """Formats a time as Go prints it."""
    if seconds is None:
        return "0001-01-01 00:00:00 +0000 UTC"
    try:
        return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%d %H:%M:%S +0000 UTC")
    except (ValueError, OverflowError, OSError):
        return _FARTHEST
