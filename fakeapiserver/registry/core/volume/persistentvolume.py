"""Persistent volumes: born pending, with the time of each change of phase.

Upstream: pkg/registry/core/persistentvolume/strategy.go, pkg/apis/core/v1/defaults.go,
pkg/apis/core/validation/validation.go (ValidatePersistentVolume…), pkg/volume/validation/pv_validation.go.
"""

from collections.abc import Sequence
from functools import partial
from posixpath import normpath
from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, is_terminating, metadata
from fakeapiserver.apis.internal_form import internal_form
from fakeapiserver.apis.spec_difference import difference
from fakeapiserver.registry.core.field_formats import basic_resource_errors, name_errors, positive_amount_errors
from fakeapiserver.registry.core.node.label_warnings import node_term_warnings
from fakeapiserver.registry.core.node.selector_validation import node_selector_errors
from fakeapiserver.registry.core.pod.template import default_azure_disk, default_host_path
from fakeapiserver.registry.core.pod.warnings import DEPRECATED_VOLUMES
from fakeapiserver.registry.core.resource_list import round_up_resources
from fakeapiserver.registry.core.volume.sources import (
    PERSISTENT_SOURCES,
    SourceErrors,
    iscsi_errors,
    one_source_errors,
)
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import UNSET, access_modes, age, storage_class

