"""An annotation stays at a Service after it is taken from the spec, since the operator merges the spec into the Service.

Published as rabbitmq/cluster-operator#968 (annotations of the Service), K8SPXC-1060 and others (fields of the Service),
pingcap/tidb-operator#4637 (labels) and knative/operator#1157 (values of a ConfigMap).
"""

from fakeapiserver.controller_runtime import Manager, Request
from tests.examples.operators_with_bugs import databases as db

SPEC = {"annotations": db.TEXTS}
STEPS = [db.create(annotations={"example.com/team": "shop"})]
FINDINGS = {
    "spec.annotations unset": (
        'the Service default/db has metadata.annotations {"example.com/team": "shop"}, which should be unset, when changed to '
        "spec.annotations unset, unlike when created with it"
    ),
}


class Operator(db.Operator):
    """Repaired, it replaces the annotations."""

    async def reconcile(self, request: Request) -> None:
        database = await self._client.find(db.DATABASE, request.name, request.namespace)
        if database is None:
            return
        annotations = database["spec"].get("annotations") or {}
        service = db.service(database, request.name)
        await db.ensure(self._client, service)
        current = await self._client.find(db.SERVICE, request.name, request.namespace)
        if current is None:
            return
        former = current["metadata"].get("annotations") or {}
        annotations = {**former, **annotations} if self._bug else annotations
        if annotations != former:
            await self._client.update({**current, "metadata": {**current["metadata"], "annotations": annotations}})


def setup(manager: Manager, bug: bool) -> None:
    db.control(manager, Operator(manager, bug), db.SERVICE)
