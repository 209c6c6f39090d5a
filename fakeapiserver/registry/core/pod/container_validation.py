"""The rules for containers.

Upstream: pkg/apis/core/validation/validation.go (validateContainers and what it calls).
"""

from collections.abc import Mapping
from typing import Final

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.registry.core.field_formats import (
    choice_errors,
    descending_path_errors,
    duplicate_errors,
    is_valid_port_name,
    name_errors,
    port_errors,
    protocol_errors,
    required_label_errors,
)
from fakeapiserver.registry.core.pod.container_lifecycle_validation import PROBES, lifecycle_errors
from fakeapiserver.registry.core.pod.container_policies import (
    claim_errors,
    init_resize_policy_errors,
    resize_policy_errors,
    restart_policy_errors,
)
from fakeapiserver.registry.core.pod.env_validation import env_errors, env_from_errors
from fakeapiserver.registry.core.pod.options import PodOptions
from fakeapiserver.registry.core.pod.resource_requirements_validation import resource_errors
from fakeapiserver.registry.core.pod.security_validation import security_context_errors

# Fields of a container that an ephemeral container doesn't have.
_NOT_EPHEMERAL: Final = (
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
)
_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES: Final = ("File", "FallbackToLogsOnError")
_PROPAGATIONS: Final = ("Bidirectional", "HostToContainer", "None")
_RECURSIONS: Final = ("Disabled", "Enabled", "IfPossible")
_PRIVILEGED: Final = "Bidirectional mount propagation is available only to privileged containers"
_NOT_A_CLAIM: Final = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"


def container_list_errors(spec: Object, volumes: Mapping[str, Object], path: Path, options: PodOptions) -> ErrorList:
    """The errors in the containers, init containers and ephemeral containers; `volumes` are the pod's volumes by name."""
    containers: list[Object] = spec.get("containers") or []
    at = path.child("containers")
    errors = [] if containers else [field.required(at)]
    seen: set[str] = set()
    grace, system = spec.get("terminationGracePeriodSeconds"), (spec.get("os") or {}).get("name")
    for i, container in enumerate(containers):
        errors += _container_errors(container, spec, volumes, at.index(i), options)
        errors += duplicate_errors(container.get("name", ""), seen, at.index(i).child("name"))
        errors += lifecycle_errors(container, grace, system, at.index(i))
        errors += restart_policy_errors(container, at.index(i), options)
    errors += _host_port_errors(containers, at)
    at = path.child("initContainers")
    for i, container in enumerate(spec.get("initContainers") or ()):
        errors += _container_errors(container, spec, volumes, at.index(i), options)
        errors += restart_policy_errors(container, at.index(i), options, is_init=True)
        if (name := container.get("name", "")) or "" in seen:
            errors += duplicate_errors(name, seen, at.index(i).child("name"))
        # Upstream validates each as the only item of a list.
        errors += _host_port_errors([container], at) + _init_errors(container, grace, system, at.index(i), options)
    at, others = path.child("ephemeralContainers"), set(seen)
    for i, container in enumerate(spec.get("ephemeralContainers") or ()):
        errors += _container_errors(container, spec, volumes, at.index(i), options)
        errors += image_space_errors(container, at.index(i))
        errors += duplicate_errors(container.get("name", ""), seen, at.index(i).child("name"))
        errors += _ephemeral_errors(container, others, at.index(i))
    return errors


def image_space_errors(container: Object, path: Path) -> ErrorList:
    """The error for blanks around an image, which are refused in pods only, since old templates may have them."""
    image = container.get("image", "")
    detail = "must not have leading or trailing whitespace"
    return [] if image == image.strip() else [field.invalid(path.child("image"), image, detail)]


def _ephemeral_errors(container: Object, others: set[str], path: Path) -> ErrorList:
    errors: ErrorList = []
    target = container.get("targetContainerName")
    if target and target not in others:
        errors.append(field.not_found(path.child("targetContainerName"), target))
    detail = "cannot be set for an Ephemeral Container"
    errors += [
        field.forbidden(path.child(name), detail)
        for name in _NOT_EPHEMERAL
        # Upstream compares with Go's zero value, which an empty list or map isn't.
        if (_is_set(container.get(name)) if name == "resources" else container.get(name) is not None)
    ]
    return errors + [
        field.forbidden(path.child("volumeMounts").index(i).child(name), detail)
        for i, mount in enumerate(container.get("volumeMounts") or ())
        for name in ("subPath", "subPathExpr")
        if mount.get(name)
    ]


