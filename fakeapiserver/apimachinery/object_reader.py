"""Reads stored objects, for authorizers, authenticators, admission plugins and the server's own parts."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from fakeapiserver.apimachinery.meta import Object

# The resource, and the object before and after a write; None where there was or is no object.
ObjectChange = tuple[str, Object | None, Object | None]


class ObjectLister(Protocol):
    """Reads objects at once. A resource is named by plural and group: `pods`, `deployments.apps`. The objects must not be changed."""

    def get(self, resource: str, namespace: str, name: str) -> Object | None:
        """Returns an object, or None; also for names that no object may have, and for resources that aren't served."""

    def list(self, resource: str, namespace: str = "") -> Sequence[Object]:
        """Returns the objects of a namespace, or of all."""


class ObjectReader(ObjectLister, Protocol):
    """Reads stored objects within the same turn of the event loop."""

    @property
    def revision(self) -> int:
        """The revision of the last write to any resource."""

    def list(self, resource: str, namespace: str = "") -> list[Object]:
        """Returns the same list until the resource is written, so that callers can cache what they derive from it."""

    def generation(self, resources: tuple[str, ...]) -> int:
        """Returns a number that rises with every write to one of these resources."""

    def changes(self, resources: tuple[str, ...], revision: int) -> Iterable[ObjectChange]:
        """Yields every write to these resources after `revision`, in order. Raises LookupError if the history doesn't go back so far."""
