"""YAML text as Go's YAML library writes it: natural key order, its quoting, literal blocks, lines folded at 80.

Upstream: go.yaml.in/yaml/v2/encode.go, sorter.go. libyaml's emitter is the one Go's was ported from.
"""

import functools
import io
import re
from collections.abc import Iterable
from typing import Any, Final

import yaml

from fakeapiserver.apimachinery.serializer.go_yaml_scalars import STR, go_g, resolve
from fakeapiserver.apimachinery.serializer.json import go_float

try:
    from yaml._yaml import CEmitter as _Emitter
except ImportError:
    from yaml.emitter import Emitter as _Emitter  # type: ignore[assignment]

_WIDTH: Final = 80
_BASE_60: Final = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
# Texts that need no closer check.
_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_./]*")
_OPEN_ENDED: Final = b"...\n"
_INTEGERS: Final = range(-(1 << 63), 1 << 64)
_IMPLICIT: Final = (True, True)


def emit(obj: Any) -> bytes:
    """Writes a document without markers, in UTF-8, with a newline at the end."""
    stream = io.BytesIO()
    emitter = _Emitter(stream, width=_WIDTH, allow_unicode=True)
    emitter.emit(yaml.StreamStartEvent(encoding="utf-8"))
    emitter.emit(yaml.DocumentStartEvent(explicit=False))
    for event in _events(obj):
        emitter.emit(event)
    emitter.emit(yaml.DocumentEndEvent(explicit=False))
    emitter.emit(yaml.StreamEndEvent())
    # libyaml marks the end of a document that closes with an open block, Go does not.
    return stream.getvalue().removesuffix(_OPEN_ENDED)


@functools.lru_cache(maxsize=4096, typed=True)
def scalar(value: Any, style: str | None = None) -> str:
    """Writes a value on one line, quoted where Go quotes it or as `style` says (empty: quotes only if needed)."""
    if isinstance(value, str) and _PLAIN.fullmatch(value) and not (_style(value) if style is None else style):
        return value
    event = _scalar(value)
    if style is not None:
        event.style = style
    stream = io.StringIO()
    emitter = _Emitter(stream, width=1 << 30, allow_unicode=True)
    for step in (yaml.StreamStartEvent(), yaml.DocumentStartEvent(explicit=False), event):
        emitter.emit(step)
    for step in (yaml.DocumentEndEvent(explicit=False), yaml.StreamEndEvent()):
        emitter.emit(step)
    return stream.getvalue().removesuffix("...\n").removesuffix("\n")


def _events(root: Any) -> Iterable[Any]:
    """The value's events, without recursion."""
    waiting: list[Any] = [root]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            yield yaml.MappingStartEvent(None, None, True, flow_style=False)
            waiting.append(_MAPPING_END)
            for key in reversed(natural_order(value)):
                waiting += (value[key], key)
        elif isinstance(value, list):
            yield yaml.SequenceStartEvent(None, None, True, flow_style=False)
            waiting.append(_SEQUENCE_END)
            waiting += reversed(value)
        elif isinstance(value, yaml.Event):
            yield value
        else:
            yield _scalar(value)


_MAPPING_END: Final = yaml.MappingEndEvent()
_SEQUENCE_END: Final = yaml.SequenceEndEvent()


def _scalar(value: Any) -> Any:
    style = ""
    if isinstance(value, str):
        text, style = value, _style(value)
    elif value is None:
        text = "null"
    elif isinstance(value, bool):
        text = "true" if value else "false"
    else:
        text = _number(value)
    return yaml.ScalarEvent(None, None, _IMPLICIT, text, style=style)


@functools.lru_cache(maxsize=4096)
def _style(text: str) -> str:
    if "\n" in text:
        return "|"
    plain = resolve("", text)[0] == STR and not (":" in text and _BASE_60.fullmatch(text))
    return "" if plain else '"'


def _number(value: int | float) -> str:
    """JSON's text read as YAML and written again: what fits 64 bits is an integer."""
    text = go_float(value) if isinstance(value, float) else str(value)
    if text.lstrip("-").isdigit() and int(text) in _INTEGERS:
        return str(int(text))
    return go_g(float(value))


def natural_order(keys: Iterable[str]) -> list[str]:
    """Letters after all else, runs of digits by their number (`a2` before `a10`)."""
    names = sorted(keys)
    return names if all(map(str.isalpha, names)) else sorted(names, key=functools.cmp_to_key(_compare))


def _compare(left: str, right: str) -> int:
    for i, (a, b) in enumerate(zip(left, right, strict=False)):
        if a == b:
            continue
        if a.isalpha() or b.isalpha():
            if a.isalpha() and b.isalpha():
                return -1 if a < b else 1
            return -1 if b.isalpha() else 1
        return _compare_digits(left, right, i)
    return len(left) - len(right)


def _compare_digits(left: str, right: str, i: int) -> int:
    lead = 0
    if "0" in (left[i], right[i]):
        before = left[:i]
        run = before[len(before.rstrip("0123456789")) :]
        lead = 1 if run.strip("0") else 0
    left_number, left_end = _run(left, i, lead)
    right_number, right_end = _run(right, i, lead)
    if left_number != right_number:
        return -1 if left_number < right_number else 1
    if left_end != right_end:
        return left_end - right_end
    return -1 if left[i] < right[i] else 1


def _run(text: str, start: int, number: int) -> tuple[int, int]:
    end = start
    while end < len(text) and text[end].isdecimal():
        number = number * 10 + ord(text[end]) - ord("0")
        end += 1
    return number, end
