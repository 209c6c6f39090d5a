"""`timeout`, `--request-timeout` and `--min-request-timeout`, as a real server answered."""

import asyncio
import json
import re
import ssl
from collections.abc import Iterator

import pytest

from fakeapiserver import Cluster
from fakeapiserver.apimachinery.duration import parse_duration
from fakeapiserver.server.options.config import Config

PATH = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(controllers=()) as cluster:
        yield cluster


def ask(cluster: Cluster, start: str, *headers: str, body: bytes = b"", token: str = "") -> tuple[bytes, bytes]:
    """Head and body of an answer; the request is `start` and what follows it, perhaps unfinished."""

    async def main() -> bytes:
        port = int(cluster.url.rpartition(":")[2])
        context = ssl.create_default_context(cadata=cluster.ca.decode())
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        lines = [f"{start} HTTP/1.1", "Host: x", f"Authorization: Bearer {token or cluster.token}", "Connection: close"]
        writer.write("\r\n".join([*lines, *headers]).encode() + b"\r\n\r\n" + body)
        answer = await asyncio.wait_for(reader.read(), 60)
        writer.close()
        return answer

    head, _, content = asyncio.run(main()).partition(b"\r\n\r\n")
    return head, content


TIMED_OUT = (
    b'{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout",'
    b'"reason":"Timeout","details":{},"code":504}\n'
)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("framing", ["Content-Length: 50", "Transfer-Encoding: chunked"])
def test_a_body_that_does_not_come_in_time(cluster: Cluster, method: str, framing: str) -> None:
    place = PATH if method == "POST" else f"{PATH}/x"
    kind = "Content-Type: application/merge-patch+json" if method == "PATCH" else "Content-Type: application/json"
    head, body = ask(cluster, f"{method} {place}?timeout=50ms", framing, kind, body=b"5\r\n{}")
    assert head.startswith(b"HTTP/1.1 504 Gateway Timeout\r\n")
    assert b"content-type: text/plain; charset=utf-8" in head
    assert body == TIMED_OUT


BAD = [
    ("abc", 'time: invalid duration "abc"'),
    ("1", 'time: missing unit in duration "1"'),
    ("1h2", 'time: missing unit in duration "1h2"'),
    ("1x", 'time: unknown unit "x" in duration "1x"'),
    (".s", 'time: invalid duration ".s"'),
    ("9999999999999999h", 'time: invalid duration "9999999999999999h"'),
]


@pytest.mark.parametrize(("text", "complaint"), BAD)
@pytest.mark.parametrize("path", [PATH, "/version", "/foo"])
def test_an_invalid_timeout_is_rejected_before_authentication(
    cluster: Cluster, path: str, text: str, complaint: str
) -> None:
    head, body = ask(cluster, f"GET {path}?timeout={text}", token="nobody")
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert json.loads(body)["message"] == f"invalid timeout specified in the request URL - {complaint}"


@pytest.mark.parametrize(
    "text", ["", "0", "0s", "-1s", "30s", "30.5s", "30s1s", "1m30s", "100000h", "%2B30s", "30s&timeout=abc"]
)
def test_other_timeouts_are_taken(cluster: Cluster, text: str) -> None:
    head, _ = ask(cluster, f"GET {PATH}?timeout={text}")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")


def test_watches_do_not_read_it(cluster: Cluster) -> None:
    head, _ = ask(cluster, f"GET {PATH}?watch=1&timeoutSeconds=1&timeout=abc")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize(
    ("text", "seconds"), [("1h30m", 5400), ("-1.5s", -1.5), ("0", 0), ("1ms1us", 0.001001), ("1µs", 1e-6)]
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


def test_the_server_has_a_longest_time_and_a_shortest_life_of_watches() -> None:
    with Cluster.from_config(Config(request_timeout=0.1, min_request_timeout=0)) as cluster:
        head, _ = ask(cluster, f"POST {PATH}?timeout=1h", "Content-Length: 50", body=b"{}")
        assert re.match(rb"HTTP/1.1 504 ", head)
        head, body = ask(cluster, f"GET {PATH}?watch=1&resourceVersion=1")
        assert (head[:15], body) == (b"HTTP/1.1 200 OK", b"0\r\n\r\n")
