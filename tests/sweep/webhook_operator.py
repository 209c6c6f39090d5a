"""An operator with webhooks: it sets the size of a Database, refuses one that is too large, and makes a ConfigMap for each.

Its webhook server takes its port from the command line, and its certificate from where controller-runtime looks for one by default, unless
the environment names another folder. The label `ran-as` of its ConfigMaps has the value of RAN_AS.
"""

import asyncio
import os
import sys
from collections.abc import Sequence
from typing import Any

from fakeapiserver.client import kubeconfig
from fakeapiserver.controller_runtime import Client, Manager, ManagerOptions, Request, controller_managed_by, gvk
from fakeapiserver.controller_runtime.controllerutil import set_controller_reference
from fakeapiserver.controller_runtime.webhook.admission import DefaulterHandler, ValidatorHandler, Webhook
from fakeapiserver.controller_runtime.webhook.admission import Request as Review
from fakeapiserver.controller_runtime.webhook.server import WebhookServer

DATABASE = gvk("example.com/v1", "Database")
CONFIG_MAP = gvk("v1", "ConfigMap")
MAX_SIZE = 5


def configuration(sort: str) -> dict[str, Any]:
    """The configuration of the webhook that is `Mutating` or `Validating`."""
    service = {"name": "webhook-service", "namespace": "system", "path": f"/{sort.lower()}"}
    rule = {"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"]}
    hook = {
        "name": f"{sort.lower()}.example.com",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": service},
        "rules": [{**rule, "resources": ["databases"]}],
        "sideEffects": "None",
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{sort}WebhookConfiguration",
        "metadata": {"name": sort.lower()},
        "webhooks": [hook],
    }


CONFIGURATIONS = [configuration(sort) for sort in ("Mutating", "Validating")]


class Hooks:
    """The defaults and the checks."""

    async def default(self, obj: dict[str, Any], request: Review) -> None:
        obj.setdefault("spec", {}).setdefault("size", 2)

    async def validate_create(self, obj: dict[str, Any]) -> Sequence[str] | None:
        if obj["spec"]["size"] > MAX_SIZE:
            raise ValueError(f"spec.size must be {MAX_SIZE} or less")
        return None

    async def validate_update(self, old: dict[str, Any], new: dict[str, Any]) -> Sequence[str] | None:
        return await self.validate_create(new)

    async def validate_delete(self, obj: dict[str, Any]) -> Sequence[str] | None:
        return None


class Reconciler:
    """Writes the size of a Database into a ConfigMap."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def reconcile(self, request: Request) -> None:
        database = await self._client.find(DATABASE, request.name, request.namespace)
        if database is None:
            return
        labels = {"ran-as": os.environ.get("RAN_AS", "")}
        metadata = {"name": f"{request.name}-config", "namespace": request.namespace, "labels": labels}
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        config["data"] = {"size": str(database["spec"]["size"])}
        set_controller_reference(database, config)
        await self._client.apply(config, force=True)
        await self._client.patch(database, {"metadata": {"annotations": {"example.com/seen": "true"}}})


def setup(manager: Manager) -> None:
    hooks = Hooks()
    manager.webhook_server.register("/mutating", Webhook(DefaulterHandler(hooks)))
    manager.webhook_server.register("/validating", Webhook(ValidatorHandler(hooks)))
    controller_managed_by(manager).for_(DATABASE).owns(CONFIG_MAP).complete(Reconciler(manager.client))


async def main() -> None:
    config = kubeconfig.load(os.environ["KUBECONFIG"])
    folder = os.environ.get("CERTIFICATES")
    port = int(sys.argv[1])
    server = WebhookServer(port=port, cert_dir=folder) if folder else WebhookServer(port=port)
    manager = Manager(
        config, ManagerOptions(metrics_bind_address="0", webhook_server=server, field_owner="webhook-operator")
    )
    setup(manager)
    await manager.run_until_signal()


if __name__ == "__main__":
    asyncio.run(main())
