"""Claims are never deleted, since the cleanup is done only as long as its first part is to be done.

The finalizer deletes the StatefulSet and then the claims, if there is a StatefulSet. Killed in between, it finds none, and lets the object
go.

Found by Sieve in percona/percona-xtradb-cluster-operator (a crash after the deletion of the StatefulSet).
"""

from fakeapiserver.controller_runtime import Manager, Request
from tests.examples.operators_with_bugs import databases as db

SPEC = {"size": db.INTEGER}
STEPS = [db.create(size=1), db.DELETE]
FINDINGS = {
    "crash after delete statefulsets.apps default/db": "the PersistentVolumeClaim default/data-db-0 exists, but should not (and 1 more)",
}


class Operator(db.Operator):
    """Repaired, it deletes the claims in any case."""

    async def reconcile(self, request: Request) -> None:
        database = await self._read(request)
        if database is None:
            return
        claim, stateful_set = db.claim(database, f"data-{request.name}-0"), db.stateful_set(database, 1)
        if not db.is_deleted(database):
            database = await db.add_finalizer(self._client, database)
            await db.ensure(self._client, claim)
            await db.ensure(self._client, stateful_set)
            return
        current = await self._client.find(db.STATEFUL_SET, request.name, request.namespace)
        if current is not None:
            await db.remove(self._client, current)
        if current is not None or not self._bug:
            await db.remove(self._client, claim)
        await db.remove_finalizer(self._client, database)


def setup(manager: Manager, bug: bool) -> None:
    db.control(manager, Operator(manager, bug), db.STATEFUL_SET)
