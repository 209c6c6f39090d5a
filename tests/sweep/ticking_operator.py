"""An operator that writes its object twice, each time otherwise, whenever a second has passed: it never comes to rest for longer."""

import asyncio
import os

from fakeapiserver.client import kubeconfig
from fakeapiserver.controller_runtime import (
    Client,
    Manager,
    ManagerOptions,
    Request,
    Result,
    controller_managed_by,
    gvk,
)

CONFIG_MAP = gvk("v1", "ConfigMap")


class Deployer:
    """Deploys a copy of the ConfigMap `site`, and then upgrades the copy, as if nothing had been there before."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def reconcile(self, request: Request) -> Result | None:
        if request.name != "site":
            return None
        for phase in ("deployed", "upgraded"):
            metadata = {"name": "copy", "namespace": request.namespace}
            copy = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"phase": phase}}
            await self._client.apply(copy, force=True)
        return Result(requeue_after=1.0)


async def main() -> None:
    config = kubeconfig.load(os.environ["KUBECONFIG"])
    manager = Manager(config.with_(user_agent="ticking-operator"), ManagerOptions(metrics_bind_address="0"))
    controller_managed_by(manager).for_(CONFIG_MAP).complete(
        Deployer(manager.client.with_options(field_owner="ticking"))
    )
    await manager.run_until_signal()


if __name__ == "__main__":
    asyncio.run(main())
