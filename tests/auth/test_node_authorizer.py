"""The mode Node: a kubelet reads what its own pods need."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from fakeapiserver.apimachinery.object_reader import ObjectChange
from fakeapiserver.auth.authorizers.node import ATTACHMENTS, PODS, SLICES, VOLUMES, Node
from fakeapiserver.auth.interfaces import Attributes, Decision, UserInfo
from fakeapiserver.auth.selectors import Selectors

N1 = UserInfo("system:node:n1", groups=("system:nodes",))
RULES = [{"verbs": ["create"], "apiGroups": [""], "resources": ["events"]}]
RELATED = "no relationship found between node 'n1' and this object"

WEB: dict[str, Any] = {
    "metadata": {"namespace": "shop", "name": "web"},
    "spec": {
        "nodeName": "n1",
        "serviceAccountName": "robot",
        "imagePullSecrets": [{"name": "pull"}],
        "initContainers": [{"env": [{"valueFrom": {"secretKeyRef": {"name": "init"}}}]}],
        "containers": [{"envFrom": [{"configMapRef": {"name": "env"}}, {"secretRef": {"name": "env"}}]}],
        "ephemeralContainers": [{"env": [{"valueFrom": {"configMapKeyRef": {"name": "debug"}}}]}],
        "volumes": [
            {"name": "a", "secret": {"secretName": "files"}},
            {"name": "b", "projected": {"sources": [{"configMap": {"name": "projected"}}]}},
            {"name": "c", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "scratch", "ephemeral": {}},
            {"name": "d", "csi": {"nodePublishSecretRef": {"name": "mount"}}},
        ],
        "resourceClaims": [
            {"name": "gpu", "resourceClaimName": "gpu-1"},
            {"name": "made", "resourceClaimTemplateName": "t"},
        ],
    },
    "status": {"resourceClaimStatuses": [{"name": "made", "resourceClaimName": "made-x"}]},
}
DISK = {
    "metadata": {"name": "disk"},
    "spec": {
        "claimRef": {"namespace": "shop", "name": "data"},
        "csi": {
            "nodeStageSecretRef": {"namespace": "csi", "name": "stage"},
            "controllerExpandSecretRef": {"namespace": "csi", "name": "expand"},
        },
    },
}


class Stored:
    def __init__(self, **objects: dict[str, Any]) -> None:
        self.log: list[ObjectChange] = []
        self.forgotten = 0

    def write(self, resource: str, old: dict[str, Any] | None, new: dict[str, Any] | None) -> None:
        self.log.append((resource, old, new))

    def list(self, resource: str, namespace: str = "") -> Sequence[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = []
        for of, old, new in self.log:
            if of == resource:
                found = [obj for obj in found if old is None or obj != old] + ([new] if new is not None else [])
        return found

    def generation(self, resources: tuple[str, ...]) -> int:
        return self.revision

    @property
    def revision(self) -> int:
        return len(self.log)

    def changes(self, resources: tuple[str, ...], revision: int) -> Sequence[ObjectChange]:
        if revision < self.forgotten:
            raise LookupError(revision)
        return self.log[revision:]


def decide(node: Node, what: str, user: UserInfo = N1, **more: Any) -> tuple[bool, str]:
    """`what` is `verb group/resource/subresource namespace/name`, the last parts as far as they go."""
    verb, resource, *place = what.split()
    group, _, rest = resource.rpartition(".k8s.io/")
    plural, _, subresource = rest.partition("/")
    namespace, _, name = place[0].partition("/") if place else ("", "", "")
    group = f"{group}.k8s.io" if group else ""
    attributes = Attributes(user, verb, "", True, group, "v1", plural, subresource, namespace, name, **more)
    decision, reason = asyncio.run(node.authorize(attributes))
    return decision is Decision.ALLOW, reason


def shop() -> tuple[Stored, Node]:
    stored = Stored()
    stored.write(PODS, None, WEB)
    stored.write(VOLUMES, None, DISK)
    stored.write(ATTACHMENTS, None, {"metadata": {"name": "att"}, "spec": {"nodeName": "n1"}})
    stored.write(SLICES, None, {"metadata": {"name": "slice"}, "spec": {"nodeName": "n1"}})
    return stored, Node(stored, lambda: RULES)


@pytest.mark.parametrize(
    "what",
    [
        *(f"get secrets shop/{name}" for name in ("pull", "init", "env", "files", "mount")),
        *(f"watch configmaps shop/{name}" for name in ("env", "debug", "projected")),
        "get persistentvolumeclaims shop/data",
        "patch persistentvolumeclaims/status shop/data",
        "get persistentvolumeclaims shop/web-scratch",
        "get persistentvolumes /disk",
        "get secrets csi/stage",
        "get resource.k8s.io/resourceclaims shop/gpu-1",
        "get resource.k8s.io/resourceclaims shop/made-x",
        "get storage.k8s.io/volumeattachments /att",
        "delete resource.k8s.io/resourceslices /slice",
        "create serviceaccounts/token shop/robot",
        "get pods shop/web",
        "get nodes /n1",
        "update coordination.k8s.io/leases kube-node-lease/n1",
        "create coordination.k8s.io/leases kube-node-lease/",
        "patch storage.k8s.io/csinodes /n1",
        "create events shop/",
    ],
)
def test_what_a_kubelet_needs(what: str) -> None:
    assert decide(shop()[1], what) == (True, "")


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("get secrets shop/other", RELATED),
        ("get secrets other/pull", RELATED),
        ("get secrets csi/expand", RELATED),
        ("list secrets shop/", "No Object name found"),
        ("update secrets shop/pull", "can only read resources of this type"),
        ("get secrets /pull", "can only read namespaced object of this type"),
        ("list persistentvolumes /", "can only get individual resources of this type"),
        ("create serviceaccounts/token shop/admin", RELATED),
        ("list serviceaccounts shop/", "can only create tokens for individual service accounts"),
        ("list nodes /", "node 'n1' cannot read all nodes, only its own Node object"),
        ("get nodes /n2", "node 'n1' cannot read 'n2', only its own Node object"),
        ("list pods /", "can only list/watch pods with spec.nodeName field selector"),
        ("get coordination.k8s.io/leases shop/n1", 'can only access leases in the "kube-node-lease" system namespace'),
        (
            "get coordination.k8s.io/leases kube-node-lease/n2",
            "can only access node lease with the same name as the requesting node",
        ),
        ("list events shop/", ""),
    ],
)
def test_what_it_does_not(what: str, reason: str) -> None:
    assert decide(shop()[1], what) == (False, reason)


def test_lists_of_its_own_pods() -> None:
    for selector, allowed in (("spec.nodeName=n1", True), ("spec.nodeName=n2", False), ("spec.nodeName!=n1", False)):
        assert decide(shop()[1], "list pods", selectors=Selectors(selector))[0] is allowed


@pytest.mark.parametrize(
    ("user", "reason"),
    [
        (UserInfo("system:node:n1"), ""),
        (UserInfo("n1", groups=("system:nodes",)), ""),
        (UserInfo("system:node:", groups=("system:nodes",)), 'unknown node for user "system:node:"'),
        (UserInfo("system:node:n2", groups=("system:nodes",)), RELATED.replace("n1", "n2")),
    ],
)
def test_who_is_no_such_node(user: UserInfo, reason: str) -> None:
    assert decide(shop()[1], "get secrets shop/pull", user) == (False, reason)


@pytest.mark.parametrize("forgotten", [False, True], ids=["followed", "too late to follow"])
def test_rights_come_and_go_with_pods_and_volumes(forgotten: bool) -> None:
    stored, node = shop()

    def allowed(what: str) -> bool:
        stored.forgotten = stored.revision if forgotten else 0
        return decide(node, what)[0]

    assert allowed("get secrets shop/pull")
    assert allowed("get secrets csi/stage")
    second = {**WEB, "metadata": {"namespace": "shop", "name": "web2"}}
    stored.write(PODS, None, second)
    stored.write(PODS, WEB, None)
    assert allowed("get secrets shop/pull")
    assert allowed("get persistentvolumes /disk")
    stored.write(VOLUMES, DISK, {**DISK, "spec": {}})
    assert not allowed("get persistentvolumes /disk")
    assert not allowed("get secrets csi/stage")
    stored.write(PODS, second, {**second, "spec": {**second["spec"], "nodeName": "n2"}})
    assert not allowed("get secrets shop/pull")


def test_mirror_pods_give_nothing() -> None:
    stored = Stored()
    mirror = {**WEB, "metadata": {**WEB["metadata"], "annotations": {"kubernetes.io/config.mirror": "x"}}}
    stored.write(PODS, None, mirror)
    node = Node(stored, lambda: RULES)
    assert decide(node, "get pods shop/web")[0]
    assert not decide(node, "get secrets shop/pull")[0]


def test_rules_are_not_to_be_listed() -> None:
    told = (True, "node authorizer does not support user rule resolution")
    assert asyncio.run(shop()[1].rules_for(N1, "shop"))[2:] == told
    assert asyncio.run(shop()[1].rules_for(UserInfo("jane"), "shop"))[2:] == (False, "")
