"""The changes of a custom resource that its schema suggests: fields set, unset, raised and lowered, lists and maps grown and shrunk."""

import hashlib
import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

from msgspec import Struct

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.sweep.exploring import values
from fakeapiserver.sweep.exploring.values import Schema

_FIXED: Final = frozenset(("apiVersion", "kind", "metadata", "status"))
_SHOWN: Final = 60

Path = tuple[str | int, ...]


class Change(Struct, frozen=True):
    """A field gets another value, as JSON; "" takes the field away. `field` is the path in the schema: `spec.users[].name`."""

    path: Path
    value: str
    field: str

    @property
    def id(self) -> str:
        """`spec.size = 5`, `spec.tls unset`"""
        if not self.value:
            return f"{shown(self.path)} unset"
        if len(self.value) <= _SHOWN:
            return f"{shown(self.path)} = {self.value}"
        digest = hashlib.sha256(self.value.encode()).hexdigest()[:4]
        return f"{shown(self.path)} = {self.value[:_SHOWN]}… ({digest})"

    @property
    def patch(self) -> list[dict[str, Any]]:
        """The change as a JSON patch."""
        pointer = "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in self.path)
        if not self.value:
            return [{"op": "remove", "path": pointer}]
        is_item = isinstance(self.path[-1], int)
        return [{"op": "replace" if is_item else "add", "path": pointer, "value": json.loads(self.value)}]

    def of(self, obj: Object) -> Object:
        """A copy of the object with the change. Raises LookupError if its place isn't there."""
        changed = deepcopy(obj)
        at: Any = changed
        for part in self.path[:-1]:
            at = at[part]
        if self.value:
            at[self.path[-1]] = json.loads(self.value)
        else:
            del at[self.path[-1]]
        return changed


class Place(Struct, frozen=True):
    """A field of the object or of its schema. `value` is None if the field is unset."""

    path: Path
    field: str
    schema: Schema
    value: Any
    required: bool


def of_schema(schema: Schema, obj: Object) -> list[Change]:
    """All changes: first one of each field, the outer fields before the inner ones, then the second of each field, and so on."""
    by_field = [list(_changes_of(place)) for place in places(schema, obj)]
    longest = max(map(len, by_field), default=0)
    ordered = [changes[turn] for turn in range(longest) for changes in by_field if turn < len(changes)]
    return list({(each.path, each.value): each for each in ordered}.values())


def places(schema: Schema, obj: Object) -> Iterator[Place]:
    """The fields that can be changed at once: those of the object, and those that could be added to it; the outer ones first."""
    waiting = deque(
        Place((name,), name, each, obj.get(name), name in (schema.get("required") or ()))
        for name, each in values.properties(schema).items()
        if name not in _FIXED
    )
    while waiting:
        place = waiting.popleft()
        yield place
        waiting += _below(place)


def fields_of(schema: Schema, depth: int = 12) -> Iterable[str]:
    """The paths of all fields that a schema has."""
    waiting = deque((name, each, 0) for name, each in values.properties(schema).items() if name not in _FIXED)
    while waiting:
        field, each, level = waiting.popleft()
        yield field
        if level >= depth:
            continue
        waiting += [(f"{field}.{name}", member, level + 1) for name, member in values.properties(each).items()]
        if isinstance(each.get("items"), Mapping):
            waiting += [
                (f"{field}[].{name}", member, level + 1) for name, member in values.properties(each["items"]).items()
            ]


def shown(path: Path) -> str:
    """`spec.users[0].name`; names with odd characters in quotes."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part.replace("_", "").replace("-", "").isalnum():
            text += f".{part}"
        else:
            text += f"[{json.dumps(part)}]"
    return text.removeprefix(".")


def _below(place: Place) -> Iterator[Place]:
    value, schema = place.value, place.schema
    if isinstance(value, dict):
        required = schema.get("required") or ()
        for name, each in values.properties(schema).items():
            yield Place((*place.path, name), f"{place.field}.{name}", each, value.get(name), name in required)
        of_map = values.values_of_map(schema)
        if of_map is not None:
            for name in list(value)[:1]:
                yield Place((*place.path, name), f"{place.field}.*", of_map, value[name], required=False)
    elif isinstance(value, list) and value:
        items = schema.get("items") or {}
        yield Place((*place.path, 0), f"{place.field}[]", items, value[0], required=True)


def _changes_of(place: Place) -> Iterator[Change]:
    for value in _values_of(place):
        yield Change(place.path, json.dumps(value, ensure_ascii=False), place.field)
    if place.value is not None and not place.required:
        yield Change(place.path, "", place.field)


def _values_of(place: Place) -> Sequence[Any]:
    value, schema = place.value, place.schema
    if isinstance(value, list):
        lists = [values.grown(schema, value), value[:-1], value[1:], []]
        return [each for number, each in enumerate(lists) if each != value and each not in lists[:number]]
    if isinstance(value, dict):
        of_map = values.values_of_map(schema)
        if of_map is None:
            return [{}] if value and not schema.get("required") else []
        fewer = dict(list(value.items())[1:])
        return [{**value, "example": values.smallest(of_map)}, *([fewer] if value else [])]
    return values.neighbours(schema, value)
