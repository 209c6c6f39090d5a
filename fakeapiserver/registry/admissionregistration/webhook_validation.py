"""What is wrong with the webhooks of a configuration.

Upstream: pkg/apis/admissionregistration/validation/validation.go (validateValidatingWebhook, validateMutatingWebhook). What it lets
pass on update because it is stored already can't be stored here. Match conditions' expressions aren't compiled.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery import names
from fakeapiserver.apimachinery.field import ErrorList, Path, duplicate, invalid, not_supported, required, too_many
from fakeapiserver.registry.apps.label_selector import label_selector_errors
from fakeapiserver.registry.generic.webhook_client import address_errors

_REVIEW_VERSIONS: Final = ("v1", "v1beta1")
_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")
_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES: Final = ("*", "Cluster", "Namespaced")
_MAX_TIMEOUT: Final = 30
_MAX_CONDITIONS: Final = 64
_NAME_SEGMENTS: Final = 3


def webhooks_errors(webhooks: Sequence[Mapping[str, Any]], path: Path) -> ErrorList:
    """All webhooks of a configuration. Fields that are absent have their defaults by now."""
    errors: ErrorList = []
    seen: set[str] = set()
    for i, webhook in enumerate(webhooks):
        at, name = path.index(i), webhook.get("name", "")
        errors += _webhook_errors(webhook, at)
        errors += _review_version_errors(
            webhook.get("admissionReviewVersions") or [], at.child("admissionReviewVersions")
        )
        if name in seen:
            errors.append(duplicate(at.child("name"), name))
        seen |= {name} - {""}
    return errors


def _webhook_errors(webhook: Mapping[str, Any], path: Path) -> ErrorList:
    errors = _name_errors(webhook.get("name", ""), path.child("name"))
    for i, rule in enumerate(webhook.get("rules") or ()):
        errors += _rule_errors(rule, path.child("rules").index(i))
    errors += _choice_errors(webhook, "failurePolicy", ("Fail", "Ignore"), path)
    errors += _choice_errors(webhook, "matchPolicy", ("Equivalent", "Exact"), path)
    if webhook.get("sideEffects") is None:
        errors.append(required(path.child("sideEffects"), f"must specify one of {', '.join(_SIDE_EFFECTS)}"))
    else:
        errors += _choice_errors(webhook, "sideEffects", _SIDE_EFFECTS, path)
    timeout = webhook.get("timeoutSeconds", 1)
    if not 1 <= timeout <= _MAX_TIMEOUT:
        detail = f"the timeout value must be between 1 and {_MAX_TIMEOUT} seconds"
        errors.append(invalid(path.child("timeoutSeconds"), timeout, detail))
    for selector in ("namespaceSelector", "objectSelector"):
        errors += label_selector_errors(webhook.get(selector), path.child(selector))
    errors += _choice_errors(webhook, "reinvocationPolicy", ("IfNeeded", "Never"), path)
    errors += address_errors(webhook.get("clientConfig") or {}, path.child("clientConfig"))
    return errors + _condition_errors(webhook.get("matchConditions") or (), path.child("matchConditions"))


def _name_errors(name: str, path: Path) -> ErrorList:
    """Upstream: IsFullyQualifiedName."""
    if not name:
        return [required(path)]
    if problems := names.is_dns1123_subdomain(name):
        return [invalid(path, name, ",".join(problems))]
    if len(name.split(".")) < _NAME_SEGMENTS:
        return [invalid(path, name, "should be a domain with at least three segments separated by dots")]
    return []


def _choice_errors(webhook: Mapping[str, Any], key: str, choices: Sequence[str], path: Path) -> ErrorList:
    return [] if webhook.get(key, choices[0]) in choices else [not_supported(path.child(key), webhook[key], choices)]


def _review_version_errors(versions: list[str], path: Path) -> ErrorList:
    known = ", ".join(_REVIEW_VERSIONS)
    if not versions:
        return [required(path, f"must specify one of {known}")]
    errors: ErrorList = []
    for i, version in enumerate(versions):
        if version in versions[:i]:
            errors.append(invalid(path.index(i), version, "duplicate version"))
        else:
            errors += [invalid(path.index(i), version, problem) for problem in names.is_dns1035_label(version)]
    if not set(_REVIEW_VERSIONS) & set(versions):
        errors.append(invalid(path, versions, f"must include at least one of {known}"))
    return errors


def _rule_errors(rule: Mapping[str, Any], path: Path) -> ErrorList:
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
    return errors + _choice_errors(rule, "scope", _SCOPES, path)


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
        for found, general in ((resource in all_of, f"{resource}/*"), (subresource in everywhere, f"*/{subresource}")):
            if found:
                errors.append(invalid(path.index(i), named, f"if '{general}' is present, must not specify {named}"))
        all_of |= {resource} if subresource == "*" else set()
        everywhere |= {subresource} if resource == "*" else set()
    if len(resources) > 1 and "*/*" in resources:
        errors.append(invalid(path, resources, "if '*/*' is present, must not specify other resources"))
    if "*" in resources and plain:
        detail = "if '*' is present, must not specify other resources without subresources"
        errors.append(invalid(path, resources, detail))
    return errors


def _condition_errors(conditions: Sequence[Mapping[str, Any]], path: Path) -> ErrorList:
    errors: ErrorList = []
    if len(conditions) > _MAX_CONDITIONS:
        errors.append(too_many(path, len(conditions), _MAX_CONDITIONS))
    seen: set[str] = set()
    for i, condition in enumerate(conditions):
        name, at = condition.get("name", ""), path.index(i)
        if not condition.get("expression", "").strip():
            errors.append(required(at.child("expression")))
        if not name:
            errors.append(required(at.child("name")))
        errors += [invalid(at.child("name"), name, problem) for problem in names.is_qualified_name(name) if name]
        if name in seen:
            errors.append(duplicate(at.child("name"), name))
        seen |= {name} - {""}
    return errors
