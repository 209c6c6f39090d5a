"""JSON paths as clients and printer columns write them (`.status.conditions[?(@.type=="Ready")].status`).

Upstream: k8s.io/client-go/util/jsonpath (parser.go, jsonpath.go), third_party/forked/golang/template/funcs.go

`compile_path(text)` returns a function from a value to the values at the path. Both raise ValueError: the first for
an invalid path, the
second where upstream returns an error (an index out of bounds, a filter on a value that is no list).
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from fakeapiserver.apimachinery.go.strconv import atoi, parse_int

Find = Callable[[list[Any]], list[Any]]

_SLICE: Final = re.compile(r"(-?[0-9]*)(:-?[0-9]*)?(:-?[0-9]*)?")
_KEY: Final = re.compile(r"'([^']*)'")
_COMPARISON: Final = re.compile(r"([^!<>=]+)([!<>=]+)(.+)", re.S)
_NUMBER: Final = re.compile(r"[+-]?[0-9.]*")
# A field's name goes on to a character that ends it, unless a backslash stands before that.
_FIELD: Final = re.compile(r"(?:\\.|[^\\ \t\r\n.,\[\]$@{}])*", re.S)
_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": lambda a, b: bool(a == b),
    "!=": lambda a, b: bool(a != b),
    "<": lambda a, b: bool(a < b),
    "<=": lambda a, b: bool(a <= b),
    ">": lambda a, b: bool(a > b),
    ">=": lambda a, b: bool(a >= b),
}
_KINDS: Final = {bool: "bool", int: "int", float: "float", str: "string"}


def compile_path(text: str) -> Callable[[Any], list[Any]]:
    """Returns a function that finds the values at a path. Missing values are left out, null values are returned."""
    find = _Parser(f"{text}}}").path()
    return lambda value: find([value])


def _code_point(char: str) -> str:
    """Go's %#U."""
    return f"U+{ord(char):04X} '{char}'" if char.isprintable() else f"U+{ord(char):04X}"


