"""Cron jobs: what is due when, and what becomes of the jobs."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.component_helpers.objects import CRON_JOBS, JOBS
from fakeapiserver.controllers.cronjob.schedule import NeverDue, missed, schedule_of, seconds_until_next
from tests.controllers.harness import Harness
from tests.controllers.harness import run as run_with


def run(scenario: Callable[[Harness], Awaitable[None]]) -> None:
    """From ten seconds past a minute on: what is due in the next second would be there as soon as the cluster has settled."""

    async def past_the_minute(cluster: Harness) -> None:
        await cluster.advance(MINUTE + 10 - cluster.clock.now() % MINUTE)
        await scenario(cluster)

    run_with(past_the_minute, "cronjob-controller")


DAY = 86_400.0
MINUTE = 60.0
POD = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}}


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def cron_job(name: str = "tick", schedule: str = "* * * * *", **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {"schedule": schedule, "jobTemplate": {"spec": {"template": POD}}, **spec},
    }


async def finish(cluster: Harness, name: str, outcome: str = "Complete") -> None:
    """Finishes a job as the job controller would, a minute after its start."""
    now = rfc3339(cluster.clock.now())
    first = "SuccessCriteriaMet" if outcome == "Complete" else "FailureTarget"
    await cluster.patch_status(JOBS, name, {"startTime": now, "conditions": [{"type": first, "status": "True"}]})
    status: dict[str, Any] = {
        "conditions": [{"type": kind, "status": "True", "lastTransitionTime": now} for kind in (first, outcome)]
    }
    if outcome == "Complete":
        status["completionTime"] = now
    await cluster.patch_status(JOBS, name, status)


async def finish_all(cluster: Harness, outcome: str = "Complete") -> None:
    for job in (await cluster.of(JOBS).list())["items"]:
        if "startTime" not in job.get("status", {}):
            await finish(cluster, job["metadata"]["name"], outcome)


# ------------------------------------------------------------------------------------- what is due


@pytest.mark.parametrize(
    ("schedule", "now", "latest", "count"),
    [
        ("0 * * * *", "2026-03-01T10:59:59", None, 0),
        ("0 * * * *", "2026-03-01T11:00:00", "2026-03-01T11:00:00", 0),
        ("0 * * * *", "2026-03-01T13:30:00", "2026-03-01T13:00:00", 3),
        ("30 6-16/4 * * 1-5", "2026-03-03T07:00:00", "2026-03-03T06:30:00", 7),  # a Sunday, and what isn't regular
        ("@every 90m", "2026-03-01T14:00:00", "2026-03-01T13:10:00", 2),
        ("* * * * *", "2026-03-01T13:00:00", "2026-03-01T13:00:00", 140),
    ],
)
def test_the_last_that_is_due_counts_and_how_many_there_were(
    schedule: str, now: str, latest: str | None, count: int
) -> None:
    obj = {**cron_job(schedule=schedule), "metadata": {"name": "t", "creationTimestamp": "2026-03-01T10:10:00Z"}}
    if schedule == "* * * * *":
        obj["status"] = {"lastScheduleTime": "2026-03-01T10:40:00Z"}
    found = missed(obj, at(now), schedule_of({**obj, "spec": {**obj["spec"], "timeZone": "Etc/UTC"}}))
    assert (found.latest, found.number) == (None if latest is None else at(latest), count)
    assert found.too_many == (count > 100)


@pytest.mark.parametrize(
    ("zone", "due"),
    [
        ("Europe/Zurich", "2026-03-29T03:30:00+02:00"),  # the hour from two to three isn't there that day
        ("Etc/UTC", "2026-03-29T02:30:00+00:00"),
        ("America/New_York", "2026-03-29T02:30:00-04:00"),
    ],
)
def test_a_time_zone_decides_when(zone: str, due: str) -> None:
    obj = cron_job(schedule="30 2,3 29 3 *", timeZone=zone)
    obj["metadata"]["creationTimestamp"] = "2026-03-28T12:00:00Z"
    now = at("2026-03-28T12:00:00")
    assert seconds_until_next(obj, now, schedule_of(obj)) == pytest.approx(
        datetime.fromisoformat(due).timestamp() + 0.1 - now
    )


def test_a_day_that_never_comes_is_an_error() -> None:
    obj = cron_job(schedule="59 23 31 2 *")
    obj["metadata"]["creationTimestamp"] = "2026-03-28T12:00:00Z"
    with pytest.raises(NeverDue, match="less than 1 second"):
        missed(obj, at("2026-03-28T12:00:00"), schedule_of(obj))


# --------------------------------------------------------------------------------------- a virtual day


def test_a_virtual_day_of_hourly_jobs_leaves_the_last_three() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(CRON_JOBS, cron_job("hourly", "0 * * * *", timeZone="Europe/Zurich"))
        await cluster.advance(DAY, partial(finish_all, cluster))
        status = (await cluster.get(CRON_JOBS, "hourly"))["status"]
        now = cluster.clock.now()
        hours = [int(now // 3600 - back) * 3600 for back in (2, 1, 0)]
        assert await cluster.names(JOBS) == [f"hourly-{hour // 60}" for hour in hours]
        assert status["lastScheduleTime"] == rfc3339(hours[-1])
        assert status["lastSuccessfulTime"] == rfc3339(hours[-1])  # 0.1 s after the hour
        assert "active" not in status

    run(scenario)


def test_a_job_is_its_template_with_the_time_it_was_due_at() -> None:
    async def scenario(cluster: Harness) -> None:
        obj = cron_job(timeZone="Asia/Tokyo")
        obj["spec"]["jobTemplate"]["metadata"] = {"labels": {"a": "b"}, "annotations": {"c": "d"}}
        created = await cluster.create(CRON_JOBS, obj)
        await cluster.advance(MINUTE)
        [job] = (await cluster.of(JOBS).list())["items"]
        due = int(cluster.clock.now()) // 60 * 60
        shown = datetime.fromtimestamp(due, UTC).astimezone().isoformat()
        stamp = job["metadata"]["annotations"].pop("batch.kubernetes.io/cronjob-scheduled-timestamp")
        assert stamp.endswith("+09:00")
        assert datetime.fromisoformat(stamp) == datetime.fromisoformat(shown)
        assert job["metadata"]["labels"] == {"a": "b"}
        assert job["metadata"]["annotations"] == {"c": "d"}
        assert job["metadata"]["ownerReferences"] == [
            {
                "apiVersion": "batch/v1",
                "kind": "CronJob",
                "name": "tick",
                "uid": created["metadata"]["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
        status = (await cluster.get(CRON_JOBS, "tick"))["status"]
        assert [(found["name"], found["uid"]) for found in status["active"]] == [
            (job["metadata"]["name"], job["metadata"]["uid"])
        ]
        assert await cluster.events() == [("SuccessfulCreate", f"Created job {job['metadata']['name']}")]

    run(scenario)


# ----------------------------------------------------------------------------------------- policies


@pytest.mark.parametrize(
    ("policy", "jobs", "reasons"),
    [
        ("Allow", 3, {"SuccessfulCreate"}),
        ("Forbid", 1, {"SuccessfulCreate", "JobAlreadyActive"}),
        ("Replace", 1, {"SuccessfulCreate", "SuccessfulDelete"}),
    ],
)
def test_the_concurrency_policy_decides_about_a_job_that_still_runs(policy: str, jobs: int, reasons: set[str]) -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(CRON_JOBS, cron_job(concurrencyPolicy=policy))
        await cluster.advance(3 * MINUTE)
        assert len(await cluster.names(JOBS)) == jobs
        assert len((await cluster.get(CRON_JOBS, "tick"))["status"]["active"]) == jobs
        assert set(await cluster.reasons()) == reasons

    run(scenario)


@pytest.mark.parametrize(
    ("outcome", "limits", "left"),
    [
        ("Complete", {"successfulJobsHistoryLimit": 2}, 2),
        ("Failed", {"failedJobsHistoryLimit": 0}, 0),
        ("Failed", {}, 1),
    ],
)
def test_history_is_deleted_the_oldest_first(outcome: str, limits: dict[str, int], left: int) -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(CRON_JOBS, cron_job(**limits))
        names: list[str] = []

        async def note_and_finish() -> None:
            names.extend(name for name in await cluster.names(JOBS) if name not in names)
            await finish_all(cluster, outcome)

        await cluster.advance(4 * MINUTE, note_and_finish)
        assert len(names) == 4
        assert await cluster.names(JOBS) == names[4 - left :]
        told = await cluster.events()
        assert [message for reason, message in told if reason == "SuccessfulDelete"] == [
            f"Deleted job {name}" for name in names[: 4 - left]
        ]
        # A job that is deleted at once can't be seen any more.
        assert [message for reason, message in told if reason == "SawCompletedJob"] == [
            f"Saw completed job: {name}, condition: {outcome}" for name in names if left
        ]

    run(scenario)


def test_a_suspended_one_makes_up_for_the_last_it_missed_when_it_goes_on() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(CRON_JOBS, cron_job(suspend=True))
        await cluster.advance(5 * MINUTE)
        assert await cluster.names(JOBS) == []
        await cluster.of(CRON_JOBS).patch("tick", {"spec": {"suspend": False}})
        await cluster.settle()
        assert await cluster.names(JOBS) == [f"tick-{int(cluster.clock.now()) // 60}"]

    run(scenario)


def test_more_than_a_hundred_missed_ones_are_warned_of() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(CRON_JOBS, cron_job(suspend=True))
        await cluster.advance(150 * MINUTE)
        await cluster.of(CRON_JOBS).patch("tick", {"spec": {"suspend": False}})
        await cluster.settle()
        assert await cluster.reasons() == ["TooManyMissedTimes", "SuccessfulCreate"]

    run(scenario)


def test_what_is_too_late_for_the_deadline_is_missed() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(CRON_JOBS, cron_job(schedule="0 0 1 * *", suspend=True, startingDeadlineSeconds=30))
        await cluster.advance(32 * DAY)  # the first of a month was some time ago
        now = cluster.clock.now()
        await cluster.of(CRON_JOBS).patch("tick", {"spec": {"suspend": False}})
        await cluster.settle()
        in_time = "-01T" in rfc3339(now) and now % DAY <= 30
        assert bool(await cluster.names(JOBS)) is in_time

    run(scenario)


def test_another_timetable_counts_from_when_it_is_written() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(CRON_JOBS, cron_job(schedule="0 0 29 2 *"))
        await cluster.advance(MINUTE)
        assert await cluster.names(JOBS) == []
        await cluster.of(CRON_JOBS).patch("tick", {"spec": {"schedule": "* * * * *"}})
        await cluster.settle()
        await cluster.advance(MINUTE)
        assert len(await cluster.names(JOBS)) == 1

    run(scenario)


def test_a_job_that_vanishes_is_active_no_more() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(CRON_JOBS, cron_job(schedule="*/5 * * * *"))
        await cluster.advance(5 * MINUTE)
        [name] = await cluster.names(JOBS)
        await cluster.of(JOBS).delete(name, propagation_policy="Background")
        await cluster.settle()
        assert "active" not in (await cluster.get(CRON_JOBS, "tick"))["status"]
        assert ("MissingJob", f"Active job went missing: {name}") in await cluster.events()

    run(scenario)


def test_a_job_that_is_there_already_is_waited_for() -> None:
    """A finished job isn't adopted again: its completion would be reported twice."""

    async def scenario(cluster: Harness) -> None:
        await cluster.create(CRON_JOBS, cron_job(failedJobsHistoryLimit=1))
        await cluster.advance(MINUTE)
        made = await cluster.names(JOBS)
        due = (await cluster.get(CRON_JOBS, "tick"))["status"]["lastScheduleTime"]
        await finish_all(cluster)
        long_ago = rfc3339(cluster.clock.now() - 10 * MINUTE)
        await cluster.patch_status(CRON_JOBS, "tick", {"lastScheduleTime": long_ago})
        status = (await cluster.get(CRON_JOBS, "tick"))["status"]
        assert (status["lastScheduleTime"], "active" in status) == (long_ago, False)
        await cluster.of(JOBS).delete(made[0], propagation_policy="Background")
        await cluster.advance(30)
        assert await cluster.names(JOBS) == made
        status = (await cluster.get(CRON_JOBS, "tick"))["status"]
        assert (status["lastScheduleTime"], len(status["active"])) == (due, 1)

    run(scenario)


def test_an_owned_job_that_was_not_created_here_is_reported() -> None:
    async def scenario(cluster: Harness) -> None:
        owner = await cluster.create(CRON_JOBS, cron_job(suspend=True))
        reference = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "tick", "uid": owner["metadata"]["uid"]}
        await cluster.create(
            JOBS,
            {
                "metadata": {"name": "byhand", "ownerReferences": [{**reference, "controller": True}]},
                "spec": {"template": POD},
            },
        )
        told = ("UnexpectedJob", "Saw a job that the controller did not create or forgot: byhand")
        assert await cluster.events() == [told]

    run(scenario)


@pytest.mark.parametrize("schedule", ["59 23 31 2 *"])
def test_what_can_never_be_due_is_warned_of(schedule: str) -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(CRON_JOBS, cron_job(schedule=schedule))
        assert await cluster.events() == [
            (
                "InvalidSchedule",
                f"invalid schedule: {schedule} : time difference between two schedules is less than 1 second",
            )
        ]

    run(scenario)
