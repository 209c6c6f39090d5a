"""ConversionReview: what a conversion webhook is asked, and what of its answer is taken.

Pure: `review` makes the question's bytes, `converted` reads the answer's.
Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from fakeapiserver.apimachinery import names
from fakeapiserver.apimachinery.errors import aggregated
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.gvk import GroupVersion, GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.transport.review import RAW, STATUS, UID, BadReview, ReviewKind, check_uid, struct

_OBJECTS: Final = {"type": "array", "items": RAW, "x-go-type": "[]runtime.RawExtension!"}
_REVIEW: Final = ReviewKind(
    "apiextensions.k8s.io",
    "ConversionReview",
    request={"uid": UID, "desiredAPIVersion": {"type": "string"}, "objects": _OBJECTS},
    response={"uid": UID, "convertedObjects": _OBJECTS, "result": struct(STATUS)},
)
_GO_TYPES: Final = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
    type(None): "<nil>",
}
_JSON_NAMES: Final = {list: "array", str: "string", bool: "bool", int: "number", float: "number"}


class ConversionError(Exception):
    """An object can't be converted; the text is upstream's."""


class _Response(msgspec.Struct, rename={"objects": "convertedObjects"}):
    objects: list[msgspec.Raw] | None = None


class _Answer(msgspec.Struct):
    response: _Response | None = None


_raw_answer: Final = msgspec.json.Decoder(_Answer).decode


def version_of(accepted: list[str]) -> str:
    """The first version of ConversionReview that both sides know. ConversionError."""
    if version := _REVIEW.version_of(accepted):
        return version
    raise ConversionError("no supported conversion review versions")


def review(uid: str, version: str, obj: Object, group_version: GroupVersion) -> bytes:
    """The review to send: one object, and the requested version."""
    # Go writes maps in the order of their keys, and what a webhook sends back is shown in some messages.
    ordered = json.decode(msgspec.json.encode(obj, order="sorted"))
    request = {"uid": uid, "desiredAPIVersion": str(group_version), "objects": [ordered]}
    blank: Object = {"uid": "", "convertedObjects": None, "result": {"metadata": {}}}
    document = {
        "kind": _REVIEW.kind,
        "apiVersion": f"{_REVIEW.group}/{version}",
        "request": request,
        "response": blank,
    }
    return json.encode(document) + b"\n"


def converted(data: bytes, uid: str, version: str, obj: Object, group_version: GroupVersion) -> Object:
    """The object as the answer to `review` has it, with its own metadata but for labels and annotations. ConversionError."""
    asked = shown(obj)
    try:
        objects = _objects(data, uid, version)
    except BadReview as error:
        raise ConversionError(f"{asked} failed: {error}") from None
    if len(objects) != 1:
        raise ConversionError(f"{asked} returned {len(objects)} objects, expected 1")
    first = _unstructured(objects[0])
    returned = f"{asked} returned invalid object"
    got = GroupVersion.parse(str(first.get("apiVersion") or ""))
    if got != group_version:
        raise ConversionError(f"{returned} at index 0: invalid groupVersion (expected {group_version}, received {got})")
    if first["kind"] != obj["kind"]:
        raise ConversionError(f"{returned} at index 0: invalid kind (expected {obj['kind']}, received {first['kind']})")
    for name, key in (("name", "name"), ("namespace", "namespace"), ("UID", "uid")):
        before, after = _meta_text(obj, key), _meta_text(first, key)
        if before != after:
            raise ConversionError(f"{returned}: must have the same {name}: {before} != {after}")
    try:
        first["metadata"] = _restored(obj, first)
    except ValueError as error:
        raise ConversionError(f"{asked} returned invalid metadata: {error}") from None
    return first


def shown(obj: Object) -> str:
    """The beginning of messages about the conversion of an object."""
    gvk = GroupVersionKind(*GroupVersion.parse(obj["apiVersion"]), obj["kind"])
    return f"conversion webhook for {gvk.group}/{gvk.version}, Kind={gvk.kind}"


def _objects(data: bytes, uid: str, version: str) -> list[msgspec.Raw]:
    review = _REVIEW.decode(data, version)
    answer = review.get("response")
    if version == "v1":  # v1beta1 didn't check this
        _REVIEW.check_kind(review, version)
    if answer is None:
        raise BadReview("no response provided")
    if version == "v1":
        check_uid(uid, answer)
    result = answer.get("result") or {}
    status, message = result.get("status") or "", result.get("message") or ""
    if status != "Success":
        raise BadReview(message or f"response.result.status was '{status}', not 'Success'")
    if not answer.get("convertedObjects"):
        return []
    response = _raw_answer(data).response
    return (response.objects or []) if response is not None else []


def _unstructured(raw: msgspec.Raw) -> Object:
    """Decodes an object. Raises an error that shows the text if it isn't an object (upstream: Unstructured.UnmarshalJSON)."""
    document = json.decode(bytes(raw))
    if document is None:
        raise ConversionError("unexpected end of JSON input")
    if not isinstance(document, dict):
        name = _JSON_NAMES[type(document)]
        raise ConversionError(f"json: cannot unmarshal {name} into Go value of type map[string]interface {{}}")
    kind, api_version = document.get("kind"), document.get("apiVersion")
    is_version = not isinstance(api_version, str) or api_version.count("/") < 2
    if not isinstance(kind, str) or not kind or not is_version:
        raise ConversionError(f"Object 'Kind' is missing in '{bytes(raw).decode()}'")
    return document


def _meta_text(obj: Object, key: str) -> str:
    meta = obj.get("metadata")
    value = meta.get(key) if isinstance(meta, dict) else None
    return value if isinstance(value, str) else ""


def _restored(obj: Object, converted: Object) -> Object:
    """The original's metadata with the converted object's labels and annotations. ValueError."""
    if "metadata" not in converted:
        raise ValueError("missing metadata in converted object")
    answered = converted["metadata"]
    if not isinstance(answered, dict):
        raise ValueError(f"invalid metadata of type {_GO_TYPES[type(answered)]} in converted object")
    original = obj.get("metadata") or {}
    kept = {key: value for key, value in original.items() if key not in ("labels", "annotations")}
    for name in ("labels", "annotations"):
        value = answered.get(name)
        if value is None:
            continue
        if not isinstance(value, dict):
            raise ValueError(f"invalid metadata.{name} of type {_GO_TYPES[type(value)]} in converted object")
        for key, item in value.items():
            if not isinstance(item, str):
                go_type = _GO_TYPES[type(item)]
                raise ValueError(f"metadata.{name}[{key}] must be a string, but is {go_type} in converted object")
        if value != (original.get(name) or {}) and (errors := _errors(name, value)):
            raise ValueError(aggregated(errors))
        kept[name] = value
    return kept


def _errors(name: str, values: Mapping[str, Any]) -> ErrorList:
    if name == "labels":
        return names.validate_labels(values, Path("metadata").child("labels"))
    return names.validate_annotations(values, Path("metadata").child("annotation"))
