"""The highest cost of an expression, by the limits in its schema.

Upstream: github.com/google/cel-go/checker/cost.go, github.com/google/cel-go/ext/{lists,sets}.go,
k8s.io/apiserver/pkg/cel/library/cost.go, k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/compilation.go (sizeEstimator)
"""

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from fakeapiserver.apimachinery.cel.schema import Decl
from fakeapiserver.languages.cel.ast import (
    Call,
    Comprehension,
    Expr,
    Ident,
    ListExpr,
    Literal,
    MapExpr,
    Select,
)
from fakeapiserver.languages.cel.types import Type

_MAX: Final = (1 << 64) - 1
_TRAVERSAL: Final = 0.1
_REGEX: Final = 0.25
_LIST_CREATE: Final = 10
_MAP_CREATE: Final = 30
_SCALARS: Final = frozenset({"bool", "double", "duration", "int", "timestamp", "uint"})
Path = tuple[str, ...]


class Size(NamedTuple):
    """The least and the most elements, characters or bytes."""

    least: int
    most: int

    def union(self, other: "Size") -> "Size":
        return Size(min(self.least, other.least), max(self.most, other.most))

    def plus(self, other: "Size") -> "Size":
        return Size(_added(self.least, other.least), _added(self.most, other.most))

    def times(self, other: "Size") -> "Size":
        return Size(_product(self.least, other.least), _product(self.most, other.most))

    def cost(self, factor: float) -> int:
        return _scaled(self.most, factor)


_UNKNOWN: Final = Size(0, _MAX)
_ONE: Final = Size(1, 1)


class _Entries(NamedTuple):
    """Sizes of a container's keys and values."""

    kind: str
    key: Size
    value: Size


class _Local(NamedTuple):
    """A variable that a macro declares."""

    path: Path
    size: Size | None
    entries: _Entries | None


class _Estimate(NamedTuple):
    """A call's own cost, and the size of its result if that is known."""

    cost: int
    size: Size | None = None


def _added(one: int, other: int) -> int:
    return min(one + other, _MAX)


def _product(one: int, other: int) -> int:
    return min(one * other, _MAX)


def _scaled(size: int, factor: float) -> int:
    if size > 0 and factor > 0 and float(size) > _MAX / factor:
        return _MAX
    scaled = math.ceil(float(size) * factor)
    return _MAX if scaled >= 2.0**64 else scaled


def estimate(tree: Expr, decl: Decl) -> int:
    """The highest cost of a checked expression; `decl` is what self is."""
    return _Coster(decl).cost(tree)


