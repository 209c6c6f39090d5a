"""Broken variants of a valid object: one thing is missing, of the wrong type, out of range, twice there, or beside what excludes it;
or two such things at once. Some are texts that only their form breaks: a key twice in a map, YAML.

What stands where something else should is in `broken_values.py`.
"""

import copy
import itertools
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from conformance.random import broken_values
from conformance.random.objects import Maker, Schema

Path = tuple[str | int, ...]
Request = dict[str, Any]

# Set by the server, or not covered by a kind's validation (`conformance.compare.requests --writes` tests them).
_METADATA: Final = ("name", "labels", "annotations")
_MAX_DEPTH: Final = 14
# Ends a key that stands for the one before it, until the object is a text.
_TWICE: Final = "\u0001"
# What is empty, by the type of a schema; null stands for none.
_EMPTY: Final[Mapping[str, tuple[Any, ...]]] = {
    "array": ([], None, [None]),
    "object": ({}, None),
    "string": ("", None),
}
_VALIDATIONS: Final = ("Strict", "Warn", "Ignore")


@dataclass(frozen=True, slots=True)
class Variant:
    """`request` has the body or the text that is sent, and its type; `query` is a parameter of it, or nothing."""

    what: str
    request: Request
    query: str


@dataclass(frozen=True, slots=True)
class _Change:
    path: Path
    what: str
    apply: Callable[[Any], None]  # changes the path's parent

    def __str__(self) -> str:
        return f"{_text(self.path)}: {self.what}"

    def done_to(self, obj: Any) -> bool:
        """False where an earlier change has left nothing to change."""
        parent = obj
        try:
            for step in self.path[:-1]:
                parent = parent[step]
            if isinstance(parent, list) != isinstance(self.path[-1], int):
                return False
            self.apply(parent)
        except (KeyError, IndexError, TypeError):
            return False
        return True


class Examples:
    """Values that valid objects have, by the field of the type that has them: what may be valid beside what is there."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], list[Any]] = {}

    def value(self, rng: random.Random, kind: str, key: str) -> Any:
        """Returns a random example of the field, or None if no object has it."""
        found = self._found.get((kind, key))
        return copy.deepcopy(rng.choice(found)) if found else None

    def gather(self, value: Any, schema: Schema, maker: Maker, kind: str = "") -> None:
        kind, schema = _type(schema, maker, kind)
        if isinstance(value, Mapping):
            for key, item in value.items():
                inner = _inner(schema, key)
                if key in (schema.get("properties") or ()):
                    self._found.setdefault((kind, key), []).append(item)
                self.gather(item, inner, maker, f"{kind}.{key}")
        elif isinstance(value, list):
            for item in value:
                self.gather(item, schema.get("items") or {}, maker, kind)


def variants(
    rng: random.Random,
    obj: Mapping[str, Any],
    schema: Schema,
    schemas: Mapping[str, Any],
    count: int,
    examples: Examples | None = None,
    faults: int = 1,
) -> Iterator[Variant]:
    """Yields at most `count` different variants, each with at least `faults` faults. `schemas`: the schemas that `schema` refers to;
    `examples` are used in addition to the object's own values.
    """
    changes = list(_Breaker(rng, Maker(rng, schemas, broken=0.05), examples or Examples()).changes(obj, schema, ()))
    rng.shuffle(changes)
    seen: set[str] = set()
    for change in changes:
        if len(seen) >= count:
            return
        together = [change, *rng.choices(changes, k=faults - 1)]
        while rng.random() < 0.15:
            together.append(rng.choice(changes))
        made: Any = copy.deepcopy(obj)
        done = [one for one in together if one.done_to(made)]
        text = json.dumps(made, sort_keys=True)
        if text not in seen:
            seen.add(text)
            request = _request(rng, made, text)
            query = f"fieldValidation={rng.choice(_VALIDATIONS)}" if rng.random() < 0.15 else ""
            yield Variant("; ".join(map(str, done)), request, query)


def emptied(obj: Mapping[str, Any], schema: Schema, schemas: Mapping[str, Any]) -> Iterator[Variant]:
    """Yields the object with each possible field empty or null, since Go distinguishes many of these from absent fields."""
    for change in _Breaker(random.Random(0), Maker(random.Random(0), schemas, broken=0), Examples()).emptied(
        obj, schema, ()
    ):
        made: Any = copy.deepcopy(obj)
        change.done_to(made)
        yield Variant(str(change), {"body": made}, "")


def _request(rng: random.Random, made: Any, text: str) -> Request:
    twice = json.dumps(_TWICE)[1:-1] in text
    if rng.random() < 0.05:
        written = yaml.safe_dump(made, sort_keys=False, allow_unicode=rng.random() < 0.5)
        return {"text": written.replace("\\x01", ""), "type": "application/yaml"}
    if twice:
        return {"text": json.dumps(made).replace(json.dumps(_TWICE)[1:-1], ""), "type": "application/json"}
    return {"body": made}


def _type(schema: Schema, maker: Maker, kind: str) -> tuple[str, Schema]:
    """The name of a schema's type, `kind` where it has none; and the schema without references."""
    return (maker.name_of(schema) or kind, maker.resolved(schema)) if schema else (kind, {})


def _inner(schema: Schema, key: str) -> Schema:
    found = (schema.get("properties") or {}).get(key) or schema.get("additionalProperties") or {}
    return found if isinstance(found, dict) else {}


def _text(path: Path) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


