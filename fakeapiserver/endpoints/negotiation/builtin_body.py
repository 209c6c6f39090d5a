"""Decodes the body of a built-in kind from JSON, YAML, protobuf or CBOR, with errors in upstream's words.

Upstream: k8s.io/apimachinery/pkg/runtime/serializer/{json,protobuf,cbor}, pkg/runtime/serializer/versioning.
"""

from collections.abc import Callable, Mapping
from json import loads
from typing import Any, Final

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.gvk import GroupVersion, GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.schema import raw_text
from fakeapiserver.apimachinery.schema.cbor import documents as cbor_documents
from fakeapiserver.apimachinery.schema.decoders import is_read_apart
from fakeapiserver.apimachinery.serializer import cbor, json, protobuf
from fakeapiserver.apis import protobuf as protobuf_messages
from fakeapiserver.endpoints.negotiation.body import Body, KnownKind, defaulted
from fakeapiserver.endpoints.negotiation.documents import decode_document, has_long_number
from fakeapiserver.endpoints.negotiation.media_types import CBOR, JSON, PROTOBUF, YAML
from fakeapiserver.endpoints.negotiation.refusals import (
    cannot_be_handled,
    other_version,
    type_meta_error,
    unrecognized,
)
from fakeapiserver.endpoints.negotiation.sent_spec import SentSpec, sent_spec
from fakeapiserver.endpoints.negotiation.type_meta import (
    checked_type_meta,
    internal_package,
    named_type,
    not_registered,
)
from fakeapiserver.registry.generic.kind import Kind

_OWNED_FIELDS: Final = ("metadata", "managedFields", "*", "fieldsV1")
# Kinds whose internal type is in another group's package: they moved, or are an older group's version of the Scale.
_MOVED_KINDS: Final[Mapping[tuple[str, str], str]] = {
    ("apps", "Scale"): "autoscaling",
    ("extensions", "Scale"): "autoscaling",
    **dict.fromkeys((("extensions", kind) for kind in ("DaemonSet", "Deployment", "ReplicaSet")), "apps"),
    **dict.fromkeys((("extensions", kind) for kind in ("Ingress", "NetworkPolicy")), "networking"),
}


def decode_builtin(body: Body) -> Object:
    """Returns the body's object, decoded and defaulted. Raises StatusError 400."""
    if body.media_type == CBOR:
        return defaulted(_decode_cbor(body), body.kind)
    spec = sent_spec(body) if body.media_type == JSON else None
    if spec is None or spec.known is None:
        return _decode_whole(body, spec)
    rest = spec.rest()
    try:
        obj = _decode_whole(rest, None)
    except StatusError:
        return _decode_whole(body, None)
    if body.empties is not None:
        body.empties |= rest.empties or {}
    obj["spec"] = spec.known
    return obj


def _decode_whole(body: Body, spec: SentSpec | None) -> Object:
    """spec: is remembered if there is nothing to complain about."""
    obj, duplicates, in_order = _read(body)
    _check_type(obj, body, lambda known: known.decode(dict(obj)), lambda: body.data.decode(errors="replace"))
    obj, unknown = _into_kind(obj, body, in_order)
    raw_text.keep(obj, body.kind.raw_fields, body.data if body.media_type == JSON else b"")
    complaints = in_order(unknown) if in_order else duplicates + unknown
    body.report(_of_known(complaints, body.kind), obj)
    defaulted(obj, body.kind)
    if spec is not None and not complaints and not body.empties:
        spec.remember(obj)
    return obj


# The complaints about duplicate and unknown fields in the order of the text.
_InOrder = Callable[[list[str]], list[str]]


def _read(body: Body) -> tuple[Object, list[str], _InOrder | None]:
    """Returns the object as it was sent, and the texts of its duplicate fields."""
    if body.media_type == PROTOBUF:
        return _decode_protobuf(body.data, body.kind), [], None
    in_order = None
    try:
        document, duplicates = decode_document(body.data, body.media_type, exactly=True)
        if duplicates and body.media_type == JSON:
            document, in_order = json.with_duplicates(body.data)
        return checked_type_meta(document, any_case=True), duplicates, in_order
    except json.NumberTooLarge as error:
        if body.media_type != JSON:
            raise unreadable(body, error) from None
    except ValueError as error:
        raise unreadable(body, error) from None
    return _read_with_large_numbers(body)


def _read_with_large_numbers(body: Body) -> tuple[Object, list[str], _InOrder]:
    """Reads a JSON body with a number beyond float64: only its field can say whether it is too large, and unknown fields don't mind."""
    try:
        document, in_order = json.with_duplicates(body.data)
        return checked_type_meta(document, any_case=True), [], in_order
    except ValueError as error:
        raise unreadable(body, error) from None


def unreadable(body: Body, error: ValueError) -> Exception:
    """400 for a body of which not even the type can be read."""
    if isinstance(error, json.NumberTooLarge) and (type_meta := _type_before_numbers(body.data)) is not None:
        return cannot_be_handled(type_meta, body.kind, str(error))
    return unrecognized(body.kind, body.data, type_meta_error(error))


def _type_before_numbers(data: bytes) -> Object | None:
    """Returns the type that a JSON body names although it has a number beyond float64: upstream reads the type first."""
    try:
        document = loads(data)
    except ValueError:
        return None
    if not isinstance(document, dict):
        return None
    kind, version = document.get("kind"), document.get("apiVersion")
    return {"kind": kind, "apiVersion": version} if isinstance(kind, str) and isinstance(version, str) else None


