"""The rules for a pod's volumes: names, one source each, what a source must name, and the files it makes.

Upstream: pkg/apis/core/validation/validation.go (ValidateVolumes).
"""

from collections.abc import Mapping, Sequence
from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.core.field_formats import (
    choice_errors,
    descending_path_errors,
    local_path_errors,
    name_errors,
    required_label_errors,
)
from fakeapiserver.registry.core.pod.downward_api_validation import field_ref_errors, resource_ref_errors
from fakeapiserver.registry.core.resource_list import quantity
from fakeapiserver.registry.core.template_metadata import template_meta_errors
from fakeapiserver.registry.core.volume import pod_certificate_validation, trust_bundle_validation
from fakeapiserver.registry.core.volume.persistentvolumeclaim import claim_spec_errors
from fakeapiserver.registry.core.volume.sources import (
    INITIATOR_TOO_LONG,
    SHARED_SOURCES,
    SourceErrors,
    cinder_errors,
    csi_driver_errors,
    iscsi_errors,
    iscsi_name_is_long,
    one_source_errors,
    required_errors,
    storageos_errors,
)

_MAX_DIRECTORY_MODE: Final = 0o1777
_MODE: Final = "must be a number between 0 and 0777 (octal), both inclusive"
_FIELDS: Final = (
    *("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace"),
    "metadata.uid",
)
_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_LEAST_SECONDS: Final = 600
_MOST_SECONDS: Final = 2**32
_CONFLICT: Final = "conflicting duplicate paths"
_OWN_CLAIM: Final = "must not reference a PVC that gets created for an ephemeral volume"


def volume_errors(volumes: Sequence[Object], path: Path, meta: Object | None) -> tuple[dict[str, Object], ErrorList]:
    """The valid volumes by name, and the errors in the others. `meta` is the metadata of a pod, None in templates."""
    errors: ErrorList = []
    fine: dict[str, Object] = {}
    pod = (meta or {}).get("name", "")
    created = {f"{pod}-{volume.get('name', '')}" for volume in volumes if pod and "ephemeral" in volume}
    for i, volume in enumerate(volumes):
        at, name = path.index(i), volume.get("name", "")
        own_errors = _source_errors(volume, at, meta) + required_label_errors(name, at.child("name"))
        if name in fine:
            own_errors.append(field.duplicate(at.child("name"), name))
        if not own_errors:
            fine[name] = volume
        errors += own_errors
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName", "")
        if claim in created:
            errors.append(field.invalid(at.child("persistentVolumeClaim", "claimName"), claim, _OWN_CLAIM))
    return fine, errors


def _source_errors(volume: Object, path: Path, meta: Object | None) -> ErrorList:
    rules = _OF_TEMPLATES if meta is None else _OF_PODS
    given = [name for name in volume if name in rules]
    name = volume.get("name", "")

    def rest_errors(source: str, looked_at: bool) -> ErrorList:
        if source == "iscsi" and iscsi_name_is_long(name, volume["iscsi"]):
            return [field.invalid(path.child("name"), name, INITIATOR_TOO_LONG)]
        pod = (meta or {}).get("name")
        if source != "ephemeral" or not looked_at or not pod or not name:
            return []
        claim = f"{pod}-{name}"
        problems = names.is_dns1123_subdomain(claim)
        return [field.invalid(path.child("name"), name, f"PVC name {go_quote(claim)}: {text}") for text in problems]

    # Upstream's order matters where there are several only.
    return one_source_errors(
        volume, rules if len(given) > 1 else {name: rules[name] for name in given}, path, rest_errors
    )


def _empty_dir_errors(source: Object, path: Path) -> ErrorList:
    detail = "SizeLimit field must be a valid resource quantity"
    negative = quantity(source.get("sizeLimit", "0")) < 0
    errors = [field.forbidden(path.child("sizeLimit"), detail)] if negative else []
    mode = source.get("mode")
    if mode is not None and not 0 <= mode <= _MAX_DIRECTORY_MODE:
        detail = "must be a number between 0 and 01777 (octal), both inclusive"
        errors.append(field.invalid(path.child("mode"), mode, detail))
    return errors


