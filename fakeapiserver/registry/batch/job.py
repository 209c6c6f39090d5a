"""Jobs: their selector is made from their uid.

Upstream: pkg/registry/batch/job/strategy.go, pkg/apis/batch/v1/defaults.go.
"""

from collections.abc import Sequence
from typing import Final

from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, is_terminating, metadata
from fakeapiserver.apimachinery.timestamp import seconds_of
from fakeapiserver.registry.apps.deployment import pod_name_warnings
from fakeapiserver.registry.batch.job_scheduling import declared_scheduling_errors
from fakeapiserver.registry.batch.job_status_validation import job_status_update_errors
from fakeapiserver.registry.batch.job_validation import host_name_errors, job_errors, job_update_errors
from fakeapiserver.registry.batch.job_warnings import job_spec_warnings
from fakeapiserver.registry.core.pod.options import WithPods
from fakeapiserver.registry.core.pod.template import default_pod_template
from fakeapiserver.registry.generic.label_selector import format_label_selector
from fakeapiserver.registry.generic.printing import human_duration
from fakeapiserver.registry.generic.strategy import Cells
from fakeapiserver.registry.generic.strategy_facts import MetaCheck
from fakeapiserver.registry.generic.table_cells import age, container_cells

_NAME_LABELS: Final = ("job-name", "batch.kubernetes.io/job-name")
_UID_LABELS: Final = ("controller-uid", "batch.kubernetes.io/controller-uid")
_SPEC: Final = Path("spec")
_MAX_INT32: Final = 2**31 - 1
# Which condition a table shows, by precedence; a terminating job comes before the last three.
_ENDED: Final = (("Complete", "Complete"), ("Failed", "Failed"))
_ENDING: Final = ("Suspended", "FailureTarget", "SuccessCriteriaMet")


class JobStrategy(WithPods, kw_only=True):
    def default(self, obj: Object, version: str) -> None:
        spec = obj["spec"]
        default_job_spec(spec, image_volumes=self.pod_options.image_volumes)
        default_failure_policy(spec)
        if spec.get("completions") is None and spec.get("parallelism") is None:
            spec["completions"] = 1
        spec.setdefault("parallelism", 1)
        spec.setdefault("backoffLimit", _MAX_INT32 if "backoffLimitPerIndex" in spec else 6)
        labels = metadata(spec["template"]).get("labels")
        if labels and not metadata(obj).get("labels"):
            metadata(obj)["labels"] = labels  # shared: what is added to the template's is added here
        spec.setdefault("completionMode", "NonIndexed")
        spec.setdefault("suspend", False)
        if self.features.enabled("JobPodReplacementPolicy"):
            spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
        spec.setdefault("manualSelector", False)

    def prepare_for_create(self, obj: Object) -> None:
        if not self.features.enabled("JobManagedBy"):
            obj["spec"].pop("managedBy", None)
        if not obj["spec"]["manualSelector"]:
            _generate_selector(obj)
        obj["status"] = {}

    def shows_more_than_stored(self, obj: Object) -> bool:
        """True for a job without labels of its own, which gets those of its template when it is read."""
        labels = metadata(obj).get("labels")
        return labels == metadata(obj["spec"]["template"]).get("labels") and set(labels or ()) <= {
            *_NAME_LABELS,
            *_UID_LABELS,
        }

    def warnings_on_create(self, obj: Object) -> list[str]:
        return pod_name_warnings(obj) + job_spec_warnings(obj["spec"], Path("spec"))

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        if metadata(obj).get("generation") == metadata(old).get("generation"):
            return []
        return job_spec_warnings(obj["spec"], Path("spec"))

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        """A job without labels gets those of its template, as upstream does when it reads the stored job."""
        super().prepare_for_status_update(obj, old)
        if "labels" not in metadata(obj):
            self.default(obj, obj["apiVersion"].rpartition("/")[2])

    def validate(self, obj: Object) -> ErrorList:
        errors = job_errors(obj, self.pod_options)
        return errors + declared_scheduling_errors(obj["spec"], None, self.features, _SPEC)

    def revalidate(self, obj: Object, old: Object) -> ErrorList:
        """The errors in a changed job, which may lack prefixed labels if it is older than these."""
        labels = metadata(old["spec"]["template"]).get("labels") or {}
        options = self.pod_options.beside(old["spec"]["template"])
        return job_errors(obj, options, prefixed=_NAME_LABELS[1] in labels and _UID_LABELS[1] in labels)

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        options = self.pod_options.beside(old["spec"]["template"])
        directives = self.features.enabled("MutableSchedulingDirectivesForSuspendedJobs")
        resources = self.features.enabled("MutablePodResourcesForSuspendedJobs")
        errors = job_update_errors(obj, old, options, mutable_directives=directives, mutable_resources=resources)
        errors += host_name_errors(obj) if self.features.at_least("v1.37") else []
        return errors + declared_scheduling_errors(obj["spec"], old["spec"], self.features, _SPEC)

    def meta_checks(self, subresource: str) -> tuple[MetaCheck, ...]:
        """Since 1.37 a changed job isn't checked as a new one."""
        return ("update",) if not subresource and self.features.at_least("v1.37") else super().meta_checks(subresource)

    def validate_status_update(self, obj: Object, old: Object) -> ErrorList:
        return job_status_update_errors(obj, old)

    def fields_of(self, obj: Object) -> dict[str, str]:
        fields = super().fields_of(obj)
        fields["status.successful"] = str((obj.get("status") or {}).get("succeeded", 0))
        return fields

    def canonicalize(self, obj: Object) -> None:
        """A job without labels gets those of its template, as upstream does when it reads the job."""
        meta = metadata(obj)
        if not meta.get("labels"):
            meta["labels"] = dict(metadata(obj["spec"]["template"]).get("labels") or {})

    def table_row(self, obj: Object, now: float) -> Cells:
        spec = obj.get("spec") or {}
        return [
            metadata(obj).get("name", ""),
            _state(obj, _ENDING if self.features.at_least("v1.34") else _ENDING[:2]),
            _completions(spec, (obj.get("status") or {}).get("succeeded", 0)),
            _duration(obj.get("status") or {}, now),
            age(obj, now),
            *container_cells(spec.get("template")),
            format_label_selector(spec.get("selector")),
        ]


