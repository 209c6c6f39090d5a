"""Bearer tokens that another server knows: it is asked with a TokenReview.

Upstream: k8s.io/apiserver/plugin/pkg/authenticator/token/webhook/webhook.go.
"""

import hashlib
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final

from fakeapiserver.apimachinery.schema.builtin import BuiltinType, compile_builtin
from fakeapiserver.apis import scheme
from fakeapiserver.auth.interfaces import RefusedError, Response, UserInfo
from fakeapiserver.clock import Clock

log = logging.getLogger(__name__)

VERSIONS: Final = ("v1", "v1beta1")
_GROUP: Final = "authentication.k8s.io"
_CACHE_SIZE: Final = 4096

# POSTs a review and returns the answer's object; ValueError with client-go's text.
Post = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


class WebhookTokens:
    """Authenticates tokens by another server, whose answers are cached for `ttl` seconds; failures are not."""

    def __init__(self, post: Post, version: str, audiences: Sequence[str], ttl: float, clock: Clock) -> None:
        self._post = post
        self._version = version
        self._audiences = tuple(audiences)
        self._ttl = ttl
        self._clock = clock
        self._key = secrets.token_bytes(32)
        self._known: dict[tuple[bytes, tuple[str, ...]], tuple[float, Response | None]] = {}

    async def authenticate_token(self, token: str, audiences: Sequence[str]) -> Response | None:
        key = hashlib.blake2b(token.encode("utf-8", "surrogatepass"), key=self._key).digest(), tuple(audiences)
        known = self._known.get(key)
        if known is not None and known[0] > self._clock.monotonic():
            return known[1]
        response = await self._ask(token, audiences)
        if self._ttl > 0:
            if len(self._known) >= _CACHE_SIZE:
                self._known.pop(next(iter(self._known)))
            self._known[key] = self._clock.monotonic() + self._ttl, response
        return response

    async def _ask(self, token: str, audiences: Sequence[str]) -> Response | None:
        review = {
            "kind": "TokenReview",
            "apiVersion": f"{_GROUP}/{self._version}",
            "metadata": {},
            "spec": {"token": _valid(token), "audiences": list(audiences)},
            "status": {"user": {}},
        }
        try:
            answer = dict(await self._post(review))
            _review_type().decode(answer)
        except ValueError as error:
            log.error("failed to make webhook authenticator request: %s", error)
            raise RefusedError(str(error)) from error
        status = answer.get("status") or {}
        named = _texts(status.get("audiences")) or self._audiences
        common = tuple(audience for audience in named if audience in audiences)
        if not common:
            return None
        if status.get("authenticated") is not True:
            if error_text := status.get("error"):
                raise RefusedError(str(error_text))
            return None
        return Response(_user(status.get("user") or {}), common)


@cache
def _review_type() -> BuiltinType:
    """Both versions have the same fields."""
    return compile_builtin(scheme.load().definitions, "io.k8s.api.authentication.v1.TokenReview")


def _user(user: dict[str, Any]) -> UserInfo:
    extra = {str(key): _texts(values) for key, values in (user.get("extra") or {}).items()}
    return UserInfo(str(user.get("username") or ""), str(user.get("uid") or ""), _texts(user.get("groups")), extra)


def _valid(token: str) -> str:
    """Returns the token as JSON has it: bytes that aren't UTF-8 become U+FFFD."""
    return token.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _texts(values: Any) -> tuple[str, ...]:
    return tuple(map(str, values)) if isinstance(values, list) else ()