def _is_set(struct: Object | None) -> bool:
    return any(value is not None for value in (struct or {}).values())


def _init_errors(
    container: Object, grace: int | None, system: str | None, path: Path, options: PodOptions
) -> ErrorList:
    if container.get("restartPolicy") == "Always":
        return lifecycle_errors(container, grace, system, path)
    detail = "may not be set for init containers without restartPolicy=Always"
    errors = [field.forbidden(path.child(name), detail) for name in ("lifecycle", *PROBES) if name in container]
    return errors + init_resize_policy_errors(container, path) if options.version >= "v1.36" else errors


def _container_errors(
    container: Object, spec: Object, volumes: Mapping[str, Object], path: Path, options: PodOptions
) -> ErrorList:
    """The errors by the rules for all three kinds of containers (validateContainerCommon)."""
    errors = required_label_errors(container.get("name", ""), path.child("name"))
    if not container.get("image"):
        errors.append(field.required(path.child("image")))
    policy = container.get("terminationMessagePolicy", "")
    errors += choice_errors(policy, _MESSAGE_POLICIES, path.child("terminationMessagePolicy"))
    errors += _port_list_errors(container.get("ports") or [], path.child("ports"))
    if variables := container.get("env"):
        errors += env_errors(variables, path.child("env"), options)
    if sources := container.get("envFrom"):
        errors += env_from_errors(sources, path.child("envFrom"))
    if "volumeMounts" in container:
        errors += _mount_errors(container, volumes, path.child("volumeMounts"))
    if "volumeDevices" in container:
        errors += _device_errors(container, volumes, path.child("volumeDevices"))
    errors += choice_errors(container.get("imagePullPolicy", ""), _PULL_POLICIES, path.child("imagePullPolicy"))
    if resources := container.get("resources"):
        errors += resource_errors(resources, path.child("resources"))
        if claims := resources.get("claims"):
            known = {name for claim in spec.get("resourceClaims") or () if (name := claim.get("name"))}
            errors += claim_errors(claims, known, path.child("resources", "claims"))
    if policies := container.get("resizePolicy"):
        errors += resize_policy_errors(policies, spec.get("restartPolicy", ""), path.child("resizePolicy"))
    host_users = spec.get("hostUsers") is not False
    return errors + security_context_errors(container.get("securityContext"), path.child("securityContext"), host_users)


def _port_list_errors(ports: list[Object], path: Path) -> ErrorList:
    errors: ErrorList = []
    seen: set[str] = set()
    for i, port in enumerate(ports):
        at = path.index(i)
        if name := port.get("name"):
            problems = name_errors(name, is_valid_port_name, at.child("name"))
            errors += problems or duplicate_errors(name, seen, at.child("name"))
        if number := port.get("containerPort"):
            errors += port_errors(number, at.child("containerPort"))
        else:
            errors.append(field.required(at.child("containerPort")))
        if host_port := port.get("hostPort"):
            errors += port_errors(host_port, at.child("hostPort"))
        errors += protocol_errors(port.get("protocol", ""), at.child("protocol"))
    return errors


def _host_port_errors(containers: list[Object], path: Path) -> ErrorList:
    errors: ErrorList = []
    seen: set[str] = set()
    for i, container in enumerate(containers):
        for j, port in enumerate(container.get("ports") or ()):
            if number := port.get("hostPort"):
                key = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{number}"
                errors += duplicate_errors(key, seen, path.index(i).child("ports").index(j).child("hostPort"))
    return errors


