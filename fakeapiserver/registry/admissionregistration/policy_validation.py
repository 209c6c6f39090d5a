"""Validation of admission policies and their bindings.

Upstream: pkg/apis/admissionregistration/validation/validation.go. Expressions that are stored already are compiled again, with
the same result: a server has one version of the environment.
"""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from fakeapiserver.apimachinery import names
from fakeapiserver.apimachinery.cel import admission, typed
from fakeapiserver.apimachinery.field import (
    Error,
    ErrorList,
    Path,
    duplicate,
    forbidden,
    internal,
    invalid,
    not_supported,
    repetitions,
    required,
    too_many,
)
from fakeapiserver.apimachinery.jsonpath import compile_path
from fakeapiserver.languages.cel import types
from fakeapiserver.languages.cel.escaping import RESERVED
from fakeapiserver.registry.admissionregistration.rules import choice_errors, rule_errors
from fakeapiserver.registry.generic.conditions import conditions_errors
from fakeapiserver.registry.generic.label_selector import label_selector_errors

if TYPE_CHECKING:
    from fakeapiserver.apimachinery.cel.admission import Environment
    from fakeapiserver.languages.cel.types import Type

_MAX_CONDITIONS: Final = 64
_MAX_ANNOTATIONS: Final = 20
_MAX_ANNOTATION: Final = 5 * 1024
_REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_ACTIONS: Final = ("Audit", "Deny", "Warn")
_IDENTIFIER: Final = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")
Spec = Mapping[str, Any]


def validating_policy_errors(name: str, spec: Spec, path: Path, version: str) -> ErrorList:
    """The errors in a ValidatingAdmissionPolicy's `spec`; `name` is the policy's, `version` Kubernetes's."""
    variables, validations = spec.get("variables") or (), spec.get("validations") or ()
    annotations = spec.get("auditAnnotations") or ()
    environment = admission.Environment(spec.get("paramKind") is not None, composes=bool(variables), version=version)
    errors = _common_errors(spec, path, environment)
    if not validations and not annotations:
        detail = "validations or auditAnnotations must contain at least one item"
        return errors + [required(path.child(key), detail) for key in ("validations", "auditAnnotations")]
    for i, validation in enumerate(validations):
        errors += _validation_errors(environment, validation, path.child("validations").index(i))
    return errors + _annotation_errors(environment, name, annotations, path.child("auditAnnotations"))


def _common_errors(spec: Spec, path: Path, environment: "Environment", operations: Sequence[str] = ()) -> ErrorList:
    """The errors in the fields of both kinds of policies, up to their variables. `operations` are those that the policies may match."""
    errors = choice_errors(spec, "failurePolicy", ("Fail", "Ignore"), path)
    if (kind := spec.get("paramKind")) is not None:
        errors += _param_kind_errors(kind, path.child("paramKind"))
    constraints, at = spec.get("matchConstraints"), path.child("matchConstraints")
    if constraints is None:
        errors.append(required(at))
    else:
        errors += _match_errors(constraints, at)
        if not constraints.get("resourceRules"):
            errors.append(required(at.child("resourceRules")))
        errors += _operation_errors(constraints, at, operations)
    conditions = spec.get("matchConditions") or ()
    errors += condition_errors(
        conditions, path.child("matchConditions"), environment.version, has_params=kind is not None
    )
    for i, variable in enumerate(spec.get("variables") or ()):
        errors += _variable_errors(environment, variable, path.child("variables").index(i))
    return errors


def condition_errors(conditions: Sequence[Spec], path: Path, version: str, *, has_params: bool = False) -> ErrorList:
    """The errors in matchConditions, which have no variables, in a Kubernetes version."""
    if not conditions:
        return []

    environment, seen = admission.Environment(has_params, version=version), set[str]()
    errors: ErrorList = []
    if len(conditions) > _MAX_CONDITIONS:
        errors.append(too_many(path, len(conditions), _MAX_CONDITIONS))
    for i, condition in enumerate(conditions):
        name, at = condition.get("name", ""), path.index(i)
        if expression := condition.get("expression", "").strip():
            errors += _compile_errors(environment, expression, at.child("expression"), types.BOOL)
        else:
            errors.append(required(at.child("expression")))
        if not name:
            errors.append(required(at.child("name")))
        errors += [invalid(at.child("name"), name, problem) for problem in names.is_qualified_name(name) if name]
        if name in seen:
            errors.append(duplicate(at.child("name"), name))
        seen |= {name} - {""}
    return errors


