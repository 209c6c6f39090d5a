"""Estimates the cost of calls, by overload and by function, and the sizes of their results.

Upstream: k8s.io/apiserver/pkg/cel/library/cost.go, github.com/google/cel-go/ext/{lists,sets}.go
"""

import math
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from fakeapiserver.apimachinery.cel.cost_sizes import MAX, ONE_ITEM, Estimate, Size, added, product, scaled
from fakeapiserver.languages.cel.ast import Call, Expr, Literal
from fakeapiserver.languages.cel.types import Type

_TRAVERSAL: Final = 0.1
_REGEX: Final = 0.25
LIST_CREATE: Final = 10


class Sizes(Protocol):
    """The sizes of an expression's parts."""

    def size(self, tree: Expr) -> Size | None:
        """Returns the size of a part, or None if it is not known."""

    def known(self, tree: Expr) -> Size:
        """Returns the size of a part, or that of any value if it is not known."""

    def element(self, tree: Expr) -> tuple[Type, Size] | None:
        """Returns the type and size of a list's elements, or None for other types."""

    def joined(self, tree: Call) -> Size:
        """Returns the size of a sum, and remembers the sum's elements."""


def call_estimate(sizes: Sizes, tree: Call, overload: str) -> Estimate:
    """A call's own cost, without its arguments'."""
    estimator = _BY_OVERLOAD.get(overload) or _BY_FUNCTION.get(tree.function)
    if estimator is None:
        return Estimate(1)
    return estimator(sizes, tree)


def _receiver(tree: Call) -> Expr:
    return tree.args[0] if tree.target is None else tree.target


_Estimator = Callable[[Sizes, Call], Estimate]


def _traversing(which: str, factor: float = _TRAVERSAL, *, keeps_size: bool = False) -> _Estimator:
    """By the size of the receiver or first argument."""

    def found(sizes: Sizes, tree: Call) -> Estimate:
        size = sizes.known(_receiver(tree) if which == "receiver" else tree.args[0])
        return Estimate(size.cost(factor), size if keeps_size else None)

    return found


def _reading_list(sizes: Sizes, tree: Call) -> Estimate:
    size = sizes.known(_receiver(tree))
    element = sizes.element(_receiver(tree))
    if element is None:
        return Estimate(size.cost(_TRAVERSAL))
    t, item = element
    each = 1 + (item.cost(_TRAVERSAL) if t.kind in ("string", "bytes") else 0)
    return Estimate(product(size.most, min(each, MAX)))


def _replace(sizes: Sizes, tree: Call) -> Estimate:
    size, old, new = sizes.known(_receiver(tree)), sizes.known(tree.args[0]), sizes.known(tree.args[1])
    kept_most = size.most
    if old.least == 0:
        most = added(size.most, 1)
    elif new.most <= old.least:
        most = 0
    else:
        most, kept_most = math.ceil(float(size.most) / float(old.least)), 0
    kept_least = size.least
    if old.most == 0:
        least = added(size.least, 1)
    elif old.most <= new.least:
        least = 0
    else:
        least, kept_least = math.ceil(float(size.least) / float(old.most)), 0
    result = Size(least, min(most, MAX)).times(new).plus(Size(kept_least, kept_most))
    return Estimate(size.cost(2 * _TRAVERSAL), result)


def _split(sizes: Sizes, tree: Call) -> Estimate:
    size = sizes.known(_receiver(tree))
    most = size.most
    if len(tree.args) > 1 and isinstance(limit := tree.args[1], Literal) and isinstance(limit.value, int):
        most = limit.value & MAX
    return Estimate(size.cost(2 * _TRAVERSAL), Size(0, most))


def _join(sizes: Sizes, tree: Call) -> Estimate:
    items = sizes.known(_receiver(tree))
    element = sizes.element(_receiver(tree))
    size = items.times(element[1]) if element else Size(0, 0)
    if tree.args:
        between = Size(max(items.least - 1, 0), max(items.most - 1, 0))
        size = size.plus(sizes.known(tree.args[0]).times(between))
    return Estimate(size.cost(_TRAVERSAL), size)


def _matching(text: Size, pattern: Size) -> int:
    return product(text.plus(ONE_ITEM).cost(_TRAVERSAL), pattern.cost(_REGEX))


def _matches(sizes: Sizes, tree: Call) -> Estimate:
    return Estimate(_matching(sizes.known(_receiver(tree)), sizes.known(tree.args[0])))


def _find(sizes: Sizes, tree: Call) -> Estimate:
    size = sizes.known(_receiver(tree))
    return Estimate(_matching(size, sizes.known(tree.args[0])), Size(0, size.most))


def _contains(sizes: Sizes, tree: Call) -> Estimate:
    one, other = sizes.known(_receiver(tree)), sizes.known(tree.args[0])
    return Estimate(product(one.cost(_TRAVERSAL), other.cost(_TRAVERSAL)))


def _compared(sizes: Sizes, tree: Call) -> Estimate:
    return Estimate(scaled(min(sizes.known(arg).most for arg in tree.args), _TRAVERSAL))


def _equals(sizes: Sizes, tree: Call) -> Estimate:
    one, other = tree.args
    if one.type == other.type:
        match one.type.name:
            case "net.IP" | "net.CIDR" | "kubernetes.Quantity" | "kubernetes.Semver":
                return Estimate(1)
            case "kubernetes.NamedFormat":
                return Estimate(scaled(64, _TRAVERSAL))
            case "kubernetes.URL":
                size = sizes.size(other) or ONE_ITEM
                return Estimate(size.cost(_TRAVERSAL))
    return _compared(sizes, tree)