def default_job_spec(spec: Object, *, image_volumes: bool) -> None:
    """Sets the defaults that jobs and the templates of cron jobs share."""
    default_pod_template(spec["template"], image_volumes=image_volumes)


def default_failure_policy(spec: Object) -> None:
    """Sets the defaults of spec.podFailurePolicy of a job, and since 1.34 of a cron job's template."""
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            if not pattern.get("status"):
                pattern["status"] = "True"


def _generate_selector(obj: Object) -> None:
    meta, spec = metadata(obj), obj["spec"]
    template_meta = dict(metadata(spec["template"]))
    # A job without labels has its template's, and shares them from then on.
    shared = bool(template_meta.get("labels")) and meta.get("labels") is template_meta["labels"]
    labels = dict(template_meta.get("labels") or {})
    for name in _NAME_LABELS:
        labels.setdefault(name, meta.get("name", ""))
    for name in _UID_LABELS:
        labels.setdefault(name, meta["uid"])
    spec["template"] = {**spec["template"], "metadata": {**template_meta, "labels": dict(sorted(labels.items()))}}
    if shared:
        meta["labels"] = dict(labels)
    selector = dict(spec.get("selector") or {})
    chosen = {_UID_LABELS[1]: meta["uid"], **(selector.get("matchLabels") or {})}
    selector["matchLabels"] = dict(sorted(chosen.items()))
    spec["selector"] = selector


def _state(obj: Object, ending: Sequence[str]) -> str:
    """A job's state as tables show it. `ending`: the conditions, known to the version, of a job that is about to end."""
    conditions: dict[str, bool] = {}
    for condition in (obj.get("status") or {}).get("conditions") or ():
        conditions.setdefault(condition.get("type", ""), condition.get("status") == "True")
    for kind, text in _ENDED:
        if conditions.get(kind):
            return text
    if is_terminating(obj):
        return "Terminating"
    return next((kind for kind in ending if conditions.get(kind)), "Running")


def _completions(spec: Object, succeeded: int) -> str:
    if (completions := spec.get("completions")) is not None:
        return f"{succeeded}/{completions}"
    parallelism = spec.get("parallelism", 0)
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _duration(status: Object, now: float) -> str:
    started, ended = seconds_of(status.get("startTime") or ""), seconds_of(status.get("completionTime") or "")
    if started is None:
        return ""
    return human_duration(int((now if ended is None else ended) - started))
