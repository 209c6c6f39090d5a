"""Attacks with objects of as many levels as kube-apiserver takes."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from conformance.robustness.attacks.attack import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, YAML, Attack, Call
from conformance.robustness.attacks.custom import DEFINED, THINGS

_DEPTH: Final = 9990
# A level is opened and closed with these.
_LEVELS: Final = {"maps": (b'{"a":', b"}"), "lists": (b"[", b"]"), "maps in lists": (b'[{"a":', b"}]")}


def _value(levels: str, leaf: bytes = b"1") -> bytes:
    opening, closing = _LEVELS[levels]
    count = _DEPTH // len(closing)
    return opening * count + leaf + closing * count


def _thing(name: str, levels: str, leaf: bytes = b"1") -> bytes:
    head = b'{"apiVersion":"attack.example.com/v1","kind":"Thing","metadata":{"name":"%b"},"spec":{"free":{"v":%b}}}'
    return head % (name.encode(), _value(levels, leaf))


def _merge(levels: str) -> bytes:
    return b'{"spec":{"free":{"w":%b}}}' % _value(levels)


def _steps(levels: str) -> bytes:
    value = _value(levels)
    steps = b'[{"op":"test","path":"/spec/free/v","value":%b},{"op":"add","path":"/spec/free/w","value":%b}]'
    return steps % (value, value)


def attacks() -> Iterator[Attack]:
    for levels in _LEVELS:
        name = f"depth-{levels.replace(' ', '-')}"
        path = f"{THINGS}/{name}"
        apply = partial(_applied, path, name, levels)
        exists = apply("first", b"1")
        yield Attack(f"depth: {levels}", Call("POST", THINGS, partial(_thing, f"{name}-c", levels)), DEFINED)
        yield Attack(
            f"depth: {levels} as YAML", Call("POST", THINGS, partial(_thing, f"{name}-y", levels), YAML), DEFINED
        )
        yield Attack(
            f"depth: a merge patch of {levels}",
            Call("PATCH", path, partial(_merge, levels), MERGE_PATCH),
            [*DEFINED, exists],
        )
        yield Attack(
            f"depth: a JSON patch of {levels}",
            Call("PATCH", path, partial(_steps, levels), JSON_PATCH),
            [*DEFINED, exists],
        )
        yield Attack(f"depth: an apply of {levels}", apply("one", b"2"), [*DEFINED, exists])
        yield Attack(f"depth: a conflict of {levels}", apply("two", b"3", force=False), [*DEFINED, apply("one", b"2")])
        yield Attack(f"depth: a table of {levels}", Call("GET", path, headers=_TABLE), [*DEFINED, exists])
        yield Attack(f"depth: YAML of {levels}", Call("GET", path, headers={"Accept": YAML}), [*DEFINED, exists])
        yield Attack(f"depth: a list of {levels}", Call("GET", THINGS), [*DEFINED, exists])


_TABLE: Final = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}


def _applied(path: str, name: str, levels: str, manager: str, leaf: bytes, force: bool = True) -> Call:
    return Call(
        "PATCH",
        f"{path}?fieldManager={manager}&force={str(force).lower()}",
        partial(_thing, name, levels, leaf),
        APPLY_PATCH,
    )
