"""Priority and fairness and the plain limits: who is matched by what (recorded from a real server), who waits, who is rejected."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import pytest

from fakeapiserver.apimachinery.instruments import Instruments
from fakeapiserver.apis import bootstrap
from fakeapiserver.apis.scheme import load
from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.clock import Clock, SystemClock
from fakeapiserver.endpoints.request import Answered, Request, Response
from fakeapiserver.endpoints.request_info import request_info
from fakeapiserver.server.filters.flowcontrol.dropped import DroppedRequests
from fakeapiserver.server.filters.flowcontrol.limits import (
    FLOW_SCHEMAS,
    PRIORITY_LEVELS,
    Limiter,
    MaxInFlight,
    PriorityAndFairness,
)
from fakeapiserver.server.filters.flowcontrol.queueset import QueueSet, Queuing, deal
from fakeapiserver.server.pages import flow_control

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/x"
NODE_LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n"
AUTHENTICATED, UNAUTHENTICATED = "system:authenticated", "system:unauthenticated"
ACCOUNT, SYSTEM_ACCOUNT = "system:serviceaccount:default:x", "system:serviceaccount:kube-system:x"


class Stored:
    """The objects of a fresh server, uids being names; more can be added."""

    def __init__(self, *more: dict[str, Any]) -> None:
        self.generation_now = 1
        self.objects: dict[str, list[dict[str, Any]]] = {FLOW_SCHEMAS: [], PRIORITY_LEVELS: []}
        for obj in (*bootstrap.objects(load()), *more):
            resource = f"{obj['kind'].lower()}s.flowcontrol.apiserver.k8s.io"
            if resource in self.objects:
                obj["metadata"]["uid"] = obj["metadata"]["name"]
                self.objects[resource].append(obj)

    def list(self, resource: str, namespace: str = "") -> Sequence[Mapping[str, Any]]:
        return self.objects[resource]

    def generation(self, resources: tuple[str, ...]) -> int:
        return self.generation_now

    @property
    def revision(self) -> int:
        return self.generation_now


def request(method: str, path: str, user: str, *groups: str) -> Request:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request"}

    path, _, query = path.partition("?")
    info = request_info(method, path, watch="watch" in query)
    return Request(method, path, {}, [], receive, {}, info, UserInfo(user, groups=groups))


async def served(_: Request) -> Response:
    return Response(200)


def fairness(
    stored: Stored, concurrency: int = 600, max_wait: float = 15.0, clock: Clock | None = None
) -> PriorityAndFairness:
    return PriorityAndFairness(stored, clock or SystemClock(), concurrency, max_wait, Instruments())


MATCHES = [
    ("GET", "/api/v1/pods", "jane", (AUTHENTICATED,), "global-default global-default"),
    ("GET", "/api/v1/pods?watch=1", "jane", (AUTHENTICATED,), "global-default global-default"),
    ("GET", "/healthz", "jane", (AUTHENTICATED,), "probes exempt"),
    ("GET", "/healthz/ping", "jane", (AUTHENTICATED,), "probes exempt"),
    ("POST", "/healthz", "jane", (AUTHENTICATED,), "global-default global-default"),
    ("GET", "/healthzx", "jane", (AUTHENTICATED,), "global-default global-default"),
    ("GET", "/version", "system:anonymous", (UNAUTHENTICATED,), "global-default global-default"),
    ("GET", "/livez", "system:anonymous", (UNAUTHENTICATED,), "probes exempt"),
    ("GET", LEASE, "system:kube-scheduler", (AUTHENTICATED,), "system-leader-election leader-election"),
    ("DELETE", LEASE, "system:kube-scheduler", (AUTHENTICATED,), "kube-scheduler workload-high"),
    ("PUT", LEASE, "system:kube-controller-manager", (AUTHENTICATED,), "system-leader-election leader-election"),
    ("GET", "/api/v1/nodes", "system:kube-controller-manager", (AUTHENTICATED,), "kube-controller-manager workload-high"),
    ("GET", "/api/v1/pods", SYSTEM_ACCOUNT, ("system:serviceaccounts",), "kube-system-service-accounts workload-high"),
    ("GET", LEASE, SYSTEM_ACCOUNT, ("system:serviceaccounts",), "system-leader-election leader-election"),
    ("GET", "/api/v1/pods", ACCOUNT, ("system:serviceaccounts",), "service-accounts workload-low"),
    ("GET", "/foo", ACCOUNT, ("system:serviceaccounts",), "service-accounts workload-low"),
    ("PATCH", "/api/v1/nodes/n/status", "system:node:n", ("system:nodes",), "system-node-high node-high"),
    ("GET", NODE_LEASE, "system:node:n", ("system:nodes",), "system-node-high node-high"),
    ("GET", "/api/v1/pods", "system:node:n", ("system:nodes",), "system-nodes system"),
    ("GET", "/api/v1/pods", "root", ("system:masters", AUTHENTICATED), "exempt exempt"),
    ("GET", "/api/v1/pods", "nobody", (), "catch-all catch-all"),
    ("GET", "/api/v1/namespaces/default/pods/x/log", "jane", (AUTHENTICATED,), ""),
    ("GET", "/api/v1/namespaces/default/pods/x/exec", "jane", (AUTHENTICATED,), ""),
    ("GET", "/debug/pprof/heap", "jane", (AUTHENTICATED,), ""),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "user", "groups", "expected"), MATCHES)
def test_a_request_finds_its_flow_schema_and_level(
    method: str, path: str, user: str, groups: tuple[str, ...], expected: str
) -> None:
    found = request(method, path, user, *groups)
    asyncio.run(answered(fairness(Stored()), found, served))
    assert " ".join(value.decode() for _, value in found.response_headers) == expected
    assert [name for name, _ in found.response_headers] == [
        b"x-kubernetes-pf-flowschema-uid",
        b"x-kubernetes-pf-prioritylevel-uid",
    ][: len(expected.split())]


def schema(name: str, precedence: int, level: str) -> dict[str, Any]:
    rule = {
        "subjects": [{"kind": "Group", "group": {"name": "*"}}],
        "resourceRules": [
            {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}
        ],
    }
    spec = {
        "matchingPrecedence": precedence,
        "priorityLevelConfiguration": {"name": level},
        "rules": [rule],
        "distinguisherMethod": {"type": "ByUser"},
    }
    return {"kind": "FlowSchema", "metadata": {"name": name}, "spec": spec}


def level(name: str, shares: int, queuing: dict[str, int] | None) -> dict[str, Any]:
    response = {"type": "Queue", "queuing": queuing} if queuing else {"type": "Reject"}
    limited = {"nominalConcurrencyShares": shares, "limitResponse": response}
    return {
        "kind": "PriorityLevelConfiguration",
        "metadata": {"name": name},
        "spec": {"type": "Limited", "limited": limited},
    }


def test_a_change_applies_at_once_and_a_dangling_schema_is_ignored() -> None:
    stored = Stored()
    limiter = fairness(stored)
    stored.objects[FLOW_SCHEMAS] += [schema("lost", 2, "nowhere"), schema("mine", 3, "catch-all")]
    for obj in stored.objects[FLOW_SCHEMAS][-2:]:
        obj["metadata"]["uid"] = obj["metadata"]["name"]
    for generation, expected in ((1, b"mine"), (2, b"global-default")):
        stored.generation_now = generation
        found = request("GET", "/api/v1/pods", "jane", AUTHENTICATED)
        asyncio.run(answered(limiter, found, served))
        assert found.response_headers[0][1] == expected
        del stored.objects[FLOW_SCHEMAS][-1]


class Gate:
    """A handler that holds all requests until it is opened; `order` lists the users of the requests that ran."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.open = asyncio.Event()

    async def __call__(self, request: Request) -> Response:
        self.order.append(request.user.name)
        await self.open.wait()
        return Response(200)


