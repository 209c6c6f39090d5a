"""Validation of a container's resize policy, restart policy and claims.

Upstream: pkg/apis/core/validation/validation.go (validateResizePolicy, validateContainerRestartPolicy, validateResourceClaimNames).
"""

from collections.abc import Collection, Sequence
from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.message import Message
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.registry.core.pod.options import DEFAULT_OPTIONS, PodOptions

_RESIZED: Final = ("cpu", "memory")
_RESIZES: Final = ("NotRequired", "RestartContainer")
_RESTARTS: Final = ("Always", "Never", "OnFailure")
_ACTIONS: Final = ("Restart", "RestartAllContainers")
_OPERATORS: Final = ("In", "NotIn")
_MOST_RULES: Final = 20
_MOST_CODES: Final = 255


def resize_policy_errors(policies: list[Object], pod_policy: str, path: Path) -> ErrorList:
    """The errors in a container's resize policies. `pod_policy`: the pod's restartPolicy."""
    errors: ErrorList = []
    seen: set[str] = set()
    for i, policy in enumerate(policies):
        name, restart = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if name in seen:
            errors.append(field.duplicate(path.index(i), name))
        seen.add(name)
        for value, choices in ((name, _RESIZED), (restart, _RESIZES)):
            if not value:
                errors.append(field.required(path))
            elif value not in choices:
                errors.append(field.not_supported(path, value, choices))
        if pod_policy == "Never" and restart != "NotRequired":
            detail = Message("must be 'NotRequired' when pod `restartPolicy` is 'Never'", "resizePolicy.never")
            errors.append(field.invalid(path, restart, detail))
    return errors


def init_resize_policy_errors(container: Object, path: Path) -> ErrorList:
    """The errors in the resize policy of an init container that isn't a sidecar."""
    detail = "must not be set to 'RestartContainer' for non-sidecar initContainers"
    return [
        field.invalid(path.child("resizePolicy").index(i).child("restartPolicy"), "RestartContainer", detail)
        for i, policy in enumerate(container.get("resizePolicy") or ())
        if policy.get("restartPolicy") == "RestartContainer"
    ]


def restart_policy_errors(
    container: Object, path: Path, options: PodOptions = DEFAULT_OPTIONS, *, is_init: bool = False
) -> ErrorList:
    """The errors in the restart policy of a container or init container, and in its rules, which precede the policy."""
    rules = container.get("restartPolicyRules") or []
    policy = container.get("restartPolicy")
    errors: ErrorList = []
    if policy is None and rules:
        detail = "must specify restartPolicy when restart rules are used"
        errors.append(field.required(path.child("restartPolicy"), detail))
        if is_init:
            return errors
    elif is_init and policy == "Always" and not (options.restart_rules and options.restart_all):
        known = "restartPolicyRules are not allowed for init containers with restart policy Always"
        return [field.forbidden(path.child("restartPolicyRules"), known)] if options.restart_rules and rules else []
    elif policy is not None and not options.restart_rules:
        at = path.child("restartPolicy")
        if is_init:
            return [field.not_supported(at, policy, _RESTARTS[:1])]
        return [field.forbidden(at, "may not be set for non-init containers")]
    elif policy is not None and policy not in _RESTARTS:
        errors.append(field.not_supported(path.child("restartPolicy"), policy, _RESTARTS))
    at = path.child("restartPolicyRules")
    if len(rules) > _MOST_RULES:
        errors.append(field.too_many(at, len(rules), _MOST_RULES))
    for i, rule in enumerate(rules):
        errors += _rule_errors(rule, at.index(i), _ACTIONS if options.restart_all else _ACTIONS[:1])
    return errors


def _rule_errors(rule: Object, path: Path, actions: Sequence[str]) -> ErrorList:
    errors: ErrorList = []
    action, codes = rule.get("action", ""), rule.get("exitCodes")
    if action not in actions:
        errors.append(field.not_supported(path.child("action"), action, actions, rule="restartPolicyRules.action"))
    if codes is None:
        return [*errors, field.required(path.child("exitCodes"), "must be specified")]
    operator, values = codes.get("operator", ""), codes.get("values") or []
    if operator not in _OPERATORS:
        errors.append(field.not_supported(path.child("exitCodes", "operator"), operator, _OPERATORS))
    if len(values) > _MOST_CODES:
        errors.append(field.too_many(path.child("exitCodes", "values"), len(values), _MOST_CODES))
    return errors


def claim_errors(claims: list[Object], known: Collection[str], path: Path) -> ErrorList:
    """The errors in a container's claims. `known`: the pod's resourceClaims."""
    errors: ErrorList = []
    seen: set[str] = set()
    for i, claim in enumerate(claims):
        name, request, at = claim.get("name", ""), claim.get("request", ""), path.index(i)
        if not name:
            errors.append(field.required(at))
            continue
        if name in seen:  # all its requests are there already
            errors.append(field.duplicate(at, name))
        else:
            key = f"{name}/{request}" if request else name
            if request:
                problems = names.is_dns1123_label(request)
                errors += [field.invalid(at.child("request"), request, problem) for problem in problems]
            if key in seen:
                errors.append(field.duplicate(at, key))
            elif not request:
                errors += [field.duplicate(at, name) for other in sorted(seen) if other.startswith(f"{name}/")]
            seen.add(key)
        if name not in known:
            which = f": {', '.join(sorted(known))}" if known else " which is empty"
            detail = f"must be one of the names in pod.spec.resourceClaims{which}"
            errors.append(field.not_found(at, name, detail))
    return errors
