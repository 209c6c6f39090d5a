"""RBAC against a model that reads its rules aloud: slow, without any index, and easy to believe."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fakeapiserver.apimachinery.object_reader import ObjectChange
from fakeapiserver.auth.authorizers.rbac import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    RBAC,
    ROLE_BINDINGS,
    ROLES,
)
from fakeapiserver.auth.authorizers.rbac_escalation import rules_cover
from fakeapiserver.auth.interfaces import Attributes, Decision, UserInfo

Rule = dict[str, Any]
NAMESPACES = ("", "a", "b")
VERBS, GROUPS, NAMES = ("get", "list", "*"), ("", "apps", "*"), ("x", "y")
WORDS = ("pods", "pods/log", "*", "*/log", "*/", "pods/")
URLS = ("/a", "/a/b", "/a/*", "/*", "*", "/b")
ROLE_NAMES, USERS, TEAMS = ("r", "s"), ("jane", "system:serviceaccount:a:robot"), ("dev", "ops")


def some(values: Sequence[str], least: int = 1) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(values), min_size=least, max_size=2)


resource_rules = st.fixed_dictionaries(
    {"verbs": some(VERBS), "apiGroups": some(GROUPS), "resources": some(WORDS)},
    optional={"resourceNames": some(NAMES, 0)},
)
url_rules = st.fixed_dictionaries({"verbs": some(VERBS), "nonResourceURLs": some(URLS)})
rules = st.lists(resource_rules | url_rules, max_size=3)
references = st.fixed_dictionaries(
    {"kind": st.sampled_from(("Role", "ClusterRole")), "name": st.sampled_from((*ROLE_NAMES, "lost"))}
)
subjects = st.one_of(
    st.fixed_dictionaries({"kind": st.just("User"), "name": st.sampled_from(USERS)}),
    st.fixed_dictionaries({"kind": st.just("Group"), "name": st.sampled_from(TEAMS)}),
    st.fixed_dictionaries(
        {"kind": st.just("ServiceAccount"), "name": st.just("robot")}, optional={"namespace": st.sampled_from("ab")}
    ),
)
requests = st.builds(
    Attributes,
    user=st.builds(UserInfo, st.sampled_from(USERS), groups=st.lists(st.sampled_from(TEAMS), max_size=2).map(tuple)),
    verb=st.sampled_from(("get", "list", "delete")),
    path=st.sampled_from(("/a", "/a/", "/a/b/c", "/b")),
    resource_request=st.booleans(),
    api_group=st.sampled_from(("", "apps", "batch")),
    resource=st.sampled_from(("pods", "secrets")),
    subresource=st.sampled_from(("", "log", "exec")),
    namespace=st.sampled_from(NAMESPACES),
    name=st.sampled_from(("", "x", "z")),
)
# (resource, namespace, name) -> the object's own part, None deletes it
writes = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from(NAMESPACES), st.sampled_from(ROLE_NAMES), st.none() | rules.map(lambda r: {"rules": r})
        ),
        st.tuples(
            st.sampled_from(NAMESPACES),
            st.sampled_from(("b1", "b2", "b3")),
            st.none() | st.fixed_dictionaries({"roleRef": references, "subjects": st.lists(subjects, max_size=2)}),
        ),
    ),
    max_size=8,
)


class Stored:
    """Objects by resource, namespace and name, and what happened to them."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], Mapping[str, Any]] = {}
        self.log: list[ObjectChange] = []

    def write(self, namespace: str, name: str, content: Mapping[str, Any] | None) -> None:
        binds = name.startswith("b")
        kinds = (ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS) if binds else (ROLES, CLUSTER_ROLES)
        resource = kinds[0] if namespace else kinds[1]
        old = self.objects.pop((resource, namespace, name), None)
        new = {"metadata": {"name": name, "namespace": namespace}, **content} if content is not None else None
        if new is not None:
            self.objects[resource, namespace, name] = new
        self.log.append((resource, old, new))

    def list(self, resource: str, namespace: str = "") -> Sequence[Mapping[str, Any]]:
        return [obj for key, obj in self.objects.items() if key[0] == resource]

    def generation(self, resources: tuple[str, ...]) -> int:
        return self.revision

    @property
    def revision(self) -> int:
        return len(self.log)

    def changes(self, resources: tuple[str, ...], revision: int) -> Sequence[ObjectChange]:
        return self.log[revision:]