async def answered(limiter: Limiter, request: Request, handler: Callable[[Request], Awaitable[Response]]) -> Response:
    """Returns the handler's response once the limiter lets the request run, or the limiter's refusal."""
    try:
        with await limiter.seat(request):
            return await handler(request)
    except Answered as refused:
        return refused.response


async def start(limiter: Limiter, gate: Gate, *users: str) -> list[asyncio.Task[Response]]:
    """Starts a request of each user, and lets all of them run as far as they get."""
    found = [request("GET", "/api/v1/pods", user, *(("system:masters",) if user == "root" else ())) for user in users]
    tasks = [asyncio.create_task(answered(limiter, one, gate)) for one in found]
    for _ in range(5):
        await asyncio.sleep(0)
    return tasks


TINY = {"queues": 1, "handSize": 1, "queueLengthLimit": 2}


def tiny(queuing: dict[str, int] | None) -> Stored:
    """Returns a configuration with a single seat for all users except the exempt."""
    stored = Stored(level("tiny", 1, queuing), schema("tiny", 2, "tiny"))
    stored.objects[PRIORITY_LEVELS] = [
        obj for obj in stored.objects[PRIORITY_LEVELS] if obj["metadata"]["name"] in ("tiny", "exempt")
    ]
    return stored


def test_a_queue_is_first_in_first_out_and_what_finds_it_full_is_rejected() -> None:
    async def main() -> None:
        gate = Gate()
        limiter = fairness(tiny(TINY), concurrency=1)
        tasks = await start(limiter, gate, "a", "b", "c", "d", "root")
        assert gate.order == ["a", "root"]
        rejected = await tasks[3]
        assert (rejected.status, rejected.body) == (429, b"Too many requests, please try again later.\n")
        assert (b"retry-after", b"1") in rejected.headers
        assert rejected.content_type == "text/plain; charset=utf-8"
        gate.open.set()
        assert [(await task).status for task in (*tasks[:3], tasks[4])] == [200, 200, 200, 200]
        assert gate.order == ["a", "root", "b", "c"]

    asyncio.run(main())


