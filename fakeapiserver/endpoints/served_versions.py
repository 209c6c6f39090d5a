"""Conversions between the served versions of a kind, for admission and webhooks."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fakeapiserver.apimachinery.errors import new_internal_error
from fakeapiserver.apimachinery.gvk import GroupVersionKind, GroupVersionResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apis import conversion
from fakeapiserver.apis.resource_table import ResourceTable
from fakeapiserver.apis.scheme import APIResource
from fakeapiserver.endpoints.negotiation.type_meta import not_registered
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.registry.generic.kind import BuiltinKind, Kind

if TYPE_CHECKING:
    from fakeapiserver.apimachinery.managedfields.typed import TypedSchema


class ServedVersions:
    """Conversions and equivalent resources, for admission plugins (upstream: ObjectInterfaces, EquivalentResourceMapper)."""

    def __init__(self, scopes: RequestScopes) -> None:
        self._scopes = scopes
        # Valid for one generation of the table.
        self._others: dict[GroupVersionResource, tuple[APIResource, ...]] = {}
        self._generation = -1
        self._of_subresources: dict[GroupVersionKind, Kind | None] = {}

    def equivalents(
        self, resource: GroupVersionResource, kind: GroupVersionKind
    ) -> Sequence[tuple[GroupVersionResource, GroupVersionKind]]:
        table = self._scopes.table
        if self._generation != table.generation:
            self._others, self._generation = {}, table.generation
        if resource not in self._others:
            self._others[resource] = tuple(_equivalent_rows(table, resource))
        own = table.lookup(*resource)
        # A subresource's kind, such as Scale, is the same in every version.
        of_itself = own is not None and own.gvk == kind
        return [(row.gvr, row.gvk if of_itself else kind) for row in self._others[resource]]

    async def convert(self, obj: Object, kind: GroupVersionKind) -> Object:
        scope = self._scope(kind)
        store = scope.store if scope is not None else None
        if scope is None or store is None:
            return obj
        if scope.kind.custom:
            try:
                return await store.versions.settled(lambda: store.versions.in_version(obj, str(kind.group_version)), 0)
            except ValueError as error:
                raise new_internal_error(str(error)) from None
        converted = conversion.convert(obj, kind)
        scope.kind.decode(converted)
        return converted

    def arrange(self, obj: Object, kind: GroupVersionKind) -> Object:
        known = self._kind(kind)
        return obj if known is None else known.arrange(obj)

    def settle(self, obj: Object, kind: GroupVersionKind) -> list[str]:
        if (known := self._kind(kind)) is None:
            return []
        unknown = known.decode(obj)
        known.default(obj)
        return [] if known.custom else unknown

    def recognize(self, obj: Object, kind: GroupVersionKind) -> None:
        known = self._scopes.recognizes(kind)
        if known is None:
            raise ValueError(not_registered(kind))
        known.decode(dict(obj))

    def restore(self, obj: Object, kind: GroupVersionKind) -> None:
        known = self._kind(kind)
        if known is not None and not known.custom:
            known.settle(obj, {})
        else:
            self.settle(obj, kind)

    def resource_of(self, kind: GroupVersionKind) -> tuple[GroupVersionResource, bool] | None:
        row = self._scopes.table.for_kind(kind)
        return (row.gvr, row.namespaced) if row is not None else None

    def typed(self, kind: GroupVersionKind) -> "TypedSchema | None":
        scope = self._scope(kind)
        return scope.kind.typed if scope is not None else None

    def is_custom(self, kind: GroupVersionKind) -> bool:
        row = self._scopes.table.for_kind(kind)
        return row is not None and row.custom

    def _kind(self, kind: GroupVersionKind) -> Kind | None:
        """The kind of a served resource, or of a subresource such as Scale."""
        if (scope := self._scope(kind)) is not None:
            return scope.kind
        if kind not in self._of_subresources:
            resources = self._scopes.table.scheme.resources.values()
            subresource = (
                sub for row in resources for sub in row.subresources.values() if sub.gvk == kind and sub.definition
            )
            name = next((sub.definition for sub in subresource), "")
            definitions = self._scopes.table.scheme.definitions
            made = BuiltinKind(kind, name, definitions, lambda obj, version: None) if name else None
            self._of_subresources[kind] = made
        return self._of_subresources[kind]

    def _scope(self, kind: GroupVersionKind) -> RequestScope | None:
        row = self._scopes.table.for_kind(kind)
        return self._scopes.lookup(*row.gvr) if row is not None else None


def _equivalent_rows(table: ResourceTable, resource: GroupVersionResource) -> Iterator[APIResource]:
    own = table.lookup(*resource)
    if own is None:
        return
    for row in table:
        if row.custom != own.custom or row.gvr == own.gvr:
            continue
        if row.gvr.group_resource == own.gvr.group_resource if own.custom else _stored_alike(row, own):
            yield row


def _stored_alike(row: APIResource, other: APIResource) -> bool:
    return conversion.storage_gvk(row.gvk) == conversion.storage_gvk(other.gvk)
