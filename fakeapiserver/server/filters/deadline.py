"""The deadline of requests.

Upstream: k8s.io/apiserver/pkg/endpoints/filters/request_deadline.go, pkg/server/filters/timeout.go.
"""

import asyncio
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from types import TracebackType
from typing import Final

from fakeapiserver.apimachinery.duration import parse_duration
from fakeapiserver.apimachinery.errors import new_bad_request
from fakeapiserver.effort import EndsAfter, computed
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.request import Answered, Request
from fakeapiserver.endpoints.request_info import is_long_running

# A path of the test control, which has its own time-out and reports what it waited for.
_SETTLE: Final = "/fakeapiserver/settle"
_BODILESS: Final = frozenset(("GET", "HEAD"))
# Upstream: requestTimeoutUpperBound in k8s.io/apiserver/pkg/endpoints/handlers/rest.go.
_LONGEST_WRITE: Final = 34.0
_UNLIMITED: Final = nullcontext()


def deadline(request: Request, longest: float) -> AbstractAsyncContextManager[None]:
    """Limits what runs within it to `longest` seconds, or the fewer that the client asks for; raises Answered with 504 then.
    Requests that may take long have no limit. Raises StatusError 400 for a `timeout` that can't be parsed.
    """
    if not request.query and request.method in _BODILESS:
        return _UNLIMITED
    asked = request.param("timeout")
    if request.path == _SETTLE:
        return _UNLIMITED
    # a request without a body waits only for the storage, which has its own limit
    if (not asked and request.method in _BODILESS) or is_long_running(request.info):
        return _UNLIMITED
    return _Limited(request, asked, longest)


class _Limited:
    """A class, since every write comes through here: a generator would cost some microseconds."""

    __slots__ = ("_asked", "_calls", "_longest", "_request", "_timeout")

    def __init__(self, request: Request, asked: str, longest: float) -> None:
        self._request = request
        self._asked = asked
        self._longest = longest

    async def __aenter__(self) -> None:
        seconds = self._longest
        if self._asked:
            seconds = await computed(partial(seconds_for, self._request, seconds), len(self._asked))
        self._timeout = asyncio.timeout(seconds)
        self._calls = EndsAfter(min(seconds, _LONGEST_WRITE))
        await self._timeout.__aenter__()
        self._calls.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._calls.__exit__()
        try:
            await self._timeout.__aexit__(kind, error, traceback)
        except TimeoutError:
            raise Answered(respond.timed_out(self._request)) from None


def seconds_for(request: Request, longest: float) -> float:
    """Returns the seconds that the client allows, at most `longest`. Raises StatusError 400."""
    asked = request.param("timeout")
    if not asked:
        return longest
    try:
        seconds = parse_duration(asked)
    except ValueError as error:
        raise new_bad_request(f"invalid timeout specified in the request URL - {error}") from None
    return seconds if 0 < seconds < longest else longest
