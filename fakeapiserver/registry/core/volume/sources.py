"""Validation of volume sources: those that persistent volumes and pods' volumes share, and those of persistent volumes.

Upstream: pkg/apis/core/validation/validation.go (validate…VolumeSource).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.registry.core.field_formats import name_errors, no_backsteps_errors, required_label_errors

SourceErrors = Callable[[Object, Path], ErrorList]

HOST_PATH_TYPES: Final = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
# What upstream calls some sources where it refuses them as the second one, and where it finds fault with them.
_REFUSED_AS: Final = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
_FOUND_AT: Final = {"gcePersistentDisk": "persistentDisk"}
_UP_TO_255: Final = "must be between 0 and 255, inclusive"
_PARTITION: Final = "must be between 1 and 255, inclusive"
_HOST_PORTS: Final = "must be a host:port pair or multiple pairs separated by commas"
_TENANT: Final = "must be a UUID and may not exceed a length of 64 characters"
_MAX_TENANT: Final = 64
_MAX_DRIVER: Final = 63
_MAX_NAME_AND_PORTAL: Final = 64
INITIATOR_TOO_LONG: Final = (
    "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters "
    "if iscsi.initiatorName is specified."
)
# The ways to name an initiator or a target of iSCSI, by how they begin.
_ISCSI_NAMES: Final = {
    "iqn": re.compile(r"iqn\.[0-9]{4}-[0-9]{2}\.[0-9A-Za-z\-.]+:[^,;*&$|\t\n\f\r ]+\Z"),
    "eui": re.compile(r"\Aeui.[0-9A-Za-z]{16}\Z"),
    "naa": re.compile(r"\Anaa.[0-9A-Za-z]{32}\Z"),
}
_MANAGED_DISK: Final = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
_BLOB_DISK: Final = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
_RESERVED: Final = (".kubernetes.io", ".k8s.io")


def one_source_errors(
    volume: Object,
    sources: Mapping[str, SourceErrors],
    path: Path,
    rest_errors: Callable[[str, bool], ErrorList],
    never_refused: Sequence[str] = (),
) -> ErrorList:
    """The errors in a volume's source, which must be the only one.
    `sources` are in upstream's order: the first one is looked at, the others are refused. `rest_errors`:
    what a source, looked at or not, asks of the rest of the volume."""
    errors: ErrorList = []
    count = 0
    for name, source_errors in sources.items():
        source = volume.get(name)
        if source is None:
            continue
        if count and name not in never_refused:
            detail = "may not specify more than 1 volume type"
            errors.append(field.forbidden(path.child(_REFUSED_AS.get(name, name)), detail))
        else:
            errors += source_errors(source, path.child(_FOUND_AT.get(name, name)))
        errors += rest_errors(name, not count)
        count += 1
    return errors if count else [*errors, field.required(path, "must specify a volume type")]


def csi_driver_errors(driver: str, path: Path) -> ErrorList:
    """The errors in the name of a CSI driver (ValidateCSIDriverName)."""
    if not driver:
        return [field.required(path)]
    errors = [field.too_long(path, _MAX_DRIVER)] if len(driver.encode()) > _MAX_DRIVER else []
    return errors + [field.invalid(path, driver, text) for text in names.is_dns1123_subdomain(driver.lower())]


def required_errors(source: Object, path: Path, *fields: str) -> ErrorList:
    return [field.required(path.child(name)) for name in fields if not source.get(name)]


def secret_errors(source: Object, path: Path, *fields: str) -> ErrorList:
    """The errors in an optional reference to a secret."""
    secret = source.get("secretRef")
    return [] if secret is None else required_errors(secret, path.child("secretRef"), *fields)


def _requiring(*fields: str) -> SourceErrors:
    return lambda source, path: required_errors(source, path, *fields)


def host_path_errors(source: Object, path: Path) -> ErrorList:
    if errors := required_errors(source, path, "path"):
        return errors
    kind = source.get("type", "")
    errors = no_backsteps_errors(source["path"], path.child("path"))
    if kind not in HOST_PATH_TYPES:
        errors.append(field.not_supported(path.child("type"), kind, HOST_PATH_TYPES))
    return errors


def _disk_of(name: str) -> SourceErrors:
    """Returns the check of a cloud's disk, named by this field, and its partition."""

    def errors(source: Object, path: Path) -> ErrorList:
        source_errors = required_errors(source, path, name)
        partition = source.get("partition", 0)
        if not 0 <= partition <= 255:
            source_errors.append(field.invalid(path.child("partition"), partition, _PARTITION))
        return source_errors

    return errors


def _nfs_errors(source: Object, path: Path) -> ErrorList:
    errors = required_errors(source, path, "server", "path")
    if not (text := source.get("path", "")).startswith("/"):
        errors.append(field.invalid(path.child("path"), text, "must be an absolute path"))
    return errors


