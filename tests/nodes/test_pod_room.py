"""The room that pods hold on a simulated node: it is free as soon as the scheduler counts it as free."""

from types import SimpleNamespace
from typing import Any

import pytest

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.cache.indexer import Indexer
from fakeapiserver.controller_runtime.event import DeleteEvent, Event, UpdateEvent
from fakeapiserver.nodes.kubelet import Pods
from fakeapiserver.nodes.simulation import Simulation

NODE = {"metadata": {"name": "node-1"}, "status": {"allocatable": {"cpu": "32", "pods": "110"}}}


def pod(name: str, phase: str = "Pending") -> Object:
    containers = [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "20"}}}]
    metadata = {"namespace": "default", "name": name, "uid": name}
    return {"metadata": metadata, "spec": {"nodeName": "node-1", "containers": containers}, "status": {"phase": phase}}


@pytest.mark.parametrize(
    ("event", "is_free"),
    [
        (UpdateEvent(pod("first"), pod("first", "Running")), False),
        (UpdateEvent(pod("first"), pod("first", "Failed")), True),
        (UpdateEvent(pod("first"), pod("first", "Succeeded")), True),
        (DeleteEvent(pod("first")), True),
    ],
)
def test_an_event_frees_the_room_before_the_next_pod_is_looked_at(event: Event, is_free: bool) -> None:
    context: Any = SimpleNamespace(informer=lambda *_, **__: SimpleNamespace(indexer=Indexer()))
    simulation = Simulation(1)
    pods = Pods(context, simulation)
    pods.nodes.indexer.add(NODE)
    node = simulation.nodes["node-1"]
    assert pods._refusal(pod("first"), node, 0.0) is None
    queue: Any = SimpleNamespace(add=lambda request: None)
    pods.changed(event, queue)
    refused = pods._refusal(pod("second"), node, 0.0)
    assert (refused is None) == is_free
