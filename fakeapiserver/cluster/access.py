"""`cluster.rbac`: the roles that a test's requests needed, and the requests that were refused."""

import os
from pathlib import Path
from typing import Any

from fakeapiserver.cluster.faces import Blocking, blocking
from fakeapiserver.evidence.least_rights import write
from fakeapiserver.server.filters.access_log import AccessLog, Denied


class AsyncAccess:
    """The requests of clients that were allowed and refused."""

    def __init__(self, log: AccessLog) -> None:
        self._log = log

    async def used(
        self, user: str = "", *, name: str = "used", names: bool = False, path: str | os.PathLike[str] | None = None
    ) -> list[dict[str, Any]]:
        """The least roles that allow every request that was allowed so far: a ClusterRole and a Role for each namespace, all
        called `name`. Run a controller as admin in a test, and ship these roles. They leave out what everybody may do
        (discovery, health, reviews of one's own access).

        - `user`: count only this user's requests; by default everybody's.
        - `names`: restrict rules to the names of the objects that were requested by name.
        - `path`: also write the roles there, as YAML.
        """
        accesses = await self._log.used(user, name, names=names)
        if path is not None:
            write(Path(path), accesses)
        return accesses

    @property
    def denied(self) -> list[Denied]:
        """The refused requests, oldest first. `str()` of each is the message that the client got.

        assert not cluster.rbac.denied, "\\n".join(map(str, cluster.rbac.denied))
        """
        return self._log.denied()

    async def forget(self) -> None:
        """Forgets all requests so far."""
        self._log.forget()


class Access(Blocking[AsyncAccess]):
    """The requests of clients that were allowed and refused."""

    used = blocking(AsyncAccess.used)
    forget = blocking(AsyncAccess.forget)

    @property
    def denied(self) -> list[Denied]:
        """The refused requests, oldest first. `str()` of each is the message that the client got.

        assert not cluster.rbac.denied, "\\n".join(map(str, cluster.rbac.denied))
        """
        return self._core.denied
