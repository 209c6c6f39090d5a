"""Validation of flow schemas and priority levels.

Upstream: pkg/apis/flowcontrol/validation/validation.go, k8s.io/apiserver/pkg/util/shufflesharding/shufflesharding.go.
"""

from collections.abc import Callable, Mapping
from functools import cache
from math import ceil, log2
from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apis import bootstrap
from fakeapiserver.apis.internal_form import internal_form
from fakeapiserver.apis.scheme import load
from fakeapiserver.registry.core.field_formats import choice_errors, duplicate_errors, name_errors

_SPEC: Final = Path("spec")
_CONDITIONS: Final = Path("status").child("conditions")
_EXEMPT: Final = "exempt"
_MANDATORY: Final = (_EXEMPT, "catch-all")
_MAX_PRECEDENCE: Final = 10000
_MAX_QUEUES: Final = 10_000_000
_MAX_HASH_BITS: Final = 60
_METHODS: Final = ("ByNamespace", "ByUser")
_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
ENABLEMENTS: Final = ("Exempt", "Limited")
RESPONSES: Final = ("Queue", "Reject")
# An annotation of v1beta3's, which no other version may carry.
_PRESERVES_ZERO: Final = "flowcontrol.k8s.io/preserve-zero-concurrency-shares"
_NAMESPACE_INTRO: Final = "each member of this list must be '*' or a DNS-1123 label; "


@cache
def _fixed_specs() -> Mapping[tuple[str, str], Object]:
    """Returns (kind, name) -> spec of the mandatory objects, which can't be changed."""
    kinds = ("FlowSchema", "PriorityLevelConfiguration")
    fixed_objects = (
        obj for obj in bootstrap.objects(load()) if obj["kind"] in kinds and obj["metadata"]["name"] in _MANDATORY
    )
    return {(obj["kind"], obj["metadata"]["name"]): obj["spec"] for obj in fixed_objects}


def flow_schema_errors(obj: Object) -> ErrorList:
    name, spec = metadata(obj).get("name", ""), obj["spec"]
    errors = _precedence_errors(spec.get("matchingPrecedence", 0), name)
    method = spec.get("distinguisherMethod")
    if method is not None and method.get("type", "") not in _METHODS:
        go_form = internal_form(method, "FlowDistinguisherMethod")
        errors.append(field.not_supported(_SPEC.child("distinguisherMethod", "type"), go_form, _METHODS))
    level, path = (
        (spec.get("priorityLevelConfiguration") or {}).get("name", ""),
        _SPEC.child("priorityLevelConfiguration"),
    )
    if level:
        errors += name_errors(level, names.is_dns1123_subdomain, path.child("name"))
    else:
        errors.append(field.required(path.child("name"), "must reference a priority level"))
    for i, rule in enumerate(spec.get("rules") or ()):
        errors += _rule_errors(rule, _SPEC.child("rules").index(i))
    fixed = _fixed_specs().get(("FlowSchema", name))
    if fixed is not None and spec != fixed:
        go_form = internal_form(spec, "FlowSchemaSpec")
        errors.append(field.invalid(_SPEC, go_form, f"spec of '{name}' must equal the fixed value"))
    return errors + conditions_errors(obj)


def conditions_errors(obj: Object) -> ErrorList:
    """The errors in the conditions of either kind's status: each type is required and must be unique."""
    errors: ErrorList = []
    seen: set[str] = set()
    for i, condition in enumerate((obj.get("status") or {}).get("conditions") or ()):
        kind, path = condition.get("type", ""), _CONDITIONS.index(i).child("type")
        errors += duplicate_errors(kind, seen, path)
        if not kind:
            errors.append(field.required(path))
    return errors


def _precedence_errors(precedence: int, name: str) -> ErrorList:
    path = _SPEC.child("matchingPrecedence")
    if precedence <= 0:
        return [field.invalid(path, precedence, "must be a positive value")]
    if precedence > _MAX_PRECEDENCE:
        return [field.invalid(path, precedence, f"must not be greater than {_MAX_PRECEDENCE}")]
    if precedence == 1 and name != _EXEMPT:
        return [field.invalid(path, precedence, "only the schema named 'exempt' may have matchingPrecedence 1")]
    return []


def _rule_errors(rule: Object, path: Path) -> ErrorList:
    errors: ErrorList = []
    subjects, resources, urls = (rule.get(name) or () for name in ("subjects", "resourceRules", "nonResourceRules"))
    for i, subject in enumerate(subjects):
        errors += _subject_errors(subject, path.child("subjects").index(i))
    if not subjects:
        errors.append(field.required(path.child("subjects"), "subjects must contain at least one value"))
    if not resources and not urls:
        errors.append(field.required(path, "at least one of resourceRules and nonResourceRules has to be non-empty"))
    for i, item in enumerate(resources):
        errors += _resource_rule_errors(item, path.child("resourceRules").index(i))
    for i, item in enumerate(urls):
        errors += _non_resource_rule_errors(item, path.child("nonResourceRules").index(i))
    return errors


