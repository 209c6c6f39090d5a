"""A pod goes on with its former configuration, since what says that it has to be restarted is written after the configuration.

If the ConfigMap differs from the spec, the operator updates it and then writes into the status that the pod is out of date; that makes it
delete the pod, which comes back with the new configuration. Killed in between, it finds a ConfigMap that is right.

Published as konpyutaika/nifikop#49 (Orange-OpenSource/nifikop#130).
"""

from fakeapiserver.controller_runtime import Client, Manager, Request
from fakeapiserver.controller_runtime.client import Reader
from tests.examples.operators_with_bugs import databases as db

SPEC = {"title": db.TEXT}
STEPS = [db.create(title="old"), db.change(title="new")]
FINDINGS = {
    "crash after update configmaps default/db": (
        'the Database default/db lacks status, which should be {"pod": "UpToDate"}'
    ),
}


class Operator:
    """Repaired, it writes into the status first that the pod is out of date."""

    def __init__(self, client: Client, server: Reader, bug: bool) -> None:
        self._client = client
        self._server = server
        self._bug = bug

    async def reconcile(self, request: Request) -> None:
        database = await db.read(self._client, self._server, request, self._bug)
        if database is None:
            return
        data = {"title": database["spec"]["title"]}
        await db.ensure(self._client, db.child(database, db.CONFIG_MAP, request.name, {"data": data}))
        await db.ensure(self._client, db.stateful_set(database, 1))
        config = await self._client.find(db.CONFIG_MAP, request.name, request.namespace)
        if config is not None and config["data"] != data:
            if not self._bug:
                database = await self._report(database, "OutOfDate")
            await self._client.update({**config, "data": data})
            database = await self._report(database, "OutOfDate")
        if (database.get("status") or {}).get("pod") == "OutOfDate":
            await self._restart(request)
            await self._report(database, "UpToDate")

    async def _restart(self, request: Request) -> None:
        pod = await self._client.find(db.POD, f"{request.name}-0", request.namespace)
        if pod is not None:
            await db.remove(self._client, pod)

    async def _report(self, database: db.Object, pod: str) -> db.Object:
        if (database.get("status") or {}).get("pod") == pod:
            return database
        patched: db.Object = await self._client.patch_status(database, {"status": {"pod": pod}})
        return patched


def setup(manager: Manager, bug: bool) -> None:
    db.control(manager, Operator(manager.client, manager.api_reader, bug), db.STATEFUL_SET, db.CONFIG_MAP)
