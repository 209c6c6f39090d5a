"""Cron jobs.

Upstream: pkg/registry/batch/cronjob/strategy.go, pkg/apis/batch/v1/defaults.go, pkg/apis/batch/validation/validation.go.
"""

import re
from typing import Final

from fakeapiserver.apimachinery import cron, field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.location import load_location
from fakeapiserver.apimachinery.meta import FieldPath, Object, metadata
from fakeapiserver.apis.quantity_fields import IN_CRON_JOB, QuantityFields
from fakeapiserver.registry.apps.deployment import pod_name_warnings
from fakeapiserver.registry.batch.job import default_failure_policy, default_job_spec
from fakeapiserver.registry.batch.job_scheduling import declared_scheduling_errors
from fakeapiserver.registry.batch.job_validation import job_spec_errors
from fakeapiserver.registry.batch.job_warnings import job_spec_warnings
from fakeapiserver.registry.core.field_formats import choice_errors, non_negative_errors
from fakeapiserver.registry.core.pod.options import PodOptions, WithPods
from fakeapiserver.registry.generic.label_selector import format_label_selector, shown_selector
from fakeapiserver.registry.generic.printing import translate_timestamp_since
from fakeapiserver.registry.generic.strategy import Cells
from fakeapiserver.registry.generic.table_cells import NONE, age, container_cells

_SPEC: Final = Path("spec")
_JOB: Final = _SPEC.child("jobTemplate").child("spec")
_ZONE_WARNING: Final = (
    "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
    "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
)
_POLICIES: Final = ("Allow", "Forbid", "Replace")
_MAX_NAME: Final = 52
_ZONE_PART: Final = re.compile(r"[A-Za-z.\-_0-9+]{1,14}")
_LOCAL_ZONE: Final = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
_ZONE_IN_SCHEDULE: Final = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"


class CronJobStrategy(WithPods, kw_only=True):
    pod_spec_path: FieldPath = ("spec", "jobTemplate", "spec", "template", "spec")
    quantity_fields: QuantityFields = IN_CRON_JOB

    def default(self, obj: Object, version: str) -> None:
        spec = obj["spec"]
        default_job_spec(spec["jobTemplate"]["spec"], image_volumes=self.pod_options.image_volumes)
        if self.features.at_least("v1.34"):
            default_failure_policy(spec["jobTemplate"]["spec"])
        spec.setdefault("concurrencyPolicy", "Allow")
        spec.setdefault("suspend", False)
        spec.setdefault("successfulJobsHistoryLimit", 3)
        spec.setdefault("failedJobsHistoryLimit", 1)

    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {}

    def warnings_on_create(self, obj: Object) -> list[str]:
        return pod_name_warnings(obj) + job_spec_warnings(obj["spec"]["jobTemplate"]["spec"], _JOB)

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        warnings = []
        if metadata(obj).get("generation") != metadata(old).get("generation"):
            warnings = job_spec_warnings(obj["spec"]["jobTemplate"]["spec"], _JOB)
        return [*warnings, _ZONE_WARNING] if "TZ" in obj["spec"].get("schedule", "") else warnings

    def validate(self, obj: Object) -> ErrorList:
        errors = _spec_errors(obj["spec"], {}, self.pod_options)
        name = str(metadata(obj).get("name", ""))
        if len(name) > _MAX_NAME:
            errors.append(field.invalid("metadata.name", name, f"must be no more than {_MAX_NAME} characters"))
        return errors + declared_scheduling_errors(obj["spec"]["jobTemplate"]["spec"], None, self.features, _JOB)

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        job, old_job = (each["spec"]["jobTemplate"]["spec"] for each in (obj, old))
        errors = _spec_errors(obj["spec"], old["spec"], self.pod_options.beside(old_job["template"]))
        return errors + declared_scheduling_errors(job, old_job, self.features, _JOB)

    def table_row(self, obj: Object, now: float) -> Cells:
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        job = (spec.get("jobTemplate") or {}).get("spec") or {}
        return [
            metadata(obj).get("name", ""),
            spec.get("schedule", ""),
            spec.get("timeZone", NONE),
            {True: "True", False: "False", None: "<unset>"}[spec.get("suspend")],
            len(status.get("active") or ()),
            translate_timestamp_since(status["lastScheduleTime"], now) if "lastScheduleTime" in status else NONE,
            age(obj, now),
            *container_cells(job.get("template")),
            format_label_selector(job.get("selector")),
        ]


def _spec_errors(spec: Object, old: Object, options: PodOptions) -> ErrorList:
    errors = _schedule_errors(spec, zone_allowed="TZ" in old.get("schedule", ""))
    errors += non_negative_errors(spec.get("startingDeadlineSeconds", 0), _SPEC.child("startingDeadlineSeconds"))
    if "timeZone" in spec and spec["timeZone"] != old.get("timeZone"):
        errors += _zone_errors(spec["timeZone"])
    errors += choice_errors(spec["concurrencyPolicy"], _POLICIES, _SPEC.child("concurrencyPolicy"))
    errors += _template_errors(spec["jobTemplate"]["spec"], _SPEC.child("jobTemplate", "spec"), options)
    for name in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        errors += non_negative_errors(spec[name], _SPEC.child(name))
    return errors


def _schedule_errors(spec: Object, zone_allowed: bool) -> ErrorList:
    schedule, path, errors = spec.get("schedule", ""), _SPEC.child("schedule"), ErrorList()
    if not schedule:
        return [field.required(path)]
    try:
        cron.parse(schedule)
    except ValueError as error:
        errors.append(field.invalid(path, schedule, str(error)))
    if "TZ" in schedule and not zone_allowed:
        errors.append(field.invalid(path, schedule, _ZONE_IN_SCHEDULE))
    elif "TZ" in schedule and "timeZone" in spec:
        errors.append(field.invalid(path, schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule"))
    return errors


def _zone_errors(zone: str) -> ErrorList:
    path = _SPEC.child("timeZone")
    if not zone:
        return [field.invalid(path, zone, "timeZone must be nil or non-empty string")]
    for part in zone.split("/"):
        if part in (".", "..") or part.startswith("-") or not _ZONE_PART.fullmatch(part):
            return [field.invalid(path, zone, f"unknown time zone {zone}")]
    errors = [field.invalid(path, zone, _LOCAL_ZONE)] if zone.lower() == "local" else ErrorList()
    try:
        load_location(zone)
    except ValueError as error:
        errors.append(field.invalid(path, zone, str(error)))
    return errors


def _template_errors(job: Object, path: Path, options: PodOptions) -> ErrorList:
    errors = job_spec_errors(job, path, options)
    if job.get("selector") is not None:
        errors.append(
            field.invalid(path.child("selector"), shown_selector(job["selector"]), "`selector` will be auto-generated")
        )
    if job.get("manualSelector"):
        errors.append(field.not_supported(path.child("manualSelector"), True, ("nil", "false")))
    return errors
