"""A state machine of a storage beside a model, a dictionary and a log of every state: hypothesis chooses the steps."""

import asyncio
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Final

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from conformance.robustness.guarantees.guarantee import Report
from fakeapiserver.storage.file.database import Database, Facts
from fakeapiserver.storage.file.file_storage import FileStorage
from fakeapiserver.storage.interface import Backend, Event, KeyExists, KeyNotFound, ListQuery, StoredObject, Watcher
from fakeapiserver.storage.memory import MemoryStorage
from fakeapiserver.storage.mvcc import MVCC
from fakeapiserver.testing import storage_suite as suite

# Steps of one storage.
_STEPS: Final = 50


async def _drained(watcher: Watcher) -> list[Event]:
    """Returns the events so far, which are there without waiting."""
    events: list[Event] = []
    while batch := await watcher.next_batch(0.0):
        events += batch
    return events


class MemoryMachine(RuleBasedStateMachine):
    """Creates, updates, deletes, lists and watches at random, beside a dictionary and a log of every state. `steps` counts those of all."""

    steps = 0
    keys: Bundle[str] = Bundle("keys")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.storage = self.make()
        self.now: dict[str, StoredObject] = {}
        self.states: dict[int, dict[str, StoredObject]] = {self.storage.revision: {}}
        self.watches: list[tuple[int, bool, Any, list[Event]]] = []

    def make(self) -> Backend:
        return MemoryStorage()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    def teardown(self) -> None:
        for start, selects, watcher, seen in self.watches:
            self.check_watch(start, selects, seen + self.run(_drained(watcher)))
        self.loop.close()

    def wrote(self) -> None:
        assert self.storage.revision == max(self.states) + 1
        self.states[self.storage.revision] = dict(self.now)

    @rule(target=keys, name=st.sampled_from("abcd"), note=st.sampled_from(["in", "out"]))
    def create(self, name: str, note: str) -> str:
        key = f"{suite.PODS}default/{name}"
        try:
            self.now[key] = self.run(suite.create(self.storage, name, note))
            assert len(self.now) == len(self.states[max(self.states)]) + 1
            self.wrote()
        except KeyExists:
            assert key in self.now
        return key

    @rule(key=keys, note=st.sampled_from(["in", "out"]))
    def update(self, key: str, note: str) -> None:
        if key in self.now:
            self.now[key] = self.run(suite.update(self.storage, self.now[key], note))
            self.wrote()

    @rule(key=keys)
    def delete(self, key: str) -> None:
        try:
            gone = self.run(self.storage.delete(key))
            assert gone.mod_revision == self.storage.revision
            del self.now[key]
            self.wrote()
        except KeyNotFound:
            assert key not in self.now

    @rule(back=st.integers(0, 8), selects=st.booleans())
    def watch(self, back: int, selects: bool) -> None:
        start = max(self.storage.revision - back, 1)
        predicate = (lambda item: item.index.labels["note"] == "in") if selects else None
        self.watches.append((start, selects, self.storage.watch(suite.PODS, revision=start, predicate=predicate), []))

    @rule(back=st.integers(0, 8), limit=st.integers(0, 3))
    def list_in_the_past(self, back: int, limit: int) -> None:
        revision = max(self.storage.revision - back, 1)
        page = self.run(self.storage.list(suite.PODS, ListQuery(revision=revision, limit=limit)))
        expected = [self.states[revision][key] for key in sorted(self.states[revision])]
        assert page.items == (expected[:limit] if limit else expected)
        assert page.more == bool(limit and len(expected) > limit)

    @invariant()
    def what_is_stored_is_what_was_written(self) -> None:
        type(self).steps += 1
        listed = self.storage.list_now(suite.PODS)
        assert {item.key: item for item in listed.items} == self.now

    def check_watch(self, start: int, selects: bool, events: list[Event]) -> None:
        """Applied to the state it started at, the events give the newest state: nothing lost, repeated or out of order."""

        def seen(item: StoredObject) -> bool:
            return not selects or item.index.labels["note"] == "in"

        state = {key: item for key, item in self.states[start].items() if seen(item)}
        last = start
        for event in events:
            assert event.revision > last
            last = event.revision
            assert (event.object.key in state) == (event.type != "ADDED")
            if event.type == "DELETED":
                del state[event.object.key]
            else:
                state[event.object.key] = event.object
            assert state == {key: item for key, item in self.states[last].items() if seen(item)}
        assert state == {key: item for key, item in self.now.items() if seen(item)}


class FileMachine(MemoryMachine):
    """The same with a data directory, whose objects are compared with those in memory at the end."""

    steps = 0

    def make(self) -> Backend:
        self.folder = tempfile.TemporaryDirectory(prefix="robustness-")
        self.database = Database(Path(self.folder.name), "off")
        self.database.replace(MVCC(), 0.0, Facts("v1.37", b"{}"))
        self.file_storage = FileStorage(self.database, lambda: 0.0, self.database.load())
        self.file_storage.resume()
        return self.file_storage

    def teardown(self) -> None:
        try:
            assert self.run(self.file_storage.differences()) == []
            self.run(self.file_storage.finish())
        finally:
            super().teardown()
            self.database.close()
            self.folder.cleanup()


def state_machine(full: bool) -> Report:
    """At least 500,000 steps of the memory and 50,000 of the file in full, 2,000 and 500 for CI."""
    problems, figures = list[str](), dict[str, str]()
    for name, machine, steps in (
        ("memory", MemoryMachine, 500_000 if full else 2_000),
        ("file", FileMachine, 50_000 if full else 500),
    ):
        chosen = settings(
            max_examples=min(steps // _STEPS, 1_000),
            stateful_step_count=_STEPS,
            deadline=None,
            database=None,
            suppress_health_check=[*HealthCheck],
        )
        try:
            while machine.steps < steps and not problems:
                run_state_machine_as_test(machine, settings=chosen)
        except AssertionError as error:
            problems.append(f"{name}: {error!r}")
        figures[f"steps, {name}"] = f"{machine.steps:,}"
    return Report(figures, problems)
