"""What happened to an object (upstream: sigs.k8s.io/controller-runtime/pkg/event)."""

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
    """It is new; or was there when the controller began."""

    object: Object
    is_in_initial_list: bool = False


class UpdateEvent(Struct, frozen=True):
    """It changed; or is only looked at again, then both have the same resourceVersion."""

    object_old: Object
    object_new: Object


class DeleteEvent(Struct, frozen=True):
    """It is gone. `delete_state_unknown`: nobody saw how, the object is the last that was seen of it."""

    object: Object
    delete_state_unknown: bool = False


class GenericEvent(Struct, frozen=True):
    """Something happened outside of the cluster, and concerns the object."""

    object: Object = field(default_factory=dict)


Event = CreateEvent | UpdateEvent | DeleteEvent | GenericEvent


def object_of(event: Event) -> Object:
    """As it is now; if it is gone, as it was last seen."""
    return event.object_new if isinstance(event, UpdateEvent) else event.object
