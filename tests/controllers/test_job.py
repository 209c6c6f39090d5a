"""Jobs: which pods there are, how each is counted once, and when the job has ended."""

from typing import Any

import pytest

from fakeapiserver.apimachinery.timestamp import rfc3339, seconds_of
from fakeapiserver.component_helpers.objects import JOBS, PODS
from fakeapiserver.controllers.job import accounting, pod_management
from fakeapiserver.controllers.job.backoff import BackoffRecord, finished_at
from fakeapiserver.controllers.job.indexes import Indexes
from fakeapiserver.controllers.job.pods import generate_name
from fakeapiserver.controllers.job.policies import FailureMatch, failure_match, success_match
from tests.controllers.harness import Harness, Object
from tests.controllers.harness import run as run_with

FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
POD = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}


def run(scenario: Any) -> None:
    run_with(scenario, "job-controller")


# ------------------------------------------------------------------------------------------------ pure


@pytest.mark.parametrize(
    ("text", "completions", "shown", "count"),
    [
        ("", 5, "", 0),
        ("0,2,3", 5, "0,2,3", 3),
        ("0,2-4", 5, "0,2-4", 4),
        ("1-4", 3, "1,2", 2),  # the job has become smaller
        ("5,7", 3, "", 0),
        ("0,x,2", 5, "0,2", 2),  # who knows who wrote that
        ("0,1,2", 5, "0-2", 3),
    ],
)
def test_indexes_are_read_and_shown(text: str, completions: int, shown: str, count: int) -> None:
    found = Indexes.parse(text, completions)
    assert (str(found), len(found)) == (shown, count)


def test_indexes_are_a_set() -> None:
    found = Indexes.parse("0-2,5", 10) | Indexes.of([3, 7])
    assert str(found) == "0-3,5,7"
    assert [index in found for index in (3, 4, 7, 8)] == [True, False, True, False]
    assert [*found.missing(9)] == [4, 6, 8]
    assert found.common(Indexes.parse("2-5", 10)) == 3


@pytest.mark.parametrize(
    ("rules", "text"),
    [
        ([{"succeededCount": 3}], ""),
        ([{"succeededCount": 2}], "Matched rules at index 0"),
        ([{"succeededIndexes": "0"}, {"succeededIndexes": "1,4"}], "Matched rules at index 1"),
        ([{"succeededIndexes": "0-1", "succeededCount": 1}], "Matched rules at index 0"),
        ([{"succeededIndexes": "0-1", "succeededCount": 2}], ""),
        ([{"succeededIndexes": "9"}], ""),
    ],
)
def test_the_first_rule_that_is_met_makes_a_job_succeed(rules: list[Object], text: str) -> None:
    assert success_match({"rules": rules}, 5, Indexes.of([1, 4])) == text


def _failed(code: int, *conditions: str, init: bool = False) -> Object:
    containers = [{"name": "c", "state": {"terminated": {"exitCode": code}}}]
    status = {
        "phase": "Failed",
        ("initContainerStatuses" if init else "containerStatuses"): containers,
        "conditions": [{"type": kind, "status": "True"} for kind in conditions],
    }
    return {"metadata": {"name": "p", "namespace": "n"}, "status": status}


def _exits(action: str, operator: str, *values: int, **more: str) -> Object:
    return {"action": action, "onExitCodes": {"operator": operator, "values": [*values], **more}}


_DISRUPTED = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}


@pytest.mark.parametrize(
    ("rules", "pod", "match"),
    [
        ([], _failed(1), FailureMatch()),
        ([_exits("Ignore", "In", 1)], _failed(1), FailureMatch("", False, "Ignore")),
        ([_exits("Ignore", "In", 1)], _failed(2), FailureMatch()),
        ([_exits("Ignore", "In", 1, containerName="d")], _failed(1), FailureMatch()),
        ([_exits("Count", "NotIn", 1), _exits("Ignore", "In", 2)], _failed(2), FailureMatch("", True, "Count")),
        ([_exits("FailIndex", "NotIn", 1)], _failed(0), FailureMatch()),  # that is no failure
        (
            [_DISRUPTED, _exits("FailJob", "In", 3)],
            _failed(3, init=True),
            FailureMatch(
                "Container c for pod n/p failed with exit code 3 matching FailJob rule at index 1", True, "FailJob"
            ),
        ),
        ([_DISRUPTED, _exits("FailJob", "In", 3)], _failed(3, "DisruptionTarget"), FailureMatch("", False, "Ignore")),
        (
            [{**_DISRUPTED, "action": "FailJob"}],
            _failed(3, "DisruptionTarget"),
            FailureMatch("Pod n/p has condition DisruptionTarget matching FailJob rule at index 0", True, "FailJob"),
        ),
    ],
)
def test_the_first_rule_that_fits_says_what_a_failure_means(
    rules: list[Object], pod: Object, match: FailureMatch
) -> None:
    assert failure_match({"rules": rules}, pod) == match


