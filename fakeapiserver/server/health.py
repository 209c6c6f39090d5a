"""/healthz, /livez and /readyz, whole or by single check, with `verbose` and `exclude`.

Upstream: k8s.io/apiserver/pkg/server/healthz/healthz.go. The checks carry kube-apiserver's names. Everything they stand for is
done before the server listens, so a check can only fail while the server shuts down (readyz).
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from fakeapiserver.apimachinery.field import go_quote
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
# Hooks that there are only while a gate is on.
_GATES: Final[Mapping[str, str]] = {
    "start-kube-apiserver-coordinated-leader-election-controller": "CoordinatedLeaderElection",
    "peer-endpoint-reconciler-controller": "UnknownVersionInteroperabilityProxy",
    "start-kube-apiserver-identity-lease-controller": "APIServerIdentity",
    "start-kube-apiserver-identity-lease-garbage-collector": "APIServerIdentity",
    "storage-readiness": "WatchCacheInitializationPostStartHook",
    "built-in-resources-storage-version-updater": "StorageVersionAPI",
}
_LIVE: Final = ("ping", "log", "loopback-serving-certificate", "etcd")
_FIRST: Final[Mapping[str, tuple[str, ...]]] = {
    "healthz": _LIVE,
    "livez": _LIVE,
    "readyz": ("ping", "log", "etcd", "etcd-readiness", "informer-sync"),
}


def checks_of(endpoint: str, features: FeatureGates) -> tuple[str, ...]:
    """The names of the checks of healthz, livez or readyz, in their order."""
    hooks = (hook for hook in _HOOKS if hook not in _GATES or features.enabled(_GATES[hook]))
    named = (*(f"poststarthook/{hook}" for hook in hooks), "autoregister-completion")
    last = ("shutdown",) if endpoint == "readyz" else ()
    return (*_FIRST[endpoint], *named, *(f"poststarthook/{hook}" for hook in _OPENAPI_HOOKS), *last)


_WITHHELD: Final = {"shutdown": "process is shutting down"}


def health(
    path: str,
    query: Query,
    counted: Counter[tuple[str, str]],
    features: FeatureGates,
    *,
    shutting_down: bool = False,
) -> Response | None:
    """/healthz, /livez or /readyz, or one of its checks; None for a check that doesn't exist.

    Each check that succeeds is counted under its name and endpoint."""
    endpoint, slash, check = path[1:].partition("/")
    checks = checks_of(endpoint, features)
    failed = {"shutdown"} if shutting_down else set()
    if slash:
        if check not in checks:
            return None
        return respond.text(500, f"internal server error: {_WITHHELD[check]}\n") if check in failed else _single()
    return aggregated(endpoint, checks, failed, query, counted)


def aggregated(
    endpoint: str, checks: Sequence[str], failing: Collection[str], query: Query, counted: Counter[tuple[str, str]]
) -> Response:
    """All checks of an endpoint, in their order; each that succeeds is counted under its name and endpoint."""
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


def _single() -> Response:
    return Response(200, b"ok", "text/plain; charset=utf-8")
