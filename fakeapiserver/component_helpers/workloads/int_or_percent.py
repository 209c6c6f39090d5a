"""Numbers that may be a share: `3` and `"25%"` (upstream: k8s.io/apimachinery/pkg/util/intstr/intstr.go)."""

import re
from typing import Final

from fakeapiserver.apimachinery.go.strconv import atoi

_PERCENT: Final = re.compile(r"[0-9]+%", re.ASCII)


def scaled_value(value: int | str, total: int, *, round_up: bool) -> int:
    """Returns the number itself, or that share of `total`. Raises ValueError for other text.

    >>> scaled_value("25%", 10, round_up=True), scaled_value("25%", 10, round_up=False), scaled_value(4, 10, round_up=True)
    (3, 2, 4)
    """
    if isinstance(value, int):
        return value
    if not _PERCENT.fullmatch(value):
        raise ValueError("invalid value for IntOrString: invalid type: string is not a percentage")
    share = atoi(value[:-1]) * total
    return -(-share // 100) if round_up else share // 100
