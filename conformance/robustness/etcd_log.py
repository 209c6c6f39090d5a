"""The log of an etcd: everything that happens in it, by a watch of its own."""

import asyncio
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from conformance.robustness.history import Content, Logged
from conformance.robustness.kinds import read_object
from fakeapiserver.storage.etcd.client import Client
from fakeapiserver.storage.etcd.errors import EtcdError, RevisionCompacted
from fakeapiserver.storage.etcd.messages import (
    DELETE,
    Event,
    PutRequest,
    RangeRequest,
    RequestOp,
    TxnRequest,
    WatchCreateRequest,
)

_PAUSE: Final = 0.05
_PATIENCE: Final = 30.0
# A burst is written to keys of another namespace, so many at a time.
_BURST_KEY: Final = "/registry/configmaps/burst/b{}"
_BURST_VALUE: Final = b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"b%d","namespace":"burst","uid":"%d"}}'
_BURST_KEYS: Final = 50


class EtcdLog:
    """Follows etcd from the revision after `since`, in a thread of its own."""

    def __init__(self, urls: Sequence[str], since: int) -> None:
        self.entries: list[Logged] = []
        self._urls = urls
        self._revision = since
        self._states: dict[str, tuple[int, Content]] = {}
        self._is_closed = False
        self._interval = 0.0  # seconds between two compactions, 0 for none
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self._thread.start()

    def complete(self) -> None:
        """Waits until the log has everything. Raises TimeoutError."""
        newest, deadline = asyncio.run(self._newest()), time.monotonic() + _PATIENCE
        while self._revision < newest:
            if time.monotonic() > deadline:
                raise TimeoutError(f"the log of etcd has {self._revision}, but {newest} is the newest revision")
            time.sleep(_PAUSE)

    def compact_every(self, seconds: float) -> None:
        """Compacts etcd up to the newest revision of the log, from now on."""
        self._interval = seconds

    def burst(self, count: int) -> None:
        """Writes so many revisions to objects that aren't the traffic's."""
        asyncio.run(self._burst(count))

    def close(self) -> None:
        self._is_closed = True
        self._thread.join()

    # ------------------------------------------------------------------------

    async def _newest(self) -> int:
        client = Client.of(self._urls)
        client.is_patient = True
        try:
            async with asyncio.timeout(_PATIENCE):
                while True:
                    with suppress(EtcdError):
                        return (await client.range(RangeRequest(b"\0"))).header.revision
                    await asyncio.sleep(_PAUSE)
        finally:
            await client.close()

    async def _run(self) -> None:
        client = Client.of(self._urls)
        following = asyncio.ensure_future(self._follow(client))
        compacting = asyncio.ensure_future(self._compact(client))
        while not self._is_closed and not following.done():  # noqa: ASYNC110 - another thread closes it
            await asyncio.sleep(_PAUSE)
        for task in (following, compacting):
            task.cancel()
        await asyncio.gather(following, compacting, return_exceptions=True)
        await client.close()

    async def _follow(self, client: Client) -> None:
        while True:
            try:
                request = WatchCreateRequest(b"\0", b"\0", self._revision + 1, fragment=True)
                stream = await client.watch(request)
                try:
                    while True:
                        self._add((await stream.next()).events)
                finally:
                    stream.cancel()
            except RevisionCompacted:
                raise
            except EtcdError:
                await asyncio.sleep(_PAUSE)

    def _add(self, events: Sequence[Event]) -> None:
        for event in events:
            kv, deleted = event.kv, event.type == DELETE
            name, content = read_object(kv.key.decode(errors="replace"), kv.value)
            previous, last = self._states.get(name, (0, Content()))
            logged = Logged(kv.mod_revision, name, last if deleted else content, previous, deleted, kv.lease != 0)
            if name and deleted:
                self._states.pop(name, None)
            elif name:
                self._states[name] = kv.mod_revision, content
            self.entries.append(logged if name else Logged(kv.mod_revision, "", Content(), 0, deleted))
        if events:
            self._revision = events[-1].kv.mod_revision

    async def _compact(self, client: Client) -> None:
        while True:
            await asyncio.sleep(self._interval or _PAUSE)
            if self._interval:
                with suppress(EtcdError):
                    await client.compact(self._revision)

    async def _burst(self, count: int) -> None:
        client = Client.of(self._urls)
        try:
            for start in range(0, count, _BURST_KEYS):
                await asyncio.gather(
                    *(client.txn(_put(number)) for number in range(start, start + _BURST_KEYS)), return_exceptions=True
                )
        finally:
            await client.close()


def _put(number: int) -> TxnRequest:
    key = _BURST_KEY.format(number % _BURST_KEYS).encode()
    value = _BURST_VALUE % (number % _BURST_KEYS, number)
    return TxnRequest((), (RequestOp(request_put=PutRequest(key, value)),), ())
