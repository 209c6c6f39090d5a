"""The client for scripts and tests without an event loop: a thin face, the work is the asyncio client's, in a thread of its own.

    with connect() as client:
        deployments = client.resource("deploy").namespaced("default")
        deployments.apply(manifest, field_manager="me")
        deployments.until(wait.has_condition("Available"), name="web", timeout=60.0)
        print(b"".join(client.logs("web-0", tail_lines=10)).decode())
        client.run("web-0", ["cat", "/etc/hostname"]).stdout

Everything raises what the asyncio client raises: StatusError (the server refuses; `errors.is_not_found(error)` and similar functions say
why), TransportError (there is no server), TimeoutError, and ValueError for invalid arguments. Times are in seconds. A client may be used by
several threads.
"""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from fakeapiserver.apimachinery.gvk import GroupVersionKind, GroupVersionResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client import dynamic, kubeconfig, pager, streams, wait
from fakeapiserver.client.config import RESTConfig
from fakeapiserver.client.discovery import DiscoveryClient, MemoryCache
from fakeapiserver.client.rest import RESTClient, WatchEvent
from fakeapiserver.client.rest_mapper import RESTMapper

__all__ = ["Client", "Resource", "connect"]

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

    @contextmanager
    def within(self, opened: AbstractAsyncContextManager[T]) -> Generator[T, None, None]:
        entered = self.call(_entered(opened))
        try:
            yield entered
        finally:
            self.call(_left(opened))

    def iterate(self, opened: AbstractAsyncContextManager[AsyncIterator[T]]) -> Generator[T, None, None]:
        with self.within(opened) as items:
            while True:
                try:
                    item = self.call(_next(items))
                except _Ended:
                    return
                yield item

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

    def get(self, name: str, *subresources: str, resource_version: str = "") -> Object:
        """Returns one object. `resource_version` "0" accepts a cached state."""
        return self._loop.call(self._client.get(name, *subresources, resource_version=resource_version))

    def list(self, **options: Unpack[dynamic.ListOptions]) -> Object:
        """The list object: `items`, and `metadata` with resourceVersion and continue."""
        return self._loop.call(self._client.list(**options))

    def each(
        self, page_size: int = pager.PAGE_SIZE, **options: Unpack[dynamic.ListOptions]
    ) -> Generator[Object, None, None]:
        """The objects of a long list, asked for `page_size` at a time; each names its apiVersion and kind."""
        yield from self._loop.iterate(aclosing(pager.each_item(self._client, page_size, **options)))

    def create(self, obj: Object, *subresources: str, **options: Unpack[dynamic.WriteOptions]) -> Object:
        """A new object; a subresource (eviction, binding, token) is that of the object named."""
        return self._loop.call(self._client.create(obj, *subresources, **options))

    def update(self, obj: Object, *subresources: str, **options: Unpack[dynamic.WriteOptions]) -> Object:
        """Replaces the object named; its resourceVersion must be the stored one's, unless it has none."""
        return self._loop.call(self._client.update(obj, *subresources, **options))

    def update_status(self, obj: Object, **options: Unpack[dynamic.WriteOptions]) -> Object:
        """`update` of the status subresource."""
        return self.update(obj, "status", **options)

    def patch(
        self,
        name: str,
        patch: Object | Sequence[Object],
        *subresources: str,
        patch_type: str = dynamic.MERGE_PATCH,
        **options: Unpack[dynamic.WriteOptions],
    ) -> Object:
        """The patched object. `patch_type`: dynamic.MERGE_PATCH, STRATEGIC_MERGE_PATCH, or JSON_PATCH, which takes a list."""
        return self._loop.call(self._client.patch(name, patch, *subresources, patch_type=patch_type, **options))

    def apply(
        self, obj: Object, *subresources: str, force: bool = False, **options: Unpack[dynamic.WriteOptions]
    ) -> Object:
        """Server-side apply; `field_manager` is needed, `force` takes fields from other managers."""
        return self._loop.call(self._client.apply(obj, *subresources, force=force, **options))

    def apply_status(self, obj: Object, *, force: bool = False, **options: Unpack[dynamic.WriteOptions]) -> Object:
        """`apply` of the status subresource."""
        return self.apply(obj, "status", force=force, **options)

    def delete(self, name: str, *subresources: str, **options: Unpack[dynamic.DeleteOptions]) -> Object:
        """The object, if finalizers or grace keep it for now, else a Status."""
        return self._loop.call(self._client.delete(name, *subresources, **options))

    def delete_collection(
        self, selection: dynamic.ListOptions | None = None, **options: Unpack[dynamic.DeleteOptions]
    ) -> Object:
        """Deletes all that `selection` selects, everything without one."""
        return self._loop.call(self._client.delete_collection(selection, **options))

    def watch(self, **options: Unpack[dynamic.ListOptions]) -> Generator[WatchEvent, None, None]:
        """Events until the server ends the watch, or the iterator is closed; see dynamic.ResourceClient.watch."""
        yield from self._loop.iterate(aclosing(self._client.watch(**options)))

    def until(self, condition: Callable[[Object | None], bool], *, name: str, timeout: float = 30.0) -> Object | None:
        """Waits until `condition` holds for the object (None while it does not exist) and returns the object.

        No state is missed, and nothing is polled. `wait.has_condition` and `wait.is_deleted` create conditions. Raises TimeoutError after
        `timeout` seconds.
        """
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
        """Sends a request for any path, such as `/version`."""
        return self._loop.call(self._rest.request(method, path, body=body, params=params)).json()

    def logs(
        self, pod: str, *, namespace: str = "", **options: Unpack[streams.LogOptions]
    ) -> Generator[bytes, None, None]:
        """Yields a container's log in pieces as they arrive; `b"".join(…)` is all of it."""
        yield from self._loop.iterate(streams.logs(self._rest, pod, namespace=namespace, **options))

    def run(
        self,
        pod: str,
        command: Sequence[str],
        *,
        namespace: str = "",
        container: str = "",
        stdin: bytes | None = None,
    ) -> streams.Completed:
        """Runs `command` in a container to its end (`kubectl exec`): exit_code, stdout, stderr."""
        running = streams.run(self._rest, pod, command, namespace=namespace, container=container, stdin=stdin)
        return self._loop.call(running)

    @contextmanager
    def port_forward(
        self, pod: str, port: int, *, namespace: str = "", local_port: int = 0
    ) -> Generator[int, None, None]:
        """Leads connections to a port of this machine, which is given, to a pod's, while the block runs."""
        forwarder = streams.PortForwarder(self._rest, pod, port, namespace=namespace, local_port=local_port)
        with self._loop.within(forwarder) as local:
            yield local

    async def _apply(self, obj: Object, field_manager: str, namespace: str, *, force: bool) -> Object:
        group, _, version = str(obj.get("apiVersion", "")).rpartition("/")
        mapping = await self._mapper.mapping_of(GroupVersionKind(group, version, str(obj.get("kind", ""))))
        target_namespace = obj["metadata"].get("namespace") or namespace or self._rest.config.namespace
        client = self._dynamic.resource(mapping.gvr, target_namespace if mapping.namespaced else "")
        return await client.apply(obj, field_manager=field_manager, force=force)


def connect(config: RESTConfig | str | os.PathLike[str] | None = None) -> Client:
    """A client of the server that `config` (or a kubeconfig's path) names; without one, of the server kubectl would use."""
    return Client(config if isinstance(config, RESTConfig) else kubeconfig.load(config))


async def _made(config: RESTConfig) -> RESTClient:
    return RESTClient(config)


async def _close(rest: RESTClient) -> None:
    rest.close()


class _Ended(Exception):
    """There is no more. (A StopAsyncIteration can't leave a coroutine.)"""


async def _next(items: AsyncIterator[T]) -> T:
    async for item in items:
        return item
    raise _Ended


async def _entered(opened: AbstractAsyncContextManager[T]) -> T:
    return await opened.__aenter__()


async def _left(opened: AbstractAsyncContextManager[Any]) -> None:
    await opened.__aexit__(None, None, None)
