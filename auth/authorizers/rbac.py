"""Role-based access control over the stored roles and bindings.

Upstream: k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/rbac.go, pkg/registry/rbac/validation/rule.go.

Roles and bindings are read once into an index (subject -> bindings) that serves until one of them changes.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from fakeapiserver.apimachinery.field import go_quote
from fakeapiserver.auth.interfaces import Attributes, Decision, ObjectReader, UserInfo

PolicyRule = dict[str, Any]

ROLES: Final = "roles.rbac.authorization.k8s.io"
ROLE_BINDINGS: Final = "rolebindings.rbac.authorization.k8s.io"
CLUSTER_ROLES: Final = "clusterroles.rbac.authorization.k8s.io"
CLUSTER_ROLE_BINDINGS: Final = "clusterrolebindings.rbac.authorization.k8s.io"
RESOURCES: Final = (ROLES, ROLE_BINDINGS, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS)
_DECISIONS: Final = 4096
_NO_RULES: Final[list[PolicyRule]] = []


class _Binding(NamedTuple):
    order: int
    name: str
    namespace: str
    role_kind: str
    role_name: str


class _Rule:
    """One policy rule with its lists as sets."""

    __slots__ = ("groups", "names", "paths", "resources", "verbs")

    def __init__(self, rule: PolicyRule) -> None:
        self.verbs = frozenset(rule.get("verbs") or ())
        self.groups = frozenset(rule.get("apiGroups") or ())
        self.resources = frozenset(rule.get("resources") or ())
        self.names = frozenset(rule.get("resourceNames") or ())
        self.paths = tuple(rule.get("nonResourceURLs") or ())

    def allows(self, attributes: Attributes) -> bool:
        if attributes.verb not in self.verbs and "*" not in self.verbs:
            return False
        if not attributes.resource_request:
            return any(path_matches(path, attributes.path) for path in self.paths)
        if attributes.api_group not in self.groups and "*" not in self.groups:
            return False
        if self.names and attributes.name not in self.names:
            return False
        return self._has_resource(attributes.resource, attributes.subresource)

    def _has_resource(self, resource: str, subresource: str) -> bool:
        if "*" in self.resources:
            return True
        if not subresource:
            return resource in self.resources
        return f"{resource}/{subresource}" in self.resources or f"*/{subresource}" in self.resources


def path_matches(pattern: str, path: str) -> bool:
    """A non-resource URL of a rule: equal, or a prefix when it ends in `*`."""
    return pattern == path or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


class _Snapshot:
    """Everything RBAC knows at one generation."""

    def __init__(self, reader: ObjectReader) -> None:
        self.bindings: dict[tuple[str, str, str], list[tuple[_Binding, Mapping[str, Any]]]] = {}
        self.rules: dict[tuple[str, str], list[PolicyRule]] = {}
        self.compiled: dict[tuple[str, str], list[_Rule]] = {}
        self.decisions: dict[tuple[Any, ...], tuple[Decision, str]] = {}
        for resource in (CLUSTER_ROLES, ROLES):
            for role in reader.list(resource):
                meta = role["metadata"]
                self.rules[meta.get("namespace", ""), meta["name"]] = role.get("rules") or _NO_RULES
        order = 0
        for resource in (CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS):
            for binding in reader.list(resource):
                self._index(binding, order)
                order += 1

    def _index(self, obj: Mapping[str, Any], order: int) -> None:
        meta, ref = obj["metadata"], obj["roleRef"]
        namespace = meta.get("namespace", "")
        binding = _Binding(order, meta["name"], namespace, ref.get("kind", ""), ref.get("name", ""))
        for subject in obj.get("subjects") or ():
            key = _subject_key(subject, namespace)
            if key:
                self.bindings.setdefault((namespace, *key), []).append((binding, subject))

    def bindings_of(self, user: UserInfo, namespace: str) -> list[tuple[_Binding, Mapping[str, Any]]]:
        """Bindings that apply, cluster-wide ones first, each once with the first subject found."""
        found: dict[int, tuple[_Binding, Mapping[str, Any]]] = {}
        keys = [("User", user.name), *(("Group", group) for group in user.groups)]
        for place in ("", namespace) if namespace else ("",):
            for kind, name in keys:
                for pair in self.bindings.get((place, kind, name), ()):
                    found.setdefault(pair[0].order, pair)
        return [found[order] for order in sorted(found)]

    def role(self, binding: _Binding) -> tuple[tuple[str, str], str]:
        """The key of the binding's role, and what is wrong with it (empty when it is there)."""
        if binding.role_kind not in {"Role", "ClusterRole"}:
            return ("", ""), f"unsupported role reference kind: {go_quote(binding.role_kind)}"
        key = (binding.namespace if binding.role_kind == "Role" else "", binding.role_name)
        if key in self.rules:
            return key, ""
        return key, f"{binding.role_kind.lower()}.rbac.authorization.k8s.io {go_quote(binding.role_name)} not found"

    def compiled_rules(self, key: tuple[str, str]) -> list[_Rule]:
        rules = self.compiled.get(key)
        if rules is None:
            rules = self.compiled[key] = [_Rule(rule) for rule in self.rules[key]]
        return rules


