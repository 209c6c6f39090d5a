"""A manager of this operator against a fresh API server, for tests."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fakeapiserver import Cluster
from fakeapiserver.client import kubeconfig
from fakeapiserver.controller_runtime import Manager, ManagerOptions
from fakeapiserver.controller_runtime.webhook.server import WebhookServer

from cronjob_operator.setup import setup

WEBHOOKS = Path("config/webhook")
# What a test's cluster is made with.
CLUSTER = {"crds": "config/crd/bases"} | ({"webhooks": str(WEBHOOKS)} if WEBHOOKS.exists() else {})


@asynccontextmanager
async def running(cluster: Cluster) -> AsyncIterator[Manager]:
    """The operator runs as long as the block, with its webhooks if it has some."""
    server = None
    webhooks = WEBHOOKS.exists()
    if webhooks:
        local = cluster.webhooks
        server = WebhookServer(host=local.host, port=local.port, cert_dir=local.cert_dir)
    options = ManagerOptions(field_owner="cronjob-operator", webhook_server=server)
    manager = Manager(kubeconfig.load(cluster.kubeconfig), options)
    setup(manager, webhooks=webhooks)
    task = asyncio.ensure_future(manager.run())
    started = asyncio.ensure_future(manager.elected.wait())
    await asyncio.wait((task, started), return_when=asyncio.FIRST_COMPLETED)
    started.cancel()
    try:
        if task.done():
            task.result()
        yield manager
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