def _mount_errors(container: Object, volumes: Mapping[str, Object], path: Path) -> ErrorList:
    errors: ErrorList = []
    places: set[str] = set()
    devices = {device.get("name", ""): device.get("devicePath", "") for device in container.get("volumeDevices") or ()}
    for i, mount in enumerate(container.get("volumeMounts") or ()):
        at, name, mount_path = path.index(i), mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            errors.append(field.required(at.child("name")))
        if name not in volumes:
            errors.append(field.not_found(at.child("name"), name))
        if not mount_path:
            errors.append(field.required(at.child("mountPath")))
        if mount_path in places:
            errors.append(field.invalid(at.child("mountPath"), mount_path, "must be unique"))
        places.add(mount_path)
        if name in devices:
            errors.append(field.invalid(at.child("name"), name, "must not already exist in volumeDevices"))
        if mount_path in devices.values():
            detail = "must not already exist as a path in volumeDevices"
            errors.append(field.invalid(at.child("mountPath"), mount_path, detail))
        errors += _sub_path_errors(mount, at, path)
        # Upstream reports these at the list, not at the mount.
        errors += _propagation_errors(mount, container, path.child("mountPropagation"))
        errors += _recursion_errors(mount, path.child("recursiveReadOnly"))
    return errors


def _sub_path_errors(mount: Object, at: Path, mounts: Path) -> ErrorList:
    plain, expanded = mount.get("subPath", ""), mount.get("subPathExpr", "")
    errors = descending_path_errors(plain, mounts.child("subPath")) if plain else []
    if not expanded:
        return errors
    if plain:
        detail = "subPathExpr and subPath are mutually exclusive"
        errors.append(field.invalid(at.child("subPathExpr"), expanded, detail))
    return errors + descending_path_errors(expanded, mounts.child("subPathExpr"))


def _propagation_errors(mount: Object, container: Object, path: Path) -> ErrorList:
    propagation = mount.get("mountPropagation")
    if propagation is None:
        return []
    if propagation not in _PROPAGATIONS:
        return [field.not_supported(path, propagation, _PROPAGATIONS)]
    privileged = (container.get("securityContext") or {}).get("privileged")
    return [field.forbidden(path, _PRIVILEGED)] if propagation == "Bidirectional" and not privileged else []


def _recursion_errors(mount: Object, path: Path) -> ErrorList:
    recursion = mount.get("recursiveReadOnly")
    if recursion is None or recursion == "Disabled":
        return []
    if recursion not in _RECURSIONS:
        return [field.not_supported(path, recursion, _RECURSIONS)]
    errors: ErrorList = []
    if not mount.get("readOnly"):
        errors.append(field.forbidden(path, "may only be specified when readOnly is true"))
    if mount.get("mountPropagation", "None") != "None":
        errors.append(field.forbidden(path, "may only be specified when mountPropagation is None or not specified"))
    return errors


def _device_errors(container: Object, volumes: Mapping[str, Object], path: Path) -> ErrorList:
    errors: ErrorList = []
    names, places = set[str](), set[str]()
    mounts = {mount.get("name", ""): mount.get("mountPath", "") for mount in container.get("volumeMounts") or ()}
    for i, device in enumerate(container.get("volumeDevices") or ()):
        name, device_path = device.get("name", ""), device.get("devicePath", "")
        named, placed = path.index(i).child("name"), path.index(i).child("devicePath")
        if not name:
            errors.append(field.required(named))
        if name in names:
            errors.append(field.invalid(named, name, "must be unique"))
        if name not in volumes:
            errors.append(field.not_found(named, name))
        elif not volumes[name].keys() & {"persistentVolumeClaim", "ephemeral"}:
            errors.append(field.invalid(named, name, _NOT_A_CLAIM))
        if not device_path:
            errors.append(field.required(placed))
        if device_path in places:
            errors.append(field.invalid(placed, device_path, "must be unique"))
        if ".." in device_path.split("/"):
            errors.append(field.invalid(placed, device_path, "can not contain backsteps ('..')"))
        else:
            places.add(device_path)
        if name in mounts:
            errors.append(field.invalid(named, name, "must not already exist in volumeMounts"))
        if device_path in mounts.values():
            errors.append(field.invalid(placed, device_path, "must not already exist as a path in volumeMounts"))
        if name:
            names.add(name)
    return errors
