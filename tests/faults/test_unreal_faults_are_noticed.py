"""The checker of watches (testing/watch_history.py) notices every unreal fault, and no fault that a real API server can have."""

import json
from collections.abc import Iterator
from contextlib import suppress
from http.client import IncompleteRead
from typing import Any

import pytest

from fakeapiserver import Cluster
from fakeapiserver.testing.watch_history import Event, Watch, Write, violations
from tests.plain_client import Client

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(controllers=()) as cluster:
        yield cluster


def write(cluster: Cluster) -> None:
    """Creates, changes and deletes objects in one burst, twice."""
    for turn in "12":
        for name in "abcd":
            cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"turn": turn}})
        for name in "ab":
            cluster.delete("configmaps", name)


def log_of(cluster: Cluster, after: int) -> list[Write]:
    """The writes of config maps after a revision at which no config map existed."""
    writes = []
    for change in cluster.changes(after=after):
        obj = change.after or change.before
        assert obj is not None
        if change.resource == "configmaps" and obj["metadata"]["namespace"] == "default":
            shown = change.after and {"kind": "ConfigMap", "apiVersion": "v1", **change.after}
            writes.append(Write(change.revision, obj["metadata"]["name"], shown))
    return writes


def seen(cluster: Cluster, start: int) -> list[Event]:
    """The events of a watch from a revision until it ends by itself, or is broken off."""
    lines: list[bytes] = []
    query = f"watch=true&allowWatchBookmarks=true&timeoutSeconds=1&resourceVersion={start}"
    with Client(cluster).open("GET", f"{CONFIG_MAPS}?{query}") as answer, suppress(IncompleteRead, ConnectionError):
        lines += answer
    return [event for line in lines if (event := json.loads(line))["type"] != "ERROR"]


@pytest.mark.parametrize(
    ("fields", "is_real"),
    [
        ({"delay": "200ms"}, True),
        ({"lag": 2}, True),
        ({"stop_after": 3, "end": "clean"}, True),
        ({"stop_after": 3, "end": "cut"}, True),
        ({"stop_after": 3, "expire": "now"}, True),
        ({"bookmarks": False}, True),
        ({"latency": "100ms"}, True),
        ({"stale": 3}, True),
        ({"duplicate": True, "unreal": True}, False),
        ({"reorder": True, "unreal": True}, False),
        ({"lose": 2, "unreal": True}, False),
        ({"lose": 5, "unreal": True}, False),
    ],
)
def test_a_watch_with_a_fault(fields: dict[str, Any], is_real: bool, cluster: Cluster) -> None:
    client = Client(cluster)
    client.status("DELETE", CONFIG_MAPS)
    start = int(client.ask("GET", CONFIG_MAPS)["metadata"]["resourceVersion"])
    write(cluster)
    with cluster.faults.add(resource="configmaps", verb="watch", **fields):
        events = seen(cluster, start)
    # Whether events at the end are missing can only be said of watches that were not held back or ended.
    complete = not fields.keys() & {"stop_after", "lag", "stale"}
    problems = violations(log_of(cluster, start), Watch(start, events, complete=complete))
    assert (problems == []) is is_real, problems


def test_a_watch_that_coalesces(cluster: Cluster) -> None:
    """States are left out as for a client that lists again, but the order and the end are right."""
    client = Client(cluster)
    client.status("DELETE", CONFIG_MAPS)
    start = int(client.ask("GET", CONFIG_MAPS)["metadata"]["resourceVersion"])
    write(cluster)
    with cluster.faults.add(resource="configmaps", verb="watch", coalesce="200ms"):
        events = seen(cluster, start)
    revisions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert revisions == sorted(revisions)
    cached: dict[str, object] = {}
    for event in events:
        if event["type"] == "DELETED":
            cached.pop(event["object"]["metadata"]["name"], None)
        elif event["type"] != "BOOKMARK":
            cached[event["object"]["metadata"]["name"]] = event["object"]["data"]
    assert cached == {obj["metadata"]["name"]: obj["data"] for obj in client.ask("GET", CONFIG_MAPS)["items"]}
    assert len(events) < len(log_of(cluster, start))


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        (1, ["ADDED a", "MODIFIED a", "DELETED a"]),
        ((1, 3), []),
        (2, ["ADDED a", "MODIFIED a", "DELETED a"]),
        ((2, 3), ["ADDED a", "DELETED a"]),
        ((1, 4), []),
        ((1, 9), []),
        ((3, 3), ["ADDED a", "MODIFIED a", "DELETED a"]),
    ],
)
def test_states_that_are_never_seen(states: Any, expected: list[str], cluster: Cluster) -> None:
    """Four writes of an object; the events of the other one come with them, in the order of their revisions."""
    client = Client(cluster)
    client.status("DELETE", CONFIG_MAPS)
    start = int(client.ask("GET", CONFIG_MAPS)["metadata"]["resourceVersion"])
    for turn in "123":
        for name in "ab":
            cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"turn": turn}})
    for name in "ab":
        cluster.delete("configmaps", name)
    with cluster.faults.add(resource="configmaps", unobserved="default/a", states=states):
        events = [event for event in seen(cluster, start) if event["type"] != "BOOKMARK"]
    shown = [f"{event['type']} {event['object']['metadata']['name']}" for event in events]
    assert [each for each in shown if each.endswith(" a")] == expected
    revisions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert revisions == sorted(revisions)


def test_states_are_held_back_until_the_fault_is_removed(cluster: Cluster) -> None:
    client = Client(cluster)
    client.status("DELETE", CONFIG_MAPS)
    start = int(client.ask("GET", CONFIG_MAPS)["metadata"]["resourceVersion"])
    cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    fault = cluster.faults.add(resource="configmaps", unobserved="a")
    query = f"watch=true&timeoutSeconds=5&resourceVersion={start}"
    with Client(cluster).open("GET", f"{CONFIG_MAPS}?{query}") as answer:
        fault.wait()
        fault.remove()
        assert json.loads(answer.readline())["type"] == "ADDED"
