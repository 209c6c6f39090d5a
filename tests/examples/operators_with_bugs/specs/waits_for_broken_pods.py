"""The operator never recovers from a spec with which no pod runs, since it waits for the pods before it changes anything.

A user asks for a node that doesn't exist, and takes that back. The operator goes on only if all pods are ready, which they never get.

Published as OT-CONTAINER-KIT/redis-operator#480, k8ssandra/cass-operator#330, and in a like form as pravega/zookeeper-operator#547.
"""

from fakeapiserver.controller_runtime import Manager, Request
from tests.examples.operators_with_bugs import databases as db

SPEC = {"nodeSelector": db.TEXTS}
STEPS = [db.create()]
NODES = 1
FINDINGS = {
    'spec.nodeSelector = {"example.com/explored": "a"}': (
        'the Pod default/db-0 has spec.nodeSelector {"example.com/explored": "a"}, which should be unset, after spec.nodeSelector = '
        '{"example.com/explored": "a"} and back (and 5 more)'
    ),
}


class Operator(db.Operator):
    """Repaired, it changes the StatefulSet, whatever its pods do."""

    async def reconcile(self, request: Request) -> None:
        database = await self._client.find(db.DATABASE, request.name, request.namespace)
        if database is None:
            return
        selector = database["spec"].get("nodeSelector") or {}
        stateful_set = db.stateful_set(database, 1)
        stateful_set["spec"]["template"]["spec"]["nodeSelector"] = selector
        await db.ensure(self._client, stateful_set)
        current = await self._client.find(db.STATEFUL_SET, request.name, request.namespace)
        if current is None or (self._bug and not (current.get("status") or {}).get("readyReplicas")):
            return
        template = current["spec"]["template"]
        if (template["spec"].get("nodeSelector") or {}) != selector:
            changed = {**template, "spec": {**template["spec"], "nodeSelector": selector}}
            await self._client.update({**current, "spec": {**current["spec"], "template": changed}})


def setup(manager: Manager, bug: bool) -> None:
    db.control(manager, Operator(manager, bug), db.STATEFUL_SET)