def _git_repo_errors(source: Object, path: Path) -> ErrorList:
    errors = required_errors(source, path, "repository")
    return errors + descending_path_errors(source.get("directory", ""), path.child("directory"))


def _claim_errors(source: Object, path: Path) -> ErrorList:
    return required_errors(source, path, "claimName")


def _csi_errors(source: Object, path: Path) -> ErrorList:
    errors = csi_driver_errors(source.get("driver", ""), path.child("driver"))
    if (secret := source.get("nodePublishSecretRef")) is None:
        return errors
    if not (name := secret.get("name")):
        return [*errors, field.required(path.child("nodePublishSecretRef", "name"))]
    return errors + name_errors(name, names.is_dns1123_subdomain, path.child("name"))


def _image_errors(source: Object, path: Path) -> ErrorList:
    return choice_errors(source.get("pullPolicy", ""), _PULL_POLICIES, path.child("pullPolicy"))


def _image_of_pod_errors(source: Object, path: Path) -> ErrorList:
    return required_errors(source, path, "reference") + _image_errors(source, path)


def _mode_errors(mode: int | None, path: Path) -> ErrorList:
    return [] if mode is None or 0 <= mode <= 0o777 else [field.invalid(path, mode, _MODE)]


def _secret_errors(source: Object, path: Path) -> ErrorList:
    return required_errors(source, path, "secretName") + _keys_errors(source, path)


def _config_map_errors(source: Object, path: Path) -> ErrorList:
    return required_errors(source, path, "name") + _keys_errors(source, path)


def _keys_errors(source: Object, path: Path) -> ErrorList:
    errors = _mode_errors(source.get("defaultMode"), path.child("defaultMode"))
    for i, item in enumerate(source.get("items") or ()):
        errors += _key_to_path_errors(item, path.child("items").index(i))
    return errors


def _key_to_path_errors(item: Object, path: Path) -> ErrorList:
    errors = [field.required(path.child(name)) for name in ("key", "path") if not item.get(name)]
    errors += local_path_errors(item.get("path", ""), path.child("path"))
    return errors + _mode_errors(item.get("mode"), path.child("mode"))


def _downward_errors(source: Object, path: Path) -> ErrorList:
    """The errors in a downward API volume. Upstream reports those in its files at the volume itself."""
    errors = _mode_errors(source.get("defaultMode"), path.child("defaultMode"))
    return errors + [error for item in source.get("items") or () for error in _downward_file_errors(item, path)]


def _downward_file_errors(item: Object, path: Path) -> ErrorList:
    file_path, at = item.get("path", ""), path.child("path")
    errors = ([] if file_path else [field.required(at)]) + local_path_errors(file_path, at)
    of_field, of_resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if of_field is not None:
        errors += field_ref_errors(of_field, _FIELDS, path.child("fieldRef"))
        if of_resource is not None:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            errors.append(field.invalid(path, "resource", detail))
    elif of_resource is not None:
        errors += resource_ref_errors(of_resource, path.child("resourceFieldRef"), in_volume=True)
    else:
        errors.append(field.required(path, "one of fieldRef and resourceFieldRef is required"))
    return errors + _mode_errors(item.get("mode"), path.child("mode"))


def _projected_errors(volume: Object, path: Path) -> ErrorList:
    errors = _mode_errors(volume.get("defaultMode"), path.child("defaultMode"))
    places: set[str] = set()
    for i, source in enumerate(volume.get("sources") or ()):
        at = path.child("sources").index(i)
        for kind in ("secret", "configMap"):
            if kind in source:
                errors += _keys_projection_errors(source[kind], places, at.child(kind), path)
        if "downwardAPI" in source:
            for item in source["downwardAPI"].get("items") or ():
                errors += _downward_file_errors(item, at.child("downwardAPI"))
                errors += _place_errors(item.get("path", ""), places, item.get("path", ""), path)
        if "serviceAccountToken" in source:
            errors += _token_errors(source["serviceAccountToken"], at.child("serviceAccountToken"), path)
        if "clusterTrustBundle" in source:
            errors += _trust_bundle_errors(source["clusterTrustBundle"], places, at.child("clusterTrustBundle"), path)
        if "podCertificate" in source:
            errors += _pod_certificate_errors(source["podCertificate"], places, at.child("podCertificate"), path)
        if len(source) > 1:
            errors.append(field.forbidden(at, "may not specify more than 1 volume type per source"))
    return errors


