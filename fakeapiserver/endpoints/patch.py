"""PATCH: JSON patch, merge patch, strategic merge patch and server-side apply.

Each becomes a transform of the current object; the store's write loop runs it, again where a write was lost to a race.
Upstream: k8s.io/apiserver/pkg/endpoints/handlers/patch.go.
"""

from collections.abc import Callable
from typing import Any, Final

from fakeapiserver.apimachinery import field, managedfields
from fakeapiserver.apimachinery.errors import StatusError, new_bad_request, new_conflict, new_invalid, status_error
from fakeapiserver.apimachinery.gvk import GroupKind, GroupVersion, GroupVersionKind
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.patch import json as json_patch
from fakeapiserver.apimachinery.patch import merge as merge_patch
from fakeapiserver.apimachinery.patch import strategic
from fakeapiserver.apimachinery.patch.go_format import go_value
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.body import GO_NAMES, decode_body, not_registered
from fakeapiserver.endpoints.create import match_namespace, write_request
from fakeapiserver.endpoints.negotiation import JSON, YAML
from fakeapiserver.endpoints.options import WriteOptions, write_options
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.endpoints.update import match_name

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"

Patcher = Callable[[Object], Any]


async def patch(request: Request, scope: RequestScope) -> Response:
    store = scope.store
    assert store is not None
    media_type = request.header(b"content-type").partition(";")[0].strip()
    _check_media_type(media_type, scope)
    respond.accepted(request, scope)
    data = await request.body()
    options = write_options(request.query, "PatchOptions", apply=media_type == APPLY_PATCH)
    wanted = write_request(request, scope, options, request.info.name)
    if media_type == APPLY_PATCH:
        wanted.applied = True
        transform, creates = _applier(request, scope, options, data), not request.info.subresource
    else:
        transform, creates = _patcher(request, scope, options, media_type, data), False
    written = await store.update(wanted, transform, create=creates)
    return respond.stored_object(request, scope, written.value, 201 if written.created else 200)


def _check_media_type(media_type: str, scope: RequestScope) -> None:
    """Strategic merge patch needs Go types, so custom resources don't have it."""
    allowed = [JSON_PATCH, MERGE_PATCH, APPLY_PATCH]
    if not scope.kind.custom:
        allowed.append(STRATEGIC_MERGE_PATCH)
    if media_type in allowed:
        return
    if scope.kind.custom:
        named = ", ".join([JSON_PATCH, MERGE_PATCH, APPLY_PATCH])
        message = f"the body of the request was in an unknown format - accepted media types include: {named}"
        raise status_error(415, "UnsupportedMediaType", message)
    raise status_error(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})


# ------------------------------------------------------------------ patches


def _patcher(
    request: Request, scope: RequestScope, options: WriteOptions, media_type: str, data: bytes
) -> Callable[[Object | None], Object]:
    before = list(request.warnings)
    change, complaints, document = _change(scope, options, media_type, data)

    def transform(current: Object | None) -> Object:
        assert current is not None  # patches never create
        patched = change(current)
        # What can't be decoded is shown in the message: the document, or of a strategic merge the patch.
        shown = _go_shown(document) if document is not None else None
        warnings = [*complaints, *_decode(patched, scope, shown)]
        if warnings and options.field_validation == "Strict":
            raise _invalid_patch(patched, "strict decoding error: " + ", ".join(warnings), shown)
        if options.field_validation != "Ignore":
            request.warnings[:] = [*before, *warnings]
        match_namespace(patched, request, scope)
        match_name(patched, request.info.name)
        return patched  # type: ignore[no-any-return]

    return transform


def _change(
    scope: RequestScope, options: WriteOptions, media_type: str, data: bytes
) -> tuple[Patcher, list[str], Object | None]:
    """The patch as a function of the current object, the texts of its duplicate fields, and a strategic merge itself."""
    if media_type == JSON_PATCH:
        operations = json_patch.decode(data, field_validation=options.field_validation)
        return (lambda current: json_patch.apply(current, operations)), json_patch.complaints(data), None
    try:
        document, duplicates = decode_body(data, JSON)
    except ValueError as error:
        raise new_bad_request(str(error) if media_type != MERGE_PATCH else f"error decoding patch: {error}") from None
    if document is None and media_type == MERGE_PATCH:
        raise new_bad_request("Invalid JSON Patch")
    if not isinstance(document, dict):
        if document is not None:
            name = GO_NAMES[type(document)]
            prefix = "error decoding patch: " if media_type == MERGE_PATCH else ""
            raise new_bad_request(
                f"{prefix}json: cannot unmarshal {name} into Go value of type map[string]interface {{}}"
            )
        document = {}
    if media_type == MERGE_PATCH:
        return (lambda current: merge_patch.apply(current, document)), duplicates, None
    kind = scope.kind
    change: Patcher = lambda current: strategic.apply(current, document, kind.definition, kind.definitions)  # noqa: E731
    return change, duplicates, document


