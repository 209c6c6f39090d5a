"""Versioned configuration files of components, such as AdmissionConfiguration, decoded strictly.

Upstream: k8s.io/apimachinery/pkg/runtime/serializer (EnableStrict), k8s.io/apiserver/pkg/admission/config.go.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.field import go_quote
from fakeapiserver.apimachinery.meta import Object

# The fields of a mapping, the items of a list (one shape for all), or anything.
Shape = Mapping[str, "Shape"] | Sequence["Shape"] | None

_TYPE_META: Final = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)
_GO_NAMES: Final[Mapping[type, str]] = {list: "array", str: "string", bool: "bool", int: "number", float: "number"}
_SCHEME: Final = 'scheme "pkg/runtime/scheme.go:111"'


def decode(data: bytes, kind: str, versions: Collection[str], shape: Mapping[str, Shape]) -> Object:
    """The document in a file. ValueError, worded as upstream words it, when it is not of that kind in one of those apiVersions, or
    has fields that nobody knows."""
    from fakeapiserver.apimachinery.serializer import yaml

    document, duplicates = yaml.decode_with_duplicates(data)
    if not isinstance(document, dict | None):
        what = f"cannot unmarshal {_GO_NAMES[type(document)]} into Go value of type {_TYPE_META}"
        raise ValueError(f"couldn't get version/kind; json parse error: json: {what}")
    document = document or {}
    for field, called in (("kind", "Kind"), ("apiVersion", "apiVersion")):
        if not document.get(field):
            raise ValueError(f"Object '{called}' is missing in '{data.decode(errors='replace')}'")
    check_kind(document, kind, versions)
    if problems := duplicates + list(unknown_fields(document, {"kind": None, "apiVersion": None, **shape})):
        raise ValueError(f"strict decoding error: {', '.join(problems)}")
    return document


def check_kind(document: Object, kind: str, versions: Collection[str]) -> None:
    """ValueError for a document of another kind or version."""
    found, version = document.get("kind", ""), document.get("apiVersion", "")
    if found != kind or version not in versions:
        raise ValueError(
            f"no kind {go_quote(str(found))} is registered for version {go_quote(str(version))} in {_SCHEME}"
        )


def unknown_fields(value: Any, shape: Shape, path: str = "") -> Iterator[str]:
    """`unknown field "plugins[0].nome"`, in the order of the document. ValueError where a value has another type than its shape."""
    if shape is None or value is None:
        return
    if isinstance(shape, Mapping):
        if not isinstance(value, dict):
            raise ValueError(f"{path or 'the document'} must be a mapping, not {value!r}")
        for name, inner in value.items():
            at = f"{path}.{name}" if path else name
            if name not in shape:
                yield f"unknown field {go_quote(at)}"
            else:
                yield from unknown_fields(inner, shape[name], at)
        return
    if not isinstance(value, list):
        raise ValueError(f"{path} must be a list, not {value!r}")
    for i, item in enumerate(value):
        yield from unknown_fields(item, shape[0], f"{path}[{i}]")
