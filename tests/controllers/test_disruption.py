"""Tests pod disruption budgets: how many pods may be disrupted, and what happens to pods whose eviction didn't succeed."""

from typing import Any

import pytest

from fakeapiserver.apimachinery.gvk import GroupVersionResource
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.component_helpers.objects import (
    DEPLOYMENTS,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
)
from tests.controllers.harness import Harness, Object
from tests.controllers.harness import run as run_with

CRDS = GroupVersionResource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
TEMPLATE = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "c", "image": "nginx"}]},
}


def run(scenario: Any) -> None:
    run_with(scenario, "disruption-controller")


def budget(**spec: Any) -> Object:
    return {"metadata": {"name": "pdb"}, "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec}}


def owned_by(owner: Object) -> Object:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }


def workload(name: str, replicas: int, *owners: Object) -> Object:
    return {
        "metadata": {"name": name, "labels": {"app": "web"}, "ownerReferences": [*owners]},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE},
    }


async def pods(cluster: Harness, ready: int, unready: int = 0, *owners: Object) -> None:
    for number in range(ready + unready):
        name = f"web-{number}"
        metadata = {"name": name, "labels": {"app": "web"}, "ownerReferences": [*owners]}
        holds = "True" if number < ready else "False"
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": holds}]}
        await cluster.create(PODS, {"metadata": metadata, "spec": TEMPLATE["spec"], "status": status})


async def status(cluster: Harness) -> Object:
    found: Object = (await cluster.get(POD_DISRUPTION_BUDGETS, "pdb"))["status"]
    return found


async def counts(cluster: Harness) -> tuple[int, int, int, int, str]:
    """Healthy, desired, expected, allowed; the reason of the condition."""
    found = await status(cluster)
    names = ("currentHealthy", "desiredHealthy", "expectedPods", "disruptionsAllowed")
    healthy, desired, expected, allowed = (found[name] for name in names)
    return healthy, desired, expected, allowed, found["conditions"][0]["reason"]


@pytest.mark.parametrize(
    ("spec", "replicas", "ready", "unready", "expected"),
    [
        ({"minAvailable": 2}, 3, 3, 0, (3, 2, 3, 1, "SufficientPods")),
        ({"minAvailable": 2}, 9, 2, 1, (2, 2, 3, 0, "InsufficientPods")),
        ({"minAvailable": "50%"}, 5, 4, 1, (4, 3, 5, 1, "SufficientPods")),
        ({"minAvailable": "100%"}, 2, 2, 0, (2, 2, 2, 0, "InsufficientPods")),
        ({"maxUnavailable": 1}, 3, 3, 0, (3, 2, 3, 1, "SufficientPods")),
        ({"maxUnavailable": "30%"}, 4, 4, 0, (4, 2, 4, 2, "SufficientPods")),
        ({"maxUnavailable": 9}, 2, 1, 0, (1, 0, 2, 1, "SufficientPods")),
        ({"maxUnavailable": "0%"}, 2, 2, 0, (2, 2, 2, 0, "InsufficientPods")),
    ],
)
@pytest.mark.parametrize("resource", [REPLICA_SETS, STATEFUL_SETS], ids=str)
def test_a_budget_counts_pods_and_what_their_controllers_want(
    resource: GroupVersionResource,
    spec: Object,
    replicas: int,
    ready: int,
    unready: int,
    expected: tuple[int, int, int, int, str],
) -> None:
    async def scenario(cluster: Harness) -> None:
        obj = workload("web", replicas)
        owner = await cluster.create(resource, obj)
        await cluster.create(POD_DISRUPTION_BUDGETS, budget(**spec))
        await pods(cluster, ready, unready, owned_by(owner))
        assert await counts(cluster) == expected

    run(scenario)


def test_a_deployment_counts_for_its_replica_sets() -> None:
    async def scenario(cluster: Harness) -> None:
        deployment = await cluster.create(DEPLOYMENTS, workload("web", 10))
        old = await cluster.create(REPLICA_SETS, workload("old", 7, owned_by(deployment)))
        new = await cluster.create(REPLICA_SETS, workload("new", 5, owned_by(deployment)))
        for name, owner in {"a": old, "b": new}.items():
            metadata = {"name": name, "labels": {"app": "web"}, "ownerReferences": [owned_by(owner)]}
            await cluster.create(PODS, {"metadata": metadata, "spec": TEMPLATE["spec"]})
        await cluster.create(POD_DISRUPTION_BUDGETS, budget(maxUnavailable="10%"))
        assert await counts(cluster) == (0, 9, 10, 0, "InsufficientPods")

    run(scenario)


def test_a_custom_resource_is_counted_by_its_scale() -> None:
    names = {"plural": "shops", "singular": "shop", "kind": "Shop"}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        "subresources": {"scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
    }

    async def scenario(cluster: Harness) -> None:
        await cluster.create(
            CRDS,
            {
                "metadata": {"name": "shops.example.com"},
                "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
            },
            "",
        )
        shops = GroupVersionResource("example.com", "v1", "shops")
        owner = await cluster.create(
            shops,
            {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "s"}, "spec": {"replicas": 4}},
        )
        await pods(cluster, 3, 0, owned_by(owner))
        await cluster.create(POD_DISRUPTION_BUDGETS, budget(maxUnavailable=2))
        assert await counts(cluster) == (3, 2, 4, 1, "SufficientPods")

    run(scenario)


