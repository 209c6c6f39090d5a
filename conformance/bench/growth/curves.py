"""The measured curves: the things that are counted, up to how many, and what it costs."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from conformance.bench.beside import beside
from conformance.bench.growth.running import SteppedServer

# Starts a server with these flags.
Start = Callable[[Sequence[str]], AbstractContextManager[SteppedServer]]
_DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/default/deployments"
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_NAMESPACES: Final = "/api/v1/namespaces"
_SMALL: Final = 200
_POLL_SECONDS: Final = 0.2
_IDLE_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Row:
    """A figure of a curve. `power`: the power of the counted number with which it may grow: 0 for what each one costs, 1 for the whole."""

    title: str
    unit: str
    power: int = 0


@dataclass(slots=True)
class Point:
    """The costs of `count` things, by the rows' keys, and the longest step of the event loop in milliseconds."""

    count: int
    figures: dict[str, float] = field(default_factory=dict)
    step: float = 0.0
    step_name: str = ""


@dataclass(frozen=True, slots=True)
class Curve:
    """`measure` yields the points for increasing counts. `counts` are the default ones, `more` those that take long."""

    title: str
    axis: str
    rows: dict[str, Row]
    counts: Sequence[int]
    measure: Callable[[Start, Sequence[int]], Iterator[Point]]
    more: Sequence[int] = ()


class _Meter:
    """Measures a server's work for a point."""

    def __init__(self, server: SteppedServer, count: int) -> None:
        self._server = server
        self.point = Point(count)

    @contextmanager
    def work(self, key: str, each: float = 1.0) -> Iterator[None]:
        """Puts down the processor time of the block in milliseconds, divided by `each`, and its longest step."""
        before = self._server.take()
        yield
        after = self._server.take()
        self.point.figures[key] = (after.processor - before.processor) * 1000 / each
        if after.step > self.point.step:
            self.point.step, self.point.step_name = after.step, f"{key}: {after.name}"

    def requests(self, prefix: str, writes: int, reads: int, **flags: object) -> None:
        """Puts down what each of `writes` creates, `reads` gets and `writes` merge patches of config maps costs, as `create`, `get` and
        `patch`. `flags` are those of the load generator."""
        for key, number in (("create", writes), ("get", reads), ("patch", writes)):
            with self.work(key, number):
                self._server.load(key, number, prefix=prefix, objects=writes, **flags)

    def memory(self, key: str, each: float, since: int) -> None:
        """Puts down by how many KiB the resident memory has grown above `since` bytes, divided by `each`."""
        self.point.figures[key] = (self._server.take().resident - since) / 1024 / each


def _objects(start: Start, counts: Sequence[int]) -> Iterator[Point]:
    with start([]) as server:
        server.load("create", 100, prefix="warm", size=_SMALL)
        empty, there = server.take().resident, 100
        for count in counts:
            meter = _Meter(server, count)
            if count > there:
                server.load("fill", count - there, clients=4, prefix=f"upto{count}", size=_SMALL)
                there = count
                meter.memory("memory", there, empty)
            meter.requests(f"at{count}", 200, 500, size=_SMALL)
            there += 200
            with meter.work("list"):
                server.load("list", 1)
            with meter.work("selector"):
                server.load("selector", 1)
            with meter.work("page", 20):
                server.load("page", 20)
            yield meter.point


def _watchers(start: Start, counts: Sequence[int]) -> Iterator[Point]:
    for count in counts:
        with start([]) as server:
            server.load("create", 100, prefix="warm")
            meter, few, many = _Meter(server, count), 20, 120
            resident, most = server.take().resident, [0]
            with meter.work("event", (many - few) * count), beside(lambda: most.append(server.resident), _POLL_SECONDS):  # noqa: B023
                server.load("watch", many, clients=count, prefix="many")
            with meter.work("begin", count):
                server.load("watch", few, clients=count, prefix="few")
            event, begin = meter.point.figures["event"], meter.point.figures["begin"]
            meter.point.figures["event"] = max(event - begin / (many - few), 1e-4) * 1000
            meter.point.figures["memory"] = max(max(most) - resident, 4096) / 1024 / count
            yield meter.point


