"""The kind and apiVersion that a document names.

Upstream: k8s.io/apimachinery/pkg/runtime/serializer/json/meta.go, pkg/runtime/scheme.go.
"""

from collections.abc import Mapping
from typing import Any, Final

from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.gvk import GroupVersion, GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.serializer import json

GO_TYPE_META: Final = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)
GO_NAMES: Final[Mapping[type, str]] = {list: "array", str: "string", bool: "bool", int: "number", float: "number"}
INTERNAL: Final = "__internal"
"""The version in which upstream works with an object of any version."""
_TYPE_FIELDS: Final = {"kind": "kind", "apiversion": "apiVersion"}
# Groups whose package isn't their first word: kinds that moved to another group have one internal type.
_INTERNAL_PACKAGES: Final = {"": "core", "events.k8s.io": "core", "internal.apiserver.k8s.io": "apiserverinternal"}


class NoGroupVersion(ValueError):
    """An apiVersion is no group and version."""


def checked_type_meta(document: Any, *, any_case: bool = False) -> Object:
    """Returns the document as an object whose kind and apiVersion are text or absent. Raises ValueError in Go's words, and
    NoGroupVersion.

    any_case: as upstream reads the types of built-in kinds, whatever the case of the names; of several the last counts that
    isn't null.
    """
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ValueError(f"json: cannot unmarshal {_go_name(document)} into Go value of type {GO_TYPE_META}")
    type_meta: dict[str, str] = {}
    for key, value in document.pairs if isinstance(document, json.Repeated) else document.items():
        name = _TYPE_FIELDS.get(key.lower()) if any_case else key
        if name not in ("kind", "apiVersion") or value is None:
            continue
        if not isinstance(value, str):
            raise ValueError(f"json: cannot unmarshal {_go_name(value)} into Go struct field .{name} of type string")
        type_meta[name] = value
    for name in ("kind", "apiVersion"):
        if name not in type_meta:
            document.pop(name, None)
        elif document.get(name) != type_meta[name]:
            document[name] = type_meta[name]
    try:
        GroupVersion.parse(type_meta.get("apiVersion", ""))
    except ValueError as error:
        raise NoGroupVersion(str(error)) from None
    return document


def _go_name(value: Any) -> str:
    return "number" if isinstance(value, json.Written) else GO_NAMES.get(type(value), "object")


def named_type(obj: Object, kind: str) -> GroupVersionKind:
    """Returns the type that an object names; one without a kind is of `kind`."""
    group, version = GroupVersion.parse(obj.get("apiVersion", ""))
    return GroupVersionKind(group, version, obj.get("kind") or kind)


def internal_package(group: str) -> str:
    """Returns the Go package of a group's internal types, as conversion errors name it."""
    return _INTERNAL_PACKAGES.get(group) or group.partition(".")[0]


def not_registered(gvk: GroupVersionKind) -> str:
    """Returns upstream's sentence about an unknown type."""
    version = f"version {go_quote(str(gvk.group_version))}"
    if gvk.version == INTERNAL:
        version = f"the internal version of group {go_quote(gvk.group)}"
    return f'no kind {go_quote(gvk.kind)} is registered for {version} in scheme "pkg/runtime/scheme.go:111"'
