"""A part of the system is deleted, since the operator reads that it is disabled, as it was in the past.

The operator deletes the proxy's Service when `spec.proxy` is false. A user disables the proxy and enables it again; after a restart an API
server that lags behind shows the operator the spec in between.

Published as K8SPSMDB-433 (sharding), K8SPSMDB-438 (arbiter), K8SPXC-725 and K8SPXC-763 (proxies), yugabyte/yugabyte-operator#35 (TLS) and
#36 (a Service).
"""

from fakeapiserver.controller_runtime import Manager, Request
from tests.examples.operators_with_bugs import databases as db

SPEC = {"proxy": db.BOOLEAN}
STEPS = [db.create(proxy=True), db.change(proxy=False), db.change(proxy=True)]
FINDINGS = {
    "restart after step 3 with the state after step 2": (
        "the Service default/db-proxy is deleted, although the undisturbed run keeps it"
    ),
}


class Operator(db.Operator):
    """Repaired, it asks the API server itself, and not its cache, before it deletes anything."""

    async def reconcile(self, request: Request) -> None:
        database = await self._client.find(db.DATABASE, request.name, request.namespace)
        if database is None:
            return
        ports = [{"name": "sql", "port": 5432}]
        service = db.child(database, db.SERVICE, f"{request.name}-proxy", {"spec": {"ports": ports}})
        if database["spec"]["proxy"]:
            await db.ensure(self._client, service)
        elif self._bug or not await self._has_proxy(request):
            await db.remove(self._client, service)

    async def _has_proxy(self, request: Request) -> bool:
        database = await db.live(self._server, request)
        return database is not None and bool(database["spec"]["proxy"])


def setup(manager: Manager, bug: bool) -> None:
    db.control(manager, Operator(manager, bug), db.SERVICE)
