"""Tests the ownership of empty lists and maps that aren't stored."""

from typing import Any

import pytest

from fakeapiserver.apimachinery.managedfields.emptied import emptied
from fakeapiserver.apimachinery.managedfields.fieldset import FieldSet
from fakeapiserver.apimachinery.managedfields.typed import builtin_schema
from fakeapiserver.apis.scheme import load

_LIMIT_RANGE = builtin_schema(load().definitions, "io.k8s.api.core.v1.LimitRange")


def _range(limit: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"limits": [{"type": "Container", **limit}]}}


@pytest.mark.parametrize(
    ("now", "owned"),
    [
        ({}, {"f:spec": {"f:limits": {}}}),
        ({"defaultRequest": {"cpu": "1"}}, {}),
    ],
)
def test_what_defaults_have_filled_is_no_longer_empty(now: dict[str, Any], owned: FieldSet) -> None:
    stored = _range({"defaultRequest": {"cpu": "1"}})
    assert emptied(_LIMIT_RANGE, stored, _range(now), {("spec", "limits", 0, "defaultRequest"): {}}) == owned
