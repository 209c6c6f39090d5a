"""A field has no effect, since the operator reads another one.

Published as OT-CONTAINER-KIT/redis-operator#289 (a wrong key), pravega/zookeeper-operator#517 (access modes, which a default always
replaces) and K8SPXC-1068.
"""

from fakeapiserver.controller_runtime import Manager, Request
from tests.examples.operators_with_bugs import databases as db

SPEC = {"port": {"type": "integer", "minimum": 1024, "maximum": 65535}, "annotations": db.TEXTS}
STEPS = [db.create(annotations={"example.com/team": "shop"})]
FINDINGS: dict[str, str] = {}
CHANGES = ["spec.port = 1024", "spec.annotations unset"]
IGNORED = ["spec.port"]


class Operator(db.Operator):
    """Repaired, it reads the field."""

    async def reconcile(self, request: Request) -> None:
        database = await self._client.find(db.DATABASE, request.name, request.namespace)
        if database is None:
            return
        spec = database["spec"]
        service = db.service(database, request.name, spec.get("servicePort" if self._bug else "port", 5432))
        service["metadata"]["annotations"] = spec.get("annotations") or {}
        await self._client.apply(service, force=True)


def setup(manager: Manager, bug: bool) -> None:
    db.control(manager, Operator(manager, bug, field_owner="databases"), db.SERVICE)
