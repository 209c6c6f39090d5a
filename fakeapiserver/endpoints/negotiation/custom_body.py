"""Decodes the body of a custom resource from JSON, YAML or CBOR, with errors in upstream's words.

Upstream: apiextensions-apiserver/pkg/apiserver/customresource_handler.go (schemaCoercingDecoder), pkg/crdserverscheme/unstructured.go.
"""

from copy import deepcopy
from typing import Any, Final

from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.gvk import GroupVersion
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.schema.cbor import documents as cbor_documents
from fakeapiserver.apimachinery.serializer import cbor
from fakeapiserver.endpoints.negotiation.body import Body, defaulted
from fakeapiserver.endpoints.negotiation.builtin_body import unreadable
from fakeapiserver.endpoints.negotiation.documents import decode_document
from fakeapiserver.endpoints.negotiation.media_types import CBOR
from fakeapiserver.endpoints.negotiation.refusals import (
    cannot_be_handled,
    json_parse_error,
    other_version,
    unrecognized,
    without_version,
)
from fakeapiserver.endpoints.negotiation.type_meta import checked_type_meta, named_type
from fakeapiserver.registry.generic.kind import Kind

_ALWAYS_KNOWN: Final = ("apiVersion", "kind", "metadata")


def decode_custom(body: Body) -> Object:
    """Returns the body's object, decoded and defaulted. Raises StatusError 400."""
    kind = body.kind
    obj, duplicates = _decode_cbor(body.data, kind) if body.media_type == CBOR else _read(body)
    named = named_type(obj, kind.gvk.kind)
    if named.group_version != kind.gvk.group_version:
        if body.media_type != CBOR:  # for which upstream reports no unknown fields
            body.report(duplicates + unserved_fields(obj, kind), obj)
        raise other_version(named, kind.gvk)
    try:
        unknown = kind.decode(obj, body.empties)
    except ValueError as error:
        raise cannot_be_handled(obj, kind, str(error)) from None
    if obj["kind"] != kind.gvk.kind:  # which validation refuses; the schema of the kind in the body is unknown
        unknown = about_metadata(unknown)
    if body.media_type != CBOR:
        body.report(duplicates + unknown, obj)
    return defaulted(obj, kind)


def _read(body: Body) -> tuple[Object, list[str]]:
    """Returns the object as it was sent, with a kind and an apiVersion, and the texts of its duplicate fields."""
    try:
        document, duplicates = decode_document(body.data, body.media_type)
        has_null_version = isinstance(document, dict) and document.get("apiVersion", "") is None
        obj = checked_type_meta(document)
    except ValueError as error:
        raise unreadable(body, error) from None
    if not obj.get("kind"):
        why = f"Object 'Kind' is missing in '{body.data.decode(errors='replace')}'"
        if body.validation == "Ignore":
            # The decoder first assumes the expected kind, and then finds that the body names none.
            raise cannot_be_handled(obj, body.kind, why)
        raise unrecognized(body.kind, body.data, why)
    if has_null_version:
        why = ".apiVersion accessor error: <nil> is of the type <nil>, expected string"
        raise without_version(obj, body.kind, why)
    return obj, duplicates


def _decode_cbor(data: bytes, kind: Kind) -> tuple[Object, list[str]]:
    """Raises StatusError 400, with the type if it can be read."""
    try:
        document: dict[str, Any] = cbor.decode_map(data) or {}
    except ValueError as error:
        try:
            named = named_type(dict(cbor_documents.type_meta(data)), kind.gvk.kind)
        except ValueError as unnamed:
            raise unrecognized(kind, data, json_parse_error(str(unnamed))) from None
        type_meta = {"kind": named.kind, "apiVersion": str(named.group_version)}
        raise cannot_be_handled(type_meta, kind, str(error)) from None
    for name in ("kind", "apiVersion"):
        if not isinstance(document.get(name), str):
            document.pop(name, None)
    try:
        GroupVersion.parse(document.get("apiVersion", ""))
    except ValueError:
        document.pop("kind", None)
    if not document.get("kind"):
        raise unrecognized(kind, data, f"Object 'Kind' is missing in '{cbor.diagnose(data)}'")
    if not document.get("apiVersion"):
        raise without_version(document, kind, f"Object 'apiVersion' is missing in '{cbor.diagnose(data)}'")
    return checked_type_meta(document), []


def unserved_fields(obj: Object, kind: Kind) -> list[str]:
    """Returns the unknown fields of a custom resource that names another version than the path's. A version that its definition
    doesn't have has no schema, so that all fields but metadata are unknown. Raises StatusError 400 for invalid metadata.
    """
    named = named_type(obj, kind.gvk.kind)
    is_kind = (named.group, named.kind) == (kind.gvk.group, kind.gvk.kind)
    other = kind.versions.get(named.version) if is_kind else None
    try:
        unknown = (other or kind).decode(deepcopy(obj))
    except ValueError as error:
        raise cannot_be_handled(obj, kind, str(error)) from None
    if not is_kind:
        return []
    if other is not None:
        return unknown
    fields = [f"unknown field {go_quote(key)}" for key in obj if key not in _ALWAYS_KNOWN]
    return sorted(about_metadata(unknown) + fields)


def about_metadata(unknown: list[str]) -> list[str]:
    """Returns the texts about metadata, which all kinds have."""
    return [text for text in unknown if text.startswith('unknown field "metadata.')]
