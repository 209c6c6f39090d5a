"""The garbage collector: what has lost its owners goes, as the owners' deletion asked for."""

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from fakeapiserver.apimachinery.gvk import GroupVersionResource
from fakeapiserver.component_helpers.objects import (
    CLUSTER_ROLES,
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    DAEMON_SETS,
    NAMESPACES,
    SECRETS,
    STATEFUL_SETS,
)
from fakeapiserver.controllers.garbage_collector.graph import (
    AbsentOwners,
    DependencyGraph,
    Node,
    ObjectReference,
    owner_identity,
)
from tests.controllers.harness import Harness, Object, run

GARBAGE_COLLECTOR = "garbage-collector-controller"
CRDS = GroupVersionResource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
SHIRTS = GroupVersionResource("example.com", "v1", "shirts")
KINDS = {CONFIG_MAPS: "ConfigMap", SECRETS: "Secret", CLUSTER_ROLES: "ClusterRole"}


def reference(owner: Object, *, blocks: bool = False, **other: str) -> Object:
    """Returns a reference to an object that was created; `other` contains wrong fields."""
    metadata = owner["metadata"]
    found = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": metadata["name"], "uid": metadata["uid"]}
    return {**found, **({"blockOwnerDeletion": True} if blocks else {}), **other}


def config_map(name: str, *owners: Object, finalizers: Sequence[str] = ()) -> Object:
    return {"metadata": {"name": name, "ownerReferences": [*owners], "finalizers": [*finalizers]}}


async def names(cluster: Harness, namespace: str = "default") -> list[str]:
    """Returns the names of the config maps."""
    return [name for name in await cluster.names(CONFIG_MAPS, namespace) if name != "kube-root-ca.crt"]


async def delete(cluster: Harness, name: str, policy: str = "Background") -> None:
    await cluster.of(CONFIG_MAPS).delete(name, propagation_policy=policy)
    await cluster.settle()


@pytest.mark.parametrize(
    ("policy", "blocks", "left"),
    [
        ("Background", False, []),
        ("Background", True, []),
        ("Foreground", False, []),
        ("Foreground", True, []),
        ("Orphan", True, ["child", "grandchild"]),
    ],
)
def test_dependents_follow_their_owner_unless_they_are_orphaned(policy: str, blocks: bool, left: list[str]) -> None:
    async def scenario(cluster: Harness) -> None:
        owner = await cluster.create(CONFIG_MAPS, config_map("owner"))
        child = await cluster.create(CONFIG_MAPS, config_map("child", reference(owner, blocks=blocks)))
        await cluster.create(CONFIG_MAPS, config_map("grandchild", reference(child, blocks=blocks)))
        await delete(cluster, "owner", policy)
        assert await names(cluster) == left
        if left:
            assert "ownerReferences" not in (await cluster.get(CONFIG_MAPS, "child"))["metadata"]

    run(scenario, GARBAGE_COLLECTOR)


def test_who_has_another_owner_stays_and_forgets_the_one_that_went() -> None:
    async def scenario(cluster: Harness) -> None:
        one = await cluster.create(CONFIG_MAPS, config_map("one"))
        other = await cluster.create(CONFIG_MAPS, config_map("other"))
        await cluster.create(CONFIG_MAPS, config_map("child", reference(one, blocks=True), reference(other)))
        await delete(cluster, "one", "Foreground")
        assert await names(cluster) == ["child", "other"]
        assert (await cluster.get(CONFIG_MAPS, "child"))["metadata"]["ownerReferences"] == [reference(other)]

    run(scenario, GARBAGE_COLLECTOR)


def test_an_owner_deleted_in_the_foreground_waits_for_blocking_dependents() -> None:
    async def scenario(cluster: Harness) -> None:
        owner = await cluster.create(CONFIG_MAPS, config_map("owner"))
        slow = ["example.com/slow"]
        await cluster.create(CONFIG_MAPS, config_map("blocks", reference(owner, blocks=True), finalizers=slow))
        await cluster.create(CONFIG_MAPS, config_map("follows", reference(owner), finalizers=slow))
        await delete(cluster, "owner", "Foreground")
        waiting = (await cluster.get(CONFIG_MAPS, "owner"))["metadata"]
        assert waiting["finalizers"] == ["foregroundDeletion"]
        await cluster.of(CONFIG_MAPS).patch("blocks", {"metadata": {"finalizers": None}})
        await cluster.settle()
        assert await names(cluster) == ["follows"]

    run(scenario, GARBAGE_COLLECTOR)


