"""Broken variants of a valid object: one thing is missing, of the wrong type, out of range, twice there, or beside what excludes it."""

import copy
import json
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from conformance.random_objects import Maker, Schema

Path = tuple[str | int, ...]
Change = Callable[[Any], None]

_TEXTS: Final[tuple[str, ...]] = (
    *(
        "",
        " ",
        "Bogus",
        "Bad_Value!",
        "-x",
        "a..b",
        "a/b/c",
        "x" * 64,
        "x" * 254,
        "../x",
        "é",
        "0",
        "-1",
        "1x",
        "1.5Gi",
    ),
    *("10.0.0.256", "2001:db8::1", "10.0.0.1", "300%", "http://x", "*", "$(X)"),
)
_NUMBERS: Final[tuple[Any, ...]] = (-1, 0, 1, 2, 65536, 100000, 2**31, 2**63, 1.5, "1", "-1")
_TYPES: Final[tuple[Any, ...]] = (5, "x", True, [], {}, None, ["x"], {"a": "b"})
# The server's, or no part of what a kind's validation is about (`conformance.differential --writes` has them).
_METADATA: Final = ("name", "labels", "annotations")
_MAX_DEPTH: Final = 12


def variants(
    rng: random.Random, obj: Mapping[str, Any], schema: Schema, schemas: Mapping[str, Any], count: int
) -> Iterator[tuple[str, Any]]:
    """(what was done, the object) of so many different ones, or as many as there are; `schemas`: what its `schema` refers to."""
    maker = Maker(rng, schemas, broken=0.05)
    changes = [(f"{_text(path)}: {what}", path, change) for path, what, change in _changes(rng, obj, schema, maker, ())]
    rng.shuffle(changes)
    seen: set[str] = set()
    for what, path, change in changes:
        if len(seen) >= count:
            return
        made: Any = copy.deepcopy(obj)
        parent = made
        for step in path[:-1]:
            parent = parent[step]
        change(parent)
        text = json.dumps(made, sort_keys=True)
        if text not in seen:
            seen.add(text)
            yield what, made


def _text(path: Path) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


def _changes(
    rng: random.Random, value: Any, schema: Schema, maker: Maker, path: Path
) -> Iterator[tuple[Path, str, Change]]:
    """(path, what, change of the path's parent) of all that can be done below `path`."""
    schema = maker.resolved(schema) if schema else {}
    if isinstance(value, Mapping):
        properties = schema.get("properties") or {}
        for key, item in value.items():
            if key in ("apiVersion", "kind") or (path == ("metadata",) and key not in _METADATA):
                continue
            below = (*path, key)
            yield from _changes_of(rng, below, item)
            if len(below) < _MAX_DEPTH:
                inner = properties.get(key) or schema.get("additionalProperties") or {}
                yield from _changes(rng, item, inner if isinstance(inner, dict) else {}, maker, below)
        if path[:1] != ("metadata",):
            for key, inner in properties.items():
                if key not in value and (path or key not in ("metadata", "status", "apiVersion", "kind")):
                    made = maker.value(key, inner, 4)
                    yield (*path, key), f"added {json.dumps(made)[:60]}", _setting(key, made)
            yield (*path, "unknownField"), "added", _setting("unknownField", 1)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            below = (*path, index)
            yield from _changes_of(rng, below, item)
            yield from _changes(rng, item, schema.get("items") or {}, maker, below)


def _changes_of(rng: random.Random, path: Path, value: Any) -> Iterator[tuple[Path, str, Change]]:
    last = path[-1]

    def put(new: Any) -> tuple[Path, str, Change]:
        return path, f"is {json.dumps(new)[:60]}", _setting(last, new)

    yield path, "is missing", _removing(last)
    yield put(rng.choice(_TYPES))
    if isinstance(value, bool):
        yield put(not value)
    elif isinstance(value, str):
        yield from map(put, rng.sample(_TEXTS, 4))
    elif isinstance(value, int | float):
        yield from map(put, rng.sample(_NUMBERS, 4))
    elif isinstance(value, list):
        yield put([])
        if value:
            yield put([*value, copy.deepcopy(value[0])])
            yield put(value[::-1])
    elif isinstance(value, Mapping):
        yield put({})
        if isinstance(last, str) and all(isinstance(item, str) for item in value.values()):
            yield put({**value, rng.choice(_TEXTS): rng.choice(_TEXTS)})


def _setting(step: str | int, value: Any) -> Change:
    def change(parent: Any) -> None:
        parent[step] = copy.deepcopy(value)

    return change


def _removing(step: str | int) -> Change:
    def change(parent: Any) -> None:
        del parent[step]

    return change