def _compile_errors(
    environment: "Environment",
    expression: str,
    path: Path,
    *wanted: "Type",
    shown: str = "",
    has_authorizer: bool = True,
    makes_patches: bool = False,
) -> ErrorList:
    """The errors in an expression; `shown` is what the error shows in place of the expression."""
    try:
        environment.compile(expression, *wanted, has_authorizer=has_authorizer, makes_patches=makes_patches)
    except ValueError as error:
        return [_compile_error(error, path, shown or expression)]
    return []


def _compile_error(error: ValueError, path: Path, shown: str) -> Error:
    return (
        internal(path, str(error)) if isinstance(error, typed.InstantiationError) else invalid(path, shown, str(error))
    )


def _param_kind_errors(kind: Spec, path: Path) -> ErrorList:
    version, at = kind.get("apiVersion", ""), path.child("apiVersion")
    errors: ErrorList = []
    if not version:
        errors.append(required(at))
    elif version.count("/") > 1:
        errors.append(invalid(at, version, f"unexpected GroupVersion string: {version}"))
    else:
        group, _, number = ("", "", "") if version == "/" else version.rpartition("/")
        if group and (problems := names.is_dns1123_subdomain(group)):
            errors.append(invalid(at, group, ",".join(problems)))
        if not number:
            errors.append(invalid(at, version, "version must be specified"))
        elif problems := names.is_dns1035_label(number):
            errors.append(invalid(at, number, ",".join(problems)))
    name = kind.get("kind", "")
    if not name:
        errors.append(required(path.child("kind")))
    elif problems := names.is_dns1035_label(name.lower()):
        detail = f"may have mixed case, but should otherwise match: {','.join(problems)}"
        errors.append(invalid(path.child("kind"), name, detail))
    return errors


def _match_errors(resources: Spec | None, path: Path) -> ErrorList:
    """The errors in MatchResources."""
    if resources is None:
        return []
    errors = choice_errors(resources, "matchPolicy", ("Equivalent", "Exact"), path)
    for selector in ("namespaceSelector", "objectSelector"):
        errors += label_selector_errors(resources.get(selector), path.child(selector))
    for key in ("resourceRules", "excludeResourceRules"):
        for i, rule in enumerate(resources.get(key) or ()):
            errors += _named_rule_errors(rule, path.child(key).index(i))
    return errors


def _named_rule_errors(rule: Spec, path: Path) -> ErrorList:
    errors: ErrorList = []
    given = rule.get("resourceNames") or []
    repeated = repetitions(given)
    for i, name in enumerate(given):
        at = path.child("resourceNames").index(i)
        errors += [invalid(at, name, problem) for problem in names.path_segment_name(name)]
        if i in repeated:
            errors.append(duplicate(at, name))
    return errors + rule_errors(rule, path)


def _operation_errors(resources: Spec | None, path: Path, operations: Sequence[str]) -> ErrorList:
    if not operations or resources is None:
        return []
    at = path.child("resourceRules", "operations")
    given = (operation for rule in resources.get("resourceRules") or () for operation in rule.get("operations") or ())
    return [not_supported(at, operation, operations) for operation in given if operation not in operations]


def _variable_errors(environment: "Environment", variable: Spec, path: Path) -> ErrorList:
    errors: ErrorList = []
    name, expression = variable.get("name", ""), variable.get("expression", "")
    if not name.strip():
        errors.append(required(path.child("name"), "name is not specified"))
    elif not _IDENTIFIER.fullmatch(name) or name in RESERVED:
        errors.append(invalid(path.child("name"), name, "must be a valid CEL identifier"))
    if not expression.strip():
        errors.append(required(path.child("expression"), "expression is not specified"))
        return errors
    try:
        environment.add_variable(name, expression)
    except ValueError as error:
        errors.append(_compile_error(error, path.child("expression"), expression))
    return errors


