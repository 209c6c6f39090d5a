"""Counts what the server does, under kube-apiserver's metric names and labels.

Upstream: k8s.io/apiserver/pkg/endpoints/metrics/metrics.go, pkg/storage/etcd3/metrics, k8s.io/component-base/metrics/prometheus/slis.
Counting is a dict update; prometheus-client, which costs some 100 ms to import, renders the text when /metrics is first asked for.
"""

from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from time import perf_counter
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct, field

from fakeapiserver.admission.timings import BOUNDS, Timings
from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.instruments import Histogram, Instruments
from fakeapiserver.apis.feature_gates import FeatureGates
from fakeapiserver.apis.resource_table import ResourceTable
from fakeapiserver.auth.authorizers.instrumented import Decisions
from fakeapiserver.auth.interfaces import Decision
from fakeapiserver.endpoints import discovery
from fakeapiserver.endpoints.negotiation.accept import parse
from fakeapiserver.endpoints.request import Answered, Request
from fakeapiserver.endpoints.request_info import RequestInfo
from fakeapiserver.server.filters.audit.counts import AuditCounts

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

_TEXT_VERSIONS: Final = ("", "0.0.4", "1.0.0")
_ESCAPINGS: Final = ("allow-utf-8", "underscores", "dots", "values")

_READING: Final = frozenset(("GET", "HEAD"))
_METHODS: Final = frozenset({"GET", "PUT", "POST", "DELETE", "PATCH"})
_CONNECTED: Final = frozenset({"log", "exec", "portforward", "attach", "proxy"})
# Upper bounds in seconds.
_DURATIONS: Final = (
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60
)  # fmt: skip
_UNCOUNTED: Final = nullcontext()
_SLI_DURATIONS: Final = _DURATIONS[2:]
# As upstream, which publishes these fields of /version.
_BUILD_FACTS: Final = {
    "build_date": "buildDate",
    "compiler": "compiler",
    "git_commit": "gitCommit",
    "git_tree_state": "gitTreeState",
    "git_version": "gitVersion",
    "go_version": "goVersion",
    "major": "major",
    "minor": "minor",
    "platform": "platform",
}
_AUTHENTICATION_DURATIONS: Final = tuple(0.001 * 2**power for power in range(15))
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


class _Series(Struct):
    """The counts for a kind of request: HTTP codes, seconds, and the sizes of the responses to reads."""

    codes: Counter[int] = field(default_factory=Counter)
    seconds: Histogram = field(default_factory=lambda: Histogram(_DURATIONS))
    sizes: Histogram = field(default_factory=lambda: Histogram(_SIZES))


_WITHOUT_TOTAL: Final = (
    b"authenticated_user_requests",
    b"authentication_attempts",
    b"apiserver_admission_webhook_rejection_count",
    b"apiserver_admission_webhook_fail_open_count",
)
# Users who are counted by name; all others are counted by whether their names look like an address.
_KNOWN_USERS: Final = frozenset(
    {"admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default"}
)


class _Attempts(dict[str, Histogram]):
    """The durations of attempts by their result."""

    def observe(self, result: str, seconds: float) -> None:
        histogram = self.get(result)
        if histogram is None:
            histogram = self[result] = Histogram(_AUTHENTICATION_DURATIONS)
        histogram.observe(seconds)

    def metrics(self, what: str, verb: str, took: str) -> "tuple[Metric, Metric]":
        """Their number and their seconds; `what` begins the names, `verb` and `took` stand in the help."""
        from prometheus_client.metrics_core import CounterMetricFamily, HistogramMetricFamily

        attempts = CounterMetricFamily(f"{what}_attempts", f"Attempts to {verb}, by result", labels=["result"])
        seconds = HistogramMetricFamily(
            f"{what}_duration_seconds", f"Seconds that {took} took, by result", labels=["result"]
        )
        for result, histogram in sorted(self.items()):
            attempts.add_metric([result], sum(histogram.counts))
            seconds.add_metric([result], histogram.buckets(), histogram.sum)
        return attempts, seconds


