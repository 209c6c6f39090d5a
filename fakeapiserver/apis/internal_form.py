"""Pods, claims and volumes as Go's internal types print them, which some messages show: Go's names, in Go's order, with every unset field.

Upstream: pkg/apis/core/types.go, pkg/apis/core/v1/conversion.go. The layout is recorded (conformance/record/internal_types.py).
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

import msgspec

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.schema.raw_text import RawText, marshalled
from fakeapiserver.apis.recorded import NEWEST, read_table

# An internal form of which nothing is recorded, since it is as on the wire.
LABEL_SELECTOR: Final = "LabelSelector"
_ZEROES: Final[Mapping[str, Any]] = {"string": "", "number": 0, "bool": False, "quantity": "0", "port": 0}
# Of a PodSpec on the wire, what belongs to its security context inside, until 1.36.
_MOVED: Final = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")
# Go's order of the metadata that a template may have.
_METADATA: Final = (
    *("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp"),
    *("deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers"),
    "managedFields",
)
# And of a metav1.Condition.
_CONDITION: Final = ("type", "status", "observedGeneration", "lastTransitionTime", "reason", "message")
# The same of any object's.
_OBJECT_METADATA: Final = (
    *("name", "generateName", "namespace", "uid", "generation", "creationTimestamp", "deletionTimestamp"),
    *("deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers"),
)


class InternalForm(dict[str, Any]):
    """A value as messages of the newest version show it.

    `value` is its wire form, of the internal type `kind`; other versions have other types.
    """

    __slots__ = ("kind", "value")

    def __init__(self, shown: Object, value: Object, kind: str) -> None:
        super().__init__(shown)
        self.value, self.kind = value, kind


@cache
def internal_rows(version: str) -> Mapping[str, list[list[str]]]:
    """Internal type -> its fields: [Go name, wire name, type, …] (conformance/record/internal_types.py)."""
    rows: Mapping[str, list[list[str]]] = read_table(version, "internal_types.json")
    return rows


def internal_form(value: Object, name: str) -> InternalForm:
    """`name` is the type's: PodSpec, PodTemplateSpec, PersistentVolumeClaimSpec, PersistentVolumeSource."""
    return InternalForm(_form(value, name, internal_rows(NEWEST)), value, name)


def in_version(shown: Any, version: str) -> Any:
    """Converts a value in a message of the newest version to that of an older one."""
    if isinstance(shown, InternalForm):
        rows = internal_rows(version)
        return _form(shown.value, shown.kind, rows) if shown.kind in rows else dict(shown)
    if isinstance(shown, dict):
        return {key: in_version(value, version) for key, value in shown.items()}
    return [in_version(item, version) for item in shown] if isinstance(shown, list) else shown


def moved_in(value: Object) -> Object:
    """A PodSpec with what belongs to its security context inside there."""
    moved = {key: value[key] for key in _MOVED if key in value}
    return {**value, "securityContext": {**(value.get("securityContext") or {}), **moved}}


def _form(value: Object, name: str, rows: Mapping[str, list[list[str]]]) -> Object:
    if name == "PodSpec" and not any(row[1] in _MOVED for row in rows[name]):
        value = moved_in(value)
    out: Object = {}
    for field, key, kind, *_ in rows[name]:
        inner_value = value.get(key)
        if field:
            out[field] = _value(inner_value, kind, rows)
        else:
            out |= {part: _sorted(inner_value[part]) for part in _METADATA if inner_value and inner_value.get(part)}
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


def template_claim_form(claim: Object) -> Object:
    """A template of a claim, as messages show it since 1.37."""
    form, status = claim_form(claim), claim.get("status") or {}
    seen = {"Capacity": status.get("capacity"), "Conditions": status.get("conditions"), "HealthStatus": None}
    return {**form, "Status": {**form["Status"], **seen}}


def _value(part: Any, kind: str, rows: Mapping[str, list[list[str]]]) -> Any:
    if isinstance(part, RawText):
        return msgspec.Raw(marshalled(part.text).encode()) if part.text else part
    if kind == "wire" and isinstance(part, dict):
        return selector_form(part)
    if kind == "wire" and isinstance(part, list):
        return conditions_form(part)
    name = kind.lstrip("[]*")
    if name not in rows and isinstance(part, dict):
        return dict(sorted(part.items()))
    if name not in rows:
        return _ZEROES.get(kind) if part is None else part
    if kind.startswith("[]"):
        return None if part is None else [_form(item, name, rows) for item in part]
    return None if part is None and kind.startswith("*") else _form(part or {}, name, rows)


def conditions_form(conditions: Sequence[Object]) -> list[Object]:
    """Conditions, in the order of their fields, which are named as on the wire."""
    return [{key: condition[key] for key in _CONDITION if key in condition} for condition in conditions]


def selector_form(selector: Object) -> InternalForm:
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
    return InternalForm(out, selector, LABEL_SELECTOR)
