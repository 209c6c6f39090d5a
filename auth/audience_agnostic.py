"""Tokens that name no audience are for the server's own audiences.

Upstream: k8s.io/apiserver/pkg/authentication/authenticator/audagnostic.go.
"""

from collections.abc import Sequence

from fakeapiserver.auth.interfaces import Response, TokenAuthenticator


class AudienceAgnostic:
    """`method` is not asked when none of the server's `audiences` is wanted."""

    def __init__(self, audiences: Sequence[str], method: TokenAuthenticator) -> None:
        self._audiences = tuple(audiences)
        self._method = method

    async def authenticate_token(self, token: str, audiences: Sequence[str]) -> Response | None:
        common = tuple(audience for audience in audiences if audience in self._audiences)
        if not common:
            return None
        response = await self._method.authenticate_token(token, audiences)
        return Response(response.user, common, response.warnings) if response is not None else None
