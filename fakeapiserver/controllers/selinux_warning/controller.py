"""Feeds the cache and reports its conflicts (upstream: pkg/controller/volume/selinuxwarning/selinux_warning_controller.go)."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from msgspec import Struct
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import (
    CSI_DRIVERS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    key_of,
)
from fakeapiserver.component_helpers.pods import is_pod_terminal, pod_phase
from fakeapiserver.component_helpers.volumes.csi_migration import DRIVERS, PLUGINS
from fakeapiserver.component_helpers.volumes.pod_volumes import (
    POD_PVC_INDEX,
    add_pod_pvc_indexer,
    claim_name,
    is_for_pod,
)
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import CreateEvent, DeleteEvent, Event, UpdateEvent
from fakeapiserver.controller_runtime.handler import Queue, request_for
from fakeapiserver.controller_runtime.reconcile import Request
from fakeapiserver.controller_runtime.source import Informer
from fakeapiserver.controllers.selinux_warning.volume_cache import RECURSIVE, Conflict, Use, VolumeCache, label_of

_QUEUE: Final = "selinux_warning"
_METRIC: Final = "selinux_warning_controller_selinux_volume_conflict"
_LABELS: Final = ("property", *(f"pod{number}_{name}" for number in (1, 2) for name in ("namespace", "name", "value")))
_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")


class VolumeUnknown(Exception):
    """The volume can't be identified yet."""


class MultipleSELinuxLabels(Exception):
    """The containers of one pod don't agree."""


class _Source(NamedTuple):
    """A volume's. member: of its spec, `csi` or `nfs`. is_persistent: it is a PersistentVolume's."""

    member: str
    details: Object
    is_persistent: bool


class SELinuxWarningController:
    """Requests are pods."""

    def __init__(self, context: ControllerContext) -> None:
        self.cache = VolumeCache()
        self.pods = context.informer(PODS)
        self.claims = context.informer(PERSISTENT_VOLUME_CLAIMS)
        self.volumes = context.informer(PERSISTENT_VOLUMES)
        self.drivers = context.informer(CSI_DRIVERS)
        self._pods = add_pod_pvc_indexer(self.pods)
        self._recorder = context.recorder("selinux_warning")

    # -------------------------------------------------------------------------- what happened

    def pod_changed(self, event: Event, queue: Queue) -> None:
        """Queues a pod that is new, deleted or has ended: nothing else about it matters."""
        if not isinstance(event, UpdateEvent):
            queue.add(request_for(event.object))
        elif pod_phase(event.object_old) != pod_phase(event.object_new) and is_pod_terminal(event.object_new):
            queue.add(request_for(event.object_new))

    def claim_changed(self, event: Event, queue: Queue) -> None:
        """Queues the pods of a claim that was bound."""
        if isinstance(event, UpdateEvent):
            new = event.object_new
            changed = event.object_old["spec"].get("volumeName") != new["spec"].get("volumeName")
        else:
            new, changed = event.object, isinstance(event, CreateEvent) and bool(event.object["spec"].get("volumeName"))
        if changed:
            self._add_pods_of(key_of(new), queue)

    def volume_changed(self, event: Event, queue: Queue) -> None:
        """Queues the pods of a volume that was bound completely."""
        if isinstance(event, DeleteEvent):
            return
        new = event.object_new if isinstance(event, UpdateEvent) else event.object
        old = event.object_old if isinstance(event, UpdateEvent) else None
        claim = new["spec"].get("claimRef") or {}
        if claim.get("uid") and (old is None or (old["spec"].get("claimRef") or {}).get("uid") != claim["uid"]):
            self._add_pods_of(f"{claim['namespace']}/{claim['name']}", queue)

    def _add_pods_of(self, claim: str, queue: Queue) -> None:
        for pod in self._pods.by_index(POD_PVC_INDEX, claim):
            queue.add(request_for(pod))

    def driver_changed(self, event: Event, queue: Queue) -> None:
        """Queues the pods with volumes of a driver that begins or ceases to mount them with labels."""
        if isinstance(event, UpdateEvent):
            driver, changed = event.object_new, _mounts(event.object_old) != _mounts(event.object_new)
        else:
            driver, changed = event.object, isinstance(event, CreateEvent) or _mounts(event.object)
        if changed:
            for pod in self.cache.pods_of_driver(driver["metadata"]["name"]):
                queue.add(pod)

    # ------------------------------------------------------------------------------------- a look

    async def reconcile(self, request: Request) -> None:
        pod = self.pods.indexer.get_by_key(str(request))
        if pod is None or is_pod_terminal(pod):
            self.cache.delete_pod(request)
            return
        volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or ()}
        problems: list[Exception] = []
        for name, labels in _labels_of_mounts(pod).items():
            try:
                self._look_at(pod, volumes[name], labels)
            except (VolumeUnknown, MultipleSELinuxLabels) as problem:
                problems.append(problem)
        if problems:
            raise ExceptionGroup(f"pod {request}", problems)

    def _look_at(self, pod: Object, volume: Object, labels: set[str]) -> None:
        """Records the use of one of the pod's volumes."""
        source = self._source(pod, volume)
        if len(labels) > 1:
            problem = f'Volume "{volume["name"]}" is mounted twice with different SELinux labels inside this pod'
            self._recorder.event(pod, "Warning", "MultipleSELinuxLabels", problem)
            raise MultipleSELinuxLabels(problem)
        driver = _driver_of(source)
        if not driver and source.member not in _NAMES:
            return
        name = _unique_name(source, driver)
        supported = source.member in _LABELLED or (driver != "" and self._mounts_with_label(driver))
        policy = (pod["spec"].get("securityContext") or {}).get("seLinuxChangePolicy") or "MountOption"
        label = next(iter(labels), "") if supported and policy != RECURSIVE else ""
        use = Use(label, policy if supported and label else RECURSIVE)
        self._tell(self.cache.add_volume(name, request_for(pod), use, driver))

    def _tell(self, conflicts: Iterable[Conflict]) -> None:
        for conflict in conflicts:
            pod = self.pods.indexer.get_by_key(str(conflict.pod))
            if pod is None:
                return  # with the pod its conflicts are gone
            self._recorder.event(pod, "Normal", conflict.reason, conflict.message)

    def _mounts_with_label(self, driver: str) -> bool:
        csi_driver = self.drivers.indexer.get_by_key(driver)
        return csi_driver is not None and _mounts(csi_driver)

    def _source(self, pod: Object, volume: Object) -> _Source:
        """The persistent volume's, where the pod names a claim. VolumeUnknown while that isn't bound."""
        name = claim_name(pod, volume)
        if not name:
            [(member, details)] = ((key, value) for key, value in volume.items() if key != "name")
            return _Source(member, details, is_persistent=False)
        key = f"{pod['metadata']['namespace']}/{name}"
        claim = self.claims.indexer.get_by_key(key)
        if claim is None or (volume.get("ephemeral") is not None and not is_for_pod(pod, claim)):
            raise VolumeUnknown(f"failed to find PVC {key}")
        bound = claim["spec"].get("volumeName", "")
        if not bound or (claim.get("status") or {}).get("phase") != "Bound":
            raise VolumeUnknown(f"PVC {key} is not bound")
        volume_object = self.volumes.indexer.get_by_key(bound)
        if (
            volume_object is None
            or (volume_object["spec"].get("claimRef") or {}).get("uid") != claim["metadata"]["uid"]
        ):
            raise VolumeUnknown(f"PV {bound} is not bound to PVC {key}")
        member = next((key for key in volume_object["spec"] if key in _MEMBERS), "")
        return _Source(member, volume_object["spec"].get(member) or {}, is_persistent=True)


