"""Attacks behind a change of protocol: frames of WebSockets and SPDY that no client of Kubernetes sends, to a pod of a simulated node."""

import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import quote

from conformance.robustness.attacks.attack import Attack, Call, Object, named, posted
from fakeapiserver.transport.spdy import DICTIONARY

# Flags of `serve` for these attacks.
FLAGS: Final = ("--nodes=1",)
_PODS: Final = "/api/v1/namespaces/default/pods"
_POD: Final = f"{_PODS}/frames"
# `cat` goes on as long as the connection does.
_EXEC: Final = f"{_POD}/exec?command=cat&stdin=1&stdout=1&tty=1"
_FORWARD: Final = f"{_POD}/portforward"
_WATCH: Final = "/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=20"
_TEXT, _BINARY, _CLOSE, _PING, _PONG = 1, 2, 8, 9, 10
_STDIN, _RESIZE, _UNKNOWN = b"\x00", b"\x04", b"\x63"
_SYN_STREAM, _RST_STREAM, _PING_FRAME = 1, 3, 6
_KINDS: Final = ("error", "stdin", "stdout", "resize")
_MANY: Final = 20_000
# Bytes that a WebSocket's message may have.
_MESSAGE: Final = 32 << 20


def _frame(payload: bytes, opcode: int = _BINARY, *, first: int = 128, mask: bytes = b"\x01\x02\x03\x04") -> bytes:
    """A frame: `first` are its flags; with an empty mask it isn't masked. The payload is sent as it is."""
    size, bit = len(payload), 128 if mask else 0
    if size < 126:
        length = bytes([bit | size])
    elif size < 1 << 16:
        length = bytes([bit | 126]) + size.to_bytes(2)
    else:
        length = bytes([bit | 127]) + size.to_bytes(8)
    return bytes([first | opcode]) + length + mask + payload


def _plain(payload: bytes, opcode: int = _BINARY) -> bytes:
    """A frame whose payload is read as it is here."""
    return _frame(payload, opcode, mask=bytes(4))


_WEBSOCKET_FRAMES: Final[dict[str, Callable[[], bytes]]] = {
    "an unmasked frame": lambda: _frame(_STDIN + b"text", mask=b""),
    "thousands of unmasked frames": lambda: _frame(_STDIN, mask=b"") * _MANY,
    "a length of 2^63 - 1": lambda: b"\x82\xff" + b"\x7f" + b"\xff" * 7 + bytes(4) + b"x" * 1_000,
    "a length of 2^64 - 1": lambda: b"\x82\xff" + b"\xff" * 8 + bytes(4) + b"x" * 1_000,
    "a length that isn't the shortest": lambda: (b"\x82\xff" + (2).to_bytes(8) + bytes(4) + _STDIN + b"a") * 1_000,
    "a message of 32 MiB": lambda: _frame(_STDIN + bytes(_MESSAGE - 1)),
    "a message that never ends": lambda: b"\x82\xff" + _MESSAGE.to_bytes(8) + bytes(4) + bytes(1 << 24),
    "a ping of 60,000 bytes": lambda: _plain(b"p" * 60_000, _PING),
    "a close frame of 60,000 bytes": lambda: _plain(b"\x03\xe8" + b"c" * 60_000, _CLOSE),
    "pings": lambda: _plain(b"p" * 125, _PING) * _MANY,
    "pongs": lambda: _plain(b"", _PONG) * (10 * _MANY),
    "fragments without an end": lambda: _frame(_STDIN, first=0) + _frame(b"", 0, first=0) * (10 * _MANY),
    "reserved bits": lambda: b"".join(_frame(_STDIN + b"a", first=bits << 4) for bits in range(16)) * 1_000,
    "reserved opcodes": lambda: b"".join(_plain(_STDIN + b"a", code) for code in (3, 4, 5, 6, 7, 11, 12, 13, 14, 15)),
    "empty messages": lambda: _plain(b"") * (10 * _MANY),
    "unknown channels": lambda: _plain(_UNKNOWN + b"text") * _MANY,
    "all channels": lambda: b"".join(_plain(bytes([number]) + b"0") for number in range(256)),
    "a size that is no JSON": lambda: _plain(_RESIZE + b"no JSON"),
    "a size of 10^6 levels": lambda: _plain(_RESIZE + b"[" * 1_000_000),
    "a size of 1,000 levels": lambda: _plain(_RESIZE + b"[" * 1_000),
    "a size without an end": lambda: _plain(_RESIZE + b'{"Width":1e999,"Height":1e999}'),
    "a size of 4,301 digits": lambda: _plain(_RESIZE + b'{"Width":' + b"9" * 4_301 + b',"Height":1}'),
    "sizes": lambda: _plain(_RESIZE + b'{"Width":80,"Height":25}') * _MANY,
    "bytes that are no frames": lambda: bytes(range(256)) * 1_000,
    "half a frame": lambda: b"\x82\xff\x00",
}
_BASE64_FRAMES: Final[dict[str, Callable[[], bytes]]] = {
    "a message of 32 MiB": lambda: _plain(b"0" + b"QUFB" * ((_MESSAGE >> 2) - 1), _TEXT),
    "texts that are no base64": lambda: _plain(b"0%%%%", _TEXT) * _MANY,
}


def _control(kind: int, payload: bytes, version: int = 3, length: int | None = None) -> bytes:
    return struct.pack(">HHI", 0x8000 | version, kind, len(payload) if length is None else length) + payload


