"""GET of one object (upstream: k8s.io/apiserver/pkg/endpoints/handlers/get.go)."""

from functools import partial

from fakeapiserver.apimachinery.errors import StatusError, new_bad_request, new_not_found, new_timeout
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.go.strconv import parse_uint
from fakeapiserver.effort import computed
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.negotiation.media_types import JSON
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.endpoints.verbs.options import boolean
from fakeapiserver.storage.interface import ResourceVersionTooLarge


async def get(request: Request, scope: RequestScope) -> Response:
    info, store = request.info, scope.store
    assert store is not None
    accept = respond.accepted(request, scope)
    if "export" in request.query and boolean(request.query, "export"):
        raise new_bad_request("the export parameter, deprecated since v1.14, is no longer supported")
    key = store.key(info.namespace, info.name)
    text = request.param("resourceVersion") if request.query else ""
    minimum = parse_revision(text, "")
    storage = store.storage if request.injection is None else request.injection.storage(store.storage)
    try:
        item = await storage.get(key, minimum_revision=minimum if text else None)
    except ResourceVersionTooLarge as error:
        raise too_large(minimum, error.current, retry_after=int(store.strategy.cached)) from None
    if item is None:
        raise new_not_found(scope.resource.gvr.group_resource, info.name)
    answer = partial(respond.stored_object, request, scope, item.value, accept=accept)
    is_as_stored = accept.media_type == JSON and not accept.as_kind
    return answer() if is_as_stored else await computed(answer, len(item.value))


def parse_revision(text: str, prefix: str = "invalid resource version: ") -> int:
    """A resourceVersion parameter as a revision, 0 if it is absent. StatusError 400 if it isn't a number."""
    if text in ("", "0"):
        return 0
    try:
        return parse_uint(text)
    except ValueError as error:
        raise new_bad_request(f"{prefix}resourceVersion: Invalid value: {go_quote(text)}: {error}") from None


def too_large(wanted: int, current: int, *, retry_after: int) -> StatusError:
    """504 for a revision that doesn't exist yet (upstream: storage.NewTooLargeResourceVersionError); `retry_after` in seconds,
    0 leaves it out."""
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    error = new_timeout(f"Too large resource version: {wanted}, current: {current}", retry_after)
    error.status["details"] = {"causes": causes, **error.status["details"]}
    return error
