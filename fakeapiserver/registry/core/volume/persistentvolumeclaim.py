"""Persistent volume claims: born pending, their two ways to name a data source kept as one.

Upstream: pkg/registry/core/persistentvolumeclaim/strategy.go, pkg/api/persistentvolumeclaim/util.go.
"""

from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, is_terminating, metadata
from fakeapiserver.apis.spec_difference import difference
from fakeapiserver.registry.core.field_formats import basic_resource_errors, name_errors, positive_amount_errors
from fakeapiserver.registry.core.pod.template import default_claim_spec
from fakeapiserver.registry.core.pod.warnings import claim_warnings
from fakeapiserver.registry.core.resource_list import quantity, round_up_resources
from fakeapiserver.registry.core.volume.persistentvolume import VOLUME_MODES, access_mode_errors
from fakeapiserver.registry.core.volume.sources import required_errors
from fakeapiserver.registry.generic.label_selector import label_selector_errors
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import UNSET, access_modes, age, storage_class

_SPEC: Final = Path("spec")
_RESIZE_STATUSES: Final = (
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
)
_SOURCES: Final = (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))

_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_OLD_CLASS: Final = 'deprecated since v1.8; use "storageClassName" attribute instead'
_IMMUTABLE: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)


class PersistentVolumeClaimStrategy(Strategy, kw_only=True):
    def default(self, obj: Object, version: str) -> None:
        status = obj.setdefault("status", {})
        status.setdefault("phase", "Pending")
        round_up_resources(status, ("capacity", "allocatedResources"))
        default_claim_spec(obj.setdefault("spec", {}))

    def warnings_on_create(self, obj: Object) -> list[str]:
        old_class = _CLASS in (metadata(obj).get("annotations") or {})
        warnings = [f"{Path('metadata.annotations').key(_CLASS)}: {_OLD_CLASS}"] if old_class else []
        return [*warnings, *claim_warnings(obj["spec"], _SPEC)]

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        return self.warnings_on_create(obj)

    def prepare_for_create(self, obj: Object) -> None:
        # Upstream leaves the phase to the defaults of the next read, which its answer already shows.
        obj["status"] = {"phase": "Pending"}
        _settle_data_source(obj["spec"], {}, self.features.enabled("CrossNamespaceVolumeDataSource"))

    def shows_more_than_stored(self, obj: Object) -> bool:
        return True

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        super().prepare_for_update(obj, old)
        _settle_data_source(obj["spec"], old.get("spec") or {}, self.features.enabled("CrossNamespaceVolumeDataSource"))

    def validate(self, obj: Object) -> ErrorList:
        return claim_spec_errors(obj.get("spec") or {}, _SPEC)

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        before = old.get("spec") or {}
        known = any("apiGroup" in (before.get(name) or {}) for name in ("dataSource", "dataSourceRef"))
        return claim_spec_errors(obj["spec"], _SPEC, any_api_group=known) + _update_errors(obj, old)

    def validate_status_update(self, obj: Object, old: Object) -> ErrorList:
        return _status_errors(obj.get("status") or {}, Path("status"))

    def table_row(self, obj: Object, now: float) -> Cells:
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        volume = spec.get("volumeName", "")
        return [
            metadata(obj).get("name", ""),
            "Terminating" if is_terminating(obj) else status.get("phase", ""),
            volume,
            (status.get("capacity") or {}).get("storage", "0") if volume else "",
            access_modes(status.get("accessModes")) if volume else "",
            storage_class(obj),
            spec.get("volumeAttributesClassName", UNSET),
            age(obj, now),
            spec.get("volumeMode", UNSET),
        ]


def claim_spec_errors(spec: Object, path: Path, *, any_api_group: bool = False) -> ErrorList:
    """The errors in a claim's spec (ValidatePersistentVolumeClaimSpec). `any_api_group`: API groups of data
    sources aren't checked, because the old claim has some."""
    modes = spec.get("accessModes") or ()
    at = path.child("accessModes")
    errors: ErrorList = [] if modes else [field.required(at, "at least 1 access mode is required")]
    errors += label_selector_errors(spec.get("selector"), path.child("selector"))
    errors += access_mode_errors(modes, at)
    storage, at = ((spec.get("resources") or {}).get("requests") or {}).get("storage"), path.child("resources")
    errors += [field.required(at.key("storage"))] if storage is None else []
    errors += positive_amount_errors(storage, at.key("storage")) if storage is not None else []
    if spec.get("storageClassName"):
        errors += name_errors(spec["storageClassName"], names.is_dns1123_subdomain, path.child("storageClassName"))
    if (mode := spec.get("volumeMode", "Filesystem")) not in VOLUME_MODES:
        errors.append(field.not_supported(path.child("volumeMode"), mode, VOLUME_MODES))
    for name in ("dataSource", "dataSourceRef"):
        if (source := spec.get(name)) is not None:
            errors += _data_source_errors(source, path.child(name), any_api_group)
    errors += _two_sources_errors(spec.get("dataSource"), spec.get("dataSourceRef"), path)
    if attributes := spec.get("volumeAttributesClassName"):
        errors += name_errors(attributes, names.is_dns1123_subdomain, path.child("volumeAttributesClassName"))
    return errors


def _data_source_errors(source: Object, path: Path, any_api_group: bool) -> ErrorList:
    group, kind = source.get("apiGroup") or "", source.get("kind", "")
    errors = required_errors(source, path, "name", "kind")
    if not group and kind != "PersistentVolumeClaim":
        detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        errors.append(field.invalid(path, kind, detail))
    if group and not any_api_group:
        errors += name_errors(group, names.is_dns1123_subdomain, path.child("apiGroup"))
    if namespace := source.get("namespace"):
        errors += name_errors(namespace, names.is_dns1123_label, path.child("namespace"))
    return errors


