"""Lists of quantities by resource: compared, summed, rounded.

Upstream: pkg/apis/core/v1/defaults.go (SetDefaults_ResourceList), k8s.io/apimachinery/pkg/api/resource/quantity.go.
"""

import re
from collections.abc import Iterable
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache
from typing import Final

from fakeapiserver.apimachinery.meta import Object

_NUMBER: Final = re.compile(r"([+-]?[0-9.]+)(.*)")
_BINARY: Final = ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki")
_DECIMAL: Final = ("E", "P", "T", "G", "M", "k", "", "m", "u", "n")
_POWERS: Final = {
    **{suffix: Decimal(1024) ** (6 - i) for i, suffix in enumerate(_BINARY)},
    **{suffix: Decimal(1000) ** (6 - i) for i, suffix in enumerate(_DECIMAL)},
}
_FINE: Final = ("n", "u")


@lru_cache(maxsize=4096)
def quantity(text: str) -> Decimal:
    """The number a quantity's text stands for; 0 for what isn't one."""
    match = _NUMBER.fullmatch(text)
    if not match:
        return Decimal(0)
    power = _POWERS.get(match[2])
    return Decimal(match[1]) * power if power is not None else Decimal(f"{match[1]}{match[2]}")


def is_whole(text: str) -> bool:
    """Whether a quantity is a whole number, whatever its size."""
    found = quantity(text)
    return found == found.to_integral_value()


def total(quantities: Iterable[str]) -> str:
    """The sum, written in the family of suffixes of the first one that isn't zero."""
    texts = list(quantities)
    found = sum((quantity(text) for text in texts), Decimal(0))
    first = next((text for text in texts if quantity(text)), "")
    if first.endswith("i") and found == int(found):
        kibi = int(found)
        suffix = next((s for s in _BINARY if kibi % int(_POWERS[s]) == 0), "")
        return f"{kibi // int(_POWERS[suffix])}{suffix}"
    return _milli(int((found * 1000).to_integral_value(ROUND_CEILING)))


def _whole(number: int) -> str:
    for suffix in _DECIMAL[:6]:
        if number and number % int(_POWERS[suffix]) == 0:
            return f"{number // int(_POWERS[suffix])}{suffix}"
    return str(number)


def round_up_resources(owner: Object | None, names: Iterable[str] = ("limits", "requests")) -> None:
    """Quantities below a thousandth are rounded up to one, in place, in the lists of these names."""
    for name in names if owner else ():
        quantities = (owner or {}).get(name)
        if quantities:
            round_up(quantities)


def round_up(quantities: dict[str, str]) -> None:
    """Rounds the quantities of one list up to thousandths, in place."""
    for name, text in quantities.items():
        if text.endswith(_FINE):
            quantities[name] = _milli(int((quantity(text) * 1000).to_integral_value(ROUND_CEILING)))


def _milli(milli: int) -> str:
    return f"{milli}m" if milli % 1000 else _whole(milli // 1000)
