"""The server labels a secret whose token was used.

Upstream: pkg/serviceaccount/legacy.go (patchSecretWithLastUsedDate).
"""

import logging
from typing import Final

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.registry.generic.write_request import WriteRequest

log = logging.getLogger(__name__)

_SERVER: Final = UserInfo("system:apiserver", groups=("system:masters",))


class SecretLabeller:
    """Writes through the store as everyone does, so that watchers hear of it and the field has an owner."""

    def __init__(self, scopes: RequestScopes) -> None:
        self._scopes = scopes

    async def label(self, namespace: str, name: str, uid: str, labels: dict[str, str]) -> None:
        """A token is good even where its secret can't be labelled: that is logged."""
        store = self._scopes.store_for(GroupResource("", "secrets"))
        scope = self._scopes.lookup("", "v1", "secrets")
        assert store is not None
        assert scope is not None

        def labelled(current: Object | None) -> Object:
            assert current is not None
            meta = current["metadata"]
            return {**current, "metadata": {**meta, "labels": {**(meta.get("labels") or {}), **labels}}}

        write = WriteRequest(
            kind=scope.kind,
            user=_SERVER,
            manager="kube-apiserver",
            namespace=namespace,
            name=name,
            uid_precondition=uid,
        )
        try:
            await store.write(write, labelled)
        except StatusError as error:
            log.error("failed to label the legacy service account token %s/%s: %s", namespace, name, error)
