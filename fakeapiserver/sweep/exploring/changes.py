"""The changes of a custom resource that its schema suggests: fields set, unset, raised and lowered, lists and maps grown and shrunk."""

import hashlib
import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

from msgspec import Struct, structs

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.sweep.exploring import rules, shapes, values
from fakeapiserver.sweep.exploring.values import Schema

_FIXED: Final = frozenset(("apiVersion", "kind", "metadata", "status"))
_SHOWN: Final = 60
# The weight of fields that get one value only, and the weight below which no more fields are looked for.
_RARE: Final = 3
_DEEPEST: Final = 5
# The number of a map's entries that are changed, and of items to which a list grows.
_ENTRIES: Final = 3
_LONGEST: Final = 10

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


class Frame(Struct, frozen=True):
    """The object that must be added for an unset field within it: its path, and its smallest value so far."""

    path: Path
    value: Any


class Place(Struct, frozen=True):
    """A field of the object or of its schema. `value` is None if the field is unset, `frame` None if its object is there. `parent` is the
    schema of its object. `weight`: how many turns its changes come later than those of the first fields."""

    path: Path
    field: str
    schema: Schema
    value: Any
    required: bool = False
    parent: Schema = {}
    frame: Frame | None = None
    weight: int = 0

    @property
    def name(self) -> str:
        """The name of the field, of its list for an item."""
        return self.field.rpartition(".")[2].removesuffix("[]")

    def change_to(self, value: Any) -> Change:
        """The field gets this value, and its object is added if it isn't there."""
        if self.frame is None:
            return Change(self.path, json.dumps(value, ensure_ascii=False), self.field)
        added = _with(self.frame.value, self.path[len(self.frame.path) :], value)
        return Change(self.frame.path, json.dumps(added, ensure_ascii=False), self.field)


def of_schema(schema: Schema, obj: Object) -> list[Change]:
    """All changes, the most promising first: one of each field, then the second of each field, and so on. Empty objects come later, as do
    unset fields deep in unset objects and in large structures."""
    turns: dict[int, list[Change]] = {}
    for place in places(schema, obj):
        for number, change in enumerate(_changes_of(place)):
            is_whole = len(place.path) == 1 or change.value == "{}"
            turns.setdefault(number + place.weight + is_whole, []).append(change)
            if place.weight >= _RARE:
                break
    ordered = [change for turn in sorted(turns) for change in turns[turn]]
    return list({(each.path, each.value): each for each in ordered}.values())


def places(schema: Schema, obj: Object) -> Iterator[Place]:
    """The fields that can be changed at once: those of the object, and those that could be added to it; the outer ones first."""
    waiting = deque(
        Place((name,), name, each, obj.get(name), name in (schema.get("required") or ()), schema)
        for name, each in values.properties(schema).items()
        if name not in _FIXED
    )
    while waiting:
        place = waiting.popleft()
        yield place
        if place.weight <= _DEEPEST:
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
        of_map = values.values_of_map(each)
        if of_map is not None:
            waiting.append((f"{field}.*", of_map, level + 1))
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
    value, schema = place.value, values.inferred(values.merged(place.schema), place.value)
    if value is None:
        yield from _below_unset(place, schema)
    elif isinstance(value, dict):
        yield from _members(place, schema, value, None, place.weight)
        of_map = values.values_of_map(schema)
        if of_map is not None:
            for name in list(value)[:_ENTRIES]:
                yield Place((*place.path, name), f"{place.field}.*", of_map, value[name], weight=place.weight)
    elif isinstance(value, list) and value:
        items = schema.get("items") or {}
        for number in dict.fromkeys((0, len(value) - 1)):
            weight = place.weight + bool(number)
            yield Place((*place.path, number), f"{place.field}[]", items, value[number], required=True, weight=weight)


def _below_unset(place: Place, schema: Schema) -> Iterator[Place]:
    """The members of an object, or of a list's item, that isn't there."""
    smallest, step = values.smallest(schema), list[int]()
    if isinstance(smallest, list):
        schema, step = schema.get("items") or {}, [0]
        smallest = [values.smallest(schema)]
    inner = smallest[0] if step else smallest
    if not isinstance(inner, dict) or not values.properties(schema):
        return
    if place.frame is None:
        frame = Frame(place.path, smallest)
    else:
        frame = Frame(place.frame.path, _with(place.frame.value, place.path[len(place.frame.path) :], smallest))
    at = structs.replace(place, path=(*place.path, *step), field=f"{place.field}[]" if step else place.field)
    yield from _members(at, schema, inner, frame, place.weight + (place.frame is not None))


def _members(place: Place, schema: Schema, value: Object, frame: Frame | None, weight: int) -> Iterator[Place]:
    required = schema.get("required") or ()
    is_large = shapes.is_recognised(schema)
    for name, each in values.properties(schema).items():
        later = _RARE if is_large and name not in value and shapes.suggested(name, each, None, schema) is None else 0
        yield Place(
            (*place.path, name),
            f"{place.field}.{name}",
            each,
            value.get(name),
            name in required,
            schema,
            frame,
            weight + later,
        )


def _with(value: Any, path: Path, inner: Any) -> Any:
    """A copy of the value, in which another one is at the path."""
    if not path:
        return inner
    changed = deepcopy(value)
    at = changed
    for part in path[:-1]:
        at = at[part]
    at[path[-1]] = inner
    return changed


def _changes_of(place: Place) -> Iterator[Change]:
    """The first value, then without it, then the others."""
    several = list(_values_of(place))
    can_be_unset = place.value is not None and not place.required and place.frame is None
    for number, value in enumerate(several):
        if number == 1 and can_be_unset:
            yield Change(place.path, "", place.field)
        yield place.change_to(value)
    if len(several) <= 1 and can_be_unset:
        yield Change(place.path, "", place.field)


def _values_of(place: Place) -> Sequence[Any]:
    value, schema = place.value, values.inferred(values.merged(place.schema), place.value)
    suggested = shapes.suggested(place.name, schema, value, place.parent) or []
    if isinstance(value, list):
        several = [*suggested, *_lists(place, schema, value)]
    elif isinstance(value, dict):
        several = [*suggested, *_objects(schema, value)]
    else:
        hints = rules.hints(schema, place.parent, place.name)
        several = [*suggested, *values.neighbours(place.schema, value, hints)]
    several = [each for each in several if each != value or type(each) is not type(value)]
    return [each for number, each in enumerate(several) if each not in several[:number]]


def _lists(place: Place, schema: Schema, items: list[Any]) -> Iterator[list[Any]]:
    """Grown, without its last and first item, empty, in another order, and of the lengths that the schema and its rules name."""
    yield values.grown(schema, items)
    yield items[:-1]
    yield items[1:]
    yield []
    yield items[::-1]
    for length in (schema.get("maxItems"), *rules.sizes(place.schema, place.parent, place.name)):
        if length is not None and len(items) < length <= _LONGEST:
            yield _grown_to(schema, items, length)


def _grown_to(schema: Schema, items: list[Any], length: int) -> list[Any]:
    while len(items) < length:
        items = values.grown(schema, items)
    return items


def _objects(schema: Schema, value: Object) -> Iterator[Object]:
    of_map = values.values_of_map(schema)
    if of_map is not None:
        yield {**value, "example": values.smallest(of_map)}
        if value:
            yield dict(list(value.items())[1:])
    elif value and not schema.get("required"):
        yield {}
