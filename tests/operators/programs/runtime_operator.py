"""The operator written with the bundled controller runtime."""

import asyncio
import os

from fakeapiserver.client import kubeconfig
from fakeapiserver.client.errors import StatusError, is_already_exists, is_conflict
from fakeapiserver.controller_runtime import Client, Manager, ManagerOptions, Request, controller_managed_by, gvk
from fakeapiserver.controller_runtime.client import Reader
from fakeapiserver.controller_runtime.controllerutil import set_controller_reference

BUG = os.environ.get("BUG", "")
FINALIZER = "example.com/index"
WEBSITE = gvk("example.com/v1", "Website")
CONFIG_MAP = gvk("v1", "ConfigMap")


class WebsiteReconciler:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def reconcile(self, request: Request) -> None:
        site = await self._client.find(WEBSITE, request.name, request.namespace)
        if site is None:
            return
        if site["metadata"].get("deletionTimestamp"):
            if BUG != "finalizer":
                await self._change_index(request, None)
            await self._client.patch(site, {"metadata": {"finalizers": None}})
            return
        title = site["spec"]["title"]
        await self._client.patch(site, {"metadata": {"finalizers": [FINALIZER]}})
        await self._write_page(site, title)
        await self._change_index(request, title)
        await self._client.patch_status(site, {"status": {"title": title}})

    async def _write_page(self, site: dict, title: str) -> None:
        name, namespace = site["metadata"]["name"], site["metadata"]["namespace"]
        named = {"generateName": f"{name}-page-"} if BUG == "timeout" else {"name": f"{name}-page"}
        page = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {**named, "namespace": namespace, "labels": {"site": name}},
            "data": {"title": title},
        }
        if BUG != "create":
            set_controller_reference(site, page)
        try:
            await self._client.create(page)
        except StatusError as error:
            if not is_already_exists(error):
                raise
            if BUG != "update":
                await self._client.patch(page, {"data": {"title": title}})

    async def _change_index(self, request: Request, title: str | None) -> None:
        index = await self._client.get(CONFIG_MAP, "index", request.namespace)
        data = {name: other for name, other in index.get("data", {}).items() if name != request.name}
        if title is not None:
            data[request.name] = title
        try:
            await self._client.update({**index, "data": data})
        except StatusError as error:
            if BUG != "conflict" or not is_conflict(error):
                raise


class Probe:
    """Ends the operator as soon as the server can't be reached."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def run(self) -> None:
        while True:
            await self._reader.list(CONFIG_MAP, namespace="default")
            await asyncio.sleep(0.05)


async def main() -> None:
    manager = Manager(kubeconfig.load(), ManagerOptions(metrics_bind_address="0"))
    builder = controller_managed_by(manager).for_(WEBSITE).named("website")
    builder.complete(WebsiteReconciler(manager.client))
    if BUG == "outage":
        manager.add(Probe(manager.api_reader))
    await manager.run_until_signal()


asyncio.run(main())
