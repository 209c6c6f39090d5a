"""Validation of a job's policies: for failed pods, and for success.

Upstream: pkg/apis/batch/validation/validation.go, validatePodFailurePolicy and validateSuccessPolicy.
"""

from collections.abc import Sequence
from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.go.strconv import atoi
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.registry.core.field_formats import non_negative_errors

_ACTIONS: Final = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS: Final = ("In", "NotIn")
_STATUSES: Final = ("False", "True", "Unknown")
_MAX_RULES: Final = 20
_MAX_PATTERNS: Final = 20
_MAX_EXIT_CODES: Final = 255
_MAX_INDEXES_LENGTH: Final = 64 * 1024


def pod_failure_policy_errors(spec: Object, path: Path) -> ErrorList:
    """The errors in spec.podFailurePolicy."""
    rules, at = spec["podFailurePolicy"].get("rules") or [], path.child("rules")
    errors: ErrorList = [field.too_many(at, len(rules), _MAX_RULES)] if len(rules) > _MAX_RULES else []
    pod = spec["template"]["spec"]
    containers = {container["name"] for name in ("containers", "initContainers") for container in pod.get(name) or ()}
    for number, rule in enumerate(rules):
        errors += _rule_errors(spec, rule, at.index(number), containers)
    return errors


def _rule_errors(spec: Object, rule: Object, path: Path, containers: set[str]) -> ErrorList:
    action, codes, patterns = rule.get("action", ""), rule.get("onExitCodes"), rule.get("onPodConditions") or []
    if action == "FailIndex":
        errors: ErrorList = []
        if "backoffLimitPerIndex" not in spec:
            errors.append(field.invalid(path.child("action"), action, "requires the backoffLimitPerIndex to be set"))
    else:
        errors = _choice_errors(action, _ACTIONS, path.child("action"))
    if codes is not None:
        errors += _exit_code_errors(codes, path.child("onExitCodes"), containers)
    if patterns:
        errors += _pattern_errors(patterns, path.child("onPodConditions"))
    if codes is not None and patterns:
        detail = "specifying both OnExitCodes and OnPodConditions is not supported"
        errors.append(field.invalid(path, field.OMIT, detail))
    if codes is None and not patterns:
        detail = "specifying one of OnExitCodes and OnPodConditions is required"
        errors.append(field.invalid(path, field.OMIT, detail))
    return errors


def _choice_errors(value: str, choices: Sequence[str], path: Path) -> ErrorList:
    if not value:
        quoted_choices = " ".join(map(go_quote, choices))
        return [field.required(path, f"valid values: [{quoted_choices}]")]
    return [] if value in choices else [field.not_supported(path, value, choices)]


def _exit_code_errors(requirement: Object, path: Path, containers: set[str]) -> ErrorList:
    operator = requirement.get("operator", "")
    errors = _choice_errors(operator, _OPERATORS, path.child("operator"))
    container = requirement.get("containerName")
    if container is not None and container not in containers:
        detail = "must be one of the container or initContainer names in the pod template"
        errors.append(field.invalid(path.child("containerName"), container, detail))
    values, at = requirement.get("values"), path.child("values")
    if not values:
        return [*errors, field.invalid(at, values, "at least one value is required")]
    if len(values) > _MAX_EXIT_CODES:
        errors.append(field.too_many(at, len(values), _MAX_EXIT_CODES))
    repeated = field.repetitions(values)
    for number, value in enumerate(values):
        if operator == "In" and value == 0:
            errors.append(field.invalid(at.index(number), value, "must not be 0 for the In operator"))
        if number in repeated:
            errors.append(field.duplicate(at.index(number), value))
    if values != sorted(values):
        errors.append(field.invalid(at, values, "must be ordered"))
    return errors


def _pattern_errors(patterns: Sequence[Object], path: Path) -> ErrorList:
    errors: ErrorList = []
    if len(patterns) > _MAX_PATTERNS:
        errors.append(field.too_many(path, len(patterns), _MAX_PATTERNS))
    for number, pattern in enumerate(patterns):
        at, kind = path.index(number), pattern.get("type", "")
        errors += [field.invalid(at.child("type"), kind, detail) for detail in names.is_qualified_name(kind)]
        errors += _choice_errors(pattern.get("status", ""), _STATUSES, at.child("status"))
    return errors


