"""PATCH: JSON patch, merge patch, strategic merge patch and server-side apply.

Each becomes a transform of the current object, which the store's write loop runs, and runs again if the write loses a race.
Upstream: k8s.io/apiserver/pkg/endpoints/handlers/patch.go.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from fakeapiserver.apimachinery import field, managedfields
from fakeapiserver.apimachinery.errors import StatusError, new_bad_request, new_conflict, new_invalid, status_error
from fakeapiserver.apimachinery.gvk import GroupKind, GroupVersion, GroupVersionKind
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.patch import json as json_patch
from fakeapiserver.apimachinery.patch import merge as merge_patch
from fakeapiserver.apimachinery.patch import strategic
from fakeapiserver.apimachinery.patch.go_format import go_value
from fakeapiserver.apimachinery.patch.texts import go_text
from fakeapiserver.apimachinery.schema import raw_text, unstructured
from fakeapiserver.apimachinery.schema.resolve import Definitions, Schema
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.apis.field_order import field_order
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.negotiation.body import (
    GO_NAMES,
    GO_TYPE_META,
    INTERNAL,
    about_metadata,
    checked_type_meta,
    decode_body,
    not_registered,
    type_meta_error,
    unserved_fields,
    yaml_warnings,
)
from fakeapiserver.endpoints.negotiation.media_types import CBOR, JSON, SUPPORTED, YAML, takes_body_type
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.endpoints.verbs import patched_text
from fakeapiserver.endpoints.verbs.create import match_namespace, write_request
from fakeapiserver.endpoints.verbs.options import WriteOptions, write_options
from fakeapiserver.endpoints.verbs.update import match_name, require_name
from fakeapiserver.registry.generic.kind import Kind
from fakeapiserver.registry.generic.write_request import Transform

if TYPE_CHECKING:
    from fakeapiserver.apimachinery.schema.decoders import Empties

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
APPLY_CBOR_PATCH: Final = "application/apply-patch+cbor"

_PATCHES: Final = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH)
Patcher = Callable[[Object], Any]


async def patch(request: Request, scope: RequestScope) -> Response:
    store = scope.store
    assert store is not None
    options, transform, applied = await prepared(request, scope, custom=scope.kind.custom)
    wanted = write_request(request, scope, options, request.info.name)
    wanted.applied = applied
    subresource = request.info.subresource
    by_status = store.strategy.allow_create_on_update or store.strategy.status_apply_creates
    creates = applied and (not subresource or (subresource == "status" and by_status))
    written = await store.write(wanted, transform, create=creates)
    return respond.stored_object(request, scope, written.value, 201 if written.created else 200)


async def prepared(request: Request, scope: RequestScope, *, custom: bool) -> tuple[WriteOptions, Transform, bool]:
    """A patch's options, its transform, and whether it is an apply, which updates managedFields itself.

    The transform reads the body, so that an invalid patch of an object that doesn't exist is a 404.
    """
    media_type = patch_type(request, custom)
    require_name(request)
    respond.accepted(request, scope)
    data = await request.body()
    applied = media_type in (APPLY_PATCH, APPLY_CBOR_PATCH)
    options = write_options(request.query, "PatchOptions", apply=applied)
    if request.audit is not None:
        request.audit.log_request_patch(data)
    if applied:
        return options, _applier(request, scope, options, media_type, data), True
    return options, _patcher(request, scope, options, media_type, data), False


def patch_type(request: Request, custom: bool) -> str:
    """The media type of the patch. Custom resources have no strategic merge patch, which needs Go types. StatusError 415."""
    # Upstream only cuts off what follows a semicolon.
    media_type = request.header(b"content-type").partition(";")[0]
    allowed = patch_types(request.supported, custom=custom)
    if media_type in allowed:
        return media_type
    # The router of built-in resources accepts what the handler doesn't know: surrounding spaces, and lists.
    if custom or takes_body_type(request.header(b"content-type"), allowed):
        named = ", ".join(allowed)
        message = f"the body of the request was in an unknown format - accepted media types include: {named}"
        raise status_error(415, "UnsupportedMediaType", message)
    # The router doesn't know the resource's media types.
    request.supported = SUPPORTED
    raise status_error(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})


def patch_types(supported: Sequence[str], *, custom: bool) -> list[str]:
    """The media types of patches for resources with these media types."""
    allowed = [JSON_PATCH, MERGE_PATCH, APPLY_PATCH] if custom else [*_PATCHES, APPLY_PATCH]
    return [*allowed, APPLY_CBOR_PATCH] if CBOR in supported else allowed


# ------------------------------------------------------------------ patches


def _patcher(
    request: Request, scope: RequestScope, options: WriteOptions, media_type: str, data: bytes
) -> Callable[[Object | None], Object]:
    def transform(current: Object | None) -> Object:
        assert current is not None  # patches never create
        change = _change(scope, options, media_type, data)
        patched = change.apply(current)
        ordered = change.ordered(current, patched)
        if change.merged and not scope.kind.custom:
            patched = _by_name(patched)
        request.empties.clear()  # those of an attempt that lost its race
        warnings = [*change.complaints, *_decode(patched, scope, change, ordered, request.empties)]
        if warnings and options.field_validation == "Strict":
            raise _invalid_patch(change.shown(ordered), "strict decoding error: " + ", ".join(warnings))
        if options.field_validation != "Ignore":
            request.warnings += warnings
        match_namespace(patched, request, scope)
        match_name(patched, request.info.name)
        if not patched.get("apiVersion"):
            raise new_bad_request("Object 'apiVersion' is missing in 'object has no apiVersion field'")
        return patched  # type: ignore[no-any-return]

    return transform


class _Change(Struct, frozen=True):
    """A patch: a function of the current object, and the texts of its duplicate fields. `strategic` is a strategic merge
    patch, `operations` are those of a JSON patch, `merged` is the text of a merge patch."""

    apply: Patcher
    complaints: list[str]
    scope: RequestScope
    strategic: Object | None = None
    operations: Sequence[json_patch.Operation] = ()
    merged: bytes = b""

    def ordered(self, current: Object, patched: Any) -> Callable[[], Any]:
        """Returns a function for the document in messages, which may be called before or after decoding.

        The result is the document in its text's order, or what is left of a strategic merge patch.
        """
        kind, merged = self.scope.kind, self.strategic
        if merged is not None:
            return lambda: _merged_away(merged, current)
        # Decoding replaces the root's members, and what custom resources hold.
        root = dict(patched) if isinstance(patched, dict) else patched
        if kind.custom:
            text = json.encode(self._written(current, root, None, {}))
            return lambda: msgspec.Raw(text)
        definition = {"$ref": "#/components/schemas/" + kind.definition_name}
        return lambda: self._written(current, root, definition, kind.definitions)

    def _written(self, current: Object, patched: Any, definition: Schema | None, definitions: Definitions) -> Any:
        """The document in the order of its text, and with the numbers and strings that the patch has there."""
        operations = patched_text.operations_as_written(self.operations)
        if self.merged and (written := patched_text.as_written(self.merged, None)) is not None:
            patched = merge_patch.apply(current, written)
        return patched_text.ordered(patched, operations, current, definition, definitions)

    def shown(self, ordered: Callable[[], Any]) -> str:
        """Returns the document for the message that it can't be decoded."""
        if self.strategic is not None:
            return go_value(ordered())
        return go_text(ordered()).decode()


