"""fakeapiserver.testing.assertions: what they accept, and what they say when they fail."""

import asyncio
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from fakeapiserver import AsyncCluster, Cluster
from fakeapiserver.testing.assertions import (
    assert_condition,
    assert_event,
    assert_finalizers,
    assert_no_event,
    assert_nothing_left,
    assert_owned_by,
    assert_unchanged,
)

WIDGETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wi"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            }
        ],
    },
}


def widget(name: str, **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, **fields.pop("metadata", {})}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, **fields}


def config_map(name: str, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}


def event(about: dict[str, Any], reason: str, type_: str, message: str) -> dict[str, Any]:
    named = {key: about["metadata"][key] for key in ("name", "namespace", "uid")}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{named['name']}.{reason.lower()}"},
        "involvedObject": {"kind": about["kind"], **named},
        "type": type_,
        "reason": reason,
        "message": message,
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }


@pytest.fixture(scope="module")
def shared() -> Iterator[Cluster]:
    with Cluster(controllers=(), crds=WIDGETS) as found:
        yield found


@pytest.fixture
def cluster(shared: Cluster) -> Iterator[Cluster]:
    before = shared.snapshot()
    yield shared
    shared.restore(before)


def failure(assertion: Any, *args: Any, **options: Any) -> str:
    with pytest.raises(AssertionError) as failed:
        assertion(*args, **options)
    return str(failed.value)


class TestConditions:
    def status(self, generation: int = 1, **fields: str) -> dict[str, Any]:
        return {"conditions": [{"type": "Ready", "status": "False", "observedGeneration": generation, **fields}]}

    def test_holds(self, cluster: Cluster) -> None:
        [made] = cluster.apply(widget("a", status=self.status(reason="Waits", message="no disk")))
        assert assert_condition(cluster, made, "Ready", "False")["message"] == "no disk"
        assert_condition(cluster, "widget/a", "Ready", "False", reason="Waits")
        assert_condition(cluster, "wi/a", "Ready", "False", namespace="default")

    def test_messages(self, cluster: Cluster) -> None:
        [made] = cluster.apply(
            widget("a", status=self.status(reason="Waits", message="no disk")), field_manager="writer"
        )
        cluster.apply(event(made, "NoDisk", "Warning", "there is no disk"))
        text = failure(assert_condition, cluster, made, "Ready")
        first, *rest = text.splitlines()
        assert first == (
            "widgets.example.com default/a doesn't have the condition Ready=True, but Ready=False (Waits: no disk)."
        )
        assert rest[0] == "The object:"
        assert any(line.startswith("It was last written by writer (Apply)") for line in rest)
        assert rest[-2:] == ["Its last events:", "  2026-01-01T00:00:00Z Warning NoDisk: there is no disk"]
        assert "for the reason Late" in failure(assert_condition, cluster, made, "Ready", "False", reason="Late")
        assert ": its conditions are Ready." in failure(assert_condition, cluster, made, "Done")
        cluster.apply(widget("b"))
        assert ": it has none at all." in failure(assert_condition, cluster, "widget/b", "Done")

    def test_a_condition_of_an_older_generation_does_not_count(self, cluster: Cluster) -> None:
        cluster.apply(widget("a", spec={"size": 1}, status=self.status()))
        [made] = cluster.apply(widget("a", spec={"size": 2}, status=self.status()))
        text = failure(assert_condition, cluster, made, "Ready", "False")
        assert "but Ready=False, observed at generation 1 of 2." in text

    def test_the_stored_object_counts(self, cluster: Cluster) -> None:
        [old] = cluster.apply(widget("a"))
        cluster.apply(widget("a", status=self.status(2, status="True")))
        assert_condition(cluster, old, "Ready")
        cluster.delete("widgets/a")
        assert failure(assert_condition, cluster, old, "Ready") == (
            "widgets.example.com default/a doesn't exist. There are no others."
        )
        cluster.apply(widget("a"))
        assert "was deleted and created again: its uid is" in failure(assert_condition, cluster, old, "Ready")


