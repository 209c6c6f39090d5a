"""Custom resources, read by a definition's schema."""

import pytest

from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apis.custom_schema import CustomSchema
from fakeapiserver.registry.apiextensions.custom_kind import CustomKind

_SCHEMA = {"type": "object", "properties": {"size": {"type": "integer", "default": 3}}}


@pytest.mark.parametrize(("kind", "defaulted"), [("Widget", {"size": 3}), ("Gadget", {})])
def test_only_objects_of_the_kind_get_its_defaults(kind: str, defaulted: dict[str, int]) -> None:
    widget = CustomKind(GroupVersionKind("example.com", "v1", "Widget"), CustomSchema(_SCHEMA), {})
    obj = {"apiVersion": "example.com/v1", "kind": kind}
    widget.default(obj)
    assert obj == {"apiVersion": "example.com/v1", "kind": kind, **defaulted}