def _subject_key(subject: Mapping[str, Any], namespace: str) -> tuple[str, str] | None:
    """What a user is looked up by; a service account is its user name. None when the subject matches nobody."""
    kind, name = subject.get("kind", ""), subject.get("name", "")
    if kind in {"User", "Group"}:
        return kind, name
    home = subject.get("namespace") or namespace
    if kind == "ServiceAccount" and home:
        return "User", f"system:serviceaccount:{home}:{name}"
    return None


def _source(binding: _Binding, subject: Mapping[str, Any]) -> str:
    """What upstream's audit reason calls a binding: `RoleBinding "name/namespace" of Role "r" to User "u"`."""
    kind = "RoleBinding" if binding.namespace else "ClusterRoleBinding"
    name = f"{binding.name}/{binding.namespace}" if binding.namespace else binding.name
    who = subject["name"]
    if subject["kind"] == "ServiceAccount":
        who = f"{who}/{subject.get('namespace') or binding.namespace}"
    role = f"{binding.role_kind} {go_quote(binding.role_name)}"
    return f"{kind} {go_quote(name)} of {role} to {subject['kind']} {go_quote(who)}"


def aggregate(errors: list[str]) -> str:
    """Several errors as one text, equal ones once (upstream: errors.NewAggregate)."""
    texts = list(dict.fromkeys(errors))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]" if texts else ""


class RBAC:
    """ALLOW with the binding that gave the right, or NO_OPINION with what kept a binding from counting."""

    def __init__(self, reader: ObjectReader) -> None:
        self._reader = reader
        self._generation: int | None = None
        self._snapshot: _Snapshot | None = None

    def _current(self) -> _Snapshot:
        generation = self._reader.generation(RESOURCES)
        if self._snapshot is None or generation != self._generation:
            self._snapshot, self._generation = _Snapshot(self._reader), generation
        return self._snapshot

    async def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        snapshot = self._current()
        a, user = attributes, attributes.user
        wanted = (a.verb, a.api_group, a.resource, a.subresource, a.namespace, a.name, a.path, a.resource_request)
        key = (user.name, user.groups, *wanted)
        decision = snapshot.decisions.get(key)
        if decision is None:
            if len(snapshot.decisions) >= _DECISIONS:
                snapshot.decisions.clear()
            decision = snapshot.decisions[key] = _decide(snapshot, attributes)
        return decision

    async def rules_for(
        self, user: UserInfo, namespace: str
    ) -> tuple[list[dict[str, list[str]]], list[dict[str, list[str]]], bool, str]:
        """What SelfSubjectRulesReview shows: one entry per rule, in the order of the bindings."""
        rules, error = self.policy_rules(user, namespace)
        resource = [
            _only(rule, "verbs", "apiGroups", "resources", "resourceNames") for rule in rules if rule.get("resources")
        ]
        other = [_only(rule, "verbs", "nonResourceURLs") for rule in rules if rule.get("nonResourceURLs")]
        return resource, other, False, error

    def policy_rules(self, user: UserInfo, namespace: str) -> tuple[list[PolicyRule], str]:
        """Every rule the user has in a namespace (empty: cluster-wide only), and the error of the roles not found."""
        snapshot = self._current()
        rules, errors = list[PolicyRule](), list[str]()
        for binding, _ in snapshot.bindings_of(user, namespace):
            key, error = snapshot.role(binding)
            if error:
                errors.append(error)
            else:
                rules += snapshot.rules[key]
        return rules, aggregate(errors)

    def role_rules(self, role_ref: Mapping[str, Any], namespace: str) -> tuple[list[PolicyRule], str]:
        """The rules a roleRef names, seen from a binding in `namespace` (empty: a cluster role binding), and its error."""
        snapshot = self._current()
        key, error = snapshot.role(_Binding(0, "", namespace, role_ref.get("kind", ""), role_ref.get("name", "")))
        return (_NO_RULES if error else snapshot.rules[key]), error


def _decide(snapshot: _Snapshot, attributes: Attributes) -> tuple[Decision, str]:
    errors: list[str] = []
    for binding, subject, rule, error in _visit(snapshot, attributes):
        if rule is None:
            errors.append(error)
        elif rule.allows(attributes):
            return Decision.ALLOW, f"RBAC: allowed by {_source(binding, subject)}"
    return Decision.NO_OPINION, f"RBAC: {aggregate(errors)}" if errors else ""


def _visit(
    snapshot: _Snapshot, attributes: Attributes
) -> Iterator[tuple[_Binding, Mapping[str, Any], _Rule | None, str]]:
    for binding, subject in snapshot.bindings_of(attributes.user, attributes.namespace):
        key, error = snapshot.role(binding)
        if error:
            yield binding, subject, None, error
            continue
        for rule in snapshot.compiled_rules(key):
            yield binding, subject, rule, ""


def _only(rule: PolicyRule, *keys: str) -> dict[str, list[str]]:
    return {key: list(rule[key]) for key in keys if rule.get(key)}
