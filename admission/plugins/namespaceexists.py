"""Refuses writes in a namespace that is not there. Upstream: k8s.io/kubernetes/plugin/pkg/admission/namespace/exists."""

from fakeapiserver.admission.handler import Handler
from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.apimachinery.errors import new_not_found
from fakeapiserver.apimachinery.gvk import GroupResource


class NamespaceExists(Handler):
    operations = frozenset({"CREATE", "UPDATE", "DELETE"})
    subresources = True

    async def validate(self, attributes: Attributes) -> None:
        name = attributes.namespace
        if not name or attributes.kind.group_kind == ("", "Namespace"):
            return
        if await self.look_up("namespaces", "", name) is None:
            raise new_not_found(GroupResource("", "namespaces"), name)
