"""A write as managedFields see it: who writes which version of an object, with which types, at which time."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct

from fakeapiserver.apimachinery.managedfields.entries import ManagerId, manager_id
from fakeapiserver.apimachinery.managedfields.fieldset import FieldSet, insert
from fakeapiserver.apimachinery.managedfields.ownership import Convert, Versions
from fakeapiserver.apimachinery.managedfields.typed import TypedSchema
from fakeapiserver.apimachinery.schema.decoders import Empties

ResetFields = Mapping[str, Any] | Iterable[str]


class Operation(Struct, frozen=True):
    """A write by `manager` in `api_version`, whose type is `schema`.

    now: RFC3339; None makes entries without a time. reset_fields: what this write can't set, as a field set or as dotted paths.
    convert: returns an object in the version that another manager wrote; raises LookupError if that version is gone. schema_of: returns
    that version's type.
    """

    schema: TypedSchema
    manager: str
    api_version: str
    subresource: str = ""
    now: str | None = None
    reset_fields: ResetFields | None = None
    convert: Convert | None = None
    schema_of: Callable[[str], TypedSchema] | None = None

    def versions(self, empties: Empties | None = None) -> Versions:
        return Versions(
            self.schema, self.api_version, reset_set(self.reset_fields), self.convert, self.schema_of, empties or {}
        )

    def entry(self, operation: str, manager: str = "") -> ManagerId:
        """Returns the identity of the manager's entry for `operation`: Apply or Update."""
        return manager_id(manager or self.manager, operation, self.api_version, self.subresource)


def reset_set(reset_fields: ResetFields | None) -> FieldSet:
    """Returns the field set of dotted paths (`spec`, `metadata.deletionTimestamp`); a field set is returned as it is."""
    if not reset_fields:
        return {}
    if isinstance(reset_fields, Mapping):
        return dict(reset_fields)
    fields: FieldSet = {}
    for path in reset_fields:
        insert(fields, tuple("f:" + name for name in path.split(".")))
    return fields
