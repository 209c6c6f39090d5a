"""WATCH: a stream of events, one JSON document a line or one protobuf frame each.

Upstream: k8s.io/apiserver/pkg/endpoints/handlers/watch.go, storage/cacher/{cacher,cache_watcher}.go.
"""

import random
from collections.abc import AsyncGenerator
from typing import Final

from fakeapiserver.apimachinery.errors import Status, new_resource_expired
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.endpoints import respond, selection, table
from fakeapiserver.endpoints.get import minimum_revision
from fakeapiserver.endpoints.negotiation import JSON, PROTOBUF, PROTOBUF_STREAM, YAML, Accept, not_streamable
from fakeapiserver.endpoints.options import ListOptions, list_options
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.storage.interface import Compacted, Event, StoredObject, Watcher

_BOOKMARK_PERIOD: Final = 60.0
_INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"


async def watch(request: Request, scope: RequestScope) -> Response:
    """StatusErrors come before the stream starts; what happens later is an ERROR event."""
    store = scope.store
    assert store is not None
    options = list_options(request.query)
    accept = respond.accepted(request, scope)
    if accept.media_type == YAML:
        raise not_streamable()
    predicate = selection.predicate(options, request.info, scope)
    prefix = store.collection(request.info.namespace)
    revision = minimum_revision(options.resource_version)
    form = Form(request, scope, accept)
    initial = _wants_initial_events(options, revision)
    items: list[StoredObject] = []
    start = revision
    if initial:
        found = await store.storage.list(prefix, predicate=predicate)
        items, start = found.items, max(found.revision, revision)
    try:
        watcher = store.storage.watch(prefix, revision=start, predicate=predicate)
    except Compacted as error:
        frames = _gone(form, revision, error.oldest)
        return Response(200, content_type=form.content_type, stream=frames)
    stream = Stream(watcher, form, options, scope)
    return Response(200, content_type=form.content_type, stream=stream.frames(items, start))


def _wants_initial_events(options: ListOptions, revision: int) -> bool:
    if options.send_initial_events is not None:
        return options.send_initial_events
    return revision == 0


async def _gone(form: "Form", revision: int, oldest: int) -> AsyncGenerator[bytes, None]:
    """A watch from a revision that is no longer known is answered with one ERROR event."""
    yield form.error(new_resource_expired(f"too old resource version: {revision} ({oldest})").status)


class Form:
    """How events are written: the whole object, its Table or its metadata. All but Tables are encoded once for all
    watchers and kept beside the event."""

    def __init__(self, request: Request, scope: RequestScope, accept: Accept) -> None:
        self._request = request
        self._scope = scope
        self._accept = accept
        self._protobuf = accept.media_type == PROTOBUF
        self._key = (
            f"{scope.gvk.group_version}/{scope.gvk.kind} {accept.media_type} {accept.as_kind}/{accept.as_version}"
        )
        self._columns_sent = False
        self.content_type = PROTOBUF_STREAM if self._protobuf else JSON

    def event(self, event: Event) -> bytes:
        if self._accept.as_kind == "Table":
            return self._transformed(event.type, self._scope.decode(event.object.value))
        frame = event.frames.get(self._key)
        if frame is None:
            frame = event.frames[self._key] = self._frame(event.type, self._served(event.object.value))
        return frame

    def added(self, item: StoredObject) -> bytes:
        if self._accept.as_kind == "Table":
            return self._transformed("ADDED", self._scope.decode(item.value))
        return self._frame("ADDED", self._served(item.value))

    def bookmark(self, revision: int, annotations: dict[str, str] | None = None) -> bytes:
        scope = self._scope
        assert scope.store is not None
        strategy = scope.store.strategy
        obj: Object = {"kind": scope.gvk.kind, "apiVersion": str(scope.gvk.group_version)}
        if not scope.kind.custom:
            scope.kind.decode(obj)
        if strategy.blank_spec:
            obj["spec"] |= strategy.blank_spec
        obj["metadata"] = {"resourceVersion": str(revision)}
        if annotations or strategy.converted_annotations:
            obj["metadata"]["annotations"] = {**strategy.converted_annotations, **(annotations or {})}
        if self._accept.as_kind:
            return self._transformed("BOOKMARK", obj)
        return self._frame("BOOKMARK", self._encoded(obj))

    def error(self, status: Status) -> bytes:
        return self._frame("ERROR", self._encoded(status))

    def _transformed(self, kind: str, obj: Object) -> bytes:
        shown: Object
        version = self._accept.as_version
        if self._accept.as_kind == "Table":
            include = table.include_object(self._request)
            shown = {
                "kind": "Table",
                "apiVersion": f"meta.k8s.io/{version}",
                "metadata": {"resourceVersion": metadata(obj).get("resourceVersion", "")},
                # Upstream sends the columns with the first event only.
                "columnDefinitions": None if self._columns_sent else table.columns(self._scope),
                "rows": [table.row(self._scope, obj, include, version)],
            }
            self._columns_sent = True
        else:
            shown = table.partial_object(self._scope, obj, version)
        return self._frame(kind, self._encoded(shown))

    def _served(self, value: bytes) -> bytes:
        if self._accept.as_kind:
            form = self._scope.partial(self._accept.as_version)
            return form.protobuf.object(value) if self._protobuf else form.object(value)
        return self._scope.protobuf.object(value) if self._protobuf else self._scope.served(value)

    def _encoded(self, obj: Object) -> bytes:
        if self._protobuf:
            from fakeapiserver.endpoints import protobuf

            return protobuf.encode(obj)
        return json.encode(obj)

    def _frame(self, kind: str, obj: bytes) -> bytes:
        if self._protobuf:
            from fakeapiserver.apimachinery.serializer.protobuf import watch_frame

            return watch_frame(kind, obj)
        return b'{"type":"' + kind.encode() + b'","object":' + obj + b"}\n"


class Stream:
    """One watch as it runs: initial events, then batches as they come, bookmarks in between, until the time is up, the
    client is gone or the watcher has fallen behind for good."""

    def __init__(self, watcher: Watcher, form: Form, options: ListOptions, scope: RequestScope) -> None:
        self._watcher = watcher
        self._form = form
        self._options = options
        self._clock = scope.clock
        lifetime = options.timeout_seconds
        # Not a secret: the spread only keeps clients from coming back all at once.
        self._lifetime = lifetime if lifetime else scope.min_request_timeout * (1 + random.random())

    async def frames(self, items: list[StoredObject], revision: int) -> AsyncGenerator[bytes, None]:
        try:
            end = self._clock.monotonic() + self._lifetime
            initial = b"".join(map(self._form.added, items))
            if self._options.send_initial_events and self._options.allow_watch_bookmarks:
                initial += self._form.bookmark(revision, {_INITIAL_EVENTS_END: "true"})
            # Even without events the headers must go out now: clients wait for them.
            yield initial
            async for chunk in self._live(end):
                yield chunk
        finally:
            self._watcher.close()

    async def _live(self, end: float) -> AsyncGenerator[bytes, None]:
        next_bookmark = self._clock.monotonic() + _BOOKMARK_PERIOD
        while True:
            now = self._clock.monotonic()
            if now >= end:
                return
            events = await self._watcher.next_batch(min(end, next_bookmark) - now)
            if events is None:
                return  # fallen behind or shut down: a clean end, the client resumes from its last revision
            if events:
                yield b"".join(map(self._form.event, events))
            if self._clock.monotonic() >= next_bookmark:
                next_bookmark += _BOOKMARK_PERIOD
                if self._options.allow_watch_bookmarks:
                    yield self._form.bookmark(self._watcher.progress)
