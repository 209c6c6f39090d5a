"""`Authorization: Bearer TOKEN`: finds the token and asks each method that knows tokens.

Upstream: k8s.io/apiserver/pkg/authentication/request/bearertoken/bearertoken.go and pkg/authentication/token/union.
"""

from collections.abc import Sequence

from fakeapiserver.apimachinery.errors import StatusError, new_unauthorized
from fakeapiserver.auth.interfaces import Credentials, TokenAuthenticator, UserInfo


def bearer_token(authorization: str) -> str:
    """The token of an Authorization header; empty when there is none (no header, another scheme, `Bearer ` alone)."""
    parts = authorization.strip().split(" ", 2)
    if len(parts) < 2 or parts[0].lower() != "bearer":
        return ""
    return parts[1]


class BearerToken:
    """The first method that knows the token wins; a token nobody knows is a 401."""

    def __init__(self, methods: Sequence[TokenAuthenticator]) -> None:
        self._methods = tuple(methods)

    async def authenticate(self, credentials: Credentials) -> UserInfo | None:
        token = bearer_token(credentials.authorization)
        if not token:
            return None
        refusal: StatusError | None = None
        for method in self._methods:
            try:
                user = await method.authenticate_token(token, credentials.audiences)
            except StatusError as error:
                # Another method may still know it, as with several issuers.
                refusal = refusal or error
                continue
            if user is not None:
                return user
        raise refusal or new_unauthorized()
