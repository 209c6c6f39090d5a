"""The APIService objects of custom group versions: made with the first definition that serves one, removed with the last.

Upstream: k8s.io/kubernetes/pkg/controlplane/controller/crdregistration, k8s.io/kube-aggregator/pkg/controllers/autoregister.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Final

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.gvk import GroupResource, GroupVersion
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.registry.generic.write_request import WriteRequest
from fakeapiserver.server.upkeep.bootstrap import store_object
from fakeapiserver.server.upkeep.watch_loop import follow
from fakeapiserver.storage.interface import Event, KeyExists, KeyNotFound

log = logging.getLogger(__name__)

_RESOURCE: Final = GroupResource("apiregistration.k8s.io", "apiservices")
_AUTOMANAGED: Final = "kube-aggregator.kubernetes.io/automanaged"
_SERVER: Final = UserInfo("system:apiserver", groups=("system:masters",))
_FIELDS: Final = {
    "f:metadata": {"f:labels": {".": {}, f"f:{_AUTOMANAGED}": {}}},
    "f:spec": {"f:group": {}, "f:groupPriorityMinimum": {}, "f:version": {}, "f:versionPriority": {}},
}


class AutoRegistration:
    """Sees to it that every custom group version has its APIService, and no other is left over."""

    def __init__(self, scopes: RequestScopes) -> None:
        self._scopes = scopes
        self._announced: dict[str, frozenset[GroupVersion]] = {}
        # How many definitions want a group version.
        self._wanted: Counter[GroupVersion] = Counter()

    async def announce(self, definition: str, versions: Iterable[GroupVersion]) -> None:
        """Group versions that a definition wants to serve, whether its names are accepted or not; none when it is gone."""
        before, now = self._announced.get(definition, frozenset()), frozenset(versions)
        self._announced[definition] = now
        if not now:
            del self._announced[definition]
        self._wanted.update(now - before)
        self._wanted.subtract(before - now)
        for gv in sorted(now | before):
            await self._sync(gv)

    async def announce_again(self, definition: str) -> None:
        """Another state was restored, in which the definition is the same."""
        for gv in sorted(self._announced.get(definition, ())):
            await self._sync(gv)

    async def run(self) -> None:
        """Undoes what others change in these APIServices. Runs until cancelled."""
        store = self._scope().store
        assert store is not None

        async def began() -> None:
            """`announce` and `announce_again` have synchronized everything."""

        async def changed(events: Sequence[Event]) -> None:
            for event in events:
                version, _, group = event.object.key.removeprefix(store.prefix).partition(".")
                await self._sync(GroupVersion(group, version))

        await follow(store, began, changed)

    def _scope(self) -> RequestScope:
        scope = self._scopes.lookup(_RESOURCE.group, "v1", _RESOURCE.resource)
        assert scope is not None
        return scope

    async def _sync(self, gv: GroupVersion) -> None:
        """Creates, restores or removes the APIService; one without the label belongs to a user."""
        if self._scopes.is_read_only:
            return
        scope = self._scope()
        assert scope.store is not None
        name = f"{gv.version}.{gv.group}"
        stored = self._scopes.storage.get_now(scope.store.key("", name))
        wanted = self._wanted[gv] > 0
        if stored is None:
            if wanted:
                with suppress(KeyExists):  # a definition and its event may ask for it at the same time
                    await store_object(scope, _api_service(gv, self._spec(gv)), rfc3339(self._scopes.clock.now()))
            return
        obj = scope.store.decode(stored.value)
        if (metadata(obj).get("labels") or {}).get(_AUTOMANAGED) != "true":
            return
        if not wanted:
            with suppress(KeyNotFound):
                await self._scopes.storage.delete(stored.key)
        elif obj["spec"] != self._spec(gv):
            await self._restore(scope, name, gv)

    async def _restore(self, scope: RequestScope, name: str, gv: GroupVersion) -> None:
        assert scope.store is not None

        def transform(current: Object | None) -> Object:
            assert current is not None
            return {**current, "spec": self._spec(gv)}

        request = WriteRequest(kind=scope.kind, user=_SERVER, manager="kube-apiserver", namespace="", name=name)
        try:
            await scope.store.write(request, transform)
        except StatusError as error:
            log.info("%s has moved on: %s", name, error)

    def _spec(self, gv: GroupVersion) -> Object:
        group, version = self._scopes.table.priority(gv)
        return {"group": gv.group, "version": gv.version, "groupPriorityMinimum": group, "versionPriority": version}


def _api_service(gv: GroupVersion, spec: Object) -> dict[str, Any]:
    entry = {
        "manager": "kube-apiserver",
        "operation": "Update",
        "apiVersion": "apiregistration.k8s.io/v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": _FIELDS,
    }
    available = {
        "type": "Available",
        "status": "True",
        "reason": "Local",
        "message": "Local APIServices are always available",
    }
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {
            "name": f"{gv.version}.{gv.group}",
            "labels": {_AUTOMANAGED: "true"},
            "managedFields": [entry],
        },
        "spec": spec,
        "status": {"conditions": [available]},
    }