def _keys_projection_errors(source: Object, places: set[str], path: Path, volume: Path) -> ErrorList:
    errors = [] if source.get("name") else [field.required(path.child("name"))]
    for i, item in enumerate(source.get("items") or ()):
        errors += _key_to_path_errors(item, path.child("items").index(i))
        errors += _place_errors(item.get("path", ""), places, source.get("name", ""), volume)
    return errors


def _place_errors(place: str, places: set[str], shown: str, path: Path) -> ErrorList:
    """The errors in a file's path in the volume, which must be the path of one source only."""
    if not place or place not in places:
        places.add(place)
        return []
    return [field.invalid(path, shown, _CONFLICT)]


def _pod_certificate_errors(source: Object, places: set[str], path: Path, volume: Path) -> ErrorList:
    return pod_certificate_validation.pod_certificate_errors(
        source, path, lambda place: _place_errors(place, places, place, volume)
    )


def _trust_bundle_errors(source: Object, places: set[str], path: Path, volume: Path) -> ErrorList:
    return trust_bundle_validation.trust_bundle_errors(
        source, path, lambda place: _repeated_errors(place, places, volume)
    )


def _repeated_errors(place: str, places: set[str], path: Path) -> ErrorList:
    """The errors for a path that another item has; an empty path is allowed."""
    if place not in places:
        places.add(place)
        return []
    return [field.invalid(path, place, _CONFLICT)]


def _token_errors(token: Object, path: Path, volume: Path) -> ErrorList:
    seconds, at = token.get("expirationSeconds", 0), path.child("expirationSeconds")
    errors: ErrorList = []
    if seconds < _LEAST_SECONDS:
        errors.append(field.invalid(at, seconds, "may not specify a duration less than 10 minutes"))
    if seconds > _MOST_SECONDS:
        errors.append(field.invalid(at, seconds, "may not specify a duration larger than 2^32 seconds"))
    if not token.get("path"):
        return [*errors, field.required(volume.child("path"))]
    return errors + local_path_errors(token["path"], volume.child("path"))


def _ephemeral_errors(source: Object, path: Path) -> ErrorList:
    template, at = source.get("volumeClaimTemplate"), path.child("volumeClaimTemplate")
    if template is None:
        return [field.required(at)]
    errors = template_meta_errors(metadata(template), at.child("metadata"))
    return errors + claim_spec_errors(template.get("spec") or {}, at.child("spec"))


_ONLY_OF_PODS: Final[Mapping[str, SourceErrors]] = {
    "emptyDir": _empty_dir_errors,
    "gitRepo": _git_repo_errors,
    "secret": _secret_errors,
    "iscsi": lambda source, path: iscsi_errors(source, path, says_how=True),
    "persistentVolumeClaim": _claim_errors,
    "cinder": lambda source, path: cinder_errors(source, path, "name"),
    "downwardAPI": _downward_errors,
    "configMap": _config_map_errors,
    "storageos": lambda source, path: storageos_errors(source, path, "name"),
    "projected": _projected_errors,
    "csi": _csi_errors,
    "ephemeral": _ephemeral_errors,
    "image": _image_of_pod_errors,
}
# The order in which upstream looks at the sources.
_ORDER: Final = (
    *("emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi"),
    *("glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte", "downwardAPI", "fc"),
    *("flexVolume", "configMap", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume"),
    *("azureDisk", "storageos", "projected", "scaleIO", "csi", "ephemeral", "image"),
)
_OF_PODS: Final = {name: _ONLY_OF_PODS.get(name) or SHARED_SOURCES[name] for name in _ORDER}
_OF_TEMPLATES: Final = {**_OF_PODS, "image": _image_errors}
