"""Tests what a user may do, and the messages of rejections."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from fakeapiserver.apimachinery.object_reader import ObjectChange
from fakeapiserver.auth.attributes import forbidden_error
from fakeapiserver.auth.authorizers import rbac
from fakeapiserver.auth.authorizers.always import AlwaysAllow, AlwaysDeny, PrivilegedGroups
from fakeapiserver.auth.authorizers.rbac import RBAC
from fakeapiserver.auth.authorizers.rbac_escalation import escalation_message, rules_cover
from fakeapiserver.auth.authorizers.union import Union
from fakeapiserver.auth.interfaces import Attributes, Authorizer, Decision, UserInfo

JANE = UserInfo("jane", groups=("dev", "system:authenticated"))
ROBOT = UserInfo("system:serviceaccount:shop:robot")
ROOT = UserInfo("root", groups=("system:masters",))


class Store:
    """Objects in memory; `generation` grows with every change."""

    def __init__(self) -> None:
        self.objects: dict[str, list[dict[str, Any]]] = {}
        self.log: list[ObjectChange] = []
        self.forgotten = 0

    def add(self, resource: str, obj: dict[str, Any]) -> None:
        self.objects.setdefault(resource, []).append(obj)
        self.log.append((resource, None, obj))

    def remove(self, resource: str, name: str) -> None:
        obj = next(obj for obj in self.objects[resource] if obj["metadata"]["name"] == name)
        self.objects[resource].remove(obj)
        self.log.append((resource, obj, None))

    @property
    def revision(self) -> int:
        return len(self.log)

    def changes(self, resources: tuple[str, ...], revision: int) -> Sequence[ObjectChange]:
        if revision < self.forgotten:
            raise LookupError(revision)
        return self.log[revision:]

    def list(self, resource: str, namespace: str = "") -> Sequence[Mapping[str, Any]]:
        return self.objects.get(resource, [])

    def generation(self, resources: tuple[str, ...]) -> int:
        return self.revision


def role(name: str, *rules: dict[str, list[str]], namespace: str = "") -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, "rules": list(rules)}


def binding(name: str, kind: str, to: str, subject: dict[str, str], namespace: str = "") -> dict[str, Any]:
    meta = {"name": name, "namespace": namespace}
    return {"metadata": meta, "roleRef": {"kind": kind, "name": to}, "subjects": [subject]}


def rule(verbs: str, resources: str, groups: str = "", names: str = "") -> dict[str, list[str]]:
    out = {"verbs": verbs.split(), "apiGroups": groups.split() or [""], "resources": resources.split()}
    return out | ({"resourceNames": names.split()} if names else {})


def store() -> Store:
    found = Store()
    urls = {"verbs": ["get"], "nonResourceURLs": ["/metrics", "/logs/*"]}
    found.add(rbac.CLUSTER_ROLES, role("reader", rule("get list", "pods"), urls))
    found.add(rbac.CLUSTER_ROLES, role("scaler", rule("*", "*/scale", "*")))
    found.add(rbac.ROLES, role("one", rule("update", "configmaps pods/log", names="a"), namespace="shop"))
    found.add(rbac.CLUSTER_ROLE_BINDINGS, binding("readers", "ClusterRole", "reader", {"kind": "User", "name": "jane"}))
    found.add(rbac.ROLE_BINDINGS, binding("s", "ClusterRole", "scaler", {"kind": "Group", "name": "dev"}, "shop"))
    robot = {"kind": "ServiceAccount", "name": "robot"}
    found.add(rbac.ROLE_BINDINGS, binding("r", "Role", "one", robot, "shop"))
    found.add(rbac.ROLE_BINDINGS, binding("lost", "ClusterRole", "x", {"kind": "User", "name": "jane"}, "lost"))
    return found


def ask(user: UserInfo, verb: str, what: str, namespace: str = "", name: str = "", *, group: str = "") -> Attributes:
    if what.startswith("/"):
        return Attributes(user, verb, path=what)
    resource, _, subresource = what.partition("/")
    return Attributes(user, verb, "", True, group, "v1", resource, subresource, namespace, name)


def decide(authorizer: Authorizer, attributes: Attributes) -> tuple[Decision, str]:
    return asyncio.run(authorizer.authorize(attributes))


@pytest.mark.parametrize(
    ("attributes", "allowed"),
    [
        (ask(JANE, "get", "pods", "shop"), True),
        (ask(JANE, "list", "pods"), True),
        (ask(JANE, "delete", "pods"), False),
        (ask(JANE, "get", "pods/log", "shop"), False),
        (ask(JANE, "get", "pods", group="apps"), False),
        (ask(JANE, "patch", "deployments/scale", "shop", group="apps"), True),
        (ask(JANE, "patch", "deployments", "shop", group="apps"), False),
        (ask(JANE, "patch", "deployments/scale", "other", group="apps"), False),
        (ask(JANE, "get", "/metrics"), True),
        (ask(JANE, "get", "/logs/a/b"), True),
        (ask(JANE, "get", "/log"), False),
        (ask(ROBOT, "update", "configmaps", "shop", "a"), True),
        (ask(ROBOT, "update", "pods/log", "shop", "a"), True),
        (ask(ROBOT, "update", "configmaps", "shop", "b"), False),
        (ask(ROBOT, "update", "configmaps", "shop"), False),
        (ask(ROBOT, "update", "configmaps", "", "a"), False),
        (ask(ROOT, "delete", "nodes"), True),
    ],
)
def test_rbac(attributes: Attributes, allowed: bool) -> None:
    authorizer = Union([PrivilegedGroups(), RBAC(store())])
    assert (decide(authorizer, attributes)[0] is Decision.ALLOW) is allowed


def test_reasons() -> None:
    authorizer = RBAC(store())
    allowed = 'RBAC: allowed by RoleBinding "r/shop" of Role "one" to ServiceAccount "robot/shop"'
    assert decide(authorizer, ask(ROBOT, "update", "configmaps", "shop", "a"))[1] == allowed
    missing = 'RBAC: clusterrole.rbac.authorization.k8s.io "x" not found'
    assert decide(authorizer, ask(JANE, "delete", "pods", "lost"))[1] == missing


def test_a_change_is_seen_at_once() -> None:
    found = store()
    authorizer = RBAC(found)
    wanted = ask(UserInfo("bob"), "get", "pods")
    assert decide(authorizer, wanted)[0] is Decision.NO_OPINION
    found.add(rbac.CLUSTER_ROLE_BINDINGS, binding("b", "ClusterRole", "reader", {"kind": "User", "name": "bob"}))
    assert decide(authorizer, wanted)[0] is Decision.ALLOW


@pytest.mark.parametrize("forgotten", [False, True], ids=["followed", "too late to follow"])
def test_every_write_counts_at_once(forgotten: bool) -> None:
    found = store()
    authorizer = RBAC(found)
    wanted = ask(ROBOT, "update", "configmaps", "shop", "a")

    def allowed() -> bool:
        found.forgotten = found.revision if forgotten else 0
        return decide(authorizer, wanted)[0] is Decision.ALLOW

    assert allowed()
    found.remove(rbac.ROLES, "one")
    assert not allowed()
    found.add(rbac.ROLES, role("one", rule("*", "*"), namespace="shop"))
    assert allowed()
    found.remove(rbac.ROLE_BINDINGS, "r")
    assert not allowed()
    found.add(rbac.ROLE_BINDINGS, binding("g", "Role", "one", {"kind": "Group", "name": "bots"}, "shop"))
    assert not allowed()
    wanted = replace(wanted, user=replace(ROBOT, groups=("bots",)))
    assert allowed()


def test_rule_listing() -> None:
    resource, other, incomplete, error = asyncio.run(RBAC(store()).rules_for(JANE, "shop"))
    assert [entry["resources"] for entry in resource] == [["pods"], ["*/scale"]]
    assert other == [{"verbs": ["get"], "nonResourceURLs": ["/metrics", "/logs/*"]}]
    assert (incomplete, error) == (False, "")


@pytest.mark.parametrize(
    ("authorizers", "decision"),
    [
        ([AlwaysAllow()], Decision.ALLOW),
        ([AlwaysDeny()], Decision.NO_OPINION),
        ([AlwaysDeny(), AlwaysAllow()], Decision.ALLOW),
    ],
)
def test_modes(authorizers: list[Authorizer], decision: Decision) -> None:
    assert decide(Union(authorizers), ask(JANE, "get", "pods"))[0] is decision


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        ((), "Everything is forbidden.\nEverything is forbidden."),
        (("first", "second"), "first: Everything is forbidden.\nsecond: Everything is forbidden."),
    ],
)
def test_authorizers_with_names_precede_their_reasons_with_them(names: Sequence[str], reason: str) -> None:
    union = Union([AlwaysDeny(), AlwaysDeny()], names=names)
    assert decide(union, ask(JANE, "get", "pods")) == (Decision.NO_OPINION, reason)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        (
            ask(JANE, "list", "pods", "default"),
            'pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "default"',
        ),
        (
            ask(JANE, "get", "pods/log", "default", "a"),
            'pods "a" is forbidden: User "jane" cannot get resource "pods/log" in API group "" in the namespace "default"',
        ),
        (
            ask(JANE, "list", "deployments", group="apps"),
            'deployments.apps is forbidden: User "jane" cannot list resource "deployments" in API group "apps" at the cluster scope',
        ),
        (ask(JANE, "get", "/metrics"), 'forbidden: User "jane" cannot get path "/metrics"'),
        (ask(JANE, "get", "/<a>"), 'forbidden: User "jane" cannot get path "/&lt;a&gt;"'),
    ],
)
def test_forbidden_sentence(attributes: Attributes, message: str) -> None:
    assert forbidden_error(attributes).message == message
    assert forbidden_error(attributes, "why").message == message + ": why"


@pytest.mark.parametrize(
    ("owner", "wanted", "covered"),
    [
        (rule("*", "*", "*"), rule("get", "pods/log"), True),
        (rule("get", "*/scale", "apps"), rule("get", "deployments/scale", "apps"), True),
        (rule("get", "*/scale", "apps"), rule("get", "deployments", "apps"), False),
        (rule("get", "pods", names="a"), rule("get", "pods"), False),
        (rule("get", "pods"), rule("get", "pods", names="a"), True),
        (rule("get", "pods"), {"verbs": ["get"], "nonResourceURLs": ["/a"]}, False),
        ({"verbs": ["*"], "nonResourceURLs": ["/a*"]}, {"verbs": ["get"], "nonResourceURLs": ["/ab"]}, True),
    ],
)
def test_cover(owner: dict[str, Any], wanted: dict[str, Any], covered: bool) -> None:
    assert (not rules_cover([owner], [wanted])) is covered


def test_escalation_message() -> None:
    missing = rules_cover([], [rule("get list", "pods", names="a"), rule("get", "nodes")])
    assert escalation_message(JANE, missing) == (
        'user "jane" (groups=["dev" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n'
        '{APIGroups:[""], Resources:["nodes"], Verbs:["get"]}\n'
        '{APIGroups:[""], Resources:["pods"], ResourceNames:["a"], Verbs:["get" "list"]}'
    )
