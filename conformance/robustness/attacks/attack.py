"""An attack: one request, and those that prepare it."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

Object = dict[str, Any]

JSON: Final = "application/json"
YAML: Final = "application/yaml"
JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
# Bytes that a body may have, less some for what surrounds a list.
BODY: Final = 3 * 1024 * 1024 - 16 * 1024


class Call(Struct, frozen=True):
    """A request. `body` returns its bytes, so that they aren't in memory before they are sent."""

    method: str
    path: str
    body: Callable[[], bytes] = bytes
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)


class Attack(Struct, frozen=True):
    """`before` are the requests that prepare it, and `call` is the one that is measured, with the seconds `after` its answer. `frames`
    returns the bytes that are sent behind an answer that changes the protocol."""

    name: str
    call: Call
    before: Sequence[Call] = ()
    after: float = 0.05
    frames: Callable[[], bytes] | None = None


def encoded(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def posted(path: str, obj: Callable[[], Object]) -> Call:
    return Call("POST", path, lambda: encoded(obj()))


def filled(item: Callable[[int], object], limit: int = BODY) -> list[Any]:
    """Returns as many items as fit into a body."""
    items, size, number = list[Any](), 0, 0
    while True:
        new = item(number)
        size += len(encoded(new)) + 1
        if size > limit:
            return items
        items.append(new)
        number += 1


def pairs(item: Callable[[int], tuple[str, object]], limit: int = BODY) -> Object:
    """Returns a map with as many entries as fit into a body."""
    return dict(filled(item, limit - limit // 100))


def named(api_version: str, kind: str, name: str, **parts: object) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **parts}
