"""A pod's status: its conditions and what they say, and what it can't be updated to.

Upstream: pkg/api/v1/pod/util.go, pkg/apis/core/validation/validation.go (ValidatePodStatusUpdate).
"""

import ipaddress
from collections.abc import Sequence
from typing import Final

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.registry.core.field_formats import ip_errors

_STATUS: Final = Path("status")
# An address of each family.
_MAX_ADDRESSES: Final = 2


def set_condition(status: Object, condition: Object, now: str) -> None:
    """Adds a condition or puts it in the place of the one of its type, with a new list (UpdatePodCondition).

    The time of the last transition stays where the condition's status does."""
    old = list(status.get("conditions") or ())
    at = next((i for i, found in enumerate(old) if found["type"] == condition["type"]), len(old))
    before = old[at] if at < len(old) else {}
    kept = before.get("lastTransitionTime") if before.get("status") == condition["status"] else now
    old[at : at + 1] = [{"lastProbeTime": None, "lastTransitionTime": kept, **condition}]
    status["conditions"] = old


def is_ready(pod: Object) -> bool:
    """Whether the condition Ready is True."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(found.get("type") == "Ready" and found.get("status") == "True" for found in conditions)


def status_update_errors(status: Object, old: Object, spec: Object) -> ErrorList:
    """What is wrong with a new status. Containers' states aren't looked at."""
    errors: ErrorList = []
    if (observed := status.get("observedGeneration", 0)) < 0:
        detail = "must be a non-negative integer"
        errors.append(field.invalid(_STATUS.child("observedGeneration"), observed, detail))
    if status.get("qosClass") != old.get("qosClass"):
        errors.append(field.invalid(_STATUS.child("qosClass"), status.get("qosClass"), "field is immutable"))
    errors += _claim_errors(status.get("resourceClaimStatuses") or (), spec.get("resourceClaims") or ())
    errors += _addresses_errors(status.get("podIPs") or (), old.get("podIPs") or (), _STATUS.child("podIPs"))
    if host_ips := status.get("hostIPs"):
        first, path = host_ips[0].get("ip", ""), _STATUS.child("hostIPs")
        if first != status.get("hostIP", ""):
            errors.append(field.invalid(path.index(0).child("ip"), first, "must be equal to `hostIP`"))
        errors += _addresses_errors(host_ips, old.get("hostIPs") or (), path)
    return errors


def _claim_errors(statuses: Sequence[Object], claims: Sequence[Object]) -> ErrorList:
    path, known = _STATUS.child("resourceClaimStatuses"), {claim.get("name") for claim in claims}
    detail = "must match the name of an entry in `spec.resourceClaims`"
    return [
        field.invalid(path.index(i).child("name"), status.get("name", ""), detail)
        for i, status in enumerate(statuses)
        if status.get("name") not in known
    ]


def _addresses_errors(addresses: Sequence[Object], before: Sequence[Object], path: Path) -> ErrorList:
    texts, known = [address.get("ip", "") for address in addresses], [address.get("ip", "") for address in before]
    errors = [error for i, text in enumerate(texts) for error in ip_errors(text, path.index(i), known)]
    if len(texts) <= 1 or errors:
        return errors
    if len(texts) > _MAX_ADDRESSES or len({ipaddress.ip_address(text).version for text in texts}) < _MAX_ADDRESSES:
        shown = [{"IP": text} for text in texts]
        errors.append(field.invalid(path, shown, "may specify no more than one IP for each IP family"))
    return errors
