"""Tests the requests on the wire: their headers, their retries, and the handling of responses."""

import asyncio
import json
import ssl
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from fakeapiserver.client.config import ExecConfig, ImpersonationConfig, RESTConfig
from fakeapiserver.client.errors import StatusError, TransportError, is_conflict, is_not_found
from fakeapiserver.client.rest import RESTClient, encode_query, resource_path
from fakeapiserver.transport.certificates import create_authority, issue_server, save
from fakeapiserver.transport.key_pair import KeyPair

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


def answer(code: int, body: bytes = b"", *headers: str, content_type: str = "application/json") -> bytes:
    lines = [f"HTTP/1.1 {code} X", f"Content-Type: {content_type}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


class Scripted:
    """A server that gives `answers`, one a request (empty: it hangs up), and keeps the `heads` of the requests."""

    def __init__(self, answers: Sequence[bytes]) -> None:
        self._left = list(answers)
        self.heads: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                self.heads.append(head.decode())
                length = [line for line in self.heads[-1].split("\r\n") if line.startswith("Content-Length: ")]
                await reader.readexactly(int(length[0].partition(": ")[2]) if length else 0)
                found = self._left.pop(0)
                writer.write(found)
                if not found:
                    break
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def server(answers: Sequence[bytes], **config: Any) -> AsyncIterator[tuple[RESTClient, list[str]]]:
    """A client of a server that gives `answers`, and the heads of its requests."""
    script = Scripted(answers)
    listening = await asyncio.start_server(script.serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    async with listening, RESTClient(RESTConfig(f"http://127.0.0.1:{port}", **config)) as client:
        yield client, script.heads


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that were waited between tries, without waiting."""
    found: list[float] = []

    async def sleep(seconds: float) -> None:
        found.append(seconds)

    monkeypatch.setattr("fakeapiserver.client.rest.asyncio.sleep", sleep)
    return found


def test_a_busy_server_is_asked_again_when_it_says(pauses: list[float]) -> None:
    async def scenario() -> None:
        busy = [answer(429, b"", "Retry-After: 2"), answer(503, b"", "Retry-After: 1"), OK]
        async with server(busy) as (client, heads):
            assert (await client.request("POST", "/x", body={"a": 1})).json() == {}
            assert len(heads) == 3

    asyncio.run(scenario())
    assert pauses == [2.0, 1.0]


def test_each_try_is_counted() -> None:
    async def scenario() -> None:
        counted: list[tuple[str, str, str]] = []
        listening = await asyncio.start_server(
            Scripted([answer(429, b"", "Retry-After: 0"), b""]).serve, "127.0.0.1", 0
        )
        host = f"127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        config = RESTConfig(f"http://me:secret@{host}/base")

        def count(code: str, method: str, host: str, seconds: float) -> None:
            assert 0 <= seconds < 60
            counted.append((code, method, host))

        async with listening, RESTClient(config, metrics=count) as client:
            with pytest.raises(TransportError):
                await client.request("POST", "/x")
        assert counted == [("429", "POST", host), ("<error>", "POST", host)]

    asyncio.run(scenario())


def test_one_that_only_refuses_is_not_asked_again() -> None:
    async def scenario() -> None:
        status = {"kind": "Status", "status": "Failure", "reason": "Conflict", "message": "no", "code": 409}
        async with server([answer(409, json.dumps(status).encode()), answer(503, b"", content_type="text/plain")]) as (
            client,
            heads,
        ):
            with pytest.raises(StatusError, match="no") as caught:
                await client.request("PUT", "/x", body={})
            assert is_conflict(caught.value)
            with pytest.raises(StatusError, match="currently unable to handle the request"):
                await client.request("GET", "/x")
            assert len(heads) == 2

    asyncio.run(scenario())


def test_it_gives_up_after_ten_more_tries(pauses: list[float]) -> None:
    async def scenario() -> None:
        async with server([answer(429, b"", "Retry-After: -1 ")] * 12) as (client, heads):
            with pytest.raises(StatusError, match="too many requests"):
                await client.request("GET", "/x")
            assert len(heads) == 11

    asyncio.run(scenario())
    assert pauses == [0.0] * 10


@pytest.mark.parametrize(
    ("method", "code", "content_type", "body", "reason", "message", "cause"),
    [
        ("POST", 409, "", b"", "AlreadyExists", "the server reported a conflict", ""),
        ("PUT", 409, "text/plain", b" busy \n", "Conflict", "the server reported a conflict", "busy"),
        ("GET", 403, "text/html; charset=utf-8", b"<p>no", "Forbidden", "<p>no", "<p>no"),
        ("GET", 404, "application/json", b'{"a": 1}', "NotFound", "the server could not find the requested", "unknown"),
        (
            "GET",
            502,
            "application/octet-stream",
            b"x",
            "InternalError",
            r'an error on the server \("unknown"\)',
            "unknown",
        ),
        ("GET", 418, "application/json", b"", "", "responded with the status code 418", "unknown"),
    ],
)
def test_what_answers_without_a_status_mean(
    method: str, code: int, content_type: str, body: bytes, reason: str, message: str, cause: str
) -> None:
    async def scenario() -> None:
        busy = answer(code, body, "Retry-After: soon", content_type=content_type)
        async with server([busy.replace(b"Content-Type: \r\n", b"")]) as (client, _):
            with pytest.raises(StatusError, match=message) as caught:
                await client.request(method, "/x")
        assert (caught.value.code, caught.value.reason) == (code, reason)
        causes = [{"reason": "UnexpectedServerResponse", **({"message": cause} if cause else {})}]
        assert caught.value.status["details"] == {"causes": causes}

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("method", "code", "place", "lines"),
    [
        ("GET", 301, "/there?a=1", ["GET /x HTTP/1.1", "GET /there?a=1 HTTP/1.1"]),
        ("GET", 302, "there", ["GET /x HTTP/1.1", "GET /there HTTP/1.1"]),
        ("POST", 307, "/there", ["POST /x HTTP/1.1", "POST /there HTTP/1.1"]),
        ("POST", 302, "/there", ["POST /x HTTP/1.1"]),
        ("GET", 302, "http://example.com/", ["GET /x HTTP/1.1"]),
    ],
)
def test_redirects_are_followed_within_the_server(method: str, code: int, place: str, lines: list[str]) -> None:
    async def scenario() -> None:
        async with server([answer(code, b"", f"Location: {place}"), OK]) as (client, heads):
            if len(lines) == 1:
                with pytest.raises(StatusError, match=f"status code {code}"):
                    await client.request(method, "/x", body={})
            else:
                await client.request(method, "/x", body={})
        assert [head.partition("\r\n")[0] for head in heads] == lines

    asyncio.run(scenario())


def test_a_loop_of_redirects_ends() -> None:
    async def scenario() -> None:
        async with server([answer(302, b"", "Location: /x")] * 12) as (client, heads):
            with pytest.raises(TransportError, match=r'^Get "http://.*/x": stopped after 10 redirects$'):
                await client.request("GET", "/x")
        assert len(heads) == 10

    asyncio.run(scenario())


def test_broken_watches_are_asked_for_again_and_streams_are_not() -> None:
    async def scenario() -> None:
        async with server([b"", answer(200, b"{")]) as (client, heads):
            with pytest.raises(TransportError, match="unexpected EOF"):
                await anext(client.watch("/x", {}))
            assert len(heads) == 2
        async with server([b"", OK]) as (client, heads):
            with pytest.raises(TransportError, match=r'^Get "http://.*/x": EOF$'):
                async with client.stream("GET", "/x"):
                    pass
            assert len(heads) == 1

    asyncio.run(scenario())


def test_a_late_answer_is_reported() -> None:
    async def scenario() -> None:
        async with server([OK.replace(b"Length: 2", b"Length: 3")]) as (client, heads):
            reading = asyncio.ensure_future(client.request("GET", "/x", timeout=0.5))
            with pytest.raises(TimeoutError, match=r'^Get "http://.*/x\?timeout=500ms": context deadline exceeded$'):
                await reading
            assert heads[0].startswith("GET /x?timeout=500ms ")

    asyncio.run(scenario())


class Elapsing:
    """A clock that advances while a caller sleeps."""

    def __init__(self) -> None:
        self.seconds = 100.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.seconds

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 6))
        self.seconds += seconds


def test_a_client_asks_as_fast_as_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Elapsing()
    monkeypatch.setattr("fakeapiserver.client.rest.asyncio.sleep", clock.sleep)

    async def scenario() -> None:
        script = Scripted([OK] * 9)
        listening = await asyncio.start_server(script.serve, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        config = RESTConfig(f"http://127.0.0.1:{port}", qps=5, burst=3)
        async with listening, RESTClient(config, clock=clock) as client:
            for _ in range(5):
                await client.request("GET", "/x")
            clock.seconds += 0.5
            for _ in range(4):
                await client.request("GET", "/x")

    asyncio.run(scenario())
    assert clock.slept == [0.2, 0.2, 0.1, 0.2]


@pytest.mark.parametrize(("method", "requests"), [("GET", 2), ("POST", 1)])
def test_a_broken_connection_is_tried_again_where_nothing_is_written(method: str, requests: int) -> None:
    async def scenario() -> None:
        async with server([b"", OK]) as (client, heads):
            if requests == 1:
                with pytest.raises(TransportError, match="EOF"):
                    await client.request(method, "/x", body={})
            else:
                await client.request(method, "/x")
            assert len(heads) == requests

    asyncio.run(scenario())


def test_a_missing_server_is_reported() -> None:
    async def scenario() -> None:
        async with RESTClient(RESTConfig("http://127.0.0.1:1")) as client:
            with pytest.raises(TransportError, match=r"dial tcp 127\.0\.0\.1:1: connect: connection refused"):
                await client.request("GET", "/x")

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("config", "headers"),
    [
        ({"token": "t"}, ["Authorization: Bearer t"]),
        ({"username": "u", "password": "p"}, ["Authorization: Basic dTpw"]),
        (
            {"impersonate": ImpersonationConfig("jane", "7", ["dev"], {"example.com/team": ["a"]}), "user_agent": "me"},
            [
                "User-Agent: me",
                "Impersonate-User: jane",
                "Impersonate-Uid: 7",
                "Impersonate-Group: dev",
                "Impersonate-Extra-example.com%2Fteam: a",
            ],
        ),
    ],
)
def test_headers_say_who_asks(config: dict[str, Any], headers: list[str]) -> None:
    async def scenario() -> None:
        async with server([OK], **config) as (client, heads):
            await client.request("GET", "/x", params={"watch": True, "limit": 0, "labelSelector": "a=b,c"})
        lines = heads[0].split("\r\n")
        assert lines[0] == "GET /x?watch=true&limit=0&labelSelector=a%3Db%2Cc HTTP/1.1"
        assert set(headers) <= set(lines)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "config",
    [{"token": "t\nX-Remote-User: admin"}, {"impersonate": ImpersonationConfig("jane\r\nImpersonate-Group: a")}],
)
def test_headers_hold_no_lines(config: dict[str, Any]) -> None:
    async def scenario() -> None:
        async with server([OK], **config) as (client, heads):
            with pytest.raises(TransportError, match="invalid header field value"):
                await client.request("GET", "/x")
        assert not heads

    asyncio.run(scenario())


def test_new_authorities_are_trusted_when_their_file_is_written(tmp_path: Path) -> None:
    clock, authorities = Elapsing(), [create_authority() for _ in range(2)]

    async def serving(authority: KeyPair, port: int) -> asyncio.Server:
        save(tmp_path, "server", issue_server(authority))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
        return await asyncio.start_server(Scripted([OK, OK]).serve, "127.0.0.1", port, ssl=context)

    async def scenario() -> None:
        file = tmp_path / "ca.crt"
        file.write_bytes(authorities[0].certificate)
        before = await serving(authorities[0], 0)
        port = before.sockets[0].getsockname()[1]
        async with RESTClient(RESTConfig(f"https://127.0.0.1:{port}", ca_file=file), clock=clock) as client:
            await client.request("GET", "/x")
            before.close()
            client.close()
            async with await serving(authorities[1], port):
                with pytest.raises(TransportError, match="certificate signed by unknown authority"):
                    await client.request("GET", "/x")
                file.write_bytes(authorities[1].certificate)
                clock.seconds += 1
                await client.request("GET", "/x")

    asyncio.run(scenario())


def test_a_token_file_is_read_again_after_a_refusal(tmp_path: Path) -> None:
    async def scenario() -> None:
        token = tmp_path / "token"
        token.write_text("old\n")
        async with server([answer(401), OK], token_file=token) as (client, heads):
            with pytest.raises(StatusError):
                await client.request("GET", "/x")
            token.write_text("new\n")
            await client.request("GET", "/x")
        assert ["Authorization: Bearer old" in heads[0], "Authorization: Bearer new" in heads[1]] == [True, True]

    asyncio.run(scenario())


def plugin(tmp_path: Path, status: str) -> ExecConfig:
    program = tmp_path / "plugin.py"
    program.write_text(
        "import json, os, pathlib\n"
        "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "runs = pathlib.Path(__file__).with_suffix('.runs')\n"
        "count = len(runs.read_text()) + 1 if runs.exists() else 1\n"
        "runs.write_text('x' * count)\n"
        f"status = {status}\n"
        "print(json.dumps({'apiVersion': info['apiVersion'], 'kind': 'ExecCredential', 'status': status}))\n"
    )
    return ExecConfig(sys.executable, args=(str(program),))


def test_a_plugin_gives_the_token_and_is_asked_again_after_a_refusal(tmp_path: Path) -> None:
    async def scenario() -> None:
        provider = plugin(tmp_path, "{'token': f'token-{count}'}")
        async with server([OK, OK, answer(401), OK], exec_provider=provider) as (client, heads):
            for _ in range(2):
                await client.request("GET", "/x")
            with pytest.raises(StatusError):
                await client.request("GET", "/x")
            await client.request("GET", "/x")
        tokens = [line for head in heads for line in head.split("\r\n") if line.startswith("Authorization")]
        assert tokens == [*["Authorization: Bearer token-1"] * 3, "Authorization: Bearer token-2"]

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda path: ExecConfig("no-such-program", install_hint="install it"),
            "no-such-program not found\n\ninstall it",
        ),
        (lambda path: plugin(path, "None"), "didn't return a status field"),
        (lambda path: plugin(path, "{'clientKeyData': 'x'}"), "only certificate or key, not both"),
        (lambda path: plugin(path, "exit(3)"), "failed with exit code 3"),
    ],
)
def test_a_plugin_that_fails_is_reported(tmp_path: Path, make: Callable[[Path], ExecConfig], message: str) -> None:
    async def scenario() -> None:
        async with server([], exec_provider=make(tmp_path)) as (client, _):
            with pytest.raises(ValueError, match=message):
                await client.request("GET", "/x")

    asyncio.run(scenario())


def test_watches_decode_events_across_chunks_and_report_when_they_break_off() -> None:
    async def scenario() -> None:
        events = b'{"type":"ADDED","object":{"a":1}}\n{"type":"DELETED","object":{"a":2}}\n{"type":"AD'
        pieces = [events[:20], events[20:50], events[50:]]
        body = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        async with server([head + body]) as (client, heads):
            watching = client.watch("/x", {"resourceVersion": "7"})
            assert [(event.type, event.object) for event in (await anext(watching), await anext(watching))] == [
                ("ADDED", {"a": 1}),
                ("DELETED", {"a": 2}),
            ]
            with pytest.raises(TransportError, match="unexpected EOF"):
                await anext(watching)
            assert heads[0].startswith("GET /x?resourceVersion=7&watch=true ")

    asyncio.run(scenario())


def test_a_proxy_is_gone_through() -> None:
    async def scenario() -> None:
        seen = []

        async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            seen.append((await reader.readuntil(b"\r\n\r\n")).decode())
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer(404, content_type="text/plain"))
            writer.close()

        listening = await asyncio.start_server(proxy, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        config = RESTConfig("http://kubernetes.example:8080", proxy_url=f"http://me:secret@127.0.0.1:{port}")
        async with listening, RESTClient(config) as client:
            with pytest.raises(StatusError) as caught:
                await client.request("GET", "/x")
            assert is_not_found(caught.value)
        assert seen[0].split("\r\n")[:3] == [
            "CONNECT kubernetes.example:8080 HTTP/1.1",
            "Host: kubernetes.example:8080",
            "Proxy-Authorization: Basic bWU6c2VjcmV0",
        ]

    asyncio.run(scenario())


@pytest.mark.parametrize("name", ["..", ".", "a/b", "a%2fb"])
def test_names_that_no_path_can_hold_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="invalid resource name"):
        resource_path("apps", "v1", "deployments", "default", name)


def test_paths_and_queries() -> None:
    assert (
        resource_path("apps", "v1", "deployments", "ns", "web", "scale")
        == "/apis/apps/v1/namespaces/ns/deployments/web/scale"
    )
    assert resource_path("", "v1", "nodes", "", "system:node") == "/api/v1/nodes/system:node"
    assert encode_query({"a": "", "b": None, "c": False, "d": "x y"}) == "?d=x%20y"
