"""/healthz, /livez and /readyz, whole or by single check, with `verbose` and `exclude`.

The checks have kube-apiserver's names. What most of them stand for is done before the server listens. Two of readyz can fail:
`informer-sync`, until the controllers beside the server run and its simulated nodes are ready, and `shutdown`, while it shuts down.

Upstream: k8s.io/apiserver/pkg/server/healthz/healthz.go.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apis.feature_gates import FeatureGates
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.request import Query, Response

_HOOKS: Final = (
    "start-apiserver-admission-initializer",
    "generic-apiserver-start-informers",
    "priority-and-fairness-config-consumer",
    "priority-and-fairness-filter",
    "storage-object-count-tracker-hook",
    "start-apiextensions-informers",
    "start-apiextensions-controllers",
    "crd-informer-synced",
    "start-system-namespaces-controller",
    "start-kube-apiserver-coordinated-leader-election-controller",
    "peer-endpoint-reconciler-controller",
    "start-cluster-authentication-info-controller",
    "start-kube-apiserver-identity-lease-controller",
    "start-kube-apiserver-identity-lease-garbage-collector",
    "storage-readiness",
    "start-legacy-token-tracking-controller",
    "start-service-ip-repair-controllers",
    "rbac/bootstrap-roles",
    "scheduling/bootstrap-system-priority-classes",
    "priority-and-fairness-config-producer",
    "bootstrap-controller",
    "start-kubernetes-service-cidr-controller",
    "start-kube-aggregator-informers",
    "apiservice-status-local-available-controller",
    "apiservice-status-remote-available-controller",
    "apiservice-registration-controller",
    "apiservice-discovery-controller",
    "built-in-resources-storage-version-updater",
    "kube-apiserver-autoregistration",
)
_OPENAPI_HOOKS: Final = ("apiservice-openapi-controller", "apiservice-openapiv3-controller")
# Hooks that exist only while their gate is on.
_GATES: Final[Mapping[str, str]] = {
    "start-kube-apiserver-coordinated-leader-election-controller": "CoordinatedLeaderElection",
    "peer-endpoint-reconciler-controller": "UnknownVersionInteroperabilityProxy",
    "start-kube-apiserver-identity-lease-controller": "APIServerIdentity",
    "start-kube-apiserver-identity-lease-garbage-collector": "APIServerIdentity",
    "storage-readiness": "WatchCacheInitializationPostStartHook",
    "built-in-resources-storage-version-updater": "StorageVersionAPI",
}
_LIVE: Final = ("ping", "log", "loopback-serving-certificate", "etcd")
INFORMER_SYNC: Final = "informer-sync"
SHUTDOWN: Final = "shutdown"
ETCD_CHECKS: Final = ("etcd", "etcd-readiness")
# The checks before the hooks.
_FIRST: Final[Mapping[str, tuple[str, ...]]] = {
    "healthz": _LIVE,
    "livez": _LIVE,
    "readyz": ("ping", "log", "etcd", "etcd-readiness", INFORMER_SYNC),
}


# Path of a check's own -> the gate that it is there with.
GATED_CHECKS: Final[Mapping[str, str]] = {
    f"/{endpoint}/poststarthook/{hook}": gate for hook, gate in _GATES.items() for endpoint in _FIRST
}


def checks_of(endpoint: str, features: FeatureGates) -> tuple[str, ...]:
    """The names of an endpoint's checks (healthz, livez or readyz), in upstream's order."""
    hooks = (hook for hook in _HOOKS if hook not in _GATES or features.enabled(_GATES[hook]))
    named = (*(f"poststarthook/{hook}" for hook in hooks), "autoregister-completion")
    last = (SHUTDOWN,) if endpoint == "readyz" else ()
    return (*_FIRST[endpoint], *named, *(f"poststarthook/{hook}" for hook in _OPENAPI_HOOKS), *last)


# What a failed check says when it is asked alone; the whole endpoint withholds it.
_REASONS: Final = {
    SHUTDOWN: "process is shutting down",
    **dict.fromkeys(ETCD_CHECKS, "error getting data from etcd: context deadline exceeded"),
    INFORMER_SYNC: "the controllers or simulated nodes of this server aren't ready yet",
}


class HealthChecks:
    """The checks of one server. Each that succeeds is counted in `counted` by (name, endpoint)."""

    def __init__(self, features: FeatureGates, counted: Counter[tuple[str, str]]) -> None:
        self._checks = {endpoint: checks_of(endpoint, features) for endpoint in _FIRST}
        self._counted = counted

    def answer(self, path: str, query: Query, failed: Collection[str] = ()) -> Response | None:
        """The response for /healthz, /livez or /readyz, or for one check below it; None if there is no such check."""
        endpoint, slash, check = path[1:].partition("/")
        checks = self._checks[endpoint]
        if not slash:
            return aggregated(endpoint, checks, failed, query, self._counted)
        if check not in checks:
            return None
        if check in failed:
            return respond.text(500, f"internal server error: {_REASONS[check]}\n")
        return Response(200, b"ok", "text/plain; charset=utf-8")


def aggregated(
    endpoint: str, checks: Sequence[str], failing: Collection[str], query: Query, counted: Counter[tuple[str, str]]
) -> Response:
    """The response for a whole endpoint. Each check that succeeds is counted by (name, endpoint)."""
    excluded = set(query.get("exclude", ()))
    failed = (set(failing) - excluded) & set(checks)
    counted.update((name, endpoint) for name in checks if name not in excluded and name not in failed)
    if not failed and "verbose" not in query:
        return respond.text(200, "ok")
    lines = [_line(name, failed, excluded) for name in checks]
    if unknown := sorted(excluded - set(checks)):
        named = ",".join(map(go_quote, unknown))
        lines.append(f"warn: some health checks cannot be excluded: no matches for {named}")
    lines.append(f"{endpoint} check {'failed' if failed else 'passed'}")
    return respond.text(500 if failed else 200, "\n".join(lines) + "\n")


def _line(name: str, failed: set[str], excluded: set[str]) -> str:
    if name in excluded:
        return f"[+]{name} excluded: ok"
    return f"[-]{name} failed: reason withheld" if name in failed else f"[+]{name} ok"
