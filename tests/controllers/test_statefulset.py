"""Stateful sets: pods that come and go in order, with names and claims of their own."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fakeapiserver.client.dynamic import STRATEGIC_MERGE_PATCH
from fakeapiserver.component_helpers.objects import (
    CONTROLLER_REVISIONS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    STATEFUL_SETS,
    controller_of,
)
from fakeapiserver.controllers.statefulset import claims, identity
from tests.controllers.harness import Harness, Object
from tests.controllers.harness import run as run_with
from tests.controllers.workloads import make_ready, pods, selecting, template


def run(scenario: Callable[[Harness], Awaitable[None]]) -> None:
    run_with(scenario, "statefulset-controller")


def stateful_set(replicas: int = 3, image: str = "db:1", **spec: Any) -> Object:
    spec = {"replicas": replicas, "selector": selecting(), "serviceName": "db", "template": template(image), **spec}
    return {"metadata": {"name": "db"}, "spec": spec}


def claim_template(name: str = "data") -> Object:
    resources = {"requests": {"storage": "1Gi"}}
    return {"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources}}


async def names(cluster: Harness) -> list[str]:
    return [pod["metadata"]["name"] for pod in await pods(cluster)]


async def images(cluster: Harness) -> list[str]:
    return [pod["spec"]["containers"][0]["image"] for pod in await pods(cluster)]


async def status(cluster: Harness) -> Object:
    found: Object = (await cluster.get(STATEFUL_SETS, "db"))["status"]
    return found


async def change(cluster: Harness, **spec: Any) -> None:
    await cluster.of(STATEFUL_SETS).patch("db", {"spec": spec}, patch_type=STRATEGIC_MERGE_PATCH)
    await cluster.settle()


async def use_image(cluster: Harness, image: str) -> None:
    await change(cluster, template={"spec": {"containers": [{"name": "c", "image": image}]}})


async def finish(cluster: Harness) -> None:
    """Pods become ready until nothing changes any more."""
    before: object = None
    for _ in range(20):
        await make_ready(cluster)
        after = await names(cluster), await status(cluster), await images(cluster)
        if before == after:
            return
        before = after
    raise AssertionError("the rollout doesn't end")


def test_pods_come_in_order_each_when_the_one_before_is_ready() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(STATEFUL_SETS, stateful_set(2))
        assert await names(cluster) == ["db-0"]
        await make_ready(cluster)
        assert await names(cluster) == ["db-0", "db-1"]
        await make_ready(cluster)
        first = (await pods(cluster))[0]
        found = await status(cluster)
        revision = found["currentRevision"]
        assert first["metadata"]["labels"] == {
            "app": "web",
            "apps.kubernetes.io/pod-index": "0",
            "statefulset.kubernetes.io/pod-name": "db-0",
            "controller-revision-hash": revision,
        }
        assert (first["spec"]["hostname"], first["spec"]["subdomain"]) == ("db-0", "db")
        assert found == {
            "observedGeneration": 1,
            "replicas": 2,
            "readyReplicas": 2,
            "currentReplicas": 2,
            "updatedReplicas": 2,
            "availableReplicas": 2,
            "currentRevision": revision,
            "updateRevision": revision,
            "collisionCount": 0,
        }
        assert await cluster.events() == [
            ("SuccessfulCreate", f"Create Pod db-{ordinal} in StatefulSet db successful") for ordinal in (0, 1)
        ]

    run(scenario)


def test_pods_go_in_reverse_order_and_only_while_the_others_are_healthy() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(STATEFUL_SETS, stateful_set(3))
        await finish(cluster)
        await make_ready(cluster, [(await pods(cluster))[0]], ready=False)
        await change(cluster, replicas=1)
        assert await names(cluster) == ["db-0", "db-1", "db-2"]
        await make_ready(cluster)
        assert await names(cluster) == ["db-0"]
        deleted = [text for reason, text in await cluster.events() if reason == "SuccessfulDelete"]
        assert deleted == [f"Delete Pod db-{ordinal} in StatefulSet db successful" for ordinal in (2, 1)]

    run(scenario)


def test_in_parallel_all_come_and_go_at_once() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(STATEFUL_SETS, stateful_set(4, podManagementPolicy="Parallel", ordinals={"start": 5}))
        assert sorted(await names(cluster)) == ["db-5", "db-6", "db-7", "db-8"]
        await change(cluster, replicas=1)
        assert await names(cluster) == ["db-5"]

    run(scenario)


@pytest.mark.parametrize(
    ("strategy", "after"),
    [
        ({"type": "RollingUpdate"}, ["db:2", "db:2", "db:2"]),
        ({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}, ["db:1", "db:1", "db:2"]),
        ({"type": "OnDelete"}, ["db:1", "db:1", "db:1"]),
    ],
)
def test_a_new_template_reaches_the_pods_that_it_should(strategy: Object, after: list[str]) -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(STATEFUL_SETS, stateful_set(3, updateStrategy=strategy))
        await finish(cluster)
        old = (await status(cluster))["currentRevision"]
        await use_image(cluster, "db:2")
        await finish(cluster)
        assert await images(cluster) == after
        found = await status(cluster)
        assert found["updateRevision"] != old
        assert (found["currentRevision"] == old) == ("db:1" in after)
        assert len(await cluster.names(CONTROLLER_REVISIONS)) == 2

    run(scenario)


def test_one_pod_after_another_is_replaced_the_last_first_and_a_broken_one_stops_it() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(STATEFUL_SETS, stateful_set(2))
        await finish(cluster)
        await use_image(cluster, "broken")
        assert await images(cluster) == ["db:1", "broken"]
        found = await status(cluster)
        assert (found["currentReplicas"], found["updatedReplicas"], found["readyReplicas"]) == (1, 1, 1)
        await use_image(cluster, "db:1")
        assert await images(cluster) == ["db:1", "broken"]  # it waits for the broken one all the same
        await cluster.of(PODS).delete("db-1")
        await finish(cluster)
        assert await images(cluster) == ["db:1", "db:1"]
        revisions = (await cluster.of(CONTROLLER_REVISIONS).list())["items"]
        assert sorted(revision["revision"] for revision in revisions) == [2, 3]

    run(scenario)


def test_revisions_beyond_the_limit_go() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(STATEFUL_SETS, stateful_set(1, revisionHistoryLimit=1))
        for image in ("db:2", "db:3", "db:4"):
            await finish(cluster)
            await use_image(cluster, image)
        await finish(cluster)
        revisions = (await cluster.of(CONTROLLER_REVISIONS).list())["items"]
        assert sorted(revision["revision"] for revision in revisions) == [3, 4]

    run(scenario)


def test_a_pod_that_ended_is_made_again() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(STATEFUL_SETS, stateful_set(1))
        uid = (await pods(cluster))[0]["metadata"]["uid"]
        await cluster.patch_status(PODS, "db-0", {"phase": "Failed"})
        assert await names(cluster) == ["db-0"]
        assert (await pods(cluster))[0]["metadata"]["uid"] != uid

    run(scenario)


def test_pods_count_as_available_after_a_while() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(STATEFUL_SETS, stateful_set(2, minReadySeconds=30))
        await make_ready(cluster)
        assert await names(cluster) == ["db-0"]
        assert (await status(cluster))["availableReplicas"] == 0
        await cluster.advance(35)
        assert await names(cluster) == ["db-0", "db-1"]
        assert (await status(cluster))["availableReplicas"] == 1

    run(scenario)


@pytest.mark.parametrize(
    ("policy", "before", "after"),
    [
        ({}, [], []),
        ({"whenDeleted": "Delete"}, ["StatefulSet"], ["StatefulSet"]),
        ({"whenScaled": "Delete"}, [], ["Pod"]),
        ({"whenDeleted": "Delete", "whenScaled": "Delete"}, ["StatefulSet"], ["Pod"]),
    ],
)
def test_claims_are_owned_by_the_objects_they_are_deleted_with(
    policy: Object, before: list[str], after: list[str]
) -> None:
    """before, after: the owners of a claim while its pod is wanted, and when it isn't any more."""

    async def scenario(cluster: Harness) -> None:
        obj = stateful_set(2, volumeClaimTemplates=[claim_template()], persistentVolumeClaimRetentionPolicy=policy)
        await cluster.create(STATEFUL_SETS, obj)
        await finish(cluster)
        assert await cluster.names(PERSISTENT_VOLUME_CLAIMS) == ["data-db-0", "data-db-1"]
        claim = await cluster.get(PERSISTENT_VOLUME_CLAIMS, "data-db-1")
        assert claim["metadata"]["labels"] == {"app": "web"}
        assert [owner["kind"] for owner in claim["metadata"].get("ownerReferences", ())] == before
        volumes = (await cluster.get(PODS, "db-1"))["spec"]["volumes"]
        assert volumes[0] == {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-1"}}
        await cluster.of(PODS).patch("db-1", {"metadata": {"finalizers": ["example.com/wait"]}})
        await change(cluster, replicas=1)
        claim = await cluster.get(PERSISTENT_VOLUME_CLAIMS, "data-db-1")
        assert [owner["kind"] for owner in claim["metadata"].get("ownerReferences", ())] == after
        assert (
            "SuccessfulCreate",
            "Create Claim data-db-1 Pod db-1 in StatefulSet db success",
        ) in await cluster.events()

    run(scenario)


def test_orphans_of_its_name_and_their_revisions_are_adopted() -> None:
    async def scenario(cluster: Harness) -> None:
        for name in ("db-0", "other-0"):
            await cluster.create(PODS, {**template(), "metadata": {"name": name, "labels": {"app": "web"}}})
        revision = {"metadata": {"name": "old", "labels": {"app": "web"}}, "data": {"spec": {}}, "revision": 7}
        await cluster.create(CONTROLLER_REVISIONS, revision)
        await cluster.create(STATEFUL_SETS, stateful_set(1))
        assert (controller_of(await cluster.get(PODS, "db-0")) or {}).get("name") == "db"
        assert controller_of(await cluster.get(PODS, "other-0")) is None
        assert (controller_of(await cluster.get(CONTROLLER_REVISIONS, "old")) or {}).get("name") == "db"

    run(scenario)


# -------------------------------------------------------------------------------------------- pure


@pytest.mark.parametrize(
    ("name", "parent", "ordinal"),
    [("db-0", "db", 0), ("my-db-12", "my-db", 12), ("db", "", -1), ("db-x", "", -1), ("db-99999999999", "db", -1)],
)
def test_a_pods_name_contains_its_set_and_ordinal(name: str, parent: str, ordinal: int) -> None:
    assert identity.parent_and_ordinal({"metadata": {"name": name}}) == (parent, ordinal)


def reference(kind: str, name: str, uid: str, controller: bool = True) -> Object:
    version = "v1" if kind == "Pod" else "apps/v1"
    return {"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": controller}


@pytest.mark.parametrize(
    ("references", "up_to_date"),
    [
        ([], False),
        ([reference("StatefulSet", "db", "s1")], True),
        ([reference("StatefulSet", "db", "s1", controller=False)], False),
        ([reference("StatefulSet", "db", "former")], True),  # not ours to touch
        ([reference("Pod", "db-0", "p1")], False),
        ([reference("StatefulSet", "db", "s1"), reference("Pod", "db-0", "p1")], False),
        ([reference("ReplicaSet", "web", "r1")], True),  # another controller's
        ([reference("ReplicaSet", "web", "r1"), reference("StatefulSet", "db", "s1", controller=False)], False),
    ],
)
def test_claims_whose_owners_are_as_they_should_be(references: list[Object], up_to_date: bool) -> None:
    spec = {"replicas": 1, "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Retain"}}
    owner = {"metadata": {"name": "db", "namespace": "default", "uid": "s1"}, "spec": spec}
    pod = {"metadata": {"name": "db-0", "namespace": "default", "uid": "p1"}}
    claim = {"metadata": {"name": "data-db-0", "ownerReferences": references}}
    assert claims.is_owner_up_to_date(claim, owner, pod) == up_to_date
    if not up_to_date:
        assert claims.is_owner_up_to_date(claims.with_owners(claim, owner, pod), owner, pod)


def test_an_orphaned_set_leaves_its_revisions_and_goes() -> None:
    """A strategic patch of a revision writes its data with sorted keys, which must be what is there: data can't be changed."""

    async def scenario(cluster: Harness) -> None:
        await cluster.create(STATEFUL_SETS, stateful_set(1))
        await cluster.of(STATEFUL_SETS).delete("db", propagation_policy="Orphan")
        await cluster.settle()
        assert await cluster.names(STATEFUL_SETS) == []
        [revision] = (await cluster.of(CONTROLLER_REVISIONS).list())["items"]
        assert controller_of(revision) is None

    run_with(scenario, "statefulset-controller", "garbage-collector-controller")
