"""Who a request without credentials comes from.

Upstream: k8s.io/apiserver/pkg/authentication/request/anonymous/anonymous.go.
"""

from collections.abc import Collection
from typing import Final

from fakeapiserver.auth.interfaces import Credentials, UserInfo

ANONYMOUS: Final = UserInfo("system:anonymous", groups=("system:unauthenticated",))


class Anonymous:
    """Takes requests for `paths`, or every one where there are none. The union asks it last, and only when no credential was
    refused."""

    def __init__(self, paths: Collection[str] = ()) -> None:
        self._paths = frozenset(paths)

    async def authenticate(self, credentials: Credentials) -> UserInfo | None:
        return ANONYMOUS if not self._paths or credentials.path in self._paths else None
