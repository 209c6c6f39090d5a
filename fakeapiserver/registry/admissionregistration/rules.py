"""Validation of the rules that webhooks and policies match by.

Upstream: pkg/apis/admissionregistration/validation/validation.go (validateRuleWithOperations).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.field import ErrorList, Path, invalid, not_supported, required

_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES: Final = ("*", "Cluster", "Namespaced")


def choice_errors(webhook: Mapping[str, Any], key: str, choices: Sequence[str], path: Path) -> ErrorList:
    return [] if webhook.get(key, choices[0]) in choices else [not_supported(path.child(key), webhook[key], choices)]


def rule_errors(rule: Mapping[str, Any], path: Path) -> ErrorList:
    errors: ErrorList = []
    operations = rule.get("operations") or []
    if not operations:
        errors.append(required(path.child("operations")))
    errors += _wildcard_errors(operations, "operations", path.child("operations"))
    for i, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            errors.append(not_supported(path.child("operations").index(i), operation, _OPERATIONS))
    for key, what in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        given = rule.get(key) or []
        errors += [] if given else [required(path.child(key))]
        errors += _wildcard_errors(given, what, path.child(key))
    versions = rule.get("apiVersions") or []
    errors += [required(path.child("apiVersions").index(i)) for i, version in enumerate(versions) if not version]
    errors += _resource_errors(rule.get("resources") or [], path.child("resources"))
    return errors + choice_errors(rule, "scope", _SCOPES, path)


def _wildcard_errors(given: list[str], what: str, path: Path) -> ErrorList:
    if len(given) > 1 and "*" in given:
        return [invalid(path, given, f"if '*' is present, must not specify other {what}")]
    return []


def _resource_errors(resources: list[str], path: Path) -> ErrorList:
    """Upstream: validateResources."""
    errors: ErrorList = [] if resources else [required(path)]
    all_of: set[str] = set()
    everywhere: set[str] = set()
    # Upstream looks at the last resource without a subresource only.
    plain = False
    for i, named in enumerate(resources):
        if not named:
            errors.append(required(path.index(i)))
            continue
        resource, slash, subresource = named.partition("/")
        if not slash:
            plain = named != "*"
            continue
        for is_covered, general in (
            (resource in all_of, f"{resource}/*"),
            (subresource in everywhere, f"*/{subresource}"),
        ):
            if is_covered:
                errors.append(invalid(path.index(i), named, f"if '{general}' is present, must not specify {named}"))
        all_of |= {resource} if subresource == "*" else set()
        everywhere |= {subresource} if resource == "*" else set()
    if len(resources) > 1 and "*/*" in resources:
        errors.append(invalid(path, resources, "if '*/*' is present, must not specify other resources"))
    if "*" in resources and plain:
        detail = "if '*' is present, must not specify other resources without subresources"
        errors.append(invalid(path, resources, detail))
    return errors
