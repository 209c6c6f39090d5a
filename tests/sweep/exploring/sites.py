"""A small operator that, as BUG says, has a bug that shows with some specs only. It makes a Deployment and a ConfigMap for each mirror.

With BUG=revision it has no bug, and a value that is another one whenever it writes. With BUG=reported its status reports an error."""

import asyncio
import os
from typing import Any

from fakeapiserver.client import kubeconfig
from fakeapiserver.controller_runtime import Client, Manager, ManagerOptions, Request, controller_managed_by, gvk
from fakeapiserver.controller_runtime.controllerutil import set_controller_reference

SITE = gvk("example.com/v1", "Site")
DEPLOYMENT = gvk("apps/v1", "Deployment")
CONFIG_MAP = gvk("v1", "ConfigMap")


class Sites:
    def __init__(self, client: Client, bug: str) -> None:
        self._client = client.with_options(field_owner="sites")
        self._bug = bug
        self._turns = 0

    async def reconcile(self, request: Request) -> None:
        site = await self._client.find(SITE, request.name, request.namespace)
        if site is None:
            return
        spec = site["spec"]
        if self._bug == "ignored" and len(spec["title"]) > 5:
            spec["title"] = "Shop"
        if self._bug == "exit" and "login" in spec:
            print("panic: runtime error: invalid memory address or nil pointer dereference", flush=True)
            os._exit(2)
        if self._bug == "crash":
            assert "login" not in spec or spec["login"]["seconds"] > 0
        await self._apply(site, self._deployment(site))
        for mirror in spec.get("mirrors", []):
            await self._apply(site, self._config(site, mirror))
        if self._bug != "back":
            await self._remove_mirrors(site)
        deployment = await self._client.find(DEPLOYMENT, request.name, request.namespace)
        ready = (deployment or {}).get("status", {}).get("readyReplicas", 0)
        is_ready = ready >= spec["size"] or self._bug == "ready"
        condition = {"type": "Ready", "status": str(is_ready), "reason": "Replicas", "message": ""}
        status: dict[str, Any] = {
            "observedGeneration": site["metadata"]["generation"],
            "conditions": [{**condition, "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        }
        if self._bug == "reported":
            status["phase"] = "Failed"
        if self._bug == "loop" and spec["size"] == 8:
            self._turns += 1
            status["turns"] = self._turns
        if {**site.get("status", {})} != status:
            await self._client.patch_status(site, {"status": status})

    async def _remove_mirrors(self, site: dict[str, Any]) -> None:
        wanted = {f"{site['metadata']['name']}-{each['name']}" for each in site["spec"].get("mirrors", [])}
        for config in await self._client.list(CONFIG_MAP, namespace=site["metadata"]["namespace"]):
            owners = [each["uid"] for each in config["metadata"].get("ownerReferences", [])]
            if site["metadata"]["uid"] in owners and config["metadata"]["name"] not in wanted:
                await self._client.delete(config)

    async def _apply(self, site: dict[str, Any], obj: dict[str, Any]) -> None:
        set_controller_reference(site, obj)
        if self._bug == "fresh" and obj["kind"] == "ConfigMap" and await self._exists(obj["metadata"]):
            return
        await self._client.apply(obj, force=True)

    async def _exists(self, metadata: dict[str, Any]) -> bool:
        return await self._client.find(CONFIG_MAP, metadata["name"], metadata["namespace"]) is not None

    def _deployment(self, site: dict[str, Any]) -> dict[str, Any]:
        spec = site["spec"]
        name = site["metadata"]["name"]
        env = [{"name": key, "value": str(spec.get(key, ""))} for key in ("title", "theme", "login", "storage")]
        # only one of these fits on a node with 32 CPUs
        container = {"name": "web", "image": "web:1", "env": env, "resources": {"requests": {"cpu": "20"}}}
        metadata = {"name": name, "namespace": site["metadata"]["namespace"], "labels": spec.get("labels", {})}
        if self._bug == "revision":
            metadata["annotations"] = {"example.com/owner": site["metadata"]["resourceVersion"]}
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata,
            "spec": {
                "replicas": spec["size"],
                "selector": {"matchLabels": {"site": name}},
                "template": {
                    "metadata": {"labels": {"site": name}},
                    "spec": {"containers": [container]},
                },
            },
        }

    def _config(self, site: dict[str, Any], mirror: dict[str, Any]) -> dict[str, Any]:
        name = f"{site['metadata']['name']}-{mirror['name']}"
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": site["metadata"]["namespace"]},
            "data": {"region": mirror.get("region", "none"), "title": site["spec"]["title"]},
        }


def setup(manager: Manager, bug: str = "") -> None:
    """Adds the controller to a Manager."""
    reconciler = Sites(manager.client, bug)
    controller_managed_by(manager).for_(SITE).owns(DEPLOYMENT).owns(CONFIG_MAP).complete(reconciler)


async def main() -> None:
    config = kubeconfig.load(os.environ["KUBECONFIG"])
    manager = Manager(config.with_(user_agent="sites"), ManagerOptions(metrics_bind_address="0"))
    setup(manager, os.environ.get("BUG", ""))
    await manager.run_until_signal()


if __name__ == "__main__":
    asyncio.run(main())
