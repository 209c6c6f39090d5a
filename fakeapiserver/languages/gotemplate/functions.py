"""The functions of text/template itself (upstream: text/template/funcs.go)."""

import html
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote_plus

from fakeapiserver.languages.gotemplate.values import (
    MISSING,
    Function,
    Number,
    Raw,
    TemplateError,
    Time,
    function,
    shown,
    sprint,
    sprintf,
    truth,
    type_name,
)

SHORT_CIRCUITS: Final = frozenset({"and", "or"})


def _and(first: Raw, *more: Raw) -> Any:
    raise AssertionError("done by the caller")


def _not(value: Raw) -> bool:
    return not truth(value)


def _len(value: Raw) -> int:
    if isinstance(value, str):
        return len(value.encode())
    if isinstance(value, list | dict):
        return len(value)
    if value is None or value is MISSING:
        raise TemplateError("len of nil pointer")
    raise TemplateError(f"len of type {type_name(value)}")


def _index(value: Raw, *keys: Raw) -> Any:
    if value is None or value is MISSING:
        raise TemplateError("index of untyped nil")
    for key in keys:
        if isinstance(value, dict):
            if not isinstance(key, str) or isinstance(key, Number):
                if key is None or key is MISSING:
                    raise TemplateError("value is nil; should be of type string")
                raise TemplateError(f"value has type {type_name(key)}; should be string")
            value = value.get(key)
        elif isinstance(value, list | str) and not isinstance(value, Number):
            value = value[_place(key, len(value))]
        elif value is None:
            raise TemplateError("index of nil pointer")
        else:
            raise TemplateError(f"can't index item of type {type_name(value)}")
    return value


def _place(key: Any, length: int, *, end: bool = False) -> int:
    if key is None or key is MISSING:
        raise TemplateError("cannot index slice/array with nil")
    if not isinstance(key, int) or isinstance(key, bool):
        raise TemplateError(f"cannot index slice/array with type {type_name(key)}")
    if not 0 <= key < length + end:
        raise TemplateError(f"index out of range: {key}")
    return key


def _slice(value: Raw, *bounds: Raw) -> Any:
    if not isinstance(value, list | str):
        raise TemplateError(
            "slice of untyped nil" if value in (None, MISSING) else f"can't slice item of type {type_name(value)}"
        )
    if len(bounds) > 3:
        raise TemplateError(f"too many slice indexes: {len(bounds)}")
    first = _place(bounds[0], len(value), end=True) if bounds else 0
    last = _place(bounds[1], len(value), end=True) if len(bounds) > 1 else len(value)
    if first > last:
        raise TemplateError(f"invalid slice index: {first} > {last}")
    return value[first:last]


def _print(*values: Raw) -> str:
    return sprint(*values)


def _println(*values: Raw) -> str:
    given: tuple[Any, ...] = values
    return " ".join(shown(None if value is MISSING else value) for value in given) + "\n"


def _printf(form: str, *values: Any) -> str:
    return sprintf(form, *values)


def _one_text(values: tuple[Any, ...]) -> str:
    return values[0] if len(values) == 1 and isinstance(values[0], str) else sprint(*values)


def _html(*values: Raw) -> str:
    text = html.escape(_one_text(values), quote=False)
    return text.replace('"', "&#34;").replace("'", "&#39;").replace("\0", "�")


_JS: Final = {"\\": "\\\\", "'": "\\'", '"': '\\"', "<": "\\u003C", ">": "\\u003E", "&": "\\u0026", "=": "\\u003D"}


def _js(*values: Raw) -> str:
    return "".join(_JS.get(char) or (f"\\u{ord(char):04X}" if ord(char) < 32 else char) for char in _one_text(values))


def _urlquery(*values: Raw) -> str:
    return quote_plus(_one_text(values), safe="-_.~")


def _basic(value: Any) -> str:
    """Returns the group of types within which values can be compared; "" for others."""
    if isinstance(value, bool):
        return "bool"
    for kind, name in ((int, "int"), (float, "float"), (str, "string")):
        if isinstance(value, kind):
            return name
    return ""


def _eq(value: Raw, *others: Raw) -> bool:
    if not others:
        raise TemplateError("missing argument for comparison")
    return any(_equal(value, other) for other in others)


def _equal(one: Any, other: Any) -> bool:
    nothing = (None, MISSING)
    if isinstance(one, list | dict) or isinstance(other, list | dict):
        if one in nothing or other in nothing:
            return False
        raise TemplateError(f"non-comparable type {shown(one)}: {type_name(one)}")
    if _basic(one) != _basic(other) and one not in nothing and other not in nothing:
        raise TemplateError("incompatible types for comparison")
    if one in nothing or other in nothing:
        return one in nothing and other in nothing
    return bool(one == other)


def _ordered(test: Callable[[Any, Any], bool]) -> Callable[..., Any]:
    def run(one: Raw, other: Raw) -> bool:
        if isinstance(one, Time) and isinstance(other, Time):
            return test(one.seconds, other.seconds)
        kind = _basic(one)
        if not kind or kind == "bool" or not _basic(other):
            raise TemplateError("invalid type for comparison")
        if kind != _basic(other):
            raise TemplateError("incompatible types for comparison")
        return test(one, other)

    return run


def _ne(one: Raw, other: Raw) -> bool:
    return not _equal(one, other)


def _call(value: Raw, *arguments: Raw) -> Any:
    raise TemplateError(f"non-function of type {type_name(value)}")


_CALLS: Final[Mapping[str, Callable[..., Any]]] = {
    "and": _and,
    "or": _and,
    "not": _not,
    "len": _len,
    "index": _index,
    "slice": _slice,
    "print": _print,
    "println": _println,
    "printf": _printf,
    "html": _html,
    "js": _js,
    "urlquery": _urlquery,
    "eq": _eq,
    "ne": _ne,
    "lt": _ordered(lambda a, b: a < b),
    "le": _ordered(lambda a, b: a <= b),
    "gt": _ordered(lambda a, b: a > b),
    "ge": _ordered(lambda a, b: a >= b),
    "call": _call,
}
BUILTINS: Final[Mapping[str, Function]] = {name: function(name, call) for name, call in _CALLS.items()}
