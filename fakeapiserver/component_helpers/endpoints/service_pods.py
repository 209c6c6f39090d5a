"""The pods behind a service, and their state as endpoints.

Upstream: k8s.io/endpointslice/util/{controller_utils,trigger_time_tracker}.go, k8s.io/endpointslice/utils.go.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.cache.indexer import NAMESPACE_INDEX, Indexer
from fakeapiserver.component_helpers.objects import is_terminating, labels_of
from fakeapiserver.component_helpers.pods import is_pod_ready, is_pod_terminal, pod_condition
from fakeapiserver.controller_runtime.event import Event, UpdateEvent
from fakeapiserver.controller_runtime.reconcile import Request

LAST_CHANGE_TRIGGER_TIME: Final = "endpoints.kubernetes.io/last-change-trigger-time"
HEADLESS: Final = "service.kubernetes.io/headless"
# Who leads by an Endpoints writes it there.
LEADER: Final = "control-plane.alpha.kubernetes.io/leader"


def pods_of(pods: Indexer, service: Object) -> Sequence[Object]:
    """The pods that the service's selector selects."""
    selector = service["spec"]["selector"]
    return [
        pod
        for pod in pods.by_index(NAMESPACE_INDEX, service["metadata"]["namespace"])
        if _selects(selector, labels_of(pod))
    ]


def services_of_event(services: Indexer, event: Event) -> Iterator[Request]:
    """The services that have to be looked at after what happened to a pod; none after what no service can see."""
    if not isinstance(event, UpdateEvent):
        yield from _services_of(services, event.object)
        return
    old, new = event.object_old, event.object_new
    if old["metadata"].get("resourceVersion") == new["metadata"].get("resourceVersion"):
        return
    changed = _changed(old, new)
    if _place(old) == _place(new):
        if changed:
            yield from _services_of(services, new)
        return
    before, after = {*_services_of(services, old)}, {*_services_of(services, new)}
    yield from sorted(before | after if changed else before ^ after)


def _services_of(services: Indexer, pod: Object) -> Iterator[Request]:
    labels = labels_of(pod)
    for service in services.by_index(NAMESPACE_INDEX, pod["metadata"]["namespace"]):
        selector = service["spec"].get("selector")
        if selector is not None and _selects(selector, labels):
            yield Request(service["metadata"]["namespace"], service["metadata"]["name"])


def _selects(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    return selector.items() <= labels.items()  # quick: every pod of a namespace is asked for every service


def _place(pod: Object) -> tuple[object, ...]:
    """Returns what decides to which services a pod belongs, and under which name."""
    return labels_of(pod), pod["spec"].get("hostname"), pod["spec"].get("subdomain")


def _changed(old: Object, new: Object) -> bool:
    """An endpoint would look different."""
    return (
        is_terminating(old)
        or is_terminating(new)
        or is_pod_ready(old) != is_pod_ready(new)
        or pod_ips(old) != pod_ips(new)
    )


def pod_ips(pod: Object) -> Sequence[str]:
    """Returns the addresses in the pod's status."""
    return [row["ip"] for row in pod.get("status", {}).get("podIPs") or ()]


def should_pod_be_in_endpoints(pod: Object, *, include_terminating: bool) -> bool:
    """Reports whether the pod has an address and has not ended."""
    status = pod.get("status") or {}
    if is_pod_terminal(pod) or not (status.get("podIP") or status.get("podIPs")):
        return False
    return include_terminating or not is_terminating(pod)


def should_set_hostname(pod: Object, service: Object) -> bool:
    """Its name is known in the service's domain."""
    spec = pod["spec"]
    return bool(spec.get("hostname")) and spec.get("subdomain") == service["metadata"]["name"]


def find_port(pod: Object, service_port: Mapping[str, object]) -> int | None:
    """The pod's port that the service's port stands for; None: it has none by that name."""
    target = service_port.get("targetPort", 0)
    if isinstance(target, int):
        return target
    spec = pod["spec"]
    sidecars = (
        candidate for candidate in spec.get("initContainers") or () if candidate.get("restartPolicy") == "Always"
    )
    for container in (*spec["containers"], *sidecars):
        for port in container.get("ports") or ():
            if port.get("name") == target and port.get("protocol") == service_port.get("protocol"):
                candidate: int = port["containerPort"]
                return candidate
    return None


def is_service_ip_set(service: Object) -> bool:
    """Reports whether the service has a cluster IP: it isn't headless."""
    return service["spec"].get("clusterIP", "") not in ("", "None")


def has_no_endpoints_of_ours(service: Object) -> bool:
    """Reports whether other clients write the service's endpoints, or it can't have any."""
    spec = service["spec"]
    return spec.get("type") == "ExternalName" or spec.get("selector") is None


class TriggerTimeTracker:
    """Computes, for each service, the earliest time of the changes since the last call.

    Times are in wire format and UTC, so that they sort; "" is no time.
    """

    def __init__(self) -> None:
        self._services: dict[Request, tuple[str, Mapping[str, str]]] = {}

    def compute(self, request: Request, service: Object, pods: Iterable[Object]) -> str:
        """Returns the earliest time of the changes since the last call; for a service seen for the first time, its
        creation.
        """
        known = self._services.get(request)
        last_service, last_pods = known or ("", {})
        times: dict[str, str] = {}
        new = []
        for pod in pods:
            condition = pod_condition(pod, "Ready")
            time = (condition or {}).get("lastTransitionTime") or ""
            if time:
                name = pod["metadata"]["name"]
                times[name] = time
                if time > last_pods.get(name, ""):
                    new.append(time)
        created: str = service["metadata"].get("creationTimestamp") or ""
        if created > last_service:
            new.append(created)
        self._services[request] = (created, times)
        return min(new, default="") if known is not None else created

    def forget(self, request: Request) -> None:
        """The service is gone."""
        self._services.pop(request, None)
