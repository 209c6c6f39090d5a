"""Users that OpenID providers vouch for: a verified token's claims become a name, groups, a uid and more.

Upstream: k8s.io/apiserver/plugin/pkg/authenticator/token/oidc/oidc.go.
"""

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.errors import aggregated
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.meta import FrozenObject
from fakeapiserver.auth import jose
from fakeapiserver.auth.authenticators.oidc.configuration import ALGORITHMS, compile_jwt
from fakeapiserver.auth.authenticators.oidc.expressions import check_rules, claims_value, strings_of, user_value
from fakeapiserver.auth.authenticators.oidc.verifier import ProviderError, RemoteKeys, Verifier, discover
from fakeapiserver.auth.interfaces import RefusedError, Response, UserInfo
from fakeapiserver.clock import Clock
from fakeapiserver.transport.fetch import Fetcher, FetchError

log = logging.getLogger(__name__)

_RETRY: Final = 10.0  # seconds
_CREDENTIAL_ID: Final = "authentication.kubernetes.io/credential-id"


class JWTAuthenticator:
    """Authenticates one issuer's tokens.

    `jwt` is its entry in the AuthenticationConfiguration; `run` reads the issuer's keys, and until then tokens
    are refused. Raises ValueError
    for an invalid entry.
    """

    def __init__(self, jwt: FrozenObject, algorithms: Sequence[str], disallowed: Collection[str], clock: Clock) -> None:
        self._jwt = jwt
        self._issuer: str = jwt["issuer"]["url"]
        self._audiences: list[str] = jwt["issuer"]["audiences"]
        self._algorithms = tuple(algorithms)
        self._clock = clock
        self._mapper, errors = compile_jwt(jwt, None, disallowed)
        if errors:
            raise ValueError(aggregated(errors))
        for algorithm in algorithms:
            if algorithm not in ALGORITHMS:
                raise ValueError(f"oidc: unsupported signing alg: {go_quote(algorithm)}")
        if egress := jwt["issuer"].get("egressSelectorType"):
            # without --egress-selector-config-file it can't be looked up
            raise ValueError(f"oidc: egress lookup required with egress selector type {go_quote(egress)}")
        authority = jwt["issuer"].get("certificateAuthority") or ""
        self._client = Fetcher(authority.encode())
        self._verifier: Verifier | None = None
        groups = (jwt.get("claimMappings") or {}).get("groups") or {}
        self._resolver = _ClaimResolver(self, groups["claim"]) if groups.get("claim") else None
        self._required = {
            rule["claim"]: rule.get("requiredValue") or ""
            for rule in jwt.get("claimValidationRules") or ()
            if rule.get("claim")
        }

    @property
    def is_ready(self) -> bool:
        return self._verifier is not None

    async def run(self) -> None:
        """Waits until the issuer has answered once."""
        while True:
            if await self.look():
                return
            await asyncio.sleep(_RETRY)

    async def look(self) -> bool:
        """Asks the issuer where its keys are."""
        try:
            self._verifier = await self.verifier_of(self._issuer, self._jwt["issuer"].get("discoveryURL") or "")
        except ProviderError as error:
            log.error("oidc authenticator: initializing plugin: %s", error)
            return False
        return True

    async def verifier_of(self, issuer: str, discovery_url: str = "") -> Verifier:
        """ProviderError."""
        keys = RemoteKeys(self._client, await discover(self._client, issuer, discovery_url), self._clock)
        return Verifier(issuer, self._audiences, self._algorithms, keys, self._clock)

    async def authenticate_token(self, token: str, audiences: Sequence[str]) -> Response | None:
        if _schemed(jose.untrusted_issuer(token)) != self._issuer:
            return None
        if self._verifier is None:
            raise RefusedError("oidc: authenticator not initialized")
        try:
            claims = await self._verifier.verify(token)
        except RefusedError as error:
            raise RefusedError(f"oidc: verify token: {error}") from error
        if self._resolver is not None:
            try:
                await self._resolver.expand(claims)
            except RefusedError as error:
                raise RefusedError(f"oidc: could not expand distributed claims: {error}") from error
        return Response(self._user(claims))

    async def fetch_claims(self, url: str, access_token: str) -> str:
        """The JWT at an endpoint for distributed claims. RefusedError."""
        headers = {"Authorization": f"Bearer {access_token}"} if access_token else {}
        try:
            response = await self._client.get(url, headers)
        except FetchError as error:
            raise RefusedError(str(error)) from error
        if not 200 <= response.status <= 226:
            raise RefusedError(f"error while getting distributed claim JWT: {response.status}")
        return response.body.decode("utf-8", "replace")

    def _user(self, claims: jose.JSONObject) -> UserInfo:
        mapper = self._mapper
        variables = {"claims": claims_value(claims)} if mapper.reads_claims else {}
        user = UserInfo(
            self._username(claims, variables),
            groups=self._groups(claims, variables),
            uid=self._uid(claims, variables),
            extra=self._extra(claims, variables),
        )
        self._check_required(claims)
        for name, rules, seen in (
            ("claim", mapper.claim_rules, variables),
            ("user info", mapper.user_rules, {"user": user_value(user)}),
        ):
            try:
                check_rules(rules, seen)
            except RefusedError as error:
                what = "validation expression" if name == "claim" else "validation rule"
                raise RefusedError(f"oidc: error evaluating {name} {what}: {error}") from error
        return user

    def _mapping(self, name: str) -> Mapping[str, Any]:
        return (self._jwt.get("claimMappings") or {}).get(name) or {}

    def _username(self, claims: jose.JSONObject, variables: Mapping[str, Any]) -> str:
        if self._mapper.username is not None:
            try:
                value = self._mapper.username.evaluate(variables)
                if not isinstance(value, str):
                    raise RefusedError("username claim expression must return a string")
            except RefusedError as error:
                raise RefusedError(f"oidc: error evaluating username claim expression: {error}") from error
            if not value:
                raise RefusedError("oidc: empty username via CEL expression is not allowed")
            return value
        mapping = self._mapping("username")
        claim = mapping["claim"]
        try:
            name = _claim(claims, claim, "string") or ""
        except RefusedError as error:
            raise RefusedError(f"oidc: parse username claims {go_quote(claim)}: {error}") from error
        if claim == "email" and "email_verified" in claims:
            try:
                verified = _claim(claims, "email_verified", "bool")
            except RefusedError as error:
                raise RefusedError(f"oidc: parse 'email_verified' claim: {error}") from error
            if not verified:
                raise RefusedError("oidc: email not verified")
        return (mapping.get("prefix") or "") + name

    def _groups(self, claims: jose.JSONObject, variables: Mapping[str, Any]) -> tuple[str, ...]:
        mapping = self._mapping("groups")
        claim, prefix = mapping.get("claim") or "", mapping.get("prefix") or ""
        if claim and claim in claims:
            value = claims[claim]
            if isinstance(value, list) and all(isinstance(item, str | None) for item in value):
                return tuple(prefix + (item or "") for item in value)
            if value is None:
                return ()
            try:
                return (prefix + str(_claim(claims, claim, "string")),)
            except RefusedError as error:
                raise RefusedError(f"oidc: parse groups claim {go_quote(claim)}: {error}") from error
        if self._mapper.groups is None:
            return ()
        try:
            return strings_of(self._mapper.groups.evaluate(variables))
        except RefusedError as error:
            raise RefusedError(f"oidc: error evaluating group claim expression: {error}") from error

    def _uid(self, claims: jose.JSONObject, variables: Mapping[str, Any]) -> str:
        if claim := self._mapping("uid").get("claim"):
            try:
                return _claim(claims, claim, "string") or ""
            except RefusedError as error:
                raise RefusedError(f"oidc: parse uid claim {go_quote(claim)}: {error}") from error
        if self._mapper.uid is None:
            return ""
        try:
            value = self._mapper.uid.evaluate(variables)
            if not isinstance(value, str):
                raise RefusedError("uid claim expression must return a string")
        except RefusedError as error:
            raise RefusedError(f"oidc: error evaluating uid claim expression: {error}") from error
        return value

    def _extra(self, claims: jose.JSONObject, variables: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
        jti = claims.get("jti")
        extra: dict[str, tuple[str, ...]] = {}
        if isinstance(jti, str) and jti:
            extra[_CREDENTIAL_ID] = (f"JTI={jti}",)
        # every expression is evaluated before any of their values is looked at
        evaluated = [(key, expression, expression.evaluate(variables)) for key, expression in self._mapper.extra]
        for key, expression, value in evaluated:
            try:
                values = strings_of(value)
            except RefusedError as error:
                raise RefusedError(
                    f"oidc: error evaluating extra claim expression: {expression.text}: {error}"
                ) from error
            if values:
                extra[key] = values
        return extra

    def _check_required(self, claims: jose.JSONObject) -> None:
        for claim, wanted in self._required.items():
            if claim not in claims:
                raise RefusedError(f"oidc: required claim {claim} not present in ID token")
            try:
                value = _claim(claims, claim, "string") or ""
            except RefusedError as error:
                raise RefusedError(f"oidc: parse claim {claim}: {error}") from error
            if value != wanted:
                raise RefusedError(f"oidc: required claim {claim} value does not match. Got = {value}, want = {wanted}")


def _schemed(issuer: str | None) -> str | None:
    """Google's tokens leave out the scheme."""
    return "https://accounts.google.com" if issuer == "accounts.google.com" else issuer


def _claim(claims: jose.JSONObject, name: str, kind: str) -> Any:
    """A claim of this kind of JSON, or None for a null. RefusedError."""
    if name not in claims:
        raise RefusedError("claim not present")
    value = claims[name]
    jose.check_kind(value, kind)
    return value


class _ClaimResolver:
    """Fetches a claim that the token says is to be had elsewhere (OpenID Connect Core 1.0, 5.6.2)."""

    def __init__(self, authenticator: JWTAuthenticator, claim: str) -> None:
        self._authenticator = authenticator
        self._claim = claim
        self._verifiers: dict[str, Verifier] = {}

    async def expand(self, claims: jose.JSONObject) -> None:
        """Puts the claim among the others. RefusedError."""
        if self._claim in claims or "_claim_names" not in claims:
            return
        if "_claim_sources" not in claims:
            raise RefusedError("oidc: no claim sources")
        source = (claims["_claim_names"] or {}).get(self._claim)
        if source is None:
            return
        endpoint = (claims["_claim_sources"] or {}).get(source)
        if endpoint is None:
            raise RefusedError(f"id token _claim_names contained a source {source} missing in _claims_sources")
        if not isinstance(endpoint, dict):
            kind = jose.json_kind(endpoint)
            raise RefusedError(
                f"oidc: could not parse claim sources: json: cannot unmarshal {kind} into Go value of type oidc.endpoint"
            )
        if url := endpoint.get("endpoint"):
            claims[self._claim] = await self._resolve(str(url), str(endpoint.get("access_token") or ""))

    async def _resolve(self, url: str, access_token: str) -> Any:
        try:
            token = await self._authenticator.fetch_claims(url, access_token)
        except RefusedError as error:
            raise RefusedError(f"while getting distributed claim {go_quote(self._claim)}: {error}") from error
        issuer = _schemed(jose.untrusted_issuer(token))
        if issuer is None:
            raise RefusedError(
                f"getting untrusted issuer from endpoint {url} failed for claim {go_quote(self._claim)}: malformed token"
            )
        try:
            verifier = await self._verifier(issuer)
        except ProviderError as error:
            log.error("oidc authenticator: async token verifier for issuer: %s: %s", go_quote(issuer), error)
            reason = f"verifier not initialized for issuer: {go_quote(issuer)}"
            raise RefusedError(f"verifying untrusted issuer {issuer} failed: {reason}") from error
        try:
            token_claims = await verifier.verify(token)
        except RefusedError as error:
            raise RefusedError(f"verify distributed claim token: {error}") from error
        if self._claim not in token_claims:
            raise RefusedError(
                f"jwt returned by distributed claim endpoint {go_quote(url)} did not contain claim: {self._claim}"
            )
        return token_claims[self._claim]

    async def _verifier(self, issuer: str) -> Verifier:
        if issuer not in self._verifiers:
            self._verifiers[issuer] = await self._authenticator.verifier_of(issuer)
        return self._verifiers[issuer]


class JWTAuthenticators:
    """The authenticators of all configured issuers; a new configuration replaces them as a whole.

    The first refusal decides.
    """

    def __init__(self, issuers: Sequence[JWTAuthenticator]) -> None:
        self._issuers = tuple(issuers)
        self._replacing: asyncio.Task[None] | None = None

    async def authenticate_token(self, token: str, audiences: Sequence[str]) -> Response | None:
        for issuer in self._issuers:
            response = await issuer.authenticate_token(token, audiences)
            if response is not None:
                return response
        return None

    async def run(self) -> None:
        """Finds the issuers; until it is cancelled."""
        try:
            await asyncio.gather(*(issuer.run() for issuer in self._issuers))
            await asyncio.Event().wait()
        finally:
            if self._replacing is not None:
                self._replacing.cancel()

    async def replace(self, issuers: Sequence[JWTAuthenticator]) -> None:
        """Takes these as soon as all of them have answered; until then the old ones stay."""
        if self._replacing is not None:
            self._replacing.cancel()
        self._replacing = asyncio.create_task(self._take(tuple(issuers)))

    async def replaced(self) -> None:
        """Waits until they are."""
        if self._replacing is not None:
            await self._replacing

    async def _take(self, issuers: tuple[JWTAuthenticator, ...]) -> None:
        await asyncio.gather(*(issuer.run() for issuer in issuers))
        self._issuers = issuers
        log.info("reloaded authentication config")
