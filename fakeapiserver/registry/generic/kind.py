"""A kind in one served version: how bodies are decoded, defaulted and checked, and how fields are owned.

Built-in kinds and custom resources differ in their Kind, Strategy and Versions, and for clients in their dialect
(`endpoints/dialect/`), and nowhere else (one resource path).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from fakeapiserver.apimachinery.field import ErrorList
from fakeapiserver.apimachinery.gvk import GroupVersion, GroupVersionKind
from fakeapiserver.apimachinery.managedfields.typed import builtin_schema
from fakeapiserver.apimachinery.meta import FieldPath, Object, metadata
from fakeapiserver.apimachinery.schema import unstructured
from fakeapiserver.apimachinery.schema.builtin import compile_builtin
from fakeapiserver.apimachinery.schema.key_order import Arrange, arrangement
from fakeapiserver.apimachinery.schema.resolve import Definitions, Schema, reference
from fakeapiserver.apis.field_order import field_order
from fakeapiserver.apis.token_volume import with_name, without_name
from fakeapiserver.registry.generic.canonical import Encode, Encoded, built_in_encoder

if TYPE_CHECKING:
    from fakeapiserver.apimachinery.managedfields.typed import TypedSchema
    from fakeapiserver.apimachinery.schema.builtin import BuiltinType
    from fakeapiserver.apimachinery.schema.decoders import Empties
    from fakeapiserver.registry.generic.legacy_messages import Reword

# Bytes of the largest spec that is remembered, and how many are.
LARGEST_SPEC: Final = 16 * 1024
_MOST_SPECS: Final = 512
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode
_encode: Final = msgspec.json.Encoder().encode
_RAW_EXTENSION: Final = "io.k8s.apimachinery.pkg.runtime.RawExtension"

Default = Callable[[Object, str], None]
ConvertDecoded = Callable[[Object, "Empties"], None]


class KnownSpecs:
    """Specs of one kind as clients sent them, with what decoding and defaulting make of them: the objects of one template have equal specs.

    A spec is known by the bytes of its JSON, once decoding has found nothing to complain about, and no empty list or map in it. Only kinds
    whose spec is decoded and defaulted on its own have known specs (`Strategy.spec_is_decoded_alone`). The name of a token's volume may be
    another one (token_volume.py)."""

    def __init__(self) -> None:
        self._decoded: dict[bytes, bytes] = {}

    def __len__(self) -> int:
        return len(self._decoded)

    def find(self, text: bytes) -> Object | None:
        """Returns a new object for a spec as it was sent; None if the spec isn't known."""
        text, name = without_name(text)
        decoded = self._decoded.get(text)
        return None if decoded is None else _decode(with_name(decoded, name))

    def add(self, text: bytes, spec: Object) -> None:
        """Remembers a spec with its decoded and defaulted form, unless it is large."""
        if len(text) > LARGEST_SPEC:
            return
        if len(self._decoded) >= _MOST_SPECS:
            self._decoded.clear()
        text, name = without_name(text)
        decoded, same_name = without_name(_encode(spec))
        if name == same_name:
            self._decoded[text] = decoded


class Kind(Protocol):
    """A kind in one served version.

    `definition` is its schema, `definitions` the schemas that this refers to, `definition_name` its own name among them (empty
    for custom resources). `custom`: a custom resource, which knows no strategic merge patch and whose list items carry their
    type; `versions` are all versions in its definition. `also_accepts`: other group versions that a body may name.
    `reword` words decoding errors as an older server does. `known_specs`: specs with their decoded forms;
    None: a decoded spec depends on more than what was sent as the spec."""

    gvk: GroupVersionKind
    custom: bool
    definitions: Definitions
    definition_name: str
    also_accepts: Sequence[GroupVersion]
    reword: "Reword | None"
    known_specs: KnownSpecs | None

    @property
    def versions(self) -> "Mapping[str, Kind]": ...

    @property
    def raw_fields(self) -> Sequence[FieldPath]:
        """The paths of fields that Go keeps as raw text."""

    @property
    def definition(self) -> Schema: ...

    @property
    def typed(self) -> "TypedSchema": ...

    def decode(self, obj: Object, empties: "Empties | None" = None, *, from_map: bool = False) -> list[str]:
        """Brings a body into the kind's canonical form, in place, and returns texts such as `unknown field "spec.x"`. The empty lists
        and maps that this drops are added to `empties`; `from_map`: it is what a strategic merge patch has made. ValueError for a
        wrong type, in the words of Go's JSON decoder."""

    def settle(self, obj: Object, empties: "Empties") -> None:
        """Brings the result of a server-side apply into canonical form, in place, and defaults it; `empties` as for `decode`.
        ValueError for a wrong type, in the words of Go's unstructured converter."""

    def default(self, obj: Object) -> None:
        """Sets the version's defaults."""

    def validate(self, obj: Object, old: Object | None) -> ErrorList:
        """The errors by the rules of the schema."""

    def arrange(self, obj: Object) -> Object:
        """The object with its keys in the order in which Go writes them. `obj` isn't changed, but may share parts with the result."""

    def encode(self, obj: Object) -> Encoded:
        """The stored form of an object of this version."""