def _change(scope: RequestScope, options: WriteOptions, media_type: str, data: bytes) -> _Change:
    if media_type == JSON_PATCH:
        operations = json_patch.decode(data, field_validation=options.field_validation)
        apply: Patcher = lambda current: json_patch.apply(current, operations)  # noqa: E731
        return _Change(apply, json_patch.complaints(data), scope, operations=operations)
    merging = media_type == MERGE_PATCH
    # With Ignore a merge patch isn't decoded before it is applied: only what applies it complains, and takes lists.
    unseen = merging and options.field_validation == "Ignore"
    try:
        document, duplicates = decode_body(data, JSON)
    except ValueError as error:
        if unseen:
            raise new_bad_request("Invalid JSON Patch") from None
        raise new_bad_request(str(error) if not merging else f"error decoding patch: {error}") from None
    if (unseen and not isinstance(document, dict | list)) or (document is None and merging):
        raise new_bad_request("Invalid JSON Patch")
    if not isinstance(document, dict) and not unseen:
        if document is not None:
            name = GO_NAMES[type(document)]
            prefix = "error decoding patch: " if merging else ""
            raise new_bad_request(
                f"{prefix}json: cannot unmarshal {name} into Go value of type map[string]interface {{}}"
            )
        document = {}
    if merging:
        return _Change(lambda current: merge_patch.apply(current, document), duplicates, scope, merged=data)
    kind = scope.kind
    strategically: Patcher = lambda current: strategic.apply(current, document, kind.definition, kind.definitions)  # noqa: E731
    return _Change(strategically, duplicates, scope, strategic=document)


