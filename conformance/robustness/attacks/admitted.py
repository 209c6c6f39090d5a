"""Attacks on what compares an object with others: rights, limits, quotas, owners; and on documents of schemas and subresources."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from conformance.robustness.attacks.attack import (
    APPLY_PATCH,
    Attack,
    Call,
    Object,
    encoded,
    filled,
    named,
    pairs,
    posted,
)
from conformance.robustness.attacks.custom import definition, of_spec
from conformance.robustness.attacks.pods import pod

_RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
_GROUP: Final = "rbac.authorization.k8s.io"
_REVIEWS: Final = "/apis/authorization.k8s.io/v1"
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
# Bytes of an object that is stored.
_STORED: Final = 1_000_000
_USER: Final = "attacker"
_AS_USER: Final = {"Impersonate-User": _USER}


def _rule(number: int) -> Object:
    return {"apiGroups": [""], "resources": [f"r{number}"], "verbs": ["get"], "resourceNames": [f"n{number}"]}


def _cluster_role(name: str, rules: list[Any]) -> Object:
    return named(f"{_GROUP}/v1", "ClusterRole", name, rules=rules)


def _wide() -> Object:
    own = {"apiGroups": [_GROUP], "resources": ["roles"], "verbs": ["create"]}
    return _cluster_role("attack-wide", [own, *filled(_rule, _STORED)])


def _binding() -> Object:
    return named(
        f"{_GROUP}/v1",
        "ClusterRoleBinding",
        "attack-wide",
        roleRef={"apiGroup": _GROUP, "kind": "ClusterRole", "name": "attack-wide"},
        subjects=[{"kind": "User", "apiGroup": _GROUP, "name": _USER}],
    )


_RIGHTS: Final = (posted(f"{_RBAC}/clusterroles", _wide), posted(f"{_RBAC}/clusterrolebindings", _binding))


def _role(name: str, rules: Callable[[], list[Any]]) -> Call:
    body = lambda: encoded(named(f"{_GROUP}/v1", "Role", name, rules=rules()))  # noqa: E731
    return Call("POST", f"{_RBAC}/namespaces/default/roles?dryRun=All", body, headers=_AS_USER)


def _review(**spec: object) -> Call:
    return posted(
        f"{_REVIEWS}/subjectaccessreviews",
        lambda: named("authorization.k8s.io/v1", "SubjectAccessReview", "", spec={"user": _USER, **spec}),
    )


def _requirement(number: int) -> Object:
    return {"key": f"k{number}", "operator": "NotIn", "values": [f"v{number}"]}


def _rights() -> Iterator[tuple[str, Call]]:
    yield "a role of as many rules", _role("a", lambda: filled(_rule, _STORED))
    yield "a role of other rules", _role("b", lambda: filled(lambda i: _rule(i + 1_000_000), _STORED))
    yield "a rule of many resources", _role("c", lambda: [{**_rule(0), "resources": filled(lambda i: f"r{i}")}])
    product = {"apiGroups": [f"g{i}" for i in range(100)], "resources": [f"r{i}" for i in range(100)]}
    yield "a rule that is a million", _role("d", lambda: [{**product, "verbs": [f"v{i}" for i in range(100)]}])
    yield "a request", Call("GET", "/api/v1/namespaces/default/r123/n123", headers=_AS_USER)
    rules = partial(
        encoded, {**named("authorization.k8s.io/v1", "SelfSubjectRulesReview", ""), "spec": {"namespace": "default"}}
    )
    yield "a review of all rules", Call("POST", f"{_REVIEWS}/selfsubjectrulesreviews", rules, headers=_AS_USER)
    for name, key in (("labels", "labelSelector"), ("fields", "fieldSelector")):
        attributes: Object = {"verb": "list", "resource": "pods"}
        yield (
            f"a review with {name}",
            _review(resourceAttributes={**attributes, key: {"requirements": filled(_requirement)}}),
        )
    attributes = {"verb": "list", "resource": "pods", "labelSelector": {"rawSelector": "a!=b," * 500_000 + "a!=b"}}
    yield "a review with a long selector", _review(resourceAttributes=attributes)
    yield (
        "a review with extras",
        _review(extra=pairs(lambda i: (f"k{i}", ["v"])), nonResourceAttributes={"path": "/", "verb": "get"}),
    )
    yield "a review of a long path", _review(nonResourceAttributes={"path": "/a" * 1_000_000, "verb": "get"})


def _crowded(name: str) -> str:
    return f"/api/v1/namespaces/attack-{name}"


def _namespace(name: str) -> Call:
    return posted("/api/v1/namespaces", lambda: named("v1", "Namespace", f"attack-{name}"))


def _containers() -> Object:
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "2Gi"}}
    containers = [{"name": f"c{i}", "image": "i", "resources": resources} for i in range(2_000)]
    return named("v1", "Pod", "crowd", spec={"containers": containers})


def _limit(number: int) -> Object:
    bounds = {"cpu": "3", "memory": "3Gi"}
    return {
        "type": "Container",
        "max": bounds,
        "min": {"cpu": "1m"},
        "default": bounds,
        "defaultRequest": {"cpu": "1m"},
    }


def _limit_range(number: int) -> Object:
    return named("v1", "LimitRange", f"l{number}", spec={"limits": [_limit(number)]})


def _quota(number: int) -> Object:
    hard = {f"requests.example.com/r{i}": "1" for i in range(2_000)}
    return named("v1", "ResourceQuota", f"q{number}", spec={"hard": hard})


def _scoped() -> Object:
    expressions = filled(lambda i: {"scopeName": "PriorityClass", "operator": "Exists"})
    return named("v1", "ResourceQuota", "scoped", spec={"scopeSelector": {"matchExpressions": expressions}})


def _limited() -> Iterator[Attack]:
    limit_ranges = [posted(f"{_crowded('limits')}/limitranges", partial(_limit_range, i)) for i in range(50)]
    before = (_namespace("limits"), *limit_ranges)
    yield Attack("limits: 2,000 containers", posted(f"{_crowded('limits')}/pods", _containers), before)
    quotas = [posted(f"{_crowded('quotas')}/resourcequotas", partial(_quota, i)) for i in range(20)]
    before = (_namespace("quotas"), *quotas)
    yield Attack("quotas: 2,000 containers", posted(f"{_crowded('quotas')}/pods", _containers), before)
    yield Attack("quotas: scopes", posted(f"{_crowded('quotas')}/resourcequotas", _scoped), before)


def _entry(number: int) -> Object:
    fields: Object = {"f:data": {f"f:k{i}": {} for i in range(20)}}
    return {
        "manager": f"m{number}",
        "operation": "Apply",
        "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }


def _owned() -> Object:
    obj = named("v1", "ConfigMap", "owned", data={f"k{i}": "v" for i in range(20)})
    obj["metadata"]["managedFields"] = filled(_entry, _STORED)
    return obj


def _owners() -> Iterator[Attack]:
    path = "/api/v1/namespaces/default/configmaps"
    before = (posted(path, _owned),)
    body = lambda: encoded(named("v1", "ConfigMap", "owned", data={f"k{i}": "w" for i in range(20)}))  # noqa: E731
    for name, query in (("in conflict with all", ""), ("over all", "&force=true&dryRun=All")):
        yield Attack(
            f"owners: an apply {name}",
            Call("PATCH", f"{path}/owned?fieldManager=other{query}", body, APPLY_PATCH),
            before,
        )
    yield Attack("owners: an update", Call("PUT", f"{path}/owned?dryRun=All", body), before)


def _documents() -> Iterator[Attack]:
    def large(plural: str, count: int) -> Call:
        text = {"type": "string", "description": "d" * 20}
        return posted(_DEFINITIONS, lambda: definition(plural, of_spec({f"p{i}": text for i in range(count)})))

    before = (large("larges", 15_000),)
    for name, path in (
        ("OpenAPI v2", "/openapi/v2"),
        ("OpenAPI v3", "/openapi/v3/apis/attack.example.com/v1"),
        ("discovery", "/apis/attack.example.com/v1"),
    ):
        yield Attack(f"documents: {name} of a large schema", Call("GET", path), before)
    schema = of_spec({f"p{i}": {"type": "string"} for i in range(10)})
    many = [{"name": f"c{i}", "type": "string", "jsonPath": f".spec.p{i}"} for i in range(10_000)]
    long = [{"name": f"c{i}", "type": "string", "jsonPath": ".spec" * 2_000} for i in range(10)]
    for name, columns in (("10,000 printer columns", many), ("printer columns with long paths", long)):
        obj = partial(definition, f"columned{len(columns)}s", schema, additionalPrinterColumns=columns)
        yield Attack(f"definition: {name}", posted(_DEFINITIONS, obj))
    fields = [{"jsonPath": f".spec.p{i}"} for i in range(50_000)]
    yield Attack(
        "definition: selectable fields that aren't defined",
        posted(_DEFINITIONS, lambda: definition("selecteds", of_spec({}), selectableFields=fields)),
    )


def _subresources() -> Iterator[Attack]:
    path = "/api/v1/namespaces/default"
    before = (
        posted(f"{path}/pods", lambda: pod("subject")),
        posted(f"{path}/serviceaccounts", lambda: named("v1", "ServiceAccount", "subject")),
    )
    target = {"target": {"kind": "Node", "name": "n"}}
    bound = lambda: {  # noqa: E731
        **named("v1", "Binding", "subject", **target),
        "metadata": {"name": "subject", "labels": pairs(lambda i: (f"k{i}", "v"))},
    }
    yield Attack("subresource: a binding with labels", posted(f"{path}/pods/subject/binding", bound), before)
    token = lambda: named("authentication.k8s.io/v1", "TokenRequest", "", spec={"audiences": filled(lambda i: f"a{i}")})  # noqa: E731
    yield Attack(
        "subresource: a token for many audiences", posted(f"{path}/serviceaccounts/subject/token", token), before
    )
    eviction = lambda: named("policy/v1", "Eviction", "subject", deleteOptions={"dryRun": filled(lambda i: "All")})  # noqa: E731
    yield Attack("subresource: an eviction", posted(f"{path}/pods/subject/eviction", eviction), before)
    container = lambda i: {"name": f"e{i}", "image": "i"}  # noqa: E731
    ephemeral = lambda: encoded(  # noqa: E731
        {**pod("subject"), "spec": {**pod("subject")["spec"], "ephemeralContainers": filled(container)}}
    )
    yield Attack(
        "subresource: ephemeral containers", Call("PUT", f"{path}/pods/subject/ephemeralcontainers", ephemeral), before
    )
    yield Attack("subresource: commands", Call("POST", f"{path}/pods/subject/exec?" + "command=a&" * 100_000), before)
    yield Attack("subresource: ports", Call("POST", f"{path}/pods/subject/portforward?" + "ports=1&" * 100_000), before)
    yield Attack(
        "subresource: a proxy of slashes", Call("GET", f"{path}/pods/subject/proxy/" + "/" * 1_000_000), before
    )


def attacks() -> Iterator[Attack]:
    for name, call in _rights():
        yield Attack(f"rights: {name}", call, _RIGHTS)
    yield from _limited()
    yield from _owners()
    yield from _documents()
    yield from _subresources()
