"""Writes by admission plugins and the allocator of addresses: through the whole write path, as the API server's own user.

Upstream: the loopback client that k8s.io/apiserver/pkg/server/options/admission.go and pkg/registry/core/rest/storage_core.go give
them.
"""

from collections.abc import Callable
from typing import Final

from fakeapiserver.apimachinery.errors import new_not_found
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.registry.generic.deletion import Deletion
from fakeapiserver.registry.generic.store import Store
from fakeapiserver.registry.generic.write_request import WriteRequest, posted

_SERVER: Final = UserInfo("system:apiserver", groups=("system:masters", "system:authenticated"))


class LoopbackWriter:
    def __init__(self, scopes: RequestScopes) -> None:
        self._scopes = scopes

    async def create(self, resource: str, obj: Object) -> None:
        """StatusError as POST has it."""
        scope, store = self._found(resource)
        gvk = scope.kind.gvk
        obj = {"apiVersion": str(gvk.group_version), "kind": gvk.kind, **obj}
        scope.kind.settle(obj, {})
        await store.write(_request(scope, obj["metadata"].get("namespace", ""), "", ""), posted(obj), create=True)

    async def replace(self, resource: str, obj: Object) -> None:
        """Replaces the object of that name. StatusError as PUT has it."""
        scope, store = self._found(resource)
        scope.kind.settle(obj, {})
        meta = obj["metadata"]

        def transform(current: Object | None) -> Object:
            assert current is not None
            return {**obj, "metadata": {**meta, "resourceVersion": current["metadata"]["resourceVersion"]}}

        await store.write(_request(scope, meta.get("namespace", ""), meta["name"], ""), transform)

    async def update_status(self, resource: str, namespace: str, name: str, change: Callable[[Object], Object]) -> None:
        """Writes a status: `change` gets the current object and returns a new one, again after a lost race.

        Raises StatusError as PUT does.
        """
        scope, store = self._found(resource)

        def transform(current: Object | None) -> Object:
            assert current is not None
            return change(current)

        await store.write(_request(scope, namespace, name, "status"), transform)

    async def remove(self, resource: str, namespace: str, name: str) -> None:
        """StatusError as DELETE has it."""
        scope, store = self._found(resource)
        await store.deleter.delete(_request(scope, namespace, name, ""), Deletion())

    def _found(self, resource: str) -> tuple[RequestScope, Store]:
        name, _, group = resource.partition(".")
        store = self._scopes.store_for(GroupResource(group, name))
        scope = self._scopes.lookup(group, store.gvr.version, name) if store is not None else None
        if store is None or scope is None:
            raise new_not_found(GroupResource(group, name), "")
        return scope, store


def _request(scope: RequestScope, namespace: str, name: str, subresource: str) -> WriteRequest:
    return WriteRequest(scope.kind, _SERVER, "kube-apiserver", namespace, name, subresource)
