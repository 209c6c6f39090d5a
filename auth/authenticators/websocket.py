"""Bearer tokens that come as a WebSocket's subprotocol, for browsers can set no header on one.

Upstream: k8s.io/apiserver/pkg/authentication/request/websocket/protocol.go, k8s.io/streaming/pkg/httpstream/wsstream/conn.go.
"""

import base64
import binascii
import re
from collections.abc import Sequence
from typing import Final

from fakeapiserver.apimachinery.errors import new_unauthorized
from fakeapiserver.auth.interfaces import Credentials, RefusedError, TokenReviewer, UserInfo

BEARER: Final = "base64url.bearer.authorization.k8s.io."
_BASE64URL: Final = re.compile(r"[A-Za-z0-9_-]*")

Headers = Sequence[tuple[bytes, bytes]]


class WebSocketProtocol:
    """Looks at requests for a WebSocket only. StatusError 401 for a token that can't be read, that stands alone, or isn't the only
    one."""

    def __init__(self, tokens: TokenReviewer, audiences: Sequence[str] = ()) -> None:
        self._tokens = tokens
        self._audiences = tuple(audiences)

    async def authenticate(self, credentials: Credentials) -> UserInfo | None:
        if not asks_for_websocket(credentials.headers):
            return None
        token = _token(credentials.headers)
        if not token:
            return None
        try:
            response = await self._tokens.review(token, credentials.audiences or self._audiences)
        except RefusedError as error:
            raise new_unauthorized() from error
        credentials.warnings.extend(response.warnings)
        if isinstance(credentials.headers, list):
            _drop_token(credentials.headers)
        return response.user


def asks_for_websocket(headers: Headers) -> bool:
    """Reports whether a client wants to go on as a WebSocket."""
    upgrade = next((value for name, value in headers if name == b"upgrade"), b"")
    return upgrade.lower() == b"websocket" and any(
        b"upgrade" in value.lower() for name, value in headers if name == b"connection"
    )


def protocols(headers: Headers) -> list[str]:
    """Every subprotocol that is offered, tokens as well."""
    values = [value.decode("latin-1") for name, value in headers if name == b"sec-websocket-protocol"]
    return [protocol.strip() for value in values for protocol in value.split(",")]


def _drop_token(headers: list[tuple[bytes, bytes]]) -> None:
    """Removes a used token from the subprotocols; an unused one stays."""
    rest = ",".join(protocol for protocol in protocols(headers) if not protocol.startswith(BEARER))
    headers[:] = [
        *((name, value) for name, value in headers if name != b"sec-websocket-protocol"),
        (b"sec-websocket-protocol", rest.encode("latin-1")),
    ]


def _token(headers: Headers) -> str:
    """Returns the token, or ""."""
    offered = protocols(headers)
    encoded = [protocol.removeprefix(BEARER) for protocol in offered if protocol.startswith(BEARER)]
    if not encoded:
        return ""
    if len(encoded) > 1 or not _BASE64URL.fullmatch(encoded[0]):
        raise new_unauthorized()
    try:
        token = base64.urlsafe_b64decode(encoded[0] + "=" * (-len(encoded[0]) % 4)).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise new_unauthorized() from None
    if token and len(offered) == 1:
        raise new_unauthorized()
    return token
