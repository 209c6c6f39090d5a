"""Python types for kinds, where dicts aren't enough: pydantic models, dataclasses or msgspec structs, by apiVersion and kind.

Upstream: k8s.io/apimachinery/pkg/runtime/scheme.go, sigs.k8s.io/controller-runtime/pkg/client/apiutil.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar, cast

import msgspec

from fakeapiserver.apimachinery.gvk import GroupVersion, GroupVersionKind
from fakeapiserver.apimachinery.meta import Object

__all__ = [
    "Kind",
    "Object",
    "from_object",
    "gvk",
    "gvk_for",
    "kind",
    "to_object",
]

T = TypeVar("T")
# How a kind is named: by its type, or by its GroupVersionKind, which stands for plain dicts.
Kind = GroupVersionKind | type[Any]
_ATTRIBUTE = "__kubernetes_kind__"


def kind(api_version: str, kind: str) -> Callable[[type[T]], type[T]]:
    """Says of which kind a type's objects are.

    @kind("example.com/v1", "Widget")
    class Widget(BaseModel):
        metadata: dict[str, Any]
        spec: WidgetSpec
    """
    group, version = GroupVersion.parse(api_version)

    def named(cls: type[T]) -> type[T]:
        setattr(cls, _ATTRIBUTE, GroupVersionKind(group, version, kind))
        return cls

    return named


def gvk(api_version: str, kind: str) -> GroupVersionKind:
    """`gvk("apps/v1", "Deployment")`. ValueError for an apiVersion with more than one slash."""
    return GroupVersionKind(*GroupVersion.parse(api_version), kind)


def gvk_for(obj: Any) -> GroupVersionKind:
    """Returns the kind of a type, an object of it, a dict or a GroupVersionKind. Raises ValueError if it has none."""
    if isinstance(obj, GroupVersionKind):
        return obj
    if isinstance(obj, dict):
        if not obj.get("apiVersion") or not obj.get("kind"):
            raise ValueError("the object names no apiVersion or kind")
        return gvk(obj["apiVersion"], obj["kind"])
    registered = getattr(obj, _ATTRIBUTE, None)
    if not isinstance(registered, GroupVersionKind):
        name = obj.__name__ if isinstance(obj, type) else type(obj).__name__
        raise ValueError(f'{name} is of no kind: decorate it with @kind("example.com/v1", "{name}")')
    return registered


def to_object(obj: Any) -> Object:
    """The dict of a typed object, with apiVersion and kind; a dict as it is. ValueError."""
    if isinstance(obj, dict):
        return obj
    gvk = gvk_for(obj)
    dump = getattr(obj, "model_dump", None)
    fields = dump(mode="json", by_alias=True, exclude_none=True) if dump else msgspec.to_builtins(obj)
    return {"apiVersion": str(gvk.group_version), "kind": gvk.kind, **_without_none(fields)}


def from_object(obj: Object, kind: type[T]) -> T:
    """A typed object of a dict. ValueError with what doesn't fit (pydantic's ValidationError is one)."""
    validate = getattr(kind, "model_validate", None)
    if validate is not None:
        return cast("T", validate(obj))
    if not (dataclasses.is_dataclass(kind) or issubclass(kind, msgspec.Struct)):
        raise ValueError(f"{kind.__name__} is no pydantic model, dataclass or msgspec struct")
    try:
        return msgspec.convert(obj, kind)
    except msgspec.ValidationError as error:
        raise ValueError(f"{kind.__name__}: {error}") from None


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_none(item) for item in value]
    return value
