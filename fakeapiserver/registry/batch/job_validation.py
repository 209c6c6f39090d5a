"""Validation of jobs, and of the jobs that cron jobs create.

Upstream: pkg/apis/batch/validation/validation.go.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apis.internal_form import internal_form
from fakeapiserver.apis.quantity_fields import POD_SPEC, POD_TEMPLATE, same
from fakeapiserver.registry.batch.job_policy_validation import (
    pod_failure_policy_errors,
    shown_failure_policy,
    shown_policy,
    success_policy_errors,
)
from fakeapiserver.registry.batch.job_scheduling import changed_policy_errors, job_scheduling_errors
from fakeapiserver.registry.core.field_formats import non_negative_errors
from fakeapiserver.registry.core.pod.options import DEFAULT_OPTIONS, PodOptions
from fakeapiserver.registry.core.pod.validation import pod_template_errors
from fakeapiserver.registry.generic.label_selector import (
    IMMUTABLE,
    immutable_errors,
    immutable_selector_errors,
    label_selector_errors,
    parsed,
    shown_selector,
)
from fakeapiserver.registry.generic.strategy import copy_field

_SPEC: Final = Path("spec")
_TEMPLATE_META: Final = _SPEC.child("template", "metadata")
_COUNTS: Final = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_MAX_INDEXES: Final = 100_000
_MAX_OF_MANY: Final = 10_000
_MAX_MANAGED_BY: Final = 63
_MODES: Final = ("NonIndexed", "Indexed")
_REPLACEMENTS: Final = ("Failed", "TerminatingOrFailed")
_IMMUTABLE: Final = ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")
_SHOWN: Final[Mapping[str, Callable[[Any], object]]] = {
    "podFailurePolicy": shown_failure_policy,
    "successPolicy": shown_policy,
}
# What may change in the template of a job that waits.
_SCHEDULING: Final = ("nodeSelector", "tolerations", "schedulingGates")


def job_errors(obj: Object, options: PodOptions = DEFAULT_OPTIONS, *, prefixed: bool = True) -> ErrorList:
    """The errors in a job by itself; `prefixed`: generated labels include those with prefixes."""
    spec = obj["spec"]
    errors = _generated_selector_errors(obj, prefixed) + _with_selector_errors(spec, options)
    return errors + host_name_errors(obj)


def host_name_errors(obj: Object) -> ErrorList:
    """The error of an indexed job whose last pod would have an invalid host name."""
    spec = obj["spec"]
    if spec["completionMode"] != "Indexed" or spec.get("completions", 0) <= 0:
        return []
    name = str(metadata(obj).get("name", ""))
    host = f"{name}-{spec['completions'] - 1}"
    if not names.is_dns1123_label(host):
        return []
    return [field.invalid("metadata.name", name, f"will not able to create pod with invalid DNS label: {host}")]


def job_update_errors(
    obj: Object,
    old: Object,
    options: PodOptions = DEFAULT_OPTIONS,
    *,
    mutable_directives: bool = True,
    mutable_resources: bool = True,
) -> ErrorList:
    """The errors in an update of a job: only its counts and `suspend` can change, and as far as the features allow it, scheduling
    directives and resources of a suspended job."""
    spec, before = obj["spec"], old["spec"]
    errors = _with_selector_errors(spec, options) + _completions_update_errors(spec, before)
    errors += immutable_selector_errors(spec.get("selector"), before.get("selector"), _SPEC.child("selector"))
    errors += _template_update_errors(
        *(spec["template"], before, old.get("status") or {}, mutable_directives, mutable_resources),
        unstarted=options.version >= "v1.36",
    )
    for name in _IMMUTABLE:
        go_form = _SHOWN.get(name, _as_it_is)
        if spec.get(name) != before.get(name):
            errors.append(field.invalid(_SPEC.child(name), go_form(spec.get(name)), IMMUTABLE))
    return errors + changed_policy_errors(spec, before, _SPEC)


def _as_it_is(value: object) -> object:
    return value


def _template_update_errors(
    template: Object, before: Object, status: Object, directives: bool, resources: bool, *, unstarted: bool
) -> ErrorList:
    """`directives`, `resources`: whether a job that was suspended may change them, and `unstarted`: one that never ran, too."""
    suspended = bool(before.get("suspend"))
    stopped = any(
        row.get("type") == "Suspended" and row.get("status") == "True" for row in status.get("conditions") or ()
    )
    fresh = suspended and status.get("startTime") is None
    waits = suspended and not status.get("active") and (stopped or (unstarted and fresh))
    expected: Object = before["template"]
    if waits if directives else fresh:
        expected = _with_scheduling_of(expected, template)
    if not (waits and resources):
        go_template = internal_form(template, "PodTemplateSpec")
        return (
            []
            if same(template, expected, POD_TEMPLATE)
            else [field.invalid(_SPEC.child("template"), go_template, IMMUTABLE)]
        )
    if same(_with_resources_of(expected["spec"], template["spec"]), template["spec"], POD_SPEC):
        return []
    return [field.invalid(_SPEC.child("template.spec"), internal_form(template["spec"], "PodSpec"), IMMUTABLE)]


def job_spec_errors(spec: Object, path: Path, options: PodOptions = DEFAULT_OPTIONS) -> ErrorList:
    """The errors in a JobSpec, of a job or in a cron job (validateJobSpec)."""
    errors: ErrorList = []
    for name in _COUNTS:
        errors += non_negative_errors(spec.get(name, 0), path.child(name))
    if "maxFailedIndexes" in spec and "backoffLimitPerIndex" not in spec:
        errors.append(field.required(path.child("backoffLimitPerIndex"), "when maxFailedIndexes is specified"))
    if "managedBy" in spec:
        errors += _managed_by_errors(spec["managedBy"], path.child("managedBy"))
    errors += _mode_errors(spec, path)
    if "podFailurePolicy" in spec:
        errors += pod_failure_policy_errors(spec, path.child("podFailurePolicy"))
    if "successPolicy" in spec:
        at = path.child("successPolicy")
        if spec.get("completionMode", "NonIndexed") != "Indexed":
            errors.append(field.invalid(at, shown_policy(spec["successPolicy"]), "requires indexed completion mode"))
        elif "completions" in spec:
            errors += success_policy_errors(spec, at)
    errors += _replacement_errors(spec, path.child("podReplacementPolicy"))
    errors += job_scheduling_errors(spec, path)
    errors += pod_template_errors(spec["template"], path.child("template"), options)
    return errors + _restart_errors(spec, path.child("template", "spec", "restartPolicy"))


def _mode_errors(spec: Object, path: Path) -> ErrorList:
    mode = spec.get("completionMode", "NonIndexed")
    if mode not in _MODES:
        return [field.not_supported(path.child("completionMode"), mode, _MODES)]
    if mode == "Indexed":
        if "completions" in spec:
            return _index_limit_errors(spec, path)
        return [field.required(path.child("completions"), "when completion mode is Indexed")]
    return [
        field.invalid(path.child(name), spec[name], "requires indexed completion mode")
        for name in ("backoffLimitPerIndex", "maxFailedIndexes")
        if name in spec
    ]


def _index_limit_errors(spec: Object, path: Path) -> ErrorList:
    """The errors in limits of indexes, which keep the list of indexes in the status short."""
    errors: ErrorList = []
    completions, parallelism, failed = spec["completions"], spec.get("parallelism", 0), spec.get("maxFailedIndexes")
    if parallelism > _MAX_INDEXES:
        detail = f"must be less than or equal to {_MAX_INDEXES} when completion mode is Indexed"
        errors.append(field.invalid(path.child("parallelism"), parallelism, detail))
    if failed is not None and failed > completions:
        errors.append(
            field.invalid(path.child("maxFailedIndexes"), failed, "must be less than or equal to completions")
        )
    if failed is not None and failed > _MAX_INDEXES:
        detail = f"must be less than or equal to {_MAX_INDEXES}"
        errors.append(field.invalid(path.child("maxFailedIndexes"), failed, detail))
    if completions <= _MAX_INDEXES or "backoffLimitPerIndex" not in spec:
        return errors
    if failed is None:
        detail = f"must be specified when completions is above {_MAX_INDEXES}"
        errors.append(field.required(path.child("maxFailedIndexes"), detail))
    for name, value in (("parallelism", parallelism), ("maxFailedIndexes", failed or 0)):
        if value > _MAX_OF_MANY:
            detail = (
                f"must be less than or equal to {_MAX_OF_MANY} when completions are above {_MAX_INDEXES} and used with backoff "
                "limit per index"
            )
            errors.append(field.invalid(path.child(name), value, detail))
    return errors


def _managed_by_errors(value: str, path: Path) -> ErrorList:
    errors = names.validate_domain_prefixed_path(value, path)
    if len(value) > _MAX_MANAGED_BY:
        errors = [*errors, field.too_long(path, _MAX_MANAGED_BY)]
    return errors


def _replacement_errors(spec: Object, path: Path) -> ErrorList:
    allowed = ("Failed",) if "podFailurePolicy" in spec else _REPLACEMENTS
    value = spec.get("podReplacementPolicy")
    return [] if value is None or value in allowed else [field.not_supported(path, value, allowed)]


def _restart_errors(spec: Object, path: Path) -> ErrorList:
    policy = spec["template"]["spec"].get("restartPolicy", "")
    if policy in ("Always", ""):
        return [field.required(path, 'valid values: "OnFailure", "Never"')]
    if policy not in ("OnFailure", "Never"):
        return [field.not_supported(path, policy, ("OnFailure", "Never"))]
    if "podFailurePolicy" in spec and policy != "Never":
        return [field.invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')]
    return []


def _with_selector_errors(spec: Object, options: PodOptions) -> ErrorList:
    errors = job_spec_errors(spec, _SPEC, options)
    selector = spec.get("selector")
    if selector is None:
        errors.append(field.required(_SPEC.child("selector")))
    errors += label_selector_errors(selector, _SPEC.child("selector"))
    labels = metadata(spec["template"]).get("labels")
    label_selector = parsed(selector)
    if label_selector is not None and not label_selector.matches(labels or {}):
        detail = "`selector` does not match template `labels`"
        errors.append(
            field.invalid(_TEMPLATE_META.child("labels"), dict(sorted(labels.items())) if labels else None, detail)
        )
    return errors


def _generated_selector_errors(obj: Object, prefixed: bool) -> ErrorList:
    spec = obj["spec"]
    if spec.get("manualSelector") or spec.get("selector") is None:
        return []
    uid, name = metadata(obj).get("uid", ""), metadata(obj).get("name", "")
    expected = {"controller-uid": uid, "job-name": name}
    if prefixed:
        expected |= {"batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": name}
    errors: ErrorList = []
    labels = metadata(spec["template"]).get("labels") or {}
    for key, value in expected.items():
        errors += _has_label_errors(labels, key, value)
    label_selector = parsed(spec["selector"])
    if label_selector is not None and not label_selector.matches(expected):
        errors.append(
            field.invalid(_SPEC.child("selector"), shown_selector(spec["selector"]), "`selector` not auto-generated")
        )
    return errors


def _has_label_errors(labels: Object, key: str, value: str) -> ErrorList:
    """Upstream: ValidateHasLabel."""
    path = _TEMPLATE_META.child("labels")
    if key not in labels:
        return [field.required(path.key(key), f"must be '{value}'")]
    return (
        []
        if labels[key] == value
        else [field.invalid(path.key(key), dict(sorted(labels.items())), f"must be '{value}'")]
    )


def _completions_update_errors(spec: Object, before: Object) -> ErrorList:
    path, new, old = _SPEC.child("completions"), spec.get("completions"), before.get("completions")
    if spec.get("completionMode") != "Indexed":
        return immutable_errors(new, old, path)
    if new == old or new is None or new == spec.get("parallelism"):
        return []
    return [field.invalid(path, new, "can only be modified in tandem with spec.parallelism")]


def _with_scheduling_of(known: Object, template: Object) -> Object:
    """The old template with what the new one may say about where its pods go, and what they are called."""
    pod = {**known["spec"]}
    for key in _SCHEDULING:
        copy_field(key, template["spec"], pod)
    affinity = _with_nodes_of(pod.pop("affinity", None), template["spec"].get("affinity"))
    if affinity is not None:
        pod["affinity"] = affinity
    meta = {**metadata(known)}
    for key in ("annotations", "labels"):
        copy_field(key, metadata(template), meta)
    return {**known, "spec": pod, **({"metadata": meta} if meta or "metadata" in known else {})}


def _with_nodes_of(known: Object | None, affinity: Object | None) -> Object | None:
    """The old affinity with the new one's nodes."""
    kept = {name: value for name, value in (known or {}).items() if name != "nodeAffinity"}
    if affinity is None:
        return kept or None
    return {**kept, **({"nodeAffinity": affinity["nodeAffinity"]} if "nodeAffinity" in affinity else {})}


def _with_resources_of(known: Object, pod: Object) -> Object:
    """The old pod with the new one's resources, where the containers are the same."""
    merged = {**known}
    for kind in ("containers", "initContainers"):
        then, now = known.get(kind) or [], pod.get(kind) or []
        if then and len(then) == len(now):
            merged[kind] = [_with_resources(*pair) for pair in zip(then, now, strict=True)]
    return merged


def _with_resources(known: Object, container: Object) -> Object:
    if known.get("name") != container.get("name"):
        return known
    merged = {name: value for name, value in known.items() if name != "resources"}
    return {**merged, "resources": container["resources"]} if "resources" in container else merged