def _definitions(start: Start, counts: Sequence[int]) -> Iterator[Point]:
    with start([]) as server:
        server.load("create", 100, prefix="warm")
        empty, there = server.take().resident, 0
        for count in counts:
            meter = _Meter(server, count)
            with meter.work("define", count - there):
                for number in range(there, count):
                    server.send("POST", _DEFINITIONS, _definition(number))
                _until(lambda number=count - 1: _is_served(server, number))  # type: ignore[misc]
            there = count
            meter.memory("memory", count, empty)
            with meter.work("use", 100):
                for number in range(100):
                    body = {"apiVersion": "example.com/v1", "kind": "Kind0", "metadata": {"name": f"{count}-{number}"}}
                    server.send("POST", "/apis/example.com/v1/namespaces/default/kinds0", body)
            with meter.work("discovery", 10):
                for _ in range(10):
                    server.send("GET", "/apis/example.com/v1")
            with meter.work("openapi"):
                server.send("GET", "/openapi/v2")
            yield meter.point


def _is_served(server: SteppedServer, number: int) -> bool:
    names = {row["name"] for row in server.send("GET", "/apis/example.com/v1").get("resources", ())}
    return f"kinds{number}" in names


def _namespaces(start: Start, counts: Sequence[int]) -> Iterator[Point]:
    with start(["--controllers=*"]) as server:
        server.load("create", 100, prefix="warm")
        empty, there = server.take().resident, 0
        for count in counts:
            meter = _Meter(server, count)
            with meter.work("create", count - there):
                for number in range(there, count):
                    server.send("POST", _NAMESPACES, {"metadata": {"name": f"space-{number}"}})
                _until(lambda last=count - 1: _has_account(server, last))  # type: ignore[misc]
            there = count
            meter.memory("memory", count, empty)
            with meter.work("list"):
                server.send("GET", _NAMESPACES)
            with meter.work("delete", 10):
                for number in range(count - 10, count):
                    server.send("DELETE", f"{_NAMESPACES}/space-{number}")
                _until(lambda last=count - 1: _is_gone(server, f"{_NAMESPACES}/space-{last}"))  # type: ignore[misc]
            there -= 10
            yield meter.point


def _has_account(server: SteppedServer, number: int) -> bool:
    return not _is_gone(server, f"{_NAMESPACES}/space-{number}/serviceaccounts/default")


def _is_gone(server: SteppedServer, path: str) -> bool:
    return bool(server.client.send({"method": "GET", "path": path}, [])["status"] == 404)


def _nodes(start: Start, counts: Sequence[int]) -> Iterator[Point]:
    for count in counts:
        with start(["--controllers=*", f"--nodes={count}"]) as server:
            meter = _Meter(server, count)
            meter.point.figures["start"] = server.started.processor
            meter.point.figures["memory"] = server.started.resident / 2**20
            with meter.work("idle", _IDLE_SECONDS):
                time.sleep(_IDLE_SECONDS)
            with meter.work("pods", 100):
                server.send("POST", _DEPLOYMENTS, _deployment("web", 100))
                _until(lambda: _ready_pods(server) == 100)
            yield meter.point


def _clients(start: Start, counts: Sequence[int]) -> Iterator[Point]:
    with start([]) as server:
        server.load("create", 300, prefix="warm")
        for count in counts:
            meter = _Meter(server, count)
            # many for each connection, whose handshake isn't what is measured
            meter.requests(f"by{count}", 5000, 15_000, clients=count)
            yield meter.point


def _size(start: Start, counts: Sequence[int]) -> Iterator[Point]:
    with start([]) as server:
        server.load("create", 300, prefix="warm")
        for count in counts:
            meter = _Meter(server, count)
            meter.requests(f"of{count}", 40, 40, size=count)
            yield meter.point


