"""Functions that every query has (upstream: gojq's func.go, builtin.jq)."""

import base64
import calendar
import html
import json
import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

from fakeapiserver.apimachinery.schema.patterns import compile_pattern, pattern_problem
from fakeapiserver.languages.jq import values
from fakeapiserver.languages.jq.errors import JqError
from fakeapiserver.languages.jq.filters import Env, Filter, Path, made, outputs, paths_of
from fakeapiserver.languages.jq.values import MAX_LENGTH, compare, kind, shown, to_json, truthy

Function = Callable[..., Any]


def _refuse(name: str, value: Any) -> JqError:
    return JqError(f"{name} cannot be applied to: {shown(value)}")


def _length(value: Any) -> Any:
    if value is None:
        return 0
    if isinstance(value, bool):
        raise _refuse("length", value)
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
    raise _refuse("keys", value)


def _to_number(value: Any) -> Any:
    if kind(value) == "number":
        return value
    if not isinstance(value, str):
        raise _refuse("tonumber", value)
    try:
        number = json.loads(value.strip())
    except ValueError:
        number = None
    if value != value.strip() or kind(number) != "number":
        raise JqError(f"tonumber cannot be applied to: {shown(value)}: invalid number")
    return number


def _to_string(value: Any) -> str:
    return value if isinstance(value, str) else to_json(value)


def _from_json(value: Any) -> Any:
    try:
        return json.loads(_text("fromjson", value))
    except ValueError as error:
        raise JqError(f"fromjson cannot be applied to: {shown(value)}: {error}") from None


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _refuse(name, value)
    return value


def _number(name: str, value: Any) -> float:
    if kind(value) != "number":
        raise _refuse(name, value)
    number: float = value
    return number


