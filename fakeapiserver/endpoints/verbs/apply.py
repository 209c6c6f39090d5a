"""Server-side apply: a PATCH whose fields belong to a manager.

Upstream: k8s.io/apiserver/pkg/endpoints/handlers/patch.go (applyPatcher).
"""

from fakeapiserver.apimachinery import managedfields
from fakeapiserver.apimachinery.errors import StatusError, new_bad_request, new_conflict, status_error
from fakeapiserver.apimachinery.gvk import GroupVersion
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.schema import raw_text
from fakeapiserver.apimachinery.serializer import cbor
from fakeapiserver.apimachinery.serializer.yaml import UnsupportedMapKey, YAMLError
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.endpoints.negotiation.documents import decode_document
from fakeapiserver.endpoints.negotiation.media_types import YAML
from fakeapiserver.endpoints.negotiation.refusals import yaml_warnings
from fakeapiserver.endpoints.negotiation.type_meta import GO_NAMES
from fakeapiserver.endpoints.request import Request
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.endpoints.verbs.create import match_namespace
from fakeapiserver.endpoints.verbs.options import WriteOptions
from fakeapiserver.endpoints.verbs.patch_text import APPLY_PATCH
from fakeapiserver.endpoints.verbs.update import match_name
from fakeapiserver.registry.generic.write_request import Transform


def applier(
    request: Request, scope: RequestScope, options: WriteOptions, media_type: str, data: bytes, noun: str
) -> Transform:
    """Returns the transform of an apply, which merges the body into the current object and updates managedFields.

    `noun`: what errors call the body.
    """
    store, info = scope.store, request.info

    def transform(current: Object | None) -> Object:
        applied, duplicates = _decode(data, noun) if media_type == APPLY_PATCH else (_decode_cbor(data, noun), [])
        _check_type(applied, scope)
        uid = metadata(applied).get("uid")
        operation = _operation(scope, options.field_manager, info.subresource)
        result = managedfields.apply(current, applied, operation, force=bool(options.force))
        _settle(result, applied, current, request, scope)
        _report(duplicates, request, options, noun)
        if current is None and uid and store:
            reason = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise new_conflict(store.resource, info.name, reason)
        match_namespace(result, request, scope)
        match_name(result, info.name)
        return result

    return transform


def _operation(scope: RequestScope, manager: str, subresource: str) -> managedfields.Operation:
    if scope.store is not None:
        return scope.store.operation(scope.kind, manager, subresource)
    return managedfields.Operation(
        scope.kind.typed, manager, scope.gvk.api_version, subresource, rfc3339(scope.clock.now())
    )


def _settle(result: Object, applied: Object, current: Object | None, request: Request, scope: RequestScope) -> None:
    """Brings the merged object into its kind's form, in place, with defaults. Raises StatusError 500."""
    kind = scope.kind
    request.empties.clear()
    try:
        if (unread := metadata(applied).get("managedFields")) is not None:
            kind.decode({"metadata": {"managedFields": unread}})
        changes = current is None or not managedfields.same_content(current, result)
        if changes or scope.dialect.settles_unchanged:
            kind.settle(result, request.empties)
        if changes or current is None:
            raw_text.keep(result, kind.raw_fields, b"")
        else:
            raw_text.take(result, kind.raw_fields, current)
    except ValueError as error:
        raise _not_converted(applied, scope, str(error)) from None


def _report(duplicates: list[str], request: Request, options: WriteOptions, noun: str) -> None:
    """Warns of duplicate fields; unknown ones are refused by the merge. Raises StatusError 400 for Strict."""
    if duplicates and options.field_validation == "Strict":
        raise new_bad_request(f"error strict decoding {noun}: error converting YAML to JSON: {', '.join(duplicates)}")
    if options.field_validation != "Ignore":
        request.warnings += [line for text in duplicates for line in yaml_warnings(text)]


def _not_converted(applied: Object, scope: RequestScope, why: str) -> StatusError:
    """Upstream has no code for a merged object that fits its schema and not its Go type."""
    gvk = f"{scope.gvk.group}/{scope.gvk.version}, Kind={scope.gvk.kind}"
    where = f"{metadata(applied).get('namespace', '')}/{metadata(applied).get('name', '')}; {gvk}"
    message = f"to proper version: unable to convert unstructured object to {gvk}: {why}"
    return status_error(500, "", f"failed to convert new object ({where}) {message}")


def _decode(data: bytes, noun: str) -> tuple[Object, list[str]]:
    """`noun`: the version's word for the body in errors."""
    try:
        document, duplicates = decode_document(data, YAML)
    except ValueError as error:
        converts = isinstance(error, YAMLError) and not isinstance(error, UnsupportedMapKey)
        inner = f"error converting YAML to JSON: {error}" if converts else str(error)
        raise new_bad_request(f"error decoding {noun}: {inner}") from None
    if document is not None and not isinstance(document, dict):
        wrong = f"cannot unmarshal {GO_NAMES[type(document)]} into Go value of type map[string]interface {{}}"
        raise new_bad_request(f"error decoding {noun}: error unmarshaling JSON: while decoding JSON: json: {wrong}")
    return document or {}, duplicates


def _decode_cbor(data: bytes, noun: str) -> Object:
    try:
        return cbor.decode_map(data) or {}
    except ValueError as error:
        # Older servers call it YAML all the same.
        raise new_bad_request(f"error decoding {noun}: {error}") from None


def _check_type(applied: Object, scope: RequestScope) -> None:
    gvk = scope.gvk
    api_version, kind = (value if isinstance(value := applied.get(key), str) else "" for key in ("apiVersion", "kind"))
    if kind != gvk.kind or api_version != gvk.api_version:
        try:
            version = GroupVersion.parse(api_version)
        except ValueError:
            version, kind = GroupVersion("", ""), ""
        raise new_bad_request(f"invalid object type: {version.group}/{version.version}, Kind={kind}")
