"""Values as 1.33 shows them in messages: in Go's own syntax, with their types. Later versions show JSON.

Upstream: field.Error.ErrorBody of k8s.io/apimachinery v0.33 (pkg/util/validation/field/errors.go), Go's fmt for %#v.
Where Go prints a pointer's address, the value differs between processes.

    go_syntax("spec.scopes", ["x"])      # '[]core.ResourceQuotaScope{"x"}'
"""

import re
from base64 import b64decode
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Raw
from msgspec.json import decode

from fakeapiserver.apimachinery.field import go_float
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.quantity import BINARY, EXPONENT
from fakeapiserver.apis.internal_form import LABEL_SELECTOR, InternalForm, internal_rows, moved_in

_VERSION: Final = "v1.33"
_QUANTITY: Final = "resource.Quantity"
_INT_OR_STRING: Final = "intstr.IntOrString"
_ADDRESS: Final = "0xc000000000"
_OF_RESOURCES: Final = re.compile(
    r"\.(?:hard|max|min|default|\w+Ratio|\w+Request|limits|requests|capacity|allocatable)\["
)
# The details of values that are shown as they are: names of a string type.
_PLAIN: Final = ('supported values: "cpu", "memory"', 'supported values: "ControllerResizeInProgress"')
_RULES: Final = "either `defaultBackend` or `rules` must be specified"
_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)Z")
# Go's type of the refused value, by its place, where the value does not determine it.
_TYPES: Final = (
    (re.compile(r"^spec\.limits\[\d+\]\.\w+\[[^]]*\]$"), _QUANTITY),
    (re.compile(r"\.averageValue$"), _QUANTITY),
    (re.compile(r"\.(?:maxSurge|maxUnavailable|minAvailable)$"), _INT_OR_STRING),
    (re.compile(r"^spec\.scopes$"), "[]core.ResourceQuotaScope"),
    (re.compile(r"^spec\.capacity$"), "core.ResourceList"),
    (re.compile(r"^spec\.request$"), "[]byte"),
    (re.compile(r"^spec\.cidrs$"), "[]string"),
    (re.compile(r"^status\.storedVersions$"), "[]string"),
    (re.compile(r"\.metadata\.labels$"), "map[string]string"),
    (re.compile(r"\.nodeSelectorTerms$"), "[]core.NodeSelectorTerm"),
)
# The package of types that aren't core's.
_PACKAGES: Final = {
    "FlowDistinguisherMethod": "flowcontrol",
    "FlowSchemaSpec": "flowcontrol",
    "NonResourceAttributes": "authorization",
    "ParentReference": "networking",
    "PriorityLevelConfigurationSpec": "flowcontrol",
    "RoleRef": "rbac",
    "ServiceCIDRSpec": "networking",
}
_SELECTOR: Final = (
    ("MatchLabels", "matchLabels", "", "map[string]string"),
    ("MatchExpressions", "matchExpressions", "", "[]v1.LabelSelectorRequirement"),
)
_REQUIREMENT: Final = (
    ("Key", "key", "", "string"),
    ("Operator", "operator", "", "v1.LabelSelectorOperator"),
    ("Values", "values", "", "[]string"),
)
_METADATA: Final = (
    *((name[0].upper() + name[1:], name, "", "string") for name in ("name", "generateName", "namespace", "selfLink")),
    ("UID", "uid", "", "types.UID"),
    ("ResourceVersion", "resourceVersion", "", "string"),
    ("Generation", "generation", "", "int64"),
    ("CreationTimestamp", "creationTimestamp", "", "time.Time"),
    ("DeletionTimestamp", "deletionTimestamp", "", "*v1.Time"),
    ("DeletionGracePeriodSeconds", "deletionGracePeriodSeconds", "", "*int64"),
    ("Labels", "labels", "", "map[string]string"),
    ("Annotations", "annotations", "", "map[string]string"),
    ("OwnerReferences", "ownerReferences", "", "[]v1.OwnerReference"),
    ("Finalizers", "finalizers", "", "[]string"),
    ("ManagedFields", "managedFields", "", "[]v1.ManagedFieldsEntry"),
)
_WIRE_TYPES: Final = {
    "v1.LabelSelector": _SELECTOR,
    "v1.LabelSelectorRequirement": _REQUIREMENT,
    "v1.ObjectMeta": _METADATA,
}


