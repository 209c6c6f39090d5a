"""The user of requests without credentials.

Upstream: k8s.io/apiserver/pkg/authentication/request/anonymous/anonymous.go.
"""

from collections.abc import Collection
from typing import Final

from fakeapiserver.auth.interfaces import Credentials, UserInfo

ANONYMOUS: Final = UserInfo("system:anonymous", groups=("system:unauthenticated",))


class Anonymous:
    """Accepts requests for `paths`, or all if it is empty.

    The union calls it last, and only if no credential was refused.
    """

    def __init__(self, paths: Collection[str] = ()) -> None:
        self._paths = frozenset(paths)

    async def authenticate(self, credentials: Credentials) -> UserInfo | None:
        return ANONYMOUS if not self._paths or credentials.path in self._paths else None