def _decode(patched: Any, scope: RequestScope, shown: str | None) -> list[str]:
    """The patched document back into its kind: what can't be is a 422 that shows the document."""
    if not isinstance(patched, dict):
        raise _invalid_patch(patched, "json: cannot unmarshal the patched document into an object")
    kind = scope.kind
    gvk = kind.gvk
    patched["kind"] = patched.get("kind") or gvk.kind
    patched["apiVersion"] = patched.get("apiVersion") or str(gvk.group_version)
    found = GroupVersionKind(*GroupVersion.parse(str(patched["apiVersion"])), str(patched["kind"]))
    if found != gvk:
        raise _invalid_patch(patched, not_registered(found), shown)
    try:
        unknown = kind.decode(patched)
    except ValueError as error:
        raise _invalid_patch(patched, str(error), shown) from None
    if not isinstance(patched.get("metadata"), dict):
        patched["metadata"] = {}
    kind.default(patched)
    return unknown


# The order of Go's ObjectMeta, in which an untouched metadata is shown.
_META_ORDER: Final = (
    *("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp"),
    *("deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers"),
    "managedFields",
)


def _shown(patched: Any) -> Any:
    """The patched document as upstream's message prints it."""
    if not isinstance(patched, dict):
        return patched
    ordered = {key: patched[key] for key in sorted(patched)}
    meta = ordered.get("metadata")
    if isinstance(meta, dict):
        ordered["metadata"] = {key: meta[key] for key in (*_META_ORDER, *meta) if key in meta}
    return ordered


def _go_shown(document: Object) -> str:
    """A strategic merge patch as Go prints the map, without what it deletes."""
    return go_value(_without_nulls(document))


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return value


def _invalid_patch(patched: Any, why: str, shown: str | None = None) -> StatusError:
    text = shown if shown is not None else json.encode(_shown(patched)).decode()
    return new_invalid(GroupKind("", ""), "", [field.invalid("patch", text, why)])


# -------------------------------------------------------------------- apply


def _applier(
    request: Request, scope: RequestScope, options: WriteOptions, data: bytes
) -> Callable[[Object | None], Object]:
    applied, duplicates = _decode_applied(data)
    _check_applied_type(applied, scope)
    store = scope.store
    assert store is not None
    info, before = request.info, list(request.warnings)

    def transform(current: Object | None) -> Object:
        if current is None and metadata(applied).get("uid"):
            stated = metadata(applied)["uid"]
            reason = f"uid mismatch: the provided object specified uid {stated}, and no existing object was found"
            raise new_conflict(store.resource, info.name, reason)
        # Decoding changes in place, and the transform may run again.
        wanted: Object = json.decode(json.encode(applied))
        # Unknown fields aren't complained about: the merge itself refuses them.
        warnings = duplicates
        if warnings and options.field_validation == "Strict":
            raise new_bad_request("strict decoding error: " + ", ".join(warnings))
        if options.field_validation != "Ignore":
            request.warnings[:] = [*before, *warnings]
        result = managedfields.apply(
            current,
            wanted,
            schema=scope.kind.typed,
            manager=options.field_manager,
            force=bool(options.force),
            api_version=str(scope.gvk.group_version),
            subresource=info.subresource,
            now=rfc3339(scope.clock.now()),
            reset_fields=store.strategy.reset_paths(info.subresource),
        )
        scope.kind.decode(result)
        scope.kind.default(result)
        if current is None:
            metadata(result).setdefault("name", info.name)
        match_namespace(result, request, scope)
        match_name(result, info.name)
        return result

    return transform


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


def _check_applied_type(applied: Object, scope: RequestScope) -> None:
    gvk = scope.gvk
    api_version, kind = str(applied.get("apiVersion") or ""), str(applied.get("kind") or "")
    if kind != gvk.kind or api_version != str(gvk.group_version):
        version = GroupVersion.parse(api_version)
        raise new_bad_request(f"invalid object type: {version.group}/{version.version}, Kind={kind}")
