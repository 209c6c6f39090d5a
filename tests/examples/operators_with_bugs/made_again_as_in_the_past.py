"""An object is deleted and made again as it was in the past, since the operator reads a former value.

The operator doesn't change the PodDisruptionBudget: if it differs from the spec, the operator deletes it and creates another one. After a
restart an API server that lags behind shows the operator the former spec, and meanwhile the pods are protected as they were before.

Published as Orange-OpenSource/casskop#321; in rabbitmq/cluster-operator#653 it is a StatefulSet, which differs in the size of its claims.
"""

from fakeapiserver.controller_runtime import Manager, Request
from tests.examples.operators_with_bugs import databases as db

SPEC = {"maxUnavailable": db.INTEGER}
STEPS = [db.create(maxUnavailable=1), db.change(maxUnavailable=2)]
FINDINGS = {
    "restart after step 2 with the state of databases.example.com after step 1": (
        "the PodDisruptionBudget default/db is deleted, although the undisturbed run keeps it"
    ),
}


class Operator(db.Operator):
    """Repaired, it asks the API server itself for the spec."""

    async def reconcile(self, request: Request) -> None:
        database = await self._read(request)
        if database is None:
            return
        most = database["spec"]["maxUnavailable"]
        spec = {"maxUnavailable": most, "selector": {"matchLabels": {"database": request.name}}}
        await db.ensure(self._client, db.child(database, db.DISRUPTION_BUDGET, request.name, {"spec": spec}))
        current = await self._server.get(db.DISRUPTION_BUDGET, request.name, request.namespace)
        if current["spec"]["maxUnavailable"] != most:
            await db.remove(self._client, current)


def setup(manager: Manager, bug: bool) -> None:
    db.control(manager, Operator(manager, bug), db.DISRUPTION_BUDGET)
