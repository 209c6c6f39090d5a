"""A claim in use is deleted, since the operator compares claims with a size of the past.

The operator deletes the claims of replicas beyond `spec.size`. A user scales down and up again; after a restart an API server that lags
behind shows the operator the size in between.

Published as pravega/zookeeper-operator#314; in elastic/cloud-on-k8s#5274 it is a StatefulSet that is scaled down.
"""

from fakeapiserver.controller_runtime import Manager, Request
from tests.examples.operators_with_bugs import databases as db

SPEC = {"size": db.INTEGER}
STEPS = [db.create(size=2), db.change(size=1), db.change(size=2)]
FINDINGS = {
    "restart after step 3 with the state after step 2": (
        "the PersistentVolumeClaim default/data-db-1 is deleted, although the undisturbed run keeps it"
    ),
}


class Operator(db.Operator):
    """Repaired, it asks the API server itself for the size before it deletes claims."""

    async def reconcile(self, request: Request) -> None:
        database = await self._client.find(db.DATABASE, request.name, request.namespace)
        if database is None:
            return
        for number in range(database["spec"]["size"]):
            claim = db.claim(database, f"data-{request.name}-{number}")
            claim["metadata"]["labels"] = {"database": request.name}
            await db.ensure(self._client, claim)
        if not self._bug:
            database = await db.live(self._server, request)
        if database is not None:
            await self._delete_beyond(database["spec"]["size"], request)

    async def _delete_beyond(self, size: int, request: Request) -> None:
        selector = f"database={request.name}"
        for claim in await self._server.list(db.CLAIM, namespace=request.namespace, label_selector=selector):
            if int(claim["metadata"]["name"].rpartition("-")[2]) >= size:
                await db.remove(self._client, claim)


def setup(manager: Manager, bug: bool) -> None:
    db.control(manager, Operator(manager, bug))