def test_a_level_may_reject_at_once() -> None:
    async def main() -> None:
        gate = Gate()
        tasks = await start(fairness(tiny(None), concurrency=1), gate, "a", "b")
        assert (await tasks[1]).status == 429
        gate.open.set()
        assert (await tasks[0]).status == 200

    asyncio.run(main())


def test_who_waits_too_long_is_rejected_and_leaves_no_trace() -> None:
    async def main() -> None:
        gate = Gate()
        limiter = fairness(tiny(TINY), concurrency=1, max_wait=0.01)
        tasks = await start(limiter, gate, "a", "b")
        assert (await tasks[1]).status == 429
        gate.open.set()
        await tasks[0]
        assert (await (await start(limiter, gate, "c"))[0]).status == 200

    asyncio.run(main())


def test_a_seat_given_to_a_request_that_is_gone_is_not_lost() -> None:
    async def main() -> None:
        seats = QueueSet(1, Queuing(1, 1, 5))
        assert seats.take()
        waiting = [asyncio.create_task(seats.wait(0, 5)) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()  # gone before it is its turn
        seats.leave()
        waiting[1].cancel()  # gone when it has just been given the seat
        assert await waiting[2]
        assert (seats.in_use, seats.waiting) == (1, 0)
        seats.leave()
        assert seats.take()

    asyncio.run(main())


def test_flows_take_turns() -> None:
    async def main() -> None:
        seats = QueueSet(1, Queuing(2, 1, 50))
        assert seats.take()
        order: list[str] = []

        async def run(flow: int, name: str) -> None:
            assert await seats.wait(flow, 5)
            order.append(name)
            seats.leave()

        greedy = [run(0, f"greedy{i}") for i in range(3)]
        tasks = [asyncio.create_task(one) for one in (*greedy, run(1, "modest"))]
        await asyncio.sleep(0)
        seats.leave()
        await asyncio.gather(*tasks)
        assert order == ["greedy0", "modest", "greedy1", "greedy2"]

    asyncio.run(main())


@pytest.mark.parametrize("entropy", [0, 1, 7, 2**63, 2**64 - 1])
def test_a_hand_has_different_queues(entropy: int) -> None:
    hand = deal(entropy, 128, 6)
    assert len(set(hand)) == 6
    assert all(0 <= card < 128 for card in hand)
    assert deal(entropy, 128, 6) == hand


def test_plain_limits_are_apart_and_spare_masters() -> None:
    async def main() -> None:
        gate = Gate()
        limiter = MaxInFlight(reading=1, mutating=1)
        tasks = await start(limiter, gate, "a", "b", "root")
        assert (await tasks[1]).status == 429
        assert gate.order == ["a", "root"]
        writing = asyncio.create_task(answered(limiter, request("POST", "/api/v1/namespaces", "a"), gate))
        watching = asyncio.create_task(answered(limiter, request("GET", "/api/v1/pods?watch=1", "a"), gate))
        gate.open.set()
        assert [(await task).status for task in (tasks[0], writing, watching)] == [200, 200, 200]

    asyncio.run(main())


class SteppedClock:
    def __init__(self) -> None:
        self.time = 100.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time


def test_clients_are_sent_away_for_longer_under_a_storm_and_for_less_after_it() -> None:
    clock = SteppedClock()
    dropped = DroppedRequests(clock)
    told = []
    for rejected in (1, 3, 6, 6, 6, 6):
        told.append([dropped.record("level") for _ in range(rejected)][-1])
        clock.time += 1
    assert told == [1, 1, 2, 2, 4, 4]
    clock.time += 30
    assert dropped.record("level") == 3


# Recorded from kube-apiserver 1.37.2, but for the numbers, names and times.
PAGES = {
    "dump_priority_levels": """\
PriorityLevelName, ActiveQueues, IsIdle, IsQuiescing, WaitingRequests, ExecutingRequests, DispatchedRequests, RejectedRequests, \
TimedoutRequests, CancelledRequests
exempt,            0,            false,  false,       0,               1,                 1,                  0,                \
0,                0
tiny,              1,            false,  false,       2,               1,                 1,                  1,                \
0,                0
""",
    "dump_queues": """\
PriorityLevelName, Index,  PendingRequests, ExecutingRequests, SeatsInUse, NextDispatchR, InitialSeatsSum, MaxSeatsSum, TotalWorkSum
tiny,              0,      2,               1,                 1,          0.00000000ss,  2,               2,           0.00600000ss
""",
    "dump_requests": """\
PriorityLevelName, FlowSchemaName, QueueIndex, RequestIndexInQueue, FlowDistingsher, ArriveTime,             InitialSeats, FinalSeats, \
AdditionalLatency, StartTime
exempt,            exempt,         -1,         -1,                  ,                1970-01-01T00:01:40.5Z, 1,            0,          \
0s,                1970-01-01T00:01:40.5Z
tiny,              tiny,           0,          0,                   b,               1970-01-01T00:01:40.5Z, 1,            0,          \
0s,                0001-01-01T00:00:00Z
tiny,              tiny,           0,          1,                   c,               1970-01-01T00:01:40.5Z, 1,            0,          \
0s,                0001-01-01T00:00:00Z
tiny,              tiny,           0,          -1,                  a,               1970-01-01T00:01:40.5Z, 1,            0,          \
0s,                1970-01-01T00:01:40.5Z
""",
}


@pytest.mark.parametrize("page", PAGES)
def test_debug_pages_show_levels_queues_and_requests(page: str) -> None:
    async def main() -> None:
        gate, clock = Gate(), SteppedClock()
        clock.time = 100.5
        limiter = fairness(tiny(TINY), concurrency=1, clock=clock)
        tasks = await start(limiter, gate, "a", "b", "c", "d", "root")
        asked = request("GET", f"/debug/api_priority_and_fairness/{page}", "root")
        shown = flow_control.page(asked, limiter)
        assert shown is not None
        assert (shown.status, shown.content_type) == (200, "text/plain; charset=utf-8")
        assert bytes(shown.body).decode() == PAGES[page]
        assert flow_control.page(asked, MaxInFlight(1, 1)) is None
        gate.open.set()
        await asyncio.gather(*tasks)
        assert not any(seats.tickets for seats in limiter.levels.values())

    asyncio.run(main())


def test_requests_are_shown_in_detail() -> None:
    async def main() -> None:
        gate, limiter = Gate(), fairness(tiny(TINY))
        tasks = await start(limiter, gate, "root")
        asked = request("GET", "/debug/api_priority_and_fairness/dump_requests", "root")
        asked.query = {"includeRequestDetails": ["1"]}
        shown = flow_control.page(asked, limiter)
        assert shown is not None
        columns, row = (line.split(",") for line in bytes(shown.body).decode().splitlines())
        assert [cell.strip() for cell in columns[10:]] == [
            *("UserName", "Verb", "APIPath", "Namespace", "Name", "APIVersion", "Resource", "SubResource")
        ]
        assert [cell.strip() for cell in row[10:]] == ["root", "list", "/api/v1/pods", "", "", "v1", "pods", ""]
        gate.open.set()
        await asyncio.gather(*tasks)

    asyncio.run(main())
