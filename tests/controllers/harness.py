"""A cluster with some controllers, at a standstill: a test turns its clock."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, Final, Self

from fakeapiserver import Cluster
from fakeapiserver.apimachinery.gvk import GroupVersionResource
from fakeapiserver.apis.recorded import NEWEST
from fakeapiserver.client import kubeconfig
from fakeapiserver.client.dynamic import DynamicClient, ResourceClient
from fakeapiserver.client.rest import RESTClient
from fakeapiserver.clock import AdjustableClock
from fakeapiserver.server.options.config import Config

Object = dict[str, Any]
EVENTS: Final = GroupVersionResource("", "v1", "events")
NAMESPACE: Final = "default"


class Harness:
    """`async with Harness("job-controller") as cluster`: time stands still."""

    def __init__(
        self, *controllers: str, feature_gates: Mapping[str, bool] | None = None, version: str = NEWEST
    ) -> None:
        config = Config(
            controllers=controllers,
            feature_gates=feature_gates or {},
            records_access=True,
            kubernetes_version=version,
        )
        self._cluster = Cluster.from_config(config)

    async def __aenter__(self) -> Self:
        await self._cluster.__aenter__()
        self.rest = RESTClient(kubeconfig.load(self._cluster.kubeconfig))
        self.client = DynamicClient(self.rest)
        manager = self._cluster._server.controllers
        assert manager is not None
        self.manager = manager
        assert self._cluster._server.api is not None
        self.api = self._cluster._server.api
        assert isinstance(self._cluster._server.clock, AdjustableClock)
        self.clock = self._cluster._server.clock
        await self.settle()
        self.clock.stop()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.rest.close()
        await self._cluster.__aexit__(kind, error, trace)

    async def settle(self) -> None:
        await self.manager.settle()

    async def advance(self, seconds: float, between: Callable[[], Awaitable[object]] | None = None) -> None:
        """Advances the clock; everything that is due meanwhile is done, and `between` is called after each step."""

        async def settled() -> None:
            await self.settle()
            if between is not None:
                await between()
                await self.settle()

        await self.clock.advance(seconds, settled)

    def of(self, resource: GroupVersionResource, namespace: str = NAMESPACE) -> ResourceClient:
        return self.client.resource(resource, namespace)

    async def create(self, resource: GroupVersionResource, obj: Object, namespace: str = NAMESPACE) -> Object:
        """With the status that `obj` has; everybody has seen it."""
        created = await self.of(resource, namespace).create(obj)
        if "status" in obj:
            created = await self.patch_status(resource, obj["metadata"]["name"], obj["status"], namespace)
        await self.settle()
        return created

    async def patch_status(
        self, resource: GroupVersionResource, name: str, status: Object, namespace: str = NAMESPACE
    ) -> Object:
        found = await self.of(resource, namespace).patch(name, {"status": status}, "status")
        await self.settle()
        return found

    async def get(self, resource: GroupVersionResource, name: str, namespace: str = NAMESPACE) -> Object:
        return await self.of(resource, namespace).get(name)

    async def names(self, resource: GroupVersionResource, namespace: str = NAMESPACE) -> list[str]:
        return [found["metadata"]["name"] for found in (await self.of(resource, namespace).list())["items"]]

    async def events(self, namespace: str = NAMESPACE) -> list[tuple[str, str]]:
        """(reason, message) of all, in the order of their first time."""
        found = (await self.client.resource(EVENTS, namespace).list())["items"]
        found.sort(key=lambda event: (event["firstTimestamp"] or "", int(event["metadata"]["resourceVersion"])))
        return [(event["reason"], event["message"]) for event in found]

    async def reasons(self, namespace: str = NAMESPACE) -> list[str]:
        return [reason for reason, _ in await self.events(namespace)]


def run(
    scenario: Callable[[Harness], Awaitable[None]],
    *controllers: str,
    feature_gates: Mapping[str, bool] | None = None,
    version: str = NEWEST,
) -> None:
    """The scenario, with these controllers."""

    async def main() -> None:
        async with Harness(*controllers, feature_gates=feature_gates, version=version) as cluster:
            await scenario(cluster)

    asyncio.run(main())
