"""A claim is never deleted, or that of a running pod is, since the operator deletes the claims of the pods that it sees ending.

If it never sees a pod's deletionTimestamp, and only that the pod is gone, the claim stays. After a restart an API server that lags behind
shows the operator a pod that is being deleted, and the claim of the next pod with that name is deleted.

Published as instaclustr/cassandra-operator#398 (a claim stays) and #407 (the claim of the next pod).
"""

from fakeapiserver.controller_runtime import Manager, Request
from tests.examples.operators_with_bugs import databases as db

SPEC = {"size": db.INTEGER}
STEPS = [db.create(size=2), db.change(size=1), db.change(size=2)]
NODES = 1
FINDINGS = {
    "restart after step 3 with the state before delete persistentvolumeclaims default/data-db-1": (
        "the PersistentVolumeClaim default/data-db-1 is deleted, although the undisturbed run keeps it"
    ),
    "states 1 to 3 of pods default/db-1 unseen in step 2": (
        "after step 2, the PersistentVolumeClaim default/data-db-1 exists, but should not"
    ),
}


class Operator(db.Operator):
    """Repaired, it deletes the claims beyond the size, whatever it sees of pods."""

    async def reconcile(self, request: Request) -> None:
        database = await db.live(self._server, request)
        if database is None:
            return
        size = database["spec"]["size"]
        for number in range(size):
            await db.ensure(self._client, db.claim(database, f"data-{request.name}-{number}"))
            await db.ensure(self._client, db.pod(database, f"{request.name}-{number}"))
        for pod in await self._client.list(db.POD, namespace=request.namespace):
            if int(pod["metadata"]["name"].rpartition("-")[2]) >= size and not db.is_deleted(pod):
                await db.remove(self._client, pod)
            if self._bug and db.is_deleted(pod):
                await db.remove(self._client, db.claim(database, f"data-{pod['metadata']['name']}"))
        if not self._bug:
            await self._remove_claims(request, size)

    async def _remove_claims(self, request: Request, size: int) -> None:
        for claim in await self._server.list(db.CLAIM, namespace=request.namespace):
            if int(claim["metadata"]["name"].rpartition("-")[2]) >= size:
                await db.remove(self._client, claim)


def setup(manager: Manager, bug: bool) -> None:
    db.control(manager, Operator(manager, bug), db.POD)
