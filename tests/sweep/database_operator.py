"""A small operator that, as BUG says, has one of the bugs that published studies of operators have found most often.

For each Database it makes a Secret, a PersistentVolumeClaim per replica and a ConfigMap, and reports them in status.
"""

import asyncio
import os
from typing import Any

from fakeapiserver.client import kubeconfig
from fakeapiserver.client.errors import StatusError, is_already_exists, is_conflict, is_not_found
from fakeapiserver.controller_runtime import Client, Manager, ManagerOptions, Request, controller_managed_by, gvk
from fakeapiserver.controller_runtime.client import Reader
from fakeapiserver.controller_runtime.controllerutil import set_controller_reference

BUG = os.environ.get("BUG", "")
DATABASE = gvk("example.com/v1", "Database")
SECRET = gvk("v1", "Secret")
CLAIM = gvk("v1", "PersistentVolumeClaim")
CONFIG_MAP = gvk("v1", "ConfigMap")
FINALIZER = "example.com/claims"


class DatabaseReconciler:
    """Holds the last size in memory only if BUG is `unobserved`."""

    def __init__(self, client: Client, server: Reader) -> None:
        self._client = client
        self._server = server
        self._sizes: dict[str, int] = {}

    async def reconcile(self, request: Request) -> None:
        database = await self._client.find(DATABASE, request.name, request.namespace)
        if database is None:
            await self._delete_claims(request, 0)  # that were made by one that didn't know yet
            return
        if database["metadata"].get("deletionTimestamp"):
            await self._delete_claims(request, 0)
            if BUG != "finalizer":
                await self._client.patch(database, {"metadata": {"finalizers": None}})
            return
        if FINALIZER not in database["metadata"].get("finalizers", []):
            database = await self._client.patch(database, {"metadata": {"finalizers": [FINALIZER]}})
        await self._make_secret(database)
        size = database["spec"].get("size", 1)
        await self._make_claims(database, size)
        await self._shrink(request, database, size)
        if await self._write_config(database, size):
            await self._report(database, size)

    async def _make_secret(self, database: dict[str, Any]) -> None:
        name, namespace = database["metadata"]["name"], database["metadata"]["namespace"]
        secret = self._named(database, "Secret", f"{name}-login") | {"stringData": {"password": os.urandom(8).hex()}}
        if BUG == "duplicate":
            secrets = await self._client.list(SECRET, namespace=namespace)
            if any(each["metadata"].get("generateName") == f"{name}-login-" for each in secrets):
                return
            secret["metadata"] = {"generateName": f"{name}-login-", "namespace": namespace}
            try:
                await self._client.create(secret)
            except StatusError:
                await self._client.create(secret)
            return
        if await self._client.find(SECRET, f"{name}-login", namespace) is None:
            await self._create(secret)
            if BUG == "intermediate":  # what belongs to the first time is only done when the secret is new
                await self._create(self._marker(database))
        if BUG != "intermediate":
            await self._create(self._marker(database))

    def _marker(self, database: dict[str, Any]) -> dict[str, Any]:
        name = database["metadata"]["name"]
        return self._named(database, "ConfigMap", f"{name}-initialised") | {"data": {"by": "operator"}}

    async def _make_claims(self, database: dict[str, Any], size: int) -> None:
        name = database["metadata"]["name"]
        for number in range(size):
            claim = self._named(database, "PersistentVolumeClaim", f"data-{name}-{number}")
            claim["metadata"].pop("ownerReferences")
            claim["metadata"]["annotations"] = {"example.com/owner": database["metadata"]["uid"]}
            claim["spec"] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
            await self._create(claim)

    async def _shrink(self, request: Request, database: dict[str, Any], size: int) -> None:
        if BUG == "unobserved":
            if self._sizes.get(request.name, 0) > size:
                await self._delete_claims(request, size)
            self._sizes[request.name] = size
            return
        if BUG == "stale" or await self._is_current(request, database):
            await self._delete_claims(request, size)

    async def _delete_claims(self, request: Request, size: int) -> None:
        """Deletes the claims beyond `size`, unless another database has got its name since."""
        claims = await self._client.list(CLAIM, namespace=request.namespace)
        prefix = f"data-{request.name}-"
        for claim in claims:
            name = claim["metadata"]["name"]
            if name.startswith(prefix) and int(name.removeprefix(prefix)) >= size:
                if BUG != "stale" and size == 0 and not await self._is_deleted(request):
                    return
                named = {"name": name, "namespace": request.namespace}  # which another claim may have by now
                try:
                    await self._client.delete({**claim, "metadata": named} if BUG == "stale" else claim)
                except StatusError as error:
                    if not is_not_found(error):
                        raise

    async def _is_current(self, request: Request, database: dict[str, Any]) -> bool:
        """Asks the API server itself whether the database wants the same as in the cache."""
        try:
            live = await self._server.get(DATABASE, request.name, request.namespace)
        except StatusError as error:
            if is_not_found(error):
                return False
            raise
        return bool(live["metadata"]["uid"] == database["metadata"]["uid"] and live["spec"] == database["spec"])

    async def _is_deleted(self, request: Request) -> bool:
        """Asks the API server itself, since the cache may be of the past."""
        try:
            live = await self._server.get(DATABASE, request.name, request.namespace)
        except StatusError as error:
            if is_not_found(error):
                return True
            raise
        return "deletionTimestamp" in live["metadata"]

    async def _write_config(self, database: dict[str, Any], size: int) -> bool:
        """Reports whether the ConfigMap is right."""
        name, namespace = database["metadata"]["name"], database["metadata"]["namespace"]
        config = await self._client.find(CONFIG_MAP, f"{name}-config", namespace)
        if config is None:
            await self._create(self._named(database, "ConfigMap", f"{name}-config") | {"data": {"size": str(size)}})
        elif config.get("data") != {"size": str(size)}:
            try:
                await self._client.update({**config, "data": {"size": str(size)}})
            except StatusError as error:
                if BUG != "conflict" or not is_conflict(error):
                    raise
                return False
        return True

    async def _report(self, database: dict[str, Any], size: int) -> None:
        if BUG == "panic":
            config = await self._client.get(
                CONFIG_MAP, f"{database['metadata']['name']}-config", database["metadata"]["namespace"]
            )
            assert config["data"]["size"] == str(size)
        if database.get("status") != {"size": size}:
            await self._client.patch_status(database, {"status": {"size": size}})

    def _named(self, database: dict[str, Any], kind: str, name: str) -> dict[str, Any]:
        obj: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": kind,
            "metadata": {"name": name, "namespace": database["metadata"]["namespace"]},
        }
        set_controller_reference(database, obj)
        return obj

    async def _create(self, obj: dict[str, Any]) -> None:
        try:
            await self._client.create(obj)
        except StatusError as error:
            if not is_already_exists(error):
                raise


async def main() -> None:
    config = kubeconfig.load(os.environ["KUBECONFIG"])
    manager = Manager(config.with_(user_agent="database-operator"), ManagerOptions(metrics_bind_address="0"))
    builder = controller_managed_by(manager).for_(DATABASE).owns(SECRET)
    if BUG != "conflict":
        builder.owns(CONFIG_MAP)
    builder.complete(DatabaseReconciler(manager.client, manager.api_reader))
    await manager.run_until_signal()


if __name__ == "__main__":
    asyncio.run(main())