def _validation_errors(environment: "Environment", validation: Spec, path: Path) -> ErrorList:
    expression, message = validation.get("expression", ""), validation.get("message", "")
    errors: ErrorList = []
    if not expression.strip():
        errors.append(required(path.child("expression"), "expression is not specified"))
    else:
        errors += _compile_errors(environment, expression, path.child("expression"), types.BOOL)
    at, message_expression = path.child("messageExpression"), validation.get("messageExpression", "")
    if message_expression and not message_expression.strip():
        errors.append(invalid(at, message_expression, "must be non-empty if specified"))
    elif message_expression:
        errors += _compile_errors(environment, message_expression, at, types.STRING, has_authorizer=False)
    if message and not message.strip():
        errors.append(invalid(path.child("message"), message, "must be non-empty if specified"))
    elif re.search(r"[\n\r]", message.strip()):
        errors.append(invalid(path.child("message"), message, "must not contain line breaks"))
    if (reason := validation.get("reason")) is not None and reason not in _REASONS:
        errors.append(not_supported(path.child("reason"), reason, _REASONS))
    return errors


def _annotation_errors(environment: "Environment", name: str, annotations: Sequence[Spec], path: Path) -> ErrorList:
    errors: ErrorList = []
    if len(annotations) > _MAX_ANNOTATIONS:
        go_annotations = [
            {"Key": a.get("key", ""), "ValueExpression": a.get("valueExpression", "")} for a in annotations
        ]
        errors.append(invalid(path, go_annotations, f"must not have more than {_MAX_ANNOTATIONS} auditAnnotations"))
    seen: set[str] = set()
    for i, annotation in enumerate(annotations):
        key = annotation.get("key", "")
        errors += _annotation_error(environment, name, annotation, path.index(i))
        if key in seen:
            errors.append(duplicate(path.index(i).child("key"), key))
        seen.add(key)
    return errors


def _annotation_error(environment: "Environment", name: str, annotation: Spec, path: Path) -> ErrorList:
    key, expression = f"{name}/{annotation.get('key', '')}", annotation.get("valueExpression", "")
    at = path.child("valueExpression")
    if name:
        errors = [invalid(path.child("key"), key, problem) for problem in names.is_qualified_name(key)]
    else:
        errors = [invalid(path.child("key"), annotation.get("key", ""), "requires metadata.name be non-empty")]
    trimmed = expression.strip()
    if not trimmed:
        return [*errors, required(at, "valueExpression is not specified")]
    if len(trimmed.encode()) > _MAX_ANNOTATION:
        return [*errors, required(at, f"must not exceed {_MAX_ANNOTATION} bytes in length")]
    return errors + _compile_errors(environment, trimmed, at, types.STRING, types.NULL, shown=expression)


def binding_errors(spec: Spec, path: Path, *, acts: bool) -> ErrorList:
    """The errors in a binding's `spec`. `acts`: it has validationActions."""
    name, at = spec.get("policyName", ""), path.child("policyName")
    errors = [invalid(at, name, problem) for problem in names.name_is_dns_subdomain(name, False) if name]
    if not name:
        errors.append(required(at))
    if (reference := spec.get("paramRef")) is not None:
        errors += _param_ref_errors(reference, path.child("paramRef"))
    errors += _match_errors(spec.get("matchResources"), path.child("matchResources"))
    if acts:
        return errors + _action_errors(spec.get("validationActions") or [], path.child("validationActions"))
    return errors + _operation_errors(spec.get("matchResources"), path.child("matchResources"), _MUTATING)