class AuthenticationMetrics(Struct):
    """Counts authenticated users, failed attempts, and the time that authentication takes (upstream:
    k8s.io/apiserver/pkg/endpoints/filters/metrics.go).
    """

    users: Counter[str] = field(default_factory=Counter)
    attempts: _Attempts = field(default_factory=_Attempts)

    def succeeded(self, name: str, seconds: float) -> None:
        known = name if name in _KNOWN_USERS else "email_id" if "@" in name else "other"
        self.users[known] += 1
        self.attempts.observe("success", seconds)

    def refused(self, error: StatusError, seconds: float) -> None:
        """A credential that fails is an error; to have none where one is needed is a failure."""
        self.attempts.observe("failure" if error.__cause__ is None else "error", seconds)

    def reset(self) -> None:
        self.users.clear()
        self.attempts.clear()

    def metrics(self) -> Iterator["Metric"]:
        from prometheus_client.metrics_core import CounterMetricFamily

        users = CounterMetricFamily(
            "authenticated_user_requests", "Requests of users who were authenticated, by name", labels=["username"]
        )
        for name, count in sorted(self.users.items()):
            users.add_metric([name], count)
        yield users
        yield from self.attempts.metrics("authentication", "authenticate", "attempts")


_RESULTS: Final = {Decision.ALLOW: "allowed", Decision.DENY: "denied", Decision.NO_OPINION: "no-opinion"}


class AuthorizationMetrics(Struct):
    """Counts the results of authorization, the time that it takes, and which authorizer decided (upstream:
    k8s.io/apiserver/pkg/endpoints/filters/metrics.go, pkg/authorization/metrics).
    """

    attempts: _Attempts = field(default_factory=_Attempts)
    decisions: Decisions = field(default_factory=Counter)

    def decided(self, decision: Decision, seconds: float) -> None:
        self.attempts.observe(_RESULTS[decision], seconds)

    def failed(self, seconds: float) -> None:
        """Counts a request for which no authorizer could decide."""
        self.attempts.observe("error", seconds)

    def reset(self) -> None:
        self.attempts.clear()
        self.decisions.clear()

    def metrics(self) -> Iterator["Metric"]:
        from prometheus_client.metrics_core import CounterMetricFamily

        yield from self.attempts.metrics("authorization", "authorize", "authorizing")
        decisions = CounterMetricFamily(
            "apiserver_authorization_decisions",
            "What authorizers decided, by type, name and decision",
            labels=["decision", "name", "type"],
        )
        for (kind, name, decision), count in sorted(self.decisions.items()):
            decisions.add_metric([decision, name, kind], count)
        yield decisions


def _admission_metrics(timings: Timings) -> Iterator["Metric"]:
    """Yields the durations of admission: of each plugin, and of each of the two steps."""
    from prometheus_client.metrics_core import HistogramMetricFamily, SummaryMetricFamily

    start, labels = "apiserver_admission", ["operation", "rejected", "type"]
    plugins = HistogramMetricFamily(
        f"{start}_controller_admission_duration_seconds", "Seconds that plugins took", labels=["name", *labels]
    )
    steps = HistogramMetricFamily(
        f"{start}_step_admission_duration_seconds", "Seconds that steps of admission took", labels=labels
    )
    summary = SummaryMetricFamily(
        f"{start}_step_admission_duration_seconds_summary", "Seconds that steps of admission took", labels=labels
    )
    for what, timing in sorted(timings.items()):
        count = sum(timing.counts)
        if not count:
            continue
        values = [what.operation, "true" if what.rejected else "false", what.step]
        buckets = Histogram(BOUNDS, timing.counts).buckets()
        if what.plugin:
            plugins.add_metric([what.plugin, *values], buckets, timing.sum)
        else:
            steps.add_metric(values, buckets, timing.sum)
            summary.add_metric(values, count, timing.sum)
    yield from (plugins, steps, summary)


