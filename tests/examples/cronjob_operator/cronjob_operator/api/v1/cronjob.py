"""The kind CronJob: jobs on a schedule."""

from typing import Any, Literal

from fakeapiserver.controller_runtime.markers import Column, resource
from fakeapiserver.controller_runtime.models import CustomResource, Int32, Model
from pydantic import Field

ConcurrencyPolicy = Literal["Allow", "Forbid", "Replace"]


class CronJobSpec(Model):
    """The desired state."""

    schedule: str = Field(min_length=1)
    """When jobs are due, as cron has it, in UTC."""
    starting_deadline_seconds: int | None = Field(default=None, ge=0)
    """How late a job may be started; without it, however late."""
    concurrency_policy: ConcurrencyPolicy = "Allow"
    """What happens to a job that is due while another one runs: Allow both, Forbid the new one, Replace the old one."""
    suspend: bool = False
    job_template: dict[str, Any]
    """The metadata and spec of jobs."""
    successful_jobs_history_limit: Int32 = Field(default=3, ge=0)
    failed_jobs_history_limit: Int32 = Field(default=1, ge=0)


class CronJobStatus(Model):
    """The observed state."""

    active: list[dict[str, Any]] = Field(default_factory=list)
    """References to the jobs that run."""
    last_schedule_time: str | None = Field(default=None, json_schema_extra={"format": "date-time"})


@resource(
    "batch.tutorial.example.com/v1",
    "CronJob",
    plural="cronjobs",
    columns=[
        Column("Schedule", ".spec.schedule"),
        Column("Suspend", ".spec.suspend", "boolean"),
        Column("Last Schedule", ".status.lastScheduleTime", "date"),
        Column("Age", ".metadata.creationTimestamp", "date"),
    ],
)
class CronJob(CustomResource):
    """Jobs that are due again and again."""

    spec: CronJobSpec
    status: CronJobStatus | None = None
