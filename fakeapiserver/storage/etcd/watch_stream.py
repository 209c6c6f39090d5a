"""A watch as etcd sends it: batches of events and notifications of progress.

Upstream: etcd's client/v3/watch.go.
"""

from typing import Final

from msgspec.structs import replace

from fakeapiserver.storage.etcd.codec import DecodeError, decode, encode
from fakeapiserver.storage.etcd.connection import Stream
from fakeapiserver.storage.etcd.errors import EtcdError, Refused, RevisionCompacted, UnknownOutcome, error_of
from fakeapiserver.storage.etcd.messages import (
    WatchCreateRequest,
    WatchProgressRequest,
    WatchRequest,
    WatchResponse,
)

_PROGRESS: Final = encode(WatchRequest(progress_request=WatchProgressRequest()))


class WatchStream:
    """A watch on a stream of its own. Only one task may read it."""

    def __init__(self, stream: Stream, url: str) -> None:
        self._stream = stream
        self._url = url

    async def create(self, request: WatchCreateRequest) -> None:
        """Asks for the watch, and waits until etcd has created it. Raises EtcdError."""
        await self._stream.write(encode(WatchRequest(create_request=request)))
        response = await self._read()
        if not response.created:
            raise Refused(f"etcd at {self._url} did not create a watch")

    async def next(self) -> WatchResponse:
        """The next events, those of one revision always together; without events the progress up to the header's revision.
        Raises RevisionCompacted if the watch has fallen behind what etcd keeps, and other EtcdErrors if it has ended."""
        response = await self._read()
        if not response.fragment:
            return response
        events = [*response.events]
        while response.fragment:
            response = await self._read()
            events += response.events
        return replace(response, events=tuple(events))

    async def _read(self) -> WatchResponse:
        data = await self._stream.read()
        if data is None:
            raise UnknownOutcome(f"etcd at {self._url} ended a watch")
        try:
            response = decode(WatchResponse, data)
        except DecodeError as error:
            raise Refused(f"{self._url} is not an etcd of API version 3: {error}") from None
        if response.canceled:
            raise self._canceled(response)
        return response

    def _canceled(self, response: WatchResponse) -> EtcdError:
        if response.compact_revision:
            oldest = response.compact_revision
            return RevisionCompacted(f"etcd at {self._url} has compacted what was before revision {oldest}", oldest)
        return error_of(self._url, "CANCELLED", response.cancel_reason or "the watch was canceled")

    async def request_progress(self) -> None:
        """Asks for a notification of progress, which `next` returns. Raises EtcdError."""
        await self._stream.write(_PROGRESS)

    def cancel(self) -> None:
        """Ends the watch. A second call does nothing."""
        self._stream.cancel()
