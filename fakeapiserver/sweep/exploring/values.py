"""Values that a schema allows: the smallest one, and those that lie next to a value or at the schema's bounds."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.meta import Object

Schema = Mapping[str, Any]

# Texts that patterns and formats of custom resources often ask for. The server decides which of them are valid.
_TEXTS: Final = (
    "a", "b", "ab", "example", "1", "0", "10", "65535", "1Gi", "100m", "10%", "1h", "30s", "1h30m", "1d", "a.example.com", "a-b",
    "A", "True", "1.2.3", "v1.2.3", "1.2", "10.0.0.1", "10.0.0.0/24", "10.0.0.1:80", "::1", "https://example.com",
    "example.com/a:1", "user@example.com", "2026-01-01T00:00:00Z", "2026-01-01", "* * * * *", "/data", "YQ==",
    "11111111-2222-4333-8444-555555555555",
)  # fmt: skip
_FORMATS: Final[Mapping[str, Sequence[str]]] = {
    "date-time": ("2026-01-01T00:00:00Z", "2030-01-01T00:00:00Z"),
    "date": ("2026-01-01", "2030-01-01"),
    "duration": ("30s", "1h"),
    "ipv4": ("10.0.0.1", "10.0.0.2"),
    "ipv6": ("::1", "::2"),
    "cidr": ("10.0.0.0/24", "10.1.0.0/16"),
    "uri": ("https://example.com/a", "https://example.com/b"),
    "hostname": ("a.example.com", "b.example.com"),
    "email": ("a@example.com", "b@example.com"),
    "uuid": ("11111111-2222-4333-8444-555555555555",),
    "byte": ("YQ==", "Yg=="),
}
_INT_OR_STRING: Final = (1, 2, "1", "10%", "100m", "1Gi")
_MOST: Final = 4
_LONGEST: Final = 512
_DEEPEST: Final = 8


def smallest(schema: Schema, depth: int = 0) -> Any:
    """The smallest value that the schema suggests: its default, example, first member of its enum, or required members only."""
    schema = merged(schema)
    for chosen in (schema.get("default"), schema.get("example"), *(schema.get("enum") or ())[:1]):
        if chosen is not None:
            return chosen
    if depth > _DEEPEST:
        return None
    match schema.get("type"):
        case "object":
            known = properties(schema)
            return {name: smallest(known.get(name, {}), depth + 1) for name in schema.get("required") or ()}
        case "array":
            items = [smallest(schema.get("items") or {}, depth + 1)] * int(schema.get("minItems") or 0)
            return [_distinct(item, number) for number, item in enumerate(items)]
        case "boolean":
            return False
        case "integer" | "number":
            return next(_numbers(schema, None), 1)
        case _:
            return next(_texts(schema, None), "a")


def merged(schema: Schema) -> Schema:
    """The schema with the constraints of all its `allOf`, and of the first of its `anyOf` and `oneOf`."""
    branches = [*(schema.get("allOf") or ()), *(schema.get("anyOf") or ())[:1], *(schema.get("oneOf") or ())[:1]]
    if not branches or schema.get("x-kubernetes-int-or-string"):
        return schema
    result = dict(schema)
    for branch in branches:
        for name, constraint in merged(branch).items():
            if name == "required":
                result[name] = [*dict.fromkeys((*(result.get(name) or ()), *constraint))]
            elif name == "properties":
                known = properties(result)
                result[name] = {**known, **{each: {**constraint[each], **known.get(each, {})} for each in constraint}}
            else:
                result.setdefault(name, constraint)
    return result


def branches_of(schema: Schema) -> Sequence[Schema]:
    """The schema as each of its `anyOf` and `oneOf` has it; the schema alone if it has none."""
    several = [*(schema.get("anyOf") or ()), *(schema.get("oneOf") or ())]
    plain = {name: each for name, each in schema.items() if name not in ("anyOf", "oneOf")}
    if not several or schema.get("x-kubernetes-int-or-string"):
        return [merged(schema)]
    return [merged({**plain, "allOf": [*(plain.get("allOf") or ()), each]}) for each in several]


def neighbours(schema: Schema, value: Any, hints: Sequence[Any] = ()) -> list[Any]:
    """Other values of a field that has this one; None: it has none yet. The likeliest come first, at most four, and after them `hints`,
    which rules name."""
    found: list[Any] = []
    for branch in branches_of(schema):
        of_branch = [each for each in _neighbours(branch, value) if each is not None and each != value]
        found += [each for number, each in enumerate(of_branch) if not _is_in(each, (*found, *of_branch[:number]))][
            :_MOST
        ]
    return found + [each for each in hints if each != value and not _is_in(each, found)]


def grown(schema: Schema, items: Sequence[Any]) -> list[Any]:
    """The list with one item more, which is like the last one, and differs from it where the schema names keys."""
    item_schema = schema.get("items") or {}
    new = items[-1] if items else smallest(item_schema)
    keys = schema.get("x-kubernetes-list-map-keys") or [
        key for key in ("name",) if isinstance(new, dict) and key in new
    ]
    if isinstance(new, dict):
        known = properties(item_schema)
        new = {
            **new,
            **{key: next(iter(neighbours(known.get(key, {"type": "string"}), new.get(key))), None) for key in keys},
        }
    elif items:
        new = next((each for each in neighbours(item_schema, new) if each not in items), new)
    return [*items, new]


def inferred(schema: Schema, value: Any) -> Schema:
    """The schema, with what a value shows where it says nothing: the members of an object that keeps unknown fields, and types."""
    if schema.get("type", "object") not in ("object", "array") or schema.get("additionalProperties"):
        return schema
    if isinstance(value, Mapping) and not properties(schema):
        members = {name: inferred({}, member) for name, member in value.items()}
        return {**schema, "type": "object", "properties": members}
    if isinstance(value, list) and value and not (schema.get("items") or {}).get("type"):
        return {**schema, "type": "array", "items": inferred({}, value[0])}
    if "type" in schema:
        return schema
    types = {bool: "boolean", int: "integer", float: "number", str: "string"}
    return {**schema, "type": types[type(value)]} if type(value) in types else schema


def properties(schema: Schema) -> Mapping[str, Schema]:
    """The properties that are named."""
    return schema.get("properties") or {}


def values_of_map(schema: Schema) -> Schema | None:
    """The schema of a map's values, None for another type."""
    additional = schema.get("additionalProperties")
    if isinstance(additional, Mapping):
        return additional
    return {"type": "string"} if additional is True else None