def _into_kind(obj: Object, body: Body, in_order: _InOrder | None) -> tuple[Object, list[str]]:
    """Returns the object in the kind's form, and the texts of its unknown fields."""
    kind, data = body.kind, body.data
    is_json = body.media_type == JSON
    # Quantities are made from the text of a number.
    unusual = is_json and json.has_unusual_numbers(data)
    if unusual and in_order is None:
        obj = _as_written(data, obj)
    try:
        unknown = kind.decode(obj, body.empties)
        if unusual or in_order is not None or (body.media_type == YAML and has_long_number(data)):
            obj = json.rounded(obj)
    except ValueError as error:
        why = (_error_as_written(data, kind) if is_json else "") or str(error)
        raise cannot_be_handled(obj, kind, why) from None
    # A plain dict has each key once.
    return (dict(obj) if in_order else obj), unknown


def _as_written(data: bytes, obj: Object) -> Object:
    """Returns the body with its numbers as they were written, if the fast decoder can read it."""
    try:
        exact: Object = json.decode_exactly(data)
    except ValueError:
        return obj
    return exact | {name: obj[name] for name in ("kind", "apiVersion") if name in obj}


def _error_as_written(data: bytes, kind: Kind) -> str:
    """Returns the error in a body, if it shows a number as it was written."""
    try:
        kind.decode(json.decode_as_written(data))
    except ValueError as error:
        return str(error)
    return ""


def _of_known(complaints: list[str], kind: Kind) -> list[str]:
    """Returns the complaints without those about fields that are kept as raw text."""
    if not complaints:
        return complaints
    kept = (*kind.raw_fields, _OWNED_FIELDS)
    paths = {text: text.partition('"')[2][:-1] for text in complaints}
    return [text for text, path in paths.items() if not raw_text.inside(path, kept) and not is_read_apart(path)]


def _check_type(obj: Object, body: Body, decode: Callable[[KnownKind], list[str]], shown: Callable[[], str]) -> None:
    """Gives the object its type. Raises StatusError 400 for an object of another kind or version than the path's.

    decode: reads the body as another kind and returns its unknown fields.
    shown: returns the body as messages show it.
    """
    kind, gvk = body.kind, body.kind.gvk
    named = named_type(obj, gvk.kind)
    if not named.version and named.group in ("", gvk.group):  # completed by the path (upstream: gvkWithDefaults)
        named = GroupVersionKind(gvk.group, gvk.version, named.kind)
    if named.kind == gvk.kind and (
        named.group_version == gvk.group_version or named.group_version in kind.also_accepts
    ):
        obj["kind"], obj["apiVersion"] = gvk.kind, named.api_version
        return
    if not named.version:
        raise cannot_be_handled(obj, kind, f"Object 'apiVersion' is missing in '{shown()}'")
    known = body.recognizes(named)
    if known is None:
        raise cannot_be_handled(obj, kind, not_registered(named))
    try:
        unknown = decode(known)
    except ValueError as error:
        raise cannot_be_handled(obj, kind, str(error)) from None
    package = internal_package(gvk.group)
    moved = _MOVED_KINDS.get((named.group, named.kind))
    if (moved or internal_package(named.group), named.kind) == (package, gvk.kind):
        body.report(unknown, obj)
        raise other_version(named, gvk)
    why = f"converting ({named.version}.{named.kind}) to ({package}.{gvk.kind}): unknown conversion"
    raise cannot_be_handled(obj, kind, why)


def _decode_cbor(body: Body) -> Object:
    """Decodes first the type of a CBOR body, then the whole body as that type. Raises StatusError 400."""
    kind, data = body.kind, body.data
    try:
        type_meta: Object = dict(cbor_documents.type_meta(data))
    except ValueError as error:
        raise unrecognized(kind, data, str(error)) from None
    strict = body.validation != "Ignore"
    _check_type(type_meta, body, lambda known: known.decode_cbor(data, strict=strict), lambda: cbor.diagnose(data))
    try:
        document = cbor_documents.decode(data, kind.definitions, kind.definition_name, strict=strict)
        obj = {**document.obj, **type_meta}
        kind.decode(obj, body.empties)
    except ValueError as error:
        raise cannot_be_handled(type_meta, kind, str(error)) from None
    body.report([document.complaint] if document.complaint else [])
    return obj


def _decode_protobuf(data: bytes, kind: Kind) -> Object:
    """Returns the object in a protobuf envelope; one without a type is of the expected kind. Raises StatusError 400."""
    try:
        api_version, name, raw = protobuf.unwrap(data)
    except ValueError as error:
        raise unrecognized(kind, data, str(error)) from None
    if api_version.count("/") > 1:  # what is no group and version counts as none
        api_version = ""
    type_meta: Object = {"apiVersion": api_version or kind.gvk.api_version, "kind": name or kind.gvk.kind}
    message = protobuf_messages.message_finder()(type_meta["apiVersion"], type_meta["kind"])
    if message is None:
        group_version = GroupVersion.parse(type_meta["apiVersion"])
        raise cannot_be_handled(
            type_meta, kind, not_registered(GroupVersionKind(*group_version, str(type_meta["kind"])))
        )
    try:
        obj: dict[str, Any] = {**type_meta, **protobuf_messages.decoder().message(message)(raw)}
    except ValueError as error:
        raise cannot_be_handled(type_meta, kind, str(error)) from None
    return checked_type_meta(obj, any_case=True)
