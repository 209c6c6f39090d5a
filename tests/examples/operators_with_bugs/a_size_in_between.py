"""A claim is never deleted, since the operator counts on seeing each size.

When the size goes down, the operator deletes the claim of the last replica, as if only one replica could go at a time. If it never sees
one of two changes, the other claim stays.

Published as Orange-OpenSource/casskop#342; yugabyte/yugabyte-operator#39, K8SPSMDB-585 and K8SPXC-918 rely on seeing each change as well.
"""

from fakeapiserver.controller_runtime import Manager, Request
from tests.examples.operators_with_bugs import databases as db

SPEC = {"size": db.INTEGER}
STEPS = [db.create(size=3), db.change(size=2), db.change(size=1)]
FINDINGS = {
    "state 1 of databases.example.com default/db unseen in steps 2 to 3": (
        "the PersistentVolumeClaim default/data-db-1 exists, but should not"
    ),
}


class Operator(db.Operator):
    """Repaired, it deletes all claims beyond the size."""

    async def reconcile(self, request: Request) -> None:
        database = await self._read(request)
        if database is None:
            return
        size = database["spec"]["size"]
        former = (database.get("status") or {}).get("size", 0)
        for number in range(size):
            await db.ensure(self._client, db.claim(database, f"data-{request.name}-{number}"))
        if not self._bug:
            for claim in await self._server.list(db.CLAIM, namespace=request.namespace):
                if int(claim["metadata"]["name"].rpartition("-")[2]) >= size:
                    await db.remove(self._client, claim)
        elif former > size:
            await db.remove(self._client, db.claim(database, f"data-{request.name}-{former - 1}"))
        if former != size:
            await self._client.patch_status(database, {"status": {"size": size}})


def setup(manager: Manager, bug: bool) -> None:
    db.control(manager, Operator(manager, bug))
