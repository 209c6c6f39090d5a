"""The operator crashes, since it reads an object twice, and a part that was there isn't any more.

The first read is from the cache, and says that there is a proxy; the second one is from the API server, and its spec has none.

Published as K8SPSMDB-434 (sharding is disabled between two reads, and a nil pointer is dereferenced).
"""

from fakeapiserver.controller_runtime import Manager, Request
from tests.examples.operators_with_bugs import databases as db

SPEC = {"proxy": {"type": "object", "properties": {"port": {"type": "integer"}}}}
STEPS = [db.create(proxy={"port": 5432}), db.change(proxy=None)]
FINDINGS = {
    "restart after step 2 with the state after step 1": "the operator crashes: panic: KeyError: 'proxy' (and 1 more)",
}


class Operator(db.Operator):
    """Repaired, it looks again whether there is a proxy."""

    async def reconcile(self, request: Request) -> None:
        database = await self._client.find(db.DATABASE, request.name, request.namespace)
        if database is None:
            return
        service = db.child(database, db.SERVICE, f"{request.name}-proxy", {})
        if "proxy" not in database["spec"]:
            await db.remove(self._client, service)
            return
        current = await db.live(self._server, request)
        if current is not None and (self._bug or "proxy" in current["spec"]):
            ports = [{"name": "sql", "port": current["spec"]["proxy"]["port"]}]
            await db.ensure(self._client, {**service, "spec": {"ports": ports}})


def setup(manager: Manager, bug: bool) -> None:
    """A crash of the reconciler ends the operator, as it did in Go at the time."""
    operator = Operator(manager, bug)
    db.control(manager, operator, db.SERVICE, recover_panic=False)