def _decode(
    patched: Any, scope: RequestScope, change: _Change, ordered: Callable[[], Any], empties: "Empties"
) -> list[str]:
    """Decodes the patched document into its kind and returns the texts of unknown fields. StatusError 422, which shows the document, if
    it can't be decoded."""
    kind = scope.kind
    if not isinstance(patched, dict):  # the patch was a list, which replaces the document
        why = type_meta_error("json: cannot unmarshal array into Go value of type " + GO_TYPE_META)
        raise _invalid_patch(change.shown(ordered), why)
    elsewhere: list[str] | None = None
    if kind.custom:
        found = _custom_type(patched, change, ordered)
    else:
        elsewhere = _builtin_type(patched, kind, change, ordered) or None
    try:
        if kind.custom and found != kind.gvk:
            elsewhere = _unknown_elsewhere(patched, found, scope)
        unknown = kind.decode(patched, empties, from_map=change.strategic is not None)
        if elsewhere is not None:
            unknown = elsewhere
        elif len(unknown) > 1:
            # Reported in the order of the document that upstream decodes.
            unknown = (
                sorted(unknown) if change.strategic is not None or kind.custom else kind.decode(_read_again(ordered))
            )
    except ValueError as error:
        raise _invalid_patch(change.shown(ordered), _first_problem(error, kind, change, ordered)) from None
    if not isinstance(patched.get("metadata"), dict):
        patched["metadata"] = {}
    kind.default(patched)
    return unknown


def _first_problem(error: ValueError, kind: Kind, change: _Change, ordered: Callable[[], Any]) -> str:
    """The error that Go meets first in the text of the document."""
    if change.strategic is None and not kind.custom:
        try:
            kind.decode(_read_again(ordered))
        except ValueError as first:
            return str(first)
    return str(error)


def _read_again(ordered: Callable[[], Any]) -> Any:
    """The document, decoded again from its text, as upstream does."""
    return json.decode_as_written(go_text(ordered()))


def _builtin_type(patched: Object, kind: Kind, change: _Change, ordered: Callable[[], Any]) -> list[str]:
    """Sets the object's type, and returns the texts of its unknown fields: all of them, if the patch has removed the version.
    StatusError 422 for an object of another kind."""
    gvk = kind.gvk
    try:
        if change.strategic is not None:
            unstructured.restore(patched, kind.definition_name, kind.definitions, field_order)
            patched |= {"kind": gvk.kind, "apiVersion": str(gvk.group_version)}
            raw_text.keep(patched, kind.raw_fields, b"")
            return []
        checked_type_meta(patched)
        if kind.raw_fields:
            raw_text.keep_stored(patched, kind.raw_fields, go_text(ordered()))
    except ValueError as error:
        why = str(error) if change.strategic is not None else type_meta_error(str(error))
        raise _invalid_patch(change.shown(ordered), why) from None
    unknown = [] if patched.get("apiVersion") else sorted(patched.keys() - {"kind", "apiVersion"})
    for name in unknown:
        del patched[name]
    # A version that isn't said is the internal one, of which the object is that the patch is decoded into.
    version = patched.get("apiVersion") or str(GroupVersion(gvk.group, INTERNAL))
    found = GroupVersionKind(*GroupVersion.parse(version), patched.get("kind") or gvk.kind)
    if found not in (gvk, GroupVersionKind(gvk.group, INTERNAL, gvk.kind)):
        raise _invalid_patch(change.shown(ordered), not_registered(found))
    patched |= {"kind": gvk.kind, "apiVersion": str(gvk.group_version)}
    return [f"unknown field {field.go_quote(name)}" for name in unknown]


def _custom_type(patched: Object, change: _Change, ordered: Callable[[], Any]) -> GroupVersionKind:
    """The type that a custom resource names after the patch. StatusError 400, 422."""
    null = patched.get("apiVersion", "") is None
    why = ""
    try:
        checked_type_meta(patched)
        if not patched.get("kind"):
            why = f"Object 'Kind' is missing in '{go_text(ordered()).decode()}'"
        elif null:
            why = ".apiVersion accessor error: <nil> is of the type <nil>, expected string"
    except ValueError as error:
        why = type_meta_error(str(error))
    if why:
        raise _invalid_patch(change.shown(ordered), why)
    return GroupVersionKind(*GroupVersion.parse(patched.get("apiVersion", "")), patched["kind"])


def _unknown_elsewhere(patched: Object, found: GroupVersionKind, scope: RequestScope) -> list[str]:
    """The unknown fields of a custom resource that names another type."""
    if found.group_kind != scope.gvk.group_kind:
        return sorted(about_metadata(scope.kind.decode(json.decode(json.encode(patched)))))
    assert scope.store is not None
    try:
        return scope.store.versions.kind_in(str(found.group_version)).decode(json.decode(json.encode(patched)))
    except LookupError:
        return unserved_fields(patched, scope.kind)


def _by_name(value: Any) -> Any:
    """A copy with the members of objects in the order of their names, since a merge patch's result goes through text and Go's maps.
    An object with repeated names (json.Repeated, no plain dict) stays as it is, for the decoder to report them."""
    if type(value) is dict:
        return {key: _by_name(value[key]) for key in sorted(value)}
    return [_by_name(item) for item in value] if type(value) is list else value