def _array(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise _refuse(name, value)
    return value


def _of_float(name: str, function: Callable[[float], float]) -> Function:
    def run(value: Any) -> Any:
        number = _number(name, value)
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
        return float(_number("pow", base)) ** float(_number("pow", power))
    except (OverflowError, ZeroDivisionError):
        return math.inf


def _with_prefix(test: Callable[[str, str], bool], name: str) -> Function:
    return lambda value, part: test(_text(name, value), _text(name, part))


def _left_trimmed(value: Any, prefix: Any) -> Any:
    return _text("ltrimstr", value).removeprefix(_text("ltrimstr", prefix))


def _right_trimmed(value: Any, suffix: Any) -> Any:
    return _text("rtrimstr", value).removesuffix(_text("rtrimstr", suffix))


def _join(value: Any, separator: Any) -> str:
    items = _array("join", value)
    if not items:
        return ""
    shown_items = []
    for item in items:
        if isinstance(item, list | dict):
            raise JqError(f"cannot add: {shown(separator)} and {shown(item)}")
        shown_items.append("" if item is None else _to_string(item))
    return _text("join", separator).join(shown_items)


def _flatten(value: Any, depth: Any = 1e9) -> list[Any]:
    if _number("flatten", depth) < 0:
        raise JqError("flatten depth must not be negative")
    flat: list[Any] = []
    for item in values.elements(value):
        flat.extend(_flatten(item, depth - 1) if isinstance(item, list) and depth > 0 else [item])
    return flat


def _indices(value: Any, wanted: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, str):
        return values.indices(value, _text("indices", wanted))
    return values.indices(_array("indices", value), wanted if isinstance(wanted, list) else [wanted])


def _place(at: int) -> Function:
    def run(value: Any, wanted: Any) -> Any:
        places = _indices(value, wanted)
        return places[at] if places else None

    return run


def _extreme(sign: int) -> Function:
    def run(value: Any, keys: Any = None) -> Any:
        items = _array("min", value)
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
    items = _array("unique", value)
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
        return "".join(map(chr, _array("implode", value)))
    except (TypeError, ValueError, OverflowError):
        raise _refuse("implode", value) from None


def _matches(value: Any, pattern: Any, flags: Any, only_test: Any) -> Any:
    text, source = _text("match", value), _text("match", pattern)
    given = "" if flags is None else _text("match", flags)
    if set(given) - set("gimsnlxp"):
        raise JqError(f"unsupported regular expression flag: {given!r}")
    inline = "".join(sorted({"i": "i", "s": "s", "p": "s", "x": ""}.get(flag, "") for flag in given))
    if problem := pattern_problem(source):
        raise JqError(f"invalid regular expression {source!r}: {problem}")
    compiled = compile_pattern(f"(?{inline}){source}" if inline else source)
    if only_test:
        return compiled.search(text) is not None
    matches = []
    names = {number: name for name, number in compiled.groupindex.items()}
    for match in compiled.finditer(text):
        captures = [
            {
                "name": names.get(number),
                "offset": -1 if match.group(number) is None else match.start(number),
                "length": 0 if match.group(number) is None else len(match.group(number)),
                "string": match.group(number),
            }
            for number in range(1, compiled.groups + 1)
        ]
        whole = match.group()
        matches.append({"offset": match.start(), "length": len(whole), "string": whole, "captures": captures})
        if "g" not in given:
            break
    return matches


def _epoch(value: Any) -> Any:
    text = _text("fromdateiso8601", value)
    try:
        seconds = calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ"))
    except ValueError:
        raise JqError(f"fromdateiso8601 cannot be applied to: {shown(value)}") from None
    return seconds


def _broken_down(value: Any) -> list[Any]:
    seconds = _number("gmtime", value)
    try:
        at = time.gmtime(math.floor(seconds))
    except (OverflowError, OSError, ValueError):
        raise _refuse("gmtime", value) from None
    fraction = seconds - math.floor(seconds)
    second = at.tm_sec + fraction if fraction else at.tm_sec
    return [at.tm_year, at.tm_mon - 1, at.tm_mday, at.tm_hour, at.tm_min, second, (at.tm_wday + 1) % 7, at.tm_yday - 1]


def _seconds(value: Any) -> int:
    parts = _array("mktime", value)
    if len(parts) < 6 or any(kind(part) != "number" for part in parts[:6]):
        raise _refuse("mktime", value)
    year, month, day, hour, minute, second = (math.floor(part) for part in parts[:6])
    try:
        return calendar.timegm((year, month + 1, day, hour, minute, second))
    except (ValueError, OverflowError):
        raise _refuse("mktime", value) from None


def _strftime(value: Any, form: Any) -> str:
    parts = _broken_down(value) if kind(value) == "number" else value
    moment = time.gmtime(_seconds(parts))
    return time.strftime(_text("strftime", form), moment)


def _strptime(value: Any, form: Any) -> list[Any]:
    try:
        moment = time.strptime(_text("strptime", value), _text("strptime", form))
    except ValueError:
        raise _refuse("strptime", value) from None
    return _broken_down(calendar.timegm(moment))


def _fail(value: Any, *given: Any) -> Any:
    raise JqError(given[0] if given else value)


def _splits(value: Any, pattern: Any, flags: Any) -> list[str]:
    text = _text("split", value)
    parts, at = [], 0
    for match in _matches(value, pattern, "g" + (flags or ""), False):
        parts.append(text[at : match["offset"]])
        at = match["offset"] + match["length"]
    return [*parts, text[at:]]


def _transpose(value: Any) -> list[Any]:
    rows = _array("transpose", value)
    width = max((len(_array("transpose", row)) for row in rows), default=0)
    return [[row[at] if at < len(row) else None for row in rows] for at in range(width)]


def _trimmed(name: str, trim: Callable[[str], str]) -> Function:
    return lambda value: trim(_text(name, value))


def _ascii(change: Callable[[str], str]) -> Function:
    def run(value: Any) -> str:
        return "".join(change(char) if char.isascii() else char for char in _text("ascii", value))

    return run


def _limit_length(value: Any, count: Any) -> int:
    return int(min(_number("limit", count), MAX_LENGTH))


FUNCTIONS: Final[Mapping[tuple[str, int], Function]] = {
    ("not", 0): lambda value: not truthy(value),
    ("length", 0): _length,
    ("utf8bytelength", 0): lambda value: len(_text("utf8bytelength", value).encode()),
    ("type", 0): kind,
    ("has", 1): _has,
    ("keys", 0): _keys,
    ("keys_unsorted", 0): _keys,
    ("contains", 1): values.contains,
    ("tonumber", 0): _to_number,
    ("tostring", 0): _to_string,
    ("tojson", 0): to_json,
    ("fromjson", 0): _from_json,
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
    ("explode", 0): lambda value: [*map(ord, _text("explode", value))],
    ("implode", 0): _implode,
    ("split", 1): lambda value, separator: values.split(_text("split", value), _text("split", separator)),
    ("split", 2): _splits,
    ("join", 1): _join,
    ("reverse", 0): lambda value: [] if value is None else value[::-1],
    ("flatten", 0): _flatten,
    ("flatten", 1): _flatten,
    ("sort", 0): lambda value: values.sort(_array("sort", value), value),
    ("_sort_by", 1): lambda value, keys: values.sort(_array("sort_by", value), keys),
    ("_group_by", 1): lambda value, keys: values.group(_array("group_by", value), keys),
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
    ("setpath", 2): lambda value, path, new: values.set_path(value, _array("setpath", path), new),
    ("delpaths", 1): lambda value, paths: values.delete_paths(value, _array("delpaths", paths)),
    ("transpose", 0): _transpose,
    ("error", 0): _fail,
    ("error", 1): _fail,
    ("_match", 3): _matches,
    ("floor", 0): _of_float("floor", math.floor),
    ("ceil", 0): _of_float("ceil", math.ceil),
    ("round", 0): _of_float("round", lambda x: math.copysign(math.floor(abs(x) + 0.5), x)),
    ("trunc", 0): _of_float("trunc", math.trunc),
    ("sqrt", 0): _of_float("sqrt", math.sqrt),
    ("fabs", 0): _of_float("fabs", math.fabs),
    ("abs", 0): lambda value: abs(_number("abs", value)),
    ("exp", 0): _of_float("exp", math.exp),
    ("exp10", 0): _of_float("exp10", lambda x: 10**x),
    ("exp2", 0): _of_float("exp2", lambda x: 2**x),
    ("log", 0): _of_float("log", math.log),
    ("log10", 0): _of_float("log10", math.log10),
    ("log2", 0): _of_float("log2", math.log2),
    ("pow", 2): _pow,
    ("infinite", 0): lambda value: math.inf,
    ("nan", 0): lambda value: math.nan,
    ("isnan", 0): lambda value: math.isnan(_number("isnan", value)),
    ("isinfinite", 0): lambda value: math.isinf(_number("isinfinite", value)),
    ("isnormal", 0): lambda value: value != 0 and math.isfinite(_number("isnormal", value)),
    ("fromdateiso8601", 0): _epoch,
    ("fromdate", 0): _epoch,
    ("gmtime", 0): _broken_down,
    ("mktime", 0): _seconds,
    ("strftime", 1): _strftime,
    ("strptime", 1): _strptime,
    ("todate", 0): lambda value: _strftime(value, "%Y-%m-%dT%H:%M:%SZ"),
    ("todateiso8601", 0): lambda value: _strftime(value, "%Y-%m-%dT%H:%M:%SZ"),
    ("env", 0): lambda value: {},
    ("_limited", 1): _limit_length,
}


def _soft_path(value: Any, path: Any) -> Any:
    return values.get_path(value, _array("getpath", path))


def _separated(separator: str, form: Function) -> Function:
    return lambda value: separator.join(form(item) for item in _array("@csv", value))


def _csv(item: Any) -> str:
    if isinstance(item, list | dict):
        raise JqError(f"@csv cannot be applied to: {shown(item)}")
    return '"' + item.replace('"', '""') + '"' if isinstance(item, str) else "" if item is None else to_json(item)


def _tsv(item: Any) -> str:
    if isinstance(item, list | dict):
        raise JqError(f"@tsv cannot be applied to: {shown(item)}")
    text = "" if item is None else _to_string(item)
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def _shell(value: Any) -> str:
    items = value if isinstance(value, list) else [value]
    if any(isinstance(item, list | dict) for item in items):
        raise JqError(f"@sh cannot be applied to: {shown(value)}")
    return " ".join(
        "'" + item.replace("'", "'\\''") + "'" if isinstance(item, str) else to_json(item) for item in items
    )


def _decoded(decode: Callable[[bytes], bytes], name: str, block: int) -> Function:
    def run(value: Any) -> str:
        text = _to_string(value).rstrip("=")
        try:
            return decode((text + "=" * (-len(text) % block)).encode()).decode("utf-8", "replace")
        except ValueError:
            raise _refuse(name, value) from None

    return run


FORMATS: Final[Mapping[str, Function]] = {
    "@text": _to_string,
    "@json": to_json,
    "@html": lambda value: html.escape(_to_string(value)).replace("&#x27;", "&apos;"),
    "@uri": lambda value: quote(_to_string(value), safe="-_.~"),
    "@csv": _separated(",", _csv),
    "@tsv": _separated("\t", _tsv),
    "@sh": _shell,
    "@base64": lambda value: base64.b64encode(_to_string(value).encode()).decode(),
    "@base64d": _decoded(base64.b64decode, "@base64d", 4),
    "@base32": lambda value: base64.b32encode(_to_string(value).encode()).decode(),
    "@base32d": _decoded(base64.b32decode, "@base32d", 8),
}


def format_of(name: str) -> Function:
    """Returns the function of `@name`; an unknown one fails when it is called."""

    def unknown(value: Any) -> str:
        raise JqError(f"format not defined: {name}")

    return FORMATS.get(name, unknown)


def _empty() -> Filter:
    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        return iter(())

    return run


def _now() -> Filter:
    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        yield env.steps.now, made(path)

    return run


def _path(body: Filter) -> Filter:
    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        for place in paths_of(body, env, value):
            yield [*place], made(path)

    return run


def _getpath(keys: Filter) -> Filter:
    """Can stand in a path, which a native function can't."""

    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        for keys_output in outputs(keys, env, value):
            place = path
            if isinstance(path, tuple):
                place = (*path, *_array("getpath", keys_output))
            yield _soft_path(value, keys_output), place

    return run


def _range(*bounds: Filter) -> Filter:
    def numbers(env: Env, value: Any) -> Iterator[tuple[float, float, float]]:
        if len(bounds) == 1:
            for end in outputs(bounds[0], env, value):
                yield 0, _number("range", end), 1
            return
        for start in outputs(bounds[0], env, value):
            for end in outputs(bounds[1], env, value):
                for step in outputs(bounds[2], env, value) if len(bounds) == 3 else (1,):
                    yield _number("range", start), _number("range", end), _number("range", step)

    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        for start, end, step in numbers(env, value):
            at = start
            while step and (at < end if step > 0 else at > end):
                env.steps.take()
                yield at, made(path)
                at += step

    return run


def _limit(count: Filter, body: Filter) -> Filter:
    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        for number in outputs(count, env, value):
            left = _number("limit", number)
            if left < 0:
                raise JqError(f"limit doesn't support negative count: {values.to_json(number)}")
            if left == 0:
                continue
            for output in body(env, value, path):
                yield output
                left -= 1
                if left <= 0:
                    break

    return run


def _first(body: Filter) -> Filter:
    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        for output in body(env, value, path):
            yield output
            return

    return run


def _last(body: Filter) -> Filter:
    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        last = deque(body(env, value, path), maxlen=1)
        yield from last

    return run


def _is_empty(body: Filter) -> Filter:
    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        yield next(outputs(body, env, value), _NONE) is _NONE, made(path)

    return run


_NONE: Final = object()
FILTERS: Final[Mapping[tuple[str, int], Callable[..., Filter]]] = {
    ("empty", 0): _empty,
    ("now", 0): _now,
    ("path", 1): _path,
    ("getpath", 1): _getpath,
    ("range", 1): _range,
    ("range", 2): _range,
    ("range", 3): _range,
    ("limit", 2): _limit,
    ("first", 1): _first,
    ("last", 1): _last,
    ("isempty", 1): _is_empty,
}
PRELUDE: Final = (
    "def select(f): if f then . else empty end;",
    "def recurse(f): def r: ., (f | r); r;",
    "def recurse: recurse(.[]?);",
    "def recurse(f; cond): def r: ., (f | select(cond) | r); r;",
    "def map(f): [.[] | f];",
    "def map_values(f): .[] |= f;",
    "def values: select(. != null);",
    "def nulls: select(. == null);",
    'def booleans: select(type == "boolean");',
    'def numbers: select(type == "number");',
    'def strings: select(type == "string");',
    'def arrays: select(type == "array");',
    'def objects: select(type == "object");',
    'def iterables: select(type == "array" or type == "object");',
    'def scalars: select(type != "array" and type != "object");',
    "def add: reduce .[] as $x (null; . + $x);",
    "def add(f): reduce f as $x (null; . + $x);",
    "def any: isempty(first(.[] | if . then . else empty end)) | not;",
    "def any(f): isempty(first(.[] | f | if . then . else empty end)) | not;",
    "def any(g; f): isempty(first(g | f | if . then . else empty end)) | not;",
    "def all: isempty(first(.[] | if . then empty else . end));",
    "def all(f): isempty(first(.[] | f | if . then empty else . end));",
    "def all(g; f): isempty(first(g | f | if . then empty else . end));",
    "def to_entries: [keys[] as $k | {key: $k, value: .[$k]}];",
    "def with_entries(f): to_entries | map(f) | from_entries;",
    "def in(xs): . as $x | xs | has($x);",
    "def inside(xs): . as $x | xs | contains($x);",
    "def paths: path(..) | select(length > 0);",
    "def paths(f): path(.. | select(f)) | select(length > 0);",
    "def leaf_paths: paths(scalars);",
    "def del(f): delpaths([path(f)]);",
    "def pick(f): . as $v | reduce path(f) as $p (null; setpath($p; $v | getpath($p)));",
    "def sort_by(f): _sort_by(map([f]));",
    "def group_by(f): _group_by(map([f]));",
    "def unique_by(f): _unique_by(map([f]));",
    "def min_by(f): _min_by(map([f]));",
    "def max_by(f): _max_by(map([f]));",
    "def first: .[0];",
    "def last: .[-1];",
    "def nth($n): .[$n];",
    'def nth($n; f): if $n < 0 then error("nth doesn\'t support negative indices") else last(limit($n + 1; f)) end;',
    "def until(cond; update): def u: if cond then . else (update | u) end; u;",
    "def while(cond; update): def w: if cond then ., (update | w) else empty end; w;",
    "def repeat(f): def r: ., (f | r); r;",
    "def skip($n; f): foreach f as $x ($n + 1; . - 1; if . <= 0 then $x else empty end);",
    'def walk(f): def w: if type == "object" then map_values(w) elif type == "array" then map(w) else . end | f; w;',
    "def match($re; $flags): _match($re; $flags; false) | .[];",
    'def match($v): if ($v | type) == "array" then match($v[0]; $v[1]) else match($v; null) end;',
    "def test($re; $flags): _match($re; $flags; true);",
    'def test($v): if ($v | type) == "array" then test($v[0]; $v[1]) else test($v; null) end;',
    "def _captured: [.captures[] | select(.name != null) | {key: .name, value: .string}] | from_entries;",
    "def capture($re; $flags): match($re; $flags) | _captured;",
    "def capture($v): match($v) | _captured;",
    'def scan($re; $flags): match($re; "g" + $flags) | if (.captures | length) > 0 then [.captures[].string] else .string end;',
    "def scan($re): scan($re; null);",
    "def splits($re; $flags): split($re; $flags) | .[];",
    "def splits($re): splits($re; null);",
    "def sub($re; str; $flags): . as $in | (reduce (match($re; $flags) | . as $m | {m: $m, t: ($m | _captured | str)}) as $x"
    ' ({at: 0, out: ""}; .out += $in[.at:$x.m.offset] + $x.t | .at = $x.m.offset + $x.m.length)) | .out + $in[.at:];',
    "def sub($re; str): sub($re; str; null);",
    'def gsub($re; str; $flags): sub($re; str; "g" + $flags);',
    "def gsub($re; str): gsub($re; str; null);",
    "def combinations: if length == 0 then [] else .[0][] as $x | (.[1:] | combinations) as $w | [$x] + $w end;",
    "def date: todate;",
    "def finites: select(isinfinite or isnan | not);",
    "def normals: select(isnormal);",
    "def debug: .;",
    "def debug(f): .;",
    "def stderr: .;",
    "def tostream: path(def r: (.[]?|r), .; r) as $p | getpath($p) | reduce path(.[]?) as $q ([$p, .]; [$p + $q]);",
)
