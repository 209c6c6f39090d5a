"""The client for scripts and tests without an event loop: a thin face, the work is the asyncio client's, in a thread of its own.

with connect() as client:
    client.resource("deploy").namespaced("default").list()["items"]
"""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from fakeapiserver.apimachinery.gvk import GroupVersionKind, GroupVersionResource
from fakeapiserver.client import dynamic, kubeconfig, wait
from fakeapiserver.client.config import RESTConfig
from fakeapiserver.client.discovery import DiscoveryClient, MemoryCache
from fakeapiserver.client.rest import Object, RESTClient, WatchEvent
from fakeapiserver.client.rest_mapper import RESTMapper

T = TypeVar("T")


class _Loop:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fakeapiserver-client", daemon=True)
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()


class Resource:
    """The objects of one resource; the methods are those of dynamic.ResourceClient."""

    def __init__(self, loop: _Loop, client: dynamic.ResourceClient) -> None:
        self._loop = loop
        self._client = client

    def namespaced(self, namespace: str) -> Self:
        """The same resource in a namespace."""
        return type(self)(self._loop, self._client.namespaced(namespace))

    def get(self, name: str, *subresources: str) -> Object:
        return self._loop.call(self._client.get(name, *subresources))

    def list(self, **options: Unpack[dynamic.ListOptions]) -> Object:
        return self._loop.call(self._client.list(**options))

    def create(self, obj: Object, *subresources: str, **options: Unpack[dynamic.WriteOptions]) -> Object:
        return self._loop.call(self._client.create(obj, *subresources, **options))

    def update(self, obj: Object, *subresources: str, **options: Unpack[dynamic.WriteOptions]) -> Object:
        return self._loop.call(self._client.update(obj, *subresources, **options))

    def patch(
        self,
        name: str,
        patch: Object | Sequence[Object],
        *subresources: str,
        patch_type: str = dynamic.MERGE_PATCH,
        **options: Unpack[dynamic.WriteOptions],
    ) -> Object:
        return self._loop.call(self._client.patch(name, patch, *subresources, patch_type=patch_type, **options))

    def apply(
        self, obj: Object, *subresources: str, force: bool = False, **options: Unpack[dynamic.WriteOptions]
    ) -> Object:
        return self._loop.call(self._client.apply(obj, *subresources, force=force, **options))

    def delete(self, name: str, *subresources: str, **options: Unpack[dynamic.DeleteOptions]) -> Object:
        return self._loop.call(self._client.delete(name, *subresources, **options))

    def delete_collection(
        self, selection: dynamic.ListOptions | None = None, **options: Unpack[dynamic.DeleteOptions]
    ) -> Object:
        return self._loop.call(self._client.delete_collection(selection, **options))

    def watch(self, **options: Unpack[dynamic.ListOptions]) -> Generator[WatchEvent, None, None]:
        """Events until the server ends the watch, or the iterator is closed."""
        events = self._client.watch(**options)
        try:
            while (event := self._loop.call(_next(events))) is not None:
                yield event
        finally:
            self._loop.call(_closed(events))

    def until(self, condition: Callable[[Object | None], bool], *, name: str, timeout: float = 30.0) -> Object | None:
        """Waits until `condition` holds for the object, without asking again and again. TimeoutError."""
        return self._loop.call(wait.until(self._client, condition, name=name, timeout=timeout))


class Client:
    """A context manager, or `close()` it."""

    def __init__(self, config: RESTConfig) -> None:
        self._loop = _Loop()
        self._rest = self._loop.call(_made(config))
        self._dynamic = dynamic.DynamicClient(self._rest)
        self._mapper = RESTMapper(MemoryCache(DiscoveryClient(self._rest)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections and ends the thread."""
        self._loop.call(_close(self._rest))
        self._loop.stop()

    def resource(self, resource: str | GroupVersionResource, namespace: str = "") -> Resource:
        """By GroupVersionResource, or as people type it: `pods`, `deploy`, `widgets.example.com`. NoMatchError (a LookupError)."""
        if isinstance(resource, str):
            resource = self._loop.call(self._mapper.mapping_for(resource)).gvr
        return Resource(self._loop, self._dynamic.resource(resource, namespace))

    def apply(self, obj: Object, *, field_manager: str, force: bool = False, namespace: str = "") -> Object:
        """Server-side apply of an object of whatever kind, which names its apiVersion and kind."""
        return self._loop.call(self._apply(obj, field_manager, namespace, force=force))

    def request(
        self, method: str, path: str, *, body: Object | None = None, params: Mapping[str, str] | None = None
    ) -> Object:
        """Any path, `/version` say."""
        return self._loop.call(self._rest.request(method, path, body=body, params=params)).json()

    async def _apply(self, obj: Object, field_manager: str, namespace: str, *, force: bool) -> Object:
        group, _, version = str(obj.get("apiVersion", "")).rpartition("/")
        mapping = await self._mapper.mapping_of(GroupVersionKind(group, version, str(obj.get("kind", ""))))
        found = obj["metadata"].get("namespace") or namespace or self._rest.config.namespace
        client = self._dynamic.resource(mapping.gvr, found if mapping.namespaced else "")
        return await client.apply(obj, field_manager=field_manager, force=force)


def connect(config: RESTConfig | str | os.PathLike[str] | None = None) -> Client:
    """A client of the server that `config` (or a kubeconfig's path) names; without one, of the server kubectl would use."""
    return Client(config if isinstance(config, RESTConfig) else kubeconfig.load(config))


async def _made(config: RESTConfig) -> RESTClient:
    return RESTClient(config)


async def _close(rest: RESTClient) -> None:
    rest.close()


async def _next(events: Any) -> WatchEvent | None:
    async for event in events:
        return event  # type: ignore[no-any-return]
    return None


async def _closed(events: Any) -> None:
    async with aclosing(events):
        pass