def _param_ref_errors(reference: Spec, path: Path) -> ErrorList:
    name, selector = reference.get("name", ""), reference.get("selector")
    exclusive = "name and selector are mutually exclusive"
    errors: ErrorList = []
    if name:
        errors += [invalid(path.child("name"), name, problem) for problem in names.path_segment_name(name)]
        if selector is not None:
            errors.append(forbidden(path.child("name"), exclusive))
    if selector is not None:
        errors += label_selector_errors(selector, path.child("selector"))
        if name:
            errors.append(forbidden(path.child("selector"), exclusive))
    if not name and selector is None:
        errors.append(required(path, "one of name or selector must be specified"))
    action, at = reference.get("parameterNotFoundAction", ""), path.child("parameterNotFoundAction")
    if not action:
        errors.append(required(at))
    elif action not in ("Allow", "Deny"):
        errors.append(not_supported(at, action, ("Deny", "Allow")))
    return errors


def _action_errors(actions: list[str], path: Path) -> ErrorList:
    errors: ErrorList = []
    repeated = repetitions(actions)
    for i, action in enumerate(actions):
        if action not in _ACTIONS:
            errors.append(not_supported(path.index(i), action, _ACTIONS))
        if i in repeated:
            errors.append(duplicate(path.index(i), action))
    if {"Deny", "Warn"} <= set(actions):
        detail = (
            "must not contain both Deny and Warn (repeating the same validation failure information in the API response and "
            "headers serves no purpose)"
        )
        errors.append(invalid(path, actions, detail))
    if not actions:
        errors.append(required(path, "at least one validation action is required"))
    return errors


_MUTATING: Final = ("*", "CONNECT", "CREATE", "UPDATE")


def mutating_policy_errors(spec: Spec, path: Path, version: str) -> ErrorList:
    """The errors in a MutatingAdmissionPolicy's `spec`; `version` is Kubernetes's."""
    environment = admission.Environment(spec.get("paramKind") is not None, composes=True, version=version)
    errors = _common_errors(spec, path, environment, _MUTATING)
    mutations, at = spec.get("mutations") or (), path.child("mutations")
    if not mutations:
        errors.append(required(at, "mutations must contain at least one item"))
    for i, mutation in enumerate(mutations):
        errors += _mutation_errors(environment, mutation, at.index(i))
    policy = spec.get("reinvocationPolicy", "")
    if not policy:
        errors.append(required(path.child("reinvocationPolicy")))
    return errors + choice_errors(spec, "reinvocationPolicy", ("IfNeeded", "Never"), path) if policy else errors


def policy_status_errors(status: Spec, path: Path) -> ErrorList:
    """The errors in a ValidatingAdmissionPolicy's `status`."""
    errors: ErrorList = []
    at = path.child("typeChecking", "expressionWarnings")
    for i, warning in enumerate((status.get("typeChecking") or {}).get("expressionWarnings") or ()):
        if not warning.get("warning"):
            errors.append(required(at.index(i).child("warning")))
        reference = warning.get("fieldRef", "").strip()
        if not reference:
            errors.append(required(at.index(i).child("fieldRef")))
        elif problem := _path_problem(reference):
            errors.append(invalid(at.index(i).child("fieldRef"), reference, f"invalid JSONPath: {problem}"))
    return errors + conditions_errors(status.get("conditions") or (), path.child("conditions"))


def _path_problem(text: str) -> str:
    try:
        compile_path(text)
    except ValueError as error:
        return str(error)
    return ""


_FIELDS: Final = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}


def _mutation_errors(environment: "Environment", mutation: Spec, path: Path) -> ErrorList:
    sort = mutation.get("patchType", "")
    if not sort:
        return [required(path.child("patchType"))]
    if sort not in _FIELDS:
        return [not_supported(path.child("patchType"), sort, tuple(_FIELDS))]
    own = _FIELDS[sort]
    (other,) = set(_FIELDS.values()) - {own}
    errors: ErrorList = []
    if mutation.get(own) is None:
        errors.append(required(path.child(own), f"must be specified when patchType is {sort}"))
    elif expression := mutation[own].get("expression", "").strip():
        result_type = admission.JSON_PATCH if sort == "JSONPatch" else admission.OBJECT
        errors += _compile_errors(
            environment, expression, path.child(own, "expression"), result_type, makes_patches=True
        )
    else:
        errors.append(required(path.child(own, "expression")))
    if mutation.get(other) is not None:
        errors.append(invalid(path.child(other), f"{{{other}}}", f"must not be specified when patchType is {sort}"))
    return errors