@pytest.mark.parametrize(("failures", "seconds"), [(0, 0), (1, 10), (2, 20), (3, 40), (6, 320), (7, 600), (500, 600)])
def test_each_failure_doubles_the_wait(failures: int, seconds: float) -> None:
    assert BackoffRecord(failures, 100.0).remaining(100.0) == seconds
    assert BackoffRecord(failures, 100.0).remaining(100.0 + seconds) == 0


def test_a_success_forgives_the_failures_before_it() -> None:
    def ended(at: int) -> Object:
        when = {"terminated": {"exitCode": 0, "finishedAt": rfc3339(at)}}
        return {"metadata": {}, "spec": {}, "status": {"containerStatuses": [{"name": "c", "state": when}]}}

    record = BackoffRecord().with_pods([], [ended(10), ended(20)])
    assert record == BackoffRecord(2, 20.0)
    assert record.with_pods([], []) == record
    assert record.with_pods([ended(30)], [ended(25), ended(40)]) == BackoffRecord(1, 40.0)
    assert record.with_pods([ended(30)], []) == BackoffRecord()


@pytest.mark.parametrize(
    ("status", "metadata", "at"),
    [
        ({"conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": rfc3339(50)}]}, {}, 50),
        ({}, {"deletionTimestamp": rfc3339(90), "deletionGracePeriodSeconds": 30}, 60),
        ({}, {}, 7),
        ({"containerStatuses": [{"name": "c", "state": {"running": {}}}]}, {}, 7),
    ],
)
def test_a_pod_that_does_not_say_when_it_ended_shows_it(status: Object, metadata: Object, at: int) -> None:
    pod = {"metadata": {"creationTimestamp": rfc3339(7), **metadata}, "spec": {}, "status": status}
    assert finished_at(pod) == at


def test_a_long_name_leaves_room_for_the_index() -> None:
    assert generate_name("job", 3) == "job-3-"
    assert generate_name("a" * 60, 12) == "a" * 54 + "-12-"


# -------------------------------------------------------------------------------------------- scenarios


async def create(cluster: Harness, pod: Object | None = None, **spec: Any) -> Object:
    template = {"spec": {**POD, **(pod or {})}}
    return await cluster.create(JOBS, {"metadata": {"name": "j"}, "spec": {"template": template, **spec}})


async def pods(cluster: Harness, *phases: str) -> list[Object]:
    """Returns the pods that aren't being deleted, by index and name."""
    found = (await cluster.of(PODS).list())["items"]
    return sorted(
        (pod for pod in found if pod["status"]["phase"] in phases and not pod["metadata"].get("deletionTimestamp")),
        key=lambda pod: (index_of(pod), pod["metadata"]["name"]),
    )


async def active(cluster: Harness) -> list[Object]:
    return await pods(cluster, "Pending", "Running")


def index_of(pod: Object) -> int:
    return int(pod["metadata"].get("annotations", {}).get(INDEX, -1))


async def end(cluster: Harness, pod: Object, phase: str, code: int = 1) -> None:
    """Now."""
    ended = {"exitCode": 0 if phase == "Succeeded" else code, "finishedAt": rfc3339(cluster.clock.now())}
    container = {"name": "c", "image": "busybox", "imageID": "", "ready": False, "restartCount": 0}
    status = {"phase": phase, "containerStatuses": [{**container, "state": {"terminated": ended}}]}
    await cluster.patch_status(PODS, pod["metadata"]["name"], status)


async def end_first(cluster: Harness, phase: str, code: int = 1) -> None:
    await end(cluster, (await active(cluster))[0], phase, code)


async def status(cluster: Harness) -> Object:
    found: Object = (await cluster.get(JOBS, "j")).get("status", {})
    return found


async def conditions(cluster: Harness) -> list[tuple[str, str]]:
    """Returns (type, reason) of the conditions that are true."""
    found = (await status(cluster)).get("conditions", [])
    return [(each["type"], each["reason"]) for each in found if each["status"] == "True"]


async def counts(cluster: Harness) -> tuple[int, int, int]:
    """Active, succeeded, failed."""
    found = await status(cluster)
    return found.get("active", 0), found.get("succeeded", 0), found.get("failed", 0)


