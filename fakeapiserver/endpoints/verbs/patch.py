"""PATCH: JSON patch, merge patch, strategic merge patch and server-side apply.

Each becomes a transform of the current object, which the store's write loop runs, and runs again if the write loses a race.
Upstream: k8s.io/apiserver/pkg/endpoints/handlers/patch.go.
"""

from typing import Final

from fakeapiserver.apimachinery.errors import new_bad_request
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.dialect.interface import Dialect
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.endpoints.verbs.apply import applier
from fakeapiserver.endpoints.verbs.create import match_namespace, write_request
from fakeapiserver.endpoints.verbs.options import WriteOptions, write_options
from fakeapiserver.endpoints.verbs.patch_text import APPLY_CBOR_PATCH, APPLY_PATCH, check_text, in_json
from fakeapiserver.endpoints.verbs.patch_types import JSONPatch, MergePatch, PatchType, StrategicMergePatch
from fakeapiserver.endpoints.verbs.update import match_name, require_name
from fakeapiserver.registry.generic.kind import Kind
from fakeapiserver.registry.generic.write_request import Transform

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"


async def patch(request: Request, scope: RequestScope) -> Response:
    store = scope.store
    assert store is not None
    options, transform, applied = await prepared(request, scope, scope)
    wanted = write_request(request, scope, options, request.info.name)
    wanted.applied = applied
    subresource = request.info.subresource
    by_status = store.strategy.allow_create_on_update or store.strategy.status_apply_creates
    creates = applied and (not subresource or (subresource == "status" and by_status))
    written = await store.write(wanted, transform, create=creates)
    return respond.stored_object(request, scope, written.value, 201 if written.created else 200)


async def prepared(request: Request, scope: RequestScope, stored: RequestScope) -> tuple[WriteOptions, Transform, bool]:
    """Returns a patch's options, its transform, and whether it is an apply, which updates managedFields itself.

    The transform reads the body, so that an invalid patch of an object that doesn't exist is a 404.
    stored: the scope of the stored object, whose dialect decides which patches there are; a Scale's is that of its parent.
    """
    media_type = patch_type(request, stored.dialect)
    require_name(request)
    respond.accepted(request, scope)
    data = await request.body()
    applied = media_type in (APPLY_PATCH, APPLY_CBOR_PATCH)
    options = write_options(request.query, "PatchOptions", apply=applied)
    is_checked = stored.store is not None and stored.store.strategy.features.at_least("v1.37")
    if is_checked:
        check_text(media_type, data)
    if request.audit is not None:
        request.audit.log_request_patch(in_json(media_type, data) if is_checked else data)
    if applied:
        return options, applier(request, scope, options, media_type, data, "patch" if is_checked else "YAML"), True
    return options, patcher(request, scope, options, media_type, data), False


def patch_type(request: Request, dialect: Dialect) -> str:
    """Returns the media type of the patch. Raises StatusError 415."""
    # Upstream only cuts off what follows a semicolon.
    media_type = request.header(b"content-type").partition(";")[0]
    allowed = dialect.patch_types(request.supported)
    if media_type not in allowed:
        raise dialect.wrong_patch_type(request, allowed)
    return media_type


def patcher(request: Request, scope: RequestScope, options: WriteOptions, media_type: str, data: bytes) -> Transform:
    """Returns the transform of a patch that isn't an apply."""

    def transform(current: Object | None) -> Object:
        assert current is not None  # patches never create
        change = _read(media_type, data, options, scope.kind)
        patched = scope.dialect.patched(change, current, scope)
        request.empties.clear()  # those of an attempt that lost its race
        warnings = [*change.complaints, *patched.decode(request.empties)]
        if warnings and options.field_validation == "Strict":
            raise patched.invalid("strict decoding error: " + ", ".join(warnings))
        if options.field_validation != "Ignore":
            request.warnings += warnings
        match_namespace(patched.obj, request, scope)
        match_name(patched.obj, request.info.name)
        if not patched.obj.get("apiVersion"):
            raise new_bad_request("Object 'apiVersion' is missing in 'object has no apiVersion field'")
        return patched.obj

    return transform


def _read(media_type: str, data: bytes, options: WriteOptions, kind: Kind) -> PatchType:
    if media_type == JSON_PATCH:
        return JSONPatch.read(data, options.field_validation)
    if media_type == MERGE_PATCH:
        return MergePatch.read(data, options.field_validation)
    return StrategicMergePatch.read(data, kind)
