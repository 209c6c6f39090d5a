"""Queries as Go reads them; requests that end early: what didn't come whole is not done."""

import asyncio
import ssl

import pytest

from fakeapiserver import Cluster
from fakeapiserver.endpoints.request import parse_query
from fakeapiserver.endpoints.request_info import request_info

# the server alone: no controller writes
pytestmark = pytest.mark.fake_cluster(controllers=())

PATH = "/api/v1/namespaces/default/configmaps"


async def cut(cluster: Cluster, start: str, body: bytes) -> None:
    """Sends a request that says it is longer than it is, and leaves."""
    port = int(cluster.url.rpartition(":")[2])
    context = ssl.create_default_context(cadata=cluster.ca.decode())
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    head = f"{start} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {cluster.token}\r\nContent-Length: 90\r\n\r\n"
    writer.write(head.encode() + body)
    await writer.drain()
    writer.close()
    await writer.wait_closed()


async def get(cluster: Cluster, path: str) -> bytes:
    port = int(cluster.url.rpartition(":")[2])
    context = ssl.create_default_context(cadata=cluster.ca.decode())
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    head = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {cluster.token}\r\nConnection: close\r\n\r\n"
    writer.write(head.encode())
    answer = await reader.read()
    writer.close()
    return answer


@pytest.mark.parametrize(
    ("start", "body", "path", "status"),
    [
        (f"POST {PATH}", b'{"metadata":{"name":"half"}}', f"{PATH}/half", b"404"),
        ("DELETE /api/v1/namespaces/kube-public", b"", "/api/v1/namespaces/kube-public", b"200"),
    ],
)
def test_half_a_body_does_nothing(
    fake_cluster: Cluster, caplog: pytest.LogCaptureFixture, start: str, body: bytes, path: str, status: bytes
) -> None:
    async def main() -> bytes:
        await cut(fake_cluster, start, body)
        return await get(fake_cluster, path)

    answer = asyncio.run(main())
    assert answer.split()[1] == status
    assert b"deletionTimestamp" not in answer
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("raw", "query"),
    [
        (b"", {}),
        (b"a=1&b=&c&a=2", {"a": ["1", "2"], "b": [""], "c": [""]}),
        (b"a%3D=%26&b+c=d%20e", {"a=": ["&"], "b c": ["d e"]}),
        (b"a=%zz&%=1&b=1", {"b": ["1"]}),
        (b"a=1;b=2&c=3", {"c": ["3"]}),
        (b"&&=x&a=b=c", {"": ["x"], "a": ["b=c"]}),
        (b"a=%c3%a4%ff", {"a": ["ä\ufffd"]}),
        (b"a=1&" * 9_999 + b"b=2", {"a": ["1"] * 9_999, "b": ["2"]}),
        (b"a=1&" * 10_000 + b"b=2", {}),
    ],
)
def test_queries_are_read_as_go_reads_them(raw: bytes, query: dict[str, list[str]]) -> None:
    assert parse_query(raw) == query


@pytest.mark.parametrize(("method", "name"), [("GET", "x"), ("POST", ""), ("PUT", ""), ("PATCH", ""), ("DELETE", "")])
def test_only_what_reads_is_about_the_name_that_its_selector_asks_for(method: str, name: str) -> None:
    """Otherwise a write to a collection would find an object."""
    assert request_info(method, PATH, name_selector="x").name == name
