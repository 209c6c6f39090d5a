"""DeleteOptions from a request's body or query, with every complaint worded as upstream words it.

Upstream: k8s.io/apiserver/pkg/endpoints/handlers/delete.go, k8s.io/apimachinery/pkg/apis/meta/{v1/register.go,v1/validation}.
"""

from collections.abc import Mapping
from typing import Final

from fakeapiserver.apimachinery.errors import new_bad_request
from fakeapiserver.apimachinery.gvk import GroupVersion, GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.schema.builtin import compile_builtin
from fakeapiserver.apimachinery.schema.cbor import documents as cbor_documents
from fakeapiserver.apimachinery.schema.resolve import Definitions
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.effort import computed
from fakeapiserver.endpoints.negotiation.documents import decode_document
from fakeapiserver.endpoints.negotiation.media_types import CBOR, JSON, PROTOBUF, body_media_type
from fakeapiserver.endpoints.negotiation.refusals import type_meta_error
from fakeapiserver.endpoints.negotiation.type_meta import checked_type_meta, not_registered
from fakeapiserver.endpoints.request import Request
from fakeapiserver.endpoints.verbs.options import DeleteOptions, delete_options

_DEFINITION: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"
_META_V1: Final = "meta.k8s.io/v1"
# The type under which audit logs the options.
_INTERNAL: Final = "meta.k8s.io/__internal"
# Other kinds that upstream's decoder of options knows, in any version and in one.
_UNVERSIONED: Final = frozenset(("Status", "APIVersions", "APIGroup", "APIGroupList", "APIResourceList"))
_TABLES: Final = ("PartialObjectMetadata", "PartialObjectMetadataList", "Table", "TableOptions")
_OPTIONS: Final = ("CreateOptions", "GetOptions", "ListOptions", "PatchOptions", "UpdateOptions", "WatchEvent")
_KNOWN: Final[Mapping[str, frozenset[str]]] = {
    _META_V1: frozenset((*_OPTIONS, *_TABLES)),
    "meta.k8s.io/v1beta1": frozenset(_TABLES),
}


async def read_delete_options(request: Request, definitions: Definitions) -> DeleteOptions:
    """Reads the options from the body, or from the query without a body. Raises StatusError 400, 413, 415 and 422."""
    data = await request.body()
    if not data:
        return delete_options(request.query, None)
    body = await computed(lambda: _decode(request, data, definitions), len(data))
    if request.audit is not None:
        request.audit.log_request_object({**body, "kind": "DeleteOptions", "apiVersion": _INTERNAL}, {})
    return delete_options(request.query, body)


def _decode(request: Request, data: bytes, definitions: Definitions) -> Object:
    media_type = body_media_type(request.header(b"content-type"), request.supported)
    if media_type == CBOR:
        return _decode_cbor(data, definitions)
    try:
        try:
            document, _ = decode_document(data, media_type)
        except json.NumberTooLarge:
            if media_type != JSON:
                raise
            document = json.decode_as_written(data)  # its field says whether the number is too large
        body = checked_type_meta(document)
    except ValueError as error:
        raise new_bad_request(str(error) if media_type == PROTOBUF else type_meta_error(error)) from None
    _check_kind(body)
    return _decoded(body, definitions)


def _decode_cbor(data: bytes, definitions: Definitions) -> Object:
    try:
        _check_kind(cbor_documents.type_meta(data))
        return cbor_documents.decode(data, definitions, _DEFINITION, strict=False).obj
    except ValueError as error:
        raise new_bad_request(str(error)) from None


def _check_kind(body: Object) -> None:
    """Every group registers DeleteOptions in its own version, so any apiVersion will do for the right kind."""
    kind = body.get("kind") or "DeleteOptions"
    if kind == "DeleteOptions":
        return
    group_version = GroupVersion.parse(body.get("apiVersion") or _META_V1)
    if kind in _UNVERSIONED or kind in _KNOWN.get(str(group_version), ()):
        why = f"converting (v1.{kind}) to (v1.DeleteOptions): unknown conversion"
    else:
        why = not_registered(GroupVersionKind(*group_version, kind))
    raise new_bad_request(why)


def _decoded(body: Object, definitions: Definitions) -> Object:
    try:
        compile_builtin(definitions, _DEFINITION).decode(body)
    except ValueError as error:
        raise new_bad_request(str(error)) from None
    return body
