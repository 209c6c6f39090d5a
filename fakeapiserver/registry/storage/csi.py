"""CSI drivers, nodes and capacities, and volume attachments.

Upstream: pkg/registry/storage/{csidriver,csinode,csistoragecapacity,volumeattachment}/strategy.go.
"""

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.core.field_formats import name_errors
from fakeapiserver.registry.core.node_label_warnings import node_selector_warnings
from fakeapiserver.registry.generic.label_selector import immutable_errors, label_selector_errors
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import NONE, UNSET, age

_FLAGS = ("podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount")
_TOKENS_LOGGED = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging "
    "of tokens in volume attributes"
)


class CSIDriverStrategy(Strategy, kw_only=True):
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

    def warnings_on_create(self, obj: Object) -> list[str]:
        spec = obj["spec"]
        if spec.get("tokenRequests") and spec.get("serviceAccountTokenInSecrets") is None:
            return [_TOKENS_LOGGED]
        return []

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        same = obj["spec"].get("tokenRequests") == old["spec"].get("tokenRequests")
        return [] if same else self.warnings_on_create(obj)

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


class CSINodeStrategy(Strategy, kw_only=True):
    def table_row(self, obj: Object, now: float) -> Cells:
        drivers = (obj.get("spec") or {}).get("drivers") or ()
        return [metadata(obj).get("name", ""), len(drivers), age(obj, now)]


class CSIStorageCapacityStrategy(Strategy, kw_only=True):
    def warnings_on_create(self, obj: Object) -> list[str]:
        return node_selector_warnings(obj.get("nodeTopology"), Path("nodeTopology"))

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        return self.warnings_on_create(obj)

    def validate(self, obj: Object) -> ErrorList:
        errors = label_selector_errors(obj.get("nodeTopology"), Path("nodeTopology"))
        return errors + name_errors(
            obj.get("storageClassName", ""), names.is_dns1123_subdomain, Path("storageClassName")
        )

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        errors = immutable_errors(obj.get("nodeTopology"), old.get("nodeTopology"), Path("nodeTopology"))
        now, then = obj.get("storageClassName", ""), old.get("storageClassName", "")
        return errors + immutable_errors(now, then, Path("storageClassName"))


class VolumeAttachmentStrategy(Strategy, kw_only=True):
    def validate(self, obj: Object) -> ErrorList:
        spec, path = obj["spec"], Path("spec")
        errors: ErrorList = [] if spec.get("attacher") else [field.required(path.child("attacher"))]
        errors += _source_errors(spec.get("source") or {}, path.child("source"))
        return errors + name_errors(spec.get("nodeName", ""), names.is_dns1123_subdomain, path.child("nodeName"))

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        if obj["spec"] == old["spec"]:
            return []
        spec = obj["spec"]
        source = spec.get("source") or {}
        shown = {
            "Attacher": spec.get("attacher", ""),
            "Source": {
                "PersistentVolumeName": source.get("persistentVolumeName"),
                "InlineVolumeSpec": source.get("inlineVolumeSpec"),
            },
            "NodeName": spec.get("nodeName", ""),
        }
        return [field.invalid("spec", shown, "field is immutable")]

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


def _source_errors(source: Object, path: Path) -> ErrorList:
    volume, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
    detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if volume is None and inline is None:
        return [field.required(path, detail)]
    if volume is not None and inline is not None:
        return [field.forbidden(path, detail)]
    if volume == "":
        return [field.required(path.child("persistentVolumeName"), "must specify non empty persistentVolumeName")]
    return []
