"""A client of etcd for asyncio: reads, transactions, watches and leases, at one of several endpoints.

    client = Client.of(["http://127.0.0.1:2379"])
    response = await client.range(RangeRequest(b"/registry/", prefix_end(b"/registry/")))

A request goes to the endpoint that served the last one. If that has no connection any more, whichever endpoint connects first takes over.
Reads are then repeated there; a write is repeated only if it can't have been sent: else UnknownOutcome is raised. Every request has a
deadline.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, TypeVar

from fakeapiserver.storage.etcd import diagnosis
from fakeapiserver.storage.etcd.addresses import Address, TLSFiles, address_of, check_files
from fakeapiserver.storage.etcd.codec import DecodeError, Message, decode, encode
from fakeapiserver.storage.etcd.connection import Connection
from fakeapiserver.storage.etcd.errors import (
    EtcdError,
    NoConnection,
    NoQuorum,
    Refused,
    TimedOut,
    TooLarge,
    UnknownOutcome,
)
from fakeapiserver.storage.etcd.messages import (
    CompactionRequest,
    CompactionResponse,
    LeaseGrantRequest,
    LeaseGrantResponse,
    LeaseKeepAliveRequest,
    LeaseKeepAliveResponse,
    LeaseRevokeRequest,
    LeaseRevokeResponse,
    MemberListRequest,
    MemberListResponse,
    RangeRequest,
    RangeResponse,
    StatusRequest,
    StatusResponse,
    TxnRequest,
    TxnResponse,
    WatchCreateRequest,
)
from fakeapiserver.storage.etcd.watch_stream import WatchStream
from fakeapiserver.storage.interface import ReadOnly

# Seconds. etcd itself gives up a request after seven.
TIMEOUT: Final = 10.0
# Seconds between attempts to connect.
_PAUSE: Final = 0.05
# What etcd's own client sends at most, in bytes.
_MAX_MESSAGE: Final = 2 << 20
_API: Final = "/etcdserverpb."
_Response = TypeVar("_Response", bound=Message)


def prefix_end(prefix: bytes) -> bytes:
    r"""The end of the range of all keys that begin with the prefix.

    >>> prefix_end(b"/registry/"), prefix_end(b"a\xff"), prefix_end(b"\xff")
    (b'/registry0', b'b', b'\x00')
    """
    rest = prefix.rstrip(b"\xff")
    return rest[:-1] + bytes([rest[-1] + 1]) if rest else b"\0"


class Client:
    """For one event loop. `close` ends all connections. While it `is_patient`, a request waits until an endpoint can be reached, as long as
    its deadline allows; else it fails at once. While it `is_read_only`, whatever would change etcd raises ReadOnly and isn't sent."""

    is_patient = False
    is_read_only = False

    def __init__(self, addresses: Sequence[Address], files: TLSFiles, timeout: float = TIMEOUT) -> None:
        self._connections = [Connection(address, files) for address in addresses]
        self._files = files
        self._timeout = timeout
        self._current = self._connections[0]
        self._connecting = asyncio.Lock()

    @classmethod
    def of(cls, endpoints: Sequence[str], files: TLSFiles | None = None, timeout: float = TIMEOUT) -> "Client":
        """Raises ValueError, with one sentence, if an endpoint or a file is invalid."""
        files = files or TLSFiles()
        check_files(files)
        if not endpoints:
            raise ValueError("etcd needs at least one endpoint")
        return cls([address_of(text, with_tls=bool(files)) for text in endpoints], files, timeout)

    @property
    def url(self) -> str:
        """The endpoint that serves the requests now."""
        return self._current.address.url

    @property
    def endpoints(self) -> list[str]:
        return [connection.address.url for connection in self._connections]

    # ------------------------------------------------------------ reads and writes

    async def range(self, request: RangeRequest, timeout: float | None = None) -> RangeResponse:
        """Raises EtcdError, as all other requests do; of a range RevisionCompacted and FutureRevision."""
        return await self._read("KV/Range", request, RangeResponse, timeout)

    async def txn(self, request: TxnRequest, timeout: float | None = None) -> TxnResponse:
        """A transaction, which isn't repeated if its outcome is unknown."""
        self._check_writable()
        return await self._write("KV/Txn", request, TxnResponse, timeout)

    async def compact(self, revision: int, timeout: float | None = None) -> None:
        """Forgets what was overwritten before `revision`. Raises RevisionCompacted if that is done already."""
        self._check_writable()
        await self._write("KV/Compact", CompactionRequest(revision), CompactionResponse, timeout)

    async def grant(self, ttl: int, timeout: float | None = None) -> LeaseGrantResponse:
        """A lease of `ttl` seconds, after which its keys are deleted."""
        self._check_writable()
        return await self._write("Lease/LeaseGrant", LeaseGrantRequest(ttl), LeaseGrantResponse, timeout)

    async def revoke(self, lease: int, timeout: float | None = None) -> None:
        """Ends a lease, and deletes its keys. Raises LeaseNotFound."""
        self._check_writable()
        await self._write("Lease/LeaseRevoke", LeaseRevokeRequest(lease), LeaseRevokeResponse, timeout)

    async def keep_alive(self, lease: int, timeout: float | None = None) -> int:
        """Starts the time of a lease again, and returns its seconds: 0 if it has expired."""
        self._check_writable()
        connection, deadline = await self._connected(timeout)
        stream = connection.stream(f"{_API}Lease/LeaseKeepAlive")
        try:
            async with asyncio.timeout_at(deadline):
                await stream.write(encode(LeaseKeepAliveRequest(lease)))
                response = await stream.read()
        except TimeoutError:
            raise TimedOut(f"etcd at {connection.address.url} did not keep a lease alive in time") from None
        finally:
            stream.cancel()
        if response is None:
            raise UnknownOutcome(f"etcd at {connection.address.url} ended a stream")
        return self._decoded(LeaseKeepAliveResponse, response, connection).ttl

    def _check_writable(self) -> None:
        if self.is_read_only:
            raise ReadOnly

    async def watch(self, request: WatchCreateRequest, timeout: float | None = None) -> WatchStream:
        """Opens a watch, and returns when etcd has created it. Raises RevisionCompacted if its start is forgotten."""
        connection, deadline = await self._connected(timeout)
        watch = WatchStream(connection.stream(f"{_API}Watch/Watch"), connection.address.url)
        try:
            async with asyncio.timeout_at(deadline):
                await watch.create(request)
        except TimeoutError:
            watch.cancel()
            raise TimedOut(f"etcd at {connection.address.url} did not create a watch in time") from None
        except BaseException:
            watch.cancel()
            raise
        return watch

    # ------------------------------------------------------------ the members

    async def status(self, timeout: float | None = None) -> StatusResponse:
        """The state of the member that serves the requests now."""
        return await self._read("Maintenance/Status", StatusRequest(), StatusResponse, timeout)

    async def statuses(self, timeout: float | None = None) -> dict[str, StatusResponse | EtcdError]:
        """The state of each endpoint, or the reason why it isn't known."""
        results = await asyncio.gather(*(self._status_of(each, timeout) for each in self._connections))
        return dict(zip(self.endpoints, results, strict=True))

    async def _status_of(self, connection: Connection, timeout: float | None) -> StatusResponse | EtcdError:
        timeout = timeout or self._timeout
        try:
            async with asyncio.timeout(timeout):
                if not await connection.connect():
                    return NoConnection(await diagnosis.reason(connection.address, self._files))
                data = await connection.call(f"{_API}Maintenance/Status", encode(StatusRequest()), timeout)
            return self._decoded(StatusResponse, data, connection)
        except TimeoutError:
            return TimedOut(f"etcd at {connection.address.url} did not respond within {timeout:.3g} seconds")
        except EtcdError as error:
            return error

    async def members(self, timeout: float | None = None) -> MemberListResponse:
        return await self._read("Cluster/MemberList", MemberListRequest(), MemberListResponse, timeout)

    # ------------------------------------------------------------ connections

    async def _read(self, method: str, request: Message, kind: type[_Response], timeout: float | None) -> _Response:
        """Sends a request that may be repeated: once for each other endpoint, within one deadline."""
        now = asyncio.get_running_loop().time
        deadline = now() + (timeout or self._timeout)
        for _ in self._connections[1:]:
            try:
                return await self._write(method, request, kind, deadline - now())
            except (NoQuorum, UnknownOutcome) as error:
                if isinstance(error, TimedOut) or deadline <= now():
                    raise
        return await self._write(method, request, kind, deadline - now())

    async def _write(self, method: str, request: Message, kind: type[_Response], timeout: float | None) -> _Response:
        connection, data = self._current, encode(request)
        if len(data) > _MAX_MESSAGE:
            sent = f"trying to send message larger than max ({len(data)} vs. {_MAX_MESSAGE})"
            raise TooLarge(sent, f"rpc error: code = ResourceExhausted desc = {sent}")
        seconds = timeout or self._timeout
        if not connection.is_ready:
            connection, deadline = await self._connected(timeout)
            seconds = deadline - asyncio.get_running_loop().time()
        try:
            response = await connection.call(_API + method, data, max(seconds, 0.0))
        except UnknownOutcome:
            self._leave(connection)
            raise
        return self._decoded(kind, response, connection)

    def _leave(self, connection: Connection) -> None:
        """Makes the next endpoint the current one, if `connection` is that still."""
        if connection is self._current:
            index = self._connections.index(connection)
            self._current = self._connections[(index + 1) % len(self._connections)]

    def _decoded(self, kind: type[_Response], data: bytes, connection: Connection) -> _Response:
        try:
            return decode(kind, data)
        except DecodeError as error:
            raise Refused(f"{connection.address.url} is not an etcd of API version 3: {error}") from None

    async def _connected(self, timeout: float | None) -> tuple[Connection, float]:
        """Returns a connection, and the time of the event loop at which the request's time is over."""
        deadline = asyncio.get_running_loop().time() + (timeout or self._timeout)
        if self._current.is_ready:
            return self._current, deadline
        try:
            async with asyncio.timeout_at(deadline):
                while not await self._connect():
                    if not self.is_patient:
                        break
                    await asyncio.sleep(_PAUSE)
                else:
                    return self._current, deadline
        except TimeoutError:
            pass
        raise NoConnection(await self._reasons())

    async def _connect(self) -> bool:
        """Connects to all endpoints unless there is a connection, takes the one that is ready first, and reports whether there is one."""
        async with self._connecting:
            if not self._current.is_ready:
                self._current = await self._first_connected() or self._current
            return self._current.is_ready

    async def _first_connected(self) -> Connection | None:
        """Connects to all endpoints, and returns the one that is ready first; None if none is."""
        if len(self._connections) == 1:
            (only,) = self._connections
            return only if await only.connect() else None
        attempts = {asyncio.ensure_future(connection.connect()): connection for connection in self._connections}
        waiting = set(attempts)
        try:
            while waiting:
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for attempt, connection in attempts.items():
                    if attempt in done and attempt.result():
                        return connection
        finally:
            for attempt in waiting:
                attempt.cancel()
        return None

    async def _reasons(self) -> str:
        """Why no endpoint can be used, in one sentence."""
        reasons = await asyncio.gather(
            *(diagnosis.reason(connection.address, self._files) for connection in self._connections)
        )
        return "; ".join(reasons)

    async def close(self) -> None:
        """Ends all connections, with their watches. The client can be used again."""
        for connection in self._connections:
            with suppress(EtcdError):
                await connection.close()
