"""Compaction: every interval one of the API servers on an etcd forgets the history that was there an interval before.

The servers agree by the key `compact_rev_key`, whose version is their clock: the server that raises it from the version that it has
seen last compacts, and the others take over its version. If that server ends, another one is the first of the next interval.

Upstream: k8s.io/apiserver/pkg/storage/etcd3/compact.go.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from fakeapiserver.storage.etcd.client import Client
from fakeapiserver.storage.etcd.errors import EtcdError, RevisionCompacted
from fakeapiserver.storage.etcd.messages import EQUAL, VERSION, Compare, PutRequest, RangeRequest, RequestOp, TxnRequest

KEY: Final = b"compact_rev_key"
log = logging.getLogger(__name__)


class Compactor:
    """The compaction of one API server. `forget` is called with each revision up to which etcd has forgotten its history."""

    def __init__(self, client: Client, forget: Callable[[int], None]) -> None:
        self._client = client
        self._forget = forget
        self._version = 0
        self._revision = 0

    async def run(self, interval: float) -> None:
        """Compacts each `interval` seconds, until it is cancelled."""
        while True:
            await asyncio.sleep(interval)
            try:
                await self.step()
            except EtcdError as error:
                log.warning("etcd was not compacted: %s", error)

    async def step(self) -> bool:
        """Takes a turn, and reports whether this server was the one to compact. Raises EtcdError."""
        response = await self._client.txn(
            TxnRequest(
                (Compare(EQUAL, VERSION, KEY, version=self._version),),
                (RequestOp(request_put=PutRequest(KEY, str(self._revision).encode())),),
                (RequestOp(request_range=RangeRequest(KEY)),),
            )
        )
        before, self._revision = self._revision, response.header.revision
        if not response.succeeded:
            others = response.responses[0].response_range
            stored = others.kvs[0] if others is not None and others.kvs else None
            self._version = stored.version if stored is not None else 0
            if stored is not None and stored.value.isdigit():
                self._forget(int(stored.value))
            return False
        self._version += 1
        if before:  # the first turn only marks where the next one compacts
            try:
                await self._client.compact(before)
            except RevisionCompacted:  # by another program
                log.info("etcd was compacted beyond revision %d already", before)
            self._forget(before)
        return True