def _merged_away(patch: Object, current: Object) -> Object:
    """Returns what merging leaves of a patch: no nulls in values that are new to the object, or have another type there.

    Those in lists stay.
    """
    return {
        key: item
        if item is None or (isinstance(item, list) and isinstance(current.get(key), list))
        else _merged_away(item, current[key])
        if isinstance(item, dict) and isinstance(current.get(key), dict)
        else _without_nulls(item)
        for key, item in patch.items()
    }


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _invalid_patch(shown: str, why: str) -> StatusError:
    return new_invalid(GroupKind("", ""), "", [field.invalid("patch", shown, why)])


# -------------------------------------------------------------------- apply


def _applier(request: Request, scope: RequestScope, options: WriteOptions, media_type: str, data: bytes) -> Transform:
    store, info = scope.store, request.info

    def transform(current: Object | None) -> Object:
        applied, duplicates = _decode_applied(data) if media_type == APPLY_PATCH else (_decode_applied_cbor(data), [])
        _check_applied_type(applied, scope)
        stated = metadata(applied).get("uid")
        result = managedfields.apply(
            current,
            applied,
            schema=scope.kind.typed,
            manager=options.field_manager,
            force=bool(options.force),
            api_version=str(scope.gvk.group_version),
            subresource=info.subresource,
            now=rfc3339(scope.clock.now()),
            reset_fields=store.strategy.reset_paths(info.subresource) if store else (),
            convert=store.versions.in_version if store else None,
            schema_of=store.versions.typed if store else None,
        )
        request.empties.clear()
        try:
            if (unread := metadata(applied).get("managedFields")) is not None:
                scope.kind.decode({"metadata": {"managedFields": unread}})
            changes = current is None or not managedfields.same_content(current, result)
            # An apply that changes nothing adds no defaults to what another version has stored without them, either.
            if changes or not scope.kind.custom:
                scope.kind.settle(result, request.empties)
            if changes:
                raw_text.keep(result, scope.kind.raw_fields, b"")
            else:
                raw_text.take(result, scope.kind.raw_fields, current)
        except ValueError as error:
            raise _not_converted(applied, scope, str(error)) from None
        # Unknown fields need no report: the merge itself refuses them.
        if duplicates and options.field_validation == "Strict":
            raise new_bad_request(f"error strict decoding YAML: error converting YAML to JSON: {', '.join(duplicates)}")
        if options.field_validation != "Ignore":
            request.warnings += [line for text in duplicates for line in yaml_warnings(text)]
        if current is None and stated and store:
            reason = f"uid mismatch: the provided object specified uid {stated}, and no existing object was found"
            raise new_conflict(store.resource, info.name, reason)
        match_namespace(result, request, scope)
        match_name(result, info.name)
        return result

    return transform


def _not_converted(applied: Object, scope: RequestScope, why: str) -> StatusError:
    """Upstream has no code for a merged object that fits its schema and not its Go type."""
    gvk = f"{scope.gvk.group}/{scope.gvk.version}, Kind={scope.gvk.kind}"
    where = f"{metadata(applied).get('namespace', '')}/{metadata(applied).get('name', '')}; {gvk}"
    message = f"to proper version: unable to convert unstructured object to {gvk}: {why}"
    return status_error(500, "", f"failed to convert new object ({where}) {message}")


def _decode_applied(data: bytes) -> tuple[Object, list[str]]:
    try:
        document, duplicates = decode_body(data, YAML)
    except ValueError as error:
        text = str(error)
        inner = f"error converting YAML to JSON: {text}" if text.startswith(("yaml:", "json: unsupported")) else text
        raise new_bad_request(f"error decoding YAML: {inner}") from None
    if document is not None and not isinstance(document, dict):
        wrong = f"cannot unmarshal {GO_NAMES[type(document)]} into Go value of type map[string]interface {{}}"
        raise new_bad_request(f"error decoding YAML: error unmarshaling JSON: while decoding JSON: json: {wrong}")
    return document or {}, duplicates


def _decode_applied_cbor(data: bytes) -> Object:
    from fakeapiserver.apimachinery.serializer import cbor

    try:
        return cbor.decode_map(data) or {}
    except ValueError as error:
        # Upstream calls it YAML all the same.
        raise new_bad_request(f"error decoding YAML: {error}") from None


def _check_applied_type(applied: Object, scope: RequestScope) -> None:
    gvk = scope.gvk
    api_version, kind = (value if isinstance(value := applied.get(key), str) else "" for key in ("apiVersion", "kind"))
    if kind != gvk.kind or api_version != str(gvk.group_version):
        try:
            version = GroupVersion.parse(api_version)
        except ValueError:
            version, kind = GroupVersion("", ""), ""
        raise new_bad_request(f"invalid object type: {version.group}/{version.version}, Kind={kind}")
