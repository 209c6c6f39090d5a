"""Servers of ours on an etcd, and their clients."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx

from conformance.robustness.proxy import Proxy
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.cluster.processes.etcd_process import EtcdProcess
from fakeapiserver.server.local import LocalServer
from fakeapiserver.server.options.config import Config, EtcdOptions

TEAM: Final = "/api/v1/namespaces/team"
# Seconds by which the second server learns later of the first one's writes.
_DELAY: Final = 0.3


@asynccontextmanager
async def server(
    url: str, controllers: tuple[str, ...] = (), config: Mapping[str, Any] = {}, **options: Any
) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a server of ours on this etcd, as its administrator. `config`: further fields of Config, `options` those of etcd."""
    etcd = EtcdOptions(servers=(url,), **options)
    local = LocalServer(Config(etcd=etcd, controllers=controllers, **config), listens=False)
    await local.start()
    try:
        assert local.api is not None
        headers = {"Authorization": f"Bearer {local.admin_token}"}
        transport = httpx.ASGITransport(local.api.application)
        async with httpx.AsyncClient(transport=transport, base_url="http://ours", headers=headers) as client:
            yield client
    finally:
        await local.stop()


@asynccontextmanager
async def near_and_far(
    etcd: EtcdProcess, prefix: str, **options: Any
) -> AsyncIterator[tuple[httpx.AsyncClient, httpx.AsyncClient]]:
    """Clients of two servers, the second of which is far from etcd. `options`: fields of their Config."""
    network = Proxy(int(etcd.url.rpartition(":")[2]))
    config: dict[str, Any] = {"enable_admission_plugins": ("ServiceAccount",), **options}
    try:
        async with (
            server(etcd.url, prefix=prefix, config=config) as near,
            server(network.url, prefix=prefix, config=config) as far,
        ):
            await ask(near, "POST", "/api/v1/namespaces", {"metadata": {"name": "team"}})
            await ask(near, "POST", f"{TEAM}/serviceaccounts", {"metadata": {"name": "default"}})
            await ask(far, "GET", TEAM)
            network.delay = _DELAY
            yield near, far
    finally:
        network.close()


async def ask(client: httpx.AsyncClient, method: str, path: str, body: Object | None = None) -> Any:
    response = await client.request(method, path, json=body)
    assert response.status_code < 400, response.text
    return response.json()


async def eventually(attempt: Callable[[], Awaitable[Any]]) -> Any:
    """The first result that doesn't fail: other servers have their own time."""
    async with asyncio.timeout(30):
        while True:
            try:
                return await attempt()
            except AssertionError:
                await asyncio.sleep(0.05)
