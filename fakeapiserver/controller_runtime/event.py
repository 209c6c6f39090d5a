"""What happened to an object (upstream: sigs.k8s.io/controller-runtime/pkg/event)."""

from dataclasses import dataclass, field

from fakeapiserver.client.cache.indexer import Object


@dataclass(frozen=True, slots=True)
class CreateEvent:
    """It is new; or was there when the controller began."""

    object: Object
    is_in_initial_list: bool = False


@dataclass(frozen=True, slots=True)
class UpdateEvent:
    """It changed; or is only looked at again, then both have the same resourceVersion."""

    object_old: Object
    object_new: Object


@dataclass(frozen=True, slots=True)
class DeleteEvent:
    """It is gone. `delete_state_unknown`: nobody saw how, the object is the last that was seen of it."""

    object: Object
    delete_state_unknown: bool = False


@dataclass(frozen=True, slots=True)
class GenericEvent:
    """Something happened outside of the cluster, and concerns the object."""

    object: Object = field(default_factory=dict)


Event = CreateEvent | UpdateEvent | DeleteEvent | GenericEvent


def object_of(event: Event) -> Object:
    """As it is now; if it is gone, as it was last seen."""
    return event.object_new if isinstance(event, UpdateEvent) else event.object
