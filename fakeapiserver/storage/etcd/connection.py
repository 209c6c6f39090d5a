"""A connection to one endpoint of etcd: the only module that knows gRPC. Requests and responses are bytes."""

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from fakeapiserver.storage.etcd.addresses import Address, TLSFiles
from fakeapiserver.storage.etcd.errors import EtcdError, NoConnection, error_of

# Upstream's, in milliseconds: k8s.io/apiserver/pkg/storage/storagebackend/factory/etcd3.go.
_KEEPALIVE: Final = 30_000
_KEEPALIVE_TIMEOUT: Final = 10_000
_CONNECT_TIMEOUT: Final = 10_000
_FIRST_BACKOFF: Final = 100
_LONGEST_BACKOFF: Final = 1_000
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.keepalive_time_ms", _KEEPALIVE),
    ("grpc.keepalive_timeout_ms", _KEEPALIVE_TIMEOUT),
    ("grpc.initial_reconnect_backoff_ms", _FIRST_BACKOFF),
    ("grpc.min_reconnect_backoff_ms", _CONNECT_TIMEOUT),  # which is the time that one attempt may take
    ("grpc.max_reconnect_backoff_ms", _LONGEST_BACKOFF),
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
)
# A member that has lost the others ends its watches, so that they can go on at another member.
_VERBOSITY: Final = "GRPC_VERBOSITY"
_REQUIRE_LEADER: Final = (("hasleader", "true"),)


class MissingLibrary(ImportError):
    """The optional library isn't installed."""


class Connection:
    """The connection belongs to the event loop in which `connect` is called first."""

    def __init__(self, address: Address, files: TLSFiles) -> None:
        self.address = address
        self._files = files
        self._grpc: Any = None
        self._channel: Any = None
        self._methods: dict[str, Any] = {}

    @property
    def is_ready(self) -> bool:
        """Reports whether there is a connection now."""
        return self._channel is not None and self._channel.get_state() is self._grpc.ChannelConnectivity.READY

    async def connect(self) -> bool:
        """Connects, and reports whether that succeeded. After a failure there are pauses of up to a second, in which it fails at once.
        Raises MissingLibrary, OSError if a file for TLS can't be read."""
        if self._channel is None:
            self._open()
        states = self._grpc.ChannelConnectivity
        state = self._channel.get_state(try_to_connect=True)
        while state is states.IDLE or state is states.CONNECTING:
            await self._channel.wait_for_state_change(state)
            state = self._channel.get_state(try_to_connect=True)
        return bool(state is states.READY)

    def _open(self) -> None:
        self._grpc = _library()
        aio = self._grpc.aio
        if not self.address.with_tls:
            self._channel = aio.insecure_channel(self.address.target, options=_OPTIONS)
            return
        ca, certificate, key = (
            Path(path).read_bytes() if path else None
            for path in (self._files.cafile, self._files.certfile, self._files.keyfile)
        )
        credentials = self._grpc.ssl_channel_credentials(ca, key, certificate)
        self._channel = aio.secure_channel(self.address.target, credentials, options=_OPTIONS)

    async def call(self, path: str, request: bytes, timeout: float) -> bytes:
        """Sends one request, after `connect`, and returns the response. Raises EtcdError."""
        method = self._methods.get(path)
        if method is None:
            method = self._methods[path] = self._channel.unary_unary(path)
        try:
            response: bytes = await method(request, timeout=timeout)
        except self._grpc.aio.AioRpcError as error:
            raise self._error(error, timeout) from None
        return response

    def stream(self, path: str) -> "Stream":
        """Opens a stream in both directions, after `connect`."""
        return Stream(self, self._channel.stream_stream(path)(metadata=_REQUIRE_LEADER))

    def _error(self, error: Any, timeout: float | None = None) -> EtcdError:
        return error_of(self.address.url, error.code().name, error.details() or "no reason was given", timeout)

    def stream_error(self, error: BaseException) -> EtcdError | None:
        """Returns the error of a stream that has ended with `error`, or None if that isn't one of gRPC."""
        if isinstance(error, self._grpc.aio.AioRpcError):
            return self._error(error)
        return None

    async def close(self) -> None:
        """Ends the connection with all calls. It can be opened again."""
        channel, self._channel = self._channel, None
        self._methods.clear()
        if channel is not None:
            await channel.close()


class Stream:
    """Messages in both directions, until either side ends it."""

    def __init__(self, connection: Connection, call: Any) -> None:
        self._connection = connection
        self._call = call

    async def write(self, message: bytes) -> None:
        """Raises EtcdError if the stream has ended."""
        try:
            await self._call.write(message)
        except asyncio.InvalidStateError:
            raise NoConnection(f"the stream of etcd at {self._connection.address.url} has ended") from None
        except Exception as error:
            raise self._connection.stream_error(error) or error from None

    async def read(self) -> bytes | None:
        """The next message, or None at the end of the stream. Raises EtcdError if it broke."""
        try:
            message = await self._call.read()
        except Exception as error:
            raise self._connection.stream_error(error) or error from None
        return message if isinstance(message, bytes) else None

    def cancel(self) -> None:
        """Ends the stream at once. A second call does nothing."""
        with suppress(asyncio.InvalidStateError):
            self._call.cancel()


def _library() -> Any:
    """Returns the module `grpc`. Raises MissingLibrary if it isn't installed.

    The library writes what is wrong with a connection to standard error, too; our errors say the same. The variable, which it reads when it
    is loaded, silences it.
    """
    is_silent = _VERBOSITY in os.environ
    os.environ.setdefault(_VERBOSITY, "NONE")
    try:
        import grpc.aio
    except ImportError as error:
        raise MissingLibrary(f"etcd needs the library grpcio ({error}): pip install 'fakeapiserver[etcd]'") from None
    finally:
        if not is_silent:
            del os.environ[_VERBOSITY]
    return grpc
