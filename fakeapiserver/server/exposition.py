"""The text of /metrics and /metrics/slis, in Prometheus' format.

It is loaded when one of them is first asked for, since prometheus-client takes some 100 ms to import. Upstream:
k8s.io/component-base/metrics/legacyregistry, prometheus/slis, prometheus/feature; pkg/storage/etcd3/metrics.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)

from fakeapiserver.admission.measures import STEP_SECONDS
from fakeapiserver.apimachinery.instruments import Family, Histogram, Instruments
from fakeapiserver.apis.feature_gates import FeatureGates
from fakeapiserver.auth.measures import AUTHENTICATION_SECONDS, AUTHORIZATION_SECONDS
from fakeapiserver.endpoints import discovery
from fakeapiserver.endpoints.negotiation.accept import parse
from fakeapiserver.server.metrics import DURATIONS, Labels, Metrics

_TEXT_VERSIONS: Final = ("", "0.0.4", "1.0.0")
_ESCAPINGS: Final = ("allow-utf-8", "underscores", "dots", "values")
# Older counters of upstream, which lack the ending that prometheus-client gives every counter.
_WITHOUT_TOTAL: Final = (
    b"authenticated_user_requests",
    b"authentication_attempts",
    b"apiserver_admission_webhook_rejection_count",
    b"apiserver_admission_webhook_fail_open_count",
)
_SLI_DURATIONS: Final = DURATIONS[2:]
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
# Upstream publishes the number of attempts as a counter beside the histogram.
_ATTEMPTS: Final = {
    AUTHENTICATION_SECONDS: Family("authentication_attempts", "Attempts to authenticate, by result", ("result",)),
    AUTHORIZATION_SECONDS: Family("authorization_attempts", "Attempts to authorize, by result", ("result",)),
}


def render(metrics: Metrics) -> bytes:
    """Returns all metrics."""
    text = _rendered(_metrics(metrics))
    for name in _WITHOUT_TOTAL:
        text = text.replace(name + b"_total", name)
    return text


def _metrics(metrics: Metrics) -> Iterator[Metric]:
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
    for labels, series in sorted(metrics.series.items(), key=lambda item: item[0]):
        for code, count in sorted(series.codes.items()):
            requests.add_metric([str(code), *labels], count)
        seconds.add_metric(list(labels), series.seconds.buckets(), series.seconds.sum)
        if series.sizes.count:
            sizes.add_metric(_without_dry_run(labels), series.sizes.buckets(), series.sizes.sum)
    yield from (requests, seconds, _latencies(metrics), sizes)
    running = GaugeMetricFamily(
        "apiserver_longrunning_requests", "Requests that stream now", labels=_without_dry_run(Labels._fields)
    )
    for labels, count in sorted(metrics.running.items()):
        running.add_metric(_without_dry_run(labels), count)
    yield running
    in_flight = GaugeMetricFamily(
        "apiserver_current_inflight_requests", "Requests in work now", labels=["request_kind"]
    )
    for kind in ("mutating", "readOnly"):
        in_flight.add_metric([kind], metrics.in_flight[kind])
    yield in_flight
    yield from _instrument_metrics(metrics.instruments)
    yield from _storage_metrics(metrics)
    yield from _aggregator_metrics(metrics)
    yield from build_metrics(discovery.version_info(metrics.table))
    yield _gate_metric(metrics.table.scheme.features)
    yield from _process_metrics()
    yield GaugeMetricFamily(
        "process_start_time_seconds", "When the process started, in seconds since the epoch", value=metrics.started
    )


def _latencies(metrics: Metrics) -> Metric:
    """The durations again: nothing that upstream leaves out of these takes time here."""
    histograms: dict[tuple[str, ...], Histogram] = {}
    for labels, series in metrics.series.items():
        histogram = histograms.setdefault(tuple(_without_dry_run(labels)), Histogram(_SLI_DURATIONS))
        first, *counts = sum(series.seconds.counts[:3]), *series.seconds.counts[3:]
        before = histogram.counts
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


def _storage_metrics(metrics: Metrics) -> Iterator[Metric]:
    text = "Stored objects by resource"
    stored = GaugeMetricFamily("apiserver_storage_objects", text, labels=["resource"])  # until 1.36
    objects = GaugeMetricFamily("apiserver_resource_objects", text, labels=["group", "resource"])
    for name in sorted({row.gvr.group_resource for row in metrics.table if "list" in row.verbs}):
        count = metrics.stored(name)
        stored.add_metric([str(name)], count)
        objects.add_metric(list(name), count)
    if not metrics.table.scheme.features.at_least("v1.37"):
        yield stored
    yield objects


def _aggregator_metrics(metrics: Metrics) -> Iterator[Metric]:
    gauge = GaugeMetricFamily("aggregator_unavailable_apiservice", "1 for one that isn't available", labels=["name"])
    for name, available in sorted(metrics.api_services().items()):
        gauge.add_metric([name], 0 if available else 1)
    yield gauge


def _instrument_metrics(instruments: Instruments) -> Iterator[Metric]:
    for family, numbers in instruments.numbers.items():
        kind = GaugeMetricFamily if family.gauge else CounterMetricFamily
        metric = kind(family.name.removesuffix("_total"), family.help, labels=family.labels)
        for values, number in sorted(numbers.items()) if family.labels else [((), numbers[()])]:
            metric.add_metric(values, number)
        yield metric
    for family, histograms in instruments.histograms.items():
        counted = sorted(
            ((values, histogram) for values, histogram in histograms.items() if histogram.count),
            key=lambda item: item[0],
        )
        shown = HistogramMetricFamily(family.name, family.help, labels=family.labels)
        for values, histogram in counted:
            shown.add_metric(values, histogram.buckets(), histogram.sum)
        yield shown
        if (attempts := _ATTEMPTS.get(family)) is not None:
            total = CounterMetricFamily(attempts.name, attempts.help, labels=attempts.labels)
            for values, histogram in counted:
                total.add_metric(values, histogram.count)
            yield total
        if family is STEP_SECONDS:
            summary = SummaryMetricFamily(f"{family.name}_summary", family.help, labels=family.labels)
            for values, histogram in counted:
                summary.add_metric(values, histogram.count, histogram.sum)
            yield summary


def render_health_checks(succeeded: Counter[tuple[str, str]]) -> bytes:
    """In Prometheus' text format, of the checks that succeeded: their number by name and endpoint."""
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

    def collect(self) -> Iterator[Metric]:
        return build_metrics(self._version)

    def describe(self) -> Iterator[Metric]:
        yield from ()