class _Coster:
    def __init__(self, root: Decl) -> None:
        self._root = root
        self._paths: dict[Expr, Path] = {}
        self._sizes: dict[Expr, Size] = {}
        self._entries: dict[Expr, _Entries] = {}
        self._locals: dict[str, list[_Local]] = {}

    def cost(self, tree: Expr) -> int:
        match tree:
            case Ident():
                self._paths[tree] = self._local_path(tree.name)
                return 1
            case Select():
                return self._select(tree)
            case Call():
                return self._call(tree)
            case ListExpr():
                return self._list(tree)
            case MapExpr():
                return self._map(tree)
            case Comprehension():
                return self._bind(tree) if tree.kind == "bind" else self._comprehension(tree)
        return 0

    def _local_path(self, name: str) -> Path:
        name = name.removeprefix(".")
        path = self._locals.get(name)
        return path[-1].path if path else (name,)

    def _select(self, tree: Select) -> int:
        if tree.type.kind == "type":
            # The name of a type, in which nothing is selected.
            self._paths[tree] = (tree.field,)
            return 1
        total = self.cost(tree.operand)
        if tree.is_test:
            return total
        if tree.operand.type.kind in ("map", "struct", "param"):
            total = _added(total, 1)
        self._paths[tree] = (*self._path(tree.operand), tree.field)
        return total

    # ------------------------------------------------------------- sizes

    def _path(self, tree: Expr) -> Path:
        if isinstance(tree, Ident) and self._locals.get(tree.name):
            return self._locals[tree.name][-1].path
        return self._paths.get(tree, ())

    def _declared(self, path: Path) -> Size | None:
        """Returns the size of a path by the schema."""
        if not path or path[0] == "@result":
            return None
        decl = self._root
        for name in path[1:]:
            if name == "@keys":
                if decl.kind != "map":
                    return None
                decl = decl.key or _KEY
                continue
            size = decl.element if name in ("@items", "@values") else decl.fields.get(name)
            if size is None and decl.element is not None and decl.element.kind == "any":
                size = decl.element
            if size is None:
                return None
            decl = size
        return Size(0, decl.max_elements)

    def size(self, tree: Expr) -> Size | None:
        if tree in self._sizes:
            return self._sizes[tree]
        if (own := _own_size(tree)) is not None:
            return own
        if (declared := self._declared(self._path(tree))) is not None:
            self._sizes[tree] = declared
            return declared
        if _is_scalar(tree.type):
            return _ONE
        if isinstance(tree, Ident) and (size := self._locals.get(tree.name)):
            return size[-1].size
        return None

    def known(self, tree: Expr) -> Size:
        return self.size(tree) or _UNKNOWN

    def element(self, tree: Expr) -> tuple[Type, Size] | None:
        """Returns the type and size of a list's elements, or None for other types."""
        if not tree.type.params:
            return None
        path = self._path(tree)
        declared = self._declared((*path, "@items")) if path and path[0] != "@result" else None
        return tree.type.params[0], declared or _UNKNOWN

    def _entry(self, tree: Expr) -> _Entries | None:
        if tree in self._entries:
            return self._entries[tree]
        if isinstance(tree, Ident) and (entries := self._locals.get(tree.name)):
            return entries[-1].entries
        return None

    def _remember(self, tree: Expr, size: Size | None, entries: _Entries | None = None) -> None:
        if size is not None:
            self._sizes[tree] = size
        if entries is not None:
            self._entries[tree] = entries

    # ---------------------------------------------------------- literals

    def _list(self, tree: ListExpr) -> int:
        total, items = 0, Size(_MAX if tree.elements else 0, 0)
        for element in tree.elements:
            total = _added(total, self.cost(element))
            items = items.union(self.known(element))
        self._entries[tree] = _Entries("list", _ONE, items)
        return _added(total, _LIST_CREATE)

    def _map(self, tree: MapExpr) -> int:
        total = 0
        keys = values = Size(_MAX if tree.entries else 0, 0)
        for entry in tree.entries:
            total = _added(_added(total, self.cost(entry.key)), self.cost(entry.value))
            keys, values = keys.union(self.known(entry.key)), values.union(self.known(entry.value))
        self._entries[tree] = _Entries("map", keys, values)
        return _added(total, _MAP_CREATE)

    # ---------------------------------------------------- comprehensions

    def _push(self, name: str, local: _Local) -> None:
        self._locals.setdefault(name, []).append(local)

    def _bind(self, tree: Comprehension) -> int:
        total = _added(self.cost(tree.range), self.cost(tree.init))
        self._push(tree.accumulator, _Local(self._path(tree.init), self.size(tree.init), self._entry(tree.init)))
        total = _added(total, self.cost(tree.result))
        self._locals[tree.accumulator].pop()
        self._remember(tree, self.size(tree.result), self._entry(tree.result))
        return total

    def _comprehension(self, tree: Comprehension) -> int:
        total = _added(self.cost(tree.range), self.cost(tree.init))
        self._push(tree.accumulator, _Local(self._path(tree.init), self.size(tree.init), self._entry(tree.init)))
        names = [tree.variable, tree.second] if tree.second else [tree.variable]
        for name, local in zip(names, self._iterated(tree), strict=True):
            self._push(str(name), local)
        each = _added(self.cost(tree.condition), self.cost(tree.step))
        for name in names:
            self._locals[str(name)].pop()
        total = _added(total, self.cost(tree.result))
        self._locals[tree.accumulator].pop()
        count = self.known(tree.range)
        if isinstance(tree.init, Literal):
            self._remember(tree, self.size(tree.init))
        else:
            self._remember(tree, count, self._entry(tree.step))
        return _added(total, _product(count.most, each))

    def _iterated(self, tree: Comprehension) -> list[_Local]:
        """The loop's variables."""
        over, path = self._entry(tree.range), self._path(tree.range)
        is_list = (over.kind if over else tree.range.type.kind) == "list"
        key = _Local((*path, "@indices" if is_list else "@keys"), over.key if over else None, None)
        value = _Local((*path, "@items" if is_list else "@values"), over.value if over else None, None)
        if tree.second:
            return [key, value]
        return [value if is_list else key]

    # ------------------------------------------------------------- calls

    def _call(self, tree: Call) -> int:
        if tree.function == "dyn":
            total = _added(1, self.cost(tree.args[0]))
            self._remember(tree, self.size(tree.args[0]), self._entry(tree.args[0]))
            return total
        costs = [self.cost(arg) for arg in tree.args]
        total = self.cost(tree.target) if tree.target is not None else 0
        if tree.function == "_?_:_":
            size = self.known(tree.args[1]).union(self.known(tree.args[2]))
            self._remember(tree, size, _union(self._entry(tree.args[1]), self._entry(tree.args[2])))
            return _added(costs[0], max(costs[1:]))
        for cost in costs:
            total = _added(total, cost)
        if tree.function in ("_&&_", "_||_"):
            return total
        own, size_found = self._overloads(tree)
        self._remember(tree, size_found)
        return _added(total, own)

    def _overloads(self, tree: Call) -> tuple[int, Size | None]:
        """Returns the cost of a call's most expensive overload, and the size of the results."""
        own, result = 0, None
        for overload in tree.overloads:
            estimate = _estimate(self, tree, overload)
            own = max(own, estimate.cost)
            if estimate.size is not None:
                result = estimate.size if result is None else result.union(estimate.size)
            if overload in ("index_list", "index_map"):
                entries = self._entry(tree.args[0])
                result = entries.value if entries else None
                step = "@items" if overload == "index_list" else "@values"
                self._paths[tree] = (*self._path(tree.args[0]), step)
            if result is None:
                result = self.size(tree)
        return own, result

    def joined(self, tree: Call) -> Size:
        """Returns the size of a sum, and remembers the sum's elements."""
        one, other = tree.args
        self._remember(tree, None, _union(self._entry(one), self._entry(other)))
        return self.known(one).plus(self.known(other))


