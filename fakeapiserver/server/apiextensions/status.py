"""Writes the status of CustomResourceDefinitions."""

from collections.abc import Callable
from functools import partial
from typing import Final

from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import Object, is_terminating, metadata, uid
from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.effort import offloaded
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.registry.generic.store import Store
from fakeapiserver.registry.generic.write_request import WriteRequest

_RESOURCE: Final = GroupResource("apiextensions.k8s.io", "customresourcedefinitions")
_SERVER: Final = UserInfo("system:apiserver", groups=("system:masters",))


class DefinitionStatus:
    """Changes a definition's status. `publish` is called with a changed definition before it is stored."""

    def __init__(self, scopes: RequestScopes, publish: Callable[[Object], None]) -> None:
        self._scopes = scopes
        self._publish = publish

    @property
    def store(self) -> Store:
        definitions = self._scopes.store_for(_RESOURCE)
        assert definitions is not None
        return definitions

    async def write(self, obj: Object, change: Callable[[Object, float], None]) -> Object:
        """Returns the definition with a status changed in place by `change`, stored if that makes a difference."""

        def transform(current: Object | None) -> Object:
            assert current is not None
            new = {**current, "metadata": dict(metadata(current)), "status": dict(current.get("status") or {})}
            change(new, self._scopes.clock.now())
            return new

        definitions = self.store
        wanted = transform(obj)
        if wanted["status"] == obj.get("status"):
            return obj
        if not is_terminating(obj):
            self._publish(wanted)  # at once: who has created it asks for it next
        request = self._request(metadata(obj)["name"])
        request.uid_precondition = uid(obj)
        value = (await definitions.write(request, transform)).value
        return await offloaded(partial(definitions.decode, value), len(value))

    def _request(self, name: str) -> WriteRequest:
        row = self._scopes.table.for_kind(self.store.gvk)
        scope = self._scopes.lookup(*row.gvr) if row is not None else None
        assert scope is not None
        return WriteRequest(scope.kind, _SERVER, "kube-apiserver", "", name, subresource="status")
