"""The text that Go has of a value it keeps as text."""

import pytest

from fakeapiserver.apimachinery.schema.raw_text import RawText, marshalled, rebuilt, text_in


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


@pytest.mark.parametrize(
    ("body", "text"), [(b'{"x": 1, "data": {"a": 1}}', '{"a": 1}'), (b'{"x": 1}', ""), (b"[]", ""), (b"{", "")]
)
def test_a_members_text_is_as_it_was_sent(body: bytes, text: str) -> None:
    assert text_in(body, "data") == text


def test_it_is_a_map_all_the_same() -> None:
    assert RawText({"a": 1}, '{"a": 1}') == {"a": 1}