def _mounts(driver: Object) -> bool:
    return bool((driver.get("spec") or {}).get("seLinuxMount"))


def _labels_of_mounts(pod: Object) -> dict[str, set[str]]:
    """Names of the volumes that containers mount -> the labels of these, where they have any."""
    of_pod = (pod["spec"].get("securityContext") or {}).get("seLinuxOptions")
    mounts: dict[str, set[str]] = {}
    for container in (container for kind in _CONTAINERS for container in pod["spec"].get(kind) or ()):
        options = (container.get("securityContext") or {}).get("seLinuxOptions")
        options = options if options is not None else of_pod
        for mount in container.get("volumeMounts") or ():
            labels = mounts.setdefault(mount["name"], set())
            if options is not None:
                labels.add(label_of(options))
    return mounts


# ------------------------------------------------------------------------------------- volumes' names

# Volumes that are mounted with a label, whatever a driver says.
_LABELLED: Final = ("fc", "iscsi")
# Plugins of kube-controller-manager's, by the member of the spec that is theirs.
_NAMES: Final = {
    "fc": "kubernetes.io/fc",
    "iscsi": "kubernetes.io/iscsi",
    "hostPath": "kubernetes.io/host-path",
    "nfs": "kubernetes.io/nfs",
    "csi": "kubernetes.io/csi",
}
_MEMBERS: Final = frozenset((*_NAMES, *PLUGINS))


def _driver_of(source: _Source) -> str:
    """The CSI driver that serves it; "" for none."""
    if source.member == "csi":
        return str(source.details.get("driver", ""))
    return DRIVERS[PLUGINS[source.member]] if source.member in PLUGINS else ""


def _unique_name(source: _Source, driver: str) -> str:
    """Returns a name that is equal for equal volumes (upstream: the plugins' GetVolumeName)."""
    details = source.details
    if source.member == "csi":
        if not source.is_persistent:
            raise VolumeUnknown("failed to extract volume source from spec: it is a pod's own")
        return f"{_NAMES['csi']}/{driver}^{details['volumeHandle']}"
    if source.member == "iscsi":
        parts: Any = (details["targetPortal"], details["iqn"], details["lun"])
    elif source.member == "fc":
        parts = (details.get("targetWWNs"), details.get("lun")) if details.get("targetWWNs") else details.get("wwids")
    else:
        parts = details
    return f"{_NAMES.get(source.member, driver)}/{json.dumps(parts, sort_keys=True)}"


# ------------------------------------------------------------------------------------- its metric


class _Conflicts(Struct, frozen=True):
    """The cache's conflicts as metrics; a source without events, which ends with its controller."""

    cache: VolumeCache
    registry: CollectorRegistry

    async def start(self, queue: Queue) -> None:
        self.registry.register(self)

    async def wait_for_sync(self) -> None:
        """Returns at once: nothing exists in the beginning."""

    def stop(self) -> None:
        self.registry.unregister(self)

    def collect(self) -> Iterator[Metric]:
        family = GaugeMetricFamily(_METRIC, "Conflict between two Pods using the same volume", labels=_LABELS)
        for kind, pod, value, other, other_value in sorted(self.cache.conflicts):
            family.add_metric([kind, *pod, value, *other, other_value], 1.0)
        yield family


def new(context: ControllerContext) -> Sequence[Controller]:
    reconciler = SELinuxWarningController(context)
    controller = context.controller(reconciler, name=_QUEUE)
    controller.add_source(_Conflicts(reconciler.cache, context.shared.metrics.registry))
    for informer, handler in (
        (reconciler.pods, reconciler.pod_changed),
        (reconciler.claims, reconciler.claim_changed),
        (reconciler.volumes, reconciler.volume_changed),
        (reconciler.drivers, reconciler.driver_changed),
    ):
        controller.add_source(Informer(informer, handler))
    return [controller]
