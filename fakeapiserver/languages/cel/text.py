"""Strings: cel-go's extension of version 2, Kubernetes' regular expressions, `format`.

Upstream: github.com/google/cel-go/ext/{strings,formatting}.go, k8s.io/apiserver/pkg/cel/library/regex.go
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.field import go_float
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.go.strconv import atoi
from fakeapiserver.apimachinery.go_space import trim_space
from fakeapiserver.apimachinery.schema import patterns
from fakeapiserver.languages.cel.errors import CelError
from fakeapiserver.languages.cel.times import duration_text, timestamp_text
from fakeapiserver.languages.cel.types import Type
from fakeapiserver.languages.cel.values import Duration, Timestamp, type_of

_LOWER: Final = {code: code + 32 for code in range(65, 91)}
_UPPER: Final = {code + 32: code for code in range(65, 91)}
_QUOTED: Final = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)


def compile_pattern(pattern: str) -> Any:
    """CelError in Go's words."""
    if problem := patterns.pattern_problem(pattern):
        raise CelError(problem)
    return patterns.compile_pattern(pattern)


def _checked(compiled: Any, text: str) -> Any:
    try:
        patterns.check_length(compiled, text)
    except patterns.TextTooLong as problem:
        raise CelError(str(problem)) from None
    return compiled


def matches(text: str, pattern: str) -> bool:
    return _checked(compile_pattern(pattern), text).search(text) is not None


def _legal(pattern: str, text: str) -> Any:
    try:
        compiled = compile_pattern(pattern)
    except CelError as error:
        raise CelError(f"Illegal regex: {error}") from None
    return _checked(compiled, text)


def find(text: str, pattern: str) -> str:
    match = _legal(pattern, text).search(text)
    return "" if match is None else str(match.group())


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """Go's FindAllString: an empty match right behind another does not count."""
    matches: list[str] = []
    last_end = -1
    for match in _legal(pattern, text).finditer(text):
        if 0 <= limit <= len(matches):
            break
        if match.start() == match.end() == last_end:
            continue
        matches.append(match.group())
        last_end = match.end()
    return matches


def char_at(text: str, at: int) -> str:
    if not 0 <= at <= len(text):
        raise CelError(f"index out of range: {at}")
    return text[at : at + 1]


def index_of(text: str, part: str, start: int = 0) -> int:
    if not part:
        return start
    if start < 0:
        raise CelError(f"index out of range: {start}")
    return text.find(part, start)


def last_index_of(text: str, part: str, start: int | None = None) -> int:
    if start is None:
        if not part:
            return len(text)
        if len(text.encode()) < len(part.encode()):
            return -1
        start = len(text) - 1
    if not part:
        return start
    if start < 0:
        raise CelError(f"index out of range: {start}")
    return -1 if start >= len(text) else text.rfind(part, 0, start + len(part))


def substring(text: str, start: int, end: int | None = None) -> str:
    if end is not None and start > end:
        raise CelError(f"invalid substring range. start: {start}, end: {end}")
    for at in (start,) if end is None else (start, end):
        if not 0 <= at <= len(text):
            raise CelError(f"index out of range: {at}")
    return text[start:end]


def split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if not separator:
        if limit < 0 or limit >= len(text):
            return list(text)
        return [*text[: limit - 1], text[limit - 1 :]]
    return text.split(separator, limit - 1 if limit > 0 else -1)


def join(items: list[Any], separator: str = "") -> str:
    for item in items:
        if type(item) is not str:
            raise CelError(f"join: invalid input: {item}")
    return separator.join(items)


def replace(text: str, old: str, new: str, limit: int = -1) -> str:
    return text.replace(old, new, limit if limit >= 0 else -1)


def trim(text: str) -> str:
    return trim_space(text)


def lower_ascii(text: str) -> str:
    return text.translate(_LOWER)


def upper_ascii(text: str) -> str:
    return text.translate(_UPPER)