_KEY: Final = Decl("string", Type("string", "string"), 2)


def _own_size(tree: Expr) -> Size | None:
    match tree:
        case Literal():
            size = len(tree.value) if isinstance(tree.value, str | bytes) else 1
        case ListExpr():
            size = len(tree.elements)
        case MapExpr():
            size = len(tree.entries)
        case _:
            return None
    return Size(size, size)


def _is_scalar(t: Type) -> bool:
    return t.kind in _SCALARS or (t.name == "optional_type" and bool(t.params) and _is_scalar(t.params[0]))


def _union(one: _Entries | None, other: _Entries | None) -> _Entries | None:
    if one is None or other is None:
        return None
    return _Entries(one.kind, one.key.union(other.key), one.value.union(other.value))


# ---------------------------------------------------------------- functions


def _estimate(coster: _Coster, tree: Call, overload: str) -> _Estimate:
    """A call's own cost, without its arguments'."""
    estimator = _BY_OVERLOAD.get(overload) or _BY_FUNCTION.get(tree.function)
    if estimator is None:
        return _Estimate(1)
    return estimator(coster, tree)


def _receiver(tree: Call) -> Expr:
    return tree.args[0] if tree.target is None else tree.target


_Estimator = Callable[[_Coster, Call], _Estimate]