def _flocker_errors(source: Object, path: Path) -> ErrorList:
    name, uuid = source.get("datasetName", ""), source.get("datasetUUID", "")
    errors: ErrorList = []
    if not name and not uuid:
        errors.append(field.required(path, "one of datasetName and datasetUUID is required"))
    if name and uuid:
        detail = "datasetName and datasetUUID can not be specified simultaneously"
        errors.append(field.invalid(path, "resource", detail))
    if "/" in name:
        errors.append(field.invalid(path.child("datasetName"), name, "must not contain '/'"))
    return errors


def _quobyte_errors(source: Object, path: Path) -> ErrorList:
    registry = source.get("registry", "")
    errors: ErrorList = []
    if not registry:
        errors.append(field.required(path.child("registry"), _HOST_PORTS))
    elif len(source.get("tenant", "").encode()) > _MAX_TENANT:
        errors.append(field.required(path.child("tenant"), _TENANT))
    else:
        wrong = [pair for pair in registry.split(",") if not _is_host_and_port(pair)]
        errors += [field.invalid(path.child("registry"), registry, _HOST_PORTS) for _ in wrong]
    return errors + required_errors(source, path, "volume")


def _is_host_and_port(text: str) -> bool:
    """Reports whether Go's net.SplitHostPort accepts the text: one colon, or a host in brackets."""
    host, colon, port = text.rpartition(":")
    if not colon or set(port) & set("[]"):
        return False
    if host.startswith("["):
        return host.endswith("]") and not set(host[1:-1]) & set("[]")
    return not set(host) & set(":[]")


def _fc_errors(source: Object, path: Path) -> ErrorList:
    targets, lun = source.get("targetWWNs"), source.get("lun")
    errors: ErrorList = []
    if not targets and not source.get("wwids"):
        detail = "must specify either targetWWNs or wwids, but not both"
        errors.append(field.required(path.child("targetWWNs"), detail))
    if targets and source.get("wwids"):
        detail = "targetWWNs and wwids can not be specified simultaneously"
        errors.append(field.invalid(path.child("targetWWNs"), targets, detail))
    if targets and lun is None:
        errors.append(field.required(path.child("lun"), "lun is required if targetWWNs is specified"))
    elif targets and lun is not None and not 0 <= lun <= 255:
        errors.append(field.invalid(path.child("lun"), lun, _UP_TO_255))
    return errors


def _flex_errors(source: Object, path: Path) -> ErrorList:
    errors = required_errors(source, path, "driver")
    for option in source.get("options") or ():
        if f".{option.partition('/')[0].lower()}".endswith(_RESERVED):
            detail = "kubernetes.io and k8s.io namespaces are reserved"
            errors.append(field.invalid(path.child("options").key(option), option, detail))
    return errors


def _azure_file_errors(source: Object, path: Path) -> ErrorList:
    errors = required_errors(source, path, "secretName", "shareName")
    if source.get("secretNamespace") == "":
        errors.append(field.required(path.child("secretNamespace")))
    return errors


def _azure_disk_errors(source: Object, path: Path) -> ErrorList:
    errors = required_errors(source, path, "diskName", "diskURI")
    uri = source.get("diskURI", "")
    for name, choices in (
        ("cachingMode", ("None", "ReadOnly", "ReadWrite")),
        ("kind", ("Dedicated", "Managed", "Shared")),
    ):
        if (chosen := source.get(name)) is not None and chosen not in choices:
            errors.append(field.not_supported(path.child(name), chosen, choices))
    if (kind := source.get("kind")) is not None:
        begins, expected_form = ("/subscriptions/", _MANAGED_DISK) if kind == "Managed" else ("https://", _BLOB_DISK)
        if not uri.startswith(begins):
            errors.append(field.not_supported_text(path.child("diskURI"), uri, (expected_form,)))
    return errors


def _glusterfs_errors(source: Object, path: Path) -> ErrorList:
    errors = required_errors(source, path, "endpoints", "path")
    namespace = source.get("endpointsNamespace")
    at = path.child("endpointsNamespace")
    if namespace == "":
        detail = "if the endpointnamespace is set, it must be a valid namespace name"
        return [*errors, field.invalid(at, namespace, detail)]
    return errors if namespace is None else errors + name_errors(namespace, names.is_dns1123_label, at)


