"""The body of a create or update, and the kinds that it may be of.

`builtin_body.py` and `custom_body.py` decode it: the dialect of the scope chooses between them.
Upstream: k8s.io/apiserver/pkg/endpoints/handlers/create.go.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct, field

from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.schema.builtin import compile_builtin
from fakeapiserver.apimachinery.schema.cbor import documents as cbor_documents
from fakeapiserver.apimachinery.schema.resolve import Definitions
from fakeapiserver.endpoints.negotiation.refusals import report_strictly
from fakeapiserver.registry.generic.kind import Kind

if TYPE_CHECKING:
    from fakeapiserver.apimachinery.schema.decoders import Empties


class KnownKind(Struct, frozen=True):
    """A kind that the server knows, though it may not be the path's.

    definitions, name: its schema; without a name bodies of the kind are accepted as they are.
    """

    definitions: Definitions = field(default_factory=dict)
    name: str = ""

    def decode(self, obj: Object) -> list[str]:
        """Brings the object into the kind's form, in place, and returns the texts of unknown fields. Raises ValueError in Go's
        words for a body that doesn't fit.
        """
        return compile_builtin(self.definitions, self.name).decode(obj) if self.name else []

    def decode_cbor(self, data: bytes, *, strict: bool) -> list[str]:
        """Returns the complaints of strict decoding about a body in CBOR."""
        complaint = (
            cbor_documents.decode(data, self.definitions, self.name, strict=strict).complaint if self.name else ""
        )
        return [complaint] if complaint else []


# None for an unknown type.
Recognizes = Callable[[GroupVersionKind], KnownKind | None]


class Body(Struct, kw_only=True):
    """The bytes of a create's or update's object, and how to decode them.

    validation: Strict, Warn or Ignore, for unknown and duplicate fields; Warn adds them to `warnings`.
    recognizes: finds the other kinds that the server knows.
    empties: collects the empty lists and maps that decoding drops.
    """

    data: bytes
    media_type: str
    kind: Kind
    validation: str
    warnings: list[str]
    recognizes: Recognizes
    empties: "Empties | None" = None

    def report(self, complaints: list[str], obj: Object | None = None) -> None:
        """Warns of unknown and duplicate fields. Raises StatusError 400 for Strict, with the type of `obj`."""
        report_strictly(complaints, self.kind, self.validation, self.warnings, obj)


def defaulted(obj: Object, kind: Kind) -> Object:
    """Returns a decoded object with metadata and the defaults of its version."""
    if not isinstance(obj.get("metadata"), dict):
        obj["metadata"] = {}
    kind.default(obj)
    return obj