def _instrument_metrics(instruments: Instruments) -> Iterator["Metric"]:
    from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

    for family, numbers in instruments.numbers.items():
        kind = GaugeMetricFamily if family.gauge else CounterMetricFamily
        metric = kind(family.name.removesuffix("_total"), family.help, labels=family.labels)
        for values, number in sorted(numbers.items()):
            metric.add_metric(values, number)
        yield metric
    for family, histograms in instruments.histograms.items():
        shown = HistogramMetricFamily(family.name, family.help, labels=family.labels)
        for values, histogram in sorted(histograms.items()):
            shown.add_metric(values, histogram.buckets(), histogram.sum)
        yield shown


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
            series.sizes.observe(len(response.body))


def _code_of(error: BaseException | None) -> int:
    """Returns the HTTP status that an exception is answered with."""
    if isinstance(error, StatusError):
        return int(error.status["code"])
    return error.response.status if isinstance(error, Answered) else 500


class Metrics(Struct):
    """`stored` counts the objects of a resource; `started` is in seconds since the epoch.

    Labels come from closed sets only: requests for resources that aren't served are not counted, so no client can grow them."""

    table: ResourceTable
    stored: Callable[[GroupResource], int]
    started: float
    series: dict[Labels, _Series] = field(default_factory=dict)
    running: Counter[Labels] = field(default_factory=Counter)
    in_flight: Counter[str] = field(default_factory=Counter)
    health_checks: Counter[tuple[str, str]] = field(default_factory=Counter)
    # APIServices by name, and whether they are available; by name and reason, how often they became unavailable.
    api_services: Callable[[], Mapping[str, bool]] = dict
    unavailable: Counter[tuple[str, str]] = field(default_factory=Counter)
    authentication: AuthenticationMetrics = field(default_factory=AuthenticationMetrics)
    authorization: AuthorizationMetrics = field(default_factory=AuthorizationMetrics)
    admission: Timings = field(default_factory=Timings)
    audit: AuditCounts = field(default_factory=AuditCounts)
    instruments: Instruments = field(default_factory=Instruments)

    def measured(self, request: Request) -> AbstractContextManager[None]:
        """Counts the request that is answered within it; a stream is counted when it ends."""
        labels = self._labels(request)
        return _UNCOUNTED if labels is None else _Measured(self, request, labels)

    def reset(self) -> None:
        """Forgets what was counted; what runs now goes on being counted."""
        self.series.clear()
        self.authentication.reset()
        self.authorization.reset()
        self.admission.reset()
        self.audit.reset()
        self.instruments.reset()

    def observe(self, labels: Labels, code: int, seconds: float) -> _Series:
        """Counts one request of so many seconds."""
        series = self.series.get(labels)
        if series is None:
            series = self.series[labels] = _Series()
        series.codes[code] += 1
        series.seconds.observe(seconds)
        return series

    async def until_end(
        self, labels: Labels, stream: AsyncIterator[bytes], start: float
    ) -> AsyncGenerator[bytes, None]:
        """Returns the stream's chunks, and counts the request when they end."""
        self.running[labels] += 1
        try:
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

    def render(self) -> bytes:
        """Prometheus' text format."""
        text = _rendered(self._metrics())
        for name in _WITHOUT_TOTAL:  # prometheus-client gives every counter the ending that upstream's older ones lack
            text = text.replace(name + b"_total", name)
        return text

    def render_health_checks(self) -> bytes:
        """/metrics/slis: which checks were asked, and that they succeeded."""
        return render_health_checks(self.health_checks)

    def _metrics(self) -> Iterator["Metric"]:
        from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        requests = CounterMetricFamily(
            "apiserver_request", "Requests by what was asked, and by HTTP code", labels=["code", *Labels._fields]
        )
        seconds = HistogramMetricFamily(
            "apiserver_request_duration_seconds", "Seconds that requests took", labels=Labels._fields
        )
        sizes = HistogramMetricFamily(
            "apiserver_response_sizes",
            "Bytes that reads were answered with",
            labels=_without_dry_run(Labels._fields),
        )
        for labels, series in sorted(self.series.items(), key=lambda item: item[0]):
            for code, count in sorted(series.codes.items()):
                requests.add_metric([str(code), *labels], count)
            seconds.add_metric(list(labels), series.seconds.buckets(), series.seconds.sum)
            if series.sizes.counts:
                sizes.add_metric(_without_dry_run(labels), series.sizes.buckets(), series.sizes.sum)
        yield from (requests, seconds, self._latencies(), sizes)
        running = GaugeMetricFamily(
            "apiserver_longrunning_requests", "Requests that stream now", labels=_without_dry_run(Labels._fields)
        )
        for labels, count in sorted(self.running.items()):
            running.add_metric(_without_dry_run(labels), count)
        yield running
        in_flight = GaugeMetricFamily(
            "apiserver_current_inflight_requests", "Requests in work now", labels=["request_kind"]
        )
        for kind in ("mutating", "readOnly"):
            in_flight.add_metric([kind], self.in_flight[kind])
        yield in_flight
        yield from self.authentication.metrics()
        yield from self.authorization.metrics()
        yield from _admission_metrics(self.admission)
        yield from self.audit.metrics()
        yield from _instrument_metrics(self.instruments)
        yield from self._storage_metrics()
        yield from self._aggregator_metrics()
        yield from build_metrics(discovery.version_info(self.table))
        yield _gate_metric(self.table.scheme.features)
        yield from _process_metrics()
        yield GaugeMetricFamily(
            "process_start_time_seconds", "When the process started, in seconds since the epoch", value=self.started
        )

    def _latencies(self) -> "Metric":
        """The durations again: nothing that upstream leaves out of these takes time here."""
        from prometheus_client.metrics_core import HistogramMetricFamily

        histograms: dict[tuple[str, ...], Histogram] = {}
        for labels, series in self.series.items():
            histogram = histograms.setdefault(tuple(_without_dry_run(labels)), Histogram(_SLI_DURATIONS))
            first, *counts = sum(series.seconds.counts[:3]), *series.seconds.counts[3:]
            before = histogram.counts or [0] * (len(_SLI_DURATIONS) + 1)
            histogram.counts = [old + new for old, new in zip(before, (first, *counts), strict=True)]
            histogram.sum += series.seconds.sum
        family = HistogramMetricFamily(
            "apiserver_request_sli_duration_seconds",
            "Seconds that requests took by themselves",
            labels=_without_dry_run(Labels._fields),
        )
        for key, histogram in sorted(histograms.items(), key=lambda item: item[0]):
            family.add_metric(list(key), histogram.buckets(), histogram.sum)
        return family

    def _storage_metrics(self) -> Iterator["Metric"]:
        from prometheus_client.metrics_core import GaugeMetricFamily

        text = "Stored objects by resource"
        stored = GaugeMetricFamily("apiserver_storage_objects", text, labels=["resource"])
        objects = GaugeMetricFamily("apiserver_resource_objects", text, labels=["group", "resource"])
        for name in sorted({row.gvr.group_resource for row in self.table if "list" in row.verbs}):
            count = self.stored(name)
            stored.add_metric([str(name)], count)
            objects.add_metric(list(name), count)
        yield stored
        yield objects

    def _aggregator_metrics(self) -> Iterator["Metric"]:
        from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily

        gauge = GaugeMetricFamily(
            "aggregator_unavailable_apiservice", "1 for one that isn't available", labels=["name"]
        )
        for name, available in sorted(self.api_services().items()):
            gauge.add_metric([name], 0 if available else 1)
        text = "How often an APIService became unavailable"
        total = CounterMetricFamily("aggregator_unavailable_apiservice", text, labels=["name", "reason"])
        for labels, count in sorted(self.unavailable.items()):
            total.add_metric(list(labels), count)
        yield gauge
        yield total