class _Parser:
    """`text` ends with the brace that closes the path; what comes after is left."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def path(self) -> Find:
        steps = list(self._steps())

        def find(values: list[Any]) -> list[Any]:
            for step in steps:
                values = step(values)
            return values

        return find

    def _steps(self) -> Iterator[Find]:
        descends = False
        while not (rest := self._text[self._at :]).startswith("}"):
            if rest.startswith("[?("):
                yield self._filter()
            elif rest.startswith(".."):
                if descends:
                    raise ValueError("invalid multiple recursive descent")
                self._at += len("..")
                yield _descend
                descends = True
                if self._text[self._at].isalnum() or self._text[self._at] == "_":
                    yield self._field()
                    descends = False
                continue
            elif rest[:1] in ("", "\n", "\r"):
                raise ValueError("unclosed action")
            elif rest[0] in " @$":
                self._at += 1
                continue
            else:
                yield self._step(rest[0])
            descends = False

    def _step(self, first: str) -> Find:
        if first == "[":
            return self._array()
        if first in "\"'":
            return self._quote(first)
        if first == ".":
            self._at += 1
            return self._field()
        if first in "+-" or first.isdigit():
            return self._number()
        if first.isalnum() or first == "_":
            return self._word()
        raise ValueError(f"unrecognized character in action: {_code_point(first)}")

    def _matched(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._at)
        assert match is not None  # all of these match nothing, too
        self._at = match.end()
        return match[0]

    def _field(self) -> Find:
        name = self._matched(_FIELD)
        return _wildcard if name == "*" else _member(name.replace("\\", ""))

    def _number(self) -> Find:
        text = self._matched(_NUMBER)
        try:
            return _constant(float(text) if "." in text else parse_int(text))
        except ValueError:
            raise ValueError(f"cannot parse number {text}") from None

    def _word(self) -> Find:
        word = self._matched(_FIELD)
        if word in ("true", "false"):
            return _constant(word == "true")
        return _unknown(word)

    def _quote(self, mark: str) -> Find:
        end = self._text.find(mark, self._at + 1)
        while end > 0 and self._text[end - 1] == "\\":
            end = self._text.find(mark, end + 1)
        if end < 0:
            raise ValueError("unterminated quoted string")
        text = self._text[self._at + 1 : end]
        self._at = end + 1
        plain = re.sub(r"\\(.)", r"\1", text)
        return lambda _: [plain]

    def _array(self) -> Find:
        end = self._text.find("]", self._at)
        if end < 0:
            raise ValueError("unterminated array")
        text = self._text[self._at + 1 : end]
        self._at = end + 1
        text = ":" if text == "*" else text
        parts = text.split(",")
        if len(parts) > 1:
            finds = [_Parser(f"[{part.strip(' ')}]}}").path() for part in parts]
            return lambda values: [value for find in finds for value in find(values)]
        if key := _KEY.fullmatch(text):
            return _Parser(f".{key[1]}}}").path()
        bounds = _SLICE.fullmatch(text)
        if bounds is None:
            raise ValueError(f"invalid array index {text}")
        begin, end_text, step = bounds[1], bounds[2], bounds[3]
        return _slice(_number_of(begin), end_text, _number_of((step or ":")[1:]))

    def _filter(self) -> Find:
        begin, quote = self._at + len("[?("), ""
        closed = False
        i = begin
        while (character := self._text[i : i + 1]) != ")" or bool(quote) != closed:
            if character in ("", "\n"):
                raise ValueError("unterminated filter")
            if character in "\"'" and not quote:
                quote = character
            elif character == quote and self._text[i - 1] != "\\":
                closed = True
            i += 1
        if self._text[i + 1 : i + 2] != "]":
            raise ValueError("unclosed array expect ]")
        text = self._text[begin:i]
        self._at = i + 2
        comparison = _COMPARISON.fullmatch(text)
        if comparison is None:
            return _items_with(_exists(_Parser(f"{text}}}").path()))
        left, right = (_Parser(f"{side}}}").path() for side in (comparison[1], comparison[3]))
        return _items_with(_compares(left, comparison[2], right))


def _number_of(text: str) -> int | None:
    return atoi(text) if text else None


def _constant(value: Any) -> Find:
    return lambda values: [value] * len(values)


def _unknown(word: str) -> Find:
    def find(_: list[Any]) -> list[Any]:
        raise ValueError(f"unrecognized identifier {word}")

    return find


def _member(key: str) -> Find:
    return lambda values: [value[key] for value in values if isinstance(value, dict) and key in value]


def _inner(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return list(value.encode()) if isinstance(value, str) else value if isinstance(value, list) else []


def _wildcard(values: list[Any]) -> list[Any]:
    return [item for value in values for item in _inner(value)]


def _descend(values: list[Any]) -> list[Any]:
    """Everything that has something in it."""
    descendants = []
    for value in values:
        if inner := _inner(value):
            descendants += [value, *_descend(inner)]
    return descendants


def _slice(begin: int | None, end_text: str | None, step: int | None) -> Find:
    """`end_text` is None for one index, and begins with a colon otherwise."""

    def bounds(length: int) -> tuple[int, int]:
        first = begin or 0
        first += length if first < 0 else 0
        if end_text is None:
            last = (begin or 0) + 1
            last += length if last <= 0 else 0
        else:
            end = _number_of(end_text[1:])
            last = length if end is None else end
            last += length if last < 0 else 0
        return first, last

    def find(values: list[Any]) -> list[Any]:
        items: list[Any] = []
        for value in values:
            if value is None:
                continue
            if not isinstance(value, list):
                raise ValueError("not an array or slice")
            first, last = bounds(len(value))
            if first == last:
                return items
            if not (0 <= first < len(value) and 0 <= last <= len(value) and first < last):
                raise ValueError("array index out of bounds")
            if step is not None and step <= 0:
                raise ValueError("step must be > 0")
            items += value[first : last : step or 1]
        return items

    return find


def _items_with(passes: Callable[[Any], bool]) -> Find:
    def find(values: list[Any]) -> list[Any]:
        if not all(isinstance(value, list) for value in values):
            raise ValueError("not an array or slice and cannot be filtered")
        return [item for value in values for item in value if passes(item)]

    return find


def _exists(path: Find) -> Callable[[Any], bool]:
    def passes(item: Any) -> bool:
        try:
            return bool(path([item]))
        except ValueError:
            return False

    return passes


def _compares(left: Find, operator: str, right: Find) -> Callable[[Any], bool]:
    def passes(item: Any) -> bool:
        sides = []
        for side in (left, right):
            matches = side([item])
            if not matches:
                return False
            if len(matches) > 1:
                raise ValueError("can only compare one element at a time")
            sides.append(matches[0])
        compare, kinds = _COMPARE.get(operator), {_KINDS.get(type(side)) for side in sides}
        if compare is None or len(kinds) > 1 or None in kinds or (kinds == {"bool"} and operator not in ("==", "!=")):
            raise ValueError("incompatible types for comparison")
        return compare(*sides)

    return passes
