"""Pods, claims and volumes as Go's internal types print them, which some messages show: Go's names, in Go's order, with every unset field.

Upstream: pkg/apis/core/types.go, pkg/apis/core/v1/conversion.go. The layout is recorded (conformance/record_internal_types.py).
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import msgspec

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.schema.raw_text import RawText, marshalled
from fakeapiserver.apis.recorded import NEWEST, read_table

_ZEROES: Final[Mapping[str, Any]] = {"string": "", "number": 0, "bool": False, "quantity": "0", "port": 0}
# Of a PodSpec on the wire, what belongs to its security context inside.
_MOVED: Final = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")
# Go's order of what of an object's metadata a template may have.
_METADATA: Final = (
    *("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp"),
    *("deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers"),
    "managedFields",
)
# The same of any object's.
_OBJECT_METADATA: Final = (
    *("name", "generateName", "namespace", "uid", "generation", "creationTimestamp", "deletionTimestamp"),
    *("deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers"),
)


@cache
def _rows() -> Mapping[str, list[list[str]]]:
    found: Mapping[str, list[list[str]]] = read_table(NEWEST, "internal_types.json")
    return found


def internal_form(value: Object, name: str) -> Object:
    """`name` is the type's: PodSpec, PodTemplateSpec, PersistentVolumeClaimSpec, PersistentVolumeSource."""
    if name == "PodSpec":
        moved = {key: value[key] for key in _MOVED if key in value}
        value = {**value, "securityContext": {**(value.get("securityContext") or {}), **moved}}
    out: Object = {}
    for field, key, kind in _rows()[name]:
        found = value.get(key)
        if field:
            out[field] = _value(found, kind)
        else:
            out |= {part: _sorted(found[part]) for part in _METADATA if found and found.get(part)}
    return out


def _sorted(value: Any) -> Any:
    """Go writes a map's keys in order."""
    return dict(sorted(value.items())) if isinstance(value, dict) else value


def claim_form(claim: Object) -> Object:
    """A whole claim, without what a kubelet may change, which is compared without."""
    meta, status = claim.get("metadata") or {}, claim.get("status") or {}
    modified = status.get("modifyVolumeStatus")
    if modified is not None:
        modified = {
            "TargetVolumeAttributesClassName": modified.get("targetVolumeAttributesClassName", ""),
            "Status": modified.get("status", ""),
        }
    return {
        **{name: meta[name] for name in _OBJECT_METADATA if meta.get(name)},
        "Spec": internal_form(claim.get("spec") or {}, "PersistentVolumeClaimSpec"),
        "Status": {
            "Phase": status.get("phase", ""),
            "AccessModes": status.get("accessModes"),
            **dict.fromkeys(("Capacity", "Conditions", "AllocatedResources", "AllocatedResourceStatuses")),
            "CurrentVolumeAttributesClassName": status.get("currentVolumeAttributesClassName"),
            "ModifyVolumeStatus": modified,
        },
    }


def _value(found: Any, kind: str) -> Any:
    if isinstance(found, RawText):
        return msgspec.Raw(marshalled(found.text).encode()) if found.text else found
    rows = _rows()
    if kind == "wire" and isinstance(found, dict):
        return selector_form(found)
    name = kind.lstrip("[]*")
    if name not in rows and isinstance(found, dict):
        return dict(sorted(found.items()))
    if name not in rows:
        return _ZEROES.get(kind) if found is None else found
    if kind.startswith("[]"):
        return None if found is None else [internal_form(item, name) for item in found]
    return None if found is None and kind.startswith("*") else internal_form(found or {}, name)


def selector_form(selector: Object) -> Object:
    """A label selector, in the order of its fields, which are named as on the wire."""
    out: Object = {}
    if selector.get("matchLabels"):
        out["matchLabels"] = dict(sorted(selector["matchLabels"].items()))
    if selector.get("matchExpressions"):
        out["matchExpressions"] = [
            {
                **{name: requirement.get(name, "") for name in ("key", "operator")},
                **({"values": requirement["values"]} if requirement.get("values") else {}),
            }
            for requirement in selector["matchExpressions"]
        ]
    return out