def render_health_checks(succeeded: Counter[tuple[str, str]]) -> bytes:
    """In Prometheus' text format, of the checks that succeeded: their number by name and endpoint."""
    from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily

    last = GaugeMetricFamily("kubernetes_healthcheck", "1 for a check that succeeded", labels=["name", "type"])
    total = CounterMetricFamily("kubernetes_healthchecks", "Checks done", labels=["name", "status", "type"])
    for (name, endpoint), count in sorted(succeeded.items()):
        last.add_metric([name, endpoint], 1)
        total.add_metric([name, "success", endpoint], count)
    return _rendered(iter((last, total)))


def content_type(accept: str) -> str:
    """Text always, in whose names nothing needs escaping, so each way to do so is the client's choice (upstream:
    github.com/prometheus/common/expfmt, Negotiate)."""
    escaping = "underscores"
    for clause in parse(accept):
        if (wanted := clause.parameters.get("escaping", "")) in _ESCAPINGS:
            escaping = wanted
        is_text = (clause.type, clause.subtype) == ("text", "plain")
        if is_text and clause.parameters.get("version", "") in _TEXT_VERSIONS:
            break
    return f"text/plain; version=0.0.4; charset=utf-8; escaping={escaping}"


class BuildMetrics:
    """A Prometheus collector of versions. `version` is the document of /version."""

    def __init__(self, version: discovery.Document) -> None:
        self._version = version

    def collect(self) -> Iterator["Metric"]:
        return build_metrics(self._version)

    def describe(self) -> Iterator["Metric"]:
        yield from ()