def test_an_owner_is_free_when_its_dependent_blocks_it_no_longer() -> None:
    async def scenario(cluster: Harness) -> None:
        owner = await cluster.create(CONFIG_MAPS, config_map("owner"))
        blocking = config_map("child", reference(owner, blocks=True), finalizers=["example.com/slow"])
        await cluster.create(CONFIG_MAPS, blocking)
        await delete(cluster, "owner", "Foreground")
        free = {"metadata": {"ownerReferences": [reference(owner)]}}
        await cluster.of(CONFIG_MAPS).patch("child", free)
        await cluster.settle()
        assert await names(cluster) == ["child"]

    run(scenario, GARBAGE_COLLECTOR)


def test_a_circle_that_is_deleted_in_the_foreground_goes() -> None:
    async def scenario(cluster: Harness) -> None:
        one = await cluster.create(CONFIG_MAPS, config_map("one"))
        other = await cluster.create(CONFIG_MAPS, config_map("other", reference(one, blocks=True)))
        circle = {"metadata": {"ownerReferences": [reference(other, blocks=True)]}}
        await cluster.of(CONFIG_MAPS).patch("one", circle)
        await cluster.settle()
        assert await names(cluster) == ["one", "other"]
        await delete(cluster, "one", "Foreground")
        assert await names(cluster) == []

    run(scenario, GARBAGE_COLLECTOR)


def gone(**other: str) -> Object:
    """A reference to what never was."""
    found = {"apiVersion": "v1", "kind": "Secret", "name": "gone", "uid": "00000000-0000-0000-0000-000000000001"}
    return {**found, **other}


@pytest.mark.parametrize(
    ("owners", "left"),
    [
        ([gone()], []),
        ([gone(kind="Nonsense", apiVersion="example.com/v1")], ["child"]),  # which may become known
        ([gone(kind="ClusterRole", apiVersion="rbac.authorization.k8s.io/v1")], []),
        ([gone(), gone(kind="ConfigMap", uid="00000000-0000-0000-0000-000000000002")], []),
    ],
)
def test_an_owner_that_was_never_there_is_absent(owners: list[Object], left: list[str]) -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(CONFIG_MAPS, config_map("child", *owners))
        assert await names(cluster) == left

    run(scenario, GARBAGE_COLLECTOR)


@pytest.mark.parametrize("lie", [{"name": "another"}, {"kind": "Secret"}])
def test_an_owner_of_that_uid_but_by_another_name_is_absent(lie: dict[str, str]) -> None:
    async def scenario(cluster: Harness) -> None:
        owner = await cluster.create(CONFIG_MAPS, config_map("owner"))
        await cluster.create(CONFIG_MAPS, config_map("liar", reference(owner, **lie)))
        await cluster.create(CONFIG_MAPS, config_map("child", reference(owner)))
        assert await names(cluster) == ["child", "owner"]

    run(scenario, GARBAGE_COLLECTOR)


def test_an_owner_in_another_namespace_is_absent_and_an_event_says_so() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.client.resource(NAMESPACES).create({"metadata": {"name": "shop"}})
        owner = await cluster.create(CONFIG_MAPS, config_map("owner"))
        await cluster.create(CONFIG_MAPS, config_map("child", reference(owner)), "shop")
        assert await names(cluster, "shop") == []
        uid = owner["metadata"]["uid"]
        assert await cluster.events("shop") == [
            (
                "OwnerRefInvalidNamespace",
                f'ownerRef [v1/ConfigMap, namespace: shop, name: owner, uid: {uid}] does not exist in namespace "shop"',
            )
        ]

    run(scenario, GARBAGE_COLLECTOR)


def test_what_is_cluster_scoped_owns_in_every_namespace_and_is_owned_by_none() -> None:
    async def scenario(cluster: Harness) -> None:
        roles = cluster.client.resource(CLUSTER_ROLES)
        role = await roles.create({"metadata": {"name": "owner"}})
        inside = await cluster.create(CONFIG_MAPS, config_map("child", reference(role)))
        await roles.create({"metadata": {"name": "odd", "ownerReferences": [reference(inside)]}})
        await cluster.settle()
        await roles.delete("owner", propagation_policy="Background")
        await cluster.settle()
        assert await names(cluster) == []
        assert (await roles.get("odd"))["metadata"]["name"] == "odd"

    run(scenario, GARBAGE_COLLECTOR)


def definition() -> Object:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "shirts", "singular": "shirt", "kind": "Shirt", "listKind": "ShirtList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "shirts.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }


def shirt(name: str, *owners: Object) -> Object:
    metadata = {"name": name, "ownerReferences": [*owners]}
    return {"apiVersion": "example.com/v1", "kind": "Shirt", "metadata": metadata}


