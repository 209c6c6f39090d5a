"""The contents of a controller's queues."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from fakeapiserver.controller_runtime.controller import Controller


class QueueContents(Struct, frozen=True):
    """The items of a controller's queue, mostly `namespace/name`: those that it will take next, in their order; those that wait -> for how
    many seconds; and those that it works on."""

    ready: Sequence[str]
    delayed: Mapping[str, float]
    processing: Sequence[str]


def contents_of(controllers: Sequence[Controller]) -> QueueContents:
    """Returns the contents of the queues of these controllers together."""
    queues = [controller.queue for controller in controllers]
    return QueueContents(
        [str(item) for queue in queues for item in queue.ready],
        {str(item): seconds for queue in queues for item, seconds in queue.delayed.items()},
        [str(item) for queue in queues for item in queue.worked_on],
    )
