"""Recursion goes on where a stack ends, and JSON is encoded and read at any depth."""

import threading

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakeapiserver.apimachinery.depth import TooDeep, Walk, continued, flattened, interrupt
from fakeapiserver.apimachinery.meta import copied, equal, same
from fakeapiserver.apimachinery.serializer import deep_json, json

SCALARS = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=5) | st.sampled_from([1.5, -0.25])
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner))
DEEP = b'{"a":[' * 4990 + b"1" + b"]}" * 4990


def depth_of(value: object) -> int:
    try:
        return 1 + depth_of(value[0]) if isinstance(value, list) else 0
    except RecursionError:
        return continued(depth_of, value)


def test_a_function_goes_on_where_its_stack_ends() -> None:
    assert depth_of(json.decode(b"[" * 9990 + b"1" + b"]" * 9990)) == 9990


def test_what_never_ends_is_too_deep() -> None:
    def endless() -> int:
        try:
            return endless()
        except RecursionError:
            return continued(endless)

    with pytest.raises(TooDeep):
        endless()


def test_an_error_of_the_function_is_raised() -> None:
    with pytest.raises(KeyError, match="a"):
        continued({}.__getitem__, "a")


def test_an_interrupted_caller_ends_what_it_waits_for() -> None:
    class Interrupted(Exception):
        pass

    has_begun, ended = threading.Event(), list[str]()

    def spin() -> None:
        try:
            has_begun.set()
            while True:
                pass
        except Interrupted:
            ended.append("inner")
            raise

    def wait() -> None:
        with pytest.raises(Interrupted):
            continued(spin)
        ended.append("outer")

    caller = threading.Thread(target=wait)
    caller.start()
    assert has_begun.wait(10)
    interrupt(caller, Interrupted)
    caller.join(10)
    assert ended == ["inner", "outer"]


def test_generators_within_each_other_are_flattened() -> None:
    def walk(levels: int) -> Walk[int]:
        yield levels
        if levels:
            yield walk(levels - 1)
        yield -levels

    assert list(flattened(walk(2))) == [2, 1, 0, 0, -1, -2]
    assert sum(flattened(walk(9990))) == 0


@pytest.mark.parametrize("order", [None, "deterministic"])
@given(value=VALUES)
def test_deep_json_is_what_msgspec_writes(order: None, value: object) -> None:
    assert deep_json.encode(value, order=order) == msgspec.json.encode(value, order=order)


@given(value=VALUES)
def test_texts_are_those_of_the_scalars(value: object) -> None:
    def read(texts: object) -> object:
        if isinstance(texts, bytes):
            return msgspec.json.decode(texts)
        return {key: read(text) for key, text in texts.items()} if isinstance(texts, dict) else [*map(read, texts)]  # type: ignore[call-overload]

    assert read(deep_json.texts(msgspec.json.format(msgspec.json.encode(value)))) == value


def test_deep_values_are_copied_compared_and_written() -> None:
    value = json.decode(DEEP)
    copy = copied(value)
    assert same(copy, value)
    assert equal(copy, value)
    assert not same(copy, json.decode(DEEP.replace(b"1", b"2")))
    assert json.encode(copy) == json.encode_sorted(copy) == DEEP
