"""Sets of fields, held as the nested dicts that FieldsV1 is on the wire.

Upstream: sigs.k8s.io/structured-merge-diff/v6/fieldpath (set.go, element.go, serialize.go).

A node's keys are path elements: `f:name` a field, `k:{"name":"x"}` an item of a list map, `v:"x"` an item of a set, `i:0` an index.
A node is a member of the set when it is empty or has the key ".", so {"f:spec": {"f:a": {}}} holds spec.a and not spec.
Functions take sets and return new ones that may share nodes with them: no set is ever changed once built, bar by `insert`.
"""

import json
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final

import msgspec

from fakeapiserver.apimachinery.depth import Walk, continued, flattened
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.go.strconv import atoi
from fakeapiserver.apimachinery.sorting import sorted_in_runs

FieldSet = dict[str, Any]


class OrderedFields(dict[str, Any]):
    """A set whose nodes' keys are all in upstream's order. Objects share its nodes, so these must not be changed."""

    __slots__ = ()


# Nodes are compared by identity nowhere, so one empty node could do; but the sets are stored, and a stored dict must be its owner's.
_RANK: Final = {"f": 0, "k": 1, "v": 2, "i": 3}


def union(a: FieldSet, b: FieldSet) -> FieldSet:
    """Fields of either set."""
    if not a or not b:
        return a or b
    out = dict(a)
    try:
        for key, node in b.items():
            mine = out.get(key)
            out[key] = node if mine is None else _union_node(mine, node)
    except RecursionError:
        return continued(union, a, b)
    return out


def _union_node(a: FieldSet, b: FieldSet) -> FieldSet:
    if not a:
        return b if not b or "." in b else {".": {}, **b}
    if not b:
        return a if "." in a else {".": {}, **a}
    return union(a, b)


def intersection(a: FieldSet, b: FieldSet) -> FieldSet:
    """Fields of both sets."""
    out: FieldSet = {}
    for key, mine in a.items():
        theirs = b.get(key)
        if theirs is None or key == ".":
            continue
        both = _is_member(mine) and _is_member(theirs)
        try:
            _place(out, key, both, intersection(mine, theirs))
        except RecursionError:
            return continued(intersection, a, b)
    return out


def difference(a: FieldSet, b: FieldSet) -> FieldSet:
    """Fields of `a` that are not in `b`. A field of `b` takes nothing below it away."""
    return _difference(a, b, recursive=False)


def recursive_difference(a: FieldSet, b: FieldSet) -> FieldSet:
    """Fields of `a` that are neither in `b` nor below a field of `b`."""
    return _difference(a, b, recursive=True)


def _difference(a: FieldSet, b: FieldSet, recursive: bool) -> FieldSet:
    if not b:
        return a
    out: FieldSet = {}
    for key, mine in a.items():
        if key == ".":
            continue
        theirs = b.get(key)
        if theirs is None:
            out[key] = mine
            continue
        if not mine and not theirs:
            continue
        gone = _is_member(theirs)
        try:
            below = {} if gone and recursive else _difference(_children(mine), _children(theirs), recursive)
        except RecursionError:
            return continued(_difference, a, b, recursive)
        _place(out, key, _is_member(mine) and not gone, below)
    return out


def _is_member(node: FieldSet) -> bool:
    return not node or "." in node


def _children(node: FieldSet) -> FieldSet:
    return {key: child for key, child in node.items() if key != "."} if "." in node else node


def _place(out: FieldSet, key: str, member: bool, children: FieldSet) -> None:
    if children:
        out[key] = {".": {}, **children} if member else children
    elif member:
        out[key] = {}


def has(fields: FieldSet, key: str) -> bool:
    """Reports whether the path of one element is in the set."""
    node = fields.get(key)
    return node is not None and _is_member(node)


def below(fields: FieldSet, key: str) -> FieldSet:
    """Returns the fields below a path element; empty if there are no such fields."""
    node = fields.get(key)
    return _children(node) if node else {}


def contains(fields: FieldSet, path: tuple[str, ...]) -> bool:
    """Reports whether a path is in the set."""
    for key in path[:-1]:
        fields = below(fields, key)
    return has(fields, path[-1])


def insert(fields: FieldSet, path: tuple[str, ...]) -> None:
    """Adds one path, in place; every node on the way must be the caller's own."""
    for depth, key in enumerate(path):
        last = depth == len(path) - 1
        if key not in fields:
            fields[key] = {}
            if last:
                return
        elif last:
            if fields[key]:
                fields[key]["."] = {}
            return
        elif not fields[key]:
            fields[key]["."] = {}
        fields = fields[key]


def paths(fields: FieldSet) -> Iterator[tuple[str, ...]]:
    """Every path of the set, in upstream's order: a node's members first, then what lies below."""
    return flattened(_paths(fields, ()))


def _paths(fields: FieldSet, prefix: tuple[str, ...]) -> Walk[tuple[str, ...]]:
    keys = sorted((key for key in fields if key != "."), key=order)
    for key in keys:
        if _is_member(fields[key]):
            yield (*prefix, key)
    for key in keys:
        yield _paths(fields[key], (*prefix, key))


