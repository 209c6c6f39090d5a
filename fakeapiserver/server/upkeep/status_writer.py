"""Writes of status by controllers within the server: server-side apply, as upstream's do."""

from typing import Final

from fakeapiserver.apimachinery import managedfields
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.registry.generic.write_request import WriteRequest

SERVER: Final = UserInfo("system:apiserver", groups=("system:masters",))


async def apply_status(scope: RequestScope, name: str, status: Object, *, user: UserInfo, manager: str) -> None:
    """The whole status of a cluster-wide object, with force. StatusError."""
    store = scope.store
    assert store is not None
    applied = {
        "apiVersion": str(scope.gvk.group_version),
        "kind": scope.gvk.kind,
        "metadata": {"name": name},
        "status": status,
    }

    def transform(current: Object | None) -> Object:
        return managedfields.apply(current, applied, store.operation(scope.kind, manager, "status"), force=True)

    await store.write(WriteRequest(scope.kind, user, manager, "", name, subresource="status", applied=True), transform)
