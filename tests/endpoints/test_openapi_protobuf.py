"""OpenAPI documents as messages: digests and texts of gnostic-models v0.7.0's output for the same JSON."""

import hashlib
from typing import Any

import pytest

from fakeapiserver.apimachinery.serializer.protobuf.wire import delimited
from fakeapiserver.apis import scheme
from fakeapiserver.apis.resource_table import ResourceTable
from fakeapiserver.endpoints.openapi import descriptions, v2, words
from fakeapiserver.endpoints.openapi.documents import OpenAPI
from fakeapiserver.endpoints.openapi.protobuf import encoder


@pytest.fixture(autouse=True)
def without_prose(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descriptions, "load", dict)
    for name in ("fixed", "operation", "connect", "parameter"):
        monkeypatch.setattr(words, name, lambda *_: "")


@pytest.fixture(scope="module")
def openapi() -> OpenAPI:
    return OpenAPI(ResourceTable(scheme.load("v1.36")))


def digest(message: bytes) -> str:
    return hashlib.sha256(message).hexdigest()[:16]


def test_version_2(openapi: OpenAPI) -> None:
    assert digest(v2.Version2(openapi.table, openapi).body(as_protobuf=True)) == "e1867a8e048cf233"
    assert digest(encoder("v2")(v2.document(openapi.table, openapi))) == "e1867a8e048cf233"


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("api/v1", "ddbb4c19d6109eaa"),
        ("apis/apps/v1", "ca1818117dc37370"),
        ("apis/resource.k8s.io/v1", "9b9b86b02f0459d0"),
        ("version", "4eece32984f442aa"),
        ("apis", "d143cc01fa4d08a1"),
    ],
)
def test_version_3(openapi: OpenAPI, key: str, expected: str) -> None:
    assert digest(encoder("v3")(openapi.build(key))) == expected


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": [{"b": "c"}]}, "a:\n    - b: c\n"),
        ({"a": "x\ny"}, "a: |-\n    x\n    y\n"),
        (["x\ny\n", {"d": [[1], "é"]}], "- |\n  x\n  y\n- d:\n    - - 1\n    - é\n"),
        ("true", '"true"\n'),
        (True, "true\n"),
        (1, "1\n"),
        ({"yes": "12:30:45", "n": "- a", "e": {}, "l": []}, "yes: 12:30:45\nn: '- a'\ne: {}\nl: []\n"),
        ("a \nb", '"a \\nb"\n'),
        ([{"m": {"k": "v"}}], "- m:\n    k: v\n"),
        (1.5, "1.5\n"),
        (None, "null\n"),
    ],
)
def test_free_values_are_yaml(value: Any, text: str) -> None:
    document = {"swagger": "2.0", "x-a": value}
    extension = delimited(1)(b"x-a") + delimited(2)(delimited(2)(text.encode()))
    assert encoder("v2")(document) == delimited(1)(b"2.0") + delimited(16)(extension)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"additionalProperties": False}, bytes.fromhex("aa01021000")),
        ({"type": ["string"]}, bytes.fromhex("b201080a06") + b"string"),
        ({"title": "", "uniqueItems": False, "maxLength": 0}, b""),
    ],
)
def test_zero_values_are_left_out_but_in_a_choice(schema: dict[str, Any], expected: bytes) -> None:
    named = delimited(1)(b"S") + delimited(2)(expected)
    document = {"definitions": {"S": schema}}
    assert encoder("v2")(document) == delimited(9)(delimited(1)(named))
