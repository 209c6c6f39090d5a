"""Tests which errors are ignored for an unchanged value (upstream: k8s.io/apiserver/pkg/cel/common/equality.go)."""

from typing import Any

import pytest

from fakeapiserver.apimachinery.schema.validate import Validator, validate_object

ITEM = {
    "type": "object",
    "required": ["k"],
    "properties": {"k": {"type": "string"}, "n": {"type": "integer", "maximum": 1}},
}
KEYED = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": ITEM}
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "properties": {"keyed": KEYED, "plain": {"type": "array", "items": ITEM}}}
    },
}


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"plain": [{"n": 2}]}, []),
        ({"keyed": [{"k": "a", "n": 2}]}, []),
        ({"keyed": [{}]}, ["spec.keyed[0].k"]),
        ({"keyed": [{"k": "a", "n": 2}, {}]}, ["spec.keyed[1].k"]),
        ({"unknown": 1, "plain": [{"n": 2}]}, []),
    ],
    ids=[
        "a plain list is a value",
        "elements are known by keys",
        "without a key none is",
        "nor its siblings",
        "unknown fields",
    ],
)
def test_what_is_as_it_was(spec: dict[str, Any], told: list[str]) -> None:
    errors = validate_object(Validator(SCHEMA), {"spec": spec}, {"spec": spec})
    assert [error.field for error in errors] == told
