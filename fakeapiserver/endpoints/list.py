"""LIST: a page, or all, of a collection (upstream: handlers/get.go ListResource, storage/etcd3/store.go GetList)."""

from fakeapiserver.apimachinery.errors import StatusError, new_bad_request, new_resource_expired
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.endpoints import respond, selection, table
from fakeapiserver.endpoints.get import minimum_revision, too_large
from fakeapiserver.endpoints.negotiation import PROTOBUF, Accept
from fakeapiserver.endpoints.options import ListOptions, list_options
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.registry.generic.store import Store
from fakeapiserver.storage import continue_token
from fakeapiserver.storage.interface import Compacted, ListResult, ResourceVersionTooLarge

_EXPIRED = "The provided continue parameter is too old to display a consistent list result. "


async def list_(request: Request, scope: RequestScope) -> Response:
    options = list_options(request.query)
    accept = respond.accepted(request, scope)
    return await answer(request, scope, accept, await find(request, scope, options))


async def find(request: Request, scope: RequestScope, options: ListOptions) -> ListResult:
    """What the options ask for. StatusError 400, 410 and 504 where it can't be had."""
    store = scope.store
    assert store is not None
    prefix = store.collection(request.info.namespace)
    predicate = selection.predicate(options, request.info, scope) if request.query else None
    revision, start = _position(options, prefix)
    try:
        found = await store.storage.list(
            prefix, revision=revision, start=start, limit=max(options.limit, 0), predicate=predicate
        )
    except ResourceVersionTooLarge as error:
        raise too_large(revision, error.current) from None
    except Compacted as error:
        raise _expired(options, error.oldest, start, prefix) from None
    await _not_older_than(options, store)
    return found


async def answer(request: Request, scope: RequestScope, accept: Accept, found: ListResult) -> Response:
    """The list in the form that the client takes."""
    assert scope.store is not None
    meta = _list_meta(found, scope.store.collection(request.info.namespace))
    if accept.as_kind == "PartialObjectMetadataList":
        return await _partial(request, scope, accept, found, meta)
    if accept.as_kind:
        return _converted(request, scope, accept, found, meta)
    if scope.kind.custom:
        meta.setdefault("continue", "")  # upstream's lists of custom resources always carry it
    if accept.media_type == PROTOBUF:
        body = await scope.protobuf.list([item.value for item in found.items], meta)
        return respond.answer(request, body, PROTOBUF)
    return respond.raw(request, listing(scope, found, meta), accept)


def listing(scope: RequestScope, found: ListResult, meta: Object) -> bytes:
    """The list's bytes: a join of what is stored."""
    gvk = scope.gvk
    items = scope.listed([item.value for item in found.items])
    head = f'{{"kind":"{scope.list_kind}","apiVersion":"{gvk.group_version}","metadata":'.encode()
    return b"".join((head, json.encode(meta), b',"items":[', items, b"]}"))


async def _partial(request: Request, scope: RequestScope, accept: Accept, found: ListResult, meta: Object) -> Response:
    form, values = scope.partial(accept.as_version), [item.value for item in found.items]
    if accept.media_type == PROTOBUF:
        return respond.answer(request, await form.protobuf.list(values, meta), PROTOBUF)
    return respond.raw(request, form.list(values, meta), accept)


def _converted(request: Request, scope: RequestScope, accept: Accept, found: ListResult, meta: Object) -> Response:
    objects = [scope.decode(item.value) for item in found.items]
    return respond.encoded(request, table.transformed(request, scope, accept, objects, meta), accept)


def _position(options: ListOptions, prefix: str) -> tuple[int, str]:
    """The revision to list at (0: now) and the key to start after."""
    if options.continue_:
        if options.resource_version not in ("", "0"):
            raise new_bad_request("specifying resource version is not allowed when using continue")
        token = continue_token.decode(options.continue_, prefix)
        return token.revision, token.start
    revision = minimum_revision(options.resource_version)
    match = options.resource_version_match
    exact = match == "Exact" or (not match and options.limit > 0 and revision > 0)
    return (revision if exact else 0), ""


async def _not_older_than(options: ListOptions, store: Store) -> None:
    """A list from now on is never older than what was asked for, unless that revision isn't there yet."""
    if options.continue_ or options.resource_version in ("", "0"):
        return
    wanted = minimum_revision(options.resource_version)
    if wanted > store.storage.revision:
        raise too_large(wanted, store.storage.revision)


def _list_meta(found: ListResult, prefix: str) -> Object:
    meta: Object = {"resourceVersion": str(found.revision)}
    if found.more:
        meta["continue"] = continue_token.encode(found.items[-1].key + "\0", prefix, found.revision)
        if found.remaining:
            meta["remainingItemCount"] = found.remaining
    return meta


def _expired(options: ListOptions, oldest: int, start: str, prefix: str) -> StatusError:
    """410; for a page that came too late with a token that goes on all the same, at the newest state."""
    if options.continue_:
        error = new_resource_expired(
            _EXPIRED
            + "You can start a new list without the continue parameter, or use the continue token in this response "
            "to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - "
            "objects that were created, modified, or deleted between the time the first chunk was returned and now may show "
            "up in the list."
        )
        error.status["metadata"] = {"continue": continue_token.encode(start, prefix, continue_token.INCONSISTENT)}
        return error
    return new_resource_expired(f"The resourceVersion for the provided list is too old. ({oldest})")
