"""A manager of this operator against a fresh API server, for tests."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fakeapiserver import Cluster
from fakeapiserver.client import kubeconfig
from fakeapiserver.controller_runtime import Manager, ManagerOptions
from fakeapiserver.controller_runtime.webhook.server import WebhookServer

from welcome_operator.setup import setup

PROJECT = Path(__file__).parent.parent
WEBHOOKS = PROJECT / "config/webhook"
DEFINITIONS = [PROJECT / "config/crd/bases", PROJECT / "tests/crds"]
# What a test's cluster is made with: `@pytest.mark.fake_cluster(**CLUSTER)`.
CLUSTER: dict[str, object] = {"crds": [path for path in DEFINITIONS if path.exists()]}
if WEBHOOKS.exists():
    CLUSTER["webhooks"] = WEBHOOKS


@asynccontextmanager
async def running(cluster: Cluster) -> AsyncIterator[Manager]:
    """The operator runs as long as the block, with its webhooks if it has some."""
    server = None
    webhooks = WEBHOOKS.exists()
    if webhooks:
        local = cluster.webhooks
        server = WebhookServer(host=local.host, port=local.port, cert_dir=local.cert_dir)
    options = ManagerOptions(field_owner="welcome-operator", webhook_server=server)
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
