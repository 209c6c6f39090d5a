"""`Authorization: Bearer TOKEN`: finds the token and asks each method that knows tokens.

Upstream: k8s.io/apiserver/pkg/authentication/request/bearertoken/bearertoken.go, pkg/authentication/token/{union,cache}.
"""

from collections.abc import Sequence
from typing import Final

from fakeapiserver.apimachinery.errors import new_unauthorized
from fakeapiserver.apimachinery.instruments import Instruments
from fakeapiserver.auth.group import add_authenticated
from fakeapiserver.auth.interfaces import Credentials, RefusedError, Response, TokenAuthenticator, UserInfo
from fakeapiserver.auth.measures import TOKEN_CACHE_FETCHES, TOKEN_CACHE_REQUESTS
from fakeapiserver.clock import Clock, SystemClock

INVALID: Final = "invalid bearer token"
_EXTRA_SPACE: Final = "the provided Authorization header contains extra space before the bearer token, and is ignored"
# Upstream remembers a good token for 10 s too (TokenSuccessCacheTTL), and no bad one.
_KEEP_SECONDS: Final = 10.0
_CACHE_SIZE: Final = 4096


def bearer_token(authorization: str) -> str:
    """Returns the token of an Authorization header; "" without a header, for another scheme, and for `Bearer `
    alone.
    """
    parts = authorization.strip().split(" ", 2)
    if len(parts) < 2 or parts[0].lower() != "bearer":
        return ""
    return parts[1]


class BearerToken:
    """The first method that knows the token decides; an unknown token is a 401. `audiences` are the server's own.

    A valid token is cached for 10 s. Requests meet it there first, so it is kept as text: hashing it would cost more than all
    the rest."""

    def __init__(
        self,
        methods: Sequence[TokenAuthenticator],
        audiences: Sequence[str] = (),
        clock: Clock | None = None,
        instruments: Instruments | None = None,
    ) -> None:
        self._instruments = instruments or Instruments()
        self._methods = tuple(methods)
        self._audiences = tuple(audiences)
        self._monotonic = (clock or SystemClock()).monotonic
        self._known: dict[tuple[str, tuple[str, ...]], tuple[float, Response]] = {}

    async def authenticate(self, credentials: Credentials) -> UserInfo | None:
        token = bearer_token(credentials.authorization)
        if not token:
            if credentials.authorization.strip().count(" ") > 1:
                credentials.warnings.append(_EXTRA_SPACE)
            return None
        try:
            response = await self.review(token, credentials.audiences or self._audiences)
        except RefusedError as error:
            raise new_unauthorized() from error
        if response.warnings:
            credentials.warnings.extend(response.warnings)
        return response.user

    async def review(self, token: str, audiences: Sequence[str]) -> Response:
        """RefusedError with the reasons of all methods that have one."""
        key = token, tuple(audiences)
        known = self._known.get(key)
        if known is not None and known[0] > self._monotonic():
            self._instruments.count(TOKEN_CACHE_REQUESTS, "hit")
            return known[1]
        self._instruments.count(TOKEN_CACHE_REQUESTS, "miss")
        response = await self._first(token, audiences)
        if len(self._known) >= _CACHE_SIZE:
            self._known.pop(next(iter(self._known)))
        self._known[key] = self._monotonic() + _KEEP_SECONDS, response
        return response

    async def _first(self, token: str, audiences: Sequence[str]) -> Response:
        reasons: list[str] = []
        for method in self._methods:
            try:
                response = await method.authenticate_token(token, audiences)
            except RefusedError as error:
                # Another method may still know it, as with several issuers.
                reasons += map(str, error.args)
                continue
            if response is not None:
                self._instruments.count(TOKEN_CACHE_FETCHES, "ok")
                return Response(add_authenticated(response.user), response.audiences, response.warnings)
        self._instruments.count(TOKEN_CACHE_FETCHES, "error" if reasons else "ok")
        raise RefusedError(_aggregated([INVALID, *reasons]))


def _aggregated(reasons: list[str]) -> str:
    distinct = list(dict.fromkeys(reasons))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
