"""Bodies of other types, with repeated and unknown fields: the errors and warnings, and their order."""

from typing import Any

import pytest

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apis.scheme import known_kinds, load
from fakeapiserver.endpoints.negotiation.body import Body, KnownKind
from fakeapiserver.endpoints.negotiation.builtin_body import decode_builtin
from fakeapiserver.registry.generic.kind import BuiltinKind

_SCHEME = load()


def _kind(group: str, version: str, name: str) -> BuiltinKind:
    prefix = {"": "core", "events.k8s.io": "events"}.get(group, group)
    definition = f"io.k8s.api.{prefix}.{version}.{name}"
    return BuiltinKind(GroupVersionKind(group, version, name), definition, _SCHEME.definitions, lambda obj, _: None)


CONFIG_MAP = _kind("", "v1", "ConfigMap")
EVENT = _kind("events.k8s.io", "v1", "Event")


def _recognizes(gvk: GroupVersionKind) -> KnownKind | None:
    if gvk in (GroupVersionKind("", "v1", "Pod"), GroupVersionKind("", "v1", "Event")):
        return KnownKind(_SCHEME.definitions, _kind(*gvk).definition_name)
    return KnownKind() if gvk.kind in known_kinds().get(str(gvk.group_version), ()) else None


def _decoded(
    data: bytes,
    media_type: str = "application/json",
    *,
    kind: BuiltinKind = CONFIG_MAP,
    validation: str = "Strict",
    warnings: list[str] | None = None,
) -> Any:
    return decode_builtin(
        Body(
            data=data,
            media_type=media_type,
            kind=kind,
            validation=validation,
            warnings=[] if warnings is None else warnings,
            recognizes=_recognizes,
        )
    )


def _said(body: str, kind: BuiltinKind = CONFIG_MAP, validation: str = "Strict") -> str:
    """The refusal's tail."""
    with pytest.raises(StatusError) as raised:
        _decoded(body.encode(), kind=kind, validation=validation)
    return raised.value.message


@pytest.mark.parametrize(
    ("body", "complaints"),
    [
        ('{"a":1}', ["unknown a"]),
        ('{"data":{"k":"1","k":"2","k":"3"}}', ["duplicate data.k"]),
        ('{"data":{"k":"1","k":"2"},"a":1,"data":{}}', ["duplicate data.k", "unknown a", "duplicate data"]),
        ('{"a":{"b":1,"b":2},"c":1}', ["unknown a", "unknown c"]),
        ('{"a":1,"a":2,"data":{},"data":{}}', ["unknown a", "duplicate data"]),
        ('{"metadata":{"x":1,"name":"n","name":"m"}}', ["unknown metadata.x", "duplicate metadata.name"]),
        (
            '{"metadata":{"managedFields":[{"fieldsV1":{"f:a":{},"f:a":{}}}]},"kind":"A","kind":"ConfigMap"}',
            ["duplicate kind"],
        ),
    ],
)
def test_complaints_come_in_the_order_of_the_body(body: str, complaints: list[str]) -> None:
    texts = ['{} field "{}"'.format(*complaint.split()) for complaint in complaints]
    assert _said(body).partition("strict decoding error: ")[2] == ", ".join(texts)


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ('{"apiVersion":["x"],"kind":[1]}', "array into Go struct field .apiVersion"),
        ('{"kind":{},"apiVersion":["x"]}', "object into Go struct field .kind"),
        ('{"apiVersion":7,"kind":"ConfigMap","apiVersion":"v1"}', "number into Go struct field .apiVersion"),
        ('{"kind":1.5,"metadata":{"name":"a","name":"a"}}', "number into Go struct field .kind"),
        ("1e999", "number into Go value of type struct { APIVersion string"),
        ("9" * 400, "number into Go value of type struct { APIVersion string"),
        ('{"kind":"Bogus","apiVersion":"v1","kind":null}', 'no kind "Bogus" is registered for version "v1"'),
        ('{"kind":"ConfigMap","apiVersion":"v1","KIND":"Bogus"}', 'no kind "Bogus" is registered for version "v1"'),
    ],
)
def test_a_type_is_read_in_the_order_of_the_body(body: str, complaint: str) -> None:
    assert complaint in _said(body)