def build_metrics(version: discovery.Document) -> Iterator["Metric"]:
    """`version` is what /version says."""
    from prometheus_client.metrics_core import GaugeMetricFamily

    build = GaugeMetricFamily("kubernetes_build_info", "What was built, and how", labels=list(_BUILD_FACTS))
    build.add_metric([version[name] for name in _BUILD_FACTS.values()], 1)
    yield build
    labels = ["binary", "component", "emulation", "min_compat"]
    info = GaugeMetricFamily("version_info", "The versions that the server behaves as", labels=labels)
    emulation = f"{version['emulationMajor']}.{version['emulationMinor']}"
    min_compat = f"{version['minCompatibilityMajor']}.{version['minCompatibilityMinor']}"
    info.add_metric([version["gitVersion"].removeprefix("v"), "kube", emulation, min_compat], 1)
    yield info


def _gate_metric(features: FeatureGates) -> "Metric":
    """Upstream: k8s.io/component-base/metrics/prometheus/feature. General availability is a stage without a name."""
    from prometheus_client.metrics_core import GaugeMetricFamily

    gates = GaugeMetricFamily("kubernetes_feature_enabled", "1 for a gate that is on", labels=["name", "stage"])
    for gate, stage, on in sorted(features.stages()):
        gates.add_metric([gate, "" if stage == "GA" else stage], on)
    return gates


def _process_metrics() -> Iterator["Metric"]:
    """Yields CPU time, memory and files of this process, if the system reports them."""
    from prometheus_client import ProcessCollector

    for metric in ProcessCollector(registry=None).collect():
        if metric.name != "process_start_time_seconds":  # which is the server's own
            yield metric


def _without_dry_run(labels: tuple[str, ...]) -> list[str]:
    return [labels[0], *labels[2:]]


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


class _Collector:
    def __init__(self, metrics: Iterator["Metric"]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator["Metric"]:
        return self._metrics


def _rendered(metrics: Iterator["Metric"]) -> bytes:
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(metric for metric in metrics if metric.samples))
    return generate_latest(registry)
