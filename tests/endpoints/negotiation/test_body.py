"""A body by itself: kinds that the server knows, and what becomes of complaints about fields."""

from typing import Any

import pytest

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apimachinery.serializer import cbor
from fakeapiserver.apis.scheme import load
from fakeapiserver.endpoints.negotiation.body import Body, KnownKind, defaulted
from fakeapiserver.registry.generic.kind import BuiltinKind

_DEFINITION = "io.k8s.api.core.v1.ConfigMap"
_DEFINITIONS = load().definitions
CONFIG_MAP = KnownKind(_DEFINITIONS, _DEFINITION)


def _give_label(obj: dict[str, Any], _: Any) -> None:
    obj["metadata"].setdefault("labels", {"defaulted": "yes"})


_KIND = BuiltinKind(GroupVersionKind("", "v1", "ConfigMap"), _DEFINITION, _DEFINITIONS, _give_label)


@pytest.mark.parametrize(
    ("obj", "decoded", "unknown"),
    [
        ({"data": {"a": "b"}}, {"data": {"a": "b"}, "metadata": {}}, []),
        ({"data": {"a": "b"}, "wrong": 1}, {"data": {"a": "b"}, "metadata": {}}, ['unknown field "wrong"']),
        ({"metadata": {"nmae": "x", "name": "y"}}, {"metadata": {"name": "y"}}, ['unknown field "metadata.nmae"']),
    ],
)
def test_a_known_kind_drops_unknown_fields(obj: Any, decoded: Any, unknown: list[str]) -> None:
    assert CONFIG_MAP.decode(obj) == unknown
    assert obj == decoded


def test_a_known_kind_refuses_what_does_not_fit() -> None:
    with pytest.raises(
        ValueError, match=r"json: cannot unmarshal number into Go struct field ConfigMap\.data of type string"
    ):
        CONFIG_MAP.decode({"data": {"a": 1}})


def test_a_kind_without_a_schema_accepts_everything() -> None:
    obj = {"anything": [1, {"goes": None}]}
    assert KnownKind().decode(obj) == []
    assert obj == {"anything": [1, {"goes": None}]}
    assert KnownKind().decode_cbor(b"\xff", strict=True) == []


@pytest.mark.parametrize(
    ("strict", "complaints"), [(True, ["cbor: found unknown field at map element index 1"]), (False, [])]
)
def test_cbor_is_complained_about_only_strictly(strict: bool, complaints: list[str]) -> None:
    data = cbor.encode({"data": {"a": "b"}, "wrong": 1})
    assert [
        text[: len(wanted)]
        for text, wanted in zip(CONFIG_MAP.decode_cbor(data, strict=strict), complaints, strict=True)
    ] == complaints


@pytest.mark.parametrize(
    ("validation", "warnings"), [("Ignore", []), ("Warn", ['unknown field "x"', 'duplicate field "y"'])]
)
def test_complaints_become_warnings(validation: str, warnings: list[str]) -> None:
    body = _body(validation)
    body.report(['unknown field "x"', 'duplicate field "y"'])
    assert body.warnings == warnings


def test_strict_complaints_are_refused_with_the_type() -> None:
    with pytest.raises(StatusError) as refused:
        _body("Strict").report(['unknown field "x"'], {"kind": "ConfigMap", "apiVersion": "v1"})
    message = 'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "x"'
    assert (refused.value.code, refused.value.message) == (400, message)


def test_no_complaint_is_no_refusal() -> None:
    _body("Strict").report([])


@pytest.mark.parametrize("metadata", [{}, {"metadata": None}, {"metadata": "x"}])
def test_an_object_gets_metadata_and_defaults(metadata: Any) -> None:
    assert defaulted({"data": {}, **metadata}, _KIND)["metadata"] == {"labels": {"defaulted": "yes"}}


def _body(validation: str) -> Body:
    return Body(
        data=b"",
        media_type="application/json",
        kind=_KIND,
        validation=validation,
        warnings=[],
        recognizes=lambda _: None,
    )
