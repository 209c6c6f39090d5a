"""A Secret is deleted, since the operator makes the former object with the database's name its owner.

The operator applies a Secret with the uid of the Database as its owner. A user deletes the Database and creates it again; after a restart
an API server that lags behind shows the operator the former one. The garbage collector deletes what the former one owns, and the next
Secret has another password.

Published as pravega/zookeeper-operator#410 (a ConfigMap) and K8SPSMDB-590 (Secrets).
"""

from fakeapiserver.controller_runtime import Manager, Request
from tests.examples.operators_with_bugs import databases as db

SPEC = {"size": db.INTEGER}
STEPS = [db.create(size=1), db.DELETE, db.create(size=1)]
FINDINGS = {
    "restart after step 3 with the state of databases.example.com after step 1": (
        "the Secret default/db is deleted, although the undisturbed run keeps it (and 2 more)"
    ),
}


class Operator(db.Operator):
    """Repaired, it asks the API server itself for the owner."""

    async def reconcile(self, request: Request) -> None:
        database = await self._read(request)
        if database is not None:
            secret = db.child(database, db.SECRET, request.name, {"stringData": {"password": "secret"}})
            await self._client.apply(secret, force=True)


def setup(manager: Manager, bug: bool) -> None:
    db.control(manager, Operator(manager, bug, field_owner="databases"), db.SECRET)
