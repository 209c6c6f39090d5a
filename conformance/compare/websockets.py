"""Random watches over WebSockets, sent to a real server and to another one: prints each kind of difference once.

    python -m conformance.compare.websockets --oracle URL --oracle-token T --server URL --token T [--seed N] [--count N]

Handshakes with something wrong or missing, options of watches, forms of events, and what a client says while it watches: pings,
closes, texts, frames in pieces and frames that break the protocol. Each watch begins before, among or after a few changes of two
config maps in a namespace of their own. A watch ends by itself after a second, so several run at a time.
"""

import json
import random
import re
import socket
import ssl
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlsplit

from conformance import wire
from conformance.compare.edges import first_difference
from conformance.exchange import Client, comparing
from conformance.free_values import plain

_MAPS: Final = "/api/v1/namespaces/websockets/configmaps"
_AT_A_TIME: Final = 6
_BEARER: Final = "base64url.bearer.authorization.k8s.io."
_NAMES: Final = {0: "continuation", 1: "text", 2: "binary", 8: "close", 9: "ping", 10: "pong"}

_HANDSHAKE: Final = {
    "Host": "x",
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Origin": "http://x",
}
# What may stand in a handshake instead; None leaves the header out.
_ODD: Final[dict[str, tuple[str | None, ...]]] = {
    "Upgrade": ("WebSocket", "websocket, h2c", "h2c", "websockets", " websocket ", None, ""),
    "Connection": ("upgrade", "keep-alive, Upgrade", "Upgrade, close", "close", "keep-alive", "xupgradex", None, ""),
    "Sec-WebSocket-Version": ("8", "12", "14", "013", "13, 8", "x", None, ""),
    "Sec-WebSocket-Key": ("x", "AAAA", "é", "dGhlIHNhbXBsZSBub25jZQ", None, ""),
    "Origin": ("null", "x", "/x", "//x", "x:y", "http://", "https://x:1/y?z", "http://[::1", "http://a b", ":", "%zz", None, ""),
    "Sec-WebSocket-Protocol": (
        *("v4.channel.k8s.io", "binary.k8s.io", "base64.binary.k8s.io", "a, b", "a,", ",", "x y", "", _BEARER, _BEARER + "!"),
        *(f"{_BEARER}cmVmZXJlbmNlLWFkbWlu", f"{_BEARER}cmVmZXJlbmNlLWFkbWlu, x", f"{_BEARER}cmVm, {_BEARER}cmVm, x", "é"),
    ),
    "Sec-WebSocket-Extensions": ("permessage-deflate", "permessage-deflate; client_max_window_bits", "x"),
    "Content-Length": ("0",),
    "Accept-Encoding": ("gzip",),
    "Expect": ("100-continue",),
}  # fmt: skip
_ACCEPTS: Final = (
    *("application/json", "application/json;stream=watch", "application/vnd.kubernetes.protobuf", "application/yaml", "*/*"),
    *("application/vnd.kubernetes.protobuf;stream=watch", "application/json;as=Table;v=v1;g=meta.k8s.io", "text/html"),
    *("application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "application/cbor-seq", "application/cbor"),
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
)  # fmt: skip
_PATHS: Final = (
    *(f"{_MAPS}?watch=1",) * 6,
    *(f"{_MAPS}?watch=true&fieldSelector=metadata.name%3Dws1", "/api/v1/watch/namespaces/websockets/configmaps?x=1"),
    *("/api/v1/watch/namespaces/websockets/configmaps/ws1?x=1", f"{_MAPS}/ws1?watch=1", f"{_MAPS}?watch=0", f"{_MAPS}?limit=1"),
    *(f"{_MAPS}?watch=1&labelSelector=app%3Dws", f"{_MAPS}?watch=1&labelSelector=,", f"{_MAPS}?watch=1&fieldSelector=x%3Dy"),
    *("/api/v1/namespaces/nope/secrets?watch=1", "/api/v1/nope?watch=1", "/apis/apps/v1/deployments?watch=1", "/version?watch=1"),
    *("/api/v1/namespaces/default/pods/x/log?follow=1", f"{_MAPS}/nope?x=1", "/healthz?x=1", "/nope?x=1"),
)  # fmt: skip
_OPTIONS: Final[dict[str, tuple[str, ...]]] = {
    "resourceVersion": ("BEFORE",) * 6 + ("AMONG", "0", "", "x", "-1"),
    "resourceVersionMatch": ("NotOlderThan", "Exact", "x"),
    "sendInitialEvents": ("true", "true", "false", "x"),
    "allowWatchBookmarks": ("true", "false"),
    "pretty": ("1",),
    "timeout": ("1s", "x"),
    "includeObject": ("None", "Object", "x"),
}


def _frame(opcode: int, payload: bytes = b"", *, final: bool = True, masked: bool = True, reserved: int = 0) -> bytes:
    """Returns a client's frame; the mask is zero, so the payload is unchanged."""
    size = len(payload)
    length = (
        bytes([size]) if size < 126 else b"\x7e" + size.to_bytes(2) if size < 1 << 16 else b"\x7f" + size.to_bytes(8)
    )
    length = bytes([length[0] | masked << 7]) + length[1:]
    return bytes([final << 7 | reserved << 4 | opcode]) + length + bytes(4 * masked) + payload


# What a client says, by name.
_SAID: Final[dict[str, bytes]] = {
    "a text": _frame(1, b"hello"),
    "bytes": _frame(2, b"\x00\xff"),
    "a text that is none": _frame(1, b"\xff\xfe"),
    "a long text": _frame(1, b"x" * 70_000),
    "a text in two pieces": _frame(1, b"he", final=False) + _frame(0, b"llo"),
    "a ping amid a text": _frame(1, b"he", final=False) + _frame(9, b"p") + _frame(0, b"llo"),
    "a continuation of nothing": _frame(0, b"x"),
    "a text within a text": _frame(1, b"he", final=False) + _frame(1, b"llo"),
    "a ping": _frame(9, b"are you there"),
    "a ping of nothing": _frame(9),
    "a ping too long": _frame(9, b"x" * 126),
    "a ping in pieces": _frame(9, b"x", final=False),
    "a pong": _frame(10, b"x"),
    "a close": _frame(8, b"\x03\xe8bye"),
    "a close without a code": _frame(8),
    "a close of one byte": _frame(8, b"\x03"),
    "a close with an unknown code": _frame(8, b"\x00\x01"),
    "a close, then a text": _frame(8, b"\x03\xe8") + _frame(1, b"x"),
    "an unmasked text": _frame(1, b"hello", masked=False),
    "an unmasked close": _frame(8, b"\x03\xe8", masked=False),
    "a reserved bit": _frame(1, b"x", reserved=4),
    "a reserved opcode": _frame(3, b"x"),
    "a reserved control opcode": _frame(11, b"x"),
    "junk": b"GET / HTTP/1.1\r\n\r\n",
    "zeros": bytes(64),
    "half a frame": _frame(1, b"hello")[:4],
    "a length of 2**63": b"\x81\xff\x80" + bytes(11),
    "a length of 2**40": b"\x81\xff\x00\x00\x01" + bytes(9),
}  # fmt: skip

_ENDING: Final = frozenset(name for name in _SAID if re.search("close|unmasked|junk|zeros|half|2\\*\\*40", name))


@dataclass(frozen=True, slots=True)
class Watch:
    """A request: its method, its path with BEFORE and AMONG for revisions, its headers without credentials, and the messages to send."""

    method: str
    path: str
    headers: dict[str, str]
    said: tuple[str, ...]


class Generator:
    """Makes requests out of one random source."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def watch(self) -> Watch:
        pick, chance = self._random.choice, self._random.random
        path = pick(_PATHS)
        names = self._random.sample(list(_OPTIONS), pick((0, 0, 0, 1, 2, 3)))
        if chance() < 0.7:
            names = ["resourceVersion", *(name for name in names if name != "resourceVersion")]
        path += "".join(f"&{name}={quote(pick(_OPTIONS[name]))}" for name in names) + "&timeoutSeconds=1"
        headers: dict[str, str | None] = dict(_HANDSHAKE)
        if chance() < 0.35:
            for name in self._random.sample(list(_ODD), pick((1, 1, 2))):
                headers[name] = pick(_ODD[name])
        if chance() < 0.5:
            headers["Accept"] = pick(_ACCEPTS)
        said = tuple(pick(list(_SAID)) for _ in range(pick((0, 0, 1, 1, 1, 2, 3))))
        method = pick(("GET",) * 20 + ("HEAD", "POST", "PATCH", "OPTIONS"))
        return Watch(method, path, {name: value for name, value in headers.items() if value is not None}, said)


@dataclass(frozen=True, slots=True)
class Side:
    """A server that holds the watched objects, and its revisions BEFORE and AMONG their changes."""

    url: str
    token: str
    before: str
    among: str

    @classmethod
    def prepared(cls, url: str, token: str) -> "Side":
        client = Client(url, token)

        def revision() -> str:
            return str(client.send({"method": "GET", "path": _MAPS}, [])["body"]["metadata"]["resourceVersion"])

        def change(method: str, path: str, body: Any) -> None:
            client.send({"method": method, "path": _MAPS + path, "body": body, **patching(method)}, [])

        def patching(method: str) -> dict[str, str]:
            return {"type": "application/merge-patch+json"} if method == "PATCH" else {}

        namespace = {"metadata": {"name": "websockets"}}
        client.send({"method": "POST", "path": "/api/v1/namespaces", "body": namespace}, [])
        change("DELETE", "", {})
        before = revision()
        for name in ("ws1", "ws2"):
            change("POST", "", {"metadata": {"name": name, "labels": {"app": "ws"}}, "data": {"k": "<&>é\u2028\n"}})
        among = revision()
        change("PATCH", "/ws1", {"data": {"k": "w"}})
        change("PATCH", "/ws2", {"metadata": {"labels": {"app": "x"}}})
        change("DELETE", "/ws2", {})
        return cls(url, token, before, among)

    def answer(self, watch: Watch) -> dict[str, Any]:
        """Returns the comparable part of a response: the status line, the headers, and the messages or the body."""
        head, _, rest = self._exchange(watch).partition(b"\r\n\r\n")
        status, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        # Chosen by each server, or determined by the body.
        for name in ("date", "audit-id", "content-length", "transfer-encoding"):
            headers.pop(name, None)
        for name in ("x-kubernetes-pf-flowschema-uid", "x-kubernetes-pf-prioritylevel-uid"):
            headers |= {name: "*"} if name in headers else {}
        if " 101 " not in status:
            return {"status": status, "headers": headers, "told": _body(rest, headers.get("content-type", ""))}
        # An answer to what the client says overtakes events or doesn't, and what ends the watch spares it some.
        messages = list(_messages(rest))
        control = [message for message in messages if message[0] not in ("text", "binary")]
        events = [message for message in messages if message not in control]
        whole = not _ENDING.intersection(watch.said)
        return {"status": status, "headers": headers, "control": control, "events": events if whole else "some"}

    def _exchange(self, watch: Watch) -> bytes:
        """Everything that comes back until the server closes, or for five seconds of silence."""
        parts = urlsplit(self.url)
        path = watch.path.replace("BEFORE", self.before).replace("AMONG", self.among)
        lines = [f"{watch.method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in watch.headers.items())]
        if _BEARER not in watch.headers.get("Sec-WebSocket-Protocol", ""):
            lines.append(f"Authorization: Bearer {self.token}")
        said = b"".join(_SAID[name] for name in watch.said)
        context = ssl._create_unverified_context()
        answer = b""
        address = (parts.hostname or "", parts.port or 443)
        with context.wrap_socket(socket.create_connection(address, timeout=5)) as connection:
            try:
                connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n")
                while b"\r\n\r\n" not in answer and (piece := connection.recv(65536)):
                    answer += piece
                if b" 101 " in answer[:20] and said:
                    connection.sendall(said)
                if b" 101 " not in answer[:20]:
                    connection.settimeout(1.5)  # for a body; the connection may be kept
                while piece := connection.recv(65536):
                    answer += piece
            except OSError:
                pass
        return answer


def _messages(data: bytes) -> Iterator[Any]:
    """Yields a server's frames; bytes that aren't a whole frame are yielded as text."""
    while data:
        if len(data) < 2:
            yield f"half a frame: {data!r}"
            return
        size, at = data[1] & 127, 2
        if size > 125:
            width = 2 if size == 126 else 8
            size, at = int.from_bytes(data[2 : 2 + width]), 2 + width
        name, payload = _NAMES.get(data[0] & 15, str(data[0] & 15)), data[at : at + size]
        flags = "" if data[0] & 0xF0 == 0x80 and not data[1] & 128 else f" {data[0]:#x}"
        yield [name + flags, _payload(name, payload)]
        data = data[at + size :]


def _payload(name: str, payload: bytes) -> Any:
    if name == "text":
        return _neutral(json.loads(payload))
    if name == "binary":
        try:
            (event,) = wire.decoded_frames(len(payload).to_bytes(4) + payload)
        except (ValueError, IndexError):
            return repr(payload)
        return _neutral(wire.plain(event["object"]))
    return repr(payload)


def _body(data: bytes, kind: str) -> Any:
    if "json" not in kind:
        return bool(data) if "kubernetes" in kind or "yaml" in kind else data.decode(errors="replace")
    text = re.sub(r"(\A|\r\n)[0-9a-f]+\r\n(\r\n)?", "", data.decode())  # without the sizes of chunks
    try:
        return _neutral(json.loads(text))
    except ValueError:
        return _neutral([json.loads(line) for line in text.splitlines() if line])


def _neutral(value: Any) -> Any:
    if isinstance(value, dict):
        free = ("resourceVersion", "uid", "continue")
        return {key: "*" if key in free else _neutral(found) for key, found in value.items() if key != "description"}
    if isinstance(value, list):
        return [_neutral(found) for found in value]
    return re.sub(r"current: \d+|\d{3,} \(\d+\)", "N", str(plain(value))) if isinstance(value, str) else value


def main(arguments: Sequence[str] | None = None) -> int:
    options = comparing(__doc__, count=200).parse_args(arguments)
    oracle = Side.prepared(options.oracle, options.oracle_token)
    server = Side.prepared(options.server, options.token)
    generator = Generator(options.seed)
    watches = [generator.watch() for _ in range(options.count)]
    kinds: Counter[str] = Counter()
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        pairs = pool.map(lambda watch: (oracle.answer(watch), server.answer(watch)), watches)
        for number, (watch, (expected, got)) in enumerate(zip(watches, pairs, strict=True)):
            if expected["status"].endswith("500 Internal Server Error") and got["status"].endswith("400 Bad Request"):
                continue
            if found := first_difference(expected, got):
                kind = re.sub(r"\d+", "N", found[:90])
                kinds[kind] += 1
                if kinds[kind] == 1:
                    print(f"{number} {watch}\n    {found}")
    print(f"{options.count} watches, {kinds.total()} differ in {len(kinds)} ways")
    return 0


if __name__ == "__main__":
    sys.exit(main())
