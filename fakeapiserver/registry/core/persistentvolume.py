"""Persistent volumes: born pending, with the time of each change of phase.

Upstream: pkg/registry/core/persistentvolume/strategy.go, pkg/apis/core/v1/defaults.go.
"""

from dataclasses import dataclass

from fakeapiserver.apimachinery.meta import Object, is_terminating, metadata
from fakeapiserver.registry.core.pod_template import default_azure_disk, default_host_path
from fakeapiserver.registry.core.resource_list import round_up_resources
from fakeapiserver.registry.core.table_cells import UNSET, access_modes, age, storage_class
from fakeapiserver.registry.generic.strategy import Cells, Strategy


@dataclass(kw_only=True)
class PersistentVolumeStrategy(Strategy):
    def default(self, obj: Object, version: str) -> None:
        obj.setdefault("status", {}).setdefault("phase", "Pending")
        spec = obj.setdefault("spec", {})
        spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
        spec.setdefault("volumeMode", "Filesystem")
        round_up_resources(spec, ("capacity",))
        if "hostPath" in spec:
            default_host_path(spec["hostPath"])
        if "azureDisk" in spec:
            default_azure_disk(spec["azureDisk"])

    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {"phase": "Pending"}
        if now := metadata(obj).get("creationTimestamp"):
            obj["status"]["lastPhaseTransitionTime"] = now

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        super().prepare_for_status_update(obj, old)
        status, before = obj.setdefault("status", {}), old.get("status") or {}
        then = before.get("lastPhaseTransitionTime")
        changed_at = status.get("lastPhaseTransitionTime")
        if status.get("phase") == before.get("phase"):
            if changed_at is None and then is not None:
                status["lastPhaseTransitionTime"] = then
        elif changed_at is None or changed_at == then:
            status["lastPhaseTransitionTime"] = _time_of_write(obj)

    def table_row(self, obj: Object, now: float) -> Cells:
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        claim = spec.get("claimRef")
        return [
            metadata(obj).get("name", ""),
            (spec.get("capacity") or {}).get("storage", "0"),
            access_modes(spec.get("accessModes")),
            spec.get("persistentVolumeReclaimPolicy", ""),
            "Terminating" if is_terminating(obj) else status.get("phase", ""),
            f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim is not None else "",
            storage_class(obj),
            spec.get("volumeAttributesClassName", UNSET),
            status.get("reason", ""),
            age(obj, now),
            spec.get("volumeMode", UNSET),
        ]


def _time_of_write(obj: Object) -> str:
    """The field managers' entries have just been stamped for this write."""
    meta = metadata(obj)
    times = [entry.get("time") or "" for entry in meta.get("managedFields") or ()]
    return max([*times, meta.get("creationTimestamp") or ""])
