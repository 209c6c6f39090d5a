"""A connection's TLS: decrypts what its socket receives, and encrypts what its protocol writes as fast as the socket takes it.

One piece of plain text at a time is encrypted, in memory that all connections share. What a slow reader hasn't taken yet is kept as the
bytes that were written, which many connections may share, rather than as ciphertext of its own.

Upstream: crypto/tls (conn.go), net/http (server.go).
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from functools import lru_cache
from ssl import DER_cert_to_PEM_cert
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from fakeapiserver.server.http.tls_context import TLSContext

# A TLS record never carries more plain text.
RECORD: Final = 16384
# Bytes that are read in one turn of the event loop: of the smallest chunks they are some 10,000.
TURN: Final = 4 * RECORD
# OpenSSL's buffers keep the size of the largest piece; those of connections with larger pieces are replaced (`release`).
_SMALL: Final = 4096
# Bytes that are encrypted before the socket gets them: a slow reader holds about as much ciphertext, and one record more.
_AT_ONCE: Final = 32768
# Of less that waits, small records are made.
_LITTLE: Final = 65536
_METHODS: Final = (b"GET /", b"HEAD ", b"POST ", b"PUT /", b"OPTIO")
_PLAIN_HTTP: Final = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"
# Descriptions that connections share: most send no certificates.
_MOST_DESCRIPTIONS: Final = 64
_VERSIONS: Final = {"TLSv1.2": 0x0303, "TLSv1.3": 0x0304}


class TLSTransport(asyncio.Transport, asyncio.Protocol):
    """The protocol of a socket's transport, and the transport of `protocol`, which gets it once the handshake is done.

    `get_extra_info("tls")` is the TLS extension of ASGI.
    """

    __slots__ = (
        "_backlog",
        "_closing",
        "_context",
        "_grown",
        "_handshake",
        "_incoming",
        "_is_full",
        "_is_open",
        "_is_paused",
        "_outgoing",
        "_protocol",
        "_socket",
        "_ssl",
        "_timer",
        "_unread",
        "backlog_bytes",
    )

    def __init__(self, context: "TLSContext", protocol: asyncio.Protocol, handshake_timeout: float) -> None:
        super().__init__()
        self._context = context
        self._protocol = protocol
        self._socket: asyncio.Transport = None  # type: ignore[assignment]
        self._handshake: Any = None  # pyOpenSSL's connection, until the handshake is done
        self._ssl: Any = None
        self._incoming: Any = None
        self._outgoing: Any = None
        self._timer: asyncio.TimerHandle | None = asyncio.get_running_loop().call_later(handshake_timeout, self.abort)
        # Plain text that waits until the socket takes more.
        self._backlog: deque[bytes | memoryview] | None = None
        self.backlog_bytes = 0
        self._is_open = False  # the protocol has the connection
        self._is_full = False  # the socket takes nothing at the moment
        self._is_paused = False  # the protocol reads nothing at the moment
        self._unread = b""  # what has come, and waits for the next turn; the socket isn't read meanwhile
        self._closing = False
        # The buffers are larger than a connection may keep: by the handshake, or by a large piece.
        self._grown = False

    # ------------------------------------------------------------ the socket's side

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        from OpenSSL import SSL

        self._socket = transport
        transport.set_write_buffer_limits(high=RECORD)
        connection = self._handshake = SSL.Connection(self._context.openssl, None)
        connection.set_accept_state()
        self._ssl, self._incoming, self._outgoing = connection._ssl, connection._into_ssl, connection._from_ssl

    def data_received(self, data: bytes) -> None:
        if len(data) > TURN:
            self._socket.pause_reading()
            data, self._unread = data[:TURN], data[TURN:]
            asyncio.get_running_loop().call_soon(self._receive_rest)
        for start in range(0, len(data), RECORD):
            if self._ssl is None:
                return
            piece = data[start : start + RECORD]
            self._grown |= len(piece) > _SMALL
            self._context.lib.BIO_write(self._incoming, piece, len(piece))
            if self._handshake is None:
                self._read()
            else:
                self._shake_hands(data)

    def _receive_rest(self) -> None:
        """Other connections have had their turn."""
        data, self._unread = self._unread, b""
        self.data_received(data)
        if not (self._is_paused or self._socket.is_closing()):
            self.resume_reading()

    def _shake_hands(self, data: bytes) -> None:
        from OpenSSL import SSL

        try:
            self._handshake.do_handshake()
        except SSL.WantReadError:
            self._send_records()
            return
        except SSL.Error:
            self._send_records()  # an alert
            if data.startswith(_METHODS):
                self._socket.write(_PLAIN_HTTP)
            self._drop()
            self._socket.close()
            return
        self._send_records()
        self._cancel_timer()
        description = _describe(self._handshake)
        self._extra = {"tls": description, "sslcontext": self._context}
        self._handshake, self._is_open, self._grown = None, True, True
        self.release()
        self._protocol.connection_made(self)
        if self._ssl is not None:
            self._read()

    def _read(self) -> None:
        """Passes on what the records that have come carry."""
        context, pieces, size = self._context, list[bytes](), 1
        lib, ffi, scratch = context.lib, context.ffi, context.scratch
        lib.ERR_clear_error()
        while size > 0 and (lib.BIO_get_mem_data(self._incoming, ffi.NULL) or lib.SSL_pending(self._ssl)):
            size = lib.SSL_read(self._ssl, scratch, RECORD)
            if size > 0:
                pieces.append(ffi.buffer(scratch, size)[:])
        error = lib.SSL_ERROR_NONE if size > 0 else lib.SSL_get_error(self._ssl, size)
        if pieces and not self._closing:
            self._protocol.data_received(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        if error == lib.SSL_ERROR_NONE or self._ssl is None:
            return
        self._send_records()  # an alert, or the answer to a change of keys
        if error == lib.SSL_ERROR_ZERO_RETURN:  # the peer has said that nothing follows
            self.eof_received()
        elif error != lib.SSL_ERROR_WANT_READ:
            self._drop()
            self._socket.close()

    def eof_received(self) -> bool:
        """The peer sends nothing more: what was written is sent, then the connection ends, as Go's does."""
        if self._is_open and not self._closing:
            self._protocol.eof_received()
        self.close()
        return True

    def pause_writing(self) -> None:
        self._is_full = True
        if self._is_open:
            self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._is_full = False
        if self._backlog is not None:
            self._send_backlog()
        if not self._is_open:
            return
        if self._backlog is not None:
            self._protocol.pause_writing()  # for another while
        elif self._closing:
            self._finish()
        elif not self._is_full:
            self._protocol.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_timer()
        self._drop()
        protocol, self._protocol = self._protocol, asyncio.Protocol()  # no cycle is left for the collection of garbage
        if self._is_open:
            protocol.connection_lost(exc)

    # ------------------------------------------------------------ the protocol's side

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._closing or self._ssl is None or not data:
            return
        if len(data) <= _SMALL and self._backlog is None and not self._is_full:
            self._socket.write(self._encrypted(bytes(data)))
        else:
            self.writelines((data,))

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        if self._closing or self._ssl is None:
            return
        if self._backlog is None:
            self._backlog = deque()
        for data in list_of_data:
            self._backlog.append(bytes(data) if isinstance(data, bytearray) else data)
            self.backlog_bytes += len(data)
        self._send_backlog()

    def get_write_buffer_size(self) -> int:
        return self.backlog_bytes + self._socket.get_write_buffer_size()

    def pause_reading(self) -> None:
        self._is_paused = True
        self._socket.pause_reading()

    def resume_reading(self) -> None:
        self._is_paused = False
        if not self._unread:
            self._socket.resume_reading()

    def is_closing(self) -> bool:
        return self._closing or self._socket.is_closing()

    def close(self) -> None:
        """Says goodbye once everything is sent, and doesn't wait for the peer's, as Go does."""
        if not self._closing:
            self._closing = True
            if self._backlog is None:
                self._finish()

    def abort(self) -> None:
        self._closing = True
        if self._socket is not None:
            self._drop()
            self._socket.abort()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        found = super().get_extra_info(name)
        return self._socket.get_extra_info(name, default) if found is None else found

    def release(self) -> bool:
        """Gives back the buffers of a connection that has become quiet; true if there were any."""
        context = self._context
        if not (self._grown and self._is_open) or self._ssl is None or self._backlog is not None:
            return False
        lib = context.lib
        if lib.BIO_get_mem_data(self._incoming, context.ffi.NULL):
            return False
        self._grown = False
        self._incoming, self._outgoing = lib.BIO_new(lib.BIO_s_mem()), lib.BIO_new(lib.BIO_s_mem())
        lib.SSL_set_bio(self._ssl, self._incoming, self._outgoing)  # frees the former ones
        return True

    # ------------------------------------------------------------ records

    def _encrypted(self, piece: bytes | memoryview) -> bytes:
        """The record of a piece that fits into one."""
        context, size = self._context, len(piece)
        self._grown |= size > _SMALL
        context.lib.SSL_write(self._ssl, piece if type(piece) is bytes else context.ffi.from_buffer(piece), size)
        return self._records()

    def _records(self) -> bytes:
        """Takes what OpenSSL has to send."""
        context = self._context
        size = context.lib.BIO_read(self._outgoing, context.scratch, 2 * RECORD)
        return bytes(context.ffi.buffer(context.scratch, size)) if size > 0 else b""

    def _send_records(self) -> None:
        if records := self._records():
            self._socket.write(records)

    def _send_backlog(self) -> None:
        """Encrypts what was written until the socket is full. Of little, small records are made, for which no buffer grows."""
        backlog = self._backlog
        assert backlog is not None
        room = _SMALL if self.backlog_bytes <= _LITTLE else RECORD
        while backlog and not self._is_full and self._ssl is not None:
            records, size = list[bytes](), 0
            while backlog and size < _AT_ONCE:
                piece = _next_piece(backlog, room)
                size += len(piece)
                records.append(self._encrypted(piece))
            self.backlog_bytes -= size
            self._socket.write(b"".join(records))
        if not backlog:
            self._backlog = None

    def _finish(self) -> None:
        if self._ssl is not None and self._is_open:
            self._context.lib.SSL_shutdown(self._ssl)
            self._send_records()
        self._drop()
        if self._socket is not None:
            self._socket.close()

    def _drop(self) -> None:
        """Frees OpenSSL's state; from now on nothing is read or written."""
        self._closing = True
        self._handshake = self._ssl = self._backlog = None
        self.backlog_bytes = 0

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _next_piece(backlog: "deque[bytes | memoryview]", room: int) -> bytes | memoryview:
    """Takes the next record's plain text, joined from small parts."""
    parts = list[bytes | memoryview]()
    while backlog and room:
        part = backlog.popleft()
        if len(part) > room:
            view = memoryview(part)
            backlog.appendleft(view[room:])
            part = view[:room]
        parts.append(part)
        room -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _describe(connection: Any) -> dict[str, Any]:
    """The ASGI TLS extension of a connection, shared by all its requests; `client_cert_der` is an addition of ours.

    The chain is that of the peer, leaf first, unverified; empty if it sent none.
    """
    return _description(connection.get_protocol_version_name(), _peer_certificates(connection))


@lru_cache(_MOST_DESCRIPTIONS)
def _description(version: str, chain: tuple[bytes, ...]) -> dict[str, Any]:
    return {
        "server_cert": None,
        "client_cert_chain": tuple(map(DER_cert_to_PEM_cert, chain)),
        "client_cert_name": None,
        "client_cert_error": None,
        "tls_version": _VERSIONS.get(version),
        "cipher_suite": None,
        "client_cert_der": chain,
    }


def _peer_certificates(connection: Any) -> tuple[bytes, ...]:
    """Returns the DER that the client has sent: whatever OpenSSL could read, as it isn't known yet if it is any good."""
    leaf = connection.get_peer_certificate()
    if leaf is None:
        return ()
    from OpenSSL.crypto import FILETYPE_ASN1, dump_certificate

    rest = connection.get_peer_cert_chain() or []
    return tuple(dict.fromkeys(dump_certificate(FILETYPE_ASN1, certificate) for certificate in (leaf, *rest)))