def _traversing(which: str, factor: float = _TRAVERSAL, *, keeps_size: bool = False) -> _Estimator:
    """By the size of the receiver or first argument."""

    def found(coster: _Coster, tree: Call) -> _Estimate:
        size = coster.known(_receiver(tree) if which == "receiver" else tree.args[0])
        return _Estimate(size.cost(factor), size if keeps_size else None)

    return found


def _reading_list(coster: _Coster, tree: Call) -> _Estimate:
    size = coster.known(_receiver(tree))
    element = coster.element(_receiver(tree))
    if element is None:
        return _Estimate(size.cost(_TRAVERSAL))
    t, item = element
    each = 1 + (item.cost(_TRAVERSAL) if t.kind in ("string", "bytes") else 0)
    return _Estimate(_product(size.most, min(each, _MAX)))


def _replace(coster: _Coster, tree: Call) -> _Estimate:
    size, old, new = coster.known(_receiver(tree)), coster.known(tree.args[0]), coster.known(tree.args[1])
    kept_most = size.most
    if old.least == 0:
        most = _added(size.most, 1)
    elif new.most <= old.least:
        most = 0
    else:
        most, kept_most = math.ceil(float(size.most) / float(old.least)), 0
    kept_least = size.least
    if old.most == 0:
        least = _added(size.least, 1)
    elif old.most <= new.least:
        least = 0
    else:
        least, kept_least = math.ceil(float(size.least) / float(old.most)), 0
    result = Size(least, min(most, _MAX)).times(new).plus(Size(kept_least, kept_most))
    return _Estimate(size.cost(2 * _TRAVERSAL), result)


def _split(coster: _Coster, tree: Call) -> _Estimate:
    size = coster.known(_receiver(tree))
    most = size.most
    if len(tree.args) > 1 and isinstance(limit := tree.args[1], Literal) and isinstance(limit.value, int):
        most = limit.value & _MAX
    return _Estimate(size.cost(2 * _TRAVERSAL), Size(0, most))


def _join(coster: _Coster, tree: Call) -> _Estimate:
    items = coster.known(_receiver(tree))
    element = coster.element(_receiver(tree))
    size = items.times(element[1]) if element else Size(0, 0)
    if tree.args:
        between = Size(max(items.least - 1, 0), max(items.most - 1, 0))
        size = size.plus(coster.known(tree.args[0]).times(between))
    return _Estimate(size.cost(_TRAVERSAL), size)


def _matching(text: Size, pattern: Size) -> int:
    return _product(text.plus(_ONE).cost(_TRAVERSAL), pattern.cost(_REGEX))


def _matches(coster: _Coster, tree: Call) -> _Estimate:
    return _Estimate(_matching(coster.known(_receiver(tree)), coster.known(tree.args[0])))


def _find(coster: _Coster, tree: Call) -> _Estimate:
    size = coster.known(_receiver(tree))
    return _Estimate(_matching(size, coster.known(tree.args[0])), Size(0, size.most))


def _contains(coster: _Coster, tree: Call) -> _Estimate:
    one, other = coster.known(_receiver(tree)), coster.known(tree.args[0])
    return _Estimate(_product(one.cost(_TRAVERSAL), other.cost(_TRAVERSAL)))


def _compared(coster: _Coster, tree: Call) -> _Estimate:
    return _Estimate(_scaled(min(coster.known(arg).most for arg in tree.args), _TRAVERSAL))


def _equals(coster: _Coster, tree: Call) -> _Estimate:
    one, other = tree.args
    if one.type == other.type:
        match one.type.name:
            case "net.IP" | "net.CIDR" | "kubernetes.Quantity" | "kubernetes.Semver":
                return _Estimate(1)
            case "kubernetes.NamedFormat":
                return _Estimate(_scaled(64, _TRAVERSAL))
            case "kubernetes.URL":
                size = coster.size(other) or _ONE
                return _Estimate(size.cost(_TRAVERSAL))
    return _compared(coster, tree)


