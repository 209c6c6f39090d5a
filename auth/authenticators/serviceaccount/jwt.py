"""Signed service account tokens: signature, issuer and audience.

Upstream: pkg/serviceaccount/jwt.go.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol

from msgspec import Struct

from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.auth import jose
from fakeapiserver.auth.interfaces import RefusedError, Response, UserInfo
from fakeapiserver.auth.service_account_keys import ServiceAccountKeys

_NO_KEY: Final = "invalid signature, no keys found"


class Validator(Protocol):
    """Checks the claims of one kind of token."""

    def check(self, claims: jose.JSONObject) -> None:
        """RefusedError for a private claim of a wrong type."""

    async def validate(self, token: str, claims: jose.JSONObject) -> tuple[UserInfo, tuple[str, ...]]:
        """Returns the account, and warnings for the token's user. Raises RefusedError."""


class SignedTokens(Struct, frozen=True):
    """Tokens of `issuers`. One that names no audience is for all of `audiences`, the server's own."""

    keys: ServiceAccountKeys
    issuers: Sequence[str]
    audiences: Sequence[str]
    validator: Validator
    # Waits until what other servers had written by now is known; None: there are no others.
    catch_up: Callable[[], Awaitable[None]] | None = None

    async def authenticate_token(self, token: str, audiences: Sequence[str]) -> Response | None:
        if jose.untrusted_issuer(token) not in self.issuers:
            return None
        try:
            signed = jose.parse(token)
        except jose.MalformedError:
            return None
        claims = jose.JSONObject() if signed.payload is None else signed.payload
        self._verify(signed, claims)
        issuer = claims.get("iss") or ""
        if issuer not in self.issuers:
            raise RefusedError(f"token issuer {go_quote(issuer)} is invalid")
        named = jose.audiences_of(claims) or list(self.audiences)
        common = tuple(audience for audience in audiences if audience in named)
        if not common and self.audiences:
            raise RefusedError(
                f"token audiences {_go_list(named)} is invalid for the target audiences {_go_list(audiences)}"
            )
        user, warnings = await self._validated(token, claims)
        return Response(user, common, warnings)

    async def _validated(self, token: str, claims: jose.JSONObject) -> tuple[UserInfo, tuple[str, ...]]:
        try:
            return await self.validator.validate(token, claims)
        except RefusedError:
            if self.catch_up is None:
                raise
        await self.catch_up()  # its account may have been made by another server just now
        return await self.validator.validate(token, claims)

    def _verify(self, signed: jose.Signed, claims: jose.JSONObject) -> None:
        """RefusedError with what was wrong with each key unless one of them has made the signature, and the claims fit."""
        keys = self.keys.named(signed.kid)
        if not keys:
            raise RefusedError(_NO_KEY)
        reasons: list[str] = []
        for key in keys:
            try:
                if not self.keys.verify(key, signed.check_header(), signed.signed, signed.signature):
                    raise RefusedError(jose.BAD_SIGNATURE)
                jose.check_claims(claims)
                self.validator.check(claims)
            except RefusedError as error:
                reasons.append(str(error))
            else:
                return
        raise RefusedError(*dict.fromkeys(reasons))


def _go_list(texts: Sequence[str]) -> str:
    return "[" + " ".join(map(go_quote, texts)) + "]"
