"""Tests the responses that need no application, on raw sockets: Go's responses, deadlines and limits."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fakeapiserver.server.http.edge_state import Limits
from fakeapiserver.server.http.request_head import decode_path, split_target
from fakeapiserver.server.http.serving import Server

# heads have all the time there is: a busy machine may need more than a moment between a connection and its request
QUICK = Limits(body_timeout=0.2, idle_timeout=0.12, write_timeout=0.08, linger_timeout=0.02)
HOST = b"Host: x\r\n"


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answers with the method, the path and the length of the body; /early answers without reading it."""
    size, more = 0, scope["path"] != "/early"
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size += len(message["body"])
        more = message["more_body"]
    body = f"{scope['method']} {scope['path']} {size}".encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


def serve(test: Callable[[Server], Awaitable[None]], app: Any = echo, limits: Limits = QUICK) -> None:
    """Run a test against a server; afterwards no task may be left."""

    async def run() -> None:
        server = Server(app, limits=limits)
        await server.start()
        try:
            await asyncio.wait_for(test(server), 60)
        finally:
            await server.stop()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(run())


async def ask(server: Server, request: bytes) -> bytes:
    """Everything the server says until it closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(request)
    try:
        return await reader.read()
    finally:
        writer.close()


REFUSED = [
    ("no Host", b"GET / HTTP/1.1\r\n\r\n", b"400 Bad Request: missing required Host header"),
    ("two Hosts", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"400 Bad Request"),
    ("a Host with a blank", b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", b"400 Bad Request: malformed Host header"),
    ("HTTP/0.9", b"GET /\r\n\r\n", b"400 Bad Request"),
    ("no HTTP at all", b"\x00\x01\r\n\r\n", b"400 Bad Request"),
    ("length and chunks", b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n", b"400 Bad Request"),
    ("length 10^20", b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 100000000000000000000\r\n\r\n", b"400 Bad Request"),
    ("length -1", b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: -1\r\n\r\n", b"400 Bad Request"),
    ("two lengths", b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n", b"400 Bad Request"),
    ("chunk size zz", b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", b"400 Bad Request"),
    ("chunk size 2^68", b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n1" + b"0" * 17 + b"\r\n", b"400 Bad Request"),
    ("broken escape", b"GET /%zz HTTP/1.1\r\n" + HOST + b"\r\n", b"400 Bad Request"),
    ("relative target", b"GET a HTTP/1.1\r\n" + HOST + b"\r\n", b"400 Bad Request"),
    ("control byte in a value", b"GET / HTTP/1.1\r\n" + HOST + b"X: a\x01b\r\n\r\n", b"400 Bad Request"),
    ("blank in a name", b"GET / HTTP/1.1\r\n" + HOST + b"X Y: a\r\n\r\n", b"400 Bad Request: invalid header name"),
    ("RTSP/1.0", b"GET / RTSP/1.0\r\n" + HOST + b"\r\n", b"400 Bad Request"),
    ("ICE/1.0", b"SOURCE / ICE/1.0\r\n" + HOST + b"\r\n", b"400 Bad Request"),
    ("an empty line in front", b"\r\nGET / HTTP/1.1\r\n" + HOST + b"\r\n", b"400 Bad Request"),
    ("two blanks", b"GET  / HTTP/1.1\r\n" + HOST + b"\r\n", b"400 Bad Request"),
    ("a first header that goes on", b"GET / HTTP/1.1\r\n " + HOST + b"\r\n", b"400 Bad Request"),
    ("a user in Host", b"GET / HTTP/1.1\r\nHost: user@a\r\n\r\n", b"400 Bad Request: malformed Host header"),
    ("a URL with a bad port", b"GET http://[::1]:x/ HTTP/1.1\r\n" + HOST + b"\r\n", b"400 Bad Request"),
    ("a URL with a broken escape", b"GET http://%zz/ HTTP/1.1\r\n" + HOST + b"\r\n", b"400 Bad Request"),
    ("a URL with an escaped letter", b"GET http://%41/ HTTP/1.1\r\n" + HOST + b"\r\n", b"400 Bad Request"),
    ("a URL with a port in words", b"GET http://a:x/ HTTP/1.1\r\n" + HOST + b"\r\n", b"400 Bad Request"),
    ("HTTP/2 preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"505 HTTP Version Not Supported: unsupported protocol version"),
    ("HTTP/2.0 line", b"GET / HTTP/2.0\r\n" + HOST + b"\r\n", b"505 HTTP Version Not Supported: unsupported protocol version"),
    ("HTTP/3.0 line", b"GET / HTTP/3.0\r\n" + HOST + b"\r\n", b"505 HTTP Version Not Supported: unsupported protocol version"),
]  # fmt: skip


@pytest.mark.parametrize(("request_bytes", "status"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refused_as_go_does(request_bytes: bytes, status: bytes) -> None:
    async def test(server: Server) -> None:
        answer = await ask(server, request_bytes)
        head = b"HTTP/1.1 " + status + b"\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
        assert answer == head + status

    serve(test)


@pytest.mark.parametrize("coding", [b"gzip", b"gzip, chunked", b"identity", b"chunked\r\nTransfer-Encoding: chunked"])
def test_unknown_transfer_encoding(coding: bytes) -> None:
    async def test(server: Server) -> None:
        answer = await ask(
            server, b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: " + coding + b"\r\n\r\n0\r\n\r\n"
        )
        assert answer.startswith(b"HTTP/1.1 501 Not Implemented\r\n")
        assert answer.endswith(b"\r\n\r\nUnsupported transfer encoding")

    serve(test)


def test_expectations() -> None:
    async def test(server: Server) -> None:
        post = b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\nConnection: close\r\nExpect: "
        assert (
            await ask(server, post + b"100-Continue\r\n\r\n")
        ) == b"HTTP/1.1 100 Continue\r\n\r\n"  # cut in the body
        other = await ask(server, post + b"foo\r\n\r\n{}")
        assert other.startswith(b"HTTP/1.1 417 Expectation Failed\r\n")
        early = await ask(server, post.replace(b"/", b"/early", 1) + b"100-continue\r\n\r\n")
        assert b"100 Continue" not in early
        assert early.endswith(b"POST /early 0")

    serve(test)


@pytest.mark.parametrize(("size", "status"), [((1 << 20) - 100, b"200"), (1_200_000, b"431")])
def test_header_size(size: int, status: bytes) -> None:
    async def test(server: Server) -> None:
        answer = await ask(
            server, b"GET / HTTP/1.1\r\nConnection: close\r\n" + HOST + b"X: " + b"a" * size + b"\r\n\r\n"
        )
        assert answer.split()[1] == status

    serve(test, limits=Limits(linger_timeout=0.05))


def test_any_number_of_headers() -> None:
    async def test(server: Server) -> None:
        lines = b"".join(b"X%d: a\r\n" % i for i in range(10_000))
        answer = await ask(server, b"GET / HTTP/1.1\r\nConnection: close\r\n" + HOST + lines + b"\r\n")
        assert answer.startswith(b"HTTP/1.1 200 OK")

    serve(test, limits=Limits())


JUDGED = [
    ("a blank in a name and no Host", b"GET / HTTP/1.1\r\nX Y: 1\r\n\r\n", b"400 Bad Request: missing required Host header"),
    ("a control byte in a name and no Host", b"GET / HTTP/1.1\r\nX\x01: 1\r\n\r\n", b"400 Bad Request"),
    ("a bad Host and a blank in a name", b"GET / HTTP/1.1\r\nHost: a b\r\nX : 1\r\n\r\n", b"400 Bad Request: malformed Host header"),
    ("a bad Host and a broken escape", b"GET /% HTTP/1.1\r\nHost: a b\r\n\r\n", b"400 Bad Request"),
    ("HTTP/2.0 and a broken escape", b"GET /% HTTP/2.0\r\nHost: a\r\n\r\n", b"400 Bad Request"),
    ("HTTP/0.9 with a head", b"GET / HTTP/0.9\r\nHost: a\r\n\r\n", b"505 HTTP Version Not Supported: unsupported protocol version"),
]  # fmt: skip


@pytest.mark.parametrize(("request_bytes", "status"), [row[1:] for row in JUDGED], ids=[row[0] for row in JUDGED])
def test_of_several_faults_the_one_that_go_finds_first(request_bytes: bytes, status: bytes) -> None:
    async def test(server: Server) -> None:
        assert (await ask(server, request_bytes)).endswith(b"\r\n\r\n" + status)

    serve(test)


NO_CHUNK = b" HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz"
ANSWERED = [
    ("a later HTTP/1", b"GET /a HTTP/1.7\r\nHost: x\r\nConnection: close\r\n\r\n", b"HTTP/1.1 200 OK", b"GET /a 0"),
    ("HTTP/1.0", b"GET /a HTTP/1.0\r\n\r\n", b"HTTP/1.0 200 OK", b"GET /a 0"),
    ("CONNECT without Host", b"CONNECT /a HTTP/1.1\r\nConnection: close\r\n\r\n", b"HTTP/1.1 200 OK", b"CONNECT /a 0"),
    ("CONNECT to a host", b"CONNECT a:443 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", b"HTTP/1.1 200 OK", b"CONNECT  0"),
    ("a URL with a user", b"GET http://u@[::1]:1/a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b"HTTP/1.1 200 OK", b"GET /a 0"),
    ("bare line feeds", b"GET /a HTTP/1.1\nHost: x\nConnection: close\n\n", b"HTTP/1.1 200 OK", b"GET /a 0"),
    ("a value of two lines", b"GET /a HTTP/1.1\r\nHost: x\r\nX: a\r\n\tb\r\nConnection: close\r\n\r\n", b"HTTP/1.1 200 OK", b"GET /a 0"),
    ("raw UTF-8", "GET /ä HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode(), b"HTTP/1.1 200 OK", "GET /ä 0".encode()),
    ("the server itself", b"OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b"HTTP/1.1 200 OK", b""),
    ("a bad body nobody reads", b"POST /early" + NO_CHUNK, b"HTTP/1.1 200 OK", b"POST /early 0"),
    ("a bad body somebody reads", b"POST /a" + NO_CHUNK, b"HTTP/1.1 400 Bad Request", b"400 Bad Request"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("request_bytes", "status", "body"), [row[1:] for row in ANSWERED], ids=[row[0] for row in ANSWERED]
)
def test_odd_requests_that_are_answered(request_bytes: bytes, status: bytes, body: bytes) -> None:
    async def test(server: Server) -> None:
        answer = await ask(server, request_bytes)
        assert answer.split(b"\r\n")[0] == status
        assert answer.partition(b"\r\n\r\n")[2] == body

    serve(test)


@pytest.mark.parametrize(
    ("request_bytes", "status", "body"), [row[1:] for row in ANSWERED], ids=[row[0] for row in ANSWERED]
)
def test_requests_that_come_byte_by_byte_are_answered_the_same(
    request_bytes: bytes, status: bytes, body: bytes
) -> None:
    async def test(server: Server) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        for number in range(len(request_bytes)):
            writer.write(request_bytes[number : number + 1])
            await writer.drain()
            await asyncio.sleep(0)
        answer = await reader.read()
        writer.close()
        assert answer.split(b"\r\n")[0] == status
        assert answer.partition(b"\r\n\r\n")[2] == body

    serve(test, limits=Limits(linger_timeout=0.02))


@pytest.mark.parametrize(
    "ending", [b"Content-Length: 3\r\n\r\n{\n}", b"Transfer-Encoding: chunked\r\n\r\n3\r\n{\n}\r\n0\r\nX: y\r\n\r\n"]
)
def test_a_pipelined_request_is_judged_as_a_first_one(ending: bytes) -> None:
    first = b"PUT /a HTTP/1.1\r\n" + HOST + ending

    async def test(server: Server) -> None:
        odd = b"FOO /\xc3\xa4 HTTP/1.1\nConnection: close\n" + HOST + b"\n"
        assert (await ask(server, first + odd)).endswith("FOO /ä 0".encode())
        large = b"GET / HTTP/1.1\r\n" + HOST + b"X: " + b"a" * 1_200_000 + b"\r\n\r\n"
        for request in (large, large[:-4]):
            answer = await ask(server, first + request)
            assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
            assert b"HTTP/1.1 431 Request Header Fields Too Large\r\n" in answer

    serve(test, limits=Limits(linger_timeout=0.05))


@pytest.mark.parametrize(
    ("method", "blanks", "status"), [(b"POST", 4, b"200"), (b"POST", 5, b"400"), (b"PUT", 1, b"400")]
)
def test_some_line_ends_behind_a_post_are_skipped(method: bytes, blanks: int, status: bytes) -> None:
    async def test(server: Server) -> None:
        first = method + b" /a HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\n\r\n{}"
        second = b"GET /b HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n"
        answer = await ask(server, first + b"\n" * blanks + second)
        assert answer.rpartition(b"HTTP/1.1 ")[2].startswith(status)

    serve(test)


def test_http_1_0_knows_no_chunks() -> None:
    """The chunks are read as the next request, and refused."""

    async def test(server: Server) -> None:
        head = b"POST /a HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n"
        answer = await ask(server, head + b"\r\n2\r\n{}\r\n0\r\n\r\n")
        assert b"POST /a 0" in answer
        assert answer.endswith(b"400 Bad Request")
        assert (await ask(server, head + b"Content-Length: 2\r\n\r\n{}")).endswith(b"POST /a 2")

    serve(test)


def test_a_bad_request_behind_a_good_one_does_not_cost_its_answer() -> None:
    """A body that is longer than it says is such a request."""

    async def test(server: Server) -> None:
        answer = await ask(server, b"POST /a HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\n\r\n{} and more\r\n\r\n")
        first, _, second = answer.partition(b"POST /a 2")
        assert first.startswith(b"HTTP/1.1 200 OK\r\n")
        assert second.startswith(b"HTTP/1.1 400 Bad Request\r\n")

    serve(test)


def test_http_1_0_is_kept_when_asked() -> None:
    async def test(server: Server) -> None:
        request = b"GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
        answer = await ask(server, request + request)
        assert answer.count(b"GET /a 0") == 2
        assert answer.count(b"connection: keep-alive") == 2

    serve(test)


@pytest.mark.parametrize("method", ["FOO", "get", "M-SEARCH", "PURGE", "X!#$%&'*+-.^_`|~"])
def test_any_token_is_a_method(method: str) -> None:
    async def test(server: Server) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        for _ in range(2):
            writer.write(method.encode() + b" /a HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\n\r\n{}")
            await reader.readuntil(b"\r\n\r\n")
            body = method.encode() + b" /a 2"
            assert await reader.readexactly(len(body)) == body
        writer.close()

    serve(test, limits=Limits())


SLOW = {
    "silent": b"",
    "half a header": b"GET / HT",
    "half a body": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf",
}


@pytest.mark.parametrize("request_bytes", SLOW.values(), ids=SLOW.keys())
def test_slow_peers_are_cut(request_bytes: bytes) -> None:
    async def test(server: Server) -> None:
        assert await ask(server, request_bytes) == b""

    serve(test, limits=Limits(header_timeout=0.08, body_timeout=0.08))


def test_idle_connections_are_cut_after_their_answer() -> None:
    async def test(server: Server) -> None:
        assert (await ask(server, b"GET /a HTTP/1.1\r\n" + HOST + b"\r\n")).endswith(b"GET /a 0")

    serve(test)


def test_a_stalled_reader_is_cut_off_and_delays_no_other_client() -> None:
    ended = asyncio.Event()

    async def flood(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] != "/flood":
            return await echo(scope, receive, send)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        try:
            while True:
                await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
        except OSError:
            ended.set()
            raise

    async def test(server: Server) -> None:
        stalled = socket.create_connection(("127.0.0.1", server.port))
        stalled.sendall(b"GET /flood HTTP/1.1\r\n" + HOST + b"\r\n")
        answer = await ask(server, b"GET /a HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n")
        assert answer.endswith(b"GET /a 0")
        await ended.wait()
        stalled.close()

    serve(test, app=flood)


def test_pipelined_requests_are_answered_in_order() -> None:
    async def test(server: Server) -> None:
        first = b"POST /a HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
        answer = await ask(
            server,
            first + b"GET /b HTTP/1.1\r\n" + HOST + b"\r\nGET /c HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n",
        )
        assert [answer.index(part) for part in (b"POST /a 2", b"GET /b 0", b"GET /c 0")] == sorted(
            answer.index(part) for part in (b"POST /a 2", b"GET /b 0", b"GET /c 0")
        )

    serve(test)


def test_an_exception_is_the_edges_last_resort(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/late":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"part", "more_body": True})
        raise RuntimeError("on purpose")

    async def test(server: Server) -> None:
        early = await ask(server, b"GET / HTTP/1.1\r\n" + HOST + b"\r\n")
        assert early.startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
        assert early.endswith(b"\r\n\r\nInternal Server Error")
        late = await ask(server, b"GET /late HTTP/1.1\r\n" + HOST + b"\r\n")
        assert late.endswith(b"4\r\npart\r\n")  # no last chunk: the peer sees that it is not whole

    serve(test, app=broken)
    assert "on purpose" in caplog.text


def test_a_large_unread_body_does_not_prevent_the_answer() -> None:
    async def test(server: Server) -> None:
        answer = await ask(
            server, b"POST /early HTTP/1.1\r\n" + HOST + b"Content-Length: 2000000\r\n\r\n" + b"x" * 2_000_000
        )
        assert answer.endswith(b"POST /early 0")

    serve(test, limits=Limits(linger_timeout=0.05))


def test_headers_of_a_stream_leave_before_its_first_event() -> None:
    async def watch(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while (await receive())["type"] != "http.disconnect":
            pass

    async def test(server: Server) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET / HTTP/1.1\r\n" + HOST + b"\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"transfer-encoding: chunked" in head
        assert b"date: " in head
        assert b"server:" not in head
        writer.close()

    serve(test, app=watch, limits=Limits())


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [(b"/a?b?c", b"/a", b"b?c"), (b"https://h/a?b", b"/a", b"b"), (b"http://h", b"", b""), (b"//a", b"//a", b"")],
)
def test_targets(target: bytes, path: bytes, query: bytes) -> None:
    assert split_target(target) == (path, query)


@pytest.mark.parametrize(
    ("raw", "path"), [(b"/a%2fb", "/a/b"), (b"/%c3%a9", "/é"), (b"/\xc3\xa9", "/é"), (b"/%ff", "/\ufffd")]
)
def test_paths(raw: bytes, path: str) -> None:
    assert decode_path(raw) == path


def test_a_server_that_ends_answers_a_request_that_has_arrived() -> None:
    """A client that has its answer sends the next request while the server stops."""

    async def test(server: Server) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        for _ in range(2):
            writer.write(b"GET / HTTP/1.1\r\n" + HOST + b"\r\n")
            first = await reader.readuntil(b"GET / 0")
        writer.write(b"GET / HTTP/1.1\r\n" + HOST + b"\r\n")
        await server.stop(grace=5)
        last = await reader.read()
        writer.close()
        assert b"connection: close" not in first.lower()
        assert last.endswith(b"GET / 0")
        assert b"connection: close" in last.lower()

    serve(test)