def _added_texts(coster: _Coster, tree: Call) -> _Estimate:
    size = coster.joined(tree)
    return _Estimate(size.cost(_TRAVERSAL), size)


def _added_lists(coster: _Coster, tree: Call) -> _Estimate:
    return _Estimate(1, coster.joined(tree))


def _converted(least: Callable[[int], int], most: Callable[[int], int]) -> _Estimator:
    def found(coster: _Coster, tree: Call) -> _Estimate:
        size = coster.known(tree.args[0])
        # Upstream's numbers wrap around here.
        return _Estimate(size.cost(_TRAVERSAL), Size(least(size.least) & _MAX, most(size.most) & _MAX))

    return found


def _contains_address(*, masks: bool, parses: bool) -> _Estimator:
    def found(coster: _Coster, tree: Call) -> _Estimate:
        cost = _scaled(32, _TRAVERSAL) + (_scaled(16, _TRAVERSAL) + 1 if masks else 0)
        if parses:
            cost = _added(cost, coster.known(tree.args[0]).cost(_TRAVERSAL))
        return _Estimate(cost)

    return found


def _validated(coster: _Coster, tree: Call) -> _Estimate:
    return _Estimate(_scaled(coster.known(tree.args[0]).cost(_TRAVERSAL), 128 * _REGEX))


def _sets(factor: float) -> _Estimator:
    def found(coster: _Coster, tree: Call) -> _Estimate:
        sizes = coster.known(tree.args[0]).times(coster.known(tree.args[1]))
        return _Estimate(_added(sizes.cost(factor), 1))

    return found


def _allocating(factor: float, size: Size) -> _Estimate:
    return _Estimate(_added(size.cost(factor), 1 + _LIST_CREATE), size)


def _whole(tree: Expr, otherwise: int) -> int:
    if isinstance(tree, Literal) and isinstance(tree.value, int):
        return max(int(tree.value), 0)
    return otherwise


def _slice(coster: _Coster, tree: Call) -> _Estimate:
    start, end = _whole(tree.args[0], 0), _whole(tree.args[1], coster.known(_receiver(tree)).most)
    size = (end - start) & _MAX
    return _allocating(1, Size(size, size))


def _range(_: _Coster, tree: Call) -> _Estimate:
    size = _whole(tree.args[0], _MAX)
    return _allocating(1, Size(size, size))


def _reverse(coster: _Coster, tree: Call) -> _Estimate:
    return _allocating(1, coster.known(_receiver(tree)))


def _flatten(coster: _Coster, tree: Call) -> _Estimate:
    return _allocating(float(_whole(tree.args[0], _MAX)) if tree.args else 1, coster.known(_receiver(tree)))


def _distinct(coster: _Coster, tree: Call) -> _Estimate:
    size = coster.known(_receiver(tree))
    return _allocating(2, size.times(size))


def _sorted(coster: _Coster, tree: Call, keys: Expr) -> _Estimate:
    size = coster.known(keys)
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
    "cidr_ip": lambda _, __: _Estimate(1),
    "cidr_contains_ip_ip": _contains_address(masks=False, parses=False),
    "cidr_contains_ip_string": _contains_address(masks=False, parses=True),
    "cidr_contains_cidr": _contains_address(masks=True, parses=False),
    "cidr_contains_cidr_string": _contains_address(masks=True, parses=True),
    "string_format": _traversing("receiver"),
    "string_to_bytes": _converted(lambda n: n, lambda n: n * 4),
    "bytes_to_string": _converted(lambda n: n // 4, lambda n: n),
    "strings_quote": _converted(lambda n: n + 2, lambda n: n * 2 + 2),
    **_of(("starts_with_string", "ends_with_string"), _traversing("argument")),
    "in_list": lambda coster, tree: _Estimate(coster.known(tree.args[1]).most),
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
    "sort": lambda coster, tree: _sorted(coster, tree, _receiver(tree)),
    "@sortByAssociatedKeys": lambda coster, tree: _sorted(coster, tree, tree.args[0]),
}