@pytest.mark.parametrize(
    ("owner", "message"),
    [
        (
            {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "1", "controller": True},
            "jobs.batch does not implement the scale subresource",
        ),
        (
            {"apiVersion": "example.com/v2", "kind": "Nobody", "name": "n", "uid": "1", "controller": True},
            'no matches for kind "Nobody" in version "example.com/v2"',
        ),
        (
            {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "gone", "uid": "1", "controller": True},
            'found no controllers for pod "web-0"',
        ),
    ],
)
def test_nothing_may_be_disrupted_while_the_expected_count_is_unknown(owner: Object, message: str) -> None:
    async def scenario(cluster: Harness) -> None:
        await pods(cluster, 1, 0, owner)
        await cluster.create(POD_DISRUPTION_BUDGETS, budget(maxUnavailable=1))
        found = await status(cluster)
        assert found["disruptionsAllowed"] == 0
        [condition] = found["conditions"]
        assert (condition["status"], condition["reason"], condition["message"]) == ("False", "SyncFailed", message)
        told = ("CalculateExpectedPodCountFailed", f"Failed to calculate the number of expected pods: {message}")
        assert told in await cluster.events()

    run(scenario)


def test_pods_without_a_controller_are_warned_of_with_percentages() -> None:
    async def scenario(cluster: Harness) -> None:
        await pods(cluster, 1)
        await cluster.create(POD_DISRUPTION_BUDGETS, budget(minAvailable="50%"))
        assert await counts(cluster) == (1, 0, 0, 0, "InsufficientPods")
        [(reason, message)] = set(await cluster.events())
        assert reason == "UnmanagedPods"
        assert (
            "(selector: &LabelSelector{MatchLabels:map[string]string{app: web,},"
            "MatchExpressions:[]LabelSelectorRequirement{},})" in message
        )

    run(scenario)


def test_a_pod_whose_eviction_was_allowed_counts_again_if_it_is_still_there() -> None:
    async def scenario(cluster: Harness) -> None:
        await pods(cluster, 3)
        await cluster.create(POD_DISRUPTION_BUDGETS, budget(minAvailable=2))
        now = rfc3339(cluster.clock.now())
        found = await status(cluster)
        disrupted = {"web-0": now, "web-gone": now}
        await cluster.patch_status(POD_DISRUPTION_BUDGETS, "pdb", {**found, "disruptedPods": disrupted})
        assert await counts(cluster) == (2, 2, 3, 0, "InsufficientPods")
        assert (await status(cluster))["disruptedPods"] == {"web-0": now}
        await cluster.advance(121)
        assert await counts(cluster) == (3, 2, 3, 1, "SufficientPods")
        assert "disruptedPods" not in await status(cluster)
        told = ("NotDeleted", "Pod was expected by PDB default/default to be deleted but it wasn't")
        assert told in await cluster.events()

    run(scenario)


@pytest.mark.parametrize(
    ("reason", "phase", "stays"),
    [
        ("EvictionByEvictionAPI", "Running", False),
        ("TerminationByKubelet", "Running", True),
        ("PreemptionByScheduler", "Failed", True),
    ],
)
def test_a_pod_that_was_not_disrupted_is_to_be_no_more(reason: str, phase: str, stays: bool) -> None:
    async def scenario(cluster: Harness) -> None:
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": reason,
            "message": "m",
            "lastProbeTime": None,
        }
        stamped = {**condition, "lastTransitionTime": rfc3339(cluster.clock.now())}
        pod = {"metadata": {"name": "p"}, "spec": TEMPLATE["spec"], "status": {"phase": phase, "conditions": [stamped]}}
        await cluster.create(PODS, pod)
        await cluster.advance(110)
        assert (await cluster.get(PODS, "p"))["status"]["conditions"] == [stamped]
        await cluster.advance(12)
        [found] = (await cluster.get(PODS, "p"))["status"]["conditions"]
        if stays:
            assert found == stamped
        else:
            assert (found["status"], found["observedGeneration"]) == ("False", 1)
            assert not found.keys() & {"reason", "message"}

    run(scenario)


def test_a_pod_of_two_budgets_is_warned_of() -> None:
    async def scenario(cluster: Harness) -> None:
        for name in ("one", "two"):
            await cluster.create(POD_DISRUPTION_BUDGETS, {**budget(minAvailable=1), "metadata": {"name": name}})
        await pods(cluster, 1)
        assert (
            "MultiplePodDisruptionBudgets",
            'Pod "default"/"web-0" matches multiple PodDisruptionBudgets.  Chose "one" arbitrarily.',
        ) in await cluster.events()

    run(scenario)
