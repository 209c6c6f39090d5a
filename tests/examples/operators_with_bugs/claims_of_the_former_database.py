"""The claims of a new object are deleted, since the operator reads the deletionTimestamp of the former object with its name.

The finalizer's cleanup finds the claims by a label with the object's name. After a restart an API server that lags
behind shows the operator the former object, which is being deleted.

Published as datastax/cass-operator#412, instaclustr/cassandra-operator#402, Orange-OpenSource/casskop#316, pravega/zookeeper-operator#312,
K8SPSMDB-430, K8SPXC-716, and with a StatefulSet in place of claims as rabbitmq/cluster-operator#648.
"""

from fakeapiserver.controller_runtime import Manager, Request
from tests.examples.operators_with_bugs import databases as db

SPEC = {"size": db.INTEGER}
STEPS = [db.create(size=1), db.DELETE, db.create(size=1)]
FINDINGS = {
    "restart after step 3 with the state before delete persistentvolumeclaims default/data-db-0": (
        "the PersistentVolumeClaim default/data-db-0 is deleted, although the undisturbed run keeps it"
    ),
}


class Operator(db.Operator):
    """Repaired, it asks the API server itself for the object, and deletes only claims that are labelled with the object's uid."""

    async def reconcile(self, request: Request) -> None:
        database = await self._read(request)
        if database is None:
            return
        label = database["metadata"]["name"] if self._bug else database["metadata"]["uid"]
        if db.is_deleted(database):
            selector = f"database={label}"
            claims = await self._server.list(db.CLAIM, namespace=request.namespace, label_selector=selector)
            for claim in claims:
                await db.remove(self._client, claim)
            await db.remove_finalizer(self._client, database)
            return
        database = await db.add_finalizer(self._client, database)
        for number in range(database["spec"]["size"]):
            claim = db.claim(database, f"data-{request.name}-{number}")
            claim["metadata"]["labels"] = {"database": label}
            await db.ensure(self._client, claim)


def setup(manager: Manager, bug: bool) -> None:
    db.control(manager, Operator(manager, bug))
