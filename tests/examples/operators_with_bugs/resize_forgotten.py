"""A claim never grows, since what says that it has to grow is changed before it.

To grow the claim, the operator compares the storage in the spec with that in the StatefulSet, which can't be changed: it deletes the
StatefulSet, resizes the claim, and creates the StatefulSet again. Killed after the deletion, it creates a StatefulSet with the new storage,
and nothing differs any more.

Published as rabbitmq/cluster-operator#782.
"""

from fakeapiserver.controller_runtime import Manager, Request
from tests.examples.operators_with_bugs import databases as db

SPEC = {"storage": db.TEXT}
STEPS = [db.create(storage="1Gi"), db.change(storage="2Gi")]
FINDINGS = {
    "crash after delete statefulsets.apps default/db": (
        'the PersistentVolumeClaim default/data-db-0 has spec.resources.requests.storage "1Gi" instead of "2Gi"'
    ),
}
STORAGE = "example.com/storage"


class Operator(db.Operator):
    """Repaired, it compares the spec with the claim itself."""

    async def reconcile(self, request: Request) -> None:
        database = await self._read(request)
        if database is None:
            return
        storage = database["spec"]["storage"]
        current = await self._client.find(db.STATEFUL_SET, request.name, request.namespace)
        is_old = current is not None and current["metadata"]["annotations"][STORAGE] != storage
        if is_old:
            await self._client.delete(current, propagation_policy="Orphan")
        if is_old or not self._bug:
            await self._resize(request, storage)
        stateful_set = db.stateful_set(database, 1)
        stateful_set["metadata"]["annotations"] = {STORAGE: storage}
        await db.ensure(self._client, db.claim(database, f"data-{request.name}-0", storage))
        await db.ensure(self._client, stateful_set)

    async def _resize(self, request: Request, storage: str) -> None:
        claim = await self._client.find(db.CLAIM, f"data-{request.name}-0", request.namespace)
        if claim is not None and claim["spec"]["resources"]["requests"]["storage"] != storage:
            await self._client.patch(claim, {"spec": {"resources": {"requests": {"storage": storage}}}})


def setup(manager: Manager, bug: bool) -> None:
    db.control(manager, Operator(manager, bug), db.STATEFUL_SET)