class _Breaker:
    def __init__(self, rng: random.Random, maker: Maker, examples: Examples) -> None:
        self._rng, self._maker, self._examples = rng, maker, examples

    def changes(self, value: Any, schema: Schema, path: Path, kind: str = "") -> Iterator[_Change]:
        """All that can be done below `path`."""
        kind, schema = _type(schema, self._maker, kind)
        if isinstance(value, Mapping):
            for key, item in value.items():
                if (key in ("apiVersion", "kind") and not path) or (path == ("metadata",) and key not in _METADATA):
                    continue
                below, inner = (*path, key), _inner(schema, key)
                yield from self._changes_of(below, item, inner)
                yield self._twice(below, item)
                if len(below) < _MAX_DEPTH:
                    yield from self.changes(item, inner, below, f"{kind}.{key}")
            if path[:1] != ("metadata",):
                yield from self._added(value, schema.get("properties") or {}, path, kind)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                below = (*path, index)
                yield from self._changes_of(below, item, schema.get("items") or {})
                yield from self.changes(item, schema.get("items") or {}, below, kind)

    def emptied(self, value: Any, schema: Schema, path: Path) -> Iterator[_Change]:
        """All that can be emptied below `path`."""
        schema = self._maker.resolved(schema) if schema else {}
        if isinstance(value, Mapping):
            for key in {**value, **(schema.get("properties") or {})} if len(path) < _MAX_DEPTH else ():
                if (not path and key in ("apiVersion", "kind", "metadata")) or path == ("metadata",):
                    continue
                if not path and key == "status" and key not in value:
                    continue
                below, inner = (*path, key), _inner(schema, key)
                for empty in self._empty(inner):
                    if json.dumps(empty) != json.dumps(value.get(key, "none")):
                        yield _Change(below, f"is {_short(empty)}", _setting(key, empty))
                if key in value:
                    yield from self.emptied(value[key], inner, below)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                yield from self.emptied(item, schema.get("items") or {}, (*path, index))

    def _empty(self, schema: Schema) -> tuple[Any, ...]:
        resolved = self._maker.resolved(schema) if schema else {}
        return _EMPTY.get(str(resolved.get("type", "object")), ())

    def _added(
        self, value: Mapping[str, Any], properties: Mapping[str, Any], path: Path, kind: str
    ) -> Iterator[_Change]:
        for key, inner in properties.items():
            if key in value or not (path or key not in ("metadata", "status", "apiVersion", "kind")):
                continue
            for made in (self._maker.value(key, inner, 4), self._examples.value(self._rng, kind, key)):
                if made is not None:
                    yield _Change((*path, key), f"added {_short(made)}", _setting(key, made))
        yield _Change((*path, "unknownField"), "added", _setting("unknownField", 1))

    def _twice(self, path: Path, value: Any) -> _Change:
        other = value if self._rng.random() < 0.4 else self._rng.choice(broken_values.TYPES)
        return _Change(path, f"is there twice, as {_short(other)}", _setting(f"{path[-1]}{_TWICE}", other))

    def _changes_of(self, path: Path, value: Any, schema: Schema) -> Iterator[_Change]:
        last = path[-1]
        yield _Change(path, "is missing", _removing(last))
        for new in itertools.chain(self._rng.sample(broken_values.TYPES, 2), self._instead(value, schema, last)):
            if json.dumps(new) != json.dumps(value):
                yield _Change(path, f"is {_short(new)}", _setting(last, new))

    def _instead(self, value: Any, schema: Schema, last: str | int) -> Iterator[Any]:
        name, schema = _type(schema, self._maker, "")
        sample = self._rng.sample
        if name.endswith("resource.Quantity"):
            yield from sample(broken_values.QUANTITIES, 5)
        elif name.endswith("intstr.IntOrString"):
            yield from sample(broken_values.INTS_OR_TEXTS, 5)
        elif name.endswith(("v1.Time", "v1.MicroTime")) or schema.get("format") == "date-time":
            yield from sample(broken_values.TIMES, 4)
        elif schema.get("format") == "byte":
            yield from sample(broken_values.BYTES, 3)
        elif isinstance(value, bool):
            yield not value
            yield str(value)
        elif isinstance(value, str):
            if "enum" in schema:
                yield from (value.lower(), value.upper(), f" {value}", self._rng.choice(schema["enum"]))
            yield from sample(broken_values.TEXTS, 2 if "enum" in schema else 5)
        elif isinstance(value, int | float):
            yield from sample(broken_values.NUMBERS, 5)
            yield str(value)
        elif isinstance(value, list):
            yield from self._other_lists(value)
        elif isinstance(value, Mapping):
            yield {}
            if isinstance(last, str) and all(isinstance(item, str) for item in value.values()):
                yield {**value, self._rng.choice(broken_values.KEYS): self._rng.choice(broken_values.TEXTS)}
                yield {**value, "a": self._rng.choice(broken_values.TYPES)}

    def _other_lists(self, value: Sequence[Any]) -> Iterator[Any]:
        yield []
        yield [*value, self._rng.choice(broken_values.TYPES)]
        yield [None, *value]
        yield [*value, {}]
        if value:
            yield [*value, copy.deepcopy(value[0])]
            yield value[::-1]


def _short(value: Any) -> str:
    return json.dumps(value)[:60]


def _setting(step: str | int, value: Any) -> Callable[[Any], None]:
    def change(parent: Any) -> None:
        if isinstance(parent, str):
            raise TypeError(parent)
        parent[step] = copy.deepcopy(value)

    return change


def _removing(step: str | int) -> Callable[[Any], None]:
    def change(parent: Any) -> None:
        del parent[step]

    return change
