"""managedFields on the wire and as the managers compute with them.

Upstream: k8s.io/apimachinery/pkg/util/managedfields/internal/managedfields.go, capmanagers.go.
"""

from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.managedfields.fieldset import FieldSet, canonical, in_order, union
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.schema.scalars import parse_time

APPLY: Final = "Apply"
UPDATE: Final = "Update"
MAX_UPDATE_MANAGERS: Final = 10
_ANCIENT: Final = "ancient-changes"
_TEXTS: Final = ("manager", "operation", "apiVersion", "fieldsType", "subresource")


class ManagerId(NamedTuple):
    """An owner: an applier is the same one in every version (api_version empty), an updater is not."""

    manager: str
    operation: str
    api_version: str
    subresource: str

    def text(self) -> str:
        """The identifier upstream sorts by."""
        fields = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "subresource": self.subresource,
        }
        return msgspec.json.encode({key: value for key, value in fields.items() if value}).decode()

    def shown(self) -> str:
        """The manager's name in a conflict."""
        text = go_quote(self.manager)
        if self.subresource:
            text += f" with subresource {go_quote(self.subresource)}"
        return f"{text} using {self.api_version}" if self.operation == UPDATE else text


class Owned(Struct, frozen=True):
    """The fields of one manager. `time` is RFC3339 or None; `stored` means that `fields` is as it was stored."""

    fields: FieldSet
    api_version: str
    time: str | None = None
    stored: bool = False

    def holding(self, fields: FieldSet) -> "Owned":
        return self if fields is self.fields else Owned(fields, self.api_version, self.time)


Managed = dict[ManagerId, Owned]


def manager_id(manager: str, operation: str, api_version: str, subresource: str) -> ManagerId:
    return ManagerId(manager or "unknown", operation, "" if operation == APPLY else api_version, subresource)


def decode(entries: Any, *, trusted: bool) -> Managed:
    """Entries by manager. `trusted`: they come from the store, not from a client. ValueError: they are not managedFields."""
    out: Managed = {}
    for i, entry in enumerate(entries or ()):
        operation, version = entry.get("operation", ""), entry.get("apiVersion", "")
        if operation not in (APPLY, UPDATE):
            raise ValueError("operation must be `Apply` or `Update`")
        if not version:
            raise ValueError("apiVersion must not be empty")
        if (fields_type := entry.get("fieldsType", "")) != "FieldsV1":
            raise ValueError(
                f"invalid fieldsType {go_quote(fields_type)} in managed fields entry {i}"
                if fields_type
                else f"missing fieldsType in managed fields entry {i}"
            )
        fields = entry.get("fieldsV1") or {}
        key = ManagerId(
            entry.get("manager", ""), operation, "" if operation == APPLY else version, entry.get("subresource", "")
        )
        out[key] = Owned(fields if trusted else canonical(fields), version, entry.get("time"), stored=trusted)
    return out


def are_readable(entries: Any) -> bool:
    """Reports whether managedFields of a map are a list of entries: what can't be read counts as none (upstream:
    Unstructured.GetManagedFields).
    """
    return isinstance(entries, list) and all(map(_is_readable, entries))


def _is_readable(entry: Any) -> bool:
    if not isinstance(entry, dict):
        return False
    time = entry.get("time")
    if time is not None:
        try:
            parse_time(time)
        except (TypeError, ValueError):
            return False
    return all(isinstance(entry.get(name, ""), str | None) for name in _TEXTS)


def encode(managed: Managed) -> list[Object]:
    """The entries in upstream's order, each with its fields in order."""
    return [_encode_one(key, owned) for key, owned in sorted(managed.items(), key=_entry_order)]


def _encode_one(key: ManagerId, owned: Owned) -> Object:
    entry: Object = {
        "manager": key.manager,
        "operation": key.operation,
        "apiVersion": owned.api_version,
        "time": owned.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": owned.fields if owned.stored else in_order(owned.fields),
        "subresource": key.subresource,
    }
    if owned.time is None:
        del entry["time"]
    if not key.subresource:
        del entry["subresource"]
    if not key.manager:
        del entry["manager"]
    return entry


def _entry_order(item: tuple[ManagerId, Owned]) -> tuple[str, float, str, str, str]:
    key, owned = item
    return key.operation, _seconds(owned.time), key.manager, owned.api_version, key.subresource


def _seconds(time: str | None) -> float:
    """Whole seconds of an RFC3339 time; 0 for none or one that can't be read."""
    try:
        return datetime.fromisoformat(time).timestamp() // 1 if time else 0
    except ValueError:
        return 0


def cap_update_managers(managed: Managed) -> Managed:
    """Joins the oldest updaters of a version to one until no more than MAX_UPDATE_MANAGERS are left."""
    updaters = [key for key in managed if key.operation == UPDATE]
    surplus = len(updaters) - MAX_UPDATE_MANAGERS
    if surplus <= 0:
        return managed
    out = dict(managed)
    first: dict[str, ManagerId] = {}
    for key in sorted(updaters, key=lambda key: (_seconds(managed[key].time), key.text())):
        if surplus <= 0:
            break
        owned = out[key]
        bucket = manager_id(_ANCIENT, UPDATE, owned.api_version, "")
        if owned.api_version not in first:
            first[owned.api_version] = key
            continue
        if bucket not in out:
            out[bucket] = out.pop(first[owned.api_version])
        joined = union(owned.fields, out[bucket].fields)
        del out[key]
        out[bucket] = Owned(joined, owned.api_version, owned.time)
        surplus -= 1
    return out