def test_yaml_shows_integers_that_fit_no_field_as_they_are() -> None:
    body = b"metadata: {generation: 9223372036854775808}"
    with pytest.raises(StatusError, match="cannot unmarshal number 9223372036854775808 into Go struct field"):
        _decoded(body, "application/yaml")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (b"\x7f", "control characters are not allowed"),
        (b"\xff", "invalid leading UTF-8 octet"),
        ("\x80".encode(), "control characters are not allowed"),
        (b"\\udc00", "found invalid Unicode character escape code"),
        (b"k" * 1025, "did not find expected ',' or '}'"),
    ],
    ids=repr,
)
def test_json_that_is_no_yaml_is_refused_where_yaml_is_expected(text: bytes, complaint: str) -> None:
    body = b'{"metadata":{"name":"m"},"data":{"' + text + b'":""}}'
    with pytest.raises(StatusError, match=complaint):
        _decoded(body, "application/yaml", validation="Warn")


@pytest.mark.parametrize("blanks", [b"\t", b" \t ", b"\n\t"], ids=repr)
def test_yaml_does_not_begin_with_a_tab(blanks: bytes) -> None:
    body = blanks + b'{"metadata":{"name":"m"}}'
    with pytest.raises(StatusError, match="found character that cannot start any token"):
        _decoded(body, "application/yaml", validation="Warn")


def test_a_line_separator_in_yaml_stays() -> None:
    body = '{"metadata":{"name":"m"},"data":{"k":"a\u2028b"}}'.encode()
    assert _decoded(body, "application/yaml", validation="Warn")["data"] == {"k": "a\u2028b"}


def test_repeated_objects_add_to_each_other() -> None:
    body = b'{"metadata":{"name":"a","labels":{"x":"1","y":"1"}},"metadata":{"labels":{"y":"2"}}}'
    warnings: list[str] = []
    obj = _decoded(body, validation="Warn", warnings=warnings)
    assert obj["metadata"] == {"name": "a", "labels": {"x": "1", "y": "2"}}
    assert warnings == ['duplicate field "metadata"']


@pytest.mark.parametrize(
    ("type_meta", "kind", "said"),
    [
        ({"kind": "Nope", "apiVersion": "v1"}, CONFIG_MAP, 'no kind "Nope" is registered for version "v1"'),
        (
            {"kind": "Pod", "apiVersion": "v1"},
            CONFIG_MAP,
            "converting (v1.Pod) to (core.ConfigMap): unknown conversion",
        ),
        (
            {"kind": "Deployment", "apiVersion": "apps/v1beta1"},
            CONFIG_MAP,
            "converting (v1beta1.Deployment) to (core.ConfigMap): unknown conversion",
        ),
        (
            {"kind": "Pod", "apiVersion": "v1", "spec": 5},
            CONFIG_MAP,
            "json: cannot unmarshal number into Go struct field Pod.spec of type v1.PodSpec",
        ),
        (
            {"kind": "Event", "apiVersion": "v1"},
            EVENT,
            "the API version in the data (v1) does not match the expected API version (events.k8s.io/v1)",
        ),
        ({"kind": "ConfigMap", "apiVersion": "x/"}, CONFIG_MAP, "Object 'apiVersion' is missing in"),
        ({"kind": "ConfigMap", "apiVersion": "a/b/c"}, CONFIG_MAP, "unexpected GroupVersion string: a/b/c"),
        ({"KIND": "Nope"}, CONFIG_MAP, 'no kind "Nope" is registered for version "v1"'),
    ],
)
def test_bodies_of_another_type(type_meta: dict[str, Any], kind: BuiltinKind, said: str) -> None:
    import json

    assert said in _said(json.dumps(type_meta), kind)


@pytest.mark.parametrize("api_version", ["", "v1", "/v1", "v1/", None])
def test_a_body_gets_its_type_in_full(api_version: str | None) -> None:
    import json

    body = json.dumps({"apiVersion": api_version, "kind": "", "metadata": {"name": "a"}})
    if api_version == "v1/":
        assert "Object 'apiVersion' is missing" in _said(body)
        return
    obj = _decoded(body.encode())
    assert (obj["apiVersion"], obj["kind"]) == ("v1", "ConfigMap")
