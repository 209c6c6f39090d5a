"""A request costs the same however much a server holds, and a whole costs its share of calls: functions are counted, not time."""

import json
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPResponse, HTTPSConnection
from typing import Any, Final
from xml.etree import ElementTree

import pytest

from conformance.bench.growth.__main__ import growth, steep, table
from conformance.bench.growth.curves import Curve, Point, Row
from conformance.bench.growth.pictures import picture
from conformance.bench.in_process.calls import Counter, Request, Sender, config_map, counting
from fakeapiserver import Cluster

_MAPS: Final = "/api/v1/namespaces/default/configmaps"
_MERGE: Final = "application/merge-patch+json"
_FEW: Final = 40
_MANY: Final = 640
# By how much the calls of one request may differ, and those of a whole may be above its share.
_SAME: Final = 1.1
_LINEAR: Final = 1.3


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Cluster, Sender, Counter]]:
    with Cluster(controllers=(), seed=1) as cluster, Sender(cluster) as sender, counting(cluster) as counter:
        yield cluster, sender, counter


def calls_of(sender: Sender, counter: Counter, new: Callable[[int], Request]) -> int:
    """Returns the fewest calls of some equal requests, the first of which may fill caches."""
    found = []
    for number in range(6):
        before = counter.calls
        sender.send(new(number))
        found.append(counter.calls - before)
    return min(found)


def test_requests_for_one_object_cost_the_same_among_many(served: tuple[Cluster, Sender, Counter]) -> None:
    _, sender, counter = served
    there, costs = 0, []
    for count in (_FEW, _MANY):
        for number in range(there, count):
            sender.send(("POST", _MAPS, config_map(f"a-{number}"), ""))
        there = count
        kinds: dict[str, Callable[[int], Request]] = {
            "get": lambda _: ("GET", f"{_MAPS}/a-0", None, ""),
            "create": lambda number, count=count: ("POST", _MAPS, config_map(f"of-{count}-{number}"), ""),  # type: ignore[misc]
            "patch": lambda number, count=count: (  # type: ignore[misc]
                "PATCH",
                f"{_MAPS}/a-1",
                {"data": {"k": f"{count} {number}"}},
                _MERGE,
            ),
            "page": lambda _: ("GET", f"{_MAPS}?limit=10", None, ""),
            "delete": lambda number, count=count: ("DELETE", f"{_MAPS}/of-{count}-{number}", None, ""),  # type: ignore[misc]
        }
        costs.append({name: calls_of(sender, counter, new) for name, new in kinds.items()})
    steeper = {name: (few, costs[1][name]) for name, few in costs[0].items() if costs[1][name] > few * _SAME}
    assert not steeper


@pytest.mark.parametrize("query", ["", "?labelSelector=app%3Dbench", "?fieldSelector=metadata.name%3Da-1"])
def test_a_list_is_linear(query: str) -> None:
    costs = []
    with Cluster(controllers=(), seed=2) as cluster, Sender(cluster) as sender, counting(cluster) as counter:
        there = 0
        for count in (_FEW, _MANY):
            for number in range(there, count):
                sender.send(("POST", _MAPS, config_map(f"a-{number}"), ""))
            there = count
            costs.append(calls_of(sender, counter, lambda _: ("GET", _MAPS + query, None, "")))
    assert costs[1] <= costs[0] * _MANY / _FEW * _LINEAR


def test_definitions_cost_nothing_at_custom_objects(served: tuple[Cluster, Sender, Counter]) -> None:
    cluster, sender, counter = served
    path, costs, there = "/apis/example.com/v1/namespaces/default/kinds0", [], 0
    for count in (2, 24):
        cluster.apply([_definition(number) for number in range(there, count)])
        there = count

        def new(number: int, count: int = count) -> Request:
            body = {"apiVersion": "example.com/v1", "kind": "Kind0", "metadata": {"name": f"x-{count}-{number}"}}
            return "POST", path, body, ""

        costs.append(calls_of(sender, counter, new))
    assert costs[1] <= costs[0] * _SAME


def _definition(number: int) -> dict[str, Any]:
    names = {"plural": f"kinds{number}", "singular": f"kind{number}", "kind": f"Kind{number}"}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"kinds{number}.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }


def test_an_event_costs_each_watcher_the_same() -> None:
    costs = {}
    with Cluster(controllers=(), seed=3) as cluster, Sender(cluster) as sender:
        sender.send(("POST", _MAPS, config_map("watched"), ""))
        for count in (0, 8, 64):
            with _watchers(cluster, count) as watchers, counting(cluster) as counter:
                found = []
                for number in range(5):
                    before = counter.calls
                    body = {"data": {"key": f"{count} {number}"}}
                    sender.send(("PATCH", f"{_MAPS}/watched", body, _MERGE))
                    for watcher in watchers:
                        assert json.loads(watcher.readline())["type"] == "MODIFIED"
                    found.append(counter.calls - before)
                costs[count] = min(found)
    assert costs[64] - costs[0] <= (costs[8] - costs[0]) * 8 * _LINEAR


@contextmanager
def _watchers(cluster: Cluster, count: int) -> Iterator[list[HTTPResponse]]:
    context = ssl.create_default_context(cadata=cluster.ca.decode())
    version = cluster.get("cm/watched")["metadata"]["resourceVersion"]
    with ExitStack() as stack:
        answers = []
        for _ in range(count):
            connection = HTTPSConnection(cluster.url.removeprefix("https://"), context=context)
            stack.callback(connection.close)
            headers = {"Authorization": f"Bearer {cluster.token}"}
            connection.request("GET", f"{_MAPS}?watch=true&resourceVersion={version}", headers=headers)
            answers.append(connection.getresponse())
        yield answers


def test_the_controllers_work_for_each_pod_the_same() -> None:
    costs = {}
    for count in (10, 80):
        with Cluster(seed=4, nodes=2) as cluster:
            cluster.settle()
            with counting(cluster) as counter:
                cluster.apply(_deployment(count))
                cluster.settle()
                costs[count] = counter.calls
                assert cluster.get("deploy/web")["status"]["readyReplicas"] == count
    assert costs[80] <= costs[10] * 8 * _LINEAR


def _deployment(replicas: int) -> dict[str, Any]:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def test_what_is_steeper_is_marked() -> None:
    rows = {"flat": Row("get", "ms"), "whole": Row("list", "ms", 1)}
    curve = Curve("Things", "things", rows, (10, 100), lambda start, counts: iter(()))
    points = [Point(10, {"flat": 1.0, "whole": 1.0}), Point(100, {"flat": 1.1, "whole": 10.0}, 60.0, "list: task")]
    assert not steep(curve, points)
    assert growth(points, "whole") == pytest.approx(1.0)
    lines = [*table(curve, points)]
    assert lines[0] == "| Things | 10 | 100 | power |"
    assert lines[-1] == "| longest step | 0.00 ms | 60.0 ms (list: task) | |"
    points[1].figures = {"flat": 3.0, "whole": 100.0}
    assert [*steep(curve, points)] == ["flat", "whole"]
    assert "(steep)" in "\n".join(table(curve, points))


def test_a_picture_has_each_point() -> None:
    root = ElementTree.fromstring(picture("A & B", "things", {"a < b, ms": [(1, 0.5), (100, 20)], "c, s": [(10, 1)]}))
    space = "{http://www.w3.org/2000/svg}"
    assert len(root.findall(f"{space}circle")) == 3
    assert {"A & B", "things", "a < b, ms", "c, s", "100"} <= {text.text for text in root.iter(f"{space}text")}
