"""CronJob in its several versions: v1 is the hub, and every other one says how it comes from and to it."""

from typing import Any

from fakeapiserver.apimachinery.gvk import GroupKind
from fakeapiserver.controller_runtime import Manager
from fakeapiserver.controller_runtime.webhook.conversion import Spokes, register_conversion

from cronjob_operator.api.v1 import cronjob as cronjob_v1
from cronjob_operator.api.v2 import cronjob as cronjob_v2
# scaffold:imports

FIELDS = ("minute", "hour", "day_of_month", "month", "day_of_week")


def v2_to_v1(obj: cronjob_v2.CronJob) -> cronjob_v1.CronJob:
    """Converts the schedule to a line of five words."""
    words = [getattr(obj.spec.schedule, field) or "*" for field in FIELDS]
    return cronjob_v1.CronJob.model_validate(with_schedule(obj, " ".join(words)))


def v1_to_v2(obj: cronjob_v1.CronJob) -> cronjob_v2.CronJob:
    """ValueError for a schedule that v2 can't say, such as @hourly."""
    words = obj.spec.schedule.split()
    if len(words) != len(FIELDS):
        raise ValueError("invalid schedule: not a standard 5-field schedule")
    schedule = cronjob_v2.CronSchedule(
        **{field: word for field, word in zip(FIELDS, words, strict=True) if word != "*"}
    )
    return cronjob_v2.CronJob.model_validate(with_schedule(obj, schedule.model_dump(by_alias=True, exclude_none=True)))


def with_schedule(obj: cronjob_v1.CronJob | cronjob_v2.CronJob, schedule: Any) -> dict[str, Any]:
    """All other fields are the same."""
    found = obj.model_dump(by_alias=True)
    return {**found, "spec": {**found["spec"], "schedule": schedule}}


def setup_conversion_with_manager(manager: Manager) -> None:
    """Registers the conversions with the manager's webhook server."""
    spokes = Spokes(cronjob_v1.CronJob)
    spokes.add(cronjob_v2.CronJob, to_hub=v2_to_v1, from_hub=v1_to_v2)
    # scaffold:spokes
    register_conversion(manager.webhook_server, GroupKind("batch.tutorial.example.com", "CronJob"), spokes)
