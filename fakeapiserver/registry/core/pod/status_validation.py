"""Validation of updates of a pod's status.

Upstream: pkg/apis/core/validation/validation.go (ValidatePodStatusUpdate), pkg/api/v1/pod/util.go (ContainerShouldRestart).
"""

from collections.abc import Sequence
from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.ip_addresses import unzoned_address
from fakeapiserver.apimachinery.message import Message
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.registry.core.field_formats import duplicate_errors, ip_errors, name_errors
from fakeapiserver.registry.core.pod.claim_validation import (
    claim_status_errors,
    extended_claim_status_errors,
    node_allocatable_status_errors,
)
from fakeapiserver.registry.core.pod.options import DEFAULT_OPTIONS, PodOptions
from fakeapiserver.registry.core.pod.security_validation import id_errors

_STATUS: Final = Path("status")
# An address of each family.
_MAX_ADDRESSES: Final = 2
_SYSTEM_CONDITIONS: Final = ("PodScheduled", "Ready", "Initialized")
_NEGATIVE: Final = "must be a non-negative integer"
_ENDED: Final = "may not be transitioned to non-terminated state"
# Field with the containers' statuses, field with the containers.
_LISTS: Final = (
    ("containerStatuses", "containers"),
    ("initContainerStatuses", "initContainers"),
    ("ephemeralContainerStatuses", "ephemeralContainers"),
)
_PLACES: Final = {kind: name for name, kind in _LISTS}
_HEALTH: Final = ("Healthy", "Unhealthy", "Unknown")
_LONGEST_MESSAGE: Final = 1024
_LONGEST_REFERENCE: Final = 256
_NO_CLAIM: Final = Message(
    "must match one of the container's resource claims as 'claim:<claimName>/<requestName>' when "
    "container.resources.claims[*].request is set or 'claim:<claimName>' when it is empty",
    "resources.claim",
)
_NO_REQUEST: Final = "must match one of the container's resource requests"


def status_update_errors(status: Object, old: Object, spec: Object, options: PodOptions = DEFAULT_OPTIONS) -> ErrorList:
    errors = _condition_errors(status.get("conditions") or ())
    node = spec.get("nodeName", "") if options.binding_clears_nomination else ""
    errors += _nominated_errors(status.get("nominatedNodeName", ""), old.get("nominatedNodeName", ""), node)
    if (observed := status.get("observedGeneration", 0)) < 0:
        errors.append(field.invalid(_STATUS.child("observedGeneration"), observed, _NEGATIVE))
    if status.get("qosClass") != old.get("qosClass"):
        errors.append(field.invalid(_STATUS.child("qosClass"), status.get("qosClass"), "field is immutable"))
    for name, kind in _LISTS:
        if name in old:
            errors += _restart_errors(status.get(name) or (), old[name], spec, kind, options)
    claims = spec.get("resourceClaims") or ()
    errors += claim_status_errors(
        status.get("resourceClaimStatuses") or (), claims, _STATUS.child("resourceClaimStatuses")
    )
    extended = status.get("extendedResourceClaimStatus")
    errors += extended_claim_status_errors(extended, spec, _STATUS.child("extendedResourceClaimStatus"))
    errors += node_allocatable_status_errors(
        status, claims, _STATUS.child("nodeAllocatableResourceClaimStatuses"), options.version
    )
    errors += _addresses_errors(status.get("podIPs") or (), old.get("podIPs") or (), _STATUS.child("podIPs"))
    if host_ips := status.get("hostIPs"):
        first, path = host_ips[0].get("ip", ""), _STATUS.child("hostIPs")
        if first != status.get("hostIP", ""):
            errors.append(field.invalid(path.index(0).child("ip"), first, "must be equal to `hostIP`"))
        errors += _addresses_errors(host_ips, old.get("hostIPs") or (), path)
    system, highest = (
        (spec.get("os") or {}).get("name", "linux"),
        2**32 - 1 if options.version >= "v1.37" else 2**31 - 1,
    )
    for name, _ in _LISTS:
        errors += _user_errors(status.get(name) or (), system, _STATUS.child(name), highest)
    for name, kind in _LISTS:
        errors += _device_errors(status.get(name) or (), spec, kind, _STATUS.child(name))
    if options.volume_digests:
        errors += _digest_errors(status)
    return errors