def iscsi_errors(source: Object, path: Path, *, says_how: bool = False, volume: str = "") -> ErrorList:
    """The errors in an iSCSI source. `says_how`: the message says how names begin, for pods' volumes. `volume`: a persistent
    volume's name."""
    errors = required_errors(source, path, "targetPortal")
    if volume and iscsi_name_is_long(volume, source):
        at = path.child("targetportal")
        errors.append(field.invalid(at, source.get("targetPortal", ""), INITIATOR_TOO_LONG))
    errors += required_errors(source, path, "iqn") or _iscsi_name_errors(source["iqn"], path.child("iqn"), says_how)
    lun = source.get("lun", 0)
    if not 0 <= lun <= 255:
        errors.append(field.invalid(path.child("lun"), lun, _UP_TO_255))
    asks_secret = source.get("chapAuthDiscovery") or source.get("chapAuthSession")
    if asks_secret and source.get("secretRef") is None:
        errors.append(field.required(path.child("secretRef")))
    if not says_how:
        errors += secret_errors(source, path, "name")
    if (initiator := source.get("initiatorName")) is not None:
        errors += _iscsi_name_errors(initiator, path.child("initiatorname"), says_how)
    return errors


def iscsi_name_is_long(name: str, source: Object) -> bool:
    text = f"{name}:{source.get('targetPortal', '')}"
    return source.get("initiatorName") is not None and len(text.encode()) > _MAX_NAME_AND_PORTAL


def _iscsi_name_errors(name: str, path: Path, says_how: bool) -> ErrorList:
    form = _ISCSI_NAMES.get(name[:3])
    if form is None:
        how = " starting with iqn, eui, or naa" if says_how else ""
        return [field.invalid(path, name, f"must be valid format{how}")]
    return [] if form.search(name) else [field.invalid(path, name, "must be valid format")]


def cinder_errors(source: Object, path: Path, *secret: str) -> ErrorList:
    return required_errors(source, path, "volumeID") + secret_errors(source, path, *secret)


def storageos_errors(source: Object, path: Path, *secret: str) -> ErrorList:
    errors = required_label_errors(source.get("volumeName", ""), path.child("volumeName"))
    if namespace := source.get("volumeNamespace"):
        errors += name_errors(namespace, names.is_dns1123_label, path.child("volumeNamespace"))
    return errors + secret_errors(source, path, *secret)


def _local_errors(source: Object, path: Path) -> ErrorList:
    return required_errors(source, path, "path") or no_backsteps_errors(source["path"], path.child("path"))


def _csi_errors(source: Object, path: Path) -> ErrorList:
    errors = csi_driver_errors(source.get("driver", ""), path.child("driver"))
    errors += required_errors(source, path, "volumeHandle")
    for name in (
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ):
        if (secret := source.get(name)) is not None:
            errors += _whole_secret_errors(secret, path.child(name))
    return errors


def _whole_secret_errors(secret: Object, path: Path) -> ErrorList:
    """The errors in a reference to a secret by name and namespace (validatePVSecretReference)."""
    name, at = secret.get("name", ""), path.child("name")
    errors = name_errors(name, names.is_dns1123_subdomain, at) if name else [field.required(at)]
    return errors + required_label_errors(secret.get("namespace", ""), path.child("namespace"))


SHARED_SOURCES: Final[Mapping[str, SourceErrors]] = {
    "hostPath": host_path_errors,
    "gcePersistentDisk": _disk_of("pdName"),
    "awsElasticBlockStore": _disk_of("volumeID"),
    "glusterfs": _glusterfs_errors,
    "flocker": _flocker_errors,
    "nfs": _nfs_errors,
    "rbd": _requiring("monitors", "image"),
    "quobyte": _quobyte_errors,
    "cephfs": _requiring("monitors"),
    "fc": _fc_errors,
    "flexVolume": _flex_errors,
    "azureFile": _azure_file_errors,
    "vsphereVolume": _requiring("volumePath"),
    "photonPersistentDisk": _requiring("pdID"),
    "portworxVolume": _requiring("volumeID"),
    "azureDisk": _azure_disk_errors,
    "scaleIO": _requiring("gateway", "system", "volumeName"),
}
_PERSISTENT_ONLY: Final[Mapping[str, SourceErrors]] = {
    "iscsi": iscsi_errors,
    "cinder": lambda source, path: cinder_errors(source, path, "name", "namespace"),
    "local": _local_errors,
    "storageos": lambda source, path: storageos_errors(source, path, "name", "namespace"),
    "csi": _csi_errors,
}
_PERSISTENT_ORDER: Final = (
    *(
        "hostPath",
        "gcePersistentDisk",
        "awsElasticBlockStore",
        "glusterfs",
        "flocker",
        "nfs",
        "rbd",
        "quobyte",
        "cephfs",
    ),
    *("iscsi", "cinder", "fc", "flexVolume", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume"),
    *("azureDisk", "scaleIO", "local", "storageos", "csi"),
)
# Of persistent volumes, in the order in which upstream looks at them.
PERSISTENT_SOURCES: Final[Mapping[str, SourceErrors]] = {
    name: SHARED_SOURCES.get(name) or _PERSISTENT_ONLY[name] for name in _PERSISTENT_ORDER
}
