"""Validation of pod templates and selectors, for the kinds that create pods.

Upstream: pkg/apis/apps/validation/validation.go.
"""

from typing import Final

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.core.pod.options import PodOptions
from fakeapiserver.registry.core.pod.validation import pod_template_errors
from fakeapiserver.registry.generic.label_selector import is_empty, label_selector_errors, parsed, shown_selector

SPEC: Final = Path("spec")
_MISMATCH: Final = "`selector` does not match template `labels`"


def selector_errors(selector: Object | None, kind: str) -> ErrorList:
    """The errors in a required, non-empty selector; `kind` is the name of its owner in upstream's message."""
    path = SPEC.child("selector")
    if selector is None:
        return [field.required(path)]
    errors = label_selector_errors(selector, path)
    if is_empty(selector):
        errors.append(field.invalid(path, shown_selector(selector), f"empty selector is invalid for {kind}"))
    return errors


def mismatch_errors(spec: Object, *, match_all: bool = False) -> ErrorList:
    """The error for a selector that doesn't select the template's pods; an empty selector is
    checked only with `match_all`."""
    selector = parsed(spec.get("selector"))
    if selector is None or (selector.empty and not match_all):
        return []
    labels = metadata(spec["template"]).get("labels")
    if selector.matches(labels or {}):
        return []
    return [field.invalid(SPEC.child("template", "metadata", "labels"), _sorted(labels), _MISMATCH)]


def _sorted(labels: dict[str, str] | None) -> dict[str, str] | None:
    """Labels in the order in which Go prints a map."""
    return dict(sorted(labels.items())) if labels else None


def endless_pod_errors(spec: Object, kind: str) -> ErrorList:
    """The errors for pods with another restart policy than Always, or with a deadline."""
    pod, path = spec["template"]["spec"], SPEC.child("template", "spec")
    errors: ErrorList = []
    if pod.get("restartPolicy") != "Always":
        errors.append(field.not_supported(path.child("restartPolicy"), pod.get("restartPolicy", ""), ("Always",)))
    if pod.get("activeDeadlineSeconds") is not None:
        detail = f"activeDeadlineSeconds in {kind} is not Supported"
        errors.append(field.forbidden(path.child("activeDeadlineSeconds"), detail))
    return errors


def replica_template_errors(spec: Object, options: PodOptions) -> ErrorList:
    """The errors in the template and in its match with the selector, by the rules of replica sets
    (ValidatePodTemplateSpecForReplicaSet)."""
    if parsed(spec.get("selector")) is None:
        return [field.invalid(SPEC.child("selector"), shown_selector(spec["selector"]), "invalid label selector")]
    errors = mismatch_errors(spec)
    errors += pod_template_errors(spec["template"], SPEC.child("template"), options)
    return errors + endless_pod_errors(spec, "ReplicaSet")
