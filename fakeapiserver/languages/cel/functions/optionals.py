"""Functions of optional values."""

from typing import Any, Final

from fakeapiserver.languages.cel import times
from fakeapiserver.languages.cel.errors import CelError
from fakeapiserver.languages.cel.functions.function import Function
from fakeapiserver.languages.cel.values import NONE, Duration, Optional, Timestamp


def _value(a: Optional) -> Any:
    if not a.has_value:
        raise CelError("optional.none() dereference")
    return a.value


def _is_zero(value: Any) -> bool:
    if isinstance(value, Duration):
        return value.ns == 0
    if isinstance(value, Timestamp):
        return value.ns == times.ZERO_NS
    if isinstance(value, bool | int | float | str | bytes | list | dict) or value is None:
        return not value
    return isinstance(value, Optional) and not value.has_value


OPTIONALS: Final[dict[str, Function]] = {
    "optional_of": lambda a: Optional(True, a),
    "optional_none": lambda: NONE,
    "optional_ofNonZeroValue": lambda a: NONE if _is_zero(a) else Optional(True, a),
    "optional_value": _value,
    "optional_hasValue": lambda a: a.has_value,
    "optional_unwrap": lambda a: [item.value for item in a if item.has_value],
    "optional_unwrapOpt": lambda a: [item.value for item in a if item.has_value],
}
