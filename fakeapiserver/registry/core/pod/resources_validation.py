"""Validation of pod-level resources, and of resizes.

Upstream: pkg/apis/core/validation/validation.go (validatePodResources, ValidatePodResize).
"""

from collections.abc import Iterator, Sequence
from typing import Final

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.quantity import parse
from fakeapiserver.apis.pod_resources import container_resources, is_pod_level, resource_list
from fakeapiserver.registry.core.pod.container_policies import claim_errors
from fakeapiserver.registry.core.pod.options import PodOptions
from fakeapiserver.registry.core.pod.qos import qos_class
from fakeapiserver.registry.core.pod.resource_requirements_validation import resource_errors, resource_name_errors
from fakeapiserver.registry.core.resource_list import quantity

_POD_LEVEL: Final = ("cpu", "hugepages-", "memory")
_COMPUTE: Final = ("cpu", "memory")
_LISTS: Final = ("requests", "limits")
_SPEC: Final = Path("spec")
_RESTARTS: Final = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
_MUTABLE: Final = "only cpu and memory resources are mutable"
_FIXED_BEFORE: Final = "resources for non-sidecar init containers are immutable"
_NO_POD_LEVEL_RESIZE: Final = (
    "resize of pods with pod-level resources is forbidden when InPlacePodLevelResourcesVerticalScalingEnabled feature gate is "
    "disabled"
)
_MUTABLE_SIDECARS: Final = "only cpu and memory resources for sidecar containers are mutable"
_MUTABLE_BEFORE: Final = "only cpu and memory resources for init or sidecar containers are mutable"


def pod_resource_errors(spec: Object, path: Path) -> ErrorList:
    resources = spec.get("resources")
    at = path.child("resources")
    if resources is None:
        return []
    if (spec.get("os") or {}).get("name") == "windows":
        return [field.forbidden(at, "may not be set for a windows pod")]
    errors: ErrorList = []
    if resources.get("claims") is not None:
        errors.append(field.forbidden(at.child("claims"), "claims may not be set for Resources at pod-level"))
    errors += resource_errors(resources, at, _pod_level_name_errors)
    known = {claim.get("name", "") for claim in spec.get("resourceClaims") or ()}
    errors += claim_errors(resources.get("claims") or [], known, at.child("claims"))
    return errors + list(_inconsistencies(spec, resources, at))


def _pod_level_name_errors(name: str, path: Path) -> ErrorList:
    if errors := resource_name_errors(name, path):
        return errors
    return [] if is_pod_level(name) else [field.not_supported(path, name, _POD_LEVEL)]


def _inconsistencies(spec: Object, resources: Object, path: Path) -> Iterator[field.Error]:
    requests, limits = (resource_list(resources.get(which)) for which in _LISTS)
    for name, asked in sorted(container_resources(spec, "requests").items()):
        if name in requests and asked > requests[name]:
            detail = f"must be greater than or equal to aggregate container requests of {asked}"
            yield field.invalid(path.child("requests").key(name), str(requests[name]), detail)
    for name, used in sorted(container_resources(spec, "limits").items()):
        if name.startswith("hugepages-") and name in limits and used > limits[name]:
            detail = f"must be greater than or equal to aggregate container limits of {used}"
            yield field.invalid(path.child("limits").key(name), str(limits[name]), detail)
    for i, container in enumerate(spec.get("containers") or ()):
        for name, limit in sorted(resource_list((container.get("resources") or {}).get("limits")).items()):
            if name in limits and limit > limits[name]:
                at = path.child("containers").index(i).key(name).child("limits")
                yield field.invalid(at, str(limit), f"must be less than or equal to pod limits of {limits[name]}")


# ------------------------------------------------------------------------------- resize


