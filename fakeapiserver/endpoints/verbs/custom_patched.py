"""The document that a patch has made of a custom resource, on its way into its kind."""

from typing import TYPE_CHECKING

import msgspec

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.gvk import GroupVersion, GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.patch.texts import go_text
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.endpoints.negotiation.body import defaulted
from fakeapiserver.endpoints.negotiation.custom_body import about_metadata, unserved_fields
from fakeapiserver.endpoints.negotiation.refusals import type_meta_error
from fakeapiserver.endpoints.negotiation.type_meta import checked_type_meta
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.endpoints.verbs.builtin_patched import NO_OBJECT, invalid_patch
from fakeapiserver.endpoints.verbs.patch_types import PatchType

if TYPE_CHECKING:
    from fakeapiserver.apimachinery.schema.decoders import Empties


class CustomPatched:
    """`obj` is the document, which `decode` brings into its kind."""

    def __init__(self, change: PatchType, current: Object, scope: RequestScope) -> None:
        self.obj: Object = change.apply(current)
        self._scope = scope
        self._kind = scope.kind
        root = dict(self.obj) if isinstance(self.obj, dict) else self.obj
        # Encoded at once, since decoding changes what the document holds.
        self._text = msgspec.Raw(json.encode(change.written(current, root, None, {})))

    def decode(self, empties: "Empties") -> list[str]:
        if not isinstance(self.obj, dict):  # the patch was a list, which replaces the document
            raise self.invalid(NO_OBJECT)
        named = self._named_type()
        try:
            elsewhere = self._unknown_elsewhere(named) if named != self._kind.gvk else None
            unknown = self._kind.decode(self.obj, empties)
        except ValueError as error:
            raise self.invalid(str(error)) from None
        defaulted(self.obj, self._kind)
        return sorted(unknown) if elsewhere is None else elsewhere

    def invalid(self, why: str) -> StatusError:
        return invalid_patch(self._shown(), why)

    def _shown(self) -> str:
        return go_text(self._text).decode(errors="surrogateescape")

    def _named_type(self) -> GroupVersionKind:
        """Returns the type that the document names. Raises StatusError 422."""
        obj = self.obj
        has_null_version = obj.get("apiVersion", "") is None
        try:
            checked_type_meta(obj)
        except ValueError as error:
            raise self.invalid(type_meta_error(error)) from None
        if not obj.get("kind"):
            raise self.invalid(f"Object 'Kind' is missing in '{self._shown()}'")
        if has_null_version:
            raise self.invalid(".apiVersion accessor error: <nil> is of the type <nil>, expected string")
        return GroupVersionKind(*GroupVersion.parse(obj.get("apiVersion", "")), obj["kind"])

    def _unknown_elsewhere(self, named: GroupVersionKind) -> list[str]:
        """Returns the unknown fields of a document that names another type."""
        copy: Object = json.decode(json.encode(self.obj))
        if named.group_kind != self._kind.gvk.group_kind:
            return sorted(about_metadata(self._kind.decode(copy)))
        assert self._scope.store is not None
        try:
            return self._scope.store.versions.kind_in(str(named.group_version)).decode(copy)
        except LookupError:
            return unserved_fields(self.obj, self._kind)
