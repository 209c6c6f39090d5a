"""Sprig's functions (upstream: github.com/Masterminds/sprig/v3).

Each is made for one clock and one source of chance: `sprig_functions(now, random)`.
"""

import base64
import hashlib
import json
import math
import posixpath
import random as random_module
import re
import string
import textwrap
import uuid
import zlib
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from fakeapiserver.apimachinery.duration import format_duration, parse_duration
from fakeapiserver.apimachinery.field import go_quote
from fakeapiserver.apimachinery.schema.patterns import compile_pattern, pattern_problem
from fakeapiserver.apimachinery.serializer.json import encode
from fakeapiserver.languages.gotemplate.times import ZERO, formatted, parsed
from fakeapiserver.languages.gotemplate.values import (
    MAX_OUTPUT,
    Function,
    Number,
    TemplateError,
    Time,
    Version,
    function,
    shown,
    truth,
    type_name,
)

# ------------------------------------------------------------------ conversions


def _to_int(value: Any) -> int:
    if isinstance(value, float):
        return 0 if math.isnan(value) or math.isinf(value) else int(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str):
        text = re.sub(r"\.0+$", "", value) or "0"
        try:
            return int(text, 8) if re.fullmatch(r"[+-]?0[0-7]+", text) else int(text, 0)
        except ValueError:
            return 0
    return 0


def _to_float(value: Any) -> float:
    if isinstance(value, int | float):
        return float(value)
    try:
        return float(value) if isinstance(value, str) and value == value.strip() else 0.0
    except ValueError:
        return 0.0


def _strings(value: Any) -> list[str]:
    if isinstance(value, list):
        return [shown(item) for item in value if item is not None]
    return [] if value is None else [shown(value)]