def leaves(fields: FieldSet) -> Iterator[tuple[str, ...]]:
    """The paths that have none below them (upstream: Set.Leaves)."""
    return flattened(_leaves(fields, ()))


def _leaves(fields: FieldSet, prefix: tuple[str, ...]) -> Walk[tuple[str, ...]]:
    for key in sorted((key for key in fields if key != "."), key=order):
        path = (*prefix, key)
        yield _leaves(fields[key], path) if fields[key] else path


def path_text(path: tuple[str, ...]) -> str:
    """A path as upstream prints it: `.spec.containers[name="a"].image`, `.metadata.finalizers[="x"]`."""
    return "".join(map(_element_text, path))


def _element_text(key: str) -> str:
    kind, rest = key[0], key[2:]
    if kind == "f":
        return "." + rest
    if kind == "k":
        return "[" + ",".join(f"{name}={_value_text(v)}" for name, v in sorted(json.loads(rest).items())) + "]"
    return f"[={_value_text(json.loads(rest))}]" if kind == "v" else f"[{rest}]"


def _value_text(value: Any) -> str:
    """Lists and maps can stand there only where they don't belong."""
    if isinstance(value, dict):
        return "".join(f"{key}={_value_text(item)}" for key, item in value.items())
    if isinstance(value, list):
        return "[" + ",".join(map(_value_text, value)) + "]"
    return go_quote(value) if isinstance(value, str) else json.dumps(value)


@lru_cache(maxsize=65536)
def order(key: str) -> tuple[Any, ...]:
    """Sort key of a path element: fields, keys, values, indexes, each by what they hold and not by how it is spelt."""
    if key == ".":
        return (-1,)
    kind, rest = key[:1], key[2:]
    if kind == "k":
        return (1, tuple((name, _value_order(value)) for name, value in sorted(json.loads(rest).items())))
    if kind == "v":
        return (2, _value_order(json.loads(rest)))
    return (_RANK.get(kind, 4), int(rest) if kind == "i" else rest)


def _value_order(value: Any) -> tuple[int, Any]:
    if isinstance(value, bool):
        return (2, value)
    if isinstance(value, int | float):
        return (0, value)
    return (1, value) if isinstance(value, str) else (3, json.dumps(value, sort_keys=True))


def in_order(fields: FieldSet) -> FieldSet:
    """The set as upstream serialises it: a new dict, every node's keys in order. It shares nodes of OrderedFields, and no others."""
    if fields.__class__ is OrderedFields:
        return dict(fields)
    try:
        if len(fields) < 2:
            return {key: in_order(node) if node else {} for key, node in fields.items()}
        keys = sorted(fields)
        if keys[-1] >= "g":
            # Not fields alone, whose spelling is their order.
            keys = [key for _, key in sorted_in_runs([(order(key), key) for key in keys])]
        return {key: in_order(node) if (node := fields[key]) else {} for key in keys}
    except RecursionError:
        return continued(in_order, fields)


def canonical(fields: FieldSet) -> FieldSet:
    """A set sent by a client, with path elements spelt our way and unknown ones dropped. ValueError: not a field set."""
    out: FieldSet = {}
    for key, node in fields.items():
        if not isinstance(node, dict):
            raise ValueError(f"not a set of fields: {key}")
        if key == ".":
            out["."] = {}
        elif element := _canonical_element(key):
            try:
                below = canonical(node)
            except RecursionError:
                return continued(canonical, fields)
            out[element] = _union_node(out[element], below) if element in out else below
    return out if any(out.values()) or len(out) != 1 or "." not in out else {}


def _canonical_element(key: str) -> str:
    """Returns the canonical form of a path element; empty for an unknown type of element."""
    if len(key) < 2 or key[1] != ":":
        raise ValueError(f"missing colon: {key}")
    if key[0] == "f":
        return key
    if key[0] == "k":
        return key_element(json.loads(key[2:]))
    if key[0] == "v":
        return value_element(json.loads(key[2:]))
    return f"i:{atoi(key[2:])}" if key[0] == "i" else ""


def key_element(keys: dict[str, Any]) -> str:
    """The path element of a list map's item with these keys."""
    return "k:" + _json(dict(sorted(keys.items())) if len(keys) > 1 else keys)


@lru_cache(maxsize=16384)
def named_element(key: str, value: str) -> str:
    """The path element of an item of a list map with one key, a string: most of them, and most of them seen before."""
    return "k:" + _json({key: value})


def value_element(value: Any) -> str:
    """The path element of a set's item."""
    return "v:" + _json(value)


_encode: Final[Callable[[Any], bytes]] = msgspec.json.Encoder().encode


# With what else begins with a backslash, which stays.
_ESCAPED: Final = re.compile(r"\\.|[<>&\u2028\u2029]")
_ESCAPES: Final = {text: f"\\u{ord(text):04x}" for text in "<>&\u2028\u2029"} | {r"\b": r"\u0008", r"\f": r"\u000c"}


def _json(value: Any) -> str:
    """JSON as json-iterator writes it, which escapes what could end an HTML script."""
    text = _encode(value).decode()
    if "<" in text or ">" in text or "&" in text or "\\" in text or not text.isascii():
        text = _ESCAPED.sub(lambda match: _ESCAPES.get(match[0], match[0]), text)
    return text
