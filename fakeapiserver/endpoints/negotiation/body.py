"""Decodes a body's bytes into an object of the expected kind, with errors in upstream's words.

Upstream: k8s.io/apimachinery/pkg/runtime/serializer/{json,yaml}, k8s.io/apiserver/pkg/endpoints/handlers/create.go.
"""

import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from fakeapiserver.apimachinery.errors import StatusError, new_bad_request
from fakeapiserver.apimachinery.field import go_quote
from fakeapiserver.apimachinery.gvk import GroupVersion, GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.schema import raw_text
from fakeapiserver.apimachinery.schema.decoders import is_read_apart
from fakeapiserver.apimachinery.schema.resolve import Definitions
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.endpoints.negotiation.media_types import CBOR, JSON, PROTOBUF, YAML, body_media_type, unknown_format
from fakeapiserver.endpoints.request import Request
from fakeapiserver.registry.generic.kind import Kind

if TYPE_CHECKING:
    from fakeapiserver.apimachinery.schema.decoders import Empties


class KnownKind(Struct, frozen=True):
    """A kind that the server knows, though it may not be the path's: its definition, or none if bodies of the kind are accepted as
    they are. ValueError in Go's words for a body that doesn't fit."""

    definitions: Definitions = field(default_factory=dict)
    name: str = ""

    def decode(self, obj: Object) -> list[str]:
        """Brings the object into the kind's form, in place, and returns the texts of unknown fields."""
        from fakeapiserver.apimachinery.schema.builtin import compile_builtin

        return compile_builtin(self.definitions, self.name).decode(obj) if self.name else []

    def decode_cbor(self, data: bytes, *, strict: bool) -> list[str]:
        """The complaints of strict decoding about a body in CBOR."""
        from fakeapiserver.apimachinery.schema import from_cbor

        complaint = from_cbor.decode(data, self.definitions, self.name, strict=strict).complaint if self.name else ""
        return [complaint] if complaint else []


# None: not known.
Recognizes = Callable[[GroupVersionKind], KnownKind | None]

