"""The expressions of stages in jq and CEL (upstream: sigs.k8s.io/kwok/pkg/utils/{expression,cel,lifecycle}). Pure."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.duration import parse_duration
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import seconds_of
from fakeapiserver.languages.cel.checker import Declared
from fakeapiserver.languages.cel.errors import CelError, CompileError
from fakeapiserver.languages.cel.program import compile_expression
from fakeapiserver.languages.cel.types import DYN
from fakeapiserver.languages.cel.values import Duration
from fakeapiserver.languages.jq import JqError, JqSyntaxError, compile_query

_SELF: Final = Declared({"self": DYN})


class StageError(ValueError):
    """A Stage can't be used, or not for an object; one line."""


class Subject:
    """An object that stages look at. `now`: seconds since the epoch."""

    __slots__ = ("_numbers", "now", "obj")

    def __init__(self, obj: Object, now: float) -> None:
        self.obj = obj
        self.now = now
        self._numbers: Any = None

    @property
    def metadata(self) -> Mapping[str, Any]:
        metadata: Mapping[str, Any] = self.obj["metadata"]
        return metadata

    @property
    def for_jq(self) -> Any:
        """With every number a float, as Go decodes JSON."""
        if self._numbers is None:
            self._numbers = _as_floats(self.obj)
        return self._numbers


def _as_floats(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_floats(item) for key, item in value.items()}
    if isinstance(value, list):
        return [*map(_as_floats, value)]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


Condition = Callable[[Subject], bool]
Values = Callable[[Subject], list[Any] | None]


def query(source: str) -> Values:
    """The outputs of a jq query but for nulls; None where it fails. StageError."""
    try:
        compiled = compile_query(source)
    except JqSyntaxError as error:
        raise StageError(f"jq {source!r}: {error}") from None

    def run(subject: Subject) -> list[Any] | None:
        try:
            return [value for value in compiled.run(subject.for_jq, subject.now) if value is not None]
        except JqError:
            return None

    return run


def requirement(key: str, operator: str, values: Sequence[str]) -> Condition:
    """`matchExpressions` with key, operator and values. StageError."""
    ask = query(key)
    if operator in ("In", "NotIn"):
        if not values:
            raise StageError("for 'in', 'notin' operators, values set can't be empty")
        known = frozenset(values)
        wanted = operator == "In"
        return lambda subject: any(_text(value) in known for value in ask(subject) or ()) == wanted
    if operator in ("Exists", "DoesNotExist"):
        if values:
            raise StageError("values set must be empty for exists and does not exist")
        return lambda subject: bool(ask(subject)) == (operator == "Exists")
    raise StageError(f"operator {operator!r} is not supported")


def _text(value: Any) -> str | None:
    """Returns the value as text for a selector; None if it can't match, which includes numbers from the object."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int) else None


def _evaluated(source: str) -> Callable[[Subject], Any]:
    """The value of a CEL expression. StageError, now or then."""
    try:
        program = compile_expression(source, _SELF)
    except (CompileError, CelError) as error:
        raise StageError(f"CEL {source!r}: {' '.join(str(error).split())}") from None

    def run(subject: Subject) -> Any:
        result = program.evaluate({"self": subject.obj})
        if result.error:
            raise StageError(f"CEL {source!r}: {result.error}")
        return result.value

    return run


def condition(source: str) -> Condition:
    """`matchExpressions` with cel. StageError, now or then."""
    ask = _evaluated(source)

    def run(subject: Subject) -> bool:
        value = ask(subject)
        if not isinstance(value, bool):
            raise StageError(f"CEL {source!r} gives no bool")
        return value

    return run


def whole_number(default: int, given: Mapping[str, Any] | None) -> Callable[[Subject], int | None]:
    """Returns a function for `weight` and `weightFrom`; its result may be None.

    Raises StageError, at once or when called.
    """
    if given is None:
        return lambda subject: default
    if (source := _cel_of(given)) is not None:
        return _cel_number(source)
    ask = query(_jq_of(given))

    def run(subject: Subject) -> int | None:
        value = ask(subject)
        first = value[0] if value else default
        if isinstance(first, str):
            return _parsed(first)
        return int(first) if isinstance(first, float) else default

    return run


def _parsed(text: str) -> int | None:
    """Parses as strconv.ParseInt(text, 0, 0) does."""
    try:
        digits = text.lstrip("+-")
        is_octal = len(digits) > 1 and digits[0] == "0" and digits.isdigit()
        return int(text, 8 if is_octal else 0) if text == text.strip() else None
    except ValueError:
        return None


def _cel_number(source: str) -> Callable[[Subject], int | None]:
    ask = _evaluated(source)

    def run(subject: Subject) -> int:
        value = ask(subject)
        if isinstance(value, Duration):
            return value.ns
        if isinstance(value, int | float):
            return int(value)
        raise StageError(f"CEL {source!r} gives no number")

    return run


def seconds(milliseconds: int | None, given: Mapping[str, Any] | None) -> Callable[[Subject], float | None]:
    """Returns a function for a duration in seconds and its source in the object; a time counts from now.

    Its result may be None. Raises StageError, at once or when called.
    """
    default = None if milliseconds is None else milliseconds / 1000
    if given is None:
        return lambda subject: default
    if (source := _cel_of(given)) is not None:
        return _cel_seconds(source)
    ask = query(_jq_of(given))

    def run(subject: Subject) -> float | None:
        value = ask(subject)
        first = value[0] if value else None
        if not isinstance(first, str):
            return default
        if not first:
            return None
        if "T" in first and (at := seconds_of(first)) is not None:
            return at - subject.now
        try:
            return parse_duration(first)
        except ValueError:
            return default

    return run


def _cel_seconds(source: str) -> Callable[[Subject], float | None]:
    ask = _evaluated(source)

    def run(subject: Subject) -> float:
        value = ask(subject)
        if isinstance(value, str):
            try:
                return parse_duration(value)
            except ValueError as error:
                raise StageError(f"CEL {source!r}: {error}") from None
        if isinstance(value, Duration):
            return value.ns / 1e9
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value / 1e9  # nanoseconds, as Go has them
        raise StageError(f"CEL {source!r} gives no duration")

    return run


def _cel_of(given: Mapping[str, Any]) -> str | None:
    expression = given.get("cel")
    return None if expression is None else str(expression.get("expression", ""))


def _jq_of(given: Mapping[str, Any]) -> str:
    if given.get("jq") is not None:
        return str(given["jq"].get("expression", ""))
    if given.get("expressionFrom"):
        return str(given["expressionFrom"])
    raise StageError("an expression needs jq, cel or expressionFrom")
