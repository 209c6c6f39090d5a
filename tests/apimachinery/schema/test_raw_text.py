"""The text that Go has of a value it keeps as text."""

from typing import Any

import pytest

from fakeapiserver.apimachinery.schema.raw_text import RawText, found, inside, keep, marshalled, rebuilt, take


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ('{"a": 1,\n "b" : [ 2 ] }', '{"a":1,"b":[2]}'),
        ('{"b": " x ", "a": "\\" \\\\"}', '{"b":" x ","a":"\\" \\\\"}'),
        ('{"a":"<&>"}', '{"a":"\\u003c\\u0026\\u003e"}'),
        ('{"a":1.0}', '{"a":1.0}'),
    ],
)
def test_marshalling_leaves_out_spaces_and_keeps_order_and_numbers(text: str, written: str) -> None:
    assert marshalled(text) == written


def test_what_went_through_maps_is_in_order() -> None:
    assert rebuilt({"b": 1, "a": {"d": "<", "c": None}}) == '{"a":{"c":null,"d":"\\u003c"},"b":1}'


BODY = b'{"x": [{"p": {"a": 18446744073709551621}}, {"p": [1]}, {}], "data": {"b": 1, "a":1}}'


def test_texts_are_as_they_were_sent() -> None:
    obj: Any = {"x": [{"p": {"a": 1.8446744073709552e19}}, {"p": [1]}, {}], "data": {"b": 1, "a": 1}}
    keep(obj, (("data",), ("x", "*", "p"), ("y", "z")), BODY)
    assert (obj["data"].text, obj["x"][0]["p"].text) == ('{"b": 1, "a":1}', '{"a": 18446744073709551621}')
    assert obj["x"] == [{"p": {"a": 18446744073709551621}}, {"p": [1]}, {}]


def test_without_a_document_they_are_those_of_maps() -> None:
    obj: Any = {"data": {"b": 1, "a": 1}}
    keep(obj, (("data",),), b"")
    assert obj["data"].text == '{"a":1,"b":1}'


def test_what_is_at_a_path_is_found_with_its_place() -> None:
    obj = {"x": [{"p": 1}, {}, {"p": {}}]}
    assert list(found(obj, ("x", "*", "p"))) == [(("x", 0, "p"), 1), (("x", 2, "p"), {})]


@pytest.mark.parametrize(
    ("name", "within"),
    [("x[0].p.a", True), ("x[0].p", False), ("x[0].q.a", False), ("data.x[1]", True), ("dat.x", False)],
)
def test_paths_inside_a_text(name: str, within: bool) -> None:
    assert inside(name, (("data",), ("x", "*", "p"))) == within


def test_it_is_a_map_all_the_same() -> None:
    assert RawText({"a": 1}, '{"a": 1}') == {"a": 1}


def test_an_object_that_says_the_same_takes_its_texts() -> None:
    kept = {"b": 1, "a": 2}
    obj = {"list": [{"data": {"a": 2, "b": 1}, "name": "n"}]}
    take(obj, [("list", "*", "data")], {"list": [{"data": kept, "name": "n"}]})
    assert obj["list"][0]["data"] is kept