def _neighbours(schema: Schema, value: Any) -> Iterator[Any]:
    if schema.get("enum"):
        yield from schema["enum"]
        return
    if value is None and schema.get("example") is not None:
        yield schema["example"]
    if schema.get("type") == "boolean":
        yield from (True, False)
        return
    if value is None and smallest(schema) not in ({}, []):
        yield smallest(schema)
    if schema.get("x-kubernetes-int-or-string"):
        yield from _near_number(value)
        yield from _INT_OR_STRING
        return
    match schema.get("type"):
        case "integer" | "number":
            yield from _numbers(schema, value)
        case "string":
            yield from _texts(schema, value)
        case "array":
            yield from (grown(schema, []), [])
        case "object":
            yield from (*_maps(schema), smallest(schema))


def _maps(schema: Schema) -> Iterator[Object]:
    """The smallest map, and it with an entry."""
    base, values = smallest(schema), values_of_map(schema)
    if values is not None and isinstance(base, dict):
        yield {**base, "example": smallest(values)}


def _is_in(value: Any, others: Sequence[Any]) -> bool:
    """True and 1 are different values."""
    return any(type(each) is type(value) and each == value for each in others)


def _numbers(schema: Schema, value: Any) -> Iterator[int | float]:
    step = schema.get("multipleOf") or 1
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and schema.get("exclusiveMinimum"):
        low += step
    if high is not None and schema.get("exclusiveMaximum"):
        high -= step
    wanted: list[int | float | None] = []
    if isinstance(value, int | float) and not isinstance(value, bool):
        wanted = [value + step, value - step]
    wanted += [low, high, 0, step]
    if all(bound is not None for bound in (low, high)):
        wanted.append(low + (high - low) // (2 * step) * step)  # type: ignore[operator] # both are numbers
    for each in wanted:
        if each is not None and each >= (0 if low is None else low) and (high is None or each <= high):
            yield each


def _texts(schema: Schema, value: Any) -> Iterator[str]:
    pattern = schema.get("pattern")
    least, most = schema.get("minLength") or 0, schema.get("maxLength")
    wanted: list[str] = []
    if isinstance(value, str) and value:
        wanted += [_raised(value), f"{value}x", value[:-1]]
    wanted += _FORMATS.get(schema.get("format") or "", ())
    wanted += _TEXTS if pattern else ("example",)
    wanted += ["a" * least] if least else [""]
    if most is not None and most <= _LONGEST:
        wanted.append("a" * most)
    yield from (
        each for each in wanted if least <= len(each) and (most is None or len(each) <= most) and _fits(pattern, each)
    )


def _near_number(value: Any) -> Iterator[Any]:
    if isinstance(value, int):
        yield from (value + 1, value - 1)
    elif isinstance(value, str):
        yield _raised(value)


def _raised(text: str) -> str:
    """The text with its first number raised by one: `10Gi` gives `11Gi`, `web` gives `web2`."""
    raised, count = re.subn(r"\d+", lambda found: str(int(found[0][:9]) + 1), text, count=1)
    return raised if count else f"{text}2"


def _fits(pattern: Any, text: str) -> bool:
    """Patterns that Python can't read fit everything: the server decides."""
    if not isinstance(pattern, str):
        return True
    try:
        return re.search(pattern, text) is not None
    except re.error:
        return True


def _distinct(item: Any, number: int) -> Any:
    if isinstance(item, dict) and isinstance(item.get("name"), str) and number:
        return {**item, "name": f"{item['name']}{number}"}
    if isinstance(item, str) and number:
        return f"{item}{number}"
    return item
