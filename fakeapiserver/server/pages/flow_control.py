"""The pages below /debug/api_priority_and_fairness: priority levels, their queues, and the requests in them, as text.

Upstream: k8s.io/apiserver/pkg/util/flowcontrol/apf_controller_debug.go, fairqueuing/queueset/types.go.

Queues take turns here, by no virtual time: NextDispatchR is 0. A request that found a free seat is shown in the first queue of its flow.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Final

from fakeapiserver.apimachinery.timestamp import rfc3339_micro
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.server.filters.flowcontrol.limits import Limiter, PriorityAndFairness
from fakeapiserver.server.filters.flowcontrol.queueset import QueueSet, Ticket, deal, flow_hash

Levels = Mapping[str, QueueSet]
Row = Sequence[object]
_PAGES: Final = "/debug/api_priority_and_fairness/"
_LEVEL_COLUMNS: Final = (
    *("PriorityLevelName", "ActiveQueues", "IsIdle", "IsQuiescing", "WaitingRequests", "ExecutingRequests"),
    *("DispatchedRequests", "RejectedRequests", "TimedoutRequests", "CancelledRequests"),
)
_QUEUE_COLUMNS: Final = (
    *("PriorityLevelName", "Index", "PendingRequests", "ExecutingRequests", "SeatsInUse", "NextDispatchR"),
    *("InitialSeatsSum", "MaxSeatsSum", "TotalWorkSum"),
)
_REQUEST_COLUMNS: Final = (
    *("PriorityLevelName", "FlowSchemaName", "QueueIndex", "RequestIndexInQueue", "FlowDistingsher", "ArriveTime"),
    *("InitialSeats", "FinalSeats", "AdditionalLatency", "StartTime"),
)
_DETAIL_COLUMNS: Final = ("UserName", "Verb", "APIPath", "Namespace", "Name", "APIVersion", "Resource", "SubResource")
_NEVER: Final = "0001-01-01T00:00:00Z"
# The work of a request that waits: a seat for 3 ms, in units of 10 ns (upstream: the estimated service duration).
_WORK: Final = 300_000
_NARROWEST: Final = 8


def page(request: Request, limiter: Limiter) -> Response | None:
    """Returns the page; None for unknown paths, and for all of them if priority and fairness are off."""
    if not request.path.startswith(_PAGES) or not isinstance(limiter, PriorityAndFairness):
        return None
    levels = dict(sorted(limiter.levels.items()))
    columns: Row
    rows: Iterator[Row]
    match request.path.removeprefix(_PAGES):
        case "dump_priority_levels":
            columns, rows = _LEVEL_COLUMNS, _levels(levels)
        case "dump_queues":
            columns, rows = _QUEUE_COLUMNS, _queues(levels)
        case "dump_requests":
            has_details = bool(request.param("includeRequestDetails"))
            columns = _REQUEST_COLUMNS + _DETAIL_COLUMNS if has_details else _REQUEST_COLUMNS
            rows = _requests(levels, has_details)
        case _:
            return None
    return Response(200, _aligned([columns, *rows]).encode(), "text/plain; charset=utf-8")


def _levels(levels: Levels) -> Iterator[Row]:
    for name, seats in levels.items():
        executing = len(seats.tickets) - seats.waiting
        idle = "false" if seats.tickets else "true"
        turns = (seats.dispatched, seats.rejected, seats.timed_out, seats.cancelled)
        yield (name, len(seats.lengths), idle, "false", seats.waiting, executing, *turns)


def _queues(levels: Levels) -> Iterator[Row]:
    for name, seats in levels.items():
        waiting = seats.lengths
        executing = Counter(_queue_of(ticket) for ticket in seats.tickets if ticket.started is not None)
        for index in range(seats.queuing.queues if seats.queuing is not None else 0):
            length = waiting.get(index, 0)
            used = executing[index]
            yield (name, index, length, used, used, _seat_seconds(0), length, length, _seat_seconds(length * _WORK))


def _requests(levels: Levels, has_details: bool) -> Iterator[Row]:
    """In each queue those that wait, in their order, then those that are executed; at last those without a queue."""
    for name, seats in levels.items():
        shown = sorted(seats.tickets, key=lambda ticket: ticket.started is not None)
        queues = sorted({_queue_of(ticket) for ticket in shown}, key=lambda queue: (queue < 0, queue))
        for queue in queues:
            positions = count()
            for ticket in (ticket for ticket in shown if _queue_of(ticket) == queue):
                position = next(positions) if ticket.started is None else -1
                row = (name, ticket.flow_schema, queue, position, *_ticket_cells(ticket))
                yield (*row, *_details(ticket.request)) if has_details else row


def _ticket_cells(ticket: Ticket) -> Row:
    started = _NEVER if ticket.started is None else _rfc3339_nano(ticket.started)
    return ticket.distinguisher, _rfc3339_nano(ticket.arrived), 1, 0, "0s", started


def _details(request: Request) -> Row:
    info = request.info
    version = f"{info.group}/{info.version}" if info.group else info.version
    return request.user.name, info.verb, info.path, info.namespace, info.name, version, info.resource, info.subresource


def _queue_of(ticket: Ticket) -> int:
    """The index of the ticket's queue; -1 at a level without queues."""
    queuing = ticket.seats.queuing
    if ticket.queue >= 0 or queuing is None:
        return ticket.queue
    return deal(flow_hash(ticket.flow_schema, ticket.distinguisher), queuing.queues, queuing.hand_size)[0]


def _seat_seconds(units: int) -> str:
    """Seats times seconds, with eight decimals (upstream: SeatSeconds).

    >>> _seat_seconds(300_000)
    '0.00300000ss'
    """
    whole, rest = divmod(units, 100_000_000)
    return f"{whole}.{rest:08}ss"


def _rfc3339_nano(seconds: float) -> str:
    """Go's RFC3339Nano: without zeros at the end of the fraction."""
    return rfc3339_micro(seconds).removesuffix("Z").rstrip("0").removesuffix(".") + "Z"


def _aligned(rows: Iterable[Row]) -> str:
    """Cells with commas between them, in columns of equal width.

    >>> _aligned([("Name", "Index"), ("global-default", 0)])
    'Name,           Index\\nglobal-default, 0\\n'
    """
    cells = [[f"{cell}," for cell in row[:-1]] + [str(row[-1])] for row in rows]
    widths = [max(_NARROWEST, *(len(cell) + 1 for cell in column)) for column in zip(*cells, strict=True)]
    return "".join("".join(map(str.ljust, row[:-1], widths)) + row[-1] + "\n" for row in cells)
