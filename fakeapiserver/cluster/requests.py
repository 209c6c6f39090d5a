"""`cluster.requests`: the last requests of clients.

mark = cluster.requests.mark()
...
cluster.requests.since(mark)["update leases"].assert_count(2)
"""

import asyncio
from typing import Unpack

from fakeapiserver.cluster.faces import Blocking, blocking
from fakeapiserver.evidence.findings import Finding, Limits
from fakeapiserver.evidence.query import parse
from fakeapiserver.evidence.request_log import RequestLog
from fakeapiserver.evidence.requests import Fields, RequestList

_SHOWN = 10


class AsyncRequests:
    """The last requests of clients. Those of the cluster's own controllers and nodes are left out."""

    def __init__(self, log: RequestLog) -> None:
        self._log = log

    def all(self) -> RequestList:
        """All requests that are kept, in the order of their answers."""
        return RequestList(self._log.entries)

    def __getitem__(self, query: str) -> RequestList:
        """The requests that match `VERB RESOURCE[/SUBRESOURCE] [NAMESPACE/NAME]`, such as `delete pods default/web-*`.

        Raises ValueError with examples."""
        return self.all()[query]

    def where(self, **fields: Unpack[Fields]) -> RequestList:
        """The requests whose fields match shell patterns: `where(resource="pods", status=409)`. Raises ValueError."""
        return self.all().where(**fields)

    def by(self, *, user_agent: str = "*", user: str = "*") -> RequestList:
        """The requests of a client: `by(user_agent="my-operator*")`."""
        return self.all().by(user_agent=user_agent, user=user)

    def findings(self, *only: str, **limits: Unpack[Limits]) -> list[Finding]:
        """The bad habits of clients: `findings(hot_loops=50, repeated_reads=0)`. `Limits` in evidence/findings.py has the detectors.

        Raises ValueError for an unknown one."""
        return self.all().findings(*only, **limits)

    def assert_healthy(self, *only: str, **limits: Unpack[Limits]) -> None:
        """Raises AssertionError with all findings; the parameters are those of `findings`."""
        self.all().assert_healthy(*only, **limits)

    def mark(self) -> int:
        """The present end of the log, for `since`."""
        return self._log.last

    def since(self, mark: int) -> RequestList:
        """The requests that were answered after `mark`."""
        return self.all().since(mark)

    async def wait_for(self, query: str, count: int = 1, timeout: float = 10.0, since: int = 0) -> RequestList:
        """Returns the requests that match the query as soon as there are `count` after the mark `since`, by default all that are kept.

        Raises ValueError for an invalid query, and TimeoutError after `timeout` real seconds, with the last requests for the same
        objects."""
        wanted = parse(query)
        try:
            async with asyncio.timeout(timeout):
                while len(found := self.since(since)[query]) < count:
                    await self._log.wait()
        except TimeoutError:
            found = self.since(since)[query]
            near = RequestList(filter(wanted.nearly_matches, self.since(since)))[-_SHOWN:]
            raise TimeoutError(
                f"{len(found)} of {count} requests {query!r} within {timeout:g} seconds; the last with any verb:\n{near}"
            ) from None
        return found


class Requests(Blocking[AsyncRequests]):
    """The last requests of clients. Those of the cluster's own controllers and nodes are left out."""

    def all(self) -> RequestList:
        """All requests that are kept, in the order of their answers."""
        return self._core.all()

    def __getitem__(self, query: str) -> RequestList:
        """The requests that match `VERB RESOURCE[/SUBRESOURCE] [NAMESPACE/NAME]`, such as `delete pods default/web-*`.

        Raises ValueError with examples."""
        return self._core[query]

    def where(self, **fields: Unpack[Fields]) -> RequestList:
        """The requests whose fields match shell patterns: `where(resource="pods", status=409)`. Raises ValueError."""
        return self._core.where(**fields)

    def by(self, *, user_agent: str = "*", user: str = "*") -> RequestList:
        """The requests of a client: `by(user_agent="my-operator*")`."""
        return self._core.by(user_agent=user_agent, user=user)

    def findings(self, *only: str, **limits: Unpack[Limits]) -> list[Finding]:
        """The bad habits of clients: `findings(hot_loops=50, repeated_reads=0)`. `Limits` in evidence/findings.py has the detectors.

        Raises ValueError for an unknown one."""
        return self.all().findings(*only, **limits)

    def assert_healthy(self, *only: str, **limits: Unpack[Limits]) -> None:
        """Raises AssertionError with all findings; the parameters are those of `findings`."""
        self.all().assert_healthy(*only, **limits)

    def mark(self) -> int:
        """The present end of the log, for `since`."""
        return self._core.mark()

    def since(self, mark: int) -> RequestList:
        """The requests that were answered after `mark`."""
        return self._core.since(mark)

    wait_for = blocking(AsyncRequests.wait_for)