class _Opener:
    """Opens streams, whose headers one compression has."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(zdict=DICTIONARY)

    def open(self, number: int, block: bytes) -> bytes:
        headers = self._deflate.compress(block) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        return _control(_SYN_STREAM, struct.pack(">IIH", number, 0, 0) + headers)


def _block(headers: dict[str, str]) -> bytes:
    texts = [text.encode() for pair in headers.items() for text in pair]
    return struct.pack(">I", len(headers)) + b"".join(struct.pack(">I", len(text)) + text for text in texts)


def _streams(headers: Callable[[int], dict[str, str]], count: int = _MANY, *, after: bool = False) -> bytes:
    """Opens so many streams; `after`: and resets each."""
    opener = _Opener()
    return b"".join(
        opener.open(2 * number + 1, _block(headers(number)))
        + (_control(_RST_STREAM, struct.pack(">II", 2 * number + 1, 5)) if after else b"")
        for number in range(count)
    )


def _terminal(sent: bytes) -> bytes:
    """The streams of a command in a terminal, and bytes for the stream of its sizes."""
    opened = _streams(lambda number: {"streamtype": _KINDS[number]}, 4)
    pieces = (sent[start : start + 60_000] for start in range(0, len(sent), 60_000))
    return opened + b"".join(struct.pack(">II", 7, len(piece)) + piece for piece in pieces)


def _port(number: int) -> dict[str, str]:
    return {"streamtype": "error", "port": "80", "requestid": str(number)}


_SPDY_EXEC: Final[dict[str, Callable[[], bytes]]] = {
    "20,000 streams": lambda: _streams(lambda number: {"streamtype": "unknown"}),
    "20,000 streams behind those of a command": lambda: _streams(lambda number: {"streamtype": _KINDS[min(number, 3)]}),
    "a header block of 100 MB": lambda: _Opener().open(1, struct.pack(">I", 1) + bytes(100_000_000)),
    "10^5 empty headers": lambda: _Opener().open(1, struct.pack(">I", 100_000) + bytes(800_000)),
    "a count of 2^32 - 1 headers": lambda: _Opener().open(1, b"\xff" * 4),
    "a block that is no zlib": lambda: _control(_SYN_STREAM, bytes(10) + b"no zlib" * 100),
    "a frame of 16 MiB": lambda: _control(_SYN_STREAM, b"", length=(1 << 24) - 1) + bytes((1 << 24) - 1),
    "pings": lambda: _control(_PING_FRAME, struct.pack(">I", 1)) * _MANY,
    "kinds": lambda: b"".join(_control(kind, bytes(8)) for kind in range(4, 256)) * 50,
    "another version": lambda: _control(_PING_FRAME, bytes(4), version=2),
    "data of unknown streams": lambda: struct.pack(">II", 99, 1) * 1 + b"x" + (struct.pack(">II", 99, 0) * _MANY),
    "a stream that is opened twice": lambda: (opener := _Opener()).open(1, _block({})) + opener.open(1, _block({})),
    "a size of 10^6 levels": lambda: _terminal(b"[" * 1_000_000),
    "sizes": lambda: _terminal(b'{"Width":80,"Height":25}' * _MANY),
    "sizes that are numbers": lambda: _terminal(b"1 " * 500_000),
}
_SPDY_FORWARD: Final[dict[str, Callable[[], bytes]]] = {
    "20,000 halves of connections": lambda: _streams(_port),
    "20,000 halves that are reset": lambda: _streams(_port, after=True),
    "20,000 invalid streams": lambda: _streams(lambda number: {"streamtype": "data", "port": "0"}),
    "data that is not read": lambda: _streams(_port, 1) + (struct.pack(">II", 1, 60_000) + bytes(60_000)) * 200,
}


def _pod() -> Object:
    return named("v1", "Pod", "frames", spec={"nodeName": "node-1", "containers": [{"name": "c", "image": "i"}]})


def _websocket(path: str, protocol: str, frames: Callable[[], bytes], name: str, before: tuple[Call, ...]) -> Attack:
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Origin": "http://localhost",
        **({"Sec-WebSocket-Protocol": protocol} if protocol else {}),
    }
    return Attack(f"frames: {name}", Call("GET", path, headers=headers), before, frames=frames)


def _spdy(path: str, protocol: str, frames: Callable[[], bytes], name: str, before: tuple[Call, ...]) -> Attack:
    headers = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1", "X-Stream-Protocol-Version": protocol}
    return Attack(f"frames: {name}", Call("POST", path, headers=headers), before, frames=frames)


def attacks() -> Iterator[Attack]:
    before = (
        posted(_PODS, _pod),
        Call("GET", f"{_PODS}?watch=1&fieldSelector={quote('status.phase=Running')}&timeoutSeconds=2"),
    )
    for name, frames in _WEBSOCKET_FRAMES.items():
        yield _websocket(_EXEC, "v4.channel.k8s.io", frames, f"exec: {name}", before)
        yield _websocket(_WATCH, "", frames, f"watch: {name}", before)
    for name, frames in _BASE64_FRAMES.items():
        yield _websocket(_EXEC, "v4.base64.channel.k8s.io", frames, f"exec in base64: {name}", before)
    for name in ("all channels", "unknown channels", "fragments without an end", "pings"):
        frames = _WEBSOCKET_FRAMES[name]
        yield _websocket(f"{_FORWARD}?ports=80&ports=81", "v4.channel.k8s.io", frames, f"port-forward: {name}", before)
    for name, frames in _SPDY_EXEC.items():
        yield _spdy(_EXEC, "v4.channel.k8s.io", frames, f"exec over SPDY: {name}", before)
    for name, frames in _SPDY_FORWARD.items():
        yield _spdy(_FORWARD, "portforward.k8s.io", frames, f"port-forward over SPDY: {name}", before)
