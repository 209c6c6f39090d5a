"""Functions on a job's pods; pure (upstream: pkg/controller/job/{job_controller,tracking_utils,indexed_job_utils}.go)."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.go.strconv import atoi, parse_int
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.component_helpers.objects import is_terminating
from fakeapiserver.component_helpers.pods import pod_phase, sort_active
from fakeapiserver.controllers.job.policies import failure_match

TRACKING_FINALIZER: Final = "batch.kubernetes.io/job-tracking"
COMPLETION_INDEX: Final = "batch.kubernetes.io/job-completion-index"
INDEX_FAILURE_COUNT: Final = "batch.kubernetes.io/job-index-failure-count"
INDEX_IGNORED_FAILURE_COUNT: Final = "batch.kubernetes.io/job-index-ignored-failure-count"
# Takes the finalizer from a pod, whatever else it has.
UNTRACK: Final[Object] = {"metadata": {"$deleteFromPrimitiveList/finalizers": [TRACKING_FINALIZER]}}
UNKNOWN_INDEX: Final = -1
_INDEX_VARIABLE: Final = "JOB_COMPLETION_INDEX"
_MAX_GENERATED_NAME: Final = 58
_MAX_INT32: Final = 2**31 - 1


def is_indexed(job: Object) -> bool:
    is_indexed: bool = job["spec"].get("completionMode") == "Indexed"
    return is_indexed


def is_suspended(job: Object) -> bool:
    return bool(job["spec"].get("suspend"))


def has_limit_per_index(job: Object) -> bool:
    return job["spec"].get("backoffLimitPerIndex") is not None


def replaces_failed_only(job: Object) -> bool:
    """A pod that is being deleted is replaced when it has ended, not at once."""
    spec = job["spec"]
    return spec.get("podReplacementPolicy") == "Failed" or spec.get("podFailurePolicy") is not None


def is_tracked(pod: Object) -> bool:
    """Reports whether the pod has the tracking finalizer: the job's status doesn't count it yet."""
    return TRACKING_FINALIZER in (pod["metadata"].get("finalizers") or ())


def is_failed(pod: Object, job: Object) -> bool:
    """Reports whether the pod failed. A pod that is being deleted counts as failed, because it may never report its end."""
    phase = pod_phase(pod)
    if phase == "Failed":
        return True
    return not replaces_failed_only(job) and is_terminating(pod) and phase != "Succeeded"


def completion_index(pod: Object) -> int:
    """UNKNOWN_INDEX where the pod doesn't say it."""
    text = (pod["metadata"].get("annotations") or {}).get(COMPLETION_INDEX, "")
    try:
        return max(atoi(text), UNKNOWN_INDEX)
    except ValueError:
        return UNKNOWN_INDEX


def index_failures(pod: Object) -> int:
    """Returns how many earlier pods of the index failed and counted."""
    return _annotated(pod, INDEX_FAILURE_COUNT)


def all_index_failures(pod: Object) -> int:
    """Returns how many earlier pods of the index failed, including those that didn't count."""
    return index_failures(pod) + _annotated(pod, INDEX_IGNORED_FAILURE_COUNT)


def index_annotations(job: Object, replaced: Object | None) -> dict[str, str]:
    """Returns the annotations with the index's failures, for the pod that follows `replaced`."""
    if replaced is None:
        return {INDEX_FAILURE_COUNT: "0"}
    counts = failure_match(job["spec"].get("podFailurePolicy"), replaced).counts
    annotations = {INDEX_FAILURE_COUNT: str(index_failures(replaced) + counts)}
    ignored = _annotated(replaced, INDEX_IGNORED_FAILURE_COUNT) + (not counts)
    return {**annotations, INDEX_IGNORED_FAILURE_COUNT: str(ignored)} if ignored else annotations


def _annotated(pod: Object, name: str) -> int:
    text = (pod["metadata"].get("annotations") or {}).get(name, "")
    try:
        return max(parse_int(text, 32), 0)
    except ValueError:
        return 0


def generate_name(job_name: str, index: int) -> str:
    """The job's name and the index, cut to what leaves room for what makes it unique."""
    suffix = f"-{index}-"
    return (
        f"{job_name}{suffix}"
        if len(job_name + suffix) <= _MAX_GENERATED_NAME
        else (job_name[: _MAX_GENERATED_NAME - len(suffix)] + suffix)
    )


def with_index_variable(spec: dict[str, Any]) -> dict[str, Any]:
    """A pod's spec whose containers know their index."""
    with_variable = {**spec}
    for kind in ("initContainers", "containers"):
        if kind in spec:
            with_variable[kind] = [_knowing(container) for container in spec[kind]]
    return with_variable


def _knowing(container: dict[str, Any]) -> dict[str, Any]:
    env: Sequence[dict[str, Any]] = container.get("env") or ()
    if any(variable["name"] == _INDEX_VARIABLE for variable in env):
        return container
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{COMPLETION_INDEX}']"}}
    return {**container, "env": [*env, {"name": _INDEX_VARIABLE, "valueFrom": source}]}


def for_removal(job: Object, active: Sequence[Object], at_least: int) -> list[Object]:
    """Returns the surplus pods; of an indexed job also all but one pod per index, and pods without an index."""
    removed: list[Object] = []
    left: Iterable[Object] = active
    if is_indexed(job):
        removed, left = _without_repetitions(active, job["spec"]["completions"])
    if len(removed) < at_least:
        removed += sort_active(left)[: at_least - len(removed)]
    return removed


def _without_repetitions(active: Sequence[Object], completions: int) -> tuple[list[Object], list[Object]]:
    by_index: dict[int, list[Object]] = {}
    for pod in sorted(active, key=completion_index):
        by_index.setdefault(completion_index(pod), []).append(pod)
    removed: list[Object] = []
    left: list[Object] = []
    for index, pods in by_index.items():
        if index == UNKNOWN_INDEX or index >= completions:
            removed += pods
        else:
            *others, last = sort_active(pods) if len(pods) > 1 else pods
            removed += others
            left.append(last)
    return removed, left
