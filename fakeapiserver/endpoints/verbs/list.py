"""LIST: a page, or all, of a collection (upstream: handlers/get.go ListResource, storage/etcd3/store.go GetList)."""

import asyncio
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from msgspec import Struct

from fakeapiserver.apimachinery.errors import StatusError, new_bad_request, new_internal_error, new_resource_expired
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.effort import computed
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.negotiation import table
from fakeapiserver.endpoints.negotiation.media_types import CBOR, JSON, PROTOBUF, Accept
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.endpoints.verbs import selection
from fakeapiserver.endpoints.verbs.get import parse_revision, too_large
from fakeapiserver.endpoints.verbs.options import ListOptions, list_options
from fakeapiserver.registry.generic.interfaces import NotConverted, unready_cache
from fakeapiserver.storage import continue_token
from fakeapiserver.storage.interface import (
    Compacted,
    ListQuery,
    ListResult,
    ResourceVersionTooLarge,
    StoredObject,
    Unreadable,
)

# The Go packages of groups that aren't called by the group's first word.
_PACKAGES: Final[Mapping[str, str]] = {
    "": "core",
    "events.k8s.io": "core",
    "internal.apiserver.k8s.io": "apiserverinternal",
}

# Bytes from which on a list is made while it is sent, and those of a piece: others are answered in between.
_LARGE: Final = 1 << 20
_PIECE: Final = 1 << 18
_HASHED_AT_ONCE: Final = 1000
_MEASURED_AT_ONCE: Final = 50_000
_EXPIRED = "The provided continue parameter is too old to display a consistent list result. "


async def list_(request: Request, scope: RequestScope) -> Response:
    accept = respond.accepted(request, scope)
    options = await computed(partial(list_options, request.query), request.query_size)
    result = await find(request, scope, options)
    return await answer(request, scope, accept, result, options)


async def find(request: Request, scope: RequestScope, options: ListOptions, *, pages: bool = False) -> ListResult:
    """The objects that the options select. StatusError 400, 410, 429, 504. `pages`: upstream reads page by page (deletecollection)."""
    store = scope.store
    assert store is not None
    prefix = store.collection(request.info.namespace)
    predicate = None
    if request.query:
        predicate = await computed(partial(selection.predicate, options, request.info, scope), request.query_size)
    single = _is_single(request, scope)
    position = _position(options, prefix, single=single)
    # Only upstream's cache sends Retry-After, and it can't answer for a single object at an exact revision (as with a limit).
    exact = options.resource_version_match == "Exact" or (options.limit > 0 and not options.resource_version_match)
    retry_after = int(store.strategy.cached and not (single and exact))
    storage = store.storage if request.injection is None else request.injection.storage(store.storage)
    try:
        if request.injection is not None and request.injection.expires_pages:
            raise Compacted(position.revision + 1)
        query = ListQuery(
            revision=position.revision,
            start=position.start,
            limit=position.limit,
            predicate=predicate,
            minimum_revision=position.minimum if options.resource_version and not options.continue_ else None,
        )
        result = await storage.list(prefix, query)
    except NotConverted as error:
        # Upstream doesn't need its cache for pages without a selector.
        raise (
            error if error.unready is None or (predicate is None and (options.limit > 0 or pages)) else error.unready
        ) from None
    except Unreadable as error:
        if predicate is None and (options.limit > 0 or pages):
            raise new_internal_error(error.in_list) from None
        raise unready(scope, error) from None
    except ResourceVersionTooLarge as error:
        raise too_large(position.revision or position.minimum, error.current, retry_after=retry_after) from None
    except Compacted:
        raise _expired(options, position.start, prefix) from None
    if position.minimum > result.revision:
        raise too_large(position.minimum, result.revision, retry_after=retry_after)
    return result


async def answer(
    request: Request, scope: RequestScope, accept: Accept, result: ListResult, options: ListOptions
) -> Response:
    """The list in the form that the client accepts."""
    assert scope.store is not None
    meta = _list_meta(result, scope.store.collection(request.info.namespace), options)
    if accept.as_kind == "PartialObjectMetadataList":
        return await _partial(request, scope, accept, result, meta)
    if accept.as_kind:
        return _converted(request, scope, accept, result, meta)
    if scope.dialect.shows_shards and (sharding := selection.shard(options, scope)) is not None:
        meta["shardInfo"] = {"selector": str(sharding)}
    if accept.media_type in (PROTOBUF, CBOR):
        respond.log_response_object(request, lambda: _listing(scope, result, meta))
    if accept.media_type == PROTOBUF:
        body = await scope.protobuf.list([item.value for item in result.items], meta)
        return respond.answer(request, body, PROTOBUF)
    if accept.media_type == CBOR:
        return respond.answer(request, scope.cbor.list(_listing(scope, result, meta)), CBOR)
    size = await _size(result.items)
    is_plain = accept.media_type == JSON and not respond.pretty(request, accept)
    if is_plain and request.audit is None and request.injection is None:
        if respond.compresses(request, size):
            content = (scope.gvk, _listing(scope, ListResult([], result.revision), meta), *await _digest(scope, result))
            pieces = scope.compressed.pieces(content, _pieces(scope, result, meta))
            return respond.in_pieces(pieces, size, JSON, compressed=True)
        if size >= _LARGE:
            return respond.in_pieces(_pieces(scope, result, meta), size, JSON)
    return respond.raw(request, _listing(scope, result, meta), accept)


