"""Claims for devices: which ones a pod has, and which pod a claim belongs to.

Upstream: k8s.io/dynamic-resource-allocation/resourceclaim (claim.go, devicetoleration.go).
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.component_helpers.objects import controller_of

FINALIZER: Final = "resource.kubernetes.io/delete-protection"
MAX_RESERVED: Final = 256


def claim_names(pod: Object) -> Iterable[tuple[Object, str | None]]:
    """Yields each of the pod's claims with the name of its object:

    None if it isn't created yet, "" if none is needed.
    """
    statuses = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    made = {row["name"]: row.get("resourceClaimName", "") for row in statuses}
    for row in pod["spec"].get("resourceClaims") or ():
        yield row, row.get("resourceClaimName") or made.get(row["name"])


def is_generated(row: Object) -> bool:
    """Reports whether a template makes this claim of a pod."""
    return bool(row.get("resourceClaimTemplateName"))


def is_for(pod: Object, claim: Object) -> bool:
    """Reports whether it was made for this pod."""
    owner = controller_of(claim)
    return owner is not None and owner["uid"] == pod["metadata"]["uid"]


def is_reserved_for(pod: Object, claim: Object) -> bool:
    uid = pod["metadata"]["uid"]
    return any(row["uid"] == uid for row in (claim.get("status") or {}).get("reservedFor") or ())


def tolerates_device_taint(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    operator = toleration.get("operator") or "Equal"
    return operator == "Exists" or (operator == "Equal" and toleration.get("value", "") == taint.get("value", ""))