def _two_sources_errors(source: Object | None, reference: Object | None, path: Path) -> ErrorList:
    """The error for a dataSource and a dataSourceRef that differ. Upstream shows the field's path as the value: an empty struct."""
    if source is None or reference is None:
        return []
    if reference.get("namespace"):
        return [field.invalid(path, {}, "may not be specified when dataSourceRef.namespace is specified")]
    same = all(source.get(name) == reference.get(name) for name in ("apiGroup", "kind", "name"))
    return [] if same else [field.invalid(path, {}, "must match dataSourceRef")]


def _status_errors(status: Object, path: Path) -> ErrorList:
    errors: ErrorList = []
    for name, amount in (status.get("capacity") or {}).items():
        errors += basic_resource_errors(amount, path.child("capacity").key(name))
    at = path.child("allocatedResourceStatuses")
    for name, state in (status.get("allocatedResourceStatuses") or {}).items():
        errors += _resource_key_errors(name, at)
        if state not in _RESIZE_STATUSES:
            errors.append(field.not_supported(at, name, _RESIZE_STATUSES))
    at = path.child("allocatedResources")
    for name, amount in (status.get("allocatedResources") or {}).items():
        errors += _resource_key_errors(name, at) or basic_resource_errors(amount, at.key(name))
    return errors


def _resource_key_errors(name: str, path: Path) -> ErrorList:
    if errors := name_errors(name, names.is_qualified_name, path):
        return errors
    native = "/" not in name or "kubernetes.io/" in name
    return [field.not_supported(path, name, ("storage",))] if native and name != "storage" else []


def _update_errors(obj: Object, old: Object) -> ErrorList:
    """The errors for changes of a claim's spec: only its volume can be set once and, when bound, its size and attributes changed."""
    spec, before = obj["spec"], old.get("spec") or {}
    munged, kept = dict(spec), dict(before)
    if not before.get("volumeName"):
        _take("volumeName", spec, kept)
    annotated = (metadata(old).get("annotations") or {}).get(_CLASS)
    if "storageClassName" not in before and annotated in (None, spec.get("storageClassName")):
        # A claim without a class may be given one.
        munged.pop("storageClassName", None)
    asked, held = _storage(spec), _storage(before)
    if (obj.get("status") or {}).get("phase") == "Bound":
        _take("volumeAttributesClassName", before, munged)
        resources = spec.get("resources") or {}
        if held and resources.get("requests"):
            munged["resources"] = {**resources, "requests": {**resources["requests"], "storage": held}}
    errors: ErrorList = []
    new = (metadata(obj).get("annotations") or {}).get(_CLASS)
    upgraded = annotated is not None and "storageClassName" not in before and spec.get("storageClassName") == annotated
    if not (upgraded and new in (None, annotated)) and (new or "") != (annotated or ""):
        errors.append(field.invalid(Path("metadata.annotations").child(_CLASS), new or "", "field is immutable"))
    if _compared(munged) != _compared(kept):
        errors.append(field.forbidden(_SPEC, difference(_IMMUTABLE, kept, munged, "PersistentVolumeClaimSpec")))
    capacity = ((obj.get("status") or {}).get("capacity") or {}).get("storage", "0")
    if quantity(asked) < quantity(held) and quantity(asked) <= quantity(capacity):
        path = _SPEC.child("resources", "requests", "storage")
        errors.append(field.forbidden(path, "field can not be less than status.capacity"))
    if spec.get("volumeMode") != before.get("volumeMode"):
        errors.append(field.invalid("volumeMode", field.json_text(spec.get("volumeMode", "")), "field is immutable"))
    name = "volumeAttributesClassName"
    if spec.get(name) != before.get(name) and "currentVolumeAttributesClassName" in (old.get("status") or {}):
        target = "nil" if spec.get(name) is None else "empty string"
        if not spec.get(name):
            detail = f"update to {target} is forbidden when status.currentVolumeAttributesClassName is not nil"
            errors.append(field.forbidden(_SPEC.child(name), detail))
    return errors


def _compared(spec: Object) -> Object:
    """The spec with quantities as numbers, for comparisons."""
    amounts = {
        name: {resource: quantity(text) for resource, text in (resources or {}).items()}
        for name, resources in (spec.get("resources") or {}).items()
    }
    return {**spec, "resources": amounts}


def _storage(spec: Object) -> str:
    return str(((spec.get("resources") or {}).get("requests") or {}).get("storage", ""))


def _take(name: str, source: Object, target: Object) -> None:
    target.pop(name, None)
    if name in source:
        target[name] = source[name]


def _settle_data_source(spec: Object, before: Object, crossing: bool) -> None:
    """Fills each of dataSource and dataSourceRef from the other; dataSource takes claims and snapshots only."""
    known = "dataSource" in before or "dataSourceRef" in before
    if not known:
        _drop_unknown_source(spec, crossing)
    source, target = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and target is None:
        spec["dataSourceRef"] = dict(source)
    elif target is not None and source is None and not target.get("namespace"):
        spec["dataSource"] = {key: value for key, value in target.items() if key != "namespace"}


def _drop_unknown_source(spec: Object, crossing: bool) -> None:
    """`crossing`: whether claims may be filled from another namespace."""
    if not crossing and (spec.get("dataSourceRef") or {}).get("namespace"):
        del spec["dataSourceRef"]
    source = spec.get("dataSource")
    if source is None or "dataSourceRef" in spec:
        return
    if (source.get("apiGroup") or "", source.get("kind", "")) not in _SOURCES:
        del spec["dataSource"]
