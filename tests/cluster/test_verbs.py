"""`cluster.apply`, `get`, `list`, `delete` and `wait`, as kubectl's."""

import asyncio
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fakeapiserver import AsyncCluster, Cluster, StatusError

SHOP = """
apiVersion: shop.example.com/v1
kind: Widget
metadata: {name: first, namespace: shop}
spec: {size: 3}
---
# namespaces and definitions go first, wherever they are
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.shop.example.com}
spec:
  group: shop.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, shortNames: [wi], kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
SHOP_ORDER = ["Namespace", "CustomResourceDefinition", "Widget"]


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(controllers=()) as found:
        yield found


def names(objects: list[dict[str, Any]]) -> list[str]:
    return [obj["metadata"]["name"] for obj in objects]


class TestApply:
    @pytest.mark.parametrize("form", ["text", "file", "path", "folder", "dicts", "a list"])
    def test_takes(self, form: str, tmp_path: Path) -> None:
        import yaml

        file = tmp_path / "shop.yaml"
        file.write_text(SHOP)
        objects = [*yaml.safe_load_all(SHOP)]
        forms: dict[str, Any] = {
            "text": SHOP,
            "file": str(file),
            "path": file,
            "folder": tmp_path,
            "dicts": objects,
            "a list": {"apiVersion": "v1", "kind": "List", "items": objects},
        }
        with Cluster(controllers=()) as cluster:
            applied = cluster.apply(forms[form])
            assert [obj["kind"] for obj in applied] == SHOP_ORDER
            assert cluster.get("widgets.shop.example.com", "first", "shop") == applied[-1]

    def test_is_server_side_apply(self, cluster: Cluster) -> None:
        cluster.apply(config_map("mine", a="1", b="2"))
        cluster.apply(config_map("mine", a="1"))  # what is applied no more goes
        found = cluster.get("cm/mine")
        assert found["data"] == {"a": "1"}
        assert found["metadata"]["managedFields"][0]["manager"] == "fakeapiserver"
        with pytest.raises(StatusError, match="conflict"):
            cluster.apply(config_map("mine", a="3"), field_manager="other")
        assert cluster.apply(config_map("mine", a="3"), field_manager="other", force=True)[0]["data"] == {"a": "3"}

    def test_applies_again_what_was_read(self, cluster: Cluster) -> None:
        cluster.apply(config_map("read", a="1"))
        found = cluster.get("configmap", "read")
        del found["metadata"]["resourceVersion"]
        assert cluster.apply({**found, "data": {"a": "2"}})[0]["data"] == {"a": "2"}

    def test_uses_the_namespace_that_objects_do_not_name(self, cluster: Cluster) -> None:
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"}})
        found = cluster.apply(config_map("there"), namespace="elsewhere")
        assert found[0]["metadata"]["namespace"] == "elsewhere"

    @pytest.mark.parametrize(
        ("objects", "error", "problem"),
        [
            ("nowhere.yaml", OSError, "there is no file or folder nowhere.yaml"),
            ("a: [\n", ValueError, "the text: .*yaml"),
            ({"metadata": {"name": "x"}}, ValueError, "an object must have apiVersion and kind, but None x has None"),
            (
                {"apiVersion": "v1", "kind": "ConfigMap"},
                ValueError,
                "an object must have metadata.name, but this ConfigMap has none",
            ),
            (
                {"apiVersion": "a.b/v1", "kind": "Foo", "metadata": {"name": "x"}},
                LookupError,
                'Foo x: no matches for kind "Foo" in version "a.b/v1"; apply its definition first',
            ),
            ({**config_map("x"), "dta": {}}, StatusError, "dta: field not declared in schema"),
        ],
    )
    def test_says_what_is_wrong(self, cluster: Cluster, objects: Any, error: type[Exception], problem: str) -> None:
        with pytest.raises(error, match=problem) as raised:
            cluster.apply(objects)
        assert "\n" not in str(raised.value)


class TestRead:
    @pytest.mark.parametrize(
        "resource", ["widgets", "widget", "wi", "Widget", "widgets.shop.example.com", "widget.v1.shop.example.com"]
    )
    def test_resources_are_named_as_kubectl_takes_them(self, cluster: Cluster, resource: str) -> None:
        cluster.apply(SHOP)
        assert cluster.get(resource, "first", "shop")["spec"] == {"size": 3}
        assert cluster.get(f"{resource}/first", namespace="shop")["spec"] == {"size": 3}
        assert names(cluster.list(resource, "shop")) == ["first"]

    def test_lists_by_selectors_and_namespaces(self, cluster: Cluster) -> None:
        for name, color in (("one", "red"), ("two", "blue")):
            cluster.apply({**config_map(name), "metadata": {"name": name, "labels": {"color": color}}})
        found = cluster.list("cm", label_selector="color=red")
        assert [(obj["kind"], obj["apiVersion"], obj["metadata"]["name"]) for obj in found] == [
            ("ConfigMap", "v1", "one")
        ]
        assert names(cluster.list("cm", field_selector="metadata.name=two")) == ["two"]
        assert cluster.list("cm", "kube-public") == []
        assert {"one", "two"} <= {*names(cluster.list("cm", all_namespaces=True))}
        assert names(cluster.list("ns", field_selector="metadata.name=default")) == ["default"]

    @pytest.mark.parametrize(
        ("arguments", "error", "problem"),
        [
            (("wdgets", "x"), LookupError, 'the server doesn\'t have a resource type "wdgets"'),
            (("pods", "x"), StatusError, 'pods "x" not found'),
            (("pods",), ValueError, 'name: which object of "pods"'),
            (("pods/x", "y"), ValueError, '"pods/x" names an object already, but the name "y" is given'),
        ],
    )
    def test_says_what_is_wrong(
        self, cluster: Cluster, arguments: tuple[str, ...], error: type[Exception], problem: str
    ) -> None:
        with pytest.raises(error, match=problem) as raised:
            cluster.get(*arguments)
        assert "\n" not in str(raised.value)

    def test_its_requests_are_not_counted(self, cluster: Cluster) -> None:
        """`cluster.rbac` is about the clients under test."""
        cluster.list("pods")
        assert cluster.rbac.used() == []


class TestDelete:
    def test_one_object(self, cluster: Cluster) -> None:
        cluster.apply(config_map("gone"))
        cluster.delete("cm", "gone")
        with pytest.raises(StatusError, match='configmaps "gone" not found'):
            cluster.delete("cm/gone")
        cluster.delete("cm/gone", ignore_not_found=True)

    def test_with_a_propagation_policy(self, cluster: Cluster) -> None:
        [owner] = cluster.apply(config_map("owner"))
        cluster.delete(owner, propagation="Foreground")  # no garbage collector runs here
        assert cluster.get(owner)["metadata"]["finalizers"] == ["foregroundDeletion"]

    def test_with_a_grace_period(self) -> None:
        pod = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "web", "image": "web"}]}}
        with Cluster(nodes=1) as cluster:
            cluster.clock.stop()
            cluster.apply({"apiVersion": "v1", "kind": "Pod", **pod})
            cluster.wait("pod/web", "Ready")
            cluster.delete("pod/web", grace=0)
            assert cluster.list("pods") == []


class TestWait:
    @pytest.mark.parametrize(
        "goal",
        [
            {"condition": "Ready"},
            {"condition": "ready=true"},
            {"condition": "condition=Ready"},
            {"condition": "Lost=false"},
            {"condition": "jsonpath={.status.phase}=Running"},
            {"jsonpath": "{.status.phase}=Running"},
            {"jsonpath": ".status.phase=Running"},
            {"jsonpath": "{.status.phase}='Running'"},
            {"jsonpath": "{.status.phase}"},
            {"jsonpath": '{.status.conditions[?(@.type=="Ready")].status}=True'},
            {"jsonpath": "{.status.replicas}=2"},
            {"jsonpath": "{.status.good}=true"},
            {"predicate": lambda obj: obj.get("status", {}).get("replicas") == 2},
        ],
        ids=lambda goal: " ".join(map(str, [*goal, *filter(lambda value: isinstance(value, str), goal.values())])),
    )
    def test_ends_when_the_goal_is_reached(self, cluster: Cluster, goal: Any) -> None:
        """The object is created, and gets its status, while the wait goes on."""
        cluster.apply(SHOP)
        cluster.delete("widget", "late", "shop", ignore_not_found=True)
        late = {
            "apiVersion": "shop.example.com/v1",
            "kind": "Widget",
            "metadata": {"name": "late", "namespace": "shop"},
        }
        conditions = [{"type": "Ready", "status": "True"}, {"type": "Lost", "status": "False"}]
        status = {"phase": "Running", "replicas": 2, "good": True, "conditions": conditions}

        def write() -> None:
            cluster.apply(late)
            cluster.apply({**late, "status": status})

        writer = threading.Timer(0.05, write)
        writer.start()
        found = cluster.wait("widget", "late", namespace="shop", timeout=60, **goal)
        writer.join()
        assert found is not None
        assert found["status"] == status

    def test_a_condition_that_was_observed_at_an_older_generation_does_not_count(self, cluster: Cluster) -> None:
        cluster.apply(SHOP)
        stale = {"type": "Ready", "status": "True", "observedGeneration": 1}
        widget = {
            "apiVersion": "shop.example.com/v1",
            "kind": "Widget",
            "metadata": {"name": "old", "namespace": "shop"},
        }
        cluster.apply({**widget, "spec": {"size": 1}, "status": {"conditions": [stale]}})
        assert cluster.wait("widget/old", "Ready", namespace="shop")
        cluster.apply({**widget, "spec": {"size": 2}, "status": {"conditions": [stale]}})
        with pytest.raises(TimeoutError, match="did not get the condition Ready=True"):
            cluster.wait("widget/old", "Ready", namespace="shop", timeout=0.05)

    def test_for_deletion(self, cluster: Cluster) -> None:
        [found] = cluster.apply(config_map("short"))
        deleter = threading.Timer(0.05, lambda: cluster.delete(found))
        deleter.start()
        assert cluster.wait(found, "delete", timeout=60) is None
        deleter.join()
        assert cluster.wait(found, "delete") is None  # gone already

    def test_another_object_of_the_same_name_is_a_deletion(self, cluster: Cluster) -> None:
        [found] = cluster.apply(config_map("again"))

        def replace() -> None:
            cluster.delete(found)
            cluster.apply(config_map("again"))

        replacer = threading.Timer(0.05, replace)
        replacer.start()
        cluster.wait(found, "delete", timeout=60)
        replacer.join()

    def test_while_the_clock_is_stopped(self) -> None:
        with Cluster(controllers=()) as cluster:
            cluster.clock.stop()
            with pytest.raises(TimeoutError, match="did not appear"):
                cluster.wait("cm/never", "create", timeout=0.05)

    def test_a_timeout_shows_the_object_its_events_and_its_last_writer(self, cluster: Cluster) -> None:
        [found] = cluster.apply(config_map("stuck", a="1"))
        about = {"kind": "ConfigMap", "name": "stuck", "namespace": "default", "uid": found["metadata"]["uid"]}
        for number in range(7):
            event = {"metadata": {"name": f"stuck.{number}"}, "involvedObject": about, "type": "Warning"}
            stamp = {"lastTimestamp": f"2026-01-01T00:00:0{number}Z", "reason": "Stuck", "message": f"no. {number}"}
            cluster.apply({"apiVersion": "v1", "kind": "Event", **event, **stamp})
        cluster.apply({**config_map("stuck"), "immutable": False}, field_manager="second-writer")
        with pytest.raises(TimeoutError) as raised:
            cluster.wait("cm/stuck", jsonpath="{.data.a}=2", timeout=0.05)
        lines = str(raised.value).splitlines()
        assert lines[:3] == [
            'configmaps "stuck" in namespace "default" did not get {.data.a}=2 within 0.05 seconds',
            "The object as it was last:",
            "  status: {}",
        ]
        assert '    a: "1"' in lines
        assert "managedFields" not in str(raised.value)
        assert [line for line in lines if "Stuck" in line] == [
            f"  2026-01-01T00:00:0{number}Z Warning Stuck: no. {number}" for number in range(2, 7)
        ]
        assert re.fullmatch(r"It was last written by (fakeapiserver|second-writer) \(Apply\) at .*Z\.", lines[-1])

    def test_a_timeout_without_the_object_names_those_that_are_there(self, cluster: Cluster) -> None:
        cluster.apply(config_map("web"))
        with pytest.raises(TimeoutError) as raised:
            cluster.wait("cm", "wbe", "Ready", timeout=0.05)
        first, second = str(raised.value).splitlines()
        assert (
            first == 'configmaps "wbe" in namespace "default" did not get the condition Ready=True within 0.05 seconds'
        )
        assert second.startswith("There is no such object. The others are: ")
        assert "web" in second

    @pytest.mark.parametrize(
        ("goal", "problem"),
        [
            ({}, "but got none of them"),
            ({"condition": "Ready", "jsonpath": "{.a}"}, "but got condition and jsonpath"),
            ({"jsonpath": "{.a}="}, r"jsonpath must look like .*, not '\{.a\}='"),
            ({"jsonpath": "{.a[}"}, r"jsonpath: '\{.a\[\}' can't be read"),
            ({"condition": "=true"}, 'condition must be a text such as "Ready" or "Ready=false", not \'=true\''),
        ],
    )
    def test_says_what_is_wrong(self, cluster: Cluster, goal: Any, problem: str) -> None:
        with pytest.raises(ValueError, match=problem) as raised:
            cluster.wait("pod", "x", **goal)
        assert "\n" not in str(raised.value)


def test_all_of_them_in_an_event_loop() -> None:
    async def scenario() -> None:
        async with AsyncCluster(controllers=()) as cluster:
            assert [obj["kind"] for obj in await cluster.apply(SHOP)] == SHOP_ORDER
            waiting = asyncio.ensure_future(cluster.wait("cm/later", "create", timeout=60))
            await cluster.apply(config_map("later"))
            found = await waiting
            assert found == await cluster.get("cm", "later")
            assert "later" in names(await cluster.list("cm"))
            await cluster.delete("cm", "later")
            assert await cluster.wait("cm/later", "delete") is None

    asyncio.run(scenario())


class TestObjectsFromTheStart:
    def test_exist_when_the_cluster_is_ready(self) -> None:
        with Cluster(objects=[SHOP, config_map("mine")]) as cluster:
            assert cluster.get("widget", "first", "shop")["spec"] == {"size": 3}
            assert cluster.get("cm/mine")

    @pytest.mark.parametrize(
        ("objects", "problem"),
        [
            ("nowhere.yaml", "there is no file or folder nowhere.yaml"),
            (
                {**config_map("Wrong"), "data": {}},
                'objects: ConfigMap "Wrong" is invalid: metadata.name: Invalid value',
            ),
        ],
    )
    def test_that_cannot_be_applied_are_refused(self, objects: Any, problem: str) -> None:
        with pytest.raises((OSError, ValueError), match=problem):
            Cluster(controllers=(), objects=objects).start()
