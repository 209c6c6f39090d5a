"""A pod goes on with its former configuration, since what says that it has to be restarted is written after the configuration.

If the ConfigMap differs from the spec, the operator updates it and then writes into the status that the pod is out of date; that makes it
delete the pod, and make another one, which reads the new configuration. Killed in between, it finds a ConfigMap that is right.

Published as konpyutaika/nifikop#49 (Orange-OpenSource/nifikop#130).
"""

from fakeapiserver.controller_runtime import Manager, Request
from tests.examples.operators_with_bugs import databases as db

SPEC = {"title": db.TEXT}
STEPS = [db.create(title="old"), db.change(title="new")]
FINDINGS = {
    "crash after update configmaps default/db": "the Pod default/db-0 stays, although the undisturbed run replaces it",
}
TITLE = "example.com/title"


class Operator(db.Operator):
    """Repaired, it keeps at the pod with which configuration it was made."""

    async def reconcile(self, request: Request) -> None:
        database = await self._read(request)
        if database is None:
            return
        title = database["spec"]["title"]
        await db.ensure(self._client, db.child(database, db.CONFIG_MAP, request.name, {"data": {"title": title}}))
        config = await self._server.get(db.CONFIG_MAP, request.name, request.namespace)
        is_old = config["data"]["title"] != title
        if is_old:
            await self._client.update({**config, "data": {"title": title}})
        pod = db.pod(database, f"{request.name}-0")
        if not self._bug:
            pod["metadata"]["annotations"] = {TITLE: title}
        await db.ensure(self._client, pod)
        if self._bug:
            await self._restart(database, pod, "OutOfDate" if is_old else "")
        else:
            current = await self._server.get(db.POD, f"{request.name}-0", request.namespace)
            if current["metadata"]["annotations"][TITLE] != title:
                await db.remove(self._client, current)

    async def _restart(self, database: db.Object, pod: db.Object, status: str) -> None:
        """Restarts the pod if the status says so, in which a new `status` is written first."""
        former = (database.get("status") or {}).get("pod", "")
        if status:
            database = await self._client.patch_status(database, {"status": {"pod": status}})
        if "OutOfDate" in (status, former):
            await db.remove(self._client, pod)
        if former != "UpToDate" or status:
            await self._client.patch_status(database, {"status": {"pod": "UpToDate"}})


def setup(manager: Manager, bug: bool) -> None:
    db.control(manager, Operator(manager, bug), db.POD, db.CONFIG_MAP)