def test_a_job_is_complete_when_so_many_pods_have_succeeded() -> None:
    async def scenario(cluster: Harness) -> None:
        await create(cluster, parallelism=2, completions=3)
        assert await counts(cluster) == (2, 0, 0)
        assert all(pod["metadata"]["finalizers"] == [FINALIZER] for pod in await active(cluster))
        await end_first(cluster, "Succeeded")
        assert await counts(cluster) == (2, 1, 0)
        await end_first(cluster, "Succeeded")
        await end_first(cluster, "Succeeded")
        found = await status(cluster)
        assert {key: found.get(key) for key in ("succeeded", "ready", "terminating", "active")} == {
            "succeeded": 3,
            "ready": 0,
            "terminating": 0,
            "active": None,
        }
        assert found["uncountedTerminatedPods"] == {}
        assert await conditions(cluster) == [
            ("SuccessCriteriaMet", "CompletionsReached"),
            ("Complete", "CompletionsReached"),
        ]
        assert found["completionTime"] >= found["startTime"]
        assert not any("finalizers" in pod["metadata"] for pod in await pods(cluster, "Succeeded"))
        assert [reason for reason in await cluster.reasons() if reason != "SuccessfulCreate"] == ["Completed"]

    run(scenario)


def test_a_work_queue_is_done_when_one_pod_has_succeeded_and_the_others_have_ended() -> None:
    async def scenario(cluster: Harness) -> None:
        await create(cluster, parallelism=3)
        await end_first(cluster, "Succeeded")
        assert await counts(cluster) == (2, 1, 0)
        await end_first(cluster, "Failed")
        assert await conditions(cluster) == []
        await end_first(cluster, "Succeeded")
        assert await counts(cluster) == (0, 2, 1)
        assert ("Complete", "CompletionsReached") in await conditions(cluster)

    run(scenario)


def test_pods_of_an_indexed_job_know_their_index() -> None:
    async def scenario(cluster: Harness) -> None:
        await create(cluster, completionMode="Indexed", parallelism=5, completions=2)
        found = await active(cluster)
        assert [index_of(pod) for pod in found] == [0, 1]
        for index, pod in enumerate(found):
            assert pod["spec"]["hostname"] == f"j-{index}"
            assert pod["metadata"]["labels"][INDEX] == str(index)
            assert pod["metadata"]["name"].startswith(f"j-{index}-")
            assert pod["spec"]["containers"][0]["env"] == [
                {
                    "name": "JOB_COMPLETION_INDEX",
                    "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}},
                }
            ]
        await end(cluster, found[1], "Succeeded")
        assert (await status(cluster))["completedIndexes"] == "1"

    run(scenario)