def _added_texts(sizes: Sizes, tree: Call) -> Estimate:
    size = sizes.joined(tree)
    return Estimate(size.cost(_TRAVERSAL), size)


def _added_lists(sizes: Sizes, tree: Call) -> Estimate:
    return Estimate(1, sizes.joined(tree))


def _converted(least: Callable[[int], int], most: Callable[[int], int]) -> _Estimator:
    def found(sizes: Sizes, tree: Call) -> Estimate:
        size = sizes.known(tree.args[0])
        # Upstream's numbers wrap around here.
        return Estimate(size.cost(_TRAVERSAL), Size(least(size.least) & MAX, most(size.most) & MAX))

    return found


def _contains_address(*, masks: bool, parses: bool) -> _Estimator:
    def found(sizes: Sizes, tree: Call) -> Estimate:
        cost = scaled(32, _TRAVERSAL) + (scaled(16, _TRAVERSAL) + 1 if masks else 0)
        if parses:
            cost = added(cost, sizes.known(tree.args[0]).cost(_TRAVERSAL))
        return Estimate(cost)

    return found


def _validated(sizes: Sizes, tree: Call) -> Estimate:
    return Estimate(scaled(sizes.known(tree.args[0]).cost(_TRAVERSAL), 128 * _REGEX))


def _sets(factor: float) -> _Estimator:
    def found(sizes: Sizes, tree: Call) -> Estimate:
        pairs = sizes.known(tree.args[0]).times(sizes.known(tree.args[1]))
        return Estimate(added(pairs.cost(factor), 1))

    return found


def _allocating(factor: float, size: Size) -> Estimate:
    return Estimate(added(size.cost(factor), 1 + LIST_CREATE), size)


def _whole(tree: Expr, otherwise: int) -> int:
    if isinstance(tree, Literal) and isinstance(tree.value, int):
        return max(int(tree.value), 0)
    return otherwise


def _slice(sizes: Sizes, tree: Call) -> Estimate:
    start, end = _whole(tree.args[0], 0), _whole(tree.args[1], sizes.known(_receiver(tree)).most)
    size = (end - start) & MAX
    return _allocating(1, Size(size, size))


def _range(_: Sizes, tree: Call) -> Estimate:
    size = _whole(tree.args[0], MAX)
    return _allocating(1, Size(size, size))


def _reverse(sizes: Sizes, tree: Call) -> Estimate:
    return _allocating(1, sizes.known(_receiver(tree)))


def _flatten(sizes: Sizes, tree: Call) -> Estimate:
    return _allocating(float(_whole(tree.args[0], MAX)) if tree.args else 1, sizes.known(_receiver(tree)))


def _distinct(sizes: Sizes, tree: Call) -> Estimate:
    size = sizes.known(_receiver(tree))
    return _allocating(2, size.times(size))


def _sorted(sizes: Sizes, tree: Call, keys: Expr) -> Estimate:
    size = sizes.known(keys)
    factor = 2.0 + (_TRAVERSAL if any("string" in o or "bytes" in o for o in tree.overloads) else 0)
    return _allocating(factor, size.times(size))


def _of(names: Sequence[str], estimator: _Estimator) -> dict[str, _Estimator]:
    return dict.fromkeys(names, estimator)


_BY_OVERLOAD: Final[dict[str, _Estimator]] = {
    "list_slice": _slice,
    "lists_range": _range,
    "list_reverse": _reverse,
    **_of(("list_flatten", "list_flatten_int"), _flatten),
    "list_distinct": _distinct,
    **_of(("list_sets_contains_list", "list_sets_intersects_list"), _sets(1)),
    "list_sets_equivalent_list": _sets(2),
    "cidr_ip": lambda _, __: Estimate(1),
    "cidr_contains_ip_ip": _contains_address(masks=False, parses=False),
    "cidr_contains_ip_string": _contains_address(masks=False, parses=True),
    "cidr_contains_cidr": _contains_address(masks=True, parses=False),
    "cidr_contains_cidr_string": _contains_address(masks=True, parses=True),
    "string_format": _traversing("receiver"),
    "string_to_bytes": _converted(lambda n: n, lambda n: n * 4),
    "bytes_to_string": _converted(lambda n: n // 4, lambda n: n),
    "strings_quote": _converted(lambda n: n + 2, lambda n: n * 2 + 2),
    **_of(("starts_with_string", "ends_with_string"), _traversing("argument")),
    "in_list": lambda sizes, tree: Estimate(sizes.known(tree.args[1]).most),
    "matches_string": _matches,
    "contains_string": _contains,
    **_of(("add_string", "add_bytes"), _added_texts),
    "add_list": _added_lists,
    **{
        f"{n}_{k}": _compared for n in ("less", "less_equals", "greater", "greater_equals") for k in ("string", "bytes")
    },
    "equals": _equals,
    "not_equals": _compared,
}
_BY_FUNCTION: Final[dict[str, _Estimator]] = {
    **_of(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _reading_list),
    "url": _traversing("argument", keeps_size=True),
    **_of(("lowerAscii", "upperAscii", "substring", "trim"), _traversing("receiver", keeps_size=True)),
    "replace": _replace,
    "split": _split,
    "join": _join,
    **_of(("find", "findAll"), _find),
    **_of(("cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver"), _traversing("argument")),
    "ip.isCanonical": _traversing("argument", 2 * _TRAVERSAL),
    "validate": _validated,
    "sort": lambda sizes, tree: _sorted(sizes, tree, _receiver(tree)),
    "@sortByAssociatedKeys": lambda sizes, tree: _sorted(sizes, tree, tree.args[0]),
}