def success_policy_errors(spec: Object, path: Path) -> ErrorList:
    """The errors in spec.successPolicy of an indexed job."""
    rules, at = spec["successPolicy"].get("rules") or [], path.child("rules")
    errors: ErrorList = []
    if not rules:
        errors.append(field.required(at, "at least one rules must be specified when the successPolicy is specified"))
    if len(rules) > _MAX_RULES:
        errors.append(field.too_many(at, len(rules), _MAX_RULES))
    for number, rule in enumerate(rules):
        errors += _success_rule_errors(spec["completions"], rule, at.index(number))
    return errors


def shown_policy(policy: Object | None) -> Object | None:
    """A success policy by the names of Go's fields, as messages show it."""
    if policy is None:
        return None
    names_there = {"SucceededIndexes": "succeededIndexes", "SucceededCount": "succeededCount"}
    rules = policy.get("rules")
    go_rules = [{name: rule.get(here) for name, here in names_there.items()} for rule in rules or ()]
    return {"Rules": None if rules is None else go_rules}


def shown_failure_policy(policy: Object | None) -> Object | None:
    """A pod failure policy by the names of Go's fields, as messages show it."""
    if policy is None:
        return None
    rules = policy.get("rules")
    return {"Rules": None if rules is None else [_shown_rule(rule) for rule in rules]}


def _shown_rule(rule: Object) -> Object:
    codes, patterns = rule.get("onExitCodes"), rule.get("onPodConditions")
    return {
        "Action": rule.get("action", ""),
        "OnExitCodes": None
        if codes is None
        else {
            "ContainerName": codes.get("containerName"),
            "Operator": codes.get("operator", ""),
            "Values": codes.get("values"),
        },
        "OnPodConditions": None
        if patterns is None
        else [{"Type": row.get("type", ""), "Status": row.get("status", "")} for row in patterns],
    }


def _success_rule_errors(completions: int, rule: Object, path: Path) -> ErrorList:
    indexes, count = rule.get("succeededIndexes"), rule.get("succeededCount")
    errors: ErrorList = []
    if indexes is None and count is None:
        detail = "at least one of succeededCount or succeededIndexes must be specified"
        errors.append(field.required(path, detail))
    total = 0
    if indexes is not None:
        at = path.child("succeededIndexes")
        if len(indexes) > _MAX_INDEXES_LENGTH:
            errors.append(field.too_long(at, _MAX_INDEXES_LENGTH))
        try:
            total = count_indexes(indexes, completions)
        except ValueError as error:
            errors.append(field.invalid(at, indexes, f"error parsing succeededIndexes: {error}"))
    if count is not None:
        at = path.child("succeededCount")
        errors += non_negative_errors(count, at)
        if count > completions:
            detail = f"must be less than or equal to {completions} (the number of specified completions)"
            errors.append(field.invalid(at, count, detail))
        if indexes is not None and count > total:
            detail = (
                f"must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
            )
            errors.append(field.invalid(at, count, detail))
    return errors


def count_indexes(text: str, completions: int) -> int:
    """The number of indexes in a text such as `0,2-5`. Raises ValueError in upstream's words."""
    total, last = 0, None
    for part in text.split(",") if text else ():
        first, end = index_interval(part, completions)
        if last is not None and last >= first:
            raise ValueError(f"non-increasing order, previous: {last}, current: {first}")
        total, last = total + end - first + 1, end
    return total


def index_interval(part: str, completions: int) -> tuple[int, int]:
    """Parses `2-5` or `2`. Raises ValueError in upstream's words."""
    limits = part.split("-")
    if len(limits) > 2:
        raise ValueError(
            f"the fragment {go_quote(part)} violates the requirement that an index interval can have at most two parts "
            "separated by '-'"
        )
    first = _index(limits[0], completions)
    end = _index(limits[-1], completions)
    if len(limits) > 1 and first >= end:
        raise ValueError(f"non-increasing order, previous: {first}, current: {end}")
    return first, end


def _index(text: str, completions: int) -> int:
    try:
        index = atoi(text)
    except ValueError:
        raise ValueError(f"cannot convert string to integer for index: {go_quote(text)}") from None
    if index >= completions:
        raise ValueError(f"too large index: {go_quote(text)}")
    return index
