"""Serving an ASGI application over HTTPS: the TLS context and the runner.

Upstream: k8s.io/apiserver/pkg/server/secure_serving.go
"""

import asyncio
import os
import socket
import ssl
import tempfile
import weakref
from contextlib import suppress
from typing import Any, Final

from uvicorn.config import Config

from fakeapiserver.server.http.protocol import EdgeProtocol, EdgeState, Limits

# What Go's crypto/tls signs with and asks clients for; pyOpenSSL has no method of its own to say so.
_BACKLOG: Final = 1024
_SIGNATURES = (
    b"rsa_pss_rsae_sha256:ecdsa_secp256r1_sha256:ed25519:rsa_pss_rsae_sha384:rsa_pss_rsae_sha512:"
    b"rsa_pkcs1_sha256:rsa_pkcs1_sha384:rsa_pkcs1_sha512:ecdsa_secp384r1_sha384:ecdsa_secp521r1_sha512"
)
RECORD = 16384  # a TLS record never carries more plain text


class TLSConnection:
    """The methods of an ssl.SSLObject that asyncio and uvloop use, on a pyOpenSSL connection over the same two
    memory BIOs.
    """

    def __init__(self, context: "RequestingContext", incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> None:
        from OpenSSL import SSL

        self.context = context
        self._ssl = SSL
        self._incoming = incoming
        self._outgoing = outgoing
        self._connection = SSL.Connection(context.openssl, None)
        self._connection.set_accept_state()
        self._undigested = False  # OpenSSL holds bytes that no read has asked for yet

    def do_handshake(self) -> None:
        self._pull()
        try:
            self._call(self._connection.do_handshake)
        finally:
            self._push(RECORD)

    def read(self, size: int = RECORD, buffer: Any = None) -> Any:
        self._pull()
        try:
            data = self._call(self._connection.recv, min(size, RECORD))
        except ssl.SSLZeroReturnError:
            data = b""
        except ssl.SSLWantReadError:
            self._undigested = False
            raise
        if buffer is None:
            return data
        buffer[: len(data)] = data
        return len(data)

    def write(self, data: Any) -> int:
        if not len(data):
            return 0
        sent: int = self._call(self._connection.send, data)
        self._push(sent + 512 + sent // 64)
        return sent

    def unwrap(self) -> None:
        """Say goodbye without waiting for the peer's, as Go does."""
        try:
            self._call(self._connection.shutdown)
        finally:
            self._push(RECORD)

    def pending(self) -> int:
        """Not 0 if a read may give something; uvloop reads no further without."""
        return int(self._connection.pending()) or int(self._undigested)

    def getpeercert(self, binary_form: bool = False) -> None:
        """Returns None: the certificate is not verified yet. See peer_certificates."""

    def cipher(self) -> tuple[str, str, int] | None:
        name = self._connection.get_cipher_name()
        return (name, self.version(), self._connection.get_cipher_bits() or 0) if name else None

    def compression(self) -> None:
        return None

    def version(self) -> str:
        return str(self._connection.get_protocol_version_name())

    def selected_alpn_protocol(self) -> str | None:
        return self._connection.get_alpn_proto_negotiated().decode() or None

    def peer_certificates(self) -> tuple[bytes, ...]:
        """The peer's chain as DER, leaf first, unverified; empty if it sent none."""
        leaf = self._connection.get_peer_certificate(as_cryptography=True)
        if leaf is None:
            return ()
        from cryptography.hazmat.primitives.serialization import Encoding

        rest = self._connection.get_peer_cert_chain(as_cryptography=True) or []
        ders = [certificate.public_bytes(Encoding.DER) for certificate in (leaf, *rest)]
        return tuple(dict.fromkeys(ders))

    def _pull(self) -> None:
        if self._incoming.pending:
            data = self._incoming.read()
            self._undigested = True
            while data:
                data = data[self._connection.bio_write(data) :]

    def _push(self, expected: int) -> None:
        """Hand on what OpenSSL has to send; `expected` is a size that mostly suffices, so that one read does it."""
        while True:
            try:
                data = self._connection.bio_read(expected)
            except self._ssl.WantReadError:
                return
            self._outgoing.write(data)
            if len(data) < expected:
                return

    def _call(self, function: Any, *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except self._ssl.WantReadError:
            raise ssl.SSLWantReadError(ssl.SSL_ERROR_WANT_READ, "the operation did not complete (read)") from None
        except self._ssl.ZeroReturnError:
            raise ssl.SSLZeroReturnError(ssl.SSL_ERROR_ZERO_RETURN, "TLS connection closed") from None
        except self._ssl.Error as error:
            self._push(RECORD)
            raise ssl.SSLError(ssl.SSL_ERROR_SSL, f"TLS: {error}") from None


class RequestingContext(ssl.SSLContext):
    """A server context that requests a client certificate and lets everyone in: the application judges it and answers 401.

    The standard library can only refuse a bad one in the handshake.
    """

    openssl: Any
    announced: frozenset[bytes] = frozenset()

    def announce(self, client_ca: bytes) -> None:
        """Announces to clients whose certificates (PEM) are known:

        many send none from other authorities. Announcements are not withdrawn.
        """
        from cryptography.x509 import load_pem_x509_certificates

        authorities = {
            authority.subject.public_bytes(): authority for authority in load_pem_x509_certificates(client_ca)
        }
        for subject in authorities.keys() - self.announced:
            self.openssl.add_client_ca(authorities[subject])
        self.announced |= authorities.keys()

    def wrap_bio(self, incoming: Any, outgoing: Any, *_: Any, **__: Any) -> Any:
        return TLSConnection(self, incoming, outgoing)


def server_context(certificate: bytes, key: bytes) -> RequestingContext:
    """A context for `Server` from PEM bytes: TLS 1.2 and later, ALPN http/1.1, asks clients for a certificate.

    Raises ValueError if certificate and key are not PEM or do not fit together.
    """
    try:
        return _requesting_context(certificate, key)
    except Exception as error:
        raise ValueError(f"serving certificate and key cannot be used: {error}") from error


def _requesting_context(certificate: bytes, key: bytes) -> RequestingContext:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
    from cryptography.x509 import load_pem_x509_certificates
    from OpenSSL import SSL

    leaf, *rest = load_pem_x509_certificates(certificate)
    openssl = SSL.Context(SSL.TLS_SERVER_METHOD)
    openssl.set_min_proto_version(SSL.TLS1_2_VERSION)
    openssl.use_certificate(leaf)
    for issuer in rest:
        openssl.add_extra_chain_cert(issuer)
    openssl.use_privatekey(load_pem_private_key(key, None))  # type: ignore[arg-type]
    openssl.check_privatekey()
    openssl.set_verify(SSL.VERIFY_PEER, lambda *_: True)
    openssl.set_alpn_select_callback(_select_alpn)
    # clients present no certificate that is signed or signs otherwise
    SSL._lib.SSL_CTX_set1_sigalgs_list(openssl._context, _SIGNATURES)  # type: ignore[attr-defined]
    # a resumed session would come without the client's chain
    openssl.set_session_cache_mode(SSL.SESS_CACHE_OFF)
    openssl.set_options(SSL.OP_NO_TICKET)
    context = RequestingContext(ssl.PROTOCOL_TLS_SERVER)
    context.openssl = openssl
    return context


def _select_alpn(_: Any, offered: list[bytes]) -> Any:
    from OpenSSL import SSL

    return b"http/1.1" if b"http/1.1" in offered else SSL.NO_OVERLAPPING_PROTOCOLS


def plain_context(certificate: bytes, key: bytes) -> ssl.SSLContext:
    """The standard library's: faster, and every client is without certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    with tempfile.TemporaryDirectory() as folder:  # the standard library reads files only; mkdtemp makes it 0700
        path = os.path.join(folder, "serving.pem")
        with open(path, "wb") as file:
            file.write(certificate.rstrip() + b"\n" + key)
        context.load_cert_chain(path)
    return context


class _Listener(socket.socket):
    """Remembers accepted sockets: asyncio does not expose a connection before the end of its handshake."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.accepted: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def accept(self) -> tuple[socket.socket, Any]:
        connection, address = super().accept()
        self.accepted.add(connection)
        return connection, address


class Server:
    """Runs an ASGI application on one address, over TLS if given a context, in the running event loop.

    It installs no signal handlers and starts no thread. `limits` are the deadlines and sizes of a connection.
    """

    def __init__(
        self,
        app: Any,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        ssl_context: ssl.SSLContext | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.app = app
        self.host = host
        self.port = port  # after start: the one that is bound
        self.limits = limits or Limits()
        self._ssl_context = ssl_context
        self._state = EdgeState(self.limits)
        self._server: asyncio.Server | None = None
        self._listener: _Listener | None = None
        self._sweeper: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        """Bind and listen. Raises OSError if the address cannot be had."""
        loop = asyncio.get_running_loop()
        config = Config(
            self.app, http=EdgeProtocol, ws="none", lifespan="off", interface="asgi3",
            log_config=None, access_log=False, proxy_headers=False, server_header=False, date_header=False,
        )  # fmt: skip
        config.load()
        listener = self._bind()
        timeouts: dict[str, Any] = {}
        if self._ssl_context is not None:
            timeouts = {"ssl_handshake_timeout": self.limits.header_timeout, "ssl_shutdown_timeout": 2.0}
        self._server = await loop.create_server(
            lambda: EdgeProtocol(config, self._state, loop),
            sock=listener, ssl=self._ssl_context, backlog=_BACKLOG, **timeouts,
        )  # fmt: skip
        self._listener = listener
        self.port = listener.getsockname()[1]
        self._sweep()

    async def restart(self, ssl_context: RequestingContext) -> None:
        """Cuts all connections, and serves new ones with another certificate. Raises OSError if another process takes the port."""
        await self.stop()
        self._ssl_context = ssl_context
        await self.start()

    def _bind(self) -> _Listener:
        family, *_, address = socket.getaddrinfo(
            self.host, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # asyncio sets TCP_NODELAY only on connections of a socket that says it is TCP; without it each answer waits 40 ms
        listener = _Listener(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.setblocking(False)
            listener.bind(address)
            # Two sockets can be bound to a port until one listens. If the loop's listen() failed, uvloop would close the descriptor
            # twice, and the second time it may be that of another thread.
            listener.listen(_BACKLOG)
        except OSError:
            listener.close()
            raise
        return listener

    def _sweep(self) -> None:
        """Checks the deadlines of all connections with one timer, so that no request needs its own."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        for connection in list(self._state.connections):
            if isinstance(connection, EdgeProtocol):
                connection.sweep(now)
        limits = self.limits
        interval = min(1.0, min(limits.header_timeout, limits.idle_timeout, limits.write_timeout) / 4)
        self._sweeper = loop.call_later(interval, self._sweep)

    async def stop(self, grace: float = 0.0) -> None:
        """Stop listening, let running requests end for `grace` seconds, then cut the rest. Returns when nothing is left."""
        if self._server is None or self._listener is None:
            return
        server, self._server = self._server, None
        server.close()
        state = self._state
        for connection in list(state.connections):
            connection.shutdown()
        if state.tasks and grace > 0:
            await asyncio.wait(set(state.tasks), timeout=grace)
        await self._cut()
        if self._sweeper is not None:
            self._sweeper.cancel()
        self._listener.close()

    async def _cut(self) -> None:
        state = self._state
        running = set(state.tasks)
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=5.0)
        await asyncio.sleep(0)  # closed transports send their last bytes
        for connection in list(state.connections):
            if connection.transport is not None:
                with suppress(AttributeError):  # asyncio before 3.11.4 fails on what was closed twice
                    connection.transport.abort()
        for accepted in list(self._listener.accepted if self._listener else ()):
            _shut(accepted)
        for _ in range(100):
            if not state.connections:
                break
            await asyncio.sleep(0)


def _shut(accepted: socket.socket) -> None:
    try:
        accepted.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # closed already