def _named_errors(subject: Object, path: Path) -> ErrorList:
    return [] if subject.get("name") else [field.required(path.child("name"))]


def _service_account_errors(subject: Object, path: Path) -> ErrorList:
    errors = _named_errors(subject, path)
    if not errors and subject["name"] != "*":
        errors += name_errors(subject["name"], names.is_dns1123_subdomain, path.child("name"))
    if namespace := subject.get("namespace"):
        return errors + name_errors(namespace, names.is_dns1123_label, path.child("namespace"))
    return [*errors, field.required(path.child("namespace"), "must specify namespace for service account")]


# kind of a subject -> the field that it is in, in the order in which upstream forbids the others.
_SUBJECTS: Final[Mapping[str, tuple[str, Callable[[Object, Path], ErrorList]]]] = {
    "ServiceAccount": ("serviceAccount", _service_account_errors),
    "User": ("user", _named_errors),
    "Group": ("group", _named_errors),
}


def _subject_errors(subject: Object, path: Path) -> ErrorList:
    kind = subject.get("kind", "")
    if kind not in _SUBJECTS:
        return [field.not_supported(path.child("kind"), kind, sorted(_SUBJECTS))]
    name, check = _SUBJECTS[kind]
    if (detail_part := subject.get(name)) is None:
        errors: ErrorList = [field.required(path.child(name), f"{name} is required when subject kind is '{kind}'")]
    else:
        errors = check(detail_part, path.child(name))
    for other, (unwanted, _) in _SUBJECTS.items():
        if other != kind and subject.get(unwanted) is not None:
            detail = f"{unwanted} is forbidden when subject kind is not '{other}'"
            errors.append(field.forbidden(path.child(unwanted), detail))
    return errors


def _alone_errors(values: list[str], path: Path, what: str) -> ErrorList:
    """The error for `*` next to other values."""
    if "*" not in values or len(values) == 1:
        return []
    return [field.invalid(path, values, f"if '*' is present, must not specify other {what}")]


def _verb_errors(rule: Object, path: Path) -> ErrorList:
    verbs = rule.get("verbs") or []
    if not verbs:
        return [field.required(path, "verbs must contain at least one value")]
    if "*" in verbs:
        return _alone_errors(verbs, path, "verbs")
    return [] if set(verbs) <= set(_VERBS) else [field.not_supported(path, verbs, _VERBS)]


def _resource_rule_errors(rule: Object, path: Path) -> ErrorList:
    errors = _verb_errors(rule, path.child("verbs"))
    for name, one, many in (("apiGroups", "api group", "api groups"), ("resources", "resource", "resources")):
        if values := rule.get(name):
            errors += _alone_errors(values, path.child(name), many)
        else:
            errors.append(field.required(path.child(name), f"resource rules must supply at least one {one}"))
    namespaces, at = rule.get("namespaces") or [], path.child("namespaces")
    if not namespaces and not rule.get("clusterScope"):
        detail = "resource rules that are not cluster scoped must supply at least one namespace"
        return [*errors, field.required(at, detail)]
    if "*" in namespaces:
        return errors + _alone_errors(namespaces, at, "namespaces")
    for i, namespace in enumerate(namespaces):
        problems = names.is_dns1123_label(namespace)
        errors += [field.invalid(at.index(i), namespace, _NAMESPACE_INTRO + problem) for problem in problems]
    return errors


def _non_resource_rule_errors(rule: Object, path: Path) -> ErrorList:
    errors, urls = _verb_errors(rule, path.child("verbs")), rule.get("nonResourceURLs") or []
    at = path.child("nonResourceURLs")
    if not urls:
        return [*errors, field.required(at, "nonResourceURLs must contain at least one value")]
    if "*" in urls:
        return errors + _alone_errors(urls, at, "non-resource URLs")
    return errors + [
        field.invalid(at.index(i), url, problem) for i, url in enumerate(urls) if (problem := _url_problem(url))
    ]


def _url_problem(url: str) -> str:
    if not url:
        return "must not be empty"
    if not url.startswith("/"):
        return "must start with slash"
    if " " in url:
        return "must not contain white-space"
    if "//" in url:
        return "must not contain double slash"
    stars = url.count("*")
    return "wildcard can only do suffix matching" if stars > 1 or (stars and not url.endswith("/*")) else ""


def priority_level_errors(obj: Object) -> ErrorList:
    meta, spec = metadata(obj), obj["spec"]
    errors: ErrorList = []
    if _PRESERVES_ZERO in (meta.get("annotations") or {}):
        path = Path("metadata").child("annotations")
        errors.append(field.forbidden(path, f"annotation '{_PRESERVES_ZERO}' is forbidden"))
    name = meta.get("name", "")
    errors += _level_errors(spec, name) + _fixed_level_errors(spec, name)
    return errors + conditions_errors(obj)


