"""A member stays out of service, since the operator goes on with a scale-down only as long as the size says so.

To scale down, the operator takes the last member out of service and then deletes its pod. If the user scales up again in between, while the
operator is away, the pod is wanted again, and nothing takes it back into service. (In the published operator the member's process knows
that it is out of service; here it is an annotation of the pod.)

Published as instaclustr/cassandra-operator#410.
"""

from fakeapiserver.controller_runtime import Manager, Request
from tests.examples.operators_with_bugs import databases as db

SPEC = {"size": db.INTEGER}
STEPS = [db.create(size=2), db.change(size=1), db.change(size=2)]
FINDINGS = {
    "killed after patch pods default/db-1, and away until step 3": (
        'the Pod default/db-1 has metadata.annotations {"example.com/decommissioned": "true"}, which should be unset'
    ),
}
DECOMMISSIONED = "example.com/decommissioned"


class Operator(db.Operator):
    """Repaired, it replaces members that are out of service and wanted."""

    async def reconcile(self, request: Request) -> None:
        database = await self._read(request)
        if database is None:
            return
        size = database["spec"]["size"]
        for number in range(size):
            await db.ensure(self._client, db.pod(database, f"{request.name}-{number}"))
        for pod in await self._server.list(db.POD, namespace=request.namespace):
            is_wanted = int(pod["metadata"]["name"].rpartition("-")[2]) < size
            if DECOMMISSIONED in pod["metadata"].get("annotations", ()):
                if not is_wanted or not self._bug:
                    await db.remove(self._client, pod)
            elif not is_wanted:
                await self._client.patch(pod, {"metadata": {"annotations": {DECOMMISSIONED: "true"}}})


def setup(manager: Manager, bug: bool) -> None:
    db.control(manager, Operator(manager, bug), db.POD)
