"""The kind CronJob: jobs on a schedule, which is said field by field."""

from typing import Any

from fakeapiserver.controller_runtime.markers import Column, resource
from fakeapiserver.controller_runtime.models import CustomResource, Int32, Model
from pydantic import Field

from cronjob_operator.api.v1.cronjob import ConcurrencyPolicy, CronJobStatus


class CronSchedule(Model):
    """When jobs are due, in UTC; what is left out is any."""

    minute: str | None = None
    hour: str | None = None
    day_of_month: str | None = None
    month: str | None = None
    day_of_week: str | None = None


class CronJobSpec(Model):
    """The desired state."""

    schedule: CronSchedule
    starting_deadline_seconds: int | None = Field(default=None, ge=0)
    """How late a job may be started; without it, however late."""
    concurrency_policy: ConcurrencyPolicy = "Allow"
    """What happens to a job that is due while another one runs: Allow both, Forbid the new one, Replace the old one."""
    suspend: bool = False
    job_template: dict[str, Any]
    """The metadata and spec of jobs."""
    successful_jobs_history_limit: Int32 = Field(default=3, ge=0)
    failed_jobs_history_limit: Int32 = Field(default=1, ge=0)


@resource(
    "batch.tutorial.example.com/v2",
    "CronJob",
    plural="cronjobs",
    storage=False,
    columns=[
        Column("Minute", ".spec.schedule.minute"),
        Column("Hour", ".spec.schedule.hour"),
        Column("Suspend", ".spec.suspend", "boolean"),
        Column("Last Schedule", ".status.lastScheduleTime", "date"),
        Column("Age", ".metadata.creationTimestamp", "date"),
    ],
)
class CronJob(CustomResource):
    """Jobs that are due again and again."""

    spec: CronJobSpec
    status: CronJobStatus | None = None