def quote(text: str) -> str:
    return f'"{text.translate(_QUOTED)}"'


def double_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return go_float(value) if math.isfinite(value) else ("+Inf" if value > 0 else "-Inf")


# ---------------------------------------------------------------- format

_CLAUSE: Final = re.compile(r"%(?:%|(\.)?(\d*)(.?))", re.DOTALL)
_ALLOWED: Final = {
    "s": "strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps",
    "d": "integers",
    "f": "doubles",
    "e": "doubles",
    "o": "integers",
}
_CALLED: Final = {
    "s": "string",
    "d": "decimal",
    "f": "fixed-point",
    "e": "scientific",
    "o": "octal",
}
_SUPERSCRIPT: Final = str.maketrans("0123456789-+", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺")


def format_text(template: str, args: list[Any]) -> str:
    """`'%s'.format([…])`."""
    parts: list[str] = []
    at = 0
    used = 0
    for match in _CLAUSE.finditer(template):
        parts.append(template[at : match.start()])
        at = match.end()
        if match.group() == "%%":
            parts.append("%")
            continue
        if used >= len(args):
            raise CelError(f"index {used} out of range")
        if match.group() == "%":
            raise CelError("unexpected end of string")
        parts.append(_clause(match, args[used]))
        used += 1
    parts.append(template[at:])
    return "".join(parts)


def _letter(match: re.Match[str]) -> tuple[str, int]:
    """A clause's kind and precision."""
    dot, digits, letter = match.groups()
    if dot and not letter:
        raise CelError(
            "could not parse formatting clause: error while parsing precision: could not find end of precision specifier"
        )
    try:
        precision = atoi(digits) if dot else 6
    except ValueError as error:
        problem = f"error while converting precision to integer: {error}"
        raise CelError(f"could not parse formatting clause: error while parsing precision: {problem}") from None
    if not dot and digits:
        letter = digits[0]
    if letter not in _FORMS:
        raise CelError(f'could not parse formatting clause: unrecognized formatting clause "{letter}"')
    return letter, precision


_ONLY: Final = {
    "b": "integers and bools can be formatted as binary",
    "x": "integers, byte buffers, and strings can be formatted as hex",
}


def _unfit(letter: str, given: Type) -> str:
    kind = letter.lower()
    if kind in _ONLY:
        return f"error during formatting: only {_ONLY[kind]}, was given {given.full_name}"
    problem = f"{_CALLED[kind]} clause can only be used on {_ALLOWED[kind]}, was given {given.full_name}"
    return f"error during formatting: {problem}"


def _clause(match: re.Match[str], value: Any) -> str:
    letter, precision = _letter(match)
    text = _FORMS[letter](value, precision)
    if text is None:
        raise CelError(_unfit(letter, type_of(value)))
    return text


_TAKES: Final = {
    "s": frozenset(
        [
            "string",
            "bool",
            "bytes",
            "int",
            "uint",
            "double",
            "map",
            "list",
            "type",
            "duration",
            "timestamp",
            "null",
            "dyn",
        ]
    ),
    "d": frozenset({"int", "uint", "dyn"}),
    # A text may be "NaN".
    "f": frozenset({"double", "string", "dyn"}),
    "e": frozenset({"double", "string", "dyn"}),
    "b": frozenset({"int", "uint", "bool", "dyn"}),
    "x": frozenset({"int", "uint", "string", "bytes", "dyn"}),
    "o": frozenset({"int", "uint", "dyn"}),
}


def template_issues(template: str, given: Sequence[Sequence[tuple[int, Type]]]) -> Iterator[tuple[int | None, str]]:
    """Yields the errors in a format string that are known before the values: place (None: in the template) and message.

    `given` are the places and types of each argument and of the elements of its literal.
    """
    used = 0
    for match in _CLAUSE.finditer(template):
        if match.group() == "%%":
            continue
        if match.group() == "%":
            yield None, "unexpected end of string"
            return
        if used >= len(given):
            yield None, f"index {used} out of range"
            return
        try:
            letter, _ = _letter(match)
        except CelError as error:
            yield None, str(error)
            return
        for at, kind in given[used] if letter == "s" else given[used][:1]:
            if kind.kind not in _TAKES[letter.lower()]:
                yield at, _unfit(letter, kind)
                return
        used += 1
    if used < len(given):
        yield None, f"too many arguments supplied to string.format (expected {used}, got {len(given)})"


def value_text(value: Any) -> str | None:
    """Returns the text of a value for %s."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(int(value))
        case float():
            return double_text(value)
        case str():
            return value
        case bytes():
            return _bytes_text(value)
        case Duration():
            return duration_text(value)
        case Timestamp():
            return timestamp_text(value)
        case Type():
            return value.full_name
        case list():
            return "[" + ", ".join(map(_nested, value)) + "]"
        case dict():
            pairs = sorted((_key(key), _nested(item)) for key, item in value.items())
            return "{" + ", ".join(f"{key}:{item}" for key, item in pairs) + "}"
    return None


def _bytes_text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        why = "invalid UTF-8 in bytes, cannot convert to string"
        raise CelError(f'error during formatting: could not convert argument "{why}" to string') from None


def _key(key: Any) -> str:
    if isinstance(key, float):
        raise CelError("error during formatting: no formatting function for map key of type double")
    return _nested(key)


def _nested(value: Any) -> str:
    if isinstance(value, str):
        return go_quote(value)
    if isinstance(value, bytes):
        return f"b{go_quote(_bytes_text(value))}"
    if isinstance(value, float):
        text = f"{value:.6f}"
        return {"nan": '"NaN"', "inf": '"+Inf"', "-inf": '"-Inf"'}.get(text, text)
    if isinstance(value, Duration):
        return f'duration("{duration_text(value)}")'
    if isinstance(value, Timestamp):
        return f'timestamp("{timestamp_text(value)}")'
    text_or_none = value_text(value)
    if text_or_none is None:
        raise CelError(f"error during formatting: no formatting function for {type_of(value).full_name}")
    return text_or_none


def _number(value: Any) -> float | None:
    if isinstance(value, str) and value in ("NaN", "Infinity", "-Infinity"):
        return float(value)
    return value if isinstance(value, float) else None


def _decimal(value: Any, _: int) -> str | None:
    return str(int(value)) if isinstance(value, int) and not isinstance(value, bool) else None


def _unbounded(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    return "∞" if number > 0 else "-∞"


def _fixed(value: Any, precision: int) -> str | None:
    number = _number(value)
    if number is None:
        return None
    if not math.isfinite(number):
        return _unbounded(number)
    return f"{number:,.{precision}f}"


def _scientific(value: Any, precision: int) -> str | None:
    number = _number(value)
    if number is None:
        return None
    if not math.isfinite(number):
        return _unbounded(number)
    mantissa, _, exponent = f"{number:.{precision}e}".partition("e")
    return f"{mantissa}×10{exponent.removeprefix('+').translate(_SUPERSCRIPT)}"


def _binary(value: Any, _: int) -> str | None:
    return f"{int(value):b}" if isinstance(value, int) else None


def _hex(upper: bool) -> Callable[[Any, int], str | None]:
    def form(value: Any, _: int) -> str | None:
        if isinstance(value, str | bytes):
            text = (value.encode() if isinstance(value, str) else value).hex()
        elif isinstance(value, int) and not isinstance(value, bool):
            text = f"{int(value):x}"
        else:
            return None
        return text.upper() if upper else text

    return form


def _octal(value: Any, _: int) -> str | None:
    return f"{int(value):o}" if isinstance(value, int) and not isinstance(value, bool) else None


_FORMS: Final[dict[str, Callable[[Any, int], str | None]]] = {
    "s": lambda value, _: value_text(value),
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "x": _hex(False),
    "X": _hex(True),
    "o": _octal,
}