async def _size(items: list[StoredObject]) -> int:
    """Returns the bytes of objects."""
    size = 0
    for start in range(0, len(items), _MEASURED_AT_ONCE):
        if start:
            await asyncio.sleep(0)
        size += sum([len(item.value) for item in items[start : start + _MEASURED_AT_ONCE]])
    return size


async def _digest(scope: RequestScope, result: ListResult) -> tuple[int, int, int]:
    """Returns what distinguishes these items from others. Hashes are kept with the bytes, so that only new objects cost something."""
    digest = 0
    for start in range(0, len(result.items), _HASHED_AT_ONCE):
        if start:
            await asyncio.sleep(0)
        digest = hash((digest, *(item.value for item in result.items[start : start + _HASHED_AT_ONCE])))
    return digest, len(result.items), scope.outdated_before


def _pieces(scope: RequestScope, result: ListResult, meta: Object) -> Iterator[bytes]:
    """Yields the bytes of `_listing` piece by piece."""
    # No text within the metadata has plain quotes.
    before, items, after = _listing(scope, ListResult([], result.revision), meta).partition(b'"items":[')
    yield before + items
    piece: list[bytes] = []
    size, separator = 0, b""
    for item in result.items:
        piece.append(item.value)
        size += len(item.value)
        if size >= _PIECE:
            yield separator + scope.listed(piece)
            piece, size, separator = [], 0, b","
    if piece:
        yield separator + scope.listed(piece)
    yield after


def _listing(scope: RequestScope, result: ListResult, meta: Object) -> bytes:
    """Returns the list's bytes, joined from stored bytes."""
    api_version, kind = json.encode(str(scope.gvk.group_version)), json.encode(scope.list_kind)
    items = scope.listed([item.value for item in result.items])
    return scope.dialect.listing(api_version, kind, meta, items)


async def _partial(request: Request, scope: RequestScope, accept: Accept, result: ListResult, meta: Object) -> Response:
    form, values = scope.partial(accept.as_version), [item.value for item in result.items]
    if accept.media_type == PROTOBUF:
        respond.log_response_object(request, lambda: form.list(values, meta))
        return respond.answer(request, await form.protobuf.list(values, meta), PROTOBUF)
    return respond.raw(request, form.list(values, meta), accept)


def _converted(request: Request, scope: RequestScope, accept: Accept, result: ListResult, meta: Object) -> Response:
    objects = [scope.internal(item.value) for item in result.items]
    return respond.encoded(request, table.transformed(request, scope, accept, objects, meta), accept)


class Position(Struct, frozen=True):
    """The requested part of the collection:

    at `revision` (0: now), at least `minimum`, from the key `start` on, `limit` objects (0: all).
    """

    revision: int = 0
    minimum: int = 0
    start: str = ""
    limit: int = 0


def _is_single(request: Request, scope: RequestScope) -> bool:
    """A list that upstream reads as one object: its name, and where it needs one its namespace, are given."""
    return bool(request.info.name) and (not scope.resource.namespaced or bool(request.info.namespace))


def _position(options: ListOptions, prefix: str, *, single: bool) -> Position:
    """Upstream: ValidateListOptions in storage/interfaces.go, computeListLimit in storage/cacher/cacher.go."""
    limit = max(options.limit, 0)
    text = options.resource_version
    if options.continue_:
        token = continue_token.decode(options.continue_, prefix)
        if text not in ("", "0"):
            raise new_bad_request("specifying resource version is not allowed when using continue")
        return Position(token.revision, 0, token.start, 0 if text else limit)
    revision = parse_revision(text)
    if text == "0" or single:
        limit = 0  # any state will do: upstream hands out all that its cache holds
    match = options.resource_version_match
    if match == "Exact" or (not match and limit and revision):
        return Position(revision, 0, "", limit)
    return Position(0, revision, "", limit)


def unready(scope: RequestScope, error: Unreadable) -> StatusError:
    """The error of upstream's cache of a kind with an object that can't be decrypted."""
    gvk = scope.gvk
    package = _PACKAGES.get(gvk.group) or gvk.group.partition(".")[0]
    kind = str(gvk) if scope.kind.custom else f"*{package}.{gvk.kind}"
    return unready_cache(kind, error.in_list, error.seconds)


def revision_expired() -> StatusError:
    """410 for a list at a revision that is too old (upstream: apiserver's pkg/storage/etcd3/errors.go)."""
    return new_resource_expired("The resourceVersion for the provided list is too old.")


def _list_meta(result: ListResult, prefix: str, options: ListOptions) -> Object:
    meta: Object = {"resourceVersion": str(result.revision)} if result.revision else {}
    if result.more:
        meta["continue"] = continue_token.encode(result.items[-1].key + "\0", prefix, result.revision)
        # A shard's are counted as if it were everything.
        if result.remaining and options.label_selector is None and options.field_selector is None:
            meta["remainingItemCount"] = result.remaining
    return meta


def _expired(options: ListOptions, start: str, prefix: str) -> StatusError:
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
    return revision_expired()
