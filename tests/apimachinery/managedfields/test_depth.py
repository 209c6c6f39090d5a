"""Deeply nested values: what can be created can also be compared, and so be patched."""

from typing import Any

import pytest

from fakeapiserver.apimachinery.managedfields.compare import compare
from fakeapiserver.apimachinery.managedfields.typed import structural_schema
from fakeapiserver.apimachinery.managedfields.validate import fits
from fakeapiserver.apimachinery.meta import copied, same

_DEPTH = 450
_SCHEMA = structural_schema({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, {})


def _arrays() -> Any:
    value: Any = []
    for _ in range(_DEPTH):
        value = [value]
    return value


def _maps() -> Any:
    value: Any = 1
    for _ in range(_DEPTH):
        value = {"a": value}
    return value


@pytest.mark.parametrize("value", [_arrays(), _maps()], ids=["arrays", "maps"])
def test_one_frame_a_level(value: Any) -> None:
    assert same(value, copied(value))
    assert not same(value, [copied(value)])
    assert fits(_SCHEMA.root, {"a": value})
    assert compare({"a": value}, {"a": copied(value)}, _SCHEMA) == ({}, {}, {})
