"""The highest cost of an expression, by the limits in its schema.

Upstream: github.com/google/cel-go/checker/cost.go, github.com/google/cel-go/ext/{lists,sets}.go,
k8s.io/apiserver/pkg/cel/library/cost.go, k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/compilation.go (sizeEstimator)
"""

from typing import Final, NamedTuple

from fakeapiserver.apimachinery.cel.cost_estimators import LIST_CREATE, call_estimate
from fakeapiserver.apimachinery.cel.cost_sizes import MAX, ONE_ITEM, UNKNOWN_SIZE, Entries, Path, Size, added, product
from fakeapiserver.apimachinery.cel.schema import Decl
from fakeapiserver.languages.cel.ast import Call, Comprehension, Expr, Ident, ListExpr, Literal, MapExpr, Select
from fakeapiserver.languages.cel.types import Type

_MAP_CREATE: Final = 30
_SCALARS: Final = frozenset({"bool", "double", "duration", "int", "timestamp", "uint"})


class _Local(NamedTuple):
    """A variable that a macro declares."""

    path: Path
    size: Size | None
    entries: Entries | None


def estimate(tree: Expr, decl: Decl) -> int:
    """The highest cost of a checked expression; `decl` is what self is."""
    return _Coster(decl).cost(tree)


class _Coster:
    def __init__(self, root: Decl) -> None:
        self._root = root
        self._paths: dict[Expr, Path] = {}
        self._sizes: dict[Expr, Size] = {}
        self._entries: dict[Expr, Entries] = {}
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
            total = added(total, 1)
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
            return ONE_ITEM
        if isinstance(tree, Ident) and (size := self._locals.get(tree.name)):
            return size[-1].size
        return None

    def known(self, tree: Expr) -> Size:
        return self.size(tree) or UNKNOWN_SIZE

    def element(self, tree: Expr) -> tuple[Type, Size] | None:
        """Returns the type and size of a list's elements, or None for other types."""
        if not tree.type.params:
            return None
        path = self._path(tree)
        declared = self._declared((*path, "@items")) if path and path[0] != "@result" else None
        return tree.type.params[0], declared or UNKNOWN_SIZE

    def _entry(self, tree: Expr) -> Entries | None:
        if tree in self._entries:
            return self._entries[tree]
        if isinstance(tree, Ident) and (entries := self._locals.get(tree.name)):
            return entries[-1].entries
        return None

    def _remember(self, tree: Expr, size: Size | None, entries: Entries | None = None) -> None:
        if size is not None:
            self._sizes[tree] = size
        if entries is not None:
            self._entries[tree] = entries

    # ---------------------------------------------------------- literals

    def _list(self, tree: ListExpr) -> int:
        total, items = 0, Size(MAX if tree.elements else 0, 0)
        for element in tree.elements:
            total = added(total, self.cost(element))
            items = items.union(self.known(element))
        self._entries[tree] = Entries("list", ONE_ITEM, items)
        return added(total, LIST_CREATE)

    def _map(self, tree: MapExpr) -> int:
        total = 0
        keys = values = Size(MAX if tree.entries else 0, 0)
        for entry in tree.entries:
            total = added(added(total, self.cost(entry.key)), self.cost(entry.value))
            keys, values = keys.union(self.known(entry.key)), values.union(self.known(entry.value))
        self._entries[tree] = Entries("map", keys, values)
        return added(total, _MAP_CREATE)

    # ---------------------------------------------------- comprehensions

    def _push(self, name: str, local: _Local) -> None:
        self._locals.setdefault(name, []).append(local)

    def _bind(self, tree: Comprehension) -> int:
        total = added(self.cost(tree.range), self.cost(tree.init))
        self._push(tree.accumulator, _Local(self._path(tree.init), self.size(tree.init), self._entry(tree.init)))
        total = added(total, self.cost(tree.result))
        self._locals[tree.accumulator].pop()
        self._remember(tree, self.size(tree.result), self._entry(tree.result))
        return total

    def _comprehension(self, tree: Comprehension) -> int:
        total = added(self.cost(tree.range), self.cost(tree.init))
        self._push(tree.accumulator, _Local(self._path(tree.init), self.size(tree.init), self._entry(tree.init)))
        names = [tree.variable, tree.second] if tree.second else [tree.variable]
        for name, local in zip(names, self._iterated(tree), strict=True):
            self._push(str(name), local)
        each = added(self.cost(tree.condition), self.cost(tree.step))
        for name in names:
            self._locals[str(name)].pop()
        total = added(total, self.cost(tree.result))
        self._locals[tree.accumulator].pop()
        count = self.known(tree.range)
        if isinstance(tree.init, Literal):
            self._remember(tree, self.size(tree.init))
        else:
            self._remember(tree, count, self._entry(tree.step))
        return added(total, product(count.most, each))

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
            total = added(1, self.cost(tree.args[0]))
            self._remember(tree, self.size(tree.args[0]), self._entry(tree.args[0]))
            return total
        costs = [self.cost(arg) for arg in tree.args]
        total = self.cost(tree.target) if tree.target is not None else 0
        if tree.function == "_?_:_":
            size = self.known(tree.args[1]).union(self.known(tree.args[2]))
            self._remember(tree, size, _union(self._entry(tree.args[1]), self._entry(tree.args[2])))
            return added(costs[0], max(costs[1:]))
        for cost in costs:
            total = added(total, cost)
        if tree.function in ("_&&_", "_||_"):
            return total
        own, size_found = self._overloads(tree)
        self._remember(tree, size_found)
        return added(total, own)

    def _overloads(self, tree: Call) -> tuple[int, Size | None]:
        """Returns the cost of a call's most expensive overload, and the size of the results."""
        own, result = 0, None
        for overload in tree.overloads:
            estimate = call_estimate(self, tree, overload)
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


def _union(one: Entries | None, other: Entries | None) -> Entries | None:
    if one is None or other is None:
        return None
    return Entries(one.kind, one.key.union(other.key), one.value.union(other.value))