def model_allows(stored: Stored, wanted: Attributes) -> bool:
    for (resource, namespace, _), binding in stored.objects.items():
        if resource not in (ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS) or namespace not in ("", wanted.namespace):
            continue
        if any(_is(subject, wanted.user, namespace) for subject in binding["subjects"]):
            kind, name = binding["roleRef"]["kind"], binding["roleRef"]["name"]
            role = stored.objects.get((ROLES, namespace, name) if kind == "Role" else (CLUSTER_ROLES, "", name), {})
            if any(_allows(rule, wanted) for rule in role.get("rules", ())):
                return True
    return False


def _is(subject: Mapping[str, str], user: UserInfo, namespace: str) -> bool:
    if subject["kind"] == "ServiceAccount":
        home = subject.get("namespace") or namespace
        return home != "" and user.name == f"system:serviceaccount:{home}:{subject['name']}"
    return subject["name"] == user.name if subject["kind"] == "User" else subject["name"] in user.groups


def _allows(rule: Rule, wanted: Attributes) -> bool:
    if not {"*", wanted.verb} & set(rule["verbs"]):
        return False
    if not wanted.resource_request:
        urls = rule.get("nonResourceURLs", ())
        return any(url == wanted.path or (url[-1] == "*" and wanted.path.startswith(url[:-1])) for url in urls)
    called = {"*", wanted.resource + ("/" + wanted.subresource if wanted.subresource else "")}
    called |= {"*/" + wanted.subresource} if wanted.subresource else set()
    names = rule.get("resourceNames")
    return bool(
        {"*", wanted.api_group} & set(rule.get("apiGroups", ()))
        and called & set(rule.get("resources", ()))
        and (not names or wanted.name in names)
    )


@settings(max_examples=200)
@given(st.lists(st.tuples(writes, st.lists(requests, max_size=4)), max_size=4))
def test_the_index_follows_every_write(rounds: list[tuple[list[Any], list[Attributes]]]) -> None:
    stored = Stored()
    followed = RBAC(stored)
    for some_writes, questions in rounds:
        for write in some_writes:
            stored.write(*write)
        for wanted in questions:
            expected = model_allows(stored, wanted)
            for authorizer in (followed, RBAC(stored)):
                decision, reason = asyncio.run(authorizer.authorize(wanted))
                assert (decision is Decision.ALLOW) is expected, reason


def pieces(rule: Rule) -> Iterator[Rule]:
    for group, resource, verb, name in product(
        rule.get("apiGroups", ()), rule.get("resources", ()), rule["verbs"], rule.get("resourceNames") or (None,)
    ):
        yield {"apiGroups": [group], "resources": [resource], "verbs": [verb]} | (
            {"resourceNames": [name]} if name else {}
        )
    for url, verb in product(rule.get("nonResourceURLs", ()), rule["verbs"]):
        yield {"nonResourceURLs": [url], "verbs": [verb]}


def covers(owner: Rule, piece: Rule) -> bool:
    """Reports whether a single rule of the owner covers a piece."""

    def has(key: str) -> bool:
        mine = owner.get(key, ())
        return "*" in mine or all(value in mine for value in piece.get(key, ()))

    words = owner.get("resources", ())
    by_subresource = all("/" in word and "*/" + word.split("/", 1)[1] in words for word in piece.get("resources", ()))
    urls = owner.get("nonResourceURLs", ())
    return (
        has("verbs")
        and has("apiGroups")
        and (has("resources") or by_subresource)
        and (not owner.get("resourceNames") or ("resourceNames" in piece and has("resourceNames")))
        and all(
            any(u == url or (u[-1] == "*" and url.startswith(u[:-1])) for u in urls)
            for url in piece.get("nonResourceURLs", ())
        )
    )


@settings(max_examples=200)
@given(rules, rules)
def test_what_is_missing_for_a_grant(owned: list[Rule], wanted: list[Rule]) -> None:
    expected = [piece for rule in wanted for piece in pieces(rule) if not any(covers(own, piece) for own in owned)]
    assert rules_cover(owned, wanted) == expected


def test_a_huge_role_is_refused_at_once() -> None:
    many = [str(i) for i in range(1000)]
    wanted = [{"verbs": many, "apiGroups": many, "resources": many, "resourceNames": many}]
    assert len(rules_cover([], wanted)) == 20_000
