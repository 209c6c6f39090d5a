"""Validation of the webhooks of a configuration.

Upstream: pkg/apis/admissionregistration/validation/validation.go (validateValidatingWebhook, validateMutatingWebhook). What it lets
pass on update because it is stored already can't be stored here.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery import names
from fakeapiserver.apimachinery.field import ErrorList, Path, duplicate, invalid, repetitions, required
from fakeapiserver.registry.admissionregistration.policy_validation import condition_errors
from fakeapiserver.registry.admissionregistration.rules import choice_errors, rule_errors
from fakeapiserver.registry.generic.label_selector import label_selector_errors
from fakeapiserver.registry.generic.webhook_client import address_errors

_REVIEW_VERSIONS: Final = ("v1", "v1beta1")
_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")
_MAX_TIMEOUT: Final = 30
_NAME_SEGMENTS: Final = 3


def webhooks_errors(webhooks: Sequence[Mapping[str, Any]], path: Path, version: str) -> ErrorList:
    """The errors in the webhooks of a configuration, which have their defaults. `version`: Kubernetes's."""
    errors: ErrorList = []
    seen: set[str] = set()
    for i, webhook in enumerate(webhooks):
        at, name = path.index(i), webhook.get("name", "")
        errors += _webhook_errors(webhook, at, version)
        errors += _review_version_errors(
            webhook.get("admissionReviewVersions") or [], at.child("admissionReviewVersions")
        )
        if name in seen:
            errors.append(duplicate(at.child("name"), name))
        seen |= {name} - {""}
    return errors


def _webhook_errors(webhook: Mapping[str, Any], path: Path, version: str) -> ErrorList:
    errors = _name_errors(webhook.get("name", ""), path.child("name"))
    for i, rule in enumerate(webhook.get("rules") or ()):
        errors += rule_errors(rule, path.child("rules").index(i))
    errors += choice_errors(webhook, "failurePolicy", ("Fail", "Ignore"), path)
    errors += choice_errors(webhook, "matchPolicy", ("Equivalent", "Exact"), path)
    if webhook.get("sideEffects") is None:
        errors.append(required(path.child("sideEffects"), f"must specify one of {', '.join(_SIDE_EFFECTS)}"))
    else:
        errors += choice_errors(webhook, "sideEffects", _SIDE_EFFECTS, path)
    timeout = webhook.get("timeoutSeconds", 1)
    if not 1 <= timeout <= _MAX_TIMEOUT:
        detail = f"the timeout value must be between 1 and {_MAX_TIMEOUT} seconds"
        errors.append(invalid(path.child("timeoutSeconds"), timeout, detail))
    for selector in ("namespaceSelector", "objectSelector"):
        errors += label_selector_errors(webhook.get(selector), path.child(selector))
    errors += choice_errors(webhook, "reinvocationPolicy", ("IfNeeded", "Never"), path)
    errors += address_errors(webhook.get("clientConfig") or {}, path.child("clientConfig"))
    return errors + condition_errors(webhook.get("matchConditions") or (), path.child("matchConditions"), version)


def _name_errors(name: str, path: Path) -> ErrorList:
    """Upstream: IsFullyQualifiedName."""
    if not name:
        return [required(path)]
    if problems := names.is_dns1123_subdomain(name):
        return [invalid(path, name, ",".join(problems))]
    if len(name.split(".")) < _NAME_SEGMENTS:
        return [invalid(path, name, "should be a domain with at least three segments separated by dots")]
    return []


def _review_version_errors(versions: list[str], path: Path) -> ErrorList:
    known = ", ".join(_REVIEW_VERSIONS)
    if not versions:
        return [required(path, f"must specify one of {known}")]
    errors: ErrorList = []
    repeated = repetitions(versions)
    for i, version in enumerate(versions):
        if i in repeated:
            errors.append(invalid(path.index(i), version, "duplicate version"))
        else:
            errors += [invalid(path.index(i), version, problem) for problem in names.is_dns1035_label(version)]
    if not set(_REVIEW_VERSIONS) & set(versions):
        errors.append(invalid(path, versions, f"must include at least one of {known}"))
    return errors
