"""A part of the system stays after it is disabled, since the operator only looks at the parts that are enabled.

Published as mongodb/mongodb-kubernetes-operator#1054 (arbiters), OT-CONTAINER-KIT/redis-operator#279 (what was unset),
k8ssandra/cass-operator#315 (a Service for additional seeds) and yugabyte/yugabyte-operator#33 (a Service).
"""

from fakeapiserver.controller_runtime import Manager, Request
from tests.examples.operators_with_bugs import databases as db

SPEC = {"proxy": db.BOOLEAN}
STEPS = [db.create(proxy=True)]
FINDINGS = {
    "spec.proxy = false": (
        "the Service default/db-proxy exists, but should not, when changed to spec.proxy = false, unlike when created with it"
    ),
}


class Operator(db.Operator):
    """Repaired, it deletes the Service of a proxy that is disabled."""

    async def reconcile(self, request: Request) -> None:
        database = await self._client.find(db.DATABASE, request.name, request.namespace)
        if database is None:
            return
        await db.ensure(self._client, db.service(database, request.name))
        proxy = db.service(database, f"{request.name}-proxy")
        if database["spec"].get("proxy"):
            await db.ensure(self._client, proxy)
        elif (
            not self._bug
            and await self._client.find(db.SERVICE, f"{request.name}-proxy", request.namespace) is not None
        ):
            await db.remove(self._client, proxy)


def setup(manager: Manager, bug: bool) -> None:
    db.control(manager, Operator(manager, bug), db.SERVICE)