def _list_of(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise TemplateError(f"Cannot find {name} on type {_kind(value)}")
    return value


def _kind(value: Any) -> str:
    if value is None:
        return "invalid"
    if isinstance(value, Time):
        return "struct"
    name = type_name(value)
    return {"[]interface {}": "slice", "map[string]interface {}": "map", "json.Number": "string"}.get(name, name)


def _json(value: Any) -> Any:
    """Returns the value as an encoder accepts it."""
    if isinstance(value, Number):
        return json.loads(value)
    if isinstance(value, dict):
        return {key: _json(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [*map(_json, value)]
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return int(value)
    return value


_ESCAPED: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def _escaped(text: str) -> str:
    for char, escape in _ESCAPED.items():
        text = text.replace(char, escape)
    return text


def to_json(value: Any) -> str:
    """Encodes as Go's json.Marshal does: keys sorted, &, < and > escaped."""
    return _escaped(encode(_json(value)).decode())


def _to_raw_json(value: Any) -> str:
    return encode(_json(value)).decode()


def _to_pretty_json(value: Any) -> str:
    return _escaped(json.dumps(_json(value), indent=2, ensure_ascii=False))


def _from_json(text: str) -> Any:
    try:
        return _go_numbers(json.loads(text))
    except ValueError:
        return None


def _must_from_json(text: str) -> Any:
    try:
        return _go_numbers(json.loads(text))
    except ValueError as error:
        raise TemplateError(str(error)) from None


def _go_numbers(value: Any) -> Any:
    """Every number is a float64."""
    if isinstance(value, dict):
        return {key: _go_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [*map(_go_numbers, value)]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


# ------------------------------------------------------------------------ texts


def _quote(*values: Any) -> str:
    return " ".join(go_quote(shown(value)) for value in values if value is not None)


def _squote(*values: Any) -> str:
    return " ".join(f"'{shown(value)}'" for value in values if value is not None)


def _cat(*values: Any) -> str:
    return " ".join(shown(value) for value in values if value is not None)


def _indent(spaces: int, text: str) -> str:
    pad = _repeat(spaces, " ")
    return pad + text.replace("\n", "\n" + pad)


def _nindent(spaces: int, text: str) -> str:
    return "\n" + _indent(spaces, text)


def _repeat(count: int, text: str) -> str:
    if count < 0:
        raise TemplateError("strings: negative Repeat count")
    if count * len(text) > MAX_OUTPUT:
        raise TemplateError("repeat: the text becomes too long")
    return text * count


def _trunc(count: int, text: str) -> str:
    data = text.encode()
    if count < 0:
        return (data[count:] if len(data) + count > 0 else data).decode("utf-8", "replace")
    return data[:count].decode("utf-8", "replace")


def _substr(start: int, end: int, text: str) -> str:
    data = text.encode()
    if start > len(data) or (start >= 0 and 0 <= end < start):
        raise TemplateError("slice bounds out of range")
    if start < 0:
        return data[:end].decode("utf-8", "replace")
    return (data[start:] if end < 0 or end > len(data) else data[start:end]).decode("utf-8", "replace")


def _title(text: str) -> str:
    return re.sub(r"(^|[^\w'])(\w)", lambda match: match[1] + match[2].upper(), text)


def _untitle(text: str) -> str:
    return re.sub(r"(^|\s)(\w)", lambda match: match[1] + match[2].lower(), text)


def _abbrev(width: int, text: str) -> str:
    return text if width < 4 or len(text) <= width else text[: width - 3] + "..."


def _abbrevboth(left: int, right: int, text: str) -> str:
    if right < 4 or (left > 0 and right < 7) or len(text) <= right:
        return text
    left = min(left, len(text))
    if len(text) - left < right - 3:
        left = len(text) - (right - 3)
    if left <= 4:
        return text[: right - 3] + "..."
    if left + right - 3 < len(text):
        return "..." + _abbrev(right - 3, text[left:])
    return "..." + text[len(text) - (right - 3) :]


def _initials(text: str) -> str:
    return "".join(word[0] for word in text.split())


def _nospace(text: str) -> str:
    return "".join(text.split())


def _words(text: str) -> list[str]:
    spaced = re.sub(r"([a-z\d])([A-Z])|([A-Z]+)([A-Z][a-z])", lambda m: " ".join(filter(None, m.groups())), text)
    return [word for word in re.split(r"[\s_\-.]+", spaced) if word]


def _camelcase(text: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in re.split(r"[\s_\-]+", text) if word)


def _split(separator: str, text: str) -> dict[str, Any]:
    parts = text.split(separator) if separator else [*text]
    return {f"_{at}": part for at, part in enumerate(parts)}


def _splitn(separator: str, count: int, text: str) -> dict[str, Any]:
    parts = [] if count == 0 else text.split(separator, count - 1 if count > 0 else -1)
    return {f"_{at}": part for at, part in enumerate(parts)}


def _split_list(separator: str, text: str) -> list[Any]:
    return text.split(separator) if separator else [*text]


def _join(separator: str, value: Any) -> str:
    return separator.join(_strings(value))


def _wrap_with(width: int, separator: str, text: str) -> str:
    return separator.join(textwrap.wrap(text, max(width, 1), break_on_hyphens=False)) if text else text


def _plural(one: str, many: str, count: int) -> str:
    return one if count == 1 else many


def _decoded(decode: Callable[[bytes], bytes], name: str) -> Callable[..., Any]:
    def run(text: str) -> str:
        try:
            return decode(text.encode()).decode("utf-8", "replace")
        except ValueError:
            return f"illegal {name} data at input byte 0"

    return run


def _sum_of(algorithm: str) -> Callable[..., Any]:
    def run(text: str) -> str:
        return hashlib.new(algorithm, text.encode()).hexdigest()

    return run


# ---------------------------------------------------------------------- numbers


def _until(count: int) -> list[Any]:
    return _until_step(0, count, -1 if count < 0 else 1)


def _until_step(start: int, stop: int, step: int) -> list[Any]:
    if (stop < start and step >= 0) or (stop >= start and step <= 0):
        return []
    numbers = range(start, stop, step)
    if len(numbers) > MAX_OUTPUT:
        raise TemplateError("until: the list becomes too long")
    return [*numbers]


def _seq(*bounds: int) -> str:
    if len(bounds) == 3:
        start, step, end = bounds
        if end < start and step > 0:
            return ""
    elif len(bounds) in (1, 2):
        start, end = bounds if len(bounds) == 2 else (1, bounds[0])
        step = -1 if end < start else 1
    else:
        return ""
    return " ".join(map(str, _until_step(start, end + (-1 if end < start else 1), step)))


def _wrapped(value: int) -> int:
    """Returns the int64 after an overflow."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def _add(*values: Any) -> int:
    return _wrapped(sum(map(_to_int, values)))


def _sub(one: Any, other: Any) -> int:
    return _wrapped(_to_int(one) - _to_int(other))


def _mul(first: Any, *more: Any) -> int:
    product = _to_int(first)
    for value in more:
        product = _wrapped(product * _to_int(value))
    return product


def _div(one: Any, other: Any) -> int:
    left, right = _to_int(one), _to_int(other)
    if right == 0:
        raise TemplateError("runtime error: integer divide by zero")
    return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)


def _mod(one: Any, other: Any) -> int:
    left, right = _to_int(one), _to_int(other)
    if right == 0:
        raise TemplateError("runtime error: integer divide by zero")
    return abs(left) % abs(right) * (-1 if left < 0 else 1)


def _extreme(choose: Callable[..., Any], convert: Callable[[Any], Any]) -> Callable[..., Any]:
    def run(first: Any, *more: Any) -> Any:
        return choose(map(convert, (first, *more)))

    return run


def _round(value: Any, places: int, *on: float) -> float:
    power = 10.0 ** max(min(places, 300), -300)
    digit = power * _to_float(value)
    fraction = math.fmod(digit, 1)
    return (math.ceil(digit) if fraction >= (on[0] if on else 0.5) else math.floor(digit)) / power


def _decimals(operation: Callable[[Decimal, Decimal], Decimal]) -> Callable[..., Any]:
    def run(first: Any, *more: Any) -> float:
        number = Decimal(repr(_to_float(first)))
        for value in more:
            try:
                number = operation(number, Decimal(repr(_to_float(value))))
            except (InvalidOperation, ZeroDivisionError):
                raise TemplateError("decimal division by 0") from None
        return float(number)

    return run


def _addf(*values: Any) -> float:
    total: float = _decimals(Decimal.__add__)(0, *values)
    return total


def _to_decimal(value: Any) -> int:
    try:
        return int(shown(value), 8)
    except ValueError:
        return 0


# ------------------------------------------------------------------------ lists


def _list(*values: Any) -> list[Any]:
    return [*values]


def _first(value: Any) -> Any:
    items = _list_of(value, "first")
    return items[0] if items else None


def _last(value: Any) -> Any:
    items = _list_of(value, "last")
    return items[-1] if items else None


def _rest(value: Any) -> list[Any]:
    return _list_of(value, "rest")[1:]


def _initial(value: Any) -> list[Any]:
    return _list_of(value, "initial")[:-1]


def _append(value: Any, item: Any) -> list[Any]:
    return [*_list_of(value, "push"), item]


def _prepend(value: Any, item: Any) -> list[Any]:
    return [item, *_list_of(value, "prepend")]


def _reverse(value: Any) -> list[Any]:
    return _list_of(value, "reverse")[::-1]


def _uniq(value: Any) -> list[Any]:
    unique: list[Any] = []
    for item in _list_of(value, "uniq"):
        if not _has(item, unique):
            unique.append(item)
    return unique


def _without(value: Any, *gone: Any) -> list[Any]:
    return [item for item in _list_of(value, "without") if not _has(item, [*gone])]


def _has(item: Any, value: Any) -> bool:
    if value is None:
        return False
    return any(type_name(item) == type_name(other) and item == other for other in _list_of(value, "has"))


def _compact(value: Any) -> list[Any]:
    return [item for item in _list_of(value, "compact") if not _empty(item)]


def _slice(value: Any, *bounds: Any) -> Any:
    items = _list_of(value, "slice")
    if not items:
        return None
    start = _to_int(bounds[0]) if bounds else 0
    end = _to_int(bounds[1]) if len(bounds) > 1 else len(items)
    if not 0 <= start <= end <= len(items):
        raise TemplateError("reflect.Value.Slice: slice index out of bounds")
    return items[start:end]


def _concat(*values: Any) -> list[Any]:
    return [item for value in values for item in _list_of(value, "concat")]


def _chunk(size: int, value: Any) -> list[Any]:
    items = _list_of(value, "chunk")
    if size <= 0:
        raise TemplateError("runtime error: integer divide by zero")
    return [items[at : at + size] for at in range(0, len(items), size)] or [[]]


def _sort_alpha(value: Any) -> list[Any]:
    return sorted(_strings(value)) if isinstance(value, list) else [shown(value)]


# ------------------------------------------------------------------------- maps


def _dict(*values: Any) -> dict[str, Any]:
    entries: dict[str, Any] = {}
    for at in range(0, len(values), 2):
        entries[shown(values[at])] = values[at + 1] if at + 1 < len(values) else ""
    return entries


def _get(value: dict[str, Any], key: str) -> Any:
    return value.get(key, "")


def _set(value: dict[str, Any], key: str, item: Any) -> dict[str, Any]:
    value[key] = item
    return value


def _unset(value: dict[str, Any], key: str) -> dict[str, Any]:
    value.pop(key, None)
    return value


def _has_key(value: dict[str, Any], key: str) -> bool:
    return key in value


def _pluck(key: str, *values: dict[str, Any]) -> list[Any]:
    return [value[key] for value in values if key in value]


def _keys(*values: dict[str, Any]) -> list[Any]:
    return [key for value in values for key in sorted(value)]


def _values(value: dict[str, Any]) -> list[Any]:
    return [value[key] for key in sorted(value)]


def _pick(value: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value[key] for key in keys if key in value}


def _omit(value: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: item for key, item in value.items() if key not in keys}


def _merge_into(target: dict[str, Any], source: Mapping[str, Any], *, overwrite: bool) -> None:
    for key, item in source.items():
        before = target.get(key)
        if isinstance(before, dict) and isinstance(item, dict):
            _merge_into(before, item, overwrite=overwrite)
        elif _empty(before) or (overwrite and not _empty(item)):
            target[key] = item


def _merging(*, overwrite: bool) -> Callable[..., Any]:
    def run(target: dict[str, Any], *sources: dict[str, Any]) -> dict[str, Any]:
        for source in sources:
            _merge_into(target, source, overwrite=overwrite)
        return target

    return run


def _deep_copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _deep_copy(item) for key, item in value.items()}
    return [*map(_deep_copy, value)] if isinstance(value, list) else value


def _dig(*path: Any) -> Any:
    if len(path) < 3:
        raise TemplateError("dig needs at least three arguments")
    *keys, default, value = path
    for key in keys:
        if not isinstance(value, dict):
            raise TemplateError(
                f"interface conversion: interface {{}} is {type_name(value)}, not map[string]interface {{}}"
            )
        if key not in value:
            return default
        value = value[key]
    return value


# --------------------------------------------------------------------- defaults


def _empty(value: Any) -> bool:
    return not truth(value)


def _default(default: Any, *given: Any) -> Any:
    return default if not given or _empty(given[0]) else given[0]


def _coalesce(*values: Any) -> Any:
    return next((value for value in values if not _empty(value)), None)


def _all(*values: Any) -> bool:
    return not any(map(_empty, values))


def _any(*values: Any) -> bool:
    return not all(map(_empty, values))


def _ternary(yes: Any, no: Any, test: bool) -> Any:
    return yes if test else no


def _fail(message: str) -> str:
    raise TemplateError(message)


# -------------------------------------------------------------- patterns, paths


def _pattern(pattern: str) -> Any:
    if problem := pattern_problem(pattern):
        raise TemplateError(problem)
    return compile_pattern(pattern)


def _regex_match(pattern: str, text: str) -> bool:
    return _pattern(pattern).search(text) is not None


def _regex_match_softly(pattern: str, text: str) -> bool:
    return not pattern_problem(pattern) and _regex_match(pattern, text)


def _regex_find(pattern: str, text: str) -> str:
    match = _pattern(pattern).search(text)
    return match.group() if match else ""


def _regex_find_all(pattern: str, text: str, count: int) -> list[Any]:
    matches = [match.group() for match in _pattern(pattern).finditer(text)]
    return matches if count < 0 else matches[:count]


def _replaced(pattern: str, text: str, template: Callable[[Any], str]) -> str:
    out, at = [], 0
    for match in _pattern(pattern).finditer(text):
        out += [text[at : match.start()], template(match)]
        at = match.end()
    return "".join([*out, text[at:]])


def _regex_replace_all(pattern: str, text: str, replacement: str) -> str:
    def expanded(match: Any) -> str:
        def group(name: re.Match[str]) -> str:
            if name.group() == "$$":
                return "$"
            wanted = name[1] or name[2]
            try:
                return match.group(int(wanted) if wanted.isdigit() else wanted) or ""
            except (IndexError, LookupError, ValueError):
                return ""

        return re.sub(r"\$\$|\$(\w+)|\$\{(\w+)\}", group, replacement)

    return _replaced(pattern, text, expanded)


def _regex_replace_all_literal(pattern: str, text: str, replacement: str) -> str:
    return _replaced(pattern, text, lambda match: replacement)


def _regex_split(pattern: str, text: str, count: int) -> list[Any]:
    if count == 0:
        return []
    parts: list[Any] = []
    at = 0
    for match in _pattern(pattern).finditer(text):
        if count > 0 and len(parts) == count - 1:
            break
        if match.end() == 0 or (match.start() == match.end() == len(text)):
            continue
        parts.append(text[at : match.start()])
        at = match.end()
    return [*parts, text[at:]]


def _base(path: str) -> str:
    stripped = path.rstrip("/")
    return posixpath.basename(stripped) or ("/" if path else ".")


def _clean(path: str) -> str:
    cleaned = posixpath.normpath(path) if path else "."
    return cleaned[1:] if cleaned.startswith("//") else cleaned


def _dir(path: str) -> str:
    return _clean(path[: path.rfind("/") + 1])


def _ext(path: str) -> str:
    name = path[path.rfind("/") + 1 :]
    return name[name.rfind(".") :] if "." in name else ""


def _url_parse(text: str) -> dict[str, Any]:
    try:
        url = urlsplit(text)
    except ValueError as error:
        raise TemplateError(f"unable to parse url: {error}") from None
    userinfo, at, host = url.netloc.rpartition("@")
    return {
        "scheme": url.scheme,
        "host": host,
        "hostname": url.hostname or "",
        "path": url.path,
        "query": url.query,
        "opaque": "" if url.netloc or url.path.startswith("/") or not url.scheme else url.path,
        "fragment": url.fragment,
        "userinfo": userinfo if at else "",
    }


def _url_join(parts: dict[str, Any]) -> str:
    def text(name: str) -> str:
        return shown(parts[name]) if parts.get(name) is not None else ""

    host = f"{text('userinfo')}@{text('host')}" if text("userinfo") else text("host")
    return urlunsplit((text("scheme"), host, text("path"), text("query"), text("fragment")))


# ---------------------------------------------------------------------- semver

_VERSION: Final = re.compile(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:-([0-9A-Za-z.-]+))?(?:\+([0-9A-Za-z.-]+))?")


def _semver(text: str) -> Version:
    match = _VERSION.fullmatch(text)
    if match is None:
        raise TemplateError("invalid semantic version")
    major, minor, patch = (int(part or 0) for part in match.groups()[:3])
    return Version(
        Major=major, Minor=minor, Patch=patch, Prerelease=match[4] or "", Metadata=match[5] or "", Original=text
    )


def _semver_key(version: Mapping[str, Any]) -> tuple[Any, ...]:
    pre = [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in version["Prerelease"].split(".") if part]
    return (version["Major"], version["Minor"], version["Patch"], not pre, pre)


def _semver_compare(constraint: str, text: str) -> bool:
    version = _semver(text)
    return any(
        all(_satisfies(version, part) for part in re.findall(r"(?:[=!<>~^]+\s*)?[vV]?[\dxX*][^\s,]*", choice))
        for choice in constraint.split("||")
    )


def _satisfies(version: Mapping[str, Any], constraint: str) -> bool:
    match = re.fullmatch(
        r"([=!<>~^]*)\s*v?([\dxX*]+)(?:\.([\dxX*]+))?(?:\.([\dxX*]+))?(-[\w.-]+)?(?:\+.*)?", constraint
    )
    if match is None:
        raise TemplateError(f"improper constraint: {constraint}")
    operator, *parts, pre = match.groups()
    numbers = [int(part) if part and part.isdigit() else None for part in parts]
    known = numbers[: numbers.index(None)] if None in numbers else numbers
    wanted = _semver(".".join(str(part or 0) for part in numbers) + (pre or ""))
    if version["Prerelease"] and not pre:
        return False
    low, this = _semver_key(wanted), _semver_key(version)
    has = [version["Major"], version["Minor"], version["Patch"]]
    same = has[: len(known)] == known
    if operator in ("", "="):
        return this == low if len(known) == 3 else same
    if operator == "!=":
        return this != low if len(known) == 3 else not same
    if operator in (">", "<="):
        above = this > low and not (len(known) < 3 and same)
        return above if operator == ">" else not above
    if operator in (">=", "=>", "<", "=<"):
        return this >= low if operator in (">=", "=>") else this < low if operator == "<" else this <= low
    if operator in ("~", "~>"):
        return this >= low and has[: min(2, len(known))] == known[:2]
    if operator == "^":
        fixed = next((at for at, part in enumerate(known) if part), len(known) - 1)
        return this >= low and has[: fixed + 1] == known[: fixed + 1]
    raise TemplateError(f"improper constraint: {constraint}")


_PLAIN: Final[Mapping[str, Callable[..., Any]]] = {
    "hello": lambda: "Hello!",
    "int": _to_int, "int64": _to_int, "float64": _to_float, "toDecimal": _to_decimal, "toString": shown,
    "toStrings": _strings, "toJson": to_json, "mustToJson": to_json, "toRawJson": _to_raw_json, "mustToRawJson": _to_raw_json,
    "toPrettyJson": _to_pretty_json, "mustToPrettyJson": _to_pretty_json, "fromJson": _from_json,
    "mustFromJson": _must_from_json,
    "quote": _quote, "squote": _squote, "cat": _cat, "indent": _indent, "nindent": _nindent, "repeat": _repeat,
    "trunc": _trunc, "substr": _substr, "title": _title, "untitle": _untitle, "abbrev": _abbrev, "abbrevboth": _abbrevboth,
    "initials": _initials, "nospace": _nospace, "camelcase": _camelcase, "split": _split, "splitn": _splitn,
    "splitList": _split_list, "join": _join, "wrapWith": _wrap_with, "plural": _plural,
    "sha1sum": _sum_of("sha1"), "sha256sum": _sum_of("sha256"), "sha512sum": _sum_of("sha512"),
    "b64dec": _decoded(lambda data: base64.b64decode(data, validate=True), "base64"),
    "b32dec": _decoded(base64.b32decode, "base32"),
    "until": _until, "untilStep": _until_step, "seq": _seq, "add": _add, "sub": _sub, "mul": _mul, "div": _div, "mod": _mod,
    "max": _extreme(max, _to_int), "biggest": _extreme(max, _to_int), "min": _extreme(min, _to_int),
    "maxf": _extreme(max, _to_float), "minf": _extreme(min, _to_float), "round": _round,
    "add1": lambda value: _wrapped(_to_int(value) + 1), "add1f": lambda value: _addf(value, 1), "addf": _addf,
    "subf": _decimals(Decimal.__sub__), "mulf": _decimals(Decimal.__mul__), "divf": _decimals(Decimal.__truediv__),
    "ceil": lambda value: float(math.ceil(_to_float(value))), "floor": lambda value: float(math.floor(_to_float(value))),
    "list": _list, "tuple": _list, "append": _append, "push": _append, "mustAppend": _append, "mustPush": _append,
    "prepend": _prepend, "mustPrepend": _prepend, "first": _first, "mustFirst": _first, "last": _last, "mustLast": _last,
    "rest": _rest, "mustRest": _rest, "initial": _initial, "mustInitial": _initial, "reverse": _reverse,
    "mustReverse": _reverse, "uniq": _uniq, "mustUniq": _uniq, "without": _without, "mustWithout": _without, "has": _has,
    "mustHas": _has, "compact": _compact, "mustCompact": _compact, "slice": _slice, "mustSlice": _slice, "concat": _concat,
    "chunk": _chunk, "mustChunk": _chunk, "sortAlpha": _sort_alpha,
    "dict": _dict, "get": _get, "set": _set, "unset": _unset, "hasKey": _has_key, "pluck": _pluck, "keys": _keys,
    "values": _values, "pick": _pick, "omit": _omit, "merge": _merging(overwrite=False),
    "mustMerge": _merging(overwrite=False), "mergeOverwrite": _merging(overwrite=True),
    "mustMergeOverwrite": _merging(overwrite=True), "deepCopy": _deep_copy, "mustDeepCopy": _deep_copy, "dig": _dig,
    "default": _default, "empty": _empty, "coalesce": _coalesce, "all": _all, "any": _any, "ternary": _ternary,
    "fail": _fail, "typeOf": type_name, "kindOf": _kind,
    "deepEqual": lambda one, other: type_name(one) == type_name(other) and one == other,
    "regexMatch": _regex_match_softly, "mustRegexMatch": _regex_match, "regexFind": _regex_find, "mustRegexFind": _regex_find,
    "regexFindAll": _regex_find_all, "mustRegexFindAll": _regex_find_all, "regexReplaceAll": _regex_replace_all,
    "mustRegexReplaceAll": _regex_replace_all, "regexReplaceAllLiteral": _regex_replace_all_literal,
    "mustRegexReplaceAllLiteral": _regex_replace_all_literal, "regexSplit": _regex_split, "mustRegexSplit": _regex_split,
    "base": _base, "osBase": _base, "dir": _dir, "osDir": _dir, "clean": _clean, "osClean": _clean, "ext": _ext,
    "osExt": _ext, "urlParse": _url_parse, "urlJoin": _url_join, "semver": _semver, "semverCompare": _semver_compare,
}  # fmt: skip


def _of_text(call: Callable[[str], Any]) -> Callable[..., Any]:
    def run(text: str) -> Any:
        return call(text)

    return run


def _of_two_texts(call: Callable[[str, str], Any]) -> Callable[..., Any]:
    def run(one: str, other: str) -> Any:
        return call(one, other)

    return run


def _replace(old: str, new: str, text: str) -> str:
    return text.replace(old, new)


def _wrap(width: int, text: str) -> str:
    return _wrap_with(width, "\n", text)


def _atoi(text: str) -> int:
    try:
        return int(text) if re.fullmatch(r"[+-]?\d+", text, re.A) else 0
    except ValueError:
        return 0


_OF_ONE_TEXT: Final[Mapping[str, Callable[[str], Any]]] = {
            "upper": str.upper, "lower": str.lower, "trim": str.strip, "swapcase": str.swapcase,
            "snakecase": lambda text: "_".join(_words(text)).lower(), "kebabcase": lambda text: "-".join(_words(text)).lower(),
            "b64enc": lambda text: base64.b64encode(text.encode()).decode(),
            "b32enc": lambda text: base64.b32encode(text.encode()).decode(),
            "adler32sum": lambda text: str(zlib.adler32(text.encode())), "isAbs": lambda text: text.startswith("/"),
            "osIsAbs": lambda text: text.startswith("/"), "regexQuoteMeta": lambda text: re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", text),
        }  # fmt: skip
_OF_TWO_TEXTS: Final[Mapping[str, Callable[[str, str], Any]]] = {
            "contains": lambda part, text: part in text, "hasPrefix": lambda part, text: text.startswith(part),
            "hasSuffix": lambda part, text: text.endswith(part), "trimAll": lambda chars, text: text.strip(chars),
            "trimall": lambda chars, text: text.strip(chars), "trimPrefix": lambda part, text: text.removeprefix(part),
            "trimSuffix": lambda part, text: text.removesuffix(part),
        }  # fmt: skip
_TEXTS: Final[Mapping[str, Callable[..., Any]]] = {
    **{name: _of_text(call) for name, call in _OF_ONE_TEXT.items()},
    **{name: _of_two_texts(call) for name, call in _OF_TWO_TEXTS.items()},
    "replace": _replace,
    "wrap": _wrap,
    "atoi": _atoi,
}


def _type_is(target: str, value: Any) -> bool:
    return target == type_name(value)


def _kind_is(target: str, value: Any) -> bool:
    return target == _kind(value)


class _Moments:
    """Functions of a clock and a source of chance."""

    def __init__(self, now: Callable[[], float], random: random_module.Random) -> None:
        self._now = now
        self._random = random

    def moment(self, value: Any) -> Time:
        if isinstance(value, Time):
            return value
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        return Time(float(value) if is_whole and abs(value) < 1 << 36 else self._now())

    def date(self, layout: str, value: Any) -> str:
        return formatted(layout, self.moment(value))

    def date_in_zone(self, layout: str, value: Any, zone: str) -> str:
        return formatted(layout, self.moment(value), zone)

    def html_date(self, value: Any) -> str:
        return formatted("2006-01-02", self.moment(value))

    def html_date_in_zone(self, value: Any, zone: str) -> str:
        return formatted("2006-01-02", self.moment(value), zone)

    def date_modify(self, change: str, value: Time) -> Time:
        try:
            return Time(value.seconds + parse_duration(change))
        except ValueError:
            return value

    def must_date_modify(self, change: str, value: Time) -> Time:
        return Time(value.seconds + parse_duration(change))

    def to_date(self, layout: str, text: str) -> Time:
        try:
            return parsed(layout, text)
        except TemplateError:
            return ZERO

    def must_to_date(self, layout: str, text: str) -> Time:
        return parsed(layout, text)

    def ago(self, value: Any) -> str:
        return format_duration(round(self._now() - self.moment(value).seconds))

    def duration(self, value: Any) -> str:
        return format_duration(_atoi(value) if isinstance(value, str) else value if isinstance(value, int) else 0)

    def duration_round(self, value: Any) -> str:
        seconds = 0.0
        if isinstance(value, str):
            try:
                seconds = parse_duration(value)
            except ValueError:
                seconds = 0.0
        elif isinstance(value, Time):
            seconds = self._now() - value.seconds
        elif isinstance(value, int):
            seconds = value * 1e-9
        seconds = abs(seconds)
        for unit, size in (("y", 31536000), ("mo", 2592000), ("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
            if seconds > size:
                return f"{int(seconds // size)}{unit}"
        return "0s"

    def unix_epoch(self, value: Time) -> str:
        return str(int(value.seconds // 1))

    def chars(self, alphabet: Sequence[str]) -> Callable[..., Any]:
        def run(count: int) -> str:
            if not 0 <= count <= MAX_OUTPUT:
                raise TemplateError("the text becomes too long")
            return "".join(self._random.choices(alphabet, k=count))

        return run

    def rand_int(self, least: int, most: int) -> int:
        if most <= least:
            raise TemplateError("invalid argument to Intn")
        return self._random.randrange(least, most)

    def rand_bytes(self, count: int) -> str:
        if not 0 <= count <= MAX_OUTPUT:
            raise TemplateError("the text becomes too long")
        return base64.b64encode(self._random.randbytes(count)).decode()

    def shuffle(self, text: str) -> str:
        return "".join(self._random.sample(text, len(text)))

    def current(self) -> Time:
        return Time(self._now())

    def uuid(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))


def sprig_functions(now: Callable[[], float], random: random_module.Random) -> dict[str, Function]:
    """`now`: seconds since the epoch."""
    at = _Moments(now, random)
    timed: dict[str, Callable[..., Any]] = {
        "now": at.current, "date": at.date, "dateInZone": at.date_in_zone, "date_in_zone": at.date_in_zone,
        "htmlDate": at.html_date, "htmlDateInZone": at.html_date_in_zone, "dateModify": at.date_modify, "date_modify": at.date_modify,
        "mustDateModify": at.must_date_modify, "must_date_modify": at.must_date_modify, "toDate": at.to_date,
        "mustToDate": at.must_to_date, "ago": at.ago, "duration": at.duration, "durationRound": at.duration_round,
        "unixEpoch": at.unix_epoch, "randAlphaNum": at.chars(string.ascii_letters + string.digits),
        "randAlpha": at.chars(string.ascii_letters), "randNumeric": at.chars(string.digits),
        "randAscii": at.chars([*map(chr, range(32, 127))]), "randInt": at.rand_int, "randBytes": at.rand_bytes, "shuffle": at.shuffle,
        "uuidv4": at.uuid,
        "typeIs": _type_is, "typeIsLike": _type_is, "kindIs": _kind_is,
    }  # fmt: skip
    return {name: function(name, call) for name, call in {**_PLAIN, **_TEXTS, **timed}.items()}
