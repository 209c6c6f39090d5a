"""`cluster.reset`: whatever a test has changed is as it was."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fakeapiserver import Cluster
from fakeapiserver.cluster.reset import Mark
from tests.plain_client import Client

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = {
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}
POD = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}


@pytest.fixture(scope="module")
def marked() -> Iterator[tuple[Cluster, Mark]]:
    with Cluster(nodes=1, metrics=("resource",)) as cluster:
        Client(cluster).ask("POST", CONFIG_MAPS, {"metadata": {"name": "kept"}, "data": {"k": "1"}})
        yield cluster, cluster.mark()


def define_and_use(cluster: Cluster) -> None:
    client = Client(cluster)
    client.ask("POST", DEFINITIONS, WIDGETS)
    deadline = time.monotonic() + 60
    widgets = "/apis/example.com/v1/namespaces/default/widgets"
    body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    while client.status("POST", widgets, body) == 404 and time.monotonic() < deadline:
        time.sleep(0.01)


def objects(cluster: Cluster) -> dict[str, Any]:
    """Returns the stored objects, without leases and revisions."""
    found = {}
    for key, stored in cluster.snapshot().buckets.items():
        if key != "leases":
            for name, item in stored.items():
                obj = json.loads(item.value)
                obj["metadata"].pop("resourceVersion", None)
                found[name] = obj if key != "minions" else None
    return found


CHANGES: list[tuple[str, Callable[[Cluster], object], Callable[[Cluster], object]]] = [
    ("create", lambda c: Client(c).ask("POST", CONFIG_MAPS, {"metadata": {"name": "new"}}), objects),
    ("update", lambda c: Client(c).ask("PUT", f"{CONFIG_MAPS}/kept", {"metadata": {"name": "kept"}}), objects),
    ("delete", lambda c: Client(c).ask("DELETE", f"{CONFIG_MAPS}/kept"), objects),
    ("pod", lambda c: (Client(c).ask("POST", "/api/v1/namespaces/default/pods", POD), c.settle()), objects),
    ("definition", define_and_use, objects),
    ("namespace", lambda c: Client(c).ask("POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}}), objects),
    ("clock", lambda c: c.clock.advance("10m"), lambda c: abs(c.clock.now() - time.time()) < 60),
    ("stopped clock", lambda c: c.clock.stop(), lambda c: c._server.clock.stopped),  # type: ignore[attr-defined]
    ("mode", lambda c: c.controllers.__setitem__("job-controller", "off"), lambda c: c.controllers["job-controller"]),
    ("step", lambda c: c.controllers.__setitem__("namespace", "step"), lambda c: c.controllers["namespace"]),
    ("node", lambda c: c.nodes.stop("node-1"), lambda c: c._server.simulation.nodes["node-1"].runs),  # type: ignore[union-attr]
    ("metrics", lambda c: c.metrics.serve("*"), lambda c: c._server.api.metrics_apis.served),  # type: ignore[union-attr]
    ("requests", lambda c: Client(c).ask("GET", CONFIG_MAPS), lambda c: c._server.api.request_log.entries),  # type: ignore[union-attr]
    ("access", lambda c: Client(c).ask("GET", CONFIG_MAPS), lambda c: c.rbac.used("system:apiserver")),
]


@pytest.mark.parametrize(("change", "shown"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_what_was_changed_is_as_before(
    change: Callable[[Cluster], object], shown: Callable[[Cluster], object], marked: tuple[Cluster, Mark]
) -> None:
    cluster, mark = marked
    cluster.reset(mark)
    before = shown(cluster)
    change(cluster)
    assert shown(cluster) != before
    cluster.reset(mark)
    assert shown(cluster) == before
    cluster.settle()
    assert shown(cluster) == before


def test_open_watches_of_clients_end(marked: tuple[Cluster, Mark]) -> None:
    cluster, mark = marked
    with Client(cluster).open("GET", f"{CONFIG_MAPS}?watch=1&resourceVersion=0") as watch:
        assert json.loads(watch.readline())["object"]["kind"] == "ConfigMap"
        cluster.reset(mark)
        assert [json.loads(line)["type"] for line in watch.readlines()] in ([], ["ADDED"])


def test_a_cluster_works_on_as_if_it_was_new(marked: tuple[Cluster, Mark]) -> None:
    cluster, mark = marked
    for _ in range(3):
        cluster.reset(mark)
        Client(cluster).ask("POST", "/api/v1/namespaces/default/pods", POD)
        cluster.settle()
        assert Client(cluster).ask("GET", "/api/v1/namespaces/default/pods/a")["status"]["phase"] == "Running"