def build_metrics(version: discovery.Document) -> Iterator[Metric]:
    """`version` is what /version says."""
    build = GaugeMetricFamily("kubernetes_build_info", "What was built, and how", labels=list(_BUILD_FACTS))
    build.add_metric([version[name] for name in _BUILD_FACTS.values()], 1)
    yield build
    labels = ["binary", "component", "emulation", "min_compat"]
    info = GaugeMetricFamily("version_info", "The versions that the server behaves as", labels=labels)
    emulation = f"{version['emulationMajor']}.{version['emulationMinor']}"
    min_compat = f"{version['minCompatibilityMajor']}.{version['minCompatibilityMinor']}"
    info.add_metric([version["gitVersion"].removeprefix("v"), "kube", emulation, min_compat], 1)
    yield info


def _gate_metric(features: FeatureGates) -> Metric:
    """Upstream: k8s.io/component-base/metrics/prometheus/feature. General availability is a stage without a name."""
    gates = GaugeMetricFamily("kubernetes_feature_enabled", "1 for a gate that is on", labels=["name", "stage"])
    for gate, stage, on in sorted(features.stages()):
        gates.add_metric([gate, "" if stage == "GA" else stage], on)
    return gates


def _process_metrics() -> Iterator[Metric]:
    """Yields CPU time, memory and files of this process, if the system reports them."""
    for metric in ProcessCollector(registry=None).collect():
        if metric.name != "process_start_time_seconds":  # which is the server's own
            yield metric


def _without_dry_run(labels: tuple[str, ...]) -> list[str]:
    return [labels[0], *labels[2:]]


class _Collector:
    def __init__(self, metrics: Iterator[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        return self._metrics


def _rendered(metrics: Iterator[Metric]) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    shown = sorted((metric for metric in metrics if metric.samples), key=lambda metric: metric.name)
    registry.register(_Collector(iter(shown)))
    return generate_latest(registry)
