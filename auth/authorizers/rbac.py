"""Role-based access control over the stored roles and bindings.

Upstream: k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/rbac.go, pkg/registry/rbac/validation/rule.go.

Who is asked about is looked up, not searched for: bindings are indexed by subject, and what one subject may do by resource. A
write to a role or a binding changes the index only where it stands; what it touches is compiled when it is next asked for.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.object_reader import ObjectReader
from fakeapiserver.auth.interfaces import Attributes, Decision, UserInfo
from fakeapiserver.auth.rules import PolicyRule, Rule, words

ROLES: Final = "roles.rbac.authorization.k8s.io"
ROLE_BINDINGS: Final = "rolebindings.rbac.authorization.k8s.io"
CLUSTER_ROLES: Final = "clusterroles.rbac.authorization.k8s.io"
CLUSTER_ROLE_BINDINGS: Final = "clusterrolebindings.rbac.authorization.k8s.io"
RESOURCES: Final = (ROLES, ROLE_BINDINGS, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS)
_DECISIONS: Final = 4096
_NO_RULES: Final[list[PolicyRule]] = []

# Where a role or binding is: its namespace (empty: cluster-wide) and its name.
_Key = tuple[str, str]
# The subject of a binding: namespace, "User" or "Group", name. A service account has its user name.
_Subject = tuple[str, str, str]


class _Binding(NamedTuple):
    name: str
    namespace: str
    role_kind: str
    role_name: str
    subjects: Sequence[Mapping[str, Any]]

    @property
    def role(self) -> _Key:
        return (self.namespace if self.role_kind == "Role" else "", self.role_name)


_Grant = tuple[Rule, _Binding]


class _Grants:
    """The compiled grants of one subject in one place.

    `resources` has the words of rules as keys: `pods`, `pods/log`, `*/scale`, `*`.
    """

    __slots__ = ("errors", "is_named", "paths", "resources")

    def __init__(self) -> None:
        self.is_named = False
        self.resources: dict[str, list[_Grant]] = {}
        self.paths: list[_Grant] = []
        self.errors: list[str] = []

    def add(self, rules: Sequence[PolicyRule], binding: _Binding) -> None:
        for rule in rules:
            grant = (Rule(rule), binding)
            self.is_named = self.is_named or bool(rule.get("resourceNames"))
            for resource in dict.fromkeys(rule.get("resources") or ()):
                self.resources.setdefault(resource, []).append(grant)
            if rule.get("nonResourceURLs"):
                self.paths.append(grant)

    def find(self, attributes: Attributes, called: Sequence[str]) -> _Binding | None:
        """The binding that allows a request about a resource that rules may call by each word of `called`, or about a path."""
        if not attributes.resource_request:
            return next((binding for rule, binding in self.paths if rule.allows_path(attributes)), None)
        for word in called:
            for rule, binding in self.resources.get(word, ()):
                if rule.allows_about(attributes):
                    return binding
        return None


class _UserGrants(NamedTuple):
    """The grants of one user in one place.

    `reasons` are the texts used already, by binding; `decisions` the cached decisions, in which names count only
    if a rule has any
    (`is_named`).
    """

    grants: tuple[_Grants, ...]
    is_named: bool
    reasons: dict[_Key, str]
    decisions: dict[tuple[str, ...], tuple[Decision, str]]


class _Index:
    """Roles and bindings as they are at `revision`. What is found out about users is kept until one of them changes."""

    def __init__(self, reader: ObjectReader) -> None:
        self.revision = reader.revision
        self._rules: dict[_Key, list[PolicyRule]] = {}
        self._bindings: dict[_Subject, dict[_Key, _Binding]] = {}
        # Which subjects' grants a role is part of, whether it exists or not.
        self._users_of: dict[_Key, set[_Subject]] = {}
        self._grants: dict[_Subject, _Grants] = {}
        self._mine: dict[tuple[str, tuple[str, ...], str], _UserGrants] = {}
        self._remembered = 0
        for resource in RESOURCES:
            for obj in reader.list(resource):
                self._put(resource, obj)

    def follow(self, reader: ObjectReader) -> None:
        """Brings the index up to date. LookupError when too much has happened since: a new one is needed."""
        for resource, old, new in reader.changes(RESOURCES, self.revision):
            if old is not None:
                self._remove(resource, old)
            if new is not None:
                self._put(resource, new)
        self.forget_decisions()

    def decide(self, attributes: Attributes) -> tuple[Decision, str]:
        a, mine = attributes, self.grants_to(attributes.user, attributes.namespace)
        key: tuple[str, ...] = (a.verb, a.path)
        if a.resource_request:
            key = (a.verb, a.resource, a.api_group, a.subresource, a.name if mine.is_named else "")
        decision = mine.decisions.get(key)
        if decision is None:
            self._remembered += 1
            if self._remembered > _DECISIONS:
                self.forget_decisions()
            decision = mine.decisions[key] = _decide(mine, attributes)
        return decision

    def forget_decisions(self) -> None:
        self._mine.clear()
        self._remembered = 0

    def _put(self, resource: str, obj: Mapping[str, Any]) -> None:
        meta = obj["metadata"]
        key = (meta.get("namespace", ""), meta["name"])
        if resource in (ROLES, CLUSTER_ROLES):
            self._rules[key] = obj.get("rules") or _NO_RULES
            self._forget(key)
            return
        binding = _binding(obj)
        for subject in _subjects(binding):
            self._bindings.setdefault(subject, {})[key] = binding
            self._users_of.setdefault(binding.role, set()).add(subject)
            self._grants.pop(subject, None)

    def _remove(self, resource: str, obj: Mapping[str, Any]) -> None:
        meta = obj["metadata"]
        key = (meta.get("namespace", ""), meta["name"])
        if resource in (ROLES, CLUSTER_ROLES):
            self._rules.pop(key, None)
            self._forget(key)
            return
        for subject in _subjects(_binding(obj)):
            bindings = self._bindings.get(subject, {})
            bindings.pop(key, None)
            self._grants.pop(subject, None)
            if not bindings:
                self._bindings.pop(subject, None)

    def _forget(self, role: _Key) -> None:
        """Drops the compiled grants that the role is part of."""
        for subject in self._users_of.get(role, ()):
            self._grants.pop(subject, None)

    def grants_to(self, user: UserInfo, namespace: str) -> _UserGrants:
        """Returns the grants of the user and its groups, cluster-wide first, then in the namespace."""
        key = (user.name, user.groups, namespace)
        mine = self._mine.get(key)
        if mine is None:
            if len(self._mine) >= _DECISIONS:
                self.forget_decisions()
            user_grants = (self._grants_of(subject) for subject in _principals(user, namespace))
            grants = tuple(grants for grants in user_grants if grants is not None)
            mine = self._mine[key] = _UserGrants(grants, any(grant.is_named for grant in grants), {}, {})
        return mine

    def _grants_of(self, subject: _Subject) -> _Grants | None:
        """Returns the compiled grants of a subject, or None if no binding names it."""
        grants = self._grants.get(subject)
        if grants is None and (bindings := self._bindings.get(subject)):
            grants = self._grants[subject] = _Grants()
            compiled = set[_Key]()
            for binding in bindings.values():
                rules, error = self.rules_of(binding)
                if error:
                    grants.errors.append(error)
                elif binding.role not in compiled:  # a role that is bound twice gives nothing more
                    compiled.add(binding.role)
                    grants.add(rules, binding)
        return grants

    def bindings_of(self, user: UserInfo, namespace: str) -> list[_Binding]:
        """Bindings that apply, cluster-wide ones first, each once."""
        bindings: dict[_Key, _Binding] = {}
        for subject in _principals(user, namespace):
            bindings |= self._bindings.get(subject, {})
        return [bindings[key] for key in sorted(bindings, key=lambda key: (bool(key[0]), key))]

    def rules_of(self, binding: _Binding, resource: str = "") -> tuple[list[PolicyRule], str]:
        """The rules of the binding's role, and what is wrong with it (empty when it is there). `resource` is what the message
        calls a role that is missing, by default its kind."""
        if binding.role_kind not in {"Role", "ClusterRole"}:
            return _NO_RULES, f"unsupported role reference kind: {go_quote(binding.role_kind)}"
        rules = self._rules.get(binding.role)
        # a role is in a namespace: a cluster role binding can't name one
        if rules is not None and (binding.namespace or binding.role_kind == "ClusterRole"):
            return rules, ""
        called = resource or binding.role_kind.lower()
        return _NO_RULES, f"{called}.rbac.authorization.k8s.io {go_quote(binding.role_name)} not found"


def _binding(obj: Mapping[str, Any]) -> _Binding:
    meta, ref = obj["metadata"], obj["roleRef"]
    subjects = obj.get("subjects") or ()
    return _Binding(meta["name"], meta.get("namespace", ""), ref.get("kind", ""), ref.get("name", ""), subjects)


def _subjects(binding: _Binding) -> Iterator[_Subject]:
    for subject in binding.subjects:
        who = _principal(subject, binding.namespace)
        if who is not None:
            yield (binding.namespace, *who)


def _principal(subject: Mapping[str, Any], namespace: str) -> tuple[str, str] | None:
    """Returns the key by which users look up a subject, or None if no user can match it."""
    kind, name = subject.get("kind", ""), subject.get("name", "")
    if kind in {"User", "Group"}:
        return kind, name
    home = subject.get("namespace") or namespace
    if kind == "ServiceAccount" and home:
        return "User", f"system:serviceaccount:{home}:{name}"
    return None


def _principals(user: UserInfo, namespace: str) -> Iterator[_Subject]:
    """All that the user is, everywhere first, then in the namespace."""
    for place in ("", namespace) if namespace else ("",):
        yield place, "User", user.name
        for group in user.groups:
            yield place, "Group", group


def _source(binding: _Binding, user: UserInfo) -> str:
    """Returns a binding in the words of upstream's audit reason:

    `RoleBinding "name/namespace" of Role "r" to User "u"`.
    """
    kind = "RoleBinding" if binding.namespace else "ClusterRoleBinding"
    name = f"{binding.name}/{binding.namespace}" if binding.namespace else binding.name
    mine = {("User", user.name), *(("Group", group) for group in user.groups)}
    subject = next(subject for subject in binding.subjects if _principal(subject, binding.namespace) in mine)
    who = subject.get("name", "")
    if subject["kind"] == "ServiceAccount":
        who = f"{who}/{subject.get('namespace') or binding.namespace}"
    role = f"{binding.role_kind} {go_quote(binding.role_name)}"
    return f"{kind} {go_quote(name)} of {role} to {subject['kind']} {go_quote(who)}"


def aggregate(errors: Sequence[str]) -> str:
    """Several errors as one text, equal ones once (upstream: errors.NewAggregate)."""
    texts = list(dict.fromkeys(errors))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]" if texts else ""


class RBAC:
    """ALLOW with the binding that gave the right, or NO_OPINION with what kept a binding from counting."""

    def __init__(self, reader: ObjectReader) -> None:
        self._reader = reader
        self._generation: int | None = None
        self._index: _Index | None = None

    def _current(self) -> _Index:
        index = self._index
        if index is not None and index.revision == self._reader.revision:
            return index
        generation = self._reader.generation(RESOURCES)
        if index is None:
            index = self._index = _Index(self._reader)
        elif generation != self._generation:
            try:
                index.follow(self._reader)
            except LookupError:
                index = self._index = _Index(self._reader)
        # Whatever was written meanwhile was something else, which need not be looked through when a role changes.
        index.revision = self._reader.revision
        self._generation = generation
        return index

    async def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        return self._current().decide(attributes)

    async def rules_for(
        self, user: UserInfo, namespace: str
    ) -> tuple[list[dict[str, list[str]]], list[dict[str, list[str]]], bool, str]:
        """Returns the rules for SelfSubjectRulesReview: an entry per rule, in the order of the bindings."""
        rules, error = self.policy_rules(user, namespace)
        resource = [
            _only(rule, "verbs", "apiGroups", "resources", "resourceNames") for rule in rules if rule.get("resources")
        ]
        other = [_only(rule, "verbs", "nonResourceURLs") for rule in rules if rule.get("nonResourceURLs")]
        return resource, other, False, error

    def policy_rules(self, user: UserInfo, namespace: str, resource: str = "") -> tuple[list[PolicyRule], str]:
        """Every rule the user has in a namespace (empty: cluster-wide only), and the error of the roles not found, which it
        calls `resource` if that is given."""
        index = self._current()
        rules, errors = list[PolicyRule](), list[str]()
        for binding in index.bindings_of(user, namespace):
            binding_rules, error = index.rules_of(binding, resource)
            rules += binding_rules
            errors += [error] if error else []
        return rules, aggregate(errors)


def _decide(mine: _UserGrants, attributes: Attributes) -> tuple[Decision, str]:
    called = words(attributes)
    for grants in mine.grants:
        binding = grants.find(attributes, called)
        if binding is not None:
            key = (binding.namespace, binding.name)
            if key not in mine.reasons:
                mine.reasons[key] = f"RBAC: allowed by {_source(binding, attributes.user)}"
            return Decision.ALLOW, mine.reasons[key]
    errors = [error for grants in mine.grants for error in grants.errors]
    return Decision.NO_OPINION, f"RBAC: {aggregate(errors)}" if errors else ""


def _only(rule: PolicyRule, *keys: str) -> dict[str, list[str]]:
    return {key: list(rule[key]) for key in keys if rule.get(key)}
