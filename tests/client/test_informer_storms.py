"""Whatever happens to lists and watches, in the end an informer has what the server has, and its handlers have received all changes.

The server is a model with a history; it compacts, restarts with another state, drops, cuts and refuses, by a seed's dice.
"""

import asyncio
import json
import random
from collections.abc import AsyncGenerator
from typing import Any, Unpack

import pytest

from fakeapiserver.apimachinery.errors import new_resource_expired, status_error
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.cache.indexer import deletion_handling_key, meta_namespace_key
from fakeapiserver.client.cache.shared_informer import SharedInformer, Tombstone
from fakeapiserver.client.dynamic import ListOptions, RawList
from fakeapiserver.client.errors import TransportError
from fakeapiserver.client.rest import WatchEvent

NAMES = [f"o{n}" for n in range(12)]


class ModelServer:
    """Lists and watches of one resource, with faults while `storm` lasts."""

    def __init__(self, seed: int, *, has_watch_list: bool) -> None:
        self.dice = random.Random(seed)
        self.storm = True
        self.is_gone = False
        self.has_watch_list = has_watch_list
        self.begin(100)

    def begin(self, revision: int) -> None:
        """Begins with an empty state, as after a restart without storage; for a moment no request succeeds."""
        self.is_gone = True
        self.objects: dict[str, Object] = {}
        self.history: list[tuple[int, str, Object]] = []
        self.revision = revision
        self.compacted = revision

    def write(self) -> None:
        """Makes a random change."""
        name = self.dice.choice(NAMES)
        self.revision += 1
        old = self.objects.get(name)
        if old is not None and self.dice.random() < 0.4:
            del self.objects[name]
            self.history.append((self.revision, "DELETED", self.made(name)))
            return
        self.objects[name] = self.made(name)
        self.history.append((self.revision, "MODIFIED" if old else "ADDED", self.objects[name]))

    def made(self, name: str) -> Object:
        return {"metadata": {"name": name, "namespace": "ns", "resourceVersion": str(self.revision)}}

    def happens(self, share: float) -> bool:
        return self.storm and self.dice.random() < share

    def check(self, version: str) -> None:
        if self.is_gone or self.happens(0.1):
            self.is_gone = False
            raise TransportError("dial tcp 127.0.0.1:1: connect: connection refused")
        if self.happens(0.05):
            raise status_error(429, "TooManyRequests", "too many requests")
        if self.happens(0.05):
            raise status_error(500, "InternalError", "etcd has a bad day")
        if version and int(version) > self.revision:
            error = status_error(
                504, "Timeout", "Too large resource version", {"causes": [{"reason": "ResourceVersionTooLarge"}]}
            )
            raise error

    async def list_raw(self, **options: Unpack[ListOptions]) -> RawList:
        await asyncio.sleep(0)
        self.check(options.get("resource_version", ""))
        if options.get("continue_") and self.happens(0.3):
            raise new_resource_expired("the continue token is too old")
        names = sorted(self.objects)
        start, limit = int(options.get("continue_") or 0), options.get("limit", 0)
        end = start + limit if limit else len(names)
        metadata: dict[str, Any] = {"resourceVersion": str(self.revision)}
        if end < len(names):
            metadata["continue"] = str(end)
        items = [self.objects[name] for name in names[start:end]]
        return RawList(
            json.dumps({"kind": "ThingList", "apiVersion": "v1", "metadata": metadata, "items": items}).encode()
        )

    async def watch(self, **options: Unpack[ListOptions]) -> AsyncGenerator[WatchEvent, None]:
        await asyncio.sleep(0)
        version = options.get("resource_version", "")
        if options.get("send_initial_events") is not None:
            if not self.has_watch_list:
                raise status_error(422, "Invalid", "sendInitialEvents is forbidden for watch")
            self.check(version)
            seen = self.revision
            for obj in [*self.objects.values()]:
                if self.happens(0.03):
                    raise TransportError("unexpected EOF", reset=True)
                yield WatchEvent("ADDED", obj)
            end = {"metadata": {"resourceVersion": str(seen), "annotations": {"k8s.io/initial-events-end": "true"}}}
            yield WatchEvent("BOOKMARK", end)
        else:
            self.check(version if self.happens(0.5) else "")
            seen = int(version)
        history = self.history
        while True:
            if self.happens(0.02):
                return
            if self.happens(0.02):
                raise TransportError("unexpected EOF", reset=True)
            if seen < self.compacted or history is not self.history or self.happens(0.01):
                yield WatchEvent("ERROR", new_resource_expired("too old resource version").status)
                return
            event = next((row for row in self.history if row[0] > seen), None)
            if event is None:
                if self.happens(0.05):
                    seen = self.revision
                    yield WatchEvent("BOOKMARK", {"metadata": {"resourceVersion": str(seen)}})
                await asyncio.sleep(0)
                continue
            seen = event[0]
            yield WatchEvent(event[1], event[2])


class View:
    """A handler that records its events and checks each: no object is added twice, or changed or deleted before it was added."""

    def __init__(self, *, slow: bool) -> None:
        self.objects: dict[str, Object] = {}
        self.slow = slow

    async def on_add(self, obj: Object, is_in_initial_list: bool) -> None:
        await self.dawdle()
        assert meta_namespace_key(obj) not in self.objects
        self.objects[meta_namespace_key(obj)] = obj

    async def on_update(self, old: Object, new: Object) -> None:
        await self.dawdle()
        assert self.objects[meta_namespace_key(old)] == old
        self.objects[meta_namespace_key(new)] = new

    async def on_delete(self, obj: Tombstone) -> None:
        await self.dawdle()
        del self.objects[deletion_handling_key(obj)]

    async def dawdle(self) -> None:
        if self.slow:
            await asyncio.sleep(0)


async def no_time(seconds: float) -> None:
    await asyncio.sleep(0)


@pytest.mark.parametrize("has_watch_list", [True, False], ids=["stream", "list"])
@pytest.mark.parametrize("seed", range(40))
def test_after_every_storm_the_cache_is_the_servers_state(seed: int, has_watch_list: bool) -> None:
    async def scenario() -> None:
        server = ModelServer(seed, has_watch_list=has_watch_list)
        informer = SharedInformer(server, sleep=no_time)
        views = [View(slow=False), View(slow=True)]
        for view in views:
            informer.add_event_handler(view)
        running = asyncio.ensure_future(informer.run())
        for _ in range(6):
            server.storm = True
            for _ in range(60):
                server.write()
                if server.happens(0.05):
                    server.compacted = server.revision - 3
                if server.happens(0.01):
                    server.begin(server.dice.choice((50, server.revision)))
                for _ in range(server.dice.randrange(4)):
                    await asyncio.sleep(0)
            server.storm = False
            expected = {f"ns/{name}": obj["metadata"]["resourceVersion"] for name, obj in server.objects.items()}
            for _ in range(20_000):
                if all(versions(found) == expected for found in (cache(informer), *(view.objects for view in views))):
                    break
                await asyncio.sleep(0)
            assert versions(cache(informer)) == expected
            assert [versions(view.objects) for view in views] == [expected] * 2
            late = View(slow=False)
            registration = informer.add_event_handler(late)
            await registration.wait_for_sync()
            assert versions(late.objects) == expected
            informer.remove_event_handler(registration)
        running.cancel()

    asyncio.run(scenario())


def cache(informer: SharedInformer) -> dict[str, Object]:
    return {meta_namespace_key(obj): obj for obj in informer.indexer.list()}


def versions(objects: dict[str, Object]) -> dict[str, str]:
    return {key: obj["metadata"]["resourceVersion"] for key, obj in objects.items()}