def resize_errors(obj: Object, old: Object, errors: ErrorList, options: PodOptions) -> ErrorList:
    """The errors in a resize; `errors` are those of the new pod itself."""
    spec, before = obj["spec"], old["spec"]
    if options.version <= "v1.34" and (_is_set(spec) or _is_set(before)):
        return [field.forbidden("[]", "pods with pod-level resources cannot be resized")]
    if (before.get("os") or {}).get("name") == "windows":
        return [field.forbidden("[]", "windows pods cannot be resized")]
    status = old.get("status") or {}
    if (status.get("qosClass") or qos_class(before, options)) != qos_class(spec, options):
        quality = (obj.get("status") or {}).get("qosClass", "")
        errors.append(field.invalid(_SPEC, quality, "Pod QOS Class may not change as a result of resizing"))
    if not _is_supported(status):
        errors.append(field.forbidden(_SPEC, "Pod running on node without support for resize"))
    if (_is_set(spec) or _is_set(before)) and not options.pod_level_resize:
        return [*errors, field.forbidden("[]", _NO_POD_LEVEL_RESIZE)]
    errors += _pod_level_resize_errors(spec, before)
    if status.get("nodeAllocatableResourceClaimStatuses") and options.version < "v1.37":
        errors.append(field.forbidden(_SPEC, "pods with node allocatable resource claims cannot be resized"))
    if moved := list(_moved(spec, before)):
        return errors + moved
    errors += [
        error
        for key in ("initContainers", "containers")
        for i, (new, then) in enumerate(_pairs(spec, before, key))
        if key == "containers" or _is_resizable(then, options)
        for error in _container_resize_errors(new, then, _SPEC.child(key).index(i).child("resources"), options)
    ]
    for new, then in _pairs(spec, before, "containers"):
        if not _only_compute_differs(new, then, options):
            errors.append(field.forbidden(_SPEC, _MUTABLE))
    errors += _init_resize_errors(spec, before, options)
    if options.volume_resize:
        errors += _volume_resize_errors(spec.get("volumes") or (), before.get("volumes") or ())
    if not errors and _is_set(spec) == _is_set(before) is False and ("resources" in spec) != ("resources" in before):
        errors.append(field.forbidden(_SPEC, _MUTABLE))
    return errors


def _volume_resize_errors(volumes: Sequence[Object], before: Sequence[Object]) -> Iterator[field.Error]:
    """The errors in a resize of volumes: only the limits of volumes in memory may change."""
    path = _SPEC.child("volumes")
    if len(volumes) != len(before):
        yield field.forbidden(path, "volumes may not be added or removed on resize")
        return
    for i, (volume, old) in enumerate(zip(volumes, before, strict=True)):
        at = path.index(i)
        if volume.get("name") != old.get("name"):
            yield field.forbidden(at.child("name"), "volumes may not be renamed or reordered on resize")
        elif _without_limit(volume) != _without_limit(old):
            yield field.forbidden(at, "only sizeLimit of memory-backed emptyDir volumes is mutable on resize")
        elif volume.get("emptyDir") is not None and (detail := _limit_problem(volume["emptyDir"], old["emptyDir"])):
            yield field.forbidden(at.child("emptyDir").child("sizeLimit"), detail)


def _without_limit(volume: Object) -> Object:
    source = volume.get("emptyDir")
    if source is None:
        return volume
    return {**volume, "emptyDir": {name: value for name, value in source.items() if name != "sizeLimit"}}


def _limit_problem(source: Object, old: Object) -> str:
    """Returns what is wrong with the change of an emptyDir's limit, or ""."""
    limit, before = (parse(str(of.get("sizeLimit") or "0")) for of in (source, old))
    if bool(limit.amount) != bool(before.amount):
        return "adding or removing sizeLimit on an existing volume is not allowed"
    if limit != before and source.get("medium") != "Memory":
        return "sizeLimit is only mutable for memory-backed emptyDir volumes"
    return ""


def _init_resize_errors(spec: Object, before: Object, options: PodOptions) -> Iterator[field.Error]:
    for i, (new, then) in enumerate(_pairs(spec, before, "initContainers")):
        at = _SPEC.child("initContainers").index(i)
        if not _is_resizable(new, options):
            if new != then:
                yield field.forbidden(_SPEC, _FIXED_BEFORE)
            continue
        if not _only_compute_differs(new, then, options):
            older = options.version <= "v1.34"
            yield field.forbidden(_SPEC, _MUTABLE_SIDECARS) if older else field.forbidden(at, _MUTABLE_BEFORE)
        if new != then and new.get("restartPolicy") != "Always":
            restarting = (p for p in new.get("resizePolicy") or () if p.get("restartPolicy") == "RestartContainer")
            yield from (field.forbidden(at, _RESTARTS) for _ in restarting)