class BuiltinKind:
    """A built-in kind, from the recorded schemas, which are compiled on first use."""

    custom = False
    also_accepts: Sequence[GroupVersion] = ()
    versions: Mapping[str, Kind] = {}
    known_specs: KnownSpecs | None = None

    def __init__(
        self,
        gvk: GroupVersionKind,
        definition_name: str,
        definitions: Definitions,
        default: Default,
        reword: "Reword | None" = None,
        convert: ConvertDecoded | None = None,
    ) -> None:
        """`default` and `convert` are Strategy.default and Strategy.convert_decoded; `reword` as in `Kind`."""
        self.gvk = gvk
        self.definitions = definitions
        self.definition_name = definition_name
        self._default = default
        self.reword = reword
        self._convert = convert

    @property
    def definition(self) -> Schema:
        return self.definitions[self.definition_name]

    @cached_property
    def raw_fields(self) -> Sequence[FieldPath]:
        return tuple(_raw_fields(self.definition, self.definitions, ()))

    @cached_property
    def _type(self) -> "BuiltinType":
        return compile_builtin(self.definitions, self.definition_name)

    @cached_property
    def typed(self) -> "TypedSchema":
        return builtin_schema(self.definitions, self.definition_name)

    def decode(self, obj: Object, empties: "Empties | None" = None, *, from_map: bool = False) -> list[str]:
        reset = metadata(obj).get("managedFields") == []
        try:
            unknown = self._type.decode(obj, empties, from_map=from_map)
        except ValueError as error:
            raise error if self.reword is None else ValueError(self.reword(str(error))) from None
        if reset:
            metadata(obj)["managedFields"] = []
        if self._convert is not None:
            self._convert(obj, empties or {})
        return unknown

    def settle(self, obj: Object, empties: "Empties") -> None:
        unstructured.restore(obj, self.definition_name, self.definitions, field_order)
        self.decode(obj, empties)
        self.default(obj)

    def default(self, obj: Object) -> None:
        self._type.default(obj)
        self._default(obj, self.gvk.version)

    def validate(self, obj: Object, old: Object | None) -> ErrorList:
        return []

    @cached_property
    def _arrange(self) -> Arrange:
        return arrangement(self.definitions, self.definition_name, field_order)

    def arrange(self, obj: Object) -> Object:
        arranged: Object = self._arrange(obj)
        return arranged

    @cached_property
    def _encode(self) -> Encode:
        return built_in_encoder(self._arrange)

    def encode(self, obj: Object) -> Encoded:
        return self._encode(obj)


def _raw_fields(schema: Schema, definitions: Definitions, within: tuple[str, ...]) -> Iterator[FieldPath]:
    """The paths of raw fields below a schema; `within` are the types around it, which a type may hold again."""
    name = reference(schema)
    if name == _RAW_EXTENSION:
        yield ()
    elif name and name not in within:
        yield from _raw_fields(definitions[name], definitions, (*within, name))
    elif not name:
        for key, inner in (schema.get("properties") or {}).items():
            yield from ((key, *path) for path in _raw_fields(inner, definitions, within))
        if "items" in schema:
            yield from (("*", *path) for path in _raw_fields(schema["items"], definitions, within))
