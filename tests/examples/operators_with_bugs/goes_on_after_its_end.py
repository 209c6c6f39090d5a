"""A claim is left behind, since the operator goes on with its work after it has let the object go.

The finalizer deletes the claim and lets the object go, but doesn't end the reconciliation. What follows makes no difference as long as the
garbage collector hasn't deleted the StatefulSet yet. If the operator is slower than that, it makes the StatefulSet and its claim again. The
garbage collector deletes the StatefulSet, whose owner is gone, and nothing deletes the claim.

Published as pravega/zookeeper-operator#410.
"""

from fakeapiserver.controller_runtime import Manager, Request
from tests.examples.operators_with_bugs import databases as db

SPEC = {"size": db.INTEGER}
STEPS = [db.create(size=1), db.DELETE]
FINDINGS = {
    "slow after changes of databases.example.com default/db that is being deleted": (
        "the PersistentVolumeClaim default/data-db-0 exists, but should not"
    ),
}


class Operator(db.Operator):
    """Repaired, it ends the reconciliation when it has let the object go."""

    async def reconcile(self, request: Request) -> None:
        database = await self._read(request)
        if database is None:
            return
        claim, stateful_set = db.claim(database, f"data-{request.name}-0"), db.stateful_set(database, 1)
        if not db.is_deleted(database):
            database = await db.add_finalizer(self._client, database)
        else:
            await db.remove(self._client, claim)
            await db.remove_finalizer(self._client, database)
            if not self._bug:
                return
        if await self._client.find(db.STATEFUL_SET, request.name, request.namespace) is None:
            await db.ensure(self._client, claim)
            await db.ensure(self._client, stateful_set)


def setup(manager: Manager, bug: bool) -> None:
    db.control(manager, Operator(manager, bug), db.STATEFUL_SET)
