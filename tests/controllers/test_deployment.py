"""Deployments: rollouts, in the ways in which they go well and badly."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pytest

from fakeapiserver.client.dynamic import STRATEGIC_MERGE_PATCH
from fakeapiserver.component_helpers.conditions import find_condition
from fakeapiserver.component_helpers.objects import DEPLOYMENTS, PODS, REPLICA_SETS, controller_of
from fakeapiserver.controllers.deployment import counts, revisions
from tests.controllers.harness import Harness, Object
from tests.controllers.harness import run as run_with
from tests.controllers.workloads import make_ready, pods, selecting, template

ROLLBACK = "deprecated.deployment.rollback.to"


def run(scenario: Callable[[Harness], Awaitable[None]]) -> None:
    run_with(scenario, "deployment-controller", "replicaset-controller")


def deployment(replicas: int = 3, image: str = "web:1", **spec: Any) -> Object:
    spec = {"replicas": replicas, "selector": selecting(), "template": template(image), **spec}
    return {"metadata": {"name": "web"}, "spec": spec}


async def change(cluster: Harness, **spec: Any) -> None:
    await cluster.of(DEPLOYMENTS).patch("web", {"spec": spec}, patch_type=STRATEGIC_MERGE_PATCH)
    await cluster.settle()


async def use_image(cluster: Harness, image: str) -> None:
    await change(cluster, template={"spec": {"containers": [{"name": "c", "image": image}]}})


async def status(cluster: Harness) -> Object:
    found: Object = (await cluster.get(DEPLOYMENTS, "web"))["status"]
    return found


async def condition(cluster: Harness, condition_type: str) -> tuple[str, str, str]:
    """(status, reason, message)."""
    found = find_condition((await status(cluster)).get("conditions"), condition_type)
    assert found is not None
    return found["status"], found["reason"], found["message"]


async def replica_sets(cluster: Harness) -> dict[str, Object]:
    """By the image of their pods."""
    found = (await cluster.of(REPLICA_SETS).list())["items"]
    return {one["spec"]["template"]["spec"]["containers"][0]["image"]: one for one in found}


async def sizes(cluster: Harness) -> dict[str, int]:
    return {image: found["spec"]["replicas"] for image, found in (await replica_sets(cluster)).items()}


async def roll_out(cluster: Harness, *images: str) -> None:
    """Rolls out the images one after another; each rollout completes."""
    for image in images:
        await use_image(cluster, image)
        await finish(cluster)


async def finish(cluster: Harness) -> None:
    """Pods become ready until nothing changes any more."""
    for _ in range(20):
        before = await sizes(cluster), (await status(cluster)).get("updatedReplicas")
        await make_ready(cluster)
        if before == (await sizes(cluster), (await status(cluster)).get("updatedReplicas")):
            return
    raise AssertionError("the rollout doesn't end")


# ----------------------------------------------------------------------------------------- rolling


def test_a_new_deployment_has_a_replica_set_and_reports_its_progress() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(DEPLOYMENTS, deployment(2))
        (found,) = (await replica_sets(cluster)).values()
        name = found["metadata"]["name"]
        assert found["metadata"]["annotations"] == {
            "deployment.kubernetes.io/desired-replicas": "2",
            "deployment.kubernetes.io/max-replicas": "3",
            "deployment.kubernetes.io/revision": "1",
        }
        hashed = found["metadata"]["labels"]["pod-template-hash"]
        assert name == f"web-{hashed}"
        assert found["spec"]["selector"] == {"matchLabels": {"app": "web", "pod-template-hash": hashed}}
        assert (controller_of(found) or {}).get("name") == "web"
        assert await condition(cluster, "Progressing") == (
            "True",
            "ReplicaSetUpdated",
            f'ReplicaSet "{name}" is progressing.',
        )
        assert await condition(cluster, "Available") == (
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        )
        await make_ready(cluster)
        assert await condition(cluster, "Progressing") == (
            "True",
            "NewReplicaSetAvailable",
            f'ReplicaSet "{name}" has successfully progressed.',
        )
        counted = await status(cluster)
        del counted["conditions"]
        assert counted == {
            "observedGeneration": 1,
            "replicas": 2,
            "updatedReplicas": 2,
            "readyReplicas": 2,
            "availableReplicas": 2,
            "terminatingReplicas": 0,
        }
        stored = await cluster.get(DEPLOYMENTS, "web")
        assert stored["metadata"]["annotations"] == {"deployment.kubernetes.io/revision": "1"}
        assert ("ScalingReplicaSet", f"Scaled up replica set {name} from 0 to 2") in await cluster.events()

    run(scenario)


@pytest.mark.parametrize(
    ("surge", "unavailable", "steps"),
    [
        (1, 0, [(4, 1), (3, 2)]),
        (0, 1, [(3, 1), (2, 2)]),
        ("50%", "25%", [(3, 3), (0, 4)]),
    ],
)
def test_a_rollout_stays_within_surge_and_unavailable(
    surge: int | str, unavailable: int | str, steps: Iterable[tuple[int, int]]
) -> None:
    """steps: (old, new) pods after the change, and after each time that all pods are ready."""

    async def scenario(cluster: Harness) -> None:
        strategy = {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
        await cluster.create(DEPLOYMENTS, deployment(4, strategy=strategy))
        await make_ready(cluster)
        await use_image(cluster, "web:2")
        for old, new in steps:
            assert await sizes(cluster) == {"web:1": old, "web:2": new}
            await make_ready(cluster)
        await finish(cluster)
        assert await sizes(cluster) == {"web:1": 0, "web:2": 4}
        assert (await condition(cluster, "Progressing"))[1] == "NewReplicaSetAvailable"

    run(scenario)


def test_a_failing_image_stops_the_rollout_until_the_deadline_is_over_and_undo_saves_it() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(DEPLOYMENTS, deployment(4, progressDeadlineSeconds=60))
        await make_ready(cluster)
        await use_image(cluster, "broken")
        assert await sizes(cluster) == {"web:1": 3, "broken": 2}
        bad = (await replica_sets(cluster))["broken"]["metadata"]["name"]
        await cluster.advance(45)
        assert (await condition(cluster, "Progressing"))[1] == "ReplicaSetUpdated"
        await cluster.advance(20)
        assert await condition(cluster, "Progressing") == (
            "False",
            "ProgressDeadlineExceeded",
            f'ReplicaSet "{bad}" has timed out progressing.',
        )
        assert (await condition(cluster, "Available"))[0] == "True"
        await use_image(cluster, "web:1")  # kubectl rollout undo writes the former template
        await finish(cluster)
        assert await sizes(cluster) == {"web:1": 4, "broken": 0}
        good = (await replica_sets(cluster))["web:1"]["metadata"]["annotations"]
        assert good["deployment.kubernetes.io/revision"] == "3"
        assert good["deployment.kubernetes.io/revision-history"] == "1"
        stored = await cluster.get(DEPLOYMENTS, "web")
        assert stored["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"

    run(scenario)


def test_scaling_in_the_midst_of_a_rollout_is_proportional() -> None:
    async def scenario(cluster: Harness) -> None:
        strategy = {"rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}
        await cluster.create(DEPLOYMENTS, deployment(10, strategy=strategy))
        await make_ready(cluster)
        await use_image(cluster, "broken")
        assert await sizes(cluster) == {"web:1": 8, "broken": 5}
        await change(cluster, replicas=15)
        assert await sizes(cluster) == {"web:1": 11, "broken": 7}
        await change(cluster, replicas=5)
        assert await sizes(cluster) == {"web:1": 3, "broken": 5}

    run(scenario)


def test_a_paused_deployment_takes_changes_but_makes_nothing_of_them() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(DEPLOYMENTS, deployment(2))
        await make_ready(cluster)
        await change(cluster, paused=True)
        assert await condition(cluster, "Progressing") == ("Unknown", "DeploymentPaused", "Deployment is paused")
        await use_image(cluster, "web:2")
        assert await sizes(cluster) == {"web:1": 2}
        await change(cluster, replicas=3)
        assert await sizes(cluster) == {"web:1": 3}
        await change(cluster, paused=False)
        await finish(cluster)
        assert await sizes(cluster) == {"web:1": 0, "web:2": 3}

    run(scenario)


def test_recreate_lets_the_old_pods_go_first() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(DEPLOYMENTS, deployment(2, strategy={"type": "Recreate"}))
        held = (await pods(cluster))[0]["metadata"]["name"]
        await cluster.of(PODS).patch(held, {"metadata": {"finalizers": ["example.com/wait"]}})
        await make_ready(cluster)
        await use_image(cluster, "web:2")
        assert await sizes(cluster) == {"web:1": 0}
        await cluster.of(PODS).patch(held, {"metadata": {"finalizers": None}})
        await cluster.settle()
        assert await sizes(cluster) == {"web:1": 0, "web:2": 2}

    run(scenario)


def test_history_beyond_the_limit_goes() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(DEPLOYMENTS, deployment(1, revisionHistoryLimit=1))
        await finish(cluster)
        await roll_out(cluster, "web:2", "web:3")
        assert await sizes(cluster) == {"web:2": 0, "web:3": 1}

    run(scenario)


@pytest.mark.parametrize(
    ("wanted", "image", "event"),
    [
        ("0", "web:2", ("DeploymentRollback", 'Rolled back deployment "web" to revision 2')),
        ("1", "web:1", ("DeploymentRollback", 'Rolled back deployment "web" to revision 1')),
        (
            "3",
            "web:3",
            (
                "DeploymentRollbackTemplateUnchanged",
                'The rollback revision contains the same template as current deployment "web"',
            ),
        ),
        (
            "9",
            "web:3",
            ("DeploymentRollbackRevisionNotFound", "Unable to find the revision to rollback to."),
        ),
    ],
)
def test_an_annotation_asks_for_a_former_revision(wanted: str, image: str, event: tuple[str, str]) -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(DEPLOYMENTS, deployment(1))
        await finish(cluster)
        await roll_out(cluster, "web:2", "web:3")
        await cluster.of(DEPLOYMENTS).patch("web", {"metadata": {"annotations": {ROLLBACK: wanted}}})
        await cluster.settle()
        await finish(cluster)
        stored = await cluster.get(DEPLOYMENTS, "web")
        assert stored["spec"]["template"]["spec"]["containers"][0]["image"] == image
        assert ROLLBACK not in stored["metadata"]["annotations"]
        assert event in await cluster.events()

    run(scenario)


def test_annotations_go_to_the_new_replica_set() -> None:
    async def scenario(cluster: Harness) -> None:
        obj = deployment(1)
        obj["metadata"]["annotations"] = {"kubernetes.io/change-cause": "create"}
        await cluster.create(DEPLOYMENTS, obj)
        (found,) = (await replica_sets(cluster)).values()
        assert found["metadata"]["annotations"]["kubernetes.io/change-cause"] == "create"

    run(scenario)


def test_replica_sets_are_adopted_and_released() -> None:
    async def scenario(cluster: Harness) -> None:
        lonely = {
            "metadata": {"name": "lonely", "labels": {"app": "web"}},
            "spec": {"replicas": 1, "selector": selecting(), "template": template()},
        }
        await cluster.create(REPLICA_SETS, lonely)
        await cluster.create(DEPLOYMENTS, deployment(1))
        found = await cluster.get(REPLICA_SETS, "lonely")
        assert (controller_of(found) or {}).get("name") == "web"
        assert list(await sizes(cluster)) == ["web:1"]  # it has the right template already
        await cluster.of(REPLICA_SETS).patch("lonely", {"metadata": {"labels": {"app": "other"}}})
        await cluster.settle()
        assert controller_of(await cluster.get(REPLICA_SETS, "lonely")) is None

    run(scenario)


def test_two_templates_of_one_hash_are_distinguished() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(DEPLOYMENTS, deployment(0))
        (found,) = (await replica_sets(cluster)).values()
        name = found["metadata"]["name"]
        await cluster.of(DEPLOYMENTS).delete("web")
        await cluster.of(REPLICA_SETS).delete(name)
        await cluster.settle()
        stranger = {
            "metadata": {"name": name},
            "spec": {"replicas": 0, "selector": selecting("db"), "template": template(app="db")},
        }
        await cluster.create(REPLICA_SETS, stranger)
        await cluster.create(DEPLOYMENTS, deployment(0))
        assert (await status(cluster))["collisionCount"] == 1
        assert len(await cluster.names(REPLICA_SETS)) == 2

    run(scenario)


def test_a_cache_that_lags_behind_holds_nothing_up() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(DEPLOYMENTS, deployment(1))
        replica_sets = cluster.manager._shared.informers.for_resource(REPLICA_SETS).indexer
        (found,) = replica_sets.list()
        replica_sets.add({**found, "metadata": {**found["metadata"], "resourceVersion": "1"}})
        await change(cluster, replicas=2)
        assert await sizes(cluster) == {"web:1": 2}

    run(scenario)


def test_a_failure_of_the_replica_set_is_the_deployments_too() -> None:
    async def scenario(cluster: Harness) -> None:
        broken = template()
        broken["spec"]["priorityClassName"] = "nobody-has-it"
        await cluster.create(DEPLOYMENTS, deployment(1, template=broken))
        text = "is forbidden: no PriorityClass with name nobody-has-it was found"
        found = await condition(cluster, "ReplicaFailure")
        assert found[:2] == ("True", "FailedCreate")
        assert found[2].endswith(text)

    run(scenario)


# -------------------------------------------------------------------------------------------- pure


@pytest.mark.parametrize(
    ("surge", "unavailable", "desired", "resolved"),
    [
        ("25%", "25%", 4, (1, 1)),
        ("25%", "25%", 1, (1, 0)),
        (0, "1%", 2, (0, 1)),
        ("1%", 0, 2, (1, 0)),
        (None, None, 3, (0, 1)),
    ],
)
def test_something_can_always_move(
    surge: int | str | None, unavailable: int | str | None, desired: int, resolved: tuple[int, int]
) -> None:
    assert counts.resolve_fenceposts(surge, unavailable, desired) == resolved


def replica_set(number: str | None, history: str | None = None) -> Object:
    annotations = {revisions.REVISION: number, revisions.REVISION_HISTORY: history}
    return {
        "metadata": {"name": "r", "annotations": {key: text for key, text in annotations.items() if text is not None}}
    }


@pytest.mark.parametrize(
    ("numbers", "newest", "last"),
    [
        ([], 0, 0),
        (["1"], 1, 0),
        (["1", "2", "3"], 3, 2),
        (["3", "nonsense", "1", None], 3, 1),
    ],
)
def test_the_last_revision_is_the_one_before_the_newest(numbers: list[str | None], newest: int, last: int) -> None:
    found = [replica_set(number) for number in numbers]
    assert (revisions.max_revision(found), revisions.last_revision(found)) == (newest, last)


@pytest.mark.parametrize(
    ("before", "number", "annotations"),
    [
        ((None, None), 2, ("2", None)),
        (("1", None), 2, ("2", "1")),
        (("4", "1,2"), 5, ("5", "1,2,4")),
        (("5", None), 2, ("5", None)),  # old ones were deleted: it keeps the greater number
        (("nonsense", None), 2, ("nonsense", None)),
        (("1001", ",".join(["1000"] * 400)), 1002, ("1002", ",".join([*["1000"] * 399, "1001"]))),
    ],
)
def test_a_revision_that_comes_back_remembers_what_it_was(
    before: tuple[str | None, str | None], number: int, annotations: tuple[str, str | None]
) -> None:
    found = revisions.new_annotations({"metadata": {}}, replica_set(*before), number)
    assert (found[revisions.REVISION], found.get(revisions.REVISION_HISTORY)) == annotations
