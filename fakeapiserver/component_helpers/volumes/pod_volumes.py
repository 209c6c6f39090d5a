"""The claims that pods use (upstream: pkg/controller/volume/common, k8s.io/component-helpers/storage/ephemeral)."""

from collections.abc import Iterable, Iterator
from typing import Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.cache.indexer import Indexer
from fakeapiserver.client.cache.shared_informer import SharedInformer
from fakeapiserver.component_helpers.objects import controller_of, is_terminating
from fakeapiserver.component_helpers.pods import add_indexer, is_pod_terminal
from fakeapiserver.controller_runtime.reconcile import Request

# Index: pods by `namespace/name` of their claims, those that are made for them included.
POD_PVC_INDEX: Final = "pod-pvc-index"
_STATUSES: Final = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")


def add_pod_pvc_indexer(informer: SharedInformer) -> Indexer:
    """The informer's indexer, with POD_PVC_INDEX."""
    return add_indexer(informer, POD_PVC_INDEX, _by_claim)


def _by_claim(pod: Object) -> Iterable[str]:
    return [str(claim) for claim in claims_of(pod)]


def claims_of(pod: Object) -> Iterator[Request]:
    """Yields the claims of all volumes of a pod."""
    namespace = pod["metadata"].get("namespace", "")
    for volume in pod["spec"].get("volumes") or ():
        if name := claim_name(pod, volume):
            yield Request(namespace, name)


def claim_name(pod: Object, volume: Object) -> str:
    """Returns the name of the claim behind a volume, or ""."""
    if volume.get("persistentVolumeClaim") is not None:
        name: str = volume["persistentVolumeClaim"]["claimName"]
        return name
    return f"{pod['metadata']['name']}-{volume['name']}" if volume.get("ephemeral") is not None else ""


def is_for_pod(pod: Object, claim: Object) -> bool:
    """The claim was made for a volume of this very pod."""
    owner = controller_of(claim)
    same = claim["metadata"].get("namespace") == pod["metadata"].get("namespace")
    return same and owner is not None and owner["uid"] == pod["metadata"]["uid"]


def has_pod_ended(pod: Object) -> bool:
    """Reports whether the pod no longer needs its volumes: it ended, or it is being deleted and no container runs."""
    if is_pod_terminal(pod):
        return True
    status = pod.get("status", {})
    statuses = (container_status for kind in _STATUSES for container_status in status.get(kind) or ())
    return is_terminating(pod) and not any(_runs(container_status.get("state") or {}) for container_status in statuses)


def _runs(state: Object) -> bool:
    return state.get("terminated") is None and state.get("waiting") is None
