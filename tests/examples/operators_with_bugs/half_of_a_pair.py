"""The second of two objects is never created, since only the first one is looked for.

If the Secret of the certificate isn't there, the operator creates it and then the Secret of the internal certificate. Killed in between, it
finds the first one and creates nothing more.

Published as K8SPSMDB-578 and K8SPXC-896, as K8SPSMDB-579 and K8SPXC-897 with the Certificates of cert-manager, and in a like form as
K8SSAND-1023 (cass-operator).
"""

from fakeapiserver.controller_runtime import Manager, Request
from tests.examples.operators_with_bugs import databases as db

SPEC = {"size": db.INTEGER}
STEPS = [db.create(size=1)]
FINDINGS = {
    "crash after create secrets default/db-ssl": ("the Secret default/db-ssl-internal is missing"),
}


class Operator(db.Operator):
    """Repaired, it looks for both."""

    async def reconcile(self, request: Request) -> None:
        database = await self._client.find(db.DATABASE, request.name, request.namespace)
        if database is None:
            return
        names = [f"{request.name}-ssl", f"{request.name}-ssl-internal"]
        looked_for = names[:1] if self._bug else names
        secrets = [await self._client.find(db.SECRET, name, request.namespace) for name in looked_for]
        if None in secrets:
            for name in names:
                await db.ensure(
                    self._client, db.child(database, db.SECRET, name, {"stringData": {"tls.key": "secret"}})
                )


def setup(manager: Manager, bug: bool) -> None:
    db.control(manager, Operator(manager, bug), db.SECRET)
