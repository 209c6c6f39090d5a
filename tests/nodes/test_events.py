"""Tests the events that kubelets record for pods, and what users read of them."""

import json
from typing import Any

import pytest

from fakeapiserver import Cluster
from fakeapiserver.client import synchronous
from fakeapiserver.nodes.behaviour import Failing
from fakeapiserver.nodes.pod_lifecycle.events import changes

Object = dict[str, Any]
WAITS: Object = {"waiting": {"reason": "ContainerCreating"}}
RUNS: Object = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
ENDED: Object = {"terminated": {"exitCode": 1}}
PRESENT = 'Container image "x" already present on machine and can be accessed by the pod'


def waits(reason: str, message: str = "") -> Object:
    return {"waiting": {"reason": reason, "message": message}}


@pytest.mark.parametrize(
    ("before", "after", "changed", "told"),
    [
        (None, WAITS, {}, []),
        (
            None,
            RUNS,
            {},
            [f"Normal Pulled {PRESENT}", "Normal Created Container created", "Normal Started Container started"],
        ),
        (RUNS, RUNS, {}, []),
        (
            WAITS,
            RUNS,
            {"imagePullPolicy": "Always"},
            [
                'Normal Pulling Pulling image "x"',
                'Normal Pulled Successfully pulled image "x" in 0s (0s including waiting). Image size: 0 bytes.',
                "Normal Created Container created",
                "Normal Started Container started",
            ],
        ),
        (
            WAITS,
            waits("ErrImagePull", "no such image"),
            {},
            [
                'Normal Pulling Pulling image "x"',
                'Warning Failed Failed to pull image "x": no such image',
                "Warning Failed Error: ErrImagePull",
            ],
        ),
        (
            waits("ErrImagePull", "no such image"),
            waits("ImagePullBackOff"),
            {},
            ['Normal BackOff Back-off pulling image "x"', "Warning Failed Error: ImagePullBackOff"],
        ),
        (RUNS, ENDED, {}, []),
        (
            RUNS,
            waits("CrashLoopBackOff"),
            {},
            ["Warning BackOff Back-off restarting failed container c in pod web_shop(u)"],
        ),
    ],
)
def test_a_containers_change_is_recorded(
    before: Object | None, after: Object, changed: Object, told: list[str]
) -> None:
    pod: Object = {
        "metadata": {"name": "web", "namespace": "shop", "uid": "u"},
        "spec": {"containers": [{"name": "c", "image": "x", **changed}]},
        "status": {"containerStatuses": [{"name": "c", "state": before}] if before is not None else []},
    }
    found = list(changes(pod, {"containerStatuses": [{"name": "c", "state": after}]}))
    assert [f"{one.type} {one.reason} {one.message}" for one in found] == told
    assert {one.field_path for one in found} <= {"spec.containers{c}"}


def test_users_read_them() -> None:
    with Cluster(nodes=1) as cluster, synchronous.connect(cluster.kubeconfig) as client:
        cluster.clock.stop()
        container = {"name": "c", "image": "x", "imagePullPolicy": "IfNotPresent"}
        made = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}}
        client.resource("pods", "default").create({**made, "spec": {"nodeName": "node-1", "containers": [container]}})
        cluster.settle()
        events = client.resource("events", "default").list()["items"]
        kubelets = [event for event in events if event["source"] == {"component": "kubelet", "host": "node-1"}]
        assert [event["reason"] for event in kubelets] == ["Pulled", "Created", "Started"]
        about = {json.dumps(event["involvedObject"].get("fieldPath")) for event in kubelets}
        assert about == {'"spec.containers{c}"'}


def test_changes_between_two_statuses_are_recorded_too() -> None:
    with Cluster(nodes=1) as cluster, synchronous.connect(cluster.kubeconfig) as client:
        cluster.clock.stop()
        container = {"name": "c", "image": "x", "livenessProbe": {"exec": {"command": ["check"]}}}
        made = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}}
        client.resource("pods", "default").create({**made, "spec": {"nodeName": "node-1", "containers": [container]}})
        cluster.nodes.script(name="web", probes={"liveness": Failing(times=2, message="no answer")})
        cluster.settle()
        cluster.clock.advance("1m")
        cluster.settle()
        events = client.resource("events", "default").list()["items"]
        unhealthy = [(event["message"], event["count"]) for event in events if event["reason"] == "Unhealthy"]
        assert unhealthy == [("Liveness probe failed: no answer", 2)]
