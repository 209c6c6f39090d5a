"""A kind as one version serves it: how its bodies are decoded, defaulted and checked, and its fields owned.

Built-in kinds and custom resources differ here and in their strategy, nowhere else (one resource path).
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from fakeapiserver.apimachinery.field import ErrorList
from fakeapiserver.apimachinery.gvk import GroupVersion, GroupVersionKind
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.schema.resolve import Definitions, Schema

if TYPE_CHECKING:
    from fakeapiserver.apimachinery.managedfields.typed import TypedSchema
    from fakeapiserver.apimachinery.schema.builtin import BuiltinType

Default = Callable[[Object, str], None]


class Kind(Protocol):
    """One kind in one served version. `definition` is the schema that strategic merge patch reads, `definitions` what it refers
    to, and `definition_name` its own name among them (empty for custom resources); `custom` is true for custom resources (no
    strategic merge, list items carry their type). `also_accepts` are other versions that bodies may have, as if they had its
    own."""

    gvk: GroupVersionKind
    custom: bool
    definitions: Definitions
    definition_name: str
    also_accepts: Sequence[GroupVersion]

    @property
    def definition(self) -> Schema: ...

    @property
    def typed(self) -> "TypedSchema": ...

    def decode(self, obj: Object) -> list[str]:
        """Brings a body into the kind's canonical form, in place; answers `unknown field "x"` texts.
        ValueError worded as Go's JSON decoder words a wrong type."""

    def settle(self, obj: Object) -> None:
        """Brings what server-side apply has merged into the kind's form, in place, with its defaults. ValueError: it has
        none, worded as Go's converter of maps words it."""

    def drop_empty(self, obj: Object) -> None:
        """Makes empty lists among the object's and its spec's fields nulls, in place, where storage doesn't tell one from the other."""

    def default(self, obj: Object) -> None:
        """Sets the version's defaults in place."""

    def validate(self, obj: Object, old: Object | None) -> ErrorList:
        """What the schema forbids."""


class BuiltinKind:
    """A kind of Kubernetes' own, from the recorded schemas. Compiled on first use."""

    custom = False
    also_accepts: Sequence[GroupVersion] = ()

    def __init__(self, gvk: GroupVersionKind, definition_name: str, definitions: Definitions, default: Default) -> None:
        self.gvk = gvk
        self.definitions = definitions
        self.definition_name = definition_name
        self._default = default

    @property
    def definition(self) -> Schema:
        return self.definitions[self.definition_name]

    @cached_property
    def _type(self) -> "BuiltinType":
        from fakeapiserver.apimachinery.schema.builtin import compile_builtin

        return compile_builtin(self.definitions, self.definition_name)

    @cached_property
    def typed(self) -> "TypedSchema":
        from fakeapiserver.apimachinery.managedfields.typed import builtin_schema

        return builtin_schema(self.definitions, self.definition_name)

    def decode(self, obj: Object) -> list[str]:
        # Go's types tell an empty list from none until they are stored; so do owners, and whoever resets them.
        spec = obj.get("spec")
        empty = [key for key, value in obj.items() if value == []]
        empty_below = [key for key, value in spec.items() if value == []] if isinstance(spec, dict) else ()
        reset = metadata(obj).get("managedFields") == []
        unknown = self._type.decode(obj)
        for key in empty:
            if key in obj:
                obj[key] = []
        for key in empty_below:
            if key in obj["spec"]:
                obj["spec"][key] = []
        if reset:
            metadata(obj)["managedFields"] = []
        return unknown

    def settle(self, obj: Object) -> None:
        from fakeapiserver.apimachinery.schema.unstructured import restore

        restore(obj, self.definition_name, self.definitions)
        self.decode(obj)
        self.default(obj)

    def drop_empty(self, obj: Object) -> None:
        for fields in (obj, obj.get("spec") or {}):
            for key, value in fields.items():
                if value == []:
                    fields[key] = None

    def default(self, obj: Object) -> None:
        self._type.default(obj)
        self._default(obj, self.gvk.version)

    def validate(self, obj: Object, old: Object | None) -> ErrorList:
        return []