class TestNames:
    @pytest.mark.parametrize("named", ["web", "deploy/", 3, {}, config_map("")])
    def test_something_that_names_no_object(self, cluster: Cluster, named: object) -> None:
        with pytest.raises(ValueError, match=r"an object is named|this is no object with a name"):
            assert_condition(cluster, named, "Ready")

    def test_an_unknown_resource(self, cluster: Cluster) -> None:
        with pytest.raises(LookupError, match='serves no resource "gadgets"'):
            assert_condition(cluster, "gadgets/a", "Ready")
        with pytest.raises(LookupError, match="this cluster serves no Gadget of v1"):
            assert_condition(cluster, {**config_map("a"), "kind": "Gadget"}, "Ready")

    def test_something_else_than_a_cluster(self) -> None:
        with pytest.raises(ValueError, match="the first argument must be a Cluster or an AsyncCluster, not 3"):
            assert_condition(3, "deploy/web", "Ready")  # type: ignore[arg-type]

    def test_objects_of_clients(self, cluster: Cluster) -> None:
        [made] = cluster.apply(config_map("a", finalizers=["example.com/keep"]))
        metadata = SimpleNamespace()
        forms: list[object] = [
            made,
            SimpleNamespace(raw=made),  # kr8s
            SimpleNamespace(obj=made),  # pykube
            SimpleNamespace(to_dict=lambda: made),  # lightkube
            SimpleNamespace(to_dict=lambda: {"api_version": None, "kind": None, "metadata": made["metadata"]}),
            SimpleNamespace(model_dump=lambda: made, metadata=metadata),
        ]
        for form in forms:
            assert_finalizers(cluster, form, "example.com/keep")

    @pytest.mark.parametrize("package", ["kubernetes", "lightkube", "kr8s"])
    def test_real_clients(self, cluster: Cluster, package: str) -> None:
        pytest.importorskip(package)
        cluster.apply(config_map("a", finalizers=["example.com/keep"]))
        client = cluster.client(package)
        found: object
        if package == "kubernetes":
            core = sys.modules["kubernetes"].client.CoreV1Api(client)
            found = next(item for item in core.list_namespaced_config_map("default").items if item.metadata.name == "a")
        elif package == "lightkube":
            from lightkube.resources.core_v1 import ConfigMap

            found = client.get(ConfigMap, "a", namespace="default")
        else:
            found = next(item for item in client.get("configmaps", namespace="default") if item.name == "a")
        assert_finalizers(cluster, found, "example.com/keep")

    def test_secrets_are_not_shown(self, cluster: Cluster) -> None:
        cluster.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "stringData": {"key": "abc"}})
        text = failure(assert_finalizers, cluster, "secret/a", "x")
        assert "key: (secret)" in text
        assert "YWJj" not in text


class TestOwners:
    def owner(self, cluster: Cluster) -> dict[str, Any]:
        [made] = cluster.apply(widget("owner"))
        return made

    def reference(self, owner: dict[str, Any], **changes: Any) -> dict[str, Any]:
        reference = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "owner", "uid": owner["metadata"]["uid"]}
        return {**reference, "controller": True, **changes}

    def test_holds(self, cluster: Cluster) -> None:
        owner = self.owner(cluster)
        cluster.apply(config_map("a", ownerReferences=[self.reference(owner)]))
        assert_owned_by(cluster, "cm/a", owner)
        assert_owned_by(cluster, "cm/a", "widget/owner")

    @pytest.mark.parametrize(
        ("changes", "problem"),
        [
            (None, "it has no owner references"),
            ({"uid": "0"}, "the reference to owner has the uid 0, but the owner's is "),
            ({"name": "other", "uid": "0"}, "its owners are Widget other"),
            ({"controller": False}, "the reference doesn't have controller: true"),
            ({"kind": "Gadget"}, "the reference names Gadget owner"),
            ({"apiVersion": "v1"}, "the reference has the apiVersion v1, but the owner is of the group example.com"),
        ],
    )
    def test_messages(self, cluster: Cluster, changes: dict[str, Any] | None, problem: str) -> None:
        owner = self.owner(cluster)
        references = [] if changes is None else [self.reference(owner, **changes)]
        cluster.apply(config_map("a", ownerReferences=references))
        text = failure(assert_owned_by, cluster, "cm/a", owner)
        assert text.startswith(f"configmaps default/a isn't owned by widgets.example.com default/owner: {problem}")

    def test_an_owner_in_another_namespace(self, cluster: Cluster) -> None:
        owner = self.owner(cluster)
        cluster.apply(config_map("a", namespace="kube-public", ownerReferences=[self.reference(owner)]))
        text = failure(assert_owned_by, cluster, config_map("a", namespace="kube-public"), owner)
        assert "an owner in the namespace default can't own objects elsewhere" in text