@pytest.mark.parametrize(("policy", "left"), [("Background", []), ("Foreground", []), ("Orphan", ["pocket"])])
def test_custom_resources_are_collected_as_soon_as_their_kind_is_known(policy: str, left: list[str]) -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.client.resource(CRDS).create(definition())
        await cluster.settle()
        blue = await cluster.create(SHIRTS, shirt("blue"))
        await cluster.create(SHIRTS, shirt("pocket", reference(blue, blocks=True)))
        await cluster.create(CONFIG_MAPS, config_map("label", reference(blue)))
        await cluster.of(SHIRTS).delete("blue", propagation_policy=policy)
        await cluster.settle()
        assert await cluster.names(SHIRTS) == left
        assert await names(cluster) == (["label"] if left else [])

    run(scenario, GARBAGE_COLLECTOR)


def test_a_kind_that_is_gone_is_watched_no_more_and_may_come_back() -> None:
    async def scenario(cluster: Harness) -> None:
        for _ in range(2):
            await cluster.client.resource(CRDS).create(definition())
            await cluster.settle()
            blue = await cluster.create(SHIRTS, shirt("blue"))
            await cluster.create(CONFIG_MAPS, config_map("label", reference(blue)))
            await cluster.client.resource(CRDS).delete("shirts.example.com")
            await cluster.settle()
            assert not [each for each in cluster.manager.informers if each.name == str(SHIRTS.group_resource)]
            assert await names(cluster) == []

    run(scenario, GARBAGE_COLLECTOR)


def test_what_is_restored_with_its_owner_stays() -> None:
    async def scenario(cluster: Harness) -> None:
        owner = await cluster.create(CONFIG_MAPS, config_map("owner"))
        await cluster.create(CONFIG_MAPS, config_map("child", reference(owner)))
        snapshot = cluster.api.snapshot()
        await delete(cluster, "owner")
        assert await names(cluster) == []
        await cluster.api.restore(snapshot)
        await cluster.settle()
        assert await names(cluster) == ["child", "owner"]

    run(scenario, GARBAGE_COLLECTOR)


def test_nothing_is_collected_in_mode_step_until_it_is_stepped() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.manager.set_mode(GARBAGE_COLLECTOR, "step")
        owner = await cluster.create(CONFIG_MAPS, config_map("owner"))
        await cluster.create(CONFIG_MAPS, config_map("child", reference(owner)))
        await delete(cluster, "owner")
        assert await names(cluster) == ["child"]
        await cluster.manager.step(GARBAGE_COLLECTOR)
        assert await names(cluster) == []

    run(scenario, GARBAGE_COLLECTOR)


def test_it_collects_what_lost_its_owner_while_it_was_off() -> None:
    async def scenario(cluster: Harness) -> None:
        owner = await cluster.create(CONFIG_MAPS, config_map("owner"))
        await cluster.create(CONFIG_MAPS, config_map("child", reference(owner)))
        await cluster.manager.set_mode(GARBAGE_COLLECTOR, "off")
        await delete(cluster, "owner")
        assert await names(cluster) == ["child"]
        await cluster.manager.set_mode(GARBAGE_COLLECTOR, "run")
        await cluster.settle()
        assert await names(cluster) == []

    run(scenario, GARBAGE_COLLECTOR)


# ------------------------------------------------------------------------- a model


class Model:
    """Objects and the names of their owners, when everything has settled after each deletion."""

    def __init__(self, random: Random, size: int) -> None:
        self.objects: dict[str, list[str]] = {}
        for number in range(size):
            owners = random.sample(sorted(self.objects), min(len(self.objects), random.choice((0, 1, 1, 2, 3))))
            self.objects[f"o{number}"] = owners

    def delete(self, name: str, policy: str) -> None:
        """Deletes an object. With Orphan its dependents only lose the reference; otherwise dependents without another owner are deleted,
        and the others lose the reference.
        """
        gone = {name}
        if policy == "Orphan":
            for owners in self.objects.values():
                if name in owners:
                    owners.remove(name)
        while more := {each for each, owners in self.objects.items() if owners and gone.issuperset(owners)} - gone:
            gone |= more
        self.objects = {
            each: [owner for owner in owners if owner not in gone]
            for each, owners in self.objects.items()
            if each not in gone
        }


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs_end_as_the_model_says(seed: int) -> None:
    random = Random(seed)
    model = Model(random, 14)
    kinds = {name: random.choice((CONFIG_MAPS, SECRETS)) for name in model.objects}

    async def state(cluster: Harness) -> dict[str, list[str]]:
        found = [obj for kind in (CONFIG_MAPS, SECRETS) for obj in (await cluster.of(kind).list())["items"]]
        return {
            obj["metadata"]["name"]: [owner["name"] for owner in obj["metadata"].get("ownerReferences") or ()]
            for obj in found
        }

    async def scenario(cluster: Harness) -> None:
        created: dict[str, Any] = {}
        for name, owners in model.objects.items():
            references = [reference(created[owner], blocks=random.random() < 0.5) for owner in owners]
            obj = {"metadata": {"name": name, "ownerReferences": references}}
            created[name] = await cluster.of(kinds[name]).create(obj)
        await cluster.settle()
        while model.objects:
            name, policy = random.choice(sorted(model.objects)), random.choice(("Background", "Foreground", "Orphan"))
            model.delete(name, policy)
            await cluster.of(kinds[name]).delete(name, propagation_policy=policy)
            await cluster.settle()
            assert await state(cluster) == model.objects, (name, policy)

    run(scenario, GARBAGE_COLLECTOR)


