"""A scale-down is never finished, since the operator writes where it is after the step that it is about.

To scale down, the operator writes into the status that an operation is ongoing, scales the StatefulSet down, and then writes that the
operation is to be finalized, which deletes the claim. Killed before it has written that, it looks for the pod that it has to remove, finds
none, and fails for ever.

Published as Orange-OpenSource/casskop#370.
"""

from fakeapiserver.controller_runtime import Manager, Request
from tests.examples.operators_with_bugs import databases as db

SPEC = {"size": db.INTEGER}
STEPS = [db.create(size=2), db.change(size=1)]
FINDINGS = {
    "crash after patch statefulsets.apps default/db": (
        "the PersistentVolumeClaim default/data-db-1 exists, but should not (and 2 more)"
    ),
}


class Operator(db.Operator):
    """Repaired, it writes that the operation is to be finalized before it scales down, and counts the claims themselves."""

    async def reconcile(self, request: Request) -> None:
        database = await self._read(request)
        if database is None:
            return
        size, status = database["spec"]["size"], database.get("status") or {}
        if status.get("operation") == "Ongoing":
            await self._scale_down(database, status["size"] - 1)
        elif status.get("operation") == "Finalizing":
            await self._finalize(database, status["size"] - 1)
        elif size < (former := await self._former_size(database)):
            await self._report(database, "Ongoing", former)
        else:
            for number in range(size):
                await db.ensure(self._client, db.claim(database, f"data-{request.name}-{number}"))
            await db.ensure(self._client, db.stateful_set(database, size))
            await self._report(database, "Done", size)

    async def _former_size(self, database: db.Object) -> int:
        if self._bug:
            status: db.Object = database.get("status") or {}
            return int(status.get("size", 0))
        return len(await self._server.list(db.CLAIM, namespace=database["metadata"]["namespace"]))

    async def _scale_down(self, database: db.Object, last: int) -> None:
        if self._bug:
            await self._client.get(db.POD, f"{database['metadata']['name']}-{last}", database["metadata"]["namespace"])
            await self._scale(database, last)
        await self._report(database, "Finalizing", last + 1)

    async def _finalize(self, database: db.Object, last: int) -> None:
        await self._scale(database, last)
        await db.remove(self._client, db.claim(database, f"data-{database['metadata']['name']}-{last}"))
        await self._report(database, "Done", last)

    async def _scale(self, database: db.Object, size: int) -> None:
        name, namespace = database["metadata"]["name"], database["metadata"]["namespace"]
        stateful_set = await self._client.find(db.STATEFUL_SET, name, namespace)
        if stateful_set is not None and stateful_set["spec"]["replicas"] != size:
            await self._client.patch(stateful_set, {"spec": {"replicas": size}})

    async def _report(self, database: db.Object, operation: str, size: int) -> None:
        status = {"operation": operation, "size": size}
        if database.get("status") != status:
            await self._client.patch_status(database, {"status": status})


def setup(manager: Manager, bug: bool) -> None:
    db.control(manager, Operator(manager, bug), db.STATEFUL_SET)
