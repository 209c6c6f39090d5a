"""Writes into the status of flow schemas whether their priority level exists.

Upstream: k8s.io/apiserver/pkg/util/flowcontrol/apf_controller.go (presyncFlowSchemaStatus).
"""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from typing import Final

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.registry.generic.store import Store
from fakeapiserver.server.upkeep.status_writer import SERVER, apply_status
from fakeapiserver.server.upkeep.watch_loop import follow
from fakeapiserver.storage.interface import Event

log = logging.getLogger(__name__)

_GROUP: Final = "flowcontrol.apiserver.k8s.io"
_MANAGER: Final = "api-priority-and-fairness-config-consumer-v1"
_DANGLING: Final = "Dangling"


def dangling(level: str, exists: bool) -> Object:
    """The condition of a flow schema that points to this level, without its time."""
    points = f'This FlowSchema references the PriorityLevelConfiguration object named "{level}"'
    if exists:
        return {"type": _DANGLING, "status": "False", "reason": "Found", "message": f"{points} and it exists"}
    return {
        "type": _DANGLING,
        "status": "True",
        "reason": "NotFound",
        "message": f"{points} but there is no such object",
    }


class FlowSchemaStatus:
    def __init__(self, scopes: RequestScopes) -> None:
        self._scopes = scopes

    async def run(self) -> None:
        """Runs until cancelled: idle as long as neither flow schemas nor priority levels are written."""
        schemas, levels = self._store("flowschemas"), self._store("prioritylevelconfigurations")

        async def began() -> None:
            await self._reconcile_all(schemas, levels)

        async def schemas_changed(events: Sequence[Event]) -> None:
            for event in events:
                if event.type != "DELETED":
                    await self._reconcile(schemas.decode(event.object.value), levels)

        async def levels_changed(events: Sequence[Event]) -> None:
            for event in events:
                if event.type != "MODIFIED":
                    await self._reconcile_all(schemas, levels)

        await asyncio.gather(follow(schemas, began, schemas_changed), follow(levels, began, levels_changed))

    def _store(self, resource: str) -> Store:
        store = self._scopes.store_for(GroupResource(_GROUP, resource))
        assert store is not None
        return store

    async def _reconcile_all(self, schemas: Store, levels: Store) -> None:
        for item in (await schemas.storage.list(schemas.prefix)).items:
            await self._reconcile(schemas.decode(item.value), levels)

    async def _reconcile(self, schema: Object, levels: Store) -> None:
        name, level = metadata(schema)["name"], schema["spec"]["priorityLevelConfiguration"]["name"]
        wanted = dangling(level, levels.storage.get_now(f"{levels.prefix}{level}") is not None)
        if any(wanted.items() <= condition.items() for condition in _conditions(schema)):
            return
        scope = self._scopes.lookup(_GROUP, "v1", "flowschemas")
        assert scope is not None
        wanted["lastTransitionTime"] = rfc3339(scope.clock.now())
        try:
            await apply_status(scope, name, {"conditions": [wanted]}, user=SERVER, manager=_MANAGER)
        except StatusError as error:
            log.info("flow schema %s has moved on: %s", name, error)


def _conditions(schema: Object) -> Iterator[Object]:
    yield from (schema.get("status") or {}).get("conditions") or ()
