"""The APIService objects of custom group versions: made with the first definition that serves one, removed with the last.

Upstream: k8s.io/kubernetes/pkg/controlplane/controller/crdregistration, k8s.io/kube-aggregator/pkg/controllers/autoregister.
"""

from collections.abc import Iterable
from typing import Any, Final

from fakeapiserver.apimachinery.gvk import GroupResource, GroupVersion
from fakeapiserver.apimachinery.meta import metadata
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.apis.resource_table import CUSTOM_PRIORITY
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.server.bootstrap import store_object

_RESOURCE: Final = GroupResource("apiregistration.k8s.io", "apiservices")
_AUTOMANAGED: Final = "kube-aggregator.kubernetes.io/automanaged"
_FIELDS: Final = {
    "f:metadata": {"f:labels": {".": {}, f"f:{_AUTOMANAGED}": {}}},
    "f:spec": {"f:group": {}, "f:groupPriorityMinimum": {}, "f:version": {}, "f:versionPriority": {}},
}


class AutoRegistration:
    """Sees to it that every custom group version has its APIService, and no other is left over."""

    def __init__(self, scopes: RequestScopes) -> None:
        self._scopes = scopes
        self._announced: dict[str, frozenset[GroupVersion]] = {}

    async def announce(self, definition: str, versions: Iterable[GroupVersion]) -> None:
        """Group versions that a definition wants to serve, whether its names are accepted or not; none when it is gone."""
        before, now = self._announced.get(definition, frozenset()), frozenset(versions)
        self._announced[definition] = now
        if not now:
            del self._announced[definition]
        for gv in sorted(now | before):
            await self._sync(gv)

    async def _sync(self, gv: GroupVersion) -> None:
        scope = self._scopes.lookup(_RESOURCE.group, "v1", _RESOURCE.resource)
        assert scope is not None
        assert scope.store is not None
        key = scope.store.key("", f"{gv.version}.{gv.group}")
        stored = self._scopes.storage.get_now(key)
        wanted = any(gv in versions for versions in self._announced.values())
        if wanted and stored is None:
            await store_object(scope, _api_service(gv), rfc3339(self._scopes.clock.now()))
        elif stored is not None and not wanted:
            labels = metadata(scope.store.decode(stored.value)).get("labels") or {}
            if labels.get(_AUTOMANAGED) == "true":
                await self._scopes.storage.delete(key)


def _api_service(gv: GroupVersion) -> dict[str, Any]:
    entry = {
        "manager": "kube-apiserver",
        "operation": "Update",
        "apiVersion": "apiregistration.k8s.io/v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": _FIELDS,
    }
    priority = {"groupPriorityMinimum": CUSTOM_PRIORITY.group, "versionPriority": CUSTOM_PRIORITY.version}
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
        "spec": {"group": gv.group, "version": gv.version, **priority},
        "status": {"conditions": [available]},
    }