def _condition_errors(conditions: Sequence[Object]) -> ErrorList:
    errors: ErrorList = []
    for i, condition in enumerate(conditions):
        kind, observed = condition.get("type", ""), condition.get("observedGeneration", 0)
        if kind in _SYSTEM_CONDITIONS and observed >= 0:
            continue
        at = _STATUS.child("conditions").index(i)
        if observed < 0:
            errors.append(field.invalid(at.child("observedGeneration"), observed, _NEGATIVE))
        if kind not in _SYSTEM_CONDITIONS:
            errors += name_errors(kind, names.is_qualified_name, at.child("Type"))
    return errors


def _nominated_errors(node: str, before: str, bound: str) -> ErrorList:
    """`bound`: where the pod runs, after which nothing can be nominated."""
    if not node or node == before:
        return []
    path = _STATUS.child("nominatedNodeName")
    errors = name_errors(node, names.is_dns1123_subdomain, path)
    if bound:
        errors.append(field.forbidden(path, "may not be set on pods that are already bound to a node"))
    return errors


# --------------------------------------------------------------------------- restarts


def _restart_errors(
    now: Sequence[Object], then: Sequence[Object], spec: Object, kind: str, options: PodOptions
) -> ErrorList:
    """The errors for containers that have ended for good and run again, at the position of the old status."""
    ended = [(i, row) for i, row in enumerate(then) if (row.get("state") or {}).get("terminated") is not None]
    if not ended or (kind != "ephemeralContainers" and options.restart_all and _all_may_restart(spec)):
        return []
    path = _STATUS.child(_PLACES[kind])
    running = [row.get("name", "") for row in now if (row.get("state") or {}).get("terminated") is None]
    errors: ErrorList = []
    for i, row in ended:
        name = row.get("name", "")
        code = row["state"]["terminated"].get("exitCode", 0)
        if name not in running:
            continue
        if kind != "ephemeralContainers":
            container = next((c for c in spec.get(kind) or () if c.get("name") == name), None)
            if container is not None and _may_restart(container, spec, code, options):
                continue
        errors.append(field.forbidden(path.index(i).child("state"), _ENDED))
    return errors


def _all_may_restart(spec: Object) -> bool:
    return any(
        rule.get("action") == "RestartAllContainers"
        for kind in ("initContainers", "containers")
        for container in spec.get(kind) or ()
        for rule in container.get("restartPolicyRules") or ()
    )


def _may_restart(container: Object, spec: Object, code: int, options: PodOptions) -> bool:
    own = container.get("restartPolicy") if options.restart_rules else None
    if own is not None:
        rules = container.get("restartPolicyRules") or ()
        first = next((rule.get("action") for rule in rules if _matches(rule, code)), None)
        if first == "Restart" or (first == "RestartAllContainers" and options.restart_all):
            return True
    policy = own or spec.get("restartPolicy")
    return policy == "Always" or (policy == "OnFailure" and code != 0)


def _matches(rule: Object, code: int) -> bool:
    codes = rule.get("exitCodes") or {}
    inside = code in (codes.get("values") or ())
    return inside if codes.get("operator") == "In" else codes.get("operator") == "NotIn" and not inside


# -------------------------------------------------------------------------- addresses


def _addresses_errors(addresses: Sequence[Object], before: Sequence[Object], path: Path) -> ErrorList:
    texts, known = [address.get("ip", "") for address in addresses], [address.get("ip", "") for address in before]
    errors = [error for i, text in enumerate(texts) for error in ip_errors(text, path.index(i), known)]
    if len(texts) <= 1:
        return errors
    families = [_family(text) for text in texts]
    if None in families:
        first = families.index(None)
        detail = f"failed to check for dual stack with error:invalid IP[{first}]: {texts[first]}"
        errors.append(field.internal(path, detail))
    if len(texts) > _MAX_ADDRESSES or None in families or len(set(families)) < _MAX_ADDRESSES:
        go_addresses = [{"IP": text} for text in texts]
        errors.append(field.invalid(path, go_addresses, "may specify no more than one IP for each IP family"))
    return errors