# ------------------------------------------------------------------------- the graph


class Notes:
    """Attempts, by name."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def attempt_to_delete(self, node: Node) -> None:
        self.told.append(f"delete {node.identity.name}")

    def attempt_to_delete_later(self, node: Node) -> None:
        self.told.append(f"delete later {node.identity.name}")

    def attempt_to_orphan(self, node: Node) -> None:
        self.told.append(f"orphan {node.identity.name}")

    def invalid_owner_namespace(self, dependent: ObjectReference, owner: ObjectReference) -> None:
        self.told.append(f"{dependent.name} names {owner.name} of another namespace")

    def take(self) -> list[str]:
        told, self.told = self.told, []
        return told


def obj(name: str, *owners: Object, namespace: str = "ns", **metadata: object) -> Object:
    found = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "ownerReferences": [*owners], **metadata}
    return {"metadata": found}


def owner(name: str, **other: object) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": f"uid-{name}", **other}


def test_dependents_seen_before_their_owner_have_it_looked_up() -> None:
    notes = Notes()
    graph = DependencyGraph(notes)
    graph.changed("v1", "ConfigMap", None, obj("child", owner("parent")))
    assert notes.take() == ["delete parent"]
    assert graph.nodes["uid-parent"].virtual
    graph.changed("v1", "ConfigMap", None, obj("parent"))
    assert (notes.take(), graph.nodes["uid-parent"].virtual) == ([], False)


def test_dependents_that_disagree_about_an_absent_owner_are_followed_one_after_the_other() -> None:
    notes = Notes()
    graph = DependencyGraph(notes)
    graph.changed("v1", "ConfigMap", None, obj("right", owner("parent")))
    graph.changed("v1", "ConfigMap", None, obj("wrong", owner("parent") | {"name": "other"}))
    assert notes.take() == ["delete parent", "delete wrong"]
    first = owner_identity(owner("parent"), "ns")
    graph.found_absent(first)
    assert notes.take() == ["delete right", "delete later other"]
    assert first in graph.absent_owners
    graph.deleted("v1", "ConfigMap", obj("right", owner("parent")))
    graph.found_absent(graph.nodes["uid-parent"].identity)
    assert notes.take() == ["delete wrong"]
    assert "uid-parent" not in graph.nodes


def test_an_update_that_takes_the_block_away_has_the_owner_looked_at() -> None:
    notes = Notes()
    graph = DependencyGraph(notes)
    before = obj("child", owner("parent", blockOwnerDeletion=True))
    graph.changed("v1", "ConfigMap", None, obj("parent"))
    graph.changed("v1", "ConfigMap", None, before)
    graph.changed("v1", "ConfigMap", before, obj("child", owner("parent")))
    assert notes.take() == ["delete parent"]
    graph.changed("v1", "ConfigMap", before, obj("child"))
    assert graph.nodes["uid-parent"].dependents == {}


def test_absent_owners_are_remembered_up_to_a_number() -> None:
    known = AbsentOwners(2)
    references = [ObjectReference("ConfigMap", "v1", "ns", name, name) for name in "abc"]
    for each in references:
        known.add(each)
    assert [each in known for each in references] == [False, True, True]
    known.discard("b")
    assert references[1] not in known


@pytest.mark.parametrize("command", ["db", "prepare && db <in >out"])
@pytest.mark.parametrize(("resource", "kind"), [(STATEFUL_SETS, "StatefulSet"), (DAEMON_SETS, "DaemonSet")])
def test_former_states_are_orphaned_too(resource: GroupVersionResource, kind: str, command: str) -> None:
    """A strategic merge patch sorts keys and escapes characters, and `data` of a revision must not change by it."""

    async def scenario(cluster: Harness) -> None:
        labels = {"app": "web"}
        template = {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "c", "image": "x", "command": [command]}]},
        }
        spec = {"selector": {"matchLabels": labels}, "template": template}
        await cluster.create(resource, {"metadata": {"name": "web"}, "spec": spec})
        [revision] = await cluster.names(CONTROLLER_REVISIONS)
        await cluster.of(resource).delete("web", propagation_policy="Orphan")
        await cluster.settle()
        assert await cluster.names(resource) == []
        assert "ownerReferences" not in (await cluster.get(CONTROLLER_REVISIONS, revision))["metadata"]

    run(scenario, GARBAGE_COLLECTOR, f"{kind.lower()}-controller")
