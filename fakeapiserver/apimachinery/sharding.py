"""Shard selectors: the part of a collection whose uids (or namespaces) hash into ranges.

    shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000') || shardRange(...)

Upstream: k8s.io/apimachinery/pkg/sharding, k8s.io/apiserver/pkg/sharding/parser.go (KEP-5866, the gate ShardedListAndWatch).
"""

import re
from functools import lru_cache
from typing import Final

from msgspec import Struct

from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.languages.cel import ast
from fakeapiserver.languages.cel.errors import CompileError
from fakeapiserver.languages.cel.parser import parse as parse_expression
from fakeapiserver.languages.cel.values import UInt

UID: Final = "object.metadata.uid"
NAMESPACE: Final = "object.metadata.namespace"
# 2^64, the only bound with more than sixteen digits.
_END: Final = "0x10000000000000000"
_DIGITS: Final = 16
_BAD_DIGIT: Final = re.compile("[^0-9a-f]")
# FNV-1a of 64 bits.
_OFFSET, _PRIME, _MASK = 0xCBF29CE484222325, 0x100000001B3, (1 << 64) - 1
# Nodes as messages number them.
_KINDS: Final[dict[type[ast.Expr], int]] = {
    ast.Call: 1,
    ast.Comprehension: 2,
    ast.Ident: 3,
    ast.ListExpr: 4,
    ast.Literal: 5,
    ast.MapExpr: 6,
    ast.Select: 7,
    ast.Struct: 8,
}
_GO_TYPES: Final[dict[type, str]] = {
    bool: "bool",
    int: "int64",
    UInt: "uint64",
    float: "float64",
    bytes: "[]uint8",
    type(None): "structpb.NullValue",
}


class _Range(Struct, frozen=True):
    """Bounds as they were written; the upper one is not part of it."""

    start: str
    end: str


class ShardSelector(Struct, frozen=True):
    """`key` is UID or NAMESPACE. Made by `parse`."""

    key: str
    ranges: tuple[_Range, ...]

    def __str__(self) -> str:
        return " || ".join(f"shardRange({self.key}, '{shard.start}', '{shard.end}')" for shard in self.ranges)

    def matches(self, value: str) -> bool:
        """Reports whether an object with this uid (or namespace) is selected."""
        hashed = fnv1a(value)
        return any(int(shard.start, 16) <= hashed < int(shard.end, 16) for shard in self.ranges)


def fnv1a(text: str) -> int:
    """
    >>> hex(fnv1a("a"))
    '0xaf63dc4c8601ec8c'
    """
    hashed = _OFFSET
    for byte in text.encode():
        hashed = (hashed ^ byte) * _PRIME & _MASK
    return hashed


@lru_cache(maxsize=64)
def parse(text: str) -> ShardSelector:
    """Parses a shard selector. Raises ValueError in upstream's words for an invalid one."""
    text = text.strip()
    if not text:
        raise ValueError("empty shard selector is not allowed; omit the parameter for unfiltered lists")
    try:
        tree = parse_expression(text, macros=False)
    except CompileError as error:
        raise ValueError(f"CEL parse error: {error.first}") from None
    ranges = _ranges(tree)
    first = ranges[0][0]
    for key, _ in ranges:
        if key != first:
            fields = f"{go_quote(first)} and {go_quote(key)}"
            raise ValueError(f"all shard ranges must use the same field, got {fields}")
    return ShardSelector(first, tuple(bounds for _, bounds in ranges))


def _ranges(tree: ast.Expr) -> list[tuple[str, _Range]]:
    if not isinstance(tree, ast.Call):
        expected = "expected shardRange() call or || operator"
        raise ValueError(f"unexpected expression kind {_KINDS[type(tree)]}; {expected}")
    if tree.function == "_||_":
        return [side_range for side in tree.args for side_range in _ranges(side)]
    if tree.function != "shardRange":
        function = go_quote(tree.function)
        raise ValueError(f"unsupported function {function}; only shardRange() and || are allowed")
    if len(tree.args) != 3:
        raise ValueError(f"shardRange() requires exactly 3 arguments, got {len(tree.args)}")
    key = _field_path(tree.args[0])
    if key not in (UID, NAMESPACE):
        raise ValueError(f"unsupported field path {go_quote(key)}; supported: {UID}, {NAMESPACE}")
    start, end = _bound(tree.args[1], "hexStart"), _bound(tree.args[2], "hexEnd")
    if int(start, 16) >= int(end, 16):
        raise ValueError(f"shard range start {start} must be less than end {end}")
    return [(key, _Range(start, end))]


def _field_path(tree: ast.Expr) -> str:
    if isinstance(tree, ast.Ident):
        return tree.name
    if isinstance(tree, ast.Select):
        return f"{_field_path(tree.operand)}.{tree.field}"
    expected = f"expected field path (e.g. {UID}), got expression kind {_KINDS[type(tree)]}"
    raise ValueError(f"shardRange() first argument: {expected}")


def _bound(tree: ast.Expr, name: str) -> str:
    if not isinstance(tree, ast.Literal):
        kind = _KINDS[type(tree)]
        raise ValueError(f"{name} must be a string literal (e.g. '0xff'), got expression kind {kind}")
    text = tree.value
    if not isinstance(text, str):
        raise ValueError(f"{name} must be a string literal, got {_GO_TYPES[type(text)]}")
    quoted, digits = go_quote(text), text.removeprefix("0x")
    if not text.startswith("0x"):
        raise ValueError(f"{name} must have '0x' prefix, got {quoted}")
    if not digits:
        raise ValueError(f"{name}: hex value is required after '0x'")
    size = len(digits.encode())
    if size > len(_END) - 2:
        raise ValueError(f"{name}: hex value too long ({size} chars, max 17): {go_quote(digits)}")
    if bad := _BAD_DIGIT.search(digits):
        raise ValueError(f"{name}: invalid hex character {go_quote(bad[0])} in {quoted}")
    if size > _DIGITS and text != _END:
        raise ValueError(f"{name}: 17-digit hex value must be '{_END}' (2^64), got {quoted}")
    if size < _DIGITS:
        meant = go_quote(f"0x{digits:0>16}")
        raise ValueError(f"{name} must be a 0x-prefixed 16-digit hex value, got {quoted} (did you mean {meant}?)")
    return text
