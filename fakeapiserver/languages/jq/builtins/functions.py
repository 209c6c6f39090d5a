"""Functions of values, and the table of their names (upstream: gojq's func.go)."""

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from fakeapiserver.languages.jq import values
from fakeapiserver.languages.jq.builtins.arguments import Function, array_of, number_of, refusal, text_of
from fakeapiserver.languages.jq.builtins.conversions import from_json, to_number, to_string
from fakeapiserver.languages.jq.builtins.dates import broken_down, epoch, seconds_of, strftime, strptime
from fakeapiserver.languages.jq.builtins.regex import matches, splits
from fakeapiserver.languages.jq.errors import JqError
from fakeapiserver.languages.jq.values import MAX_LENGTH, compare, kind, shown, to_json, truthy


def _length(value: Any) -> Any:
    if value is None:
        return 0
    if isinstance(value, bool):
        raise refusal("length", value)
    return abs(value) if isinstance(value, int | float) else len(value)


def _has(value: Any, key: Any) -> bool:
    if isinstance(value, dict) and isinstance(key, str):
        return key in value
    if isinstance(value, list) and kind(key) == "number":
        return 0 <= values.to_index(key) < len(value)
    raise JqError(f"has({shown(key)}) cannot be applied to: {shown(value)}")


def _keys(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return sorted(value)
    if isinstance(value, list):
        return [*range(len(value))]
    raise refusal("keys", value)


def _of_float(name: str, function: Callable[[float], float]) -> Function:
    def run(value: Any) -> Any:
        number = number_of(name, value)
        if isinstance(number, int) and name in ("floor", "ceil", "round", "trunc", "fabs"):
            return abs(number) if name == "fabs" else number
        try:
            result = function(float(number))
        except (ValueError, OverflowError):
            return math.nan
        return result

    return run


def _pow(value: Any, base: Any, power: Any) -> Any:
    try:
        return float(number_of("pow", base)) ** float(number_of("pow", power))
    except (OverflowError, ZeroDivisionError):
        return math.inf


def _with_prefix(test: Callable[[str, str], bool], name: str) -> Function:
    return lambda value, part: test(text_of(name, value), text_of(name, part))


def _left_trimmed(value: Any, prefix: Any) -> Any:
    return text_of("ltrimstr", value).removeprefix(text_of("ltrimstr", prefix))


def _right_trimmed(value: Any, suffix: Any) -> Any:
    return text_of("rtrimstr", value).removesuffix(text_of("rtrimstr", suffix))


def _join(value: Any, separator: Any) -> str:
    items = array_of("join", value)
    if not items:
        return ""
    shown_items = []
    for item in items:
        if isinstance(item, list | dict):
            raise JqError(f"cannot add: {shown(separator)} and {shown(item)}")
        shown_items.append("" if item is None else to_string(item))
    return text_of("join", separator).join(shown_items)


def _flatten(value: Any, depth: Any = 1e9) -> list[Any]:
    if number_of("flatten", depth) < 0:
        raise JqError("flatten depth must not be negative")
    flat: list[Any] = []
    for item in values.elements(value):
        flat.extend(_flatten(item, depth - 1) if isinstance(item, list) and depth > 0 else [item])
    return flat


def _indices(value: Any, wanted: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, str):
        return values.indices(value, text_of("indices", wanted))
    return values.indices(array_of("indices", value), wanted if isinstance(wanted, list) else [wanted])


def _place(at: int) -> Function:
    def run(value: Any, wanted: Any) -> Any:
        places = _indices(value, wanted)
        return places[at] if places else None

    return run


def _extreme(sign: int) -> Function:
    def run(value: Any, keys: Any = None) -> Any:
        items = array_of("min", value)
        by = items if keys is None else keys
        best: int | None = None
        for at in range(len(items)):
            if best is None:
                best = at
            else:
                order = compare(by[at], by[best]) * sign
                if order < 0 or (order == 0 and sign < 0):
                    best = at
        return None if best is None else items[best]

    return run


def _unique(value: Any, keys: Any = None) -> list[Any]:
    items = array_of("unique", value)
    return [pair[0] for pair in values.group(items, items if keys is None else keys)]


def _from_entries(value: Any) -> dict[str, Any]:
    entries: dict[str, Any] = {}
    for entry in values.elements(value):
        key = None
        if not isinstance(entry, dict):
            raise JqError(f"expected an object but got: {shown(entry)}")
        for name in ("key", "Key", "name", "Name"):
            key = entry.get(name)
            if truthy(key):
                break
        item = next((entry[name] for name in ("value", "Value") if name in entry), None)
        if not isinstance(key, str):
            raise JqError(f"expected a string for object key but got: {shown(key)}")
        entries[key] = item
    return entries


def _implode(value: Any) -> str:
    try:
        return "".join(map(chr, array_of("implode", value)))
    except (TypeError, ValueError, OverflowError):
        raise refusal("implode", value) from None


def _fail(value: Any, *given: Any) -> Any:
    raise JqError(given[0] if given else value)


def _transpose(value: Any) -> list[Any]:
    rows = array_of("transpose", value)
    width = max((len(array_of("transpose", row)) for row in rows), default=0)
    return [[row[at] if at < len(row) else None for row in rows] for at in range(width)]


def _trimmed(name: str, trim: Callable[[str], str]) -> Function:
    return lambda value: trim(text_of(name, value))


def _ascii(change: Callable[[str], str]) -> Function:
    def run(value: Any) -> str:
        return "".join(change(char) if char.isascii() else char for char in text_of("ascii", value))

    return run


def _limit_length(value: Any, count: Any) -> int:
    return int(min(number_of("limit", count), MAX_LENGTH))


FUNCTIONS: Final[Mapping[tuple[str, int], Function]] = {
    ("not", 0): lambda value: not truthy(value),
    ("length", 0): _length,
    ("utf8bytelength", 0): lambda value: len(text_of("utf8bytelength", value).encode()),
    ("type", 0): kind,
    ("has", 1): _has,
    ("keys", 0): _keys,
    ("keys_unsorted", 0): _keys,
    ("contains", 1): values.contains,
    ("tonumber", 0): to_number,
    ("tostring", 0): to_string,
    ("tojson", 0): to_json,
    ("fromjson", 0): from_json,
    ("startswith", 1): _with_prefix(str.startswith, "startswith"),
    ("endswith", 1): _with_prefix(str.endswith, "endswith"),
    ("ltrimstr", 1): _left_trimmed,
    ("rtrimstr", 1): _right_trimmed,
    ("trimstr", 1): lambda value, part: _right_trimmed(_left_trimmed(value, part), part),
    ("trim", 0): _trimmed("trim", str.strip),
    ("ltrim", 0): _trimmed("ltrim", str.lstrip),
    ("rtrim", 0): _trimmed("rtrim", str.rstrip),
    ("ascii_downcase", 0): _ascii(str.lower),
    ("ascii_upcase", 0): _ascii(str.upper),
    ("explode", 0): lambda value: [*map(ord, text_of("explode", value))],
    ("implode", 0): _implode,
    ("split", 1): lambda value, separator: values.split(text_of("split", value), text_of("split", separator)),
    ("split", 2): splits,
    ("join", 1): _join,
    ("reverse", 0): lambda value: [] if value is None else value[::-1],
    ("flatten", 0): _flatten,
    ("flatten", 1): _flatten,
    ("sort", 0): lambda value: values.sort(array_of("sort", value), value),
    ("_sort_by", 1): lambda value, keys: values.sort(array_of("sort_by", value), keys),
    ("_group_by", 1): lambda value, keys: values.group(array_of("group_by", value), keys),
    ("unique", 0): _unique,
    ("_unique_by", 1): _unique,
    ("min", 0): _extreme(1),
    ("max", 0): _extreme(-1),
    ("_min_by", 1): _extreme(1),
    ("_max_by", 1): _extreme(-1),
    ("indices", 1): _indices,
    ("index", 1): _place(0),
    ("rindex", 1): _place(-1),
    ("from_entries", 0): _from_entries,
    ("setpath", 2): lambda value, path, new: values.set_path(value, array_of("setpath", path), new),
    ("delpaths", 1): lambda value, paths: values.delete_paths(value, array_of("delpaths", paths)),
    ("transpose", 0): _transpose,
    ("error", 0): _fail,
    ("error", 1): _fail,
    ("_match", 3): matches,
    ("floor", 0): _of_float("floor", math.floor),
    ("ceil", 0): _of_float("ceil", math.ceil),
    ("round", 0): _of_float("round", lambda x: math.copysign(math.floor(abs(x) + 0.5), x)),
    ("trunc", 0): _of_float("trunc", math.trunc),
    ("sqrt", 0): _of_float("sqrt", math.sqrt),
    ("fabs", 0): _of_float("fabs", math.fabs),
    ("abs", 0): lambda value: abs(number_of("abs", value)),
    ("exp", 0): _of_float("exp", math.exp),
    ("exp10", 0): _of_float("exp10", lambda x: 10**x),
    ("exp2", 0): _of_float("exp2", lambda x: 2**x),
    ("log", 0): _of_float("log", math.log),
    ("log10", 0): _of_float("log10", math.log10),
    ("log2", 0): _of_float("log2", math.log2),
    ("pow", 2): _pow,
    ("infinite", 0): lambda value: math.inf,
    ("nan", 0): lambda value: math.nan,
    ("isnan", 0): lambda value: math.isnan(number_of("isnan", value)),
    ("isinfinite", 0): lambda value: math.isinf(number_of("isinfinite", value)),
    ("isnormal", 0): lambda value: value != 0 and math.isfinite(number_of("isnormal", value)),
    ("fromdateiso8601", 0): epoch,
    ("fromdate", 0): epoch,
    ("gmtime", 0): broken_down,
    ("mktime", 0): seconds_of,
    ("strftime", 1): strftime,
    ("strptime", 1): strptime,
    ("todate", 0): lambda value: strftime(value, "%Y-%m-%dT%H:%M:%SZ"),
    ("todateiso8601", 0): lambda value: strftime(value, "%Y-%m-%dT%H:%M:%SZ"),
    ("env", 0): lambda value: {},
    ("_limited", 1): _limit_length,
}
