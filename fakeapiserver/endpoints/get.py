"""GET of one object (upstream: k8s.io/apiserver/pkg/endpoints/handlers/get.go)."""

from fakeapiserver.apimachinery.errors import StatusError, new_bad_request, new_not_found, new_timeout
from fakeapiserver.apimachinery.field import go_quote
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.storage.interface import ResourceVersionTooLarge


async def get(request: Request, scope: RequestScope) -> Response:
    info, store = request.info, scope.store
    assert store is not None
    respond.accepted(request, scope)
    minimum = minimum_revision(request.param("resourceVersion")) if request.query else 0
    try:
        found = await store.storage.get(store.key(info.namespace, info.name), minimum_revision=minimum)
    except ResourceVersionTooLarge as error:
        raise too_large(minimum, error.current) from None
    if found is None:
        raise new_not_found(scope.resource.gvr.group_resource, info.name)
    return respond.stored_object(request, scope, found.value)


def minimum_revision(text: str) -> int:
    """A resourceVersion parameter as a revision, 0 where there is none; StatusError 400 for what isn't one."""
    if text in ("", "0"):
        return 0
    if not (text.isascii() and text.isdigit()):
        quoted = go_quote(text)
        raise new_bad_request(
            f"invalid resource version: resourceVersion: Invalid value: {quoted}: "
            f"strconv.ParseUint: parsing {quoted}: invalid syntax"
        )
    return int(text)


def too_large(wanted: int, current: int) -> StatusError:
    """504 for a revision that is not there yet (upstream: storage.NewTooLargeResourceVersionError)."""
    error = new_timeout(f"Too large resource version: {wanted}, current: {current}", 1)
    error.status["details"]["causes"] = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    return error
