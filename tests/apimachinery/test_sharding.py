"""Shard selectors. What is refused, and in which words, is what a real kube-apiserver 1.36.3 said."""

import re

import pytest

from fakeapiserver.apimachinery.sharding import NAMESPACE, UID, fnv1a, parse

ALL = f"shardRange({NAMESPACE}, '0x0000000000000000', '0x10000000000000000')"
LOW = f"shardRange({NAMESPACE}, '0x0000000000000000', '0x8000000000000000')"


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        (ALL, True),
        (f" {LOW} ", False),
        (LOW.replace("'0x8", '"0x9').replace("000')", '000")'), False),
        (f"{LOW} || {ALL}", True),
    ],
)
def test_selects_by_hash(text: str, matches: bool) -> None:
    assert fnv1a("default") == 0xEBADA5168620C5FE
    assert parse(text).matches("default") is matches
    assert parse(text).matches("shards")


def test_is_shown_in_one_way() -> None:
    assert str(
        parse(f'x.shardRange({UID},"0x0000000000000000",\n r"0x8000000000000000")||{ALL.replace(NAMESPACE, UID)}')
    ) == (f"shardRange({UID}, '0x0000000000000000', '0x8000000000000000') || {ALL.replace(NAMESPACE, UID)}")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("  ", "empty shard selector is not allowed; omit the parameter for unfiltered lists"),
        ("a b", "CEL parse error: Syntax error: extraneous input 'b' expecting <EOF>"),
        ("true", "unexpected expression kind 5; expected shardRange() call or || operator"),
        ("A{}", "unexpected expression kind 8; expected shardRange() call or || operator"),
        ("has(object.a)", 'unsupported function "has"; only shardRange() and || are allowed'),
        (f"{ALL} && {ALL}", 'unsupported function "_&&_"; only shardRange() and || are allowed'),
        ("shardRange(object.metadata.uid)", "shardRange() requires exactly 3 arguments, got 1"),
        (
            ALL.replace("namespace", "name"),
            f'unsupported field path "object.metadata.name"; supported: {UID}, {NAMESPACE}',
        ),
        (
            ALL.replace(".namespace", "['uid']"),
            f"shardRange() first argument: expected field path (e.g. {UID}), got expression kind 1",
        ),
        (
            LOW.replace("'0x8000000000000000'", "x"),
            "hexEnd must be a string literal (e.g. '0xff'), got expression kind 3",
        ),
        (LOW.replace("'0x8000000000000000'", "1u"), "hexEnd must be a string literal, got uint64"),
        (LOW.replace("0x8", "0X8"), "hexEnd must have '0x' prefix, got \"0X8000000000000000\""),
        (LOW.replace("0x8000000000000000", "0x"), "hexEnd: hex value is required after '0x'"),
        (
            LOW.replace("0x8000000000000000", "0x8"),
            'hexEnd must be a 0x-prefixed 16-digit hex value, got "0x8" (did you mean "0x0000000000000008"?)',
        ),
        (LOW.replace("0x8000000000000000", "0xG"), 'hexEnd: invalid hex character "G" in "0xG"'),
        (
            f"{ALL} || {ALL.replace(NAMESPACE, UID)}",
            f'all shard ranges must use the same field, got "{NAMESPACE}" and "{UID}"',
        ),
        (
            LOW.replace("0x8", "0x0"),
            "shard range start 0x0000000000000000 must be less than end 0x0000000000000000",
        ),
    ],
)
def test_refuses(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}$"):
        parse(text)
