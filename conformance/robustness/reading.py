"""Reads of the traffic's objects, and the record of everything that was read."""

import time
from typing import Any, Final
from urllib.parse import urlencode

from conformance.robustness.client import Client
from conformance.robustness.history import Promise, Read, Scope, Stored, Watch
from conformance.robustness.kinds import KINDS, Kind


class Reading:
    """The reads of all clients. `newest` is the highest revision that any of them has seen."""

    def __init__(self) -> None:
        self.reads: list[Read] = []
        self.watches: list[Watch] = []
        self.newest = 0

    def saw(self, revision: int) -> None:
        self.newest = max(self.newest, revision)


def revision_of(obj: Any) -> int:
    return int(obj["metadata"]["resourceVersion"])


def selectors(scope: Scope) -> dict[str, object]:
    """The parameters of a request for the objects of the scope."""
    given: dict[str, object] = {}
    if scope.color:
        given["labelSelector"] = f"color={scope.color}"
    if scope.name:
        given["fieldSelector"] = f"metadata.name={scope.name}"
    return given


def objects_of(kind: Kind, items: Any) -> dict[str, Stored]:
    return {
        f"{kind.resource}/{item['metadata']['name']}": Stored(revision_of(item), kind.content(item)) for item in items
    }


_MATCHES: Final = {"not older": "NotOlderThan", "exact": "Exact"}


def read_list(
    reading: Reading,
    client: Client,
    reader: tuple[str, int],
    scope: Scope,
    promise: Promise,
    asked: int = 0,
    limit: int = 0,
) -> Read | None:
    """Lists, in pages of `limit` objects unless that is 0. `reader`: the client's name and the number of its server. Returns None if the
    server refuses. Raises what LOST lists."""
    kind, began = KINDS[scope.resource], time.monotonic()
    options = selectors(scope)
    if promise == "any":
        options["resourceVersion"] = 0
    elif promise in _MATCHES:
        options |= {"resourceVersion": asked, "resourceVersionMatch": _MATCHES[promise]}
    if limit:
        options["limit"] = limit
    objects: dict[str, Stored] = {}
    pages: list[int] = []
    while True:
        status, page = client.ask("GET", f"{kind.path}?{urlencode(options)}")
        if status != 200:
            return None
        pages.append(revision_of(page))
        objects |= objects_of(kind, page["items"])
        token = page["metadata"].get("continue")
        if not token:
            break
        options = {**selectors(scope), "limit": limit, "continue": token}
    read = Read(*reader, scope, promise, asked, began, time.monotonic(), pages[0], objects, pages=pages[1:] and pages)
    reading.reads.append(read)
    reading.saw(read.revision)
    return read


def read_object(
    reading: Reading, client: Client, reader: tuple[str, int], resource: str, name: str, promise: Promise
) -> Read | None:
    """Gets one object: its newest state, or any. Returns None if the server refuses. Raises what LOST lists."""
    kind, began = KINDS[resource], time.monotonic()
    status, obj = client.ask("GET", f"{kind.path}/{name}{'?resourceVersion=0' if promise == 'any' else ''}")
    if status not in (200, 404):
        return None
    objects = objects_of(kind, [obj] if status == 200 else [])
    read = Read(*reader, Scope(resource, name=name), promise, 0, began, time.monotonic(), 0, objects, is_get=True)
    reading.reads.append(read)
    for stored in objects.values():
        reading.saw(stored.revision)
    return read
