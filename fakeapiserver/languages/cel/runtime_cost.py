"""The cost of calls at run time, in upstream's units.

Upstream: github.com/google/cel-go/interpreter/runtimecost.go, k8s.io/apiserver/pkg/cel/library/cost.go
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from fakeapiserver.languages.cel.kubernetes.format import Format
from fakeapiserver.languages.cel.values import size_of

LIST_CREATE: Final = 10
MAP_CREATE: Final = 30
STRUCT_CREATE: Final = 40
_Args = Sequence[Any]
Cost = Callable[[_Args, Any], int]


def _traversed(args: _Args, _: Any) -> int:
    return math.ceil(size_of(args[0]) * 0.1)


def _twice(args: _Args, _: Any) -> int:
    return math.ceil(size_of(args[0]) * 2 * 0.1)


def _matched(args: _Args, _: Any) -> int:
    return math.ceil((1.0 + size_of(args[0])) * 0.1) * math.ceil(size_of(args[1]) * 0.25)


def _tree(value: Any) -> int:
    if isinstance(value, str):
        return int(len(value.encode()) * 0.1)
    if isinstance(value, bytes):
        return int(len(value) * 0.1)
    if isinstance(value, list):
        return sum(map(_tree, value))
    if isinstance(value, dict):
        return sum(_tree(key) + _tree(item) for key, item in value.items())
    return 1


def _compared(args: _Args, _: Any) -> int:
    return math.ceil(min(size_of(args[0]), size_of(args[1])) * 0.1)


def equality(args: _Args, _: Any) -> int:
    kind = getattr(args[0], "cel_type", None)
    return 1 if kind is not None else _compared(args, _)


def _selector(args: _Args, _: Any) -> int:
    """Returns the cost of a selector: a list, a scan of the text, and a list and a struct for every two characters."""
    size = size_of(args[1])
    return LIST_CREATE + math.ceil(size * 0.1) + math.ceil(math.ceil(size * 0.5) * float(LIST_CREATE + STRUCT_CREATE))


def _joined_text(args: _Args, _: Any) -> int:
    return math.ceil((size_of(args[0]) + size_of(args[1])) * 0.1)


def _contained(args: _Args, _: Any) -> int:
    return math.ceil(size_of(args[0]) * 0.1) * math.ceil(size_of(args[1]) * 0.1)


def _contains_address(extra: int, *, parses: bool) -> Cost:
    def cost(args: _Args, _: Any) -> int:
        size = size_of(args[0])
        contains_cost = math.ceil(size * 2 * 0.1) + (math.ceil(size * 0.1) + 1 if extra else 0)
        return contains_cost + (math.ceil(size_of(args[1]) * 0.1) if parses else 0)

    return cost


def _validated(args: _Args, _: Any) -> int:
    size = args[0].regex_size if isinstance(args[0], Format) else 0
    return math.ceil((1.0 + size_of(args[1])) * 0.1) * math.ceil(size * 0.25)


def _sets(factor: int) -> Cost:
    return lambda args, _: 1 + size_of(args[0]) * size_of(args[1]) * factor


def _allocating(args: _Args, result: Any) -> int:
    return 1 + LIST_CREATE + size_of(result)


def _flattened(args: _Args, _: Any) -> int:
    depth = args[1] if len(args) == 2 else 1
    return 1 + LIST_CREATE + int(size_of(args[0]) * depth)


def _self_compared(at: int) -> Cost:
    def cost(args: _Args, _: Any) -> int:
        items = args[at]
        factor = 2.1 if items and isinstance(items[0], str | bytes) else 2.0
        return 1 + LIST_CREATE + int(len(items) ** 2 * factor)

    return cost


_BY_OVERLOAD: Final[dict[str, Cost]] = {
    **dict.fromkeys(("starts_with_string", "ends_with_string"), _traversed),
    **dict.fromkeys(("string_to_bytes", "bytes_to_string", "strings_quote", "string_format"), _traversed),
    "in_list": lambda args, _: size_of(args[1]),
    **{
        f"{name}_{kind}": _compared
        for name in ("less", "less_equals", "greater", "greater_equals")
        for kind in ("string", "bytes")
    },
    "equals": equality,
    "not_equals": _compared,
    "add_string": _joined_text,
    "add_bytes": _joined_text,
    "matches": _matched,
    "matches_string": _matched,
    "contains_string": _contained,
    "cidr_ip": lambda args, _: 1,
    "cidr_contains_ip_ip": _contains_address(0, parses=False),
    "cidr_contains_ip_string": _contains_address(0, parses=True),
    "cidr_contains_cidr": _contains_address(1, parses=False),
    "cidr_contains_cidr_string": _contains_address(1, parses=True),
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
    "list_slice": _allocating,
    "lists_range": _allocating,
    "list_reverse": _allocating,
    "list_flatten": _flattened,
    "list_flatten_int": _flattened,
    "list_distinct": _self_compared(0),
}
_BY_FUNCTION: Final[dict[str, Cost]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), lambda args, _: _tree(args[0])),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim", "jsonpatch.escapeKey"), _traversed),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver"), _traversed),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _twice),
    "join": lambda args, result: math.ceil(size_of(result) * 2 * 0.1),
    "check": lambda args, _: 350_000,
    "fieldSelector": _selector,
    "labelSelector": _selector,
    "find": _matched,
    "findAll": _matched,
    "validate": _validated,
    "sort": _self_compared(0),
    "@sortByAssociatedKeys": _self_compared(1),
}


def cost_of(function: str, overload: str) -> Cost | None:
    """The cost of a call by its arguments and result; None where it is always 1. `overload` is empty if there are several."""
    return _BY_OVERLOAD.get(overload) or _BY_FUNCTION.get(function)
