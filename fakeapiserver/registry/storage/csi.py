"""CSI drivers, nodes and capacities, and volume attachments.

Upstream: pkg/registry/storage/{csidriver,csinode,csistoragecapacity,volumeattachment}/strategy.go.
"""

from dataclasses import dataclass

from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.core.table_cells import NONE, UNSET, age
from fakeapiserver.registry.generic.strategy import Cells, Strategy

_FLAGS = ("podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount")


@dataclass(kw_only=True)
class CSIDriverStrategy(Strategy):
    def raises_generation(self, obj: Object, old: Object) -> bool:
        """Upstream never sets a first generation, but counts on."""
        return obj.get("spec") != old.get("spec")

    def default(self, obj: Object, version: str) -> None:
        spec = obj["spec"]
        spec.setdefault("attachRequired", True)
        for name in _FLAGS:
            spec.setdefault(name, False)
        spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
        if not spec.get("volumeLifecycleModes"):
            spec["volumeLifecycleModes"] = ["Persistent"]

    def table_row(self, obj: Object, now: float) -> Cells:
        spec = obj.get("spec") or {}
        requests = spec.get("tokenRequests")
        return [
            metadata(obj).get("name", ""),
            spec.get("attachRequired", True),
            spec.get("podInfoOnMount", False),
            spec.get("storageCapacity", False),
            UNSET if requests is None else ",".join(request.get("audience", "") for request in requests),
            spec.get("requiresRepublish", False),
            ",".join(spec.get("volumeLifecycleModes") or ()) or NONE,
            age(obj, now),
        ]


@dataclass(kw_only=True)
class CSINodeStrategy(Strategy):
    def table_row(self, obj: Object, now: float) -> Cells:
        drivers = (obj.get("spec") or {}).get("drivers") or ()
        return [metadata(obj).get("name", ""), len(drivers), age(obj, now)]


@dataclass(kw_only=True)
class VolumeAttachmentStrategy(Strategy):
    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {"attached": False}

    def table_row(self, obj: Object, now: float) -> Cells:
        spec = obj.get("spec") or {}
        return [
            metadata(obj).get("name", ""),
            spec.get("attacher", ""),
            (spec.get("source") or {}).get("persistentVolumeName", ""),
            spec.get("nodeName", ""),
            (obj.get("status") or {}).get("attached", False),
            age(obj, now),
        ]