GO_TYPE_META: Final = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)
GO_NAMES: Final[Mapping[type, str]] = {list: "array", str: "string", bool: "bool", int: "number", float: "number"}
_FRACTION: Final = re.compile(rb"\d[.eE]")
_LONG_NUMBER: Final = re.compile(rb"\d{19}")
# What JSON accepts, but YAML refuses or reads differently: a leading tab, some characters, plain or escaped, and long keys.
_NO_YAML: Final = re.compile(rb"^\s*\t|\x7f|\\u[dD][89a-fA-F]|\"[^\"]{1024,}\"\s*:")
_NO_YAML_TEXT: Final = re.compile("[\x80-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_SHOWN_BYTES: Final = 30
_OWNED_FIELDS: Final = ("metadata", "managedFields", "*", "fieldsV1")
INTERNAL: Final = "__internal"
"""The version in which upstream works with an object of any version."""
_TYPE_FIELDS: Final = {"kind": "kind", "apiversion": "apiVersion"}
_ALWAYS_KNOWN: Final = ("apiVersion", "kind", "metadata")
# Groups whose package isn't their first word: kinds that moved to another group have one internal type.
_INTERNAL_PACKAGES: Final = {"": "core", "events.k8s.io": "core", "internal.apiserver.k8s.io": "apiserverinternal"}

# Kinds whose internal type is in another group's package: they moved, or are an older group's version of the Scale.
_MOVED_KINDS: Final[Mapping[tuple[str, str], str]] = {
    ("apps", "Scale"): "autoscaling",
    ("extensions", "Scale"): "autoscaling",
    **dict.fromkeys((("extensions", kind) for kind in ("DaemonSet", "Deployment", "ReplicaSet")), "apps"),
    **dict.fromkeys((("extensions", kind) for kind in ("Ingress", "NetworkPolicy")), "networking"),
}

# The error of our JSON decoder for a number beyond float64.
_TOO_LARGE: Final = "json: cannot unmarshal number "


def decode_body(data: bytes, media_type: str, *, exactly: bool = False) -> tuple[Any, list[str]]:
    """The document and the texts of its duplicate fields. ValueError worded as Go's decoders word it. `exactly`: YAML's integers
    beyond int64 stay what they are."""
    if media_type == YAML:
        return _decode_yaml(data, exactly=exactly and bool(_LONG_NUMBER.search(data)))
    if media_type == PROTOBUF:
        from fakeapiserver.apimachinery.serializer import protobuf
        from fakeapiserver.apis.protobuf import message_finder, messages

        return protobuf.decode(data, message_finder(), messages()), []
    document = json.decode(data)
    return document, json.duplicate_fields(data, document)


def _decode_yaml(data: bytes, *, exactly: bool) -> tuple[Any, list[str]]:
    """Clients send JSON as YAML: a body that begins like an object is first tried as JSON, which is much faster."""
    from fakeapiserver.apimachinery.serializer import yaml

    if not exactly and data.lstrip().startswith(b"{") and _is_yaml_too(data):
        try:
            document = json.decode(data)
        except ValueError:
            return yaml.decode_with_duplicates(data)
        if not json.duplicate_fields(data, document):
            ordered = json.sorted_keys(document)
            return (_whole_numbers(ordered) if _FRACTION.search(data) else ordered), []
    return yaml.decode_with_duplicates(data, exactly=exactly)


def _is_yaml_too(data: bytes) -> bool:
    """Whether a body, if it is JSON, means the same as YAML."""
    if _NO_YAML.search(data):
        return False
    try:
        return data.isascii() or not _NO_YAML_TEXT.search(data.decode())
    except UnicodeDecodeError:
        return False


def _whole_numbers(value: Any) -> Any:
    """Upstream turns YAML into JSON without exponents and zero fractions, so that 1.0 becomes 1."""
    if isinstance(value, dict):
        return {key: _whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**63 else value


def object_media_type(request: Request, kind: Kind) -> str:
    """The media type of an object's body. StatusError 415."""
    media_type = body_media_type(request.header(b"content-type"), request.supported)
    if media_type == PROTOBUF and kind.custom:
        raise unknown_format([supported for supported in request.supported if supported != PROTOBUF])
    return media_type


def decode_object(
    data: bytes,
    media_type: str,
    kind: Kind,
    validation: str,
    warnings: list[str],
    recognizes: Recognizes,
    empties: "Empties | None" = None,
) -> Object:
    """A create's or update's object, decoded and defaulted. `validation` is Strict, Warn or Ignore; unknown and duplicate
    fields are added to `warnings` or refused (400). `recognizes` finds the kinds that the server knows; the empty
    lists and maps that decoding drops are added to `empties`."""
    if media_type == CBOR and not kind.custom:
        obj = _decode_cbor(data, kind, validation, warnings, recognizes, empties)
    else:
        obj = _decode(data, media_type, kind, validation, warnings, recognizes, empties)
    if not isinstance(obj.get("metadata"), dict):
        obj["metadata"] = {}
    kind.default(obj)
    return obj


def _decode(
    data: bytes,
    media_type: str,
    kind: Kind,
    validation: str,
    warnings: list[str],
    recognizes: Recognizes,
    empties: "Empties | None",
) -> Object:
    duplicates: list[str] = []
    in_order = None
    try:
        if media_type in _DECODERS:
            document: Any = _DECODERS[media_type](data, kind)
        else:
            document, duplicates = decode_body(data, media_type, exactly=not kind.custom)
        if duplicates and media_type == JSON and not kind.custom:
            document, in_order = json.with_duplicates(data)
        null = kind.custom and isinstance(document, dict) and document.get("apiVersion", "") is None
        obj = checked_type_meta(document, any_case=not kind.custom)
        if kind.custom and not obj.get("kind"):
            why = f"Object 'Kind' is missing in '{data.decode(errors='replace')}'"
            # With Ignore the decoder first assumes the expected kind, and then finds that the body names none.
            raise cannot_be_handled(obj, kind, why) if validation == "Ignore" else ValueError(why)
    except ValueError as error:
        if str(error).startswith(_TOO_LARGE) and (head := _head(data)) is not None:
            raise cannot_be_handled(head, kind, str(error)) from None
        raise _unrecognized(kind, data, type_meta_error(str(error))) from None
    if null:
        why = ".apiVersion accessor error: <nil> is of the type <nil>, expected string"
        raise new_bad_request(f'{obj["kind"]} in version "" cannot be handled as a {kind.gvk.kind}: {why}')
    try:
        check_type(
            obj,
            kind,
            recognizes,
            lambda known: known.decode(dict(obj)),
            lambda unknown: report_strictly(unknown, kind, validation, warnings),
            lambda: data.decode(errors="replace"),
        )
    except StatusError:
        if kind.custom and media_type != CBOR:
            report_strictly(duplicates + unserved_fields(obj, kind), kind, validation, warnings, obj)
        raise
    # Quantities are made from the text of a number.
    texts = media_type == JSON and not kind.custom and json.has_unusual_numbers(data)
    if texts and in_order is None:
        obj = _as_written(data, obj)
    try:
        unknown = kind.decode(obj, empties)
        if texts or in_order is not None or (media_type == YAML and _LONG_NUMBER.search(data)):
            obj = json.rounded(obj)
    except ValueError as error:
        text = _told_as_written(data, kind) if media_type == JSON and not kind.custom else ""
        raise cannot_be_handled(obj, kind, text or str(error)) from None
    if in_order:
        obj = dict(obj)  # which now says everything once
    if kind.custom and obj["kind"] != kind.gvk.kind:
        unknown = about_metadata(unknown)  # the schema of the kind in the body is unknown
    raw_text.keep(obj, kind.raw_fields, data if media_type == JSON else b"")
    if media_type != CBOR:  # for which upstream reports no unknown fields
        complaints = in_order(unknown) if in_order else duplicates + unknown
        report_strictly(_of_known(complaints, kind), kind, validation, warnings, obj)
    return obj


def _of_known(complaints: list[str], kind: Kind) -> list[str]:
    """The complaints without those about fields that are kept as raw text."""
    if not complaints or kind.custom:
        return complaints
    kept = (*kind.raw_fields, _OWNED_FIELDS)
    paths = {text: text.partition('"')[2][:-1] for text in complaints}
    return [text for text, path in paths.items() if not raw_text.inside(path, kept) and not is_read_apart(path)]


def _as_written(data: bytes, obj: Object) -> Object:
    """The body with its numbers as they were written, if the fast decoder can read it."""
    try:
        exact: Object = json.decode_exactly(data)
    except ValueError:
        return obj
    return exact | {name: obj[name] for name in ("kind", "apiVersion") if name in obj}


def _told_as_written(data: bytes, kind: Kind) -> str:
    """The error in a body, if it shows a number as it was written."""
    try:
        kind.decode(json.decode_as_written(data))
    except ValueError as error:
        return str(error)
    return ""


def _head(data: bytes) -> Object | None:
    """The type that a JSON body names although it has a number beyond float64: upstream reads the type before the numbers."""
    from json import loads

    try:
        found = loads(data)
    except ValueError:
        return None
    if not isinstance(found, dict):
        return None
    kind, version = found.get("kind"), found.get("apiVersion")
    return {"kind": kind, "apiVersion": version} if isinstance(kind, str) and isinstance(version, str) else None


def _decode_cbor(
    data: bytes,
    kind: Kind,
    validation: str,
    warnings: list[str],
    recognizes: Recognizes,
    empties: "Empties | None",
) -> Object:
    """Decodes a CBOR body of a built-in kind: first its type, then the whole body as that type. StatusError 400."""
    from fakeapiserver.apimachinery.schema import from_cbor
    from fakeapiserver.apimachinery.serializer import cbor

    try:
        type_meta: Object = dict(from_cbor.type_meta(data))
    except ValueError as error:
        raise _unrecognized(kind, data, str(error)) from None
    strict = validation != "Ignore"
    check_type(
        type_meta,
        kind,
        recognizes,
        lambda known: known.decode_cbor(data, strict=strict),
        lambda complaints: report_strictly(complaints, kind, validation, warnings),
        lambda: cbor.diagnose(data),
    )
    try:
        document = from_cbor.decode(data, kind.definitions, kind.definition_name, strict=strict)
        obj = {**document.obj, **type_meta}
        kind.decode(obj, empties)
    except ValueError as error:
        raise cannot_be_handled(type_meta, kind, str(error)) from None
    report_strictly([document.complaint] if document.complaint else [], kind, validation, warnings)
    return obj


def _decode_custom_cbor(data: bytes, kind: Kind) -> Object:
    """Decodes a CBOR body of a custom resource. StatusError 400, which names the type if it can be read."""
    from fakeapiserver.apimachinery.schema import from_cbor
    from fakeapiserver.apimachinery.serializer import cbor

    try:
        document = cbor.decode_map(data) or {}
    except ValueError as error:
        named = _named_type(dict(from_cbor.type_meta(data)), kind)
        raise cannot_be_handled(
            {"kind": named.kind, "apiVersion": str(named.group_version)}, kind, str(error)
        ) from None
    for name in ("kind", "apiVersion"):
        if not isinstance(document.get(name), str):
            document.pop(name, None)
    try:
        GroupVersion.parse(document.get("apiVersion", ""))
    except ValueError:
        document.pop("kind", None)
    if not document.get("kind"):
        raise ValueError(f"Object 'Kind' is missing in '{cbor.diagnose(data)}'")
    if not document.get("apiVersion"):
        why = f"Object 'apiVersion' is missing in '{cbor.diagnose(data)}'"
        raise new_bad_request(f'{document["kind"]} in version "" cannot be handled as a {kind.gvk.kind}: {why}')
    return document


def _decode_protobuf(data: bytes, kind: Kind) -> Object:
    """The object in a protobuf envelope; one without a type is of the expected kind. StatusError 400."""
    from fakeapiserver.apimachinery.serializer import protobuf
    from fakeapiserver.apis.protobuf import message_finder, messages

    try:
        api_version, name, raw = protobuf.unwrap(data)
    except ValueError as error:
        raise _unrecognized(kind, data, str(error)) from None
    if api_version.count("/") > 1:  # what is no group and version counts as none
        api_version = ""
    type_meta: Object = {"apiVersion": api_version or str(kind.gvk.group_version), "kind": name or kind.gvk.kind}
    message = message_finder()(type_meta["apiVersion"], type_meta["kind"])
    if message is None:
        group_version = GroupVersion.parse(type_meta["apiVersion"])
        raise cannot_be_handled(
            type_meta, kind, not_registered(GroupVersionKind(*group_version, str(type_meta["kind"])))
        )
    try:
        return {**type_meta, **protobuf.decode_message(raw, message, messages())}
    except ValueError as error:
        raise cannot_be_handled(type_meta, kind, str(error)) from None


_DECODERS: Final[Mapping[str, Callable[[bytes, Kind], Object]]] = {
    PROTOBUF: _decode_protobuf,
    CBOR: _decode_custom_cbor,
}


def unserved_fields(obj: Object, kind: Kind) -> list[str]:
    """The unknown fields of a custom object that names another version than the path's. A version that its definition doesn't have has no
    schema, so that all fields but metadata are unknown. StatusError 400 for invalid metadata."""
    found = _named_type(obj, kind)
    is_kind = (found.group, found.kind) == (kind.gvk.group, kind.gvk.kind)
    other = kind.versions.get(found.version) if is_kind else None
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


def report_strictly(
    complaints: list[str], kind: Kind, validation: str, warnings: list[str], obj: Object | None = None
) -> None:
    """StatusError 400 for Strict, naming the type of `obj`; Warn adds to `warnings`; Ignore says nothing."""
    if not complaints or validation == "Ignore":
        return
    if validation == "Strict":
        raise cannot_be_handled(obj or {}, kind, "strict decoding error: " + ", ".join(complaints))
    for complaint in complaints:
        warnings += yaml_warnings(complaint)


def yaml_warnings(complaint: str) -> list[str]:
    """YAML's duplicates come as one error of several lines; each is a warning of its own (upstream: parseYAMLWarnings)."""
    first, *rest = complaint.split("\n")
    return [line.strip() for line in rest] if first == "yaml: unmarshal errors:" else [complaint]


def cannot_be_handled(obj: Object, kind: Kind, why: str) -> StatusError:
    """400, with the type that the body names (upstream: transformDecodeError)."""
    name = obj.get("kind") or kind.gvk.kind
    version = GroupVersion.parse(obj.get("apiVersion") or str(kind.gvk.group_version)).version
    why = why if kind.reword is None else kind.reword(why)
    return new_bad_request(f"{name} in version {go_quote(version)} cannot be handled as a {kind.gvk.kind}: {why}")


def check_type(
    obj: Object,
    kind: Kind,
    recognizes: Recognizes,
    decode: Callable[[KnownKind], list[str]],
    report: Callable[[list[str]], None],
    shown: Callable[[], str],
) -> None:
    """StatusError 400 for an object of another kind or version than the path's; gives the object its type otherwise.
    `decode` reads the body as another kind, and unknown fields of another version of the kind are told to `report`;
    `shown` is the body as messages show it."""
    found = _named_type(obj, kind)
    gvk = kind.gvk
    if found.group_version == gvk.group_version or (
        found.kind == gvk.kind and found.group_version in kind.also_accepts
    ):
        if found.kind == gvk.kind:
            obj["kind"], obj["apiVersion"] = gvk.kind, str(found.group_version)
            return
        if kind.custom:
            return  # another kind is for validation to refuse
    elif kind.custom:
        raise _other_version(found, gvk)
    if not found.version:
        raise cannot_be_handled(obj, kind, f"Object 'apiVersion' is missing in '{shown()}'")
    known = recognizes(found)
    if known is None:
        raise cannot_be_handled(obj, kind, not_registered(found))
    try:
        unknown = decode(known)
    except ValueError as error:
        raise cannot_be_handled(obj, kind, str(error)) from None
    package = internal_package(gvk.group)
    moved = _MOVED_KINDS.get((found.group, found.kind))
    if (moved or internal_package(found.group), found.kind) == (package, gvk.kind):
        report(unknown)
        raise _other_version(found, gvk)
    why = f"converting ({found.version}.{found.kind}) to ({package}.{gvk.kind}): unknown conversion"
    raise cannot_be_handled(obj, kind, why)


def _named_type(obj: Object, kind: Kind) -> GroupVersionKind:
    """The type that the body names, completed by the path's (upstream: gvkWithDefaults)."""
    gvk = kind.gvk
    group, version = GroupVersion.parse(obj.get("apiVersion", ""))
    if not kind.custom and not version and group in ("", gvk.group):
        group, version = gvk.group, gvk.version
    return GroupVersionKind(group, version, obj.get("kind") or gvk.kind)


def _other_version(found: GroupVersionKind, gvk: GroupVersionKind) -> StatusError:
    return new_bad_request(
        f"the API version in the data ({found.group_version}) does not match the expected API version ({gvk.group_version})"
    )


def not_registered(gvk: GroupVersionKind) -> str:
    version = f"version {go_quote(str(gvk.group_version))}"
    if gvk.version == INTERNAL:
        version = f"the internal version of group {go_quote(gvk.group)}"
    return f'no kind {go_quote(gvk.kind)} is registered for {version} in scheme "pkg/runtime/scheme.go:111"'


def internal_package(group: str) -> str:
    """The Go package of a group's internal types, as conversion errors name it."""
    return _INTERNAL_PACKAGES.get(group) or group.partition(".")[0]


def checked_type_meta(document: Any, *, any_case: bool = False) -> Object:
    """The document as an object whose kind and apiVersion are text or absent. ValueError in Go's words. `any_case`: this one
    look at the bodies of built-in kinds doesn't mind the case of names, and of several the last counts that isn't null."""
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ValueError(f"json: cannot unmarshal {GO_NAMES[type(document)]} into Go value of type {GO_TYPE_META}")
    found: dict[str, str] = {}
    for key, value in document.pairs if isinstance(document, json.Repeated) else document.items():
        name = _TYPE_FIELDS.get(key.lower()) if any_case else key
        if name not in ("kind", "apiVersion") or value is None:
            continue
        if not isinstance(value, str):
            raise ValueError(f"json: cannot unmarshal {_go_name(value)} into Go struct field .{name} of type string")
        found[name] = value
    for name in ("kind", "apiVersion"):
        if name not in found:
            document.pop(name, None)
        elif document.get(name) != found[name]:
            document[name] = found[name]
    GroupVersion.parse(found.get("apiVersion", ""))
    return document


def _go_name(value: Any) -> str:
    return "number" if isinstance(value, json.Written) else GO_NAMES.get(type(value), "object")


def _unrecognized(kind: Kind, data: bytes, why: str) -> StatusError:
    return new_bad_request(
        f"the object provided is unrecognized (must be of type {kind.gvk.kind}): {why} ({shown(data)})"
    )


def type_meta_error(why: str) -> str:
    """An error of the decoder that reads only kind and apiVersion, with upstream's prefix."""
    if why.startswith(
        ("unexpected GroupVersion", "Object 'Kind'", "yaml: ", "json: unsupported value", "unsupported map")
    ):
        return why
    return f"couldn't get version/kind; json parse error: {why}"


def shown(data: bytes) -> str:
    """The start of a body as upstream's messages show it: text when it looks like an object, else hexadecimal."""
    if not data:
        return "<empty>"
    if data.startswith(b"{"):
        return (
            data.decode(errors="replace")
            if len(data) <= _SHOWN_BYTES
            else data[:_SHOWN_BYTES].decode(errors="replace") + " ..."
        )
    return data.hex() if len(data) <= _SHOWN_BYTES else data[:_SHOWN_BYTES].hex() + " ..."