def _settle(start: Start, counts: Sequence[int]) -> Iterator[Point]:
    for count in counts:
        with start(["--controllers=*", f"--nodes={max(count // 50, 2)}"]) as server:
            before = server.take()
            meter = _Meter(server, count)
            begun = time.monotonic()
            with meter.work("pod", count):
                for number in range(10):
                    server.send("POST", _DEPLOYMENTS, _deployment(f"web-{number}", count // 10))
                _until(lambda pods=count: _ready_pods(server) == pods, 3600.0)  # type: ignore[misc]
            meter.point.figures["seconds"] = time.monotonic() - begun
            meter.memory("memory", count, before.resident)
            yield meter.point


def _ready_pods(server: SteppedServer) -> int:
    rows = server.send("GET", _DEPLOYMENTS)["items"]
    return sum(row.get("status", {}).get("readyReplicas", 0) for row in rows)


def _until(holds: Callable[[], bool], seconds: float = 600.0) -> None:
    """Raises TimeoutError."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"it took more than {seconds:.0f} s")
        time.sleep(_POLL_SECONDS)


def _definition(number: int) -> dict[str, Any]:
    names = {"plural": f"kinds{number}", "singular": f"kind{number}", "kind": f"Kind{number}"}
    fields = {name: {"type": "string", "maxLength": 100} for name in ("color", "shape", "owner")}
    spec = {"type": "object", "properties": {**fields, "size": {"type": "integer", "minimum": 0}}}
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"kinds{number}.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }


def _deployment(name: str, replicas: int) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


CURVES: Final = {
    "objects": Curve(
        "Config maps of 200 bytes",
        "objects",
        {
            "create": Row("create", "ms"),
            "get": Row("get", "ms"),
            "patch": Row("merge patch", "ms"),
            "page": Row("page of 500", "ms"),
            "selector": Row("list by label", "ms", 1),
            "list": Row("list of all", "ms", 1),
            "memory": Row("memory of each", "KiB"),
        },
        (100, 1000, 10_000, 100_000),
        _objects,
        (1_000_000,),
    ),
    "watchers": Curve(
        "Watchers of one collection",
        "watchers",
        {
            "event": Row("event of a watcher", "us"),
            "begin": Row("connection, TLS, watch, 20 events", "ms"),
            "memory": Row("memory of each", "KiB"),
        },
        (1, 10, 100, 1000),
        _watchers,
        (10_000,),
    ),
    "definitions": Curve(
        "CustomResourceDefinitions of one group",
        "definitions",
        {
            "define": Row("create, until it is served", "ms"),
            "use": Row("create a custom object", "ms"),
            "discovery": Row("/apis/GROUP/VERSION", "ms", 1),
            "openapi": Row("/openapi/v2", "ms", 1),
            "memory": Row("memory of each", "KiB"),
        },
        (1, 10, 100, 1000),
        _definitions,
    ),
    "namespaces": Curve(
        "Namespaces, with the controllers' objects in each",
        "namespaces",
        {
            "create": Row("create, with its account", "ms"),
            "delete": Row("delete", "ms"),
            "list": Row("list of all", "ms", 1),
            "memory": Row("memory of each", "KiB"),
        },
        (100, 1000),
        _namespaces,
        (10_000,),
    ),
    "nodes": Curve(
        "Simulated nodes",
        "nodes",
        {
            "start": Row("start", "s", 1),
            "idle": Row("second at rest", "ms", 1),
            "pods": Row("pod of a deployment of 100", "ms"),
            "memory": Row("memory of the server", "MiB", 1),
        },
        (10, 100, 1000),
        _nodes,
        (5000,),
    ),
    "clients": Curve(
        "Clients at the same time",
        "clients",
        {"create": Row("create", "ms"), "get": Row("get", "ms"), "patch": Row("merge patch", "ms")},
        (1, 4, 16, 64, 256),
        _clients,
    ),
    "size": Curve(
        "Size of an object",
        "bytes",
        {"create": Row("create", "ms", 1), "get": Row("get", "ms", 1), "patch": Row("merge patch", "ms", 1)},
        (1000, 10_000, 100_000, 1_000_000),
        _size,
    ),
    "settle": Curve(
        "Pods of ten deployments on simulated nodes, 50 on each, until all are ready",
        "pods",
        {
            "pod": Row("pod", "ms"),
            "seconds": Row("until all are ready (by the clock on the wall)", "s", 1),
            "memory": Row("memory of each", "KiB"),
        },
        (100, 1000),
        _settle,
        (10_000, 100_000),
    ),
}
