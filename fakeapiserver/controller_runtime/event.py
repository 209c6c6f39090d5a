"""Events about objects (upstream: sigs.k8s.io/controller-runtime/pkg/event)."""

from msgspec import Struct, field

from fakeapiserver.apimachinery.meta import Object

__all__ = [
    "CreateEvent",
    "DeleteEvent",
    "Event",
    "GenericEvent",
    "UpdateEvent",
    "object_of",
]


class CreateEvent(Struct, frozen=True):
    """An object that is new, or existed when the controller began."""

    object: Object
    is_in_initial_list: bool = False


class UpdateEvent(Struct, frozen=True):
    """A change of an object; a resync if both have the same resourceVersion."""

    object_old: Object
    object_new: Object


class DeleteEvent(Struct, frozen=True):
    """A deletion. `delete_state_unknown`: the watch missed it, and the object is the last known state."""

    object: Object
    delete_state_unknown: bool = False


class GenericEvent(Struct, frozen=True):
    """Something happened outside of the cluster, and concerns the object."""

    object: Object = field(default_factory=dict)


Event = CreateEvent | UpdateEvent | DeleteEvent | GenericEvent


def object_of(event: Event) -> Object:
    """Returns the object after the event; after a deletion its last state."""
    return event.object_new if isinstance(event, UpdateEvent) else event.object
