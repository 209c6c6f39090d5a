"""Tests the conversion of a strategic merge's result into Go's structs, and its errors."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fakeapiserver.apimachinery.schema.builtin import DecodeError
from fakeapiserver.apimachinery.schema.unstructured import restore
from fakeapiserver.apis.field_order import field_order

SCHEMAS = Path(__file__).parents[3] / "fakeapiserver/apis/versions/v1.36/schemas.json"


@cache
def definitions() -> Any:
    return json.loads(SCHEMAS.read_bytes())


def restored(kind: str, **content: Any) -> dict[str, Any]:
    obj = {"metadata": {"name": "x"}, **content}
    restore(obj, kind, definitions(), field_order)
    return obj


DEPLOYMENT, CONFIG_MAP = "io.k8s.api.apps.v1.Deployment", "io.k8s.api.core.v1.ConfigMap"


@pytest.mark.parametrize(
    ("kind", "content", "words"),
    [
        (CONFIG_MAP, {"data": "x"}, "cannot restore map from string"),
        (CONFIG_MAP, {"data": {"a": 1}}, "cannot convert int64 to string"),
        (CONFIG_MAP, {"data": {"a": 1.5}}, "unrecognized type: string"),
        (CONFIG_MAP, {"immutable": "x"}, "unrecognized type: bool"),
        (CONFIG_MAP, {"binaryData": {"a": 5}}, "cannot restore slice from int64"),
        (CONFIG_MAP, {"binaryData": {"a": "!"}}, "error decoding from json: illegal base64 data at input byte 0"),
        (CONFIG_MAP, {"metadata": []}, "cannot restore struct from: slice"),
        (CONFIG_MAP, {"metadata": {"finalizers": "x"}}, "cannot restore slice from string"),
        (
            CONFIG_MAP,
            {"metadata": {"creationTimestamp": 5}},
            "json: cannot unmarshal number into Go value of type string",
        ),
        (DEPLOYMENT, {"spec": {"replicas": "x"}}, "unrecognized type: int32"),
        (DEPLOYMENT, {"spec": {"replicas": 2.5}}, "cannot convert float64 to int32"),
        (
            DEPLOYMENT,
            {"spec": {"strategy": {"type": 1}}},
            "cannot convert int64 to v1.DeploymentStrategyType",
        ),
    ],
)
def test_a_mismatch_has_the_converters_message(kind: str, content: dict[str, Any], words: str) -> None:
    with pytest.raises(DecodeError) as raised:
        restored(kind, **content)
    assert str(raised.value) == words


@pytest.mark.parametrize(("given", "held"), [(2.0, 2), (3, 3), (2**32 + 2, 2), (2**31, -(2**31)), (None, None)])
def test_integers_are_cut_to_their_size(given: Any, held: Any) -> None:
    assert restored(DEPLOYMENT, spec={"replicas": given})["spec"]["replicas"] == held
