"""Writes whose client goes away between any two turns of the event loop: they happen whole or not at all, and leave no task behind."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from conformance.robustness.guarantees.guarantee import Report
from conformance.robustness.guarantees.in_process import Exchange, serving
from fakeapiserver.server.apiserver import APIServer

_PATH: Final = "/api/v1/namespaces/default/configmaps"
_MERGE: Final = "application/merge-patch+json"
_STRATEGIC: Final = "application/strategic-merge-patch+json"
_JSON_PATCH: Final = "application/json-patch+json"
_APPLY: Final = "application/apply-patch+yaml"
# Turns after which a request that is not cancelled has ended.
_MOST_TURNS: Final = 10_000
_SETTLED: Final = 200  # turns in which watches get their events


class _Write(Struct, frozen=True):
    """A write of an object, which `exists` before it or not. `value` of the object's data afterwards, None for no object."""

    method: str
    exists: bool
    value: str | None
    target: Callable[[str], str] = lambda name: f"{_PATH}/{name}"
    body: Callable[[str], object] = lambda name: None
    content_type: str = ""


def _object(name: str, value: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"of": name}},
        "data": {"v": value},
    }


_WRITES: Final[Mapping[str, _Write]] = {
    "create": _Write("POST", False, "new", lambda _: _PATH, lambda name: _object(name, "new")),
    "update": _Write("PUT", True, "new", body=lambda name: _object(name, "new")),
    "merge patch": _Write("PATCH", True, "new", body=lambda _: {"data": {"v": "new"}}, content_type=_MERGE),
    "strategic patch": _Write("PATCH", True, "new", body=lambda _: {"data": {"v": "new"}}, content_type=_STRATEGIC),
    "JSON patch": _Write(
        "PATCH",
        True,
        "new",
        body=lambda _: [{"op": "replace", "path": "/data/v", "value": "new"}],
        content_type=_JSON_PATCH,
    ),
    "apply": _Write(
        "PATCH",
        True,
        "new",
        lambda name: f"{_PATH}/{name}?fieldManager=m&force=true",
        lambda name: _object(name, "new"),
        _APPLY,
    ),
    "apply of a new object": _Write(
        "PATCH", False, "new", lambda name: f"{_PATH}/{name}?fieldManager=m", lambda name: _object(name, "new"), _APPLY
    ),
    "delete": _Write("DELETE", True, None),
    "delete of a collection": _Write("DELETE", True, None, lambda name: f"{_PATH}?labelSelector=of%3D{name}"),
}


def cancellations(full: bool) -> Report:
    """Cancels each kind of write after each number of turns: 100 times in full, once for CI."""
    return asyncio.run(_cancellations(100 if full else 1))


async def _cancellations(rounds: int) -> Report:
    problems, cancelled, happened = list[str](), 0, 0
    async with serving() as api:
        await _one(api, _WRITES["create"], "warm", _MOST_TURNS)
        await asyncio.sleep(0)
        tasks = len(asyncio.all_tasks())
        for number in range(rounds):
            for kind, write in _WRITES.items():
                for turns in range(_MOST_TURNS):
                    name = f"{kind.replace(' ', '-').lower()}-{number}-{turns}"
                    was_cancelled, wrong, has_happened = await _one(api, write, name, turns)
                    problems += [f"{kind}, cancelled after {turns} turns: {text}" for text in wrong]
                    cancelled += was_cancelled
                    happened += was_cancelled and has_happened
                    if not was_cancelled:
                        break
        left = len(asyncio.all_tasks()) - tasks
    if left > 0:
        problems.append(f"{left} tasks are left")
    return Report({"cancelled writes": f"{cancelled:,}", "... of which happened": f"{happened:,}"}, problems)


async def _one(api: APIServer, write: _Write, name: str, turns: int) -> tuple[bool, list[str], bool]:
    """Returns whether the write was cancelled, problems, and whether it happened."""
    if write.exists:
        status, answer = await Exchange(api, "POST", _PATH, _object(name, "old")).run()
        if status != 201:
            return False, [f"{status} {answer}"], False
    _, listed = await Exchange(api, "GET", f"{_PATH}?limit=1").run()
    start = int(listed["metadata"]["resourceVersion"])
    watch = Exchange(api, "GET", f"{_PATH}?watch=1&resourceVersion={start}&timeoutSeconds=600")
    watching = asyncio.create_task(watch.run())
    writing = asyncio.create_task(
        Exchange(api, write.method, write.target(name), write.body(name), write.content_type).run()
    )
    for _ in range(turns):
        if writing.done():
            break
        await asyncio.sleep(0)
    was_cancelled = writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)
    for _ in range(_SETTLED):
        await asyncio.sleep(0)
    status, stored = await Exchange(api, "GET", f"{_PATH}/{name}").run()
    for _ in range(_SETTLED):
        if watch.events or not was_cancelled:
            break
        await asyncio.sleep(0)
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    wrong = _wrong(write, status, stored, watch.events)
    await Exchange(api, "DELETE", f"{_PATH}/{name}").run()
    return was_cancelled, wrong, bool(watch.events)


def _wrong(write: _Write, status: int, stored: Any, events: list[Any]) -> list[str]:
    """Compares the object and the events with those of a write that has happened, or hasn't."""
    value = stored["data"]["v"] if status == 200 else None
    before = "old" if write.exists else None
    if not events:
        return [] if value == before else [f"the object is {value!r}, but no watch has seen it"]
    if len(events) > 1:
        return [f"{len(events)} events of one write"]
    expected = "DELETED" if write.value is None else "MODIFIED" if write.exists else "ADDED"
    wrong = [] if value == write.value else [f"a watch has seen the write, but the object is {value!r}"]
    if events[0]["type"] != expected:
        wrong.append(f"the event is {events[0]['type']}, not {expected}")
    if value is not None and events[0]["object"] != stored:
        wrong.append("the event has another object than the server")
    return wrong
