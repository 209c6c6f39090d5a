"""A changed field never reaches the Service, since the operator only creates the Service.

Published as cockroachdb/cockroach-operator#918 and #919 (an Ingress), pravega/zookeeper-operator#454 (pods) and
OT-CONTAINER-KIT/redis-operator#286.
"""

from fakeapiserver.controller_runtime import Manager, Request
from tests.examples.operators_with_bugs import databases as db

SPEC = {"port": {"type": "integer", "minimum": 1024, "maximum": 65535}}
STEPS = [db.create(port=5432)]
FINDINGS = {
    "spec.port = 5433": (
        "the Service default/db has spec.ports[name=sql].port 5432 instead of 5433, when changed to spec.port = 5433, unlike when "
        "created with it (and 1 more)"
    ),
}


class Operator(db.Operator):
    """Repaired, it compares the Service with the spec."""

    async def reconcile(self, request: Request) -> None:
        database = await self._client.find(db.DATABASE, request.name, request.namespace)
        if database is None:
            return
        port = database["spec"].get("port", 5432)
        await db.ensure(self._client, db.service(database, request.name, port))
        current = await self._client.find(db.SERVICE, request.name, request.namespace)
        if current is not None and not self._bug and current["spec"]["ports"][0]["port"] != port:
            ports = [{"name": "sql", "port": port}]
            await self._client.update({**current, "spec": {**current["spec"], "ports": ports}})


def setup(manager: Manager, bug: bool) -> None:
    db.control(manager, Operator(manager, bug), db.SERVICE)
