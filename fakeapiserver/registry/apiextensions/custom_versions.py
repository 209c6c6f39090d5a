"""The versions of a custom resource: conversion by apiVersion alone (strategy None) or by a webhook, and pruning on the way.

Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/{conversion/nop_converter.go,customresource_handler.go
(schemaCoercingConverter, unstructuredDefaulter)}.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from fakeapiserver.apimachinery.gvk import GroupVersion, GroupVersionKind
from fakeapiserver.apimachinery.meta import Object, copied
from fakeapiserver.effort import computed
from fakeapiserver.registry.apiextensions.custom_kind import CustomKind
from fakeapiserver.registry.generic.canonical import Encoded, encode_custom
from fakeapiserver.registry.generic.versions import Versions

if TYPE_CHECKING:
    from fakeapiserver.registry.apiextensions.conversion import ConvertedStorage


class CustomVersions(Versions):
    """The versions of a custom resource, from one of them, `kind`.

    `kinds` has all versions of the definition, `stored` is the one that is written. With a conversion webhook, `view` is the
    storage as `kind` sees it, and there is nothing left to convert between the two. `refreshes`: objects may have been stored
    under another schema than the stored version's present one."""

    def __init__(
        self,
        kind: CustomKind,
        kinds: Mapping[str, CustomKind],
        stored: CustomKind,
        view: "ConvertedStorage | None",
        *,
        refreshes: bool,
    ) -> None:
        super().__init__(stored.gvk if view is None else view.gvk, self._kind_of, encode_custom)
        self.refreshes = refreshes and view is None
        self._kind = kind
        self._kinds = kinds
        self._stored = stored
        self._view = view

    def _kind_of(self, api_version: str) -> CustomKind:
        """Versions that aren't served any more count as well: their field managers keep their fields."""
        version = GroupVersion.parse(api_version)
        if version.group != self._stored.gvk.group:
            raise LookupError(api_version)
        return self._kinds[version.version]

    @property
    def stored_version(self) -> str:
        return self._stored.gvk.version

    def convert(self, obj: Object, gvk: GroupVersionKind) -> Object:
        if self._view is not None:
            return self._view.converter.at_once(obj, gvk)
        return {**obj, "apiVersion": str(gvk.group_version)}

    def converted(self, obj: Object, gvk: GroupVersionKind) -> Object:
        """Pruned, but not on the way to storage: such an object is validated in its own version first."""
        target = self.convert(obj, gvk)
        if self.refreshes and gvk != self._stored.gvk:
            target = copied(target)
            self._kinds[gvk.version].structural.prune(target)
        return target

    async def settled(self, step: Callable[[], Object], size: int) -> Object:
        return await (computed(step, size) if self._view is None else self._view.converter.settled(step, size))

    def refresh(self, obj: Object) -> None:
        self._stored.structural.prune(obj)
        self._stored.default(obj)

    def as_stored(self, obj: Object) -> Object:
        """Upstream stores what it has validated and restores it whenever it reads; here it is restored once, before it is stored."""
        if self.refreshes and self._kind is not self._stored:
            obj = copied(obj)
            self._stored.structural.prune(obj)
        (self._stored if self._view is None else self._kind).structural.restore(obj)
        return obj

    async def rehearsed(self, encoded: Encoded) -> Encoded:
        return encoded if self._view is None else await self._view.rehearsed(encoded)
