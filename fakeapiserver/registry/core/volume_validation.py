"""What a pod's volumes may say: names, one source each, and what a source must name.

Upstream: pkg/apis/core/validation/validation.go (ValidateVolumes). Sources that are seldom used are taken as they are.
"""

from typing import Final

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.registry.core.field_formats import required_label_errors
from fakeapiserver.registry.core.resource_list import quantity

# The order in which upstream looks at the sources: of two the later one is refused.
_ORDER: Final = (
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
)
# Source -> fields that it must name.
_REQUIRED: Final = {
    "hostPath": ("path",),
    "gitRepo": ("repository",),
    "secret": ("secretName",),
    "nfs": ("server", "path"),
    "persistentVolumeClaim": ("claimName",),
    "configMap": ("name",),
    "ephemeral": ("volumeClaimTemplate",),
}
# What upstream calls some sources where it refuses them as the second one.
_CALLED: Final = {"cephfs": "cephFS", "downwardAPI": "downwarAPI", "scaleIO": "scaleIO"}
_HOST_PATH_TYPES: Final = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)


def volume_errors(volumes: list[Object], path: Path) -> tuple[set[str], ErrorList]:
    """The names of the volumes that are fine, and what is wrong with the others."""
    errors: ErrorList = []
    fine: set[str] = set()
    for i, volume in enumerate(volumes):
        at, name = path.index(i), volume.get("name", "")
        found = _source_errors(volume, at) + required_label_errors(name, at.child("name"))
        if name in fine:
            found.append(field.duplicate(at.child("name"), name))
        if not found:
            fine.add(name)
        errors += found
    return fine, errors


def _source_errors(volume: Object, path: Path) -> ErrorList:
    sources = [source for source in _ORDER if source in volume]
    if not sources:
        return [field.required(path, "must specify a volume type")]
    first, *others = sources
    errors = _one_source_errors(first, volume[first], path.child(first))
    detail = "may not specify more than 1 volume type"
    return errors + [field.forbidden(path.child(_CALLED.get(other, other)), detail) for other in others]


def _one_source_errors(kind: str, source: Object, path: Path) -> ErrorList:
    errors = [field.required(path.child(name)) for name in _REQUIRED.get(kind, ()) if not source.get(name)]
    if kind == "hostPath" and source.get("type", "") not in _HOST_PATH_TYPES:
        errors.append(field.not_supported(path.child("type"), source["type"], _HOST_PATH_TYPES))
    if kind == "emptyDir" and quantity(source.get("sizeLimit", "0")) < 0:
        detail = "SizeLimit field must be a valid resource quantity"
        errors.append(field.forbidden(path.child("sizeLimit"), detail))
    mode = source.get("defaultMode")
    if mode is not None and not 0 <= mode <= 0o777:
        detail = "must be a number between 0 and 0777 (octal), both inclusive"
        errors.append(field.invalid(path.child("defaultMode"), mode, detail))
    return errors
