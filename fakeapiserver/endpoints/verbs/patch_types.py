"""The types of patches: each is a function of the current object, and shows the document that upstream decodes.

Upstream: k8s.io/apiserver/pkg/endpoints/handlers/patch.go (jsonPatcher, smpPatcher).
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

from msgspec import Struct

from fakeapiserver.apimachinery.depth import continued
from fakeapiserver.apimachinery.errors import new_bad_request
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.patch import json as json_patch
from fakeapiserver.apimachinery.patch import merge as merge_patch
from fakeapiserver.apimachinery.patch import strategic
from fakeapiserver.apimachinery.patch.go_format import go_value
from fakeapiserver.apimachinery.patch.texts import go_text
from fakeapiserver.apimachinery.schema.resolve import Definitions, Schema
from fakeapiserver.endpoints.negotiation.documents import decode_document
from fakeapiserver.endpoints.negotiation.media_types import JSON
from fakeapiserver.endpoints.negotiation.type_meta import GO_NAMES
from fakeapiserver.endpoints.verbs import patched_text
from fakeapiserver.registry.generic.kind import Kind


class PatchType(Protocol):
    """`complaints` are the texts of the patch's duplicate fields; `makes_map`: upstream decodes the result from a map, not from a
    text; `sorts_keys`: from a text that has gone through Go's maps."""

    complaints: Sequence[str]
    makes_map: ClassVar[bool]
    sorts_keys: ClassVar[bool]

    def apply(self, current: Object) -> Any:
        """Returns the patched document: mostly an object. Raises StatusError 400, 422."""

    def written(self, current: Object, patched: Any, definition: Schema | None, definitions: Definitions) -> Any:
        """Returns the document as messages show it: in the order of its text, and with the numbers and strings that the patch has
        there.
        """

    def shown(self, written: Any) -> str:
        """Returns the text of `written`."""


class JSONPatch(Struct):
    """RFC 6902."""

    makes_map: ClassVar[bool] = False
    sorts_keys: ClassVar[bool] = False

    operations: Sequence[json_patch.Operation]
    complaints: Sequence[str]

    @classmethod
    def read(cls, data: bytes, validation: str) -> "JSONPatch":
        """Raises StatusError 400."""
        return cls(json_patch.decode(data, field_validation=validation), json_patch.complaints(data))

    def apply(self, current: Object) -> Any:
        return json_patch.apply(current, self.operations)

    def written(self, current: Object, patched: Any, definition: Schema | None, definitions: Definitions) -> Any:
        operations = patched_text.operations_as_written(self.operations)
        return patched_text.ordered(patched, operations, current, definition, definitions)

    def shown(self, written: Any) -> str:
        return go_text(written).decode(errors="surrogateescape")


class MergePatch(Struct):
    """RFC 7386. `document` may be a list with field validation Ignore."""

    makes_map: ClassVar[bool] = False
    sorts_keys: ClassVar[bool] = True

    document: Any
    complaints: Sequence[str]
    text: bytes

    @classmethod
    def read(cls, data: bytes, validation: str) -> "MergePatch":
        """Raises StatusError 400."""
        # With Ignore a merge patch isn't decoded before it is applied: only what applies it complains, and takes lists.
        is_unseen = validation == "Ignore"
        try:
            document, complaints = decode_document(data, JSON)
        except ValueError as error:
            raise new_bad_request("Invalid JSON Patch" if is_unseen else f"error decoding patch: {error}") from None
        if document is None or (is_unseen and not isinstance(document, dict | list)):
            raise new_bad_request("Invalid JSON Patch")
        if not isinstance(document, dict) and not is_unseen:
            raise new_bad_request(f"error decoding patch: {_no_map(document)}")
        return cls(document, complaints, data)

    def apply(self, current: Object) -> Any:
        return merge_patch.apply(current, self.document)

    def written(self, current: Object, patched: Any, definition: Schema | None, definitions: Definitions) -> Any:
        if (written := patched_text.as_written(self.text, None)) is not None:
            patched = merge_patch.apply(current, written)
        return patched_text.ordered(patched, patched_text.operations_as_written(()), current, definition, definitions)

    def shown(self, written: Any) -> str:
        return go_text(written).decode(errors="surrogateescape")


class StrategicMergePatch(Struct):
    """Merges lists by the keys that the kind's schema names."""

    makes_map: ClassVar[bool] = True
    sorts_keys: ClassVar[bool] = False

    document: Object
    complaints: Sequence[str]
    kind: Kind

    @classmethod
    def read(cls, data: bytes, kind: Kind) -> "StrategicMergePatch":
        """Raises StatusError 400."""
        try:
            document, complaints = decode_document(data, JSON)
        except ValueError as error:
            raise new_bad_request(str(error)) from None
        if document is not None and not isinstance(document, dict):
            raise new_bad_request(_no_map(document))
        return cls(document or {}, complaints, kind)

    def apply(self, current: Object) -> Any:
        return strategic.apply(current, self.document, self.kind.definition, self.kind.definitions)

    def written(self, current: Object, patched: Any, definition: Schema | None, definitions: Definitions) -> Any:
        """Returns what merging has left of the patch."""
        return _merged_away(self.document, current)

    def shown(self, written: Any) -> str:
        return go_value(written)


def _no_map(document: Any) -> str:
    return f"json: cannot unmarshal {GO_NAMES[type(document)]} into Go value of type map[string]interface {{}}"


def _merged_away(patch: Object, current: Object) -> Object:
    """Returns what merging leaves of a patch: no nulls in values that are new to the object, or have another type there.

    Those in lists stay.
    """
    try:
        return {
            key: item
            if item is None or (isinstance(item, list) and isinstance(current.get(key), list))
            else _merged_away(item, current[key])
            if isinstance(item, dict) and isinstance(current.get(key), dict)
            else merge_patch.without_nulls(item)
            for key, item in patch.items()
        }
    except RecursionError:
        return continued(_merged_away, patch, current)