_SPEC: Final = Path("spec")
_ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_POLICIES: Final = ("Delete", "Recycle", "Retain")
VOLUME_MODES: Final = ("Block", "Filesystem")
_MOUNT_OPTIONS: Final = "volume.beta.kubernetes.io/mount-options"
_MOUNTED_WITH_OPTIONS: Final = (
    *("gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "nfs", "rbd", "quobyte", "iscsi", "cinder", "cephfs"),
    *("azureFile", "vsphereVolume", "azureDisk", "photonPersistentDisk"),
)
_NEW_LABELS: Final = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}
_NOT_INLINE: Final = "may not be specified in the context of inline volumes"
_DEPRECATED_ANNOTATIONS: Final = {
    "volume.beta.kubernetes.io/storage-class": 'deprecated since v1.8; use "storageClassName" attribute instead',
    _MOUNT_OPTIONS: 'deprecated since v1.31; use "mountOptions" attribute instead',
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
        default_persistent_source(spec)

    def warnings_on_create(self, obj: Object) -> list[str]:
        spec, annotations = obj["spec"], metadata(obj).get("annotations") or {}
        at = Path("metadata.annotations")
        warnings = [f"{at.key(key)}: {text}" for key, text in _DEPRECATED_ANNOTATIONS.items() if key in annotations]
        if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
            warnings.append(f"spec.persistentVolumeReclaimPolicy: {_RECYCLE}")
        terms = ((spec.get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms") or ()
        for i, term in enumerate(terms):
            at = _SPEC.child("nodeAffinity").child("required").child("nodeSelectorTerms").index(i)
            warnings += node_term_warnings(term, at)
        deprecations = ((source, DEPRECATED_VOLUMES[source]) for source in _DEPRECATED_SOURCES if source in spec)
        return [
            *warnings,
            *(f"spec.{'storageOS' if name == 'storageos' else name}: {text}" for name, text in deprecations),
        ]

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
        if status.get("phase") == before.get("phase"):
            if "lastPhaseTransitionTime" in before:
                status.setdefault("lastPhaseTransitionTime", then)
        elif status.get("lastPhaseTransitionTime", then) == then:
            status["lastPhaseTransitionTime"] = _time_of_write(obj)

    def validate(self, obj: Object) -> ErrorList:
        spec, annotations = obj["spec"], metadata(obj).get("annotations") or {}
        errors = volume_spec_errors(spec, _SPEC, metadata(obj).get("name", ""))
        if _MOUNT_OPTIONS in annotations and not any(name in spec for name in _MOUNTED_WITH_OPTIONS):
            at = Path("metadata.annotations").child(_MOUNT_OPTIONS)
            errors.append(field.forbidden(at, "may not specify mount options for this volume type"))
        return errors

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        spec, before = obj["spec"], old.get("spec") or {}
        errors = volume_spec_errors(spec, _SPEC, metadata(obj).get("name", ""))
        now, then = _source(spec), _source(before)
        if "csi" in now and "csi" in then and "controllerExpandSecretRef" not in then["csi"]:
            # It may be given later.
            now["csi"] = {key: value for key, value in now["csi"].items() if key != "controllerExpandSecretRef"}
        if now != then:
            changed = difference(_SOURCE_IMMUTABLE, then, now, "PersistentVolumeSource")
            errors.append(field.forbidden(_SPEC.child("persistentvolumesource"), changed))
        if spec.get("volumeMode") != before.get("volumeMode"):
            errors.append(
                field.invalid("volumeMode", field.json_text(spec.get("volumeMode", "")), "field is immutable")
            )
        if not self.features.enabled("MutablePVNodeAffinity"):
            errors += _affinity_update_errors(spec.get("nodeAffinity"), before.get("nodeAffinity"))
        if "volumeAttributesClassName" in before and "volumeAttributesClassName" not in spec:
            detail = "update from non-nil value to nil is forbidden"
            errors.append(field.forbidden(_SPEC.child("volumeAttributesClassName"), detail))
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
    """The time of this write, which the field managers' entries already have."""
    meta = metadata(obj)
    times = [entry.get("time") or "" for entry in meta.get("managedFields") or ()]
    return max([*times, meta.get("creationTimestamp") or ""])


def _source(spec: Object) -> Object:
    return {name: spec[name] for name in PERSISTENT_SOURCES if name in spec}


def default_persistent_source(spec: Object) -> None:
    if "hostPath" in spec:
        default_host_path(spec["hostPath"])
    if "azureDisk" in spec:
        default_azure_disk(spec["azureDisk"])


def volume_spec_errors(spec: Object, path: Path, name: str, *, inline: bool = False) -> ErrorList:
    """The errors in a PersistentVolumeSpec, of a volume of this name or, `inline`, of an attachment."""
    errors = _inline_errors(spec, path) if inline else []
    modes, at = spec.get("accessModes") or (), path.child("accessModes")
    errors += access_mode_errors(modes, at) if modes else [field.required(at)]
    if not inline:
        errors += _capacity_errors(spec.get("capacity") or {}, path.child("capacity"))
    errors += _policy_errors(spec.get("persistentVolumeReclaimPolicy", ""), path, inline)
    affinity = spec.get("nodeAffinity")
    if affinity is not None:
        at = path.child("nodeAffinity")
        errors += [field.forbidden(at, _NOT_INLINE)] if inline else _affinity_errors(affinity, at)

    def rest_errors(source: str, looked_at: bool) -> ErrorList:
        if source != "local" or not looked_at or (affinity is not None and not inline):
            return []
        return [field.required(path.child("nodeAffinity"), "Local volume requires node affinity")]

    sources: dict[str, SourceErrors] = {**PERSISTENT_SOURCES, "iscsi": partial(iscsi_errors, volume=name)}
    errors += one_source_errors(spec, sources, path, rest_errors, never_refused=("flexVolume",))
    errors += _root_errors(spec, path)
    return errors + _class_and_mode_errors(spec, path, inline)


def access_mode_errors(modes: Sequence[str], path: Path) -> ErrorList:
    """The errors in the access modes of a volume or claim. Each reports a missing list in its own words."""
    errors = [field.not_supported(path, mode, _ACCESS_MODES) for mode in modes if mode not in _ACCESS_MODES]
    if "ReadWriteOncePod" in modes and any(mode in _ACCESS_MODES[:3] for mode in modes):
        errors.append(field.forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return errors


def _inline_errors(spec: Object, path: Path) -> ErrorList:
    errors = [field.forbidden(path.child("claimRef"), _NOT_INLINE)] if "claimRef" in spec else []
    errors += [field.forbidden(path.child("capacity"), _NOT_INLINE)] if spec.get("capacity") else []
    if "csi" not in spec:
        errors.append(field.required(path.child("csi"), "has to be specified in the context of inline volumes"))
    return errors


def _capacity_errors(capacity: dict[str, str], path: Path) -> ErrorList:
    errors = [] if capacity else [field.required(path)]
    if list(capacity) != ["storage"]:
        errors.append(field.not_supported(path, dict(sorted(capacity.items())) or None, ("storage",)))
    for name, amount in capacity.items():
        errors += basic_resource_errors(amount, path.key(name)) + positive_amount_errors(amount, path.key(name))
    return errors


def _policy_errors(policy: str, path: Path, inline: bool) -> ErrorList:
    path = path.child("persistentVolumeReclaimPolicy")
    if not policy or policy == "Retain":
        return []
    if inline:
        return [field.forbidden(path, "may only be Retain in the context of inline volumes")]
    return [] if policy in _POLICIES else [field.not_supported(path, policy, _POLICIES)]


def _affinity_errors(affinity: Object, path: Path) -> ErrorList:
    required = affinity.get("required")
    if required is None:
        return [field.required(path.child("required"), "must specify required node constraints")]
    return node_selector_errors(required, path.child("required"))


def _root_errors(spec: Object, path: Path) -> ErrorList:
    host_path = (spec.get("hostPath") or {}).get("path", "")
    root = host_path.startswith("/") and normpath(host_path) in ("/", "//")
    if not root or spec.get("persistentVolumeReclaimPolicy") != "Recycle":
        return []
    detail = "may not be 'recycle' for a hostPath mount of '/'"
    return [field.forbidden(path.child("persistentVolumeReclaimPolicy"), detail)]


def _class_and_mode_errors(spec: Object, path: Path, inline: bool) -> ErrorList:
    errors: ErrorList = []
    if name := spec.get("storageClassName"):
        at = path.child("storageClassName")
        errors += [field.forbidden(at, _NOT_INLINE)] if inline else name_errors(name, names.is_dns1123_subdomain, at)
    mode, at = spec.get("volumeMode", "Filesystem"), path.child("volumeMode")
    if inline and mode != "Filesystem":
        detail = "may not specify volumeMode other than Filesystem in the context of inline volumes"
        errors.append(field.forbidden(at, detail))
    elif mode not in VOLUME_MODES:
        errors.append(field.not_supported(at, mode, VOLUME_MODES))
    if (attributes := spec.get("volumeAttributesClassName")) is not None and not inline:
        at = path.child("volumeAttributesClassName")
        errors += name_errors(attributes, names.is_dns1123_subdomain, at) if attributes else [_empty_class(at)]
        if "csi" not in spec:
            detail = "has to be specified when using volumeAttributesClassName"
            errors.append(field.required(path.child("csi"), detail))
    return errors


def _empty_class(path: Path) -> field.Error:
    return field.required(path, "an empty string is disallowed")


def _affinity_update_errors(affinity: Object | None, before: Object | None) -> ErrorList:
    """The error for a changed node affinity; only deprecated labels may be renamed."""
    if before is None or _renamed(affinity, before) == before:
        return []
    go_affinity = None if affinity is None else internal_form(affinity, "VolumeNodeAffinity")
    return [field.invalid("nodeAffinity", go_affinity, "field is immutable, except for updating from beta label to GA")]


def _renamed(affinity: Object | None, before: Object) -> Object | None:
    """The new affinity, with the old names of labels where the old one has them in the same places. Upstream takes none for
    the new name of a label that has no other."""
    terms, old_terms = _terms(affinity), _terms(before)
    if affinity is None or len(terms) != len(old_terms):
        return affinity
    renamed = [
        {key: _renamed_list(value, old_term.get(key) or []) for key, value in term.items()}
        for term, old_term in zip(terms, old_terms, strict=True)
    ]
    return {**affinity, "required": {**affinity["required"], "nodeSelectorTerms": renamed}}


def _terms(affinity: Object | None) -> list[Object]:
    return ((affinity or {}).get("required") or {}).get("nodeSelectorTerms") or []


def _renamed_list(requirements: list[Object], before: list[Object]) -> list[Object]:
    if len(requirements) != len(before):
        return requirements
    return [
        {**new, "key": old["key"]} if _NEW_LABELS.get(old.get("key", ""), "") == new.get("key", "") else new
        for new, old in zip(requirements, before, strict=True)
    ]
