"""Who a request without credentials comes from.

Upstream: k8s.io/apiserver/pkg/authentication/request/anonymous/anonymous.go.
"""

from typing import Final

from fakeapiserver.auth.interfaces import Credentials, UserInfo

ANONYMOUS: Final = UserInfo("system:anonymous", groups=("system:unauthenticated",))


class Anonymous:
    """Takes every request; the union asks it last, and only when no credential was refused."""

    async def authenticate(self, credentials: Credentials) -> UserInfo | None:
        return ANONYMOUS