def _family(text: str) -> int | None:
    try:
        return unzoned_address(text).version
    except ValueError:
        return None


# ------------------------------------------------------------------- users and devices


def _user_errors(statuses: Sequence[Object], system: str, path: Path, highest: int) -> ErrorList:
    """The errors in the users of containers. `highest` is the highest user id."""
    errors: ErrorList = []
    for i, status in enumerate(statuses):
        user = (status.get("user") or {}).get("linux")
        if user is None:
            continue
        at = path.index(i).child("user", "linux")
        if system == "windows":
            errors.append(field.forbidden(at, "cannot be set for a windows pod"))
        elif system == "linux":
            if not 0 <= (uid := user.get("uid", 0)) <= highest:
                errors.append(field.invalid(at.child("uid"), uid, f"must be between 0 and {highest}, inclusive"))
            errors += id_errors({"gid": user.get("gid", 0)}, ("gid",), at)
            for j, group in enumerate(user.get("supplementalGroups") or ()):
                numbered = f"supplementalGroups[{j}]"
                errors += id_errors({numbered: group}, (numbered,), at)
    return errors


def _device_errors(statuses: Sequence[Object], spec: Object, kind: str, path: Path) -> ErrorList:
    errors: ErrorList = []
    for i, status in enumerate(statuses):
        if not (allocated := status.get("allocatedResourcesStatus")):
            continue
        at = path.index(i).child("allocatedResourcesStatus")
        if kind == "ephemeralContainers":
            errors.append(field.forbidden(at, "must not be specified in container status"))
            continue
        container = next((c for c in spec.get(kind) or () if c.get("name") == status.get("name")), None)
        for j, resource in enumerate(allocated):
            if container is not None:
                errors += _resource_errors(resource.get("name", ""), container, at.index(j).child("name"))
            errors += _health_errors(resource.get("resources") or (), at.index(j).child("resources"))
    return errors


def _resource_errors(name: str, container: Object, path: Path) -> ErrorList:
    resources = container.get("resources") or {}
    if not name.startswith("claim:"):
        return [] if name in (resources.get("requests") or {}) else [field.invalid(path, name, _NO_REQUEST)]
    known = (
        f"claim:{claim.get('name', '')}" + (f"/{claim['request']}" if claim.get("request") else "")
        for claim in resources.get("claims") or ()
    )
    return [] if name in known else [field.invalid(path, name, _NO_CLAIM)]


def _health_errors(resources: Sequence[Object], path: Path) -> ErrorList:
    errors: ErrorList = []
    seen: set[str] = set()
    for i, resource in enumerate(resources):
        at, health, message = path.index(i), resource.get("health", ""), resource.get("message")
        if health not in _HEALTH:
            errors.append(field.not_supported(at.child("health"), health, _HEALTH))
        if message == "":
            errors.append(field.required(at.child("message"), "must be non-empty if specified"))
        elif message is not None and len(message.encode()) > _LONGEST_MESSAGE:
            errors.append(field.too_long(at.child("message"), _LONGEST_MESSAGE))
        errors += duplicate_errors(resource.get("resourceID", ""), seen, at.child("resourceID"))
    return errors


def _digest_errors(status: Object) -> ErrorList:
    """The errors in the references of mounted images."""
    errors: ErrorList = []
    for name, _ in _LISTS:
        for i, row in enumerate(status.get(name) or ()):
            for j, mount in enumerate(row.get("volumeMounts") or ()):
                image = (mount.get("volumeStatus") or {}).get("image")
                if image is None:
                    continue
                at = _STATUS.child(name).index(i).child("volumeMounts").index(j).child("volumeStatus")
                reference, path = image.get("imageRef", ""), at.child("imageVolumeStatus", "imageRef")
                if not reference:
                    errors.append(field.required(path, "imageRef must not be empty"))
                if len(reference.encode()) > _LONGEST_REFERENCE:
                    errors.append(field.too_long(path, _LONGEST_REFERENCE))
    return errors
