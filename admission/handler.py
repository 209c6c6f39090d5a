"""The base of admission plugins: which writes a plugin handles.

Upstream: k8s.io/apiserver/pkg/admission/handler.go, pkg/admission/errors.go.
"""

from typing import ClassVar, Final

from fakeapiserver.admission.interfaces import Attributes, Initializer, Operation
from fakeapiserver.apimachinery.errors import StatusError, new_forbidden
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import Object

PODS = GroupResource("", "pods")
_LOOK_INTERVAL: Final = 30.0  # seconds
_MOST_LOOKED_FOR: Final = 1000


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
        # A namespace in which nothing was known -> when others' objects were waited for.
        self._looked_for: dict[str, float] = {}

    def handles(self, operation: Operation) -> bool:
        gate = self.feature_gate
        return operation in self.operations and (not gate or self.initializer.features.enabled(gate))

    async def look_up(self, resource: str, namespace: str, name: str) -> Object | None:
        """Returns an object, or None. Other servers may have stored one that isn't known here yet (upstream: live lookups)."""
        getter, catch_up = self.initializer.getter, self.initializer.catch_up
        found = getter.get(resource, namespace, name)
        if found is None and catch_up is not None:
            await catch_up()
            found = getter.get(resource, namespace, name)
        return found

    async def look_for(self, resource: str, namespace: str) -> list[Object]:
        """Returns the objects of a namespace. If none are known, those of other servers are waited for, but not again within 30 seconds."""
        getter, catch_up = self.initializer.getter, self.initializer.catch_up
        found, now = getter.list(resource, namespace), self.initializer.clock.now()
        if found or catch_up is None or now < self._looked_for.get(namespace, 0.0) + _LOOK_INTERVAL:
            return found
        if len(self._looked_for) >= _MOST_LOOKED_FOR:
            self._looked_for.clear()
        self._looked_for[namespace] = now
        await catch_up()
        return getter.list(resource, namespace)


def forbidden(attributes: Attributes, reason: str) -> StatusError:
    """The 403 of a plugin. It names an object by its generateName if it has no name yet, and else as `Unknown`."""
    name = attributes.name
    if not name:
        meta = (attributes.object or {}).get("metadata") or {}
        name = meta.get("name") or meta.get("generateName") or "Unknown"
    return new_forbidden(attributes.resource.group_resource, name, reason)
