"""No new objects in namespaces that are missing or going away; three namespaces are never deleted.

Upstream: k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go.
"""

from typing import Final

from fakeapiserver.admission.handler import Handler, forbidden
from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.apimachinery.errors import StatusError, new_forbidden, new_not_found
from fakeapiserver.apimachinery.gvk import GroupResource

_NAMESPACES: Final = GroupResource("", "namespaces")
_IMMORTAL: Final = frozenset({"default", "kube-system", "kube-public"})
# A "not found" for these would reveal which namespaces exist.
_ACCESS_REVIEW: Final = ("authorization.k8s.io", "localsubjectaccessreviews")


class NamespaceLifecycle(Handler):
    operations = frozenset({"CREATE", "UPDATE", "DELETE"})
    subresources = True

    async def admit(self, attributes: Attributes) -> None:
        name, operation = attributes.namespace, attributes.operation
        if attributes.kind.group_kind == ("", "Namespace"):
            if operation == "DELETE" and attributes.name in _IMMORTAL:
                resource = attributes.resource.group_resource
                raise new_forbidden(resource, attributes.name, "this namespace may not be deleted")
            return
        if not name or operation == "DELETE" or attributes.resource.group_resource == _ACCESS_REVIEW:
            return
        namespace = await self.look_up("namespaces", "", name)
        if namespace is None:
            raise new_not_found(_NAMESPACES, name)
        if operation == "CREATE" and (namespace.get("status") or {}).get("phase") == "Terminating":
            raise _terminating(attributes)


def _terminating(attributes: Attributes) -> StatusError:
    name = attributes.namespace
    error = forbidden(attributes, f"unable to create new content in namespace {name} because it is being terminated")
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {name} is being terminated",
        "field": "metadata.namespace",
    }
    error.status["details"]["causes"] = [cause]
    return error
