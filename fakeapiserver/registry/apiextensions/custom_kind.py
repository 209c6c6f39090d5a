"""A custom resource's kind: the same interface as a built-in kind's, from the schema in its CustomResourceDefinition.

Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go, pkg/registry/customresource.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import msgspec

from fakeapiserver.apimachinery.field import ErrorList, Path, invalid
from fakeapiserver.apimachinery.gvk import GroupVersion, GroupVersionKind
from fakeapiserver.apimachinery.managedfields.typed import structural_schema
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.schema import structural as structural_module
from fakeapiserver.apimachinery.schema.resolve import Definitions, Schema
from fakeapiserver.apimachinery.serializer.json import go_float, sorted_keys
from fakeapiserver.apis.custom_schema import CustomSchema
from fakeapiserver.apis.recorded import NEWEST
from fakeapiserver.registry.apiextensions import object_meta
from fakeapiserver.registry.generic.canonical import Encoded, encode_custom

if TYPE_CHECKING:
    from fakeapiserver.apimachinery.managedfields.typed import TypedSchema
    from fakeapiserver.apimachinery.schema.builtin import BuiltinType
    from fakeapiserver.apimachinery.schema.decoders import Empties
    from fakeapiserver.apimachinery.schema.structural import StructuralType
    from fakeapiserver.registry.generic.kind import KnownSpecs
    from fakeapiserver.registry.generic.legacy_messages import Reword

# In a message: an integer that int64 can't hold.
_LONG_NUMBER: Final = re.compile(r"number (-?[0-9]{19,}) ")


class CustomKind:
    """`schema` is the version's openAPIV3Schema, unpacked and compiled on first use; `definitions` are the server's own (for
    ObjectMeta)."""

    custom = True
    also_accepts: Sequence[GroupVersion] = ()
    reword: "Reword | None" = None
    known_specs: "KnownSpecs | None" = None
    definition_name = ""
    raw_fields = ()

    def __init__(
        self, gvk: GroupVersionKind, schema: CustomSchema, definitions: Definitions, version: str = NEWEST
    ) -> None:
        """`version`: Kubernetes's, whose rules the schema's checks follow."""
        self.gvk = gvk
        self._kubernetes = version
        self.definitions = definitions
        self._packed = schema
        self.versions: Mapping[str, CustomKind] = {}

    @cached_property
    def definition(self) -> Schema:
        return self._packed.unpacked()

    @cached_property
    def structural(self) -> "StructuralType":
        return structural_module.compile_structural(self.definition, self._metadata.decode, self._kubernetes)

    @cached_property
    def _metadata(self) -> "BuiltinType":
        return object_meta.object_meta()

    @cached_property
    def typed(self) -> "TypedSchema":
        return structural_schema(self.definition, self.definitions)

    def decode(self, obj: Object, empties: "Empties | None" = None, *, from_map: bool = False) -> list[str]:
        """Metadata as every kind's, the rest pruned to the schema."""
        meta: Any = obj.get("metadata")
        unknown: list[str] = []
        if meta is not None:
            try:
                decoded = self._metadata.decode(meta)
            except ValueError as error:
                raise ValueError(self._metadata_problem(meta) or str(error)) from None
            unknown = [text.replace('unknown field "', 'unknown field "metadata.', 1) for text in decoded]
        return unknown + self.structural.prune(obj)

    def _metadata_problem(self, meta: Any) -> str:
        """The first problem in the order of the map that upstream makes of metadata, whose numbers are formatted again."""
        try:
            self._metadata.decode(msgspec.json.decode(msgspec.json.encode(meta, order="deterministic")))
        except ValueError as error:
            return _LONG_NUMBER.sub(lambda match: f"number {go_float(float(match[1]))} ", str(error))
        return ""

    def settle(self, obj: Object, empties: "Empties") -> None:
        """Keeps nulls in place of emptied maps and lists, for validation to refuse."""
        self._metadata.decode(obj.setdefault("metadata", {}))
        self.structural.coerce(obj)
        self.structural.default(obj)

    def default(self, obj: Object) -> None:
        """An object that names another kind gets no defaults, because it is going to be refused."""
        if obj.get("kind") == self.gvk.kind:
            self.structural.default(obj)

    def type_errors(self, obj: Object) -> ErrorList:
        """The errors for an object of another kind."""
        if obj.get("kind") == self.gvk.kind:
            return []
        return [invalid(Path("kind"), obj.get("kind"), f"must be {self.gvk.kind}")]

    def validate(self, obj: Object, old: Object | None) -> ErrorList:
        """No errors: the strategy validates, because it knows whether the whole object is written or its status."""
        return []

    def arrange(self, obj: Object) -> Object:
        arranged: Object = sorted_keys(obj)
        return arranged

    def encode(self, obj: Object) -> Encoded:
        return encode_custom(obj)
