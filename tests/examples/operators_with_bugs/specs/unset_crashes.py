"""The operator crashes, since it takes for granted that an optional field is set.

Published as OT-CONTAINER-KIT/redis-operator#283 (resources), K8SPSMDB-697 and pingcap/tidb-operator#4613.
"""

from fakeapiserver.controller_runtime import Manager, Request
from tests.examples.operators_with_bugs import databases as db

SPEC = {"service": {"type": "object", "properties": {"port": {"type": "integer", "minimum": 1024, "maximum": 65535}}}}
STEPS = [db.create(service={"port": 5432})]
FINDINGS = {
    "spec.service unset": (
        "created with spec.service unset, the operator crashes: panic: KeyError: 'service' (and 1 more)"
    ),
}


class Operator(db.Operator):
    """Repaired, it has a default."""

    async def reconcile(self, request: Request) -> None:
        database = await self._client.find(db.DATABASE, request.name, request.namespace)
        if database is None:
            return
        spec = database["spec"]
        service = spec["service"] if self._bug else spec.get("service", {})
        port = service.get("port", 5432)
        await db.ensure(self._client, db.service(database, request.name, port))
        current = await self._client.find(db.SERVICE, request.name, request.namespace)
        if current is not None and current["spec"]["ports"][0]["port"] != port:
            ports = [{"name": "sql", "port": port}]
            await self._client.update({**current, "spec": {**current["spec"], "ports": ports}})


def setup(manager: Manager, bug: bool) -> None:
    """A crash of the reconciler ends the operator, as it did in Go at the time."""
    db.control(manager, Operator(manager, bug), db.SERVICE, recover_panic=False)
