"""Counts requests by kube-apiserver's labels, and holds what else the server counts. `exposition.py` makes the text of it.

Upstream: k8s.io/apiserver/pkg/endpoints/metrics/metrics.go.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractContextManager, aclosing, nullcontext
from time import perf_counter
from typing import Final, NamedTuple

from msgspec import Struct, field

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.instruments import Family, Histogram, Instruments
from fakeapiserver.apis.resource_table import ResourceTable
from fakeapiserver.auth.measures import AuthenticationMetrics, AuthorizationMetrics
from fakeapiserver.endpoints.request import Answered, Request
from fakeapiserver.endpoints.request_info import RequestInfo

_READING: Final = frozenset(("GET", "HEAD"))
_METHODS: Final = frozenset({"GET", "PUT", "POST", "DELETE", "PATCH"})
_CONNECTED: Final = frozenset({"log", "exec", "portforward", "attach", "proxy"})
# Upper bounds in seconds.
DURATIONS: Final = (
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60
)  # fmt: skip
UNAVAILABLE: Final = Family(
    "aggregator_unavailable_apiservice_total", "How often an APIService became unavailable", ("name", "reason")
)
_UNCOUNTED: Final = nullcontext()
_SIZES: Final = tuple(10.0**power for power in range(3, 10))


class Labels(NamedTuple):
    """The labels that distinguish kinds of requests, in the order in which metrics name them."""

    component: str
    dry_run: str
    group: str
    resource: str
    scope: str
    subresource: str
    verb: str
    version: str


class Series(Struct):
    """The counts for a kind of request: HTTP codes, seconds, and the sizes of the responses to reads."""

    codes: Counter[int] = field(default_factory=Counter)
    seconds: Histogram = field(default_factory=lambda: Histogram(DURATIONS))
    sizes: Histogram = field(default_factory=lambda: Histogram(_SIZES))


class _Measured:
    """Measures a request, from the start of its handler to its response. It is a class, since a generator would cost each request a
    microsecond.
    """

    __slots__ = ("_kind", "_labels", "_metrics", "_request", "_start")

    def __init__(self, metrics: "Metrics", request: Request, labels: Labels) -> None:
        self._metrics = metrics
        self._request = request
        self._labels = labels
        self._kind = "readOnly" if request.method in _READING else "mutating"
        self._start = 0.0

    def __enter__(self) -> None:
        self._start = perf_counter()
        self._metrics.in_flight[self._kind] += 1

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        metrics, labels, response = self._metrics, self._labels, self._request.response
        metrics.in_flight[self._kind] -= 1
        if error is not None or response is None:
            metrics.observe(labels, _code_of(error), perf_counter() - self._start)
            return
        if response.stream is None or response.status != 200:
            series = metrics.observe(labels, response.status, perf_counter() - self._start)
        if response.stream is not None:
            response.stream = metrics.until_end(labels, response.stream, self._start)
        elif labels.verb in ("GET", "LIST"):
            series.sizes.observe(len(response.body) or response.size)


def _code_of(error: BaseException | None) -> int:
    """Returns the HTTP status that an exception is answered with."""
    if isinstance(error, StatusError):
        return int(error.status["code"])
    return error.response.status if isinstance(error, Answered) else 500


class Metrics:
    """`stored` counts the objects of a resource; `started` is in seconds since the epoch.

    Labels come from closed sets only: requests for resources that aren't served are not counted, so no client can grow them."""

    def __init__(
        self,
        table: ResourceTable,
        stored: Callable[[GroupResource], int],
        started: float,
        instruments: Instruments | None = None,
    ) -> None:
        self.table = table
        self.stored = stored
        self.started = started
        self.instruments = Instruments() if instruments is None else instruments
        self.series: dict[Labels, Series] = {}
        self.running = Counter[Labels]()
        self.in_flight = Counter[str]()
        self.health_checks = Counter[tuple[str, str]]()
        # APIServices by name, and whether they are available.
        self.api_services: Callable[[], Mapping[str, bool]] = dict
        self.authentication = AuthenticationMetrics(self.instruments)
        self.authorization = AuthorizationMetrics(self.instruments)

    def measured(self, request: Request) -> AbstractContextManager[None]:
        """Counts the request that is answered within it; a stream is counted when it ends."""
        labels = self._labels(request)
        return _UNCOUNTED if labels is None else _Measured(self, request, labels)

    def reset(self) -> None:
        """Forgets what was counted; what runs now goes on being counted."""
        self.series.clear()
        self.instruments.reset()

    def observe(self, labels: Labels, code: int, seconds: float) -> Series:
        """Counts one request of so many seconds."""
        series = self.series.get(labels)
        if series is None:
            series = self.series[labels] = Series()
        series.codes[code] += 1
        series.seconds.observe(seconds)
        return series

    async def until_end(
        self, labels: Labels, stream: AsyncGenerator[bytes, None], start: float
    ) -> AsyncGenerator[bytes, None]:
        """Returns the stream's chunks, and counts the request when they end."""
        self.running[labels] += 1
        try:
            async with aclosing(stream):
                async for chunk in stream:
                    yield chunk
        finally:
            self.running[labels] -= 1
            self.observe(labels, 200, perf_counter() - start)

    def _labels(self, request: Request) -> Labels | None:
        info = request.info
        if not info.resource_request:
            return _path_labels(request)
        row = self.table.lookup(info.group, info.version, info.resource)
        if row is None or (info.subresource and info.subresource not in row.subresources):
            return None
        dry_run = ""
        if request.query and "dryRun" in request.query:
            dry_run = "All" if request.query["dryRun"] == ["All"] else "invalid"
        scope = "resource" if info.name or info.verb == "create" else "namespace" if info.namespace else "cluster"
        return Labels(
            "apiserver",
            dry_run,
            info.group,
            info.resource,
            scope,
            info.subresource,
            _verb(request, info),
            info.version,
        )


def _path_labels(request: Request) -> Labels | None:
    """Upstream counts few of the paths that aren't resources."""
    path = request.path
    verb = request.method if request.method in _METHODS else "other"
    if path in ("/healthz", "/livez", "/readyz"):
        return Labels("", "", "", "", "", path, verb, "")
    if path.startswith("/openapi/v3"):
        return Labels("", "", "", "", "", "openapi/v3/" if path.startswith("/openapi/v3/") else "openapi/v3", verb, "")
    if path in ("/flagz", "/statusz"):
        return Labels("apiserver", "", "", path[1:], "", "", verb, "")
    return None


def _verb(request: Request, info: RequestInfo) -> str:
    if info.subresource in _CONNECTED:
        return "CONNECT"
    if info.verb in ("list", "watch"):
        return info.verb.upper()
    if request.method == "PATCH" and request.header(b"content-type") == "application/apply-patch+yaml":
        return "APPLY"
    if request.method in ("GET", "HEAD"):
        return "GET"
    return request.method if request.method in _METHODS else "other"
