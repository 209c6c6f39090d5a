"""The size depends on which sizes the operator has seen, since it refuses to scale down.

The operator compares the size in the spec with the replicas of the StatefulSet, and refuses a smaller one. If a user asks for 3 and then
for 2, and the operator never sees the 3, it makes 2 of 1; otherwise it stays at 3.

Published as rabbitmq/cluster-operator#758.
"""

from fakeapiserver.controller_runtime import Manager, Request
from tests.examples.operators_with_bugs import databases as db

SPEC = {"size": db.INTEGER}
STEPS = [db.create(size=1), db.change(size=3), db.change(size=2)]
FINDINGS = {
    "state 1 of databases.example.com default/db unseen in steps 2 to 3": (
        "the Pod default/db-2 is missing (and 4 more)"
    ),
}


class Operator(db.Operator):
    """Repaired, it scales down, too."""

    async def reconcile(self, request: Request) -> None:
        database = await self._read(request)
        if database is None:
            return
        size = database["spec"]["size"]
        await db.ensure(self._client, db.stateful_set(database, size))
        current = await self._server.get(db.STATEFUL_SET, request.name, request.namespace)
        replicas = current["spec"]["replicas"]
        if replicas < size or (replicas > size and not self._bug):
            await self._client.patch(current, {"spec": {"replicas": size}})


def setup(manager: Manager, bug: bool) -> None:
    db.control(manager, Operator(manager, bug))
