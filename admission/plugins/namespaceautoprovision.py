"""Makes the namespace of a new object. Upstream: k8s.io/kubernetes/plugin/pkg/admission/namespace/autoprovision."""

from fakeapiserver.admission.handler import Handler, forbidden
from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.apimachinery.errors import StatusError


class NamespaceAutoProvision(Handler):
    operations = frozenset({"CREATE"})
    subresources = True

    async def admit(self, attributes: Attributes) -> None:
        name, writer = attributes.namespace, self.initializer.writer
        if attributes.dry_run or not name or attributes.kind.group_kind == ("", "Namespace") or writer is None:
            return
        if self.initializer.getter.get("namespaces", "", name) is not None:
            return
        try:
            await writer.create("namespaces", {"metadata": {"name": name}})
        except StatusError as error:
            if error.reason == "Forbidden":
                raise
            if error.reason != "AlreadyExists":
                raise forbidden(attributes, error.message) from error
