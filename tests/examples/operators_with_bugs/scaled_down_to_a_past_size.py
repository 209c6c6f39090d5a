"""A pod is deleted without need, since the operator scales a StatefulSet to a size of the past.

A user scales down and up again. After a restart an API server that lags behind shows the operator the size in between, while the
StatefulSet is that of the present.

Published as elastic/cloud-on-k8s#5274, where the data of the member is moved to the others first.
"""

from fakeapiserver.controller_runtime import Manager, Request
from tests.examples.operators_with_bugs import databases as db

SPEC = {"size": db.INTEGER}
STEPS = [db.create(size=2), db.change(size=1), db.change(size=2)]
FINDINGS = {
    "restart after step 3 with the state of databases.example.com after step 2": (
        "the Pod default/db-1 is deleted, although the undisturbed run keeps it"
    ),
}


class Operator(db.Operator):
    """Repaired, it asks the API server itself for the size."""

    async def reconcile(self, request: Request) -> None:
        database = await self._read(request)
        if database is None:
            return
        size = database["spec"]["size"]
        await db.ensure(self._client, db.stateful_set(database, size))
        current = await self._client.find(db.STATEFUL_SET, request.name, request.namespace)
        if current is not None and current["spec"]["replicas"] != size:
            await self._client.patch(current, {"spec": {"replicas": size}})


def setup(manager: Manager, bug: bool) -> None:
    db.control(manager, Operator(manager, bug), db.STATEFUL_SET)
