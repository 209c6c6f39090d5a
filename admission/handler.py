"""The base of admission plugins: which writes a plugin handles.

Upstream: k8s.io/apiserver/pkg/admission/handler.go, pkg/admission/errors.go.
"""

from typing import ClassVar

from fakeapiserver.admission.interfaces import Attributes, Initializer, Operation
from fakeapiserver.apimachinery.errors import StatusError, new_forbidden
from fakeapiserver.apimachinery.gvk import GroupResource

PODS = GroupResource("", "pods")


class Handler:
    """A plugin's start. The chain calls `admit` and `validate` only for the operations and resources declared here, so a
    plugin does not check them again. No resources means all; `subresources` False means writes of the object itself only.
    A plugin with a feature gate sees nothing while the gate is off."""

    operations: ClassVar[frozenset[Operation]] = frozenset({"CREATE", "UPDATE"})
    resources: ClassVar[frozenset[GroupResource]] = frozenset()
    subresources: ClassVar[bool] = False
    feature_gate: ClassVar[str] = ""

    def __init__(self, initializer: Initializer) -> None:
        self.initializer = initializer

    def handles(self, operation: Operation) -> bool:
        gate = self.feature_gate
        return operation in self.operations and (not gate or self.initializer.features.enabled(gate))


def forbidden(attributes: Attributes, reason: str) -> StatusError:
    """The 403 of a plugin. It names an object by its generateName if it has no name yet, and else as `Unknown`."""
    name = attributes.name
    if not name:
        meta = (attributes.object or {}).get("metadata") or {}
        name = meta.get("name") or meta.get("generateName") or "Unknown"
    return new_forbidden(attributes.resource.group_resource, name, reason)
