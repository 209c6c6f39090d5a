"""Random writes by several managers, held against a model of ownership that knows nothing of schemas: a map of keys, and who owns them."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.managedfields import Operation, apply, update
from fakeapiserver.apimachinery.managedfields.typed import DEDUCED

Object = dict[str, Any]
Owner = tuple[str, str]
VERSION = "example.com/v1"
KEYS, VALUES = st.sampled_from("abcd"), st.sampled_from("12")
CONTENT = st.dictionaries(KEYS, VALUES, max_size=3)
MANAGERS = st.sampled_from(("kim", "lee", "mo"))
APPLIES = st.tuples(st.just("Apply"), MANAGERS, CONTENT, st.booleans())
UPDATES = st.tuples(st.just("Update"), MANAGERS, CONTENT, st.just(True))


class Conflict(Exception):
    """Raised if another manager owns a field that an apply would change."""


@dataclass
class Model:
    """A model of ownership: the map's values, and each owner's keys."""

    values: dict[str, str] = field(default_factory=dict)
    owners: dict[Owner, set[str]] = field(default_factory=dict)

    def write(self, operation: str, manager: str, content: dict[str, str], force: bool) -> None:
        owner = (manager, operation)
        if operation == "Apply":
            self._apply(owner, content, force)
        else:
            self._update(owner, content)
        self.owners = {owner: keys for owner, keys in self.owners.items() if keys}

    def _apply(self, owner: Owner, content: dict[str, str], force: bool) -> None:
        changed = {key for key in content if self.values.get(key) != content[key]}
        others = {other: keys for other, keys in self.owners.items() if other != owner}
        if not force and any(keys & changed for keys in others.values()):
            raise Conflict
        for keys in others.values():
            keys.difference_update(changed)
        given_up = self.owners.get(owner, set()) - content.keys()
        orphans = given_up - set().union(*others.values())
        self.values = {key: value for key, value in (self.values | content).items() if key not in orphans}
        self.owners[owner] = set(content)

    def _update(self, owner: Owner, content: dict[str, str]) -> None:
        changed = {key for key in content if self.values.get(key) != content[key]}
        for keys in self.owners.values():
            keys.difference_update(changed)
            keys.intersection_update(content)
        self.owners[owner] = self.owners.get(owner, set()) | changed
        self.values = dict(content)


def written(live: Object | None, operation: str, manager: str, content: dict[str, str], force: bool) -> Object:
    """The real thing's next object."""
    meta: Object = {"name": "x", **({"uid": "1"} if live else {})}
    obj: Object = {"apiVersion": VERSION, "kind": "Map", "metadata": meta, "data": dict(content)}
    write = Operation(DEDUCED, manager, VERSION)
    stored = apply(live, obj, write, force=force) if operation == "Apply" else update(live, obj, write)
    # The null that is left where an apply takes the last key out would be dropped by a Go type's decoder.
    return {**stored, "data": stored.get("data") or {}, "metadata": {**stored["metadata"], "uid": "1"}}


def owners_of(obj: Object) -> dict[Owner, set[str]]:
    """The keys of `data` that each entry owns, without entries that own none."""
    found = {}
    for entry in obj["metadata"].get("managedFields", ()):
        keys = {key[2:] for key in entry["fieldsV1"].get("f:data", {}) if key != "."}
        if keys:
            found[entry["manager"], entry["operation"]] = keys
    return found


@settings(max_examples=300)
@given(CONTENT, st.lists(st.one_of(APPLIES, UPDATES), max_size=8))
def test_owners_and_values_follow_the_model(first: dict[str, str], writes: list[tuple[str, str, Any, bool]]) -> None:
    model = Model()
    model.write("Apply", "first", first, False)
    live = written(None, "Apply", "first", first, False)
    for operation, manager, content, force in writes:
        try:
            model.write(operation, manager, content, force)
        except Conflict:
            with pytest.raises(StatusError, match="conflict"):
                written(live, operation, manager, content, force)
        else:
            live = written(live, operation, manager, content, force)
        assert (live.get("data") or {}) == model.values
        if live["metadata"].get("managedFields"):
            assert owners_of(live) == model.owners


@settings(max_examples=100)
@given(CONTENT, st.lists(UPDATES, max_size=3), CONTENT)
def test_applying_twice_changes_nothing(first: dict[str, str], writes: list[Any], content: dict[str, str]) -> None:
    live = written(None, "Update", "first", first, True)
    for write in writes:
        live = written(live, *write)
    once = written(live, "Apply", "kim", content, True)
    assert written(once, "Apply", "kim", content, False) == once


@settings(max_examples=100)
@given(CONTENT, CONTENT)
def test_what_a_manager_owns_can_be_taken_out_and_applied_again(mine: dict[str, str], theirs: dict[str, str]) -> None:
    live = written(written(None, "Apply", "lee", theirs, False), "Apply", "kim", mine, True)
    extracted = {key: live["data"][key] for key in owners_of(live).get(("kim", "Apply"), ())}
    assert extracted == mine
    assert written(live, "Apply", "kim", extracted, False) == live