class TestFinalizersAndEvents:
    def test_finalizers(self, cluster: Cluster) -> None:
        cluster.apply(config_map("a", finalizers=["example.com/b", "example.com/a"]))
        cluster.apply(config_map("b"))
        assert_finalizers(cluster, "cm/a", "example.com/a", "example.com/b")
        assert_finalizers(cluster, "cm/b")
        assert_finalizers(cluster, "ns/default", "kubernetes")
        assert failure(assert_finalizers, cluster, "cm/a").startswith(
            "configmaps default/a has the finalizers example.com/a, example.com/b, not no finalizers."
        )

    def test_events(self, cluster: Cluster) -> None:
        [made] = cluster.apply(config_map("a"))
        assert_no_event(cluster, made, "*", type="*")
        cluster.apply(event(made, "Created", "Normal", "made 3 of 5"))
        assert assert_event(cluster, made, "Cre*", message="* of 5")["reason"] == "Created"
        assert_no_event(cluster, made)
        assert failure(assert_event, cluster, made, "Created", type="Warning").startswith(
            "no event about configmaps default/a matches reason 'Created', type 'Warning'\n"
        )
        cluster.apply(event(made, "Failed", "Warning", "no"))
        assert failure(assert_no_event, cluster, made).startswith("events about configmaps default/a match type 'Warn")


class TestChanges:
    def test_nothing_is_written(self, cluster: Cluster) -> None:
        cluster.apply(config_map("a"))
        with assert_unchanged(cluster):
            cluster.apply(config_map("a"))
            cluster.apply(event(cluster.get("cm/a"), "Again", "Normal", "ignored"))

    def test_a_change_is_shown_with_its_fields(self, cluster: Cluster) -> None:
        cluster.apply(config_map("a"))

        def change() -> None:
            with assert_unchanged(cluster):
                cluster.apply({**config_map("a"), "data": {"size": "1"}})
                cluster.apply(config_map("b"))

        lines = failure(change).splitlines()
        assert lines[:3] == [
            "2 objects were written, where nothing should change:",
            "  configmaps default/a: 1 times",
            "  configmaps default/b: 1 times",
        ]
        assert "- configmaps default/b" in lines
        assert any("data" in line and "size" in line for line in lines)

    def test_a_change_that_is_taken_back_counts(self, cluster: Cluster) -> None:
        cluster.apply(config_map("a"))

        def change() -> None:
            with assert_unchanged(cluster):
                cluster.apply({**config_map("a"), "data": {"size": "1"}})
                cluster.apply(config_map("a"))

        text = failure(change)
        assert "configmaps default/a: 2 times" in text
        assert "only in fields that the server keeps, or times:" in text
        with assert_unchanged(cluster, ignore=["configmaps"]):
            cluster.apply(config_map("c"))

    def test_an_error_in_the_block_is_not_replaced(self, cluster: Cluster) -> None:
        def fail() -> None:
            with assert_unchanged(cluster):
                cluster.apply(config_map("a"))
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()

    def test_nothing_is_left(self, cluster: Cluster) -> None:
        before = cluster.snapshot()
        [owner] = cluster.apply(widget("owner"))
        reference = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "owner", "uid": owner["metadata"]["uid"]}
        cluster.apply(
            [config_map("owned", ownerReferences=[reference]), config_map("loose"), event(owner, "A", "Normal", "")]
        )
        cluster.apply(config_map("kept", finalizers=["example.com/keep"]), field_manager="keeper")
        cluster.delete("cm/kept")
        cluster.apply(widget("other"))
        text = failure(assert_nothing_left, cluster, before)
        assert "5 objects are left:" in text
        assert "- configmaps default/owned: its owner Widget owner still exists" in text
        assert "- configmaps default/loose: it has no owner, so deleting others doesn't delete it" in text
        assert "- configmaps default/kept: it is being deleted and waits for the finalizers example.com/keep" in text
        assert "It was last written by keeper" in text
        cluster.delete("widgets/owner")
        assert "its owner Widget owner doesn't exist any more" in failure(assert_nothing_left, cluster, before)
        cluster.apply(config_map("kept"), field_manager="keeper")
        for name in ("cm/owned", "cm/loose", "widgets/other"):
            cluster.delete(name)
        assert_nothing_left(cluster, before)

    def test_both_faces(self) -> None:
        async def scenario() -> None:
            async with AsyncCluster(controllers=()) as cluster:
                before = await cluster.snapshot()
                with pytest.raises(AssertionError), assert_unchanged(cluster):
                    await cluster.apply(config_map("a", finalizers=["example.com/a"]))
                assert_finalizers(cluster, "cm/a", "example.com/a")
                with pytest.raises(AssertionError, match="1 objects are left"):
                    assert_nothing_left(cluster, before)

        asyncio.run(scenario())
