"""An etcd that a server can't use: it doesn't start, with one sentence, or it responds as a kube-apiserver 1.36.3 does."""

import asyncio
import base64
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final

import httpx
import pytest

from fakeapiserver.cluster.processes.etcd_process import EtcdProcess
from fakeapiserver.server.local import LocalServer
from fakeapiserver.server.options.config import Config, EtcdOptions
from fakeapiserver.storage.etcd.client import Client
from fakeapiserver.storage.etcd.errors import NoSpace
from fakeapiserver.storage.etcd.messages import PutRequest, RequestOp, TxnRequest
from tests.server.etcd.test_servers import CONFIG_MAPS, ask, config_map, server

NewEtcd = Callable[..., AbstractContextManager[EtcdProcess]]
# Bytes, enough for what a server stores at its start.
QUOTA: Final = 1 << 20


def complaint_of(url: str, *, read_only: bool = False) -> str:
    """The sentence with which a server refuses to start."""

    async def start() -> str:
        local = LocalServer(
            Config(etcd=EtcdOptions(servers=(url,)), controllers=(), read_only=read_only), listens=False
        )
        try:
            with pytest.raises(OSError, match=url) as raised:
                await local.start()
        finally:
            await local.stop()
        return str(raised.value).replace(url, "URL")

    return asyncio.run(start())


def enable_authentication(url: str) -> None:
    for path, body in (
        ("user/add", {"name": "root", "password": "x"}),
        ("role/add", {"name": "root"}),
        ("user/grant", {"user": "root", "role": "root"}),
        ("enable", {}),
    ):
        response = httpx.post(f"{url}/v3/auth/{path}", json=body)
        assert response.status_code == 200, response.text


def test_an_etcd_that_wants_a_user(etcd: EtcdProcess) -> None:
    enable_authentication(etcd.url)
    assert complaint_of(etcd.url) == (
        "etcd at URL: user name is empty; it has authentication enabled, and knows a server by the common name of its client "
        "certificate: name one by --etcd-certfile and --etcd-keyfile, or disable authentication"
    )


@pytest.mark.parametrize("read_only", [False, True])
def test_a_prefix_of_another_program(etcd: EtcdProcess, read_only: bool) -> None:
    async def put(key: bytes) -> int:
        client = Client.of([etcd.url])
        try:
            put = RequestOp(request_put=PutRequest(key, b"anything"))
            return (await client.txn(TxnRequest(success=(put,)))).header.revision
        finally:
            await client.close()

    before = asyncio.run(put(b"/registry/config/main"))
    complaint = "etcd at URL has keys below /registry, but no object of an API server: choose another --etcd-prefix"
    assert complaint_of(etcd.url, read_only=read_only) == complaint
    assert asyncio.run(put(b"/registry/config/main")) == before + 1


async def fill(url: str) -> None:
    """Writes to other keys until etcd's quota is used up."""
    client = Client.of([url])
    try:
        while True:
            put = PutRequest(b"/elsewhere", base64.b64encode(bytes(50_000)))
            await client.txn(TxnRequest(success=(RequestOp(request_put=put),)))
    except NoSpace:
        pass
    finally:
        await client.close()


def test_an_etcd_without_space(new_etcd: NewEtcd) -> None:
    async def scenario(url: str) -> None:
        async with server(url) as client:
            await ask(client, "POST", CONFIG_MAPS, config_map("a"))
            await fill(url)
            for method, path, body in (
                ("POST", CONFIG_MAPS, config_map("b")),
                ("PUT", f"{CONFIG_MAPS}/a", config_map("a", x="2")),
            ):
                response = await client.request(method, path, json=body)
                assert (response.status_code, response.json()) == (500, NO_SPACE)
            await ask(client, "DELETE", f"{CONFIG_MAPS}/a")

    with new_etcd(f"--quota-backend-bytes={QUOTA}") as etcd:
        asyncio.run(scenario(etcd.url))
        assert complaint_of(etcd.url) == (
            "etcd at URL: mvcc: database space exceeded; compact and defragment it and disarm its alarm, or only read it, by --read-only"
        )


NO_SPACE: Final = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Failure",
    "message": "etcdserver: mvcc: database space exceeded",
    "code": 500,
}
