"""Persistent volumes: born pending, with the time of each change of phase.

Upstream: pkg/registry/core/persistentvolume/strategy.go, pkg/apis/core/v1/defaults.go.
"""

from typing import Final

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, is_terminating, metadata
from fakeapiserver.apis.spec_difference import difference
from fakeapiserver.registry.core.node_label_warnings import node_term_warnings
from fakeapiserver.registry.core.pod_template import default_azure_disk, default_host_path
from fakeapiserver.registry.core.pod_warnings import DEPRECATED_VOLUMES
from fakeapiserver.registry.core.resource_list import quantity, round_up_resources
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import UNSET, access_modes, age, storage_class

_SPEC: Final = Path("spec")
_ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_POLICIES: Final = ("Delete", "Recycle", "Retain")
_MODES: Final = ("Block", "Filesystem")
# What of a spec doesn't tell where the volume is.
_NO_SOURCES: Final = frozenset(
    (
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    )
)
_DEPRECATED_ANNOTATIONS: Final = {
    "volume.beta.kubernetes.io/storage-class": 'deprecated since v1.8; use "storageClassName" attribute instead',
    "volume.beta.kubernetes.io/mount-options": 'deprecated since v1.31; use "mountOptions" attribute instead',
}
_DEPRECATED_SOURCES: Final = ("cephfs", "photonPersistentDisk", "scaleIO", "storageos", "glusterfs", "rbd")
_RECYCLE: Final = (
    "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning."
)
_SOURCE_IMMUTABLE: Final = "spec.persistentvolumesource is immutable after creation"


class PersistentVolumeStrategy(Strategy, kw_only=True):
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

    def warnings_on_create(self, obj: Object) -> list[str]:
        spec, annotations = obj["spec"], metadata(obj).get("annotations") or {}
        at = Path("metadata.annotations")
        found = [f"{at.key(key)}: {text}" for key, text in _DEPRECATED_ANNOTATIONS.items() if key in annotations]
        if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
            found.append(f"spec.persistentVolumeReclaimPolicy: {_RECYCLE}")
        terms = ((spec.get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms") or ()
        for i, term in enumerate(terms):
            at = _SPEC.child("nodeAffinity").child("required").child("nodeSelectorTerms").index(i)
            found += node_term_warnings(term, at)
        shown = ((source, DEPRECATED_VOLUMES[source]) for source in _DEPRECATED_SOURCES if source in spec)
        return [*found, *(f"spec.{'storageOS' if name == 'storageos' else name}: {text}" for name, text in shown)]

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        return self.warnings_on_create(obj)

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

    def validate(self, obj: Object) -> ErrorList:
        return _spec_errors(obj["spec"])

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        errors = self.validate(obj)
        spec, before = obj["spec"], old.get("spec") or {}
        now, then = {k: spec[k] for k in _sources(spec)}, {k: before[k] for k in _sources(before)}
        if now != then:
            detail = f"{_SOURCE_IMMUTABLE}\n{difference(then, now, 'PersistentVolumeSource')}"
            errors.append(field.forbidden(_SPEC.child("persistentvolumesource"), detail))
        if spec.get("volumeMode") != before.get("volumeMode"):
            errors.append(field.invalid("volumeMode", spec.get("volumeMode"), "field is immutable"))
        return errors

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


def _sources(spec: Object) -> list[str]:
    return [name for name in spec if name not in _NO_SOURCES]


def _spec_errors(spec: Object) -> ErrorList:
    """ValidatePersistentVolumeSpec, in part."""
    modes = spec.get("accessModes") or ()
    path = _SPEC.child("accessModes")
    errors = [] if modes else [field.required(path)]
    errors += [field.not_supported(path, mode, _ACCESS_MODES) for mode in modes if mode not in _ACCESS_MODES]
    if "ReadWriteOncePod" in modes and any(mode in _ACCESS_MODES[:3] for mode in modes):
        errors.append(field.forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    errors += _capacity_errors(spec.get("capacity") or {}, _SPEC.child("capacity"))
    policy = spec.get("persistentVolumeReclaimPolicy", "")
    if policy not in _POLICIES:
        errors.append(field.not_supported(_SPEC.child("persistentVolumeReclaimPolicy"), policy, _POLICIES))
    sources = _sources(spec)
    if not sources:
        errors.append(field.required(_SPEC, "must specify a volume type"))
    detail = "may not specify more than 1 volume type"
    errors += [field.forbidden(_SPEC.child(source), detail) for source in sources[1:]]
    if spec.get("volumeMode") not in _MODES:
        errors.append(field.not_supported(_SPEC.child("volumeMode"), spec.get("volumeMode"), _MODES))
    return errors


def _capacity_errors(capacity: dict[str, str], path: Path) -> ErrorList:
    errors = [] if capacity else [field.required(path)]
    if list(capacity) != ["storage"]:
        errors.append(field.not_supported(path, capacity or None, ("storage",)))
    for name, amount in capacity.items():
        if quantity(amount) <= 0:
            errors.append(field.invalid(path.key(name), amount, "must be greater than zero"))
    return errors
