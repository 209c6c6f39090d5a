"""Numbers that may be percentages: `3` and `"25%"`.

Upstream: pkg/apis/apps/validation/validation.go.
"""

import re
from typing import Final

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.go.strconv import RangeError, atoi
from fakeapiserver.registry.core.field_formats import non_negative_errors

_LARGEST: Final = (1 << 63) - 1
_PERCENT: Final = re.compile("[0-9]+%")
_NOT_A_PERCENTAGE: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)


def int_or_percent_errors(value: int | str, path: Path) -> ErrorList:
    """The errors in a non-negative number or percentage (ValidatePositiveIntOrPercent)."""
    if isinstance(value, int):
        return non_negative_errors(value, path)
    if _PERCENT.fullmatch(value):
        return []
    return [field.invalid(path, value, _NOT_A_PERCENTAGE)]


def at_most_all_errors(value: int | str, path: Path) -> ErrorList:
    """The error for a percentage above 100 (IsNotMoreThan100Percent)."""
    if isinstance(value, str) and _PERCENT.fullmatch(value) and number_of(value) > 100:
        return [field.invalid(path, value, "must not be greater than 100%")]
    return []


def number_of(value: int | str) -> int:
    """Returns the number, without the sign of a valid percentage; the largest integer for a larger one, 0 for other text."""
    if isinstance(value, int):
        return value
    try:
        return atoi(value[:-1] if _PERCENT.fullmatch(value) else value)
    except RangeError:
        return _LARGEST
    except ValueError:
        return 0
