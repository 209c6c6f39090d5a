"""When a cron job's next job is due; pure. Times are seconds since the Unix epoch.

Upstream: pkg/controller/cronjob/utils.go.
"""

from datetime import UTC, datetime
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from fakeapiserver.apimachinery import cron
from fakeapiserver.apimachinery.location import load_location
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import seconds_of

# Seconds after the minute, as clocks of two machines are never the same.
_DELTA: Final = 0.1
_MANY: Final = 100


class Missed(NamedTuple):
    """The schedules that were missed.

    earliest: the time from which schedules count. latest: the last one that is due, or None. number: how many are
    due, roughly; 0 where
    it doesn't matter (none or one).
    """

    earliest: float
    latest: float | None
    number: int

    @property
    def too_many(self) -> bool:
        return self.number > _MANY


class NeverDue(ValueError):
    """The schedule is well-formed but matches no day, e.g. the 31st of February."""

    def __init__(self) -> None:
        super().__init__("time difference between two schedules is less than 1 second")


def is_known_zone(name: str) -> bool:
    """An empty one is UTC."""
    try:
        load_location(name)
    except ValueError:
        return False
    return True


def names_zone(cron_job: Object) -> bool:
    """The schedule itself says TZ= or CRON_TZ=, which the API never promised to understand."""
    return "TZ" in cron_job["spec"]["schedule"]


def schedule_of(cron_job: Object) -> cron.Schedule:
    """In the cron job's own time zone, unless its schedule names one. ValueError."""
    spec = cron_job["spec"]
    text, zone = spec["schedule"], spec.get("timeZone")
    if zone is not None and not names_zone(cron_job) and is_known_zone(zone):
        text = f"TZ={zone} {text}"
    return cron.parse(text)


def missed(cron_job: Object, now: float, schedule: cron.Schedule, *, heeds_deadline: bool = True) -> Missed:
    """Returns the schedules that are due and have no job yet.

    heeds_deadline: ignores schedules that are later than startingDeadlineSeconds. Raises NeverDue.
    """
    earliest = last_schedule_time(cron_job)
    if earliest is None:
        earliest = seconds_of(cron_job["metadata"]["creationTimestamp"]) or 0.0
    deadline = cron_job["spec"].get("startingDeadlineSeconds")
    if heeds_deadline and deadline is not None:
        earliest = max(earliest, now - deadline)
    first = schedule.next_after(earliest)
    if first is None:
        raise NeverDue
    if now < first:
        return Missed(earliest, None, 0)
    second = schedule.next_after(first)
    if second is None:
        raise NeverDue
    if now < second:
        return Missed(earliest, first, 0)
    # As if all were as far from each other as the first two; from one before the last of these on, each is looked at.
    between = max(1, round(second - first))
    number = int(now - first) // between + 1
    latest = None
    due = schedule.next_after(first + (number - 2) * between)
    while due is not None and due <= now:
        latest, due = due, schedule.next_after(due)
    return Missed(earliest, latest, number)


def seconds_until_next(cron_job: Object, now: float, schedule: cron.Schedule) -> float:
    """Returns the seconds until the next schedule; 0 if one is due already or none ever will be."""
    try:
        missed_runs = missed(cron_job, now, schedule, heeds_deadline=False)
    except NeverDue:
        since = now
    else:
        since = (
            missed_runs.latest
            if missed_runs.latest is not None
            else now
            if missed_runs.number
            else missed_runs.earliest
        )
    due = schedule.next_after(since)
    return 0.0 if due is None else max(0.0, due + _DELTA - now)


def last_schedule_time(cron_job: Object) -> float | None:
    text = (cron_job.get("status") or {}).get("lastScheduleTime")
    return seconds_of(text) if text else None


def job_name(cron_job: Object, due: float) -> str:
    """Returns a name that is the same for the same minute, so that the job is not created twice."""
    return f"{cron_job['metadata']['name']}-{int(due) // 60}"


def scheduled_timestamp(cron_job: Object, due: float) -> str:
    """RFC 3339 in the cron job's time zone."""
    zone = cron_job["spec"].get("timeZone")
    text = datetime.fromtimestamp(due, ZoneInfo(zone) if zone else UTC).isoformat()
    return text.replace("+00:00", "Z")
