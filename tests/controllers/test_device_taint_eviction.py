"""Pods lose their nodes when devices they use are tainted, unless their claims tolerate it."""

from typing import Any

import pytest

from fakeapiserver.component_helpers.objects import DEVICE_TAINT_RULES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from tests.controllers.harness import Harness, Object, run

TAINT = {"key": "broken", "value": "x", "effect": "NoExecute"}
EXISTS = {"key": "broken", "operator": "Exists", "effect": "NoExecute"}


async def using_a_device(cluster: Harness, taints: list[Object], tolerations: list[Object]) -> None:
    """A pod on a node whose claim has got a device."""
    spec: Object = {"driver": "d.example.com", "pool": {"name": "pool", "generation": 1, "resourceSliceCount": 1}}
    devices = [{"name": "x", "taints": taints}]
    spec |= {"allNodes": True, "devices": devices}
    await cluster.create(RESOURCE_SLICES, {"metadata": {"name": "s"}, "spec": spec}, namespace="")
    requests = {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}
    await cluster.create(RESOURCE_CLAIMS, {"metadata": {"name": "c"}, "spec": {"devices": requests}})
    pod = {
        "nodeName": "n",
        "containers": [{"name": "c", "image": "x"}],
        "resourceClaims": [{"name": "r", "resourceClaimName": "c"}],
    }
    made = await cluster.create(PODS, {"metadata": {"name": "p"}, "spec": pod})
    result = {"request": "r", "driver": "d.example.com", "pool": "pool", "device": "x", "tolerations": tolerations}
    consumer = {"resource": "pods", "name": "p", "uid": made["metadata"]["uid"]}
    status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [consumer]}
    await cluster.patch_status(RESOURCE_CLAIMS, "c", status)


@pytest.mark.parametrize(
    ("taints", "tolerations", "goes"),
    [
        ([], [], False),
        ([{**TAINT, "effect": "NoSchedule"}], [], False),
        ([TAINT], [], True),
        ([TAINT], [EXISTS], False),
        ([TAINT], [{**EXISTS, "tolerationSeconds": 600}], False),
        ([TAINT], [{**EXISTS, "tolerationSeconds": -1}], True),
        ([TAINT], [{**EXISTS, "operator": "Equal", "value": "x"}], False),
        ([TAINT], [{**EXISTS, "operator": "Equal", "value": "y"}], True),
        # of all effects: but only what is said of NoExecute counts
        ([TAINT], [{"operator": "Exists"}], True),
        ([TAINT, {**TAINT, "key": "hot"}], [EXISTS], True),
    ],
)
def test_a_pod_goes_if_a_taint_is_not_tolerated(taints: list[Any], tolerations: list[Any], goes: bool) -> None:
    async def scenario(cluster: Harness) -> None:
        await using_a_device(cluster, taints, tolerations)
        pod = await cluster.get(PODS, "p")
        assert bool(pod["metadata"].get("deletionTimestamp")) == goes
        found = [row["reason"] for row in pod["status"].get("conditions") or () if row["type"] == "DisruptionTarget"]
        assert found == (["DeletionByDeviceTaintManager"] if goes else [])
        events = [("DeviceTaintManagerEviction", "Marking for deletion")] if goes else []
        assert await cluster.events() == events

    run(scenario, "device-taint-eviction-controller")


def test_a_pod_stays_when_the_taint_has_gone_in_time() -> None:
    async def scenario(cluster: Harness) -> None:
        await using_a_device(cluster, [TAINT], [{**EXISTS, "tolerationSeconds": 600}])
        found = await cluster.get(RESOURCE_SLICES, "s", namespace="")
        await cluster.of(RESOURCE_SLICES, "").update({**found, "spec": {**found["spec"], "devices": [{"name": "x"}]}})
        await cluster.settle()
        assert await cluster.events() == [("DeviceTaintManagerEviction", "Cancelling deletion")]

    run(scenario, "device-taint-eviction-controller")


def rule(effect: str, **selector: str) -> Object:
    return {
        "metadata": {"name": "rule"},
        "spec": {"deviceSelector": selector, "taint": {"key": "broken", "effect": effect}},
    }


async def condition(cluster: Harness) -> tuple[str, str]:
    """(reason, message) of the rule's only condition."""
    (found,) = (await cluster.get(DEVICE_TAINT_RULES, "rule", ""))["status"]["conditions"]
    return found["reason"], found["message"]


@pytest.mark.parametrize(
    ("selector", "goes"),
    [
        ({}, True),
        ({"driver": "d.example.com", "pool": "pool", "device": "x"}, True),
        ({"driver": "other.example.com"}, False),
        ({"driver": "d.example.com", "pool": "pool", "device": "y"}, False),
    ],
)
def test_a_rule_taints_the_devices_that_it_selects(selector: dict[str, str], goes: bool) -> None:
    async def scenario(cluster: Harness) -> None:
        await using_a_device(cluster, [], [])
        await cluster.create(DEVICE_TAINT_RULES, rule("NoExecute", **selector), "")
        pod = await cluster.get(PODS, "p")
        assert bool(pod["metadata"].get("deletionTimestamp")) == goes
        first = ("PodsPendingEviction", "1 pod needs to be evicted in 1 namespace.") if goes else ("NotStarted", "")
        assert await condition(cluster) == first
        await cluster.advance(11)
        last = ("Completed", "1 pod evicted since starting the controller.") if goes else first
        assert await condition(cluster) == last

    run(scenario, "device-taint-eviction-controller")


def test_a_rule_without_an_effect_says_what_it_would_do() -> None:
    async def scenario(cluster: Harness) -> None:
        await using_a_device(cluster, [], [])
        await cluster.create(DEVICE_TAINT_RULES, rule("None", driver="d.example.com"), "")
        reason, message = await condition(cluster)
        assert reason == "NoEffect"
        assert message.startswith(
            "1 published device selected. 1 allocated device selected. 1 pod would be evicted in 1 namespace if "
        )
        await cluster.of(DEVICE_TAINT_RULES, "").patch("rule", {"spec": {"taint": {"effect": "NoExecute"}}})
        await cluster.settle()
        assert (await cluster.get(PODS, "p"))["metadata"].get("deletionTimestamp")

    run(scenario, "device-taint-eviction-controller")


def test_a_pod_stays_if_its_rule_goes_in_time() -> None:
    async def scenario(cluster: Harness) -> None:
        await using_a_device(cluster, [], [{**EXISTS, "tolerationSeconds": 600}])
        await cluster.create(DEVICE_TAINT_RULES, rule("NoExecute", driver="d.example.com"), "")
        await cluster.of(DEVICE_TAINT_RULES, "").delete("rule")
        await cluster.settle()
        assert await cluster.events() == [("DeviceTaintManagerEviction", "Cancelling deletion")]

    run(scenario, "device-taint-eviction-controller")