def _pairs(spec: Object, before: Object, key: str) -> Iterator[tuple[Object, Object]]:
    return zip(spec.get(key) or (), before.get(key) or (), strict=True)


def _is_resizable(container: Object, options: PodOptions) -> bool:
    """Reports whether an init container's resources can change."""
    return options.init_resize or container.get("restartPolicy") == "Always"


def _is_supported(status: Object) -> bool:
    """Reports whether the pod's node can resize: it reports resources."""
    for container in status.get("containerStatuses") or ():
        if (container.get("state") or {}).get("running") is not None:
            return container.get("resources") is not None
    return True


def _pod_level_resize_errors(spec: Object, before: Object) -> ErrorList:
    now, then = spec.get("resources"), before.get("resources")
    if not (_is_set(spec) or _is_set(before)):
        return []
    at = _SPEC.child("resources")
    if then is not None and now is None:
        return [field.forbidden(at, "pod-level resources cannot be removed")]
    errors = [
        field.forbidden(at.child(which), f"pod-level resource {which} cannot be removed")
        for which in _LISTS
        if then is not None and not _keeps((now or {}).get(which), then.get(which))
    ]
    others = any(_others((now or {}).get(which)) != _others((then or {}).get(which)) for which in _LISTS)
    if others or ((now or {}).get("claims") or []) != ((then or {}).get("claims") or []):
        errors.append(field.forbidden(_SPEC, f"{_MUTABLE} at pod-level"))
    return errors


def _is_set(spec: Object) -> bool:
    return any((spec.get("resources") or {}).get(which) for which in _LISTS)


def _moved(spec: Object, before: Object) -> Iterator[field.Error]:
    for key in ("containers", "initContainers"):
        now: Sequence[Object] = spec.get(key) or ()
        then: Sequence[Object] = before.get(key) or ()
        if len(now) != len(then):
            yield field.forbidden(_SPEC.child(key), f"{key} may not be added or removed on resize")
            continue
        for i, (new, old) in enumerate(zip(now, then, strict=True)):
            if new.get("name") != old.get("name"):
                at = _SPEC.child(key).index(i).child("name")
                yield field.forbidden(at, f"{key} may not be renamed or reordered on resize")


def _container_resize_errors(new: Object, old: Object, path: Path, options: PodOptions) -> ErrorList:
    errors = _removed(new, old, path)
    return errors + _less_memory(new, old, path.child("limits").key("memory")) if options.version <= "v1.33" else errors


def _less_memory(new: Object, old: Object, path: Path) -> ErrorList:
    """The errors for a memory limit that is new or smaller without a restart, which wasn't possible until 1.33."""
    policies = (
        row.get("restartPolicy") for row in new.get("resizePolicy") or () if row.get("resourceName") == "memory"
    )
    now, then = (((row.get("resources") or {}).get("limits") or {}).get("memory") for row in (new, old))
    if now is None or next(policies, "") == "RestartContainer":
        return []
    if then is not None and quantity(now) >= quantity(then):
        return []
    change = "added" if then is None else "decreased"
    return [field.forbidden(path, f"memory limits cannot be {change} unless resizePolicy is RestartContainer")]


def _removed(new: Object, old: Object, path: Path) -> ErrorList:
    now, then = new.get("resources") or {}, old.get("resources") or {}
    return [
        field.forbidden(path.child(which), f"resource {which} cannot be removed")
        for which in _LISTS
        if not _keeps(now.get(which), then.get(which))
    ]


def _keeps(now: Object | None, then: Object | None) -> bool:
    return (then or {}).keys() <= (now or {}).keys()


def _only_compute_differs(new: Object, old: Object, options: PodOptions) -> bool:
    now, then = new.get("resources") or {}, old.get("resources") or {}
    if any(_others(now.get(which)) != _others(then.get(which)) for which in _LISTS):
        return False
    if options.version >= "v1.37":
        if (now.get("claims") or []) != (then.get("claims") or []):
            return False
    elif then.get("claims"):  # upstream leaves them out of the new container, and so finds it changed
        return False
    return {**new, "resources": None} == {**old, "resources": None}


def _others(amounts: Object | None) -> Object:
    return {name: amount for name, amount in (amounts or {}).items() if name not in _COMPUTE}