def go_syntax(place: str, value: Any, detail: str = "") -> str | None:
    """Returns the value in a refusal as 1.33 shows it, or None if later versions show the same."""
    if isinstance(value, str):
        if _is_plain(place, value, detail):
            return value
        if place.endswith(("Time", "Timestamp")) and (time := _TIME.fullmatch(value)):
            return f"{time[1]} {time[2]} +0000 UTC"
        go_type = _QUANTITY if detail == "must be an integer" else _type_at(place)
        if go_type == "[]byte":
            return f"[]byte{{{', '.join(map(hex, b64decode(value)))}}}"
        return _shown(value, go_type) if go_type in (_QUANTITY, _INT_OR_STRING) else None
    if isinstance(value, Raw):  # a text of a named type, or what points to one
        text = decode(value)
        if _is_plain(place, text, detail):
            return str(text)
        return go_quote(text) if isinstance(text, str) else _raw_extension(bytes(value))
    if isinstance(value, bool | int | float):
        return None
    if isinstance(value, InternalForm):
        return _struct(value.value, _name_of(value))
    go_type = "[]networking.IngressRule" if detail == _RULES else _type_at(place)
    if value is None:
        return f"{go_type}(nil)" if go_type not in ("", _QUANTITY, _INT_OR_STRING) else '"null"'
    if isinstance(value, list) and value and isinstance(value[0], InternalForm):
        return _shown([item.value for item in value], f"[]{_name_of(value[0])}")
    if isinstance(value, list):
        scalars = "[]int32" if value and all(isinstance(item, int) for item in value) else "[]string"
        return _shown(value, go_type or scalars)
    if isinstance(value, dict):
        return _shown(value, go_type or "map[string]string") if go_type or _is_map(value) else None
    return None


def _is_plain(place: str, text: object, detail: str) -> bool:
    """Reports whether a text has words of its own, as a resource's name has."""
    return detail.startswith(_PLAIN) or (place.endswith(f"[{text}]") and _OF_RESOURCES.search(place) is not None)


def _type_at(place: str) -> str:
    return next((kind for pattern, kind in _TYPES if pattern.search(place)), "")


def _is_map(value: Mapping[str, Any]) -> bool:
    return all(isinstance(item, str) for item in value.values())


def _name_of(form: InternalForm) -> str:
    package = "v1" if form.kind == LABEL_SELECTOR else _PACKAGES.get(form.kind, "core")
    return f"{package}.{form.kind}"


def _shown(value: Any, kind: str) -> str:
    """A value of a type as %#v prints it below the top."""
    if kind == "*v1.Time" and value is None:
        return "<nil>"
    if kind == "time.Time" and value is None:
        return "time.Date(1, time.January, 1, 0, 0, 0, 0, time.UTC)"
    if kind.startswith("*"):
        return f"({kind})({'nil' if value is None else _ADDRESS})"
    if kind.startswith("[]"):
        if value is None:
            return f"{kind}(nil)"
        return f"{kind}{{{', '.join(_shown(item, kind[2:]) for item in value)}}}"
    if kind.startswith("map["):
        element = kind.partition("]")[2]
        return _map(value, kind, element)
    if kind == "core.ResourceList":
        return _map(value, kind, _QUANTITY)
    if kind == _QUANTITY:
        return _quantity(str(value))
    if kind == _INT_OR_STRING:
        number, text = (value or 0, "") if not isinstance(value, str) else (0, value)
        return f"{kind}{{Type:{int(isinstance(value, str))}, IntVal:{number}, StrVal:{go_quote(text)}}}"
    if kind == "bool":
        return "true" if value else "false"
    if kind in ("int", "int32", "int64"):
        return str(value or 0)
    name = kind.rpartition(".")[2]
    if kind in _WIRE_TYPES or name in internal_rows(_VERSION):
        return _struct(value or {}, kind)
    return go_float(value) if isinstance(value, float) else go_quote(str(value or ""))


def _raw_extension(text: bytes) -> str:
    raw = ", ".join(f"{byte:#x}" for byte in text)
    return f"runtime.RawExtension{{Raw:[]uint8{{{raw}}}, Object:runtime.Object(nil)}}"


def _map(value: Mapping[str, Any] | None, kind: str, element: str) -> str:
    if value is None:
        return f"{kind}(nil)"
    return f"{kind}{{{', '.join(f'{go_quote(key)}:{_shown(value[key], element)}' for key in sorted(value))}}}"


def _struct(value: Mapping[str, Any], kind: str) -> str:
    name = kind.rpartition(".")[2]
    if name == "PodSpec":
        value = moved_in(dict(value))
    rows = _WIRE_TYPES.get(kind) or internal_rows(_VERSION)[name]
    fields = (f"{field or 'ObjectMeta'}:{_shown(value.get(key), go_type)}" for field, key, _, go_type in rows)
    return f"{kind}{{{', '.join(fields)}}}"


def _quantity(text: str) -> str:
    """Returns a quantity as Go has it after parsing its canonical text by its fast path."""
    digits = re.match(r"-?\d+", text)
    number, suffix = (int(digits[0]), text[digits.end() :]) if digits else (0, "")
    binary = suffix in BINARY[1:]
    shown, scale = (number << 10 * BINARY.index(suffix), 0) if binary else (number, EXPONENT.get(suffix, 0))
    kept = text if number > 0 and (not binary or number & 7) else ""
    written = "BinarySI" if binary else "DecimalSI"
    return (
        f"{_QUANTITY}{{i:resource.int64Amount{{value:{shown}, scale:{scale}}}, d:resource.infDecAmount{{Dec:(*inf.Dec)(nil)}}, "
        f"s:{go_quote(kept)}, Format:{go_quote(written)}}}"
    )
