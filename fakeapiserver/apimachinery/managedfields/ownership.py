"""Taking fields from other managers, and the conflicts that stop an apply from doing so.

Upstream: sigs.k8s.io/structured-merge-diff/v6/merge (update.go, conflict.go); managedfields/internal/conflict.go, versionconverter.go.
"""

from collections.abc import Callable
from typing import Any

from fakeapiserver.apimachinery.managedfields.compare import Comparison, compare
from fakeapiserver.apimachinery.managedfields.emptied import emptied
from fakeapiserver.apimachinery.managedfields.entries import Managed, ManagerId
from fakeapiserver.apimachinery.managedfields.fieldset import (
    FieldSet,
    contains,
    difference,
    intersection,
    path_text,
    paths,
    recursive_difference,
    union,
)
from fakeapiserver.apimachinery.managedfields.schema_change import reconcile
from fakeapiserver.apimachinery.managedfields.typed import TypedSchema
from fakeapiserver.apimachinery.managedfields.validate import validate
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.schema.decoders import Empties

Convert = Callable[[Object, str], Object]


class Conflicts(Exception):
    """The fields that an apply would take from other managers: pairs of manager and path, managers in order."""

    def __init__(self, paths: list[tuple[ManagerId, tuple[str, ...]]]) -> None:
        super().__init__("apply conflicts")
        self.paths = paths

    def without(self, allowed: FieldSet) -> "Conflicts":
        return Conflicts([(key, path) for key, path in self.paths if not contains(allowed, path)])

    def causes(self) -> list[dict[str, str]]:
        return [
            {"reason": "FieldManagerConflict", "message": f"conflict with {key.shown()}", "field": path_text(path)}
            for key, path in self.paths
        ]

    def message(self) -> str:
        if len(self.paths) == 1:
            key, path = self.paths[0]
            return f"Apply failed with 1 conflict: conflict with {key.shown()}: {path_text(path)}"
        lines: list[str] = []
        previous = None
        for key, path in self.paths:
            if key != previous:
                lines.append(f"conflicts with {key.shown()}:")
                previous = key
            lines.append(f"- {path_text(path)}")
        return f"Apply failed with {len(self.paths)} conflicts: " + "\n".join(lines)


class Versions:
    """The versions managers wrote in: objects converted to them, their types, and what this write can't own."""

    def __init__(
        self,
        schema: TypedSchema,
        current: str,
        reset: FieldSet,
        convert: Convert | None,
        schema_of: Callable[[str], TypedSchema] | None,
        empties: Empties | None = None,
    ) -> None:
        self.schema, self.current, self._reset, self._empties = schema, current, reset, empties
        self._convert, self._schema_of = convert, schema_of

    def schema_of(self, version: str) -> TypedSchema:
        return self.schema if version == self.current or self._schema_of is None else self._schema_of(version)

    def convert(self, obj: Any, version: str, source: str = "", *, failure: str = "") -> Any:
        """The object in a version; `source` is the one it is in, if not the request's.

        Raises LookupError if the version is not served; ValueError, which begins with `failure`, if the object can't
        be converted or doesn't
        fit its type there, which allows no duplicates.
        """
        if obj is None or self._convert is None or version == (source or self.current):
            return obj
        try:
            converted = self._convert(obj, version)
        except ValueError as error:
            raise ValueError(f"{failure}{error}") from None
        if problem := validate(converted, self.schema_of(version)):
            raise ValueError(f"{failure}{problem}")
        return converted

    def owned(self, fields: FieldSet) -> FieldSet:
        """The fields without those this write can't set."""
        return recursive_difference(fields, self._reset) if self._reset else fields

    def compare(self, old: Object | None, new: Object, version: str) -> Comparison:
        before = self.convert(old, version, failure="failed to convert old object: ")
        after = self.convert(new, version, failure="failed to convert new object: ")
        result = compare(before, after, self.schema_of(version))
        if self._empties and version == self.current:
            added, modified, removed = result
            result = added, union(modified, emptied(self.schema, old, new, self._empties)), removed
        if not self._reset:
            return result
        added, modified, removed = result
        return self.owned(added), self.owned(modified), self.owned(removed)

    def reconciled(self, live: Object | None, managed: Managed) -> Managed:
        """The entries of versions still served, in terms of today's types."""
        out: Managed = {}
        for key, owned in managed.items():
            try:
                self.convert(live, owned.api_version)
                out[key] = owned.holding(reconcile(self.schema_of(owned.api_version).root, owned.fields))
            except LookupError:
                continue
        return out


def take_from_others(
    change: tuple[Object | None, Object], managed: Managed, versions: Versions, me: ManagerId, *, force: bool
) -> tuple[Managed, Comparison]:
    """The owners after `me` turned live into new, and what differs between the two. Conflicts: others own it, and no force."""
    live, new = change
    mine = versions.compare(live, new, versions.current)
    compared = {versions.current: mine}
    conflicts: dict[ManagerId, FieldSet] = {}
    out: Managed = {}
    for key, owned in managed.items():
        if key == me:
            out[key] = owned
            continue
        version = owned.api_version
        if version not in compared:
            try:
                compared[version] = versions.compare(live, new, version)
            except LookupError:
                continue
        added, modified, removed = compared[version]
        taken = intersection(owned.fields, union(modified, added)) if modified or added else {}
        if taken:
            conflicts[key] = taken
        fields = difference(difference(owned.fields, taken), removed) if taken or removed else owned.fields
        if fields:
            out[key] = owned.holding(fields)
    if conflicts and not force:
        ordered = sorted(conflicts, key=ManagerId.text)
        raise Conflicts([(key, path) for key in ordered for path in paths(conflicts[key])])
    if me in out and not out[me].fields:
        del out[me]
    return out, mine