def _fixed_level_errors(spec: Object, name: str) -> ErrorList:
    """The errors in a mandatory priority level, whose spec is fixed, but for `exempt` in the level for exempt requests."""
    fixed = _fixed_specs().get(("PriorityLevelConfiguration", name))
    if fixed is None:
        return []
    free = ("exempt",) if name == _EXEMPT else ()
    if all(spec.get(key) == fixed.get(key) for key in spec.keys() | fixed.keys() if key not in free):
        return []
    exception = " except the 'spec.exempt' field" if free else ""
    go_spec = internal_form(spec, "PriorityLevelConfigurationSpec")
    return [field.invalid(_SPEC, go_spec, f"spec of '{name}'{exception} must equal the fixed value")]


def _level_errors(spec: Object, name: str) -> ErrorList:
    kind = spec.get("type", "")
    exempt, limited = spec.get("exempt"), spec.get("limited")
    errors: ErrorList = []
    if (name == _EXEMPT) != (kind == "Exempt"):
        detail = "must be 'Exempt' if and only if `name` is 'exempt'"
        errors.append(field.invalid(_SPEC.child("type"), kind, detail))
    if kind == "Exempt":
        if limited is not None:
            errors.append(field.forbidden(_SPEC.child("limited"), "must be nil if the type is not Limited"))
        if exempt is not None:
            errors += _share_errors(exempt, _SPEC.child("exempt"), ())
    elif kind == "Limited":
        if exempt is not None:
            errors.append(field.forbidden(_SPEC.child("exempt"), "must be nil if the type is Limited"))
        if limited is None:
            errors.append(field.required(_SPEC.child("limited"), "must not be empty when type is Limited"))
        else:
            response = _response_errors(limited.get("limitResponse") or {}, _SPEC.child("limited", "limitResponse"))
            errors += _share_errors(limited, _SPEC.child("limited"), response)
    else:
        errors += choice_errors(kind, ENABLEMENTS, _SPEC.child("type"))
    return errors


def _share_errors(level: Object, path: Path, response: ErrorList | tuple[()]) -> ErrorList:
    """The errors in shares. `response`: the errors that are reported between those of the shares and of their lending."""
    errors: ErrorList = []
    if (shares := level.get("nominalConcurrencyShares", 0)) < 0:
        errors.append(field.invalid(path.child("nominalConcurrencyShares"), shares, "must be a non-negative integer"))
    errors += response
    if not 0 <= (lent := level.get("lendablePercent", 0)) <= 100:
        errors.append(field.invalid(path.child("lendablePercent"), lent, "must be between 0 and 100, inclusive"))
    if (borrowed := level.get("borrowingLimitPercent", 0)) < 0:
        detail = "if specified, must be a non-negative integer"
        errors.append(field.invalid(path.child("borrowingLimitPercent"), borrowed, detail))
    return errors


def _response_errors(response: Object, path: Path) -> ErrorList:
    kind, queuing, at = response.get("type", ""), response.get("queuing"), path.child("queuing")
    if kind not in RESPONSES:
        return choice_errors(kind, RESPONSES, path.child("type"))
    if kind == "Queue":
        if queuing is None:
            return [field.required(at, "must not be empty if limited.limitResponse.type is Limited")]
        return _queuing_errors(queuing, at)
    if queuing is None:
        return []
    return [field.forbidden(at, "must be nil if limited.limitResponse.type is not Limited")]


def _queuing_errors(queuing: Object, path: Path) -> ErrorList:
    length, queues, hand = (queuing.get(name, 0) for name in ("queueLengthLimit", "queues", "handSize"))
    errors: ErrorList = []
    if length <= 0:
        errors.append(field.invalid(path.child("queueLengthLimit"), length, "must be positive"))
    if queues <= 0:
        errors.append(field.invalid(path.child("queues"), queues, "must be positive"))
    elif queues > _MAX_QUEUES:
        errors.append(field.invalid(path.child("queues"), queues, f"must not be greater than {_MAX_QUEUES}"))
    if detail := _hand_problem(queues, hand):
        errors.append(field.invalid(path.child("handSize"), hand, detail))
    return errors


def _hand_problem(queues: int, hand: int) -> str:
    if hand <= 0:
        return "must be positive"
    if hand > queues:
        return f"should not be greater than queues ({queues})"
    if ceil(log2(queues) * hand) > _MAX_HASH_BITS:
        sizes = f"deckSize {queues} and handSize {hand}"
        return f"required entropy bits of {sizes} should not be greater than {_MAX_HASH_BITS}"
    return ""