def test_failures_wait_longer_each_time_until_there_are_too_many() -> None:
    async def scenario(cluster: Harness) -> None:
        await create(cluster, backoffLimit=3)
        waits = []
        for _ in range(3):
            failed = int(cluster.clock.now())
            await end_first(cluster, "Failed")
            while not (found := await active(cluster)):
                await cluster.advance(1)
            made = seconds_of(found[0]["metadata"]["creationTimestamp"])
            assert made is not None
            waits.append(int(made - failed) // 10 * 10)
        assert waits == [10, 20, 40]
        await end_first(cluster, "Failed")
        assert await counts(cluster) == (0, 0, 4)
        assert await conditions(cluster) == [
            ("FailureTarget", "BackoffLimitExceeded"),
            ("Failed", "BackoffLimitExceeded"),
        ]
        assert ("BackoffLimitExceeded", "Job has reached the specified backoff limit") in await cluster.events()

    run(scenario)


def test_containers_that_start_again_count_where_pods_restart_them() -> None:
    async def scenario(cluster: Harness) -> None:
        await create(cluster, {"restartPolicy": "OnFailure"}, backoffLimit=2)
        [pod] = await active(cluster)
        container = {"name": "c", "image": "busybox", "imageID": "", "ready": True, "restartCount": 2}
        await cluster.patch_status(
            PODS,
            pod["metadata"]["name"],
            {"phase": "Running", "containerStatuses": [{**container, "state": {"running": {}}}]},
        )
        assert await active(cluster) == []
        assert ("Failed", "BackoffLimitExceeded") in await conditions(cluster)

    run(scenario)


def test_an_index_that_has_failed_too_often_fails_alone() -> None:
    async def scenario(cluster: Harness) -> None:
        await create(cluster, completionMode="Indexed", parallelism=2, completions=2, backoffLimitPerIndex=1)
        await end_first(cluster, "Failed")
        await cluster.advance(12)
        first, second = await active(cluster)
        assert first["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"] == "1"
        await end(cluster, first, "Failed")
        assert (await status(cluster))["failedIndexes"] == "0"
        assert await conditions(cluster) == []
        await end(cluster, second, "Succeeded")
        assert await counts(cluster) == (0, 1, 2)
        assert await conditions(cluster) == [("FailureTarget", "FailedIndexes"), ("Failed", "FailedIndexes")]

    run(scenario)


def test_too_many_failed_indexes_fail_the_job() -> None:
    async def scenario(cluster: Harness) -> None:
        await create(
            cluster, completionMode="Indexed", parallelism=3, completions=3, backoffLimitPerIndex=0, maxFailedIndexes=0
        )
        await end_first(cluster, "Failed")
        assert await active(cluster) == []
        assert ("Failed", "MaxFailedIndexesExceeded") in await conditions(cluster)

    run(scenario)


@pytest.mark.parametrize(
    ("action", "per_index", "failed", "reasons"),
    [
        ("Ignore", None, 0, []),
        ("Count", None, 1, [("FailureTarget", "BackoffLimitExceeded"), ("Failed", "BackoffLimitExceeded")]),
        ("FailJob", None, 1, [("FailureTarget", "PodFailurePolicy"), ("Failed", "PodFailurePolicy")]),
        ("FailIndex", 5, 1, [("FailureTarget", "FailedIndexes"), ("Failed", "FailedIndexes")]),
    ],
)
def test_a_policy_says_what_a_failure_means(
    action: str, per_index: int | None, failed: int, reasons: list[tuple[str, str]]
) -> None:
    async def scenario(cluster: Harness) -> None:
        limits = {"backoffLimit": 0} if per_index is None else {"backoffLimitPerIndex": per_index}
        policy = {"rules": [_exits(action, "In", 42)]}
        await create(cluster, completionMode="Indexed", completions=1, podFailurePolicy=policy, **limits)
        await end_first(cluster, "Failed", 42)
        assert (await status(cluster)).get("failed", 0) == failed
        assert await conditions(cluster) == reasons
        if not reasons:
            await cluster.advance(12)
            assert len(await active(cluster)) == 1

    run(scenario)


def test_a_success_policy_ends_the_other_pods() -> None:
    async def scenario(cluster: Harness) -> None:
        policy = {"rules": [{"succeededIndexes": "0"}]}
        await create(cluster, completionMode="Indexed", completions=3, parallelism=3, successPolicy=policy)
        await end_first(cluster, "Succeeded")
        assert await active(cluster) == []
        assert await counts(cluster) == (0, 1, 0)
        assert await conditions(cluster) == [("SuccessCriteriaMet", "SuccessPolicy"), ("Complete", "SuccessPolicy")]

    run(scenario)


def test_a_job_has_so_long_from_its_start() -> None:
    async def scenario(cluster: Harness) -> None:
        await create(cluster, parallelism=2, completions=2, activeDeadlineSeconds=60)
        await cluster.advance(50)
        assert await counts(cluster) == (2, 0, 0)
        await cluster.advance(15)
        assert await counts(cluster) == (0, 0, 2)
        assert await conditions(cluster) == [("FailureTarget", "DeadlineExceeded"), ("Failed", "DeadlineExceeded")]

    run(scenario)


def test_a_suspended_job_has_no_pods_and_begins_again() -> None:
    async def scenario(cluster: Harness) -> None:
        await create(cluster, parallelism=2, completions=2, suspend=True)
        assert await active(cluster) == []
        assert await conditions(cluster) == [("Suspended", "JobSuspended")]
        assert "startTime" not in await status(cluster)
        await cluster.of(JOBS).patch("j", {"spec": {"suspend": False}})
        await cluster.settle()
        assert await counts(cluster) == (2, 0, 0)
        assert await conditions(cluster) == []
        assert "startTime" in await status(cluster)
        await cluster.of(JOBS).patch("j", {"spec": {"suspend": True}})
        await cluster.settle()
        assert await counts(cluster) == (0, 0, 0)
        assert "startTime" not in await status(cluster)
        told = [reason for reason in await cluster.reasons() if not reason.startswith("Successful")]
        assert told == ["Suspended", "Resumed"]  # the first of them twice

    run(scenario)


@pytest.mark.parametrize(("policy", "at_once"), [("TerminatingOrFailed", True), ("Failed", False)])
def test_a_pod_that_is_being_deleted_is_replaced_as_the_policy_says(policy: str, at_once: bool) -> None:
    async def scenario(cluster: Harness) -> None:
        await create(cluster, {"nodeName": "n1"}, podReplacementPolicy=policy)
        [pod] = await active(cluster)
        await cluster.of(PODS).delete(pod["metadata"]["name"])
        await cluster.settle()
        assert (await status(cluster))["terminating"] == 1
        await cluster.advance(45)
        assert len(await active(cluster)) == at_once
        await end(cluster, pod, "Failed")
        await cluster.advance(45)
        assert len(await active(cluster)) == 1
        assert (await counts(cluster))[2] == 1

    run(scenario)


def test_an_indexed_job_grows_and_shrinks() -> None:
    async def scenario(cluster: Harness) -> None:
        await create(cluster, completionMode="Indexed", completions=2, parallelism=2)
        await end_first(cluster, "Succeeded")
        for size, indexes in {4: [1, 2, 3], 2: [1]}.items():
            await cluster.of(JOBS).patch("j", {"spec": {"completions": size, "parallelism": size}})
            await cluster.settle()
            assert [index_of(pod) for pod in await active(cluster)] == indexes
        await end_first(cluster, "Succeeded")
        assert (await status(cluster))["completedIndexes"] == "0,1"
        assert ("Complete", "CompletionsReached") in await conditions(cluster)

    run(scenario)


def test_fewer_pods_run_when_fewer_are_wanted() -> None:
    async def scenario(cluster: Harness) -> None:
        await create(cluster, completions=9, parallelism=4)
        running = (await active(cluster))[0]["metadata"]["name"]
        await cluster.patch_status(
            PODS, running, {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        )
        assert (await status(cluster))["ready"] == 1
        await cluster.of(JOBS).patch("j", {"spec": {"parallelism": 1}})
        await cluster.settle()
        assert [pod["metadata"]["name"] for pod in await active(cluster)] == [running]
        assert await counts(cluster) == (1, 0, 0)

    run(scenario)


def test_the_job_of_another_controller_is_left_alone() -> None:
    async def scenario(cluster: Harness) -> None:
        await create(cluster, managedBy="example.com/mine")
        await cluster.advance(10)
        assert await status(cluster) == {}
        assert await cluster.names(PODS) == []

    run(scenario)


def test_an_orphan_that_the_job_selects_is_adopted_and_counted() -> None:
    async def scenario(cluster: Harness) -> None:
        job = await create(cluster, completions=2, parallelism=1)
        labels = job["spec"]["template"]["metadata"]["labels"]
        await cluster.create(PODS, {"metadata": {"name": "mine", "labels": labels}, "spec": POD})
        found = await cluster.get(PODS, "mine") if "mine" in await cluster.names(PODS) else None
        # One of two is too many: which one goes is chosen as among any pods.
        assert await counts(cluster) == (1, 0, 0)
        if found is not None:
            assert found["metadata"]["ownerReferences"][0]["name"] == "j"
            assert found["metadata"]["finalizers"] == [FINALIZER]

    run(scenario)


@pytest.mark.parametrize("policy", ["Orphan", "Background"])
def test_pods_of_a_job_that_is_gone_lose_its_finalizer(policy: str) -> None:
    async def scenario(cluster: Harness) -> None:
        await create(cluster, parallelism=2, completions=2)
        await cluster.of(JOBS).delete("j", propagation_policy=policy)
        if policy == "Orphan":  # the garbage collector isn't there
            await cluster.of(JOBS).patch("j", {"metadata": {"finalizers": None}})
        await cluster.settle()
        found = await active(cluster)
        assert len(found) == 2
        assert not any("finalizers" in pod["metadata"] for pod in found)

    run(scenario)


def test_more_pods_than_one_look_takes_are_made_and_counted_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((accounting, "_MAX_UNCOUNTED"), (pod_management, "_MAX_CREATED_OR_DELETED")):
        monkeypatch.setattr(module, name, 5)

    async def scenario(cluster: Harness) -> None:
        await create(cluster, completionMode="Indexed", completions=13, parallelism=13)
        assert await counts(cluster) == (13, 0, 0)
        for pod in await active(cluster):
            await cluster.of(PODS).patch(pod["metadata"]["name"], {"status": {"phase": "Succeeded"}}, "status")
        await cluster.settle()
        assert (await status(cluster))["completedIndexes"] == "0-12"
        assert ("Complete", "CompletionsReached") in await conditions(cluster)
        assert not any("finalizers" in pod["metadata"] for pod in await pods(cluster, "Succeeded"))

    run(scenario)
