"""KWOK's Stage objects: which comes next for an object and what it does, and nodes, pods and others that live by them."""

import json
import logging
import ssl
import urllib.error
import urllib.request
from random import Random
from typing import Any

import pytest

from fakeapiserver import Cluster
from fakeapiserver.nodes.stages.expressions import StageError, Subject
from fakeapiserver.nodes.stages.functions import functions_for
from fakeapiserver.nodes.stages.stage import Apply, Delete, Patch, SendEvent, Stage, choose, read_stage

NOW = 1_700_000_000.0
Object = dict[str, Any]


class Places:
    def of_node(self, name: str) -> list[str]:
        return [f"address-of-{name}"]

    def of_pod(self, node: str, uid: str) -> list[str]:
        return [f"{node}-{uid}"]


FUNCTIONS = functions_for(lambda: NOW, Random(1), Places())


def stage_object(name: str = "s", kind: str = "Pod", group: str = "v1", **spec: Any) -> Object:
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {"resourceRef": {"apiGroup": group, "kind": kind}, "selector": {}, **spec},
    }


def stage(name: str = "s", kind: str = "Pod", group: str = "v1", **spec: Any) -> Stage:
    found = read_stage(stage_object(name, kind, group, **spec), FUNCTIONS)
    assert found is not None
    return found


def pod(**metadata: Any) -> Subject:
    metadata = {"name": "web", "namespace": "shop", "uid": "u", "labels": {"app": "web"}, **metadata}
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    spec = {"nodeName": "n", "containers": [{"name": "c", "image": "x"}], "replicas": 3}
    return Subject({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}, NOW)


def expression(key: str, operator: str, *values: str) -> Object:
    return {"matchExpressions": [{"key": key, "operator": operator, **({"values": [*values]} if values else {})}]}


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ({}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "db"}}, False),
        ({"matchAnnotations": {"a": "b"}}, False),
        (expression(".status.phase", "In", "Running", "Pending"), True),
        (expression(".status.phase", "NotIn", "Running"), False),
        (expression(".status.reason", "In", "x"), False),
        (expression(".status.reason", "NotIn", "x"), True),
        (expression(".metadata.deletionTimestamp", "DoesNotExist"), True),
        (expression(".metadata.deletionTimestamp", "Exists"), False),
        (expression('.status.conditions.[] | select( .type == "Ready" ) | .status', "In", "True"), True),
        (expression(".metadata.ownerReferences.[].kind", "In", "Job"), False),
        # a query that fails finds nothing
        (expression(".metadata.name[]", "NotIn", "x"), True),
        (expression(".metadata.name[]", "Exists"), False),
        # numbers that come from the object equal no text, those that are counted do
        (expression(".spec.replicas", "In", "3"), False),
        (expression(".spec.containers | length", "In", "1"), True),
        (expression(".metadata.name == \"web\"", "In", "true"), True),
        ({"matchExpressions": [{"jq": {"key": ".metadata.name", "operator": "In", "values": ["web"]}}]}, True),
        ({"matchExpressions": [{"cel": {"expression": "self.status.phase == 'Running'"}}]}, True),
        ({"matchExpressions": [{"cel": {"expression": "has(self.metadata.deletionTimestamp)"}}]}, False),
        ({"matchLabels": {"app": "web"}, **expression(".status.phase", "In", "Pending")}, False),
    ],
)  # fmt: skip
def test_selectors(selector: Object, matches: bool) -> None:
    assert stage(selector=selector).matches(pod()) is matches


def test_without_a_selector_nothing_matches() -> None:
    assert read_stage(stage_object(selector=None), FUNCTIONS) is None


@pytest.mark.parametrize(
    ("delay", "annotations", "least", "most"),
    [
        ({}, {}, 0, 0),
        ({"durationMilliseconds": 1500}, {}, 1.5, 1.5),
        ({"durationMilliseconds": 1000, "jitterDurationMilliseconds": 5000}, {}, 1, 5),
        ({"durationMilliseconds": 5000, "jitterDurationMilliseconds": 1000}, {}, 1, 1),
        ({"durationMilliseconds": 1000, "durationFrom": {"expressionFrom": ".metadata.annotations.d"}}, {}, 1, 1),
        ({"durationMilliseconds": 1000, "durationFrom": {"expressionFrom": ".metadata.annotations.d"}}, {"d": "1m30s"}, 90, 90),
        ({"durationMilliseconds": 1000, "durationFrom": {"expressionFrom": ".metadata.annotations.d"}}, {"d": "soon"}, 1, 1),
        ({"durationMilliseconds": 1000, "durationFrom": {"jq": {"expression": ".metadata.annotations.d"}}}, {"d": ""}, 0, 0),
        ({"durationFrom": {"expressionFrom": ".metadata.annotations.d"}}, {"d": "2023-11-14T22:13:25Z"}, 5, 5),
        ({"durationMilliseconds": 9000, "jitterDurationFrom": {"expressionFrom": ".metadata.annotations.d"}},
         {"d": "2023-11-14T22:13:25Z"}, 5, 5),
        ({"durationFrom": {"cel": {"expression": "'2s'"}}}, {}, 2, 2),
        ({"durationFrom": {"cel": {"expression": "duration('3s')"}}}, {}, 3, 3),
    ],
)  # fmt: skip
def test_delays(delay: Object, annotations: dict[str, str], least: float, most: float) -> None:
    found = [stage(delay=delay).delay(pod(annotations=annotations), Random(seed)) for seed in range(50)]
    assert least <= min(found) <= max(found) <= most
    assert (len(set(found)) > 1) is (most > least)


@pytest.mark.parametrize(
    ("weights", "chosen"),
    [
        ([0], {"0"}),
        ([0, 0], {"0", "1"}),
        ([0, 1], {"1"}),
        ([1, 3], {"0", "1"}),
        ([{"expressionFrom": ".metadata.annotations.w"}, 1], {"0", "1"}),
        ([{"expressionFrom": ".metadata.annotations.none"}, 1], {"1"}),
        # what is no number has no weight at all: others go first, even with 0
        ([{"expressionFrom": ".metadata.name"}, 0], {"1"}),
        ([{"expressionFrom": ".spec.replicas"}, 0], {"0"}),
    ],
)
def test_weights(weights: list[Any], chosen: set[str]) -> None:
    stages = [
        stage(str(at), **({"weight": weight} if isinstance(weight, int) else {"weightFrom": weight}))
        for at, weight in enumerate(weights)
    ]
    subject = pod(annotations={"w": "2"})
    picked = [choose(stages, subject, Random(seed)) for seed in range(60)]
    assert {found.name for found in picked if found is not None} == chosen


def test_one_that_matches_nothing_is_not_chosen() -> None:
    assert choose([stage(selector={"matchLabels": {"app": "db"}})], pod(), Random(1)) is None


STRATEGIC, MERGE, JSON = (f"application/{kind}-patch+json" for kind in ("strategic-merge", "merge", "json"))


@pytest.mark.parametrize(
    ("spec", "actions"),
    [
        ({}, []),
        ({"next": {"delete": True}}, [Delete()]),
        (
            {"next": {"event": {"type": "Normal", "reason": "R", "message": "M"}, "statusTemplate": "phase: Failed"}},
            [SendEvent("Normal", "R", "M"), Patch({"status": {"phase": "Failed"}}, STRATEGIC, "status")],
        ),
        (
            {"next": {"statusTemplate": "a: 1", "statusSubresource": "scale", "statusPatchAs": {"username": "jane"}}},
            [Patch({"status": {"a": 1}}, STRATEGIC, "scale", "jane")],
        ),
        (
            {"next": {"patches": [{"root": "metadata", "template": "labels: {a: b}", "type": "merge"}], "statusTemplate": "a: 1"}},
            [Patch({"metadata": {"labels": {"a": "b"}}}, MERGE)],
        ),
        (
            {"steps": [{"patch": {"root": "metadata", "type": "json", "template": '- {op: add, path: /labels/x, value: "1"}'}}]},
            [Patch([{"op": "add", "path": "/metadata/labels/x", "value": "1"}], JSON)],
        ),
        (
            {"steps": [{"apply": {"template": "{apiVersion: v1, kind: ConfigMap, metadata: {name: {{ .metadata.name }}}}"}}]},
            [Apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}}, "application/apply-patch+yaml")],
        ),
        (
            {"steps": [{"delete": True}, {"event": {"type": "Normal", "reason": "R"}}]},
            [Delete(), SendEvent("Normal", "R", "")],
        ),
    ],
)  # fmt: skip
def test_actions(spec: Object, actions: list[Any]) -> None:
    found = stage(**spec)
    assert [action for step in found.steps for action in found.actions(step, pod(), {})] == actions


@pytest.mark.parametrize(
    ("known", "finalizers", "operations"),
    [
        ([], {"add": [{"value": "a"}]}, [("add", "/metadata/finalizers", ["a"])]),
        (["a"], {"add": [{"value": "a"}, {"value": "b"}]}, [("add", "/metadata/finalizers/-", "b")]),
        (["a", "b", "c"], {"remove": [{"value": "a"}, {"value": "c"}]},
         [("remove", "/metadata/finalizers/2", None), ("remove", "/metadata/finalizers/0", None)]),
        (["a"], {"remove": [{"value": "a"}]}, [("remove", "/metadata/finalizers", None)]),
        (["a", "b"], {"empty": True}, [("remove", "/metadata/finalizers", None)]),
        (["a"], {"empty": True, "add": [{"value": "b"}]},
         [("remove", "/metadata/finalizers", None), ("add", "/metadata/finalizers", ["b"])]),
        ([], {"empty": True}, []),
        (["a"], {"remove": [{"value": "x"}]}, []),
    ],
)  # fmt: skip
def test_finalizers(known: list[str], finalizers: Object, operations: list[Any]) -> None:
    found = stage(next={"finalizers": finalizers})
    actions = [action for step in found.steps for action in found.actions(step, pod(finalizers=known), {})]
    assert [(row["op"], row["path"], row.get("value")) for patch in actions for row in patch.body] == operations  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("kind", "template", "text"),
    [
        ("Pod", "{{ Now }} {{ StartTime }}", "2023-11-14T22:13:20Z 2023-11-14T22:13:20Z"),
        ("Pod", "{{ NodeIPWith .spec.nodeName }} {{ index (NodeIPsWith \"x\") 0 }}", "address-of-n address-of-x"),
        ("Pod", '{{ PodIPWith .spec.nodeName ( or .spec.hostNetwork false ) .metadata.uid "" "" }}', "n-u"),
        ("Pod", '{{ PodIPWith .spec.nodeName true .metadata.uid "" "" }}', "address-of-n"),
        ("Pod", "{{ .kind }} {{ Version }}", "<no value> 0.8.0"),
        ("Widget", "{{ .kind }} {{ .apiVersion }}", "Pod v1"),
        ("Node", "{{ range NodeConditions }}{{ .type }} {{ end }}{{ with NodePort }}port{{ end }}",
         "Ready MemoryPressure DiskPressure PIDPressure NetworkUnavailable"),
        ("Pod", "{{ Quote \"a\\\"b\" }} {{ Quote .spec.replicas }} {{ Quote true }}", '"a\\"b" "3" "true"'),
    ],
)  # fmt: skip
def test_functions(kind: str, template: str, text: str) -> None:
    found = stage(kind=kind, next={"statusTemplate": f"text: |-\n  {template}"})
    (patch,) = found.actions(found.steps[0], pod(), {})
    assert isinstance(patch, Patch)
    assert patch.body["status"]["text"].strip() == text


def test_yaml_is_indented() -> None:
    found = stage(next={"statusTemplate": "x:\n  {{ YAML .metadata.labels 1 }}\ny1:\n{{ YAML .spec 1 }}"})
    (patch,) = found.actions(found.steps[0], pod(), {})
    assert isinstance(patch, Patch)
    assert (patch.body["status"]["x"], patch.body["status"]["y1"]["replicas"]) == ({"app": "web"}, 3)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"resourceRef": {}}, "Stage s: spec.resourceRef.kind is missing"),
        ({"selector": expression(".a |", "Exists")}, "Stage s: spec.selector.matchExpressions[0]: jq '.a |': unexpected end of query"),
        ({"selector": expression(".a", "Like", "b")}, "operator 'Like' is not supported"),
        ({"selector": expression(".a", "In")}, "values set can't be empty"),
        ({"selector": expression(".a", "Exists", "b")}, "values set must be empty"),
        ({"selector": {"matchExpressions": [{}]}}, "invalid expression"),
        ({"selector": {"matchExpressions": [{"cel": {"expression": "self."}}]}}, "matchExpressions[0]: CEL 'self.'"),
        ({"next": {"statusTemplate": "{{ Nope }}"}}, 'step 0: template: _:1: function "Nope" not defined'),
        ({"next": {"statusTemplate": "{{ NodeName }}"}}, 'function "NodeName" not defined'),
        ({"next": {"patches": [{"type": "apply"}]}}, "unknown patch type apply"),
        ({"weightFrom": {}}, "spec.weightFrom: an expression needs jq, cel or expressionFrom"),
        ({"delay": {"durationMilliseconds": "1s"}}, "'1s' is no whole number"),
        ({"selector": "x"}, "Stage s isn't one as KWOK has it"),
        ({"steps": [3]}, "Stage s isn't one as KWOK has it"),
    ],
)  # fmt: skip
def test_what_is_no_stage(spec: Object, problem: str) -> None:
    obj = stage_object()
    obj["spec"] |= spec
    with pytest.raises(StageError) as error:
        read_stage(obj, FUNCTIONS)
    assert problem in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("{{ index .status.missing 0 }}", "index of untyped nil"),
        ("a: [", "is no YAML"),
        ("{{ fail \"boom\" }}", "boom"),
    ],
)  # fmt: skip
def test_templates_that_fail(template: str, problem: str) -> None:
    found = stage(next={"statusTemplate": template})
    with pytest.raises(StageError, match=problem):
        list(found.actions(found.steps[0], pod(), {}))


# ------------------------------------------------------------------------- stories

PODS = "/api/v1/namespaces/default/pods"
STAGES = "/apis/kwok.x-k8s.io/v1alpha1/stages"
PHASE = ".status.phase"
RUNS = stage_object(
    "runs",
    selector={
        "matchExpressions": [
            {"key": PHASE, "operator": "In", "values": ["Pending"]},
            {"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"},
        ]
    },
    delay={"durationMilliseconds": 5000},
    next={
        "event": {"type": "Normal", "reason": "Begun", "message": "it runs"},
        "statusTemplate": "phase: Running\npodIP: {{ PodIPWith .spec.nodeName false .metadata.uid .metadata.name .metadata.namespace }}\n"
        "hostIP: {{ NodeIPWith .spec.nodeName }}",
    },
)  # fmt: skip
FAILS = stage_object(
    "fails",
    selector=expression(PHASE, "In", "Running"),
    delay={"durationMilliseconds": 60000},
    next={"statusTemplate": "phase: Failed\nreason: {{ .metadata.name }}"},
)
GOES = stage_object("goes", selector=expression(".metadata.deletionTimestamp", "Exists"), next={"delete": True})
READY = stage_object(
    "ready",
    "Node",
    selector=expression('.status.conditions[] | select(.type == "Ready") | .status', "NotIn", "True"),
    next={
        "statusTemplate": "phase: Running\nconditions:\n{{ range NodeConditions }}\n- type: {{ .type }}\n  status: {{ .status | Quote }}\n"
        "  reason: {{ .reason }}\n  message: {{ .message }}\n  lastTransitionTime: {{ Now | Quote }}\n{{ end }}"
    },
)  # fmt: skip
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "stages.kwok.x-k8s.io"},
    "spec": {
        "group": "kwok.x-k8s.io",
        "names": {"kind": "Stage", "plural": "stages", "singular": "stage", "listKind": "StageList"},
        "scope": "Cluster",
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


def cluster_of(**options: Any) -> Cluster:
    """Returns a cluster in which only the simulation of nodes runs."""
    return Cluster(controllers=(), **options)


class Client:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def ask(self, method: str, path: str, body: object = None, content_type: str = "application/json") -> Any:
        request = urllib.request.Request(
            self._cluster.url + path,
            None if body is None else json.dumps(body).encode(),
            {"Authorization": f"Bearer {self._cluster.token}", "Content-Type": content_type},
            method=method,
        )
        with urllib.request.urlopen(request, context=ssl._create_unverified_context(), timeout=60) as answer:
            return json.loads(answer.read())

    def pod(self, name: str, node: str = "node-1", **metadata: Any) -> None:
        spec = {"nodeName": node, "containers": [{"name": "c", "image": "x"}]}
        self.ask("POST", PODS, {"metadata": {"name": name, **metadata}, "spec": spec})
        self._cluster.settle()

    def status(self, name: str) -> Any:
        return self.ask("GET", f"{PODS}/{name}")["status"]

    def phase(self, name: str) -> Any:
        return self.status(name)["phase"]

    def go_on(self, duration: str) -> None:
        self._cluster.clock.advance(duration)
        self._cluster.settle()


def test_pods_live_by_their_stages_and_the_clock() -> None:
    with cluster_of(nodes=2, stages=[RUNS, FAILS, GOES]) as cluster:
        client = Client(cluster)
        cluster.clock.stop()
        cluster.settle()
        client.pod("a")
        assert client.phase("a") == "Pending"
        client.go_on("3s")
        assert client.phase("a") == "Pending"
        client.go_on("2s")
        running = client.status("a")
        assert (running["phase"], running["hostIP"], running["podIP"]) == ("Running", "172.18.0.3", "100.64.0.1")
        client.go_on("57s")
        assert client.phase("a") == "Running"
        client.go_on("3s")
        assert (client.phase("a"), client.status("a")["reason"]) == ("Failed", "a")
        client.ask("DELETE", f"{PODS}/a")
        cluster.settle()
        assert client.ask("GET", PODS)["items"] == []
        events = client.ask("GET", "/api/v1/namespaces/default/events")["items"]
        begun = [event for event in events if event["reason"] == "Begun"]
        assert [(event["involvedObject"]["name"], event["source"]["component"]) for event in begun] == [
            ("a", "kwok_controller")
        ]


def test_a_change_restarts_the_delay() -> None:
    with cluster_of(nodes=1, stages=[RUNS, GOES]) as cluster:
        client = Client(cluster)
        cluster.clock.stop()
        cluster.settle()
        client.pod("a")
        client.go_on("3s")
        client.ask("PATCH", f"{PODS}/a", {"metadata": {"labels": {"a": "b"}}}, "application/merge-patch+json")
        cluster.settle()
        client.go_on("3s")
        assert client.phase("a") == "Pending"
        client.go_on("2s")
        assert client.phase("a") == "Running"


def test_nodes_live_by_their_stages_and_pods_of_other_nodes_do() -> None:
    with cluster_of(nodes=1, stages=[READY, RUNS, GOES]) as cluster:
        client = Client(cluster)
        cluster.clock.stop()
        client.ask("POST", "/api/v1/nodes", {"metadata": {"name": "mine"}})
        cluster.settle()
        nodes = {node["metadata"]["name"]: node["status"] for node in client.ask("GET", "/api/v1/nodes")["items"]}
        assert {name: status.get("phase") for name, status in nodes.items()} == {"mine": "Running", "node-1": "Running"}
        assert nodes["node-1"]["capacity"]["cpu"] == "32"
        leases = client.ask("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases")["items"]
        assert [(lease["metadata"]["name"], lease["spec"]["leaseDurationSeconds"]) for lease in leases] == [
            ("mine", 40),
            ("node-1", 40),
        ]
        client.pod("a", "mine")
        client.go_on("5s")
        assert (client.phase("a"), client.status("a")["podIP"]) == ("Running", "10.0.0.1")
        # running nodes stay ready, stopped ones don't
        cluster.nodes.stop("node-1")
        client.go_on("5m")
        ready = {
            node["metadata"]["name"]: row["status"]
            for node in client.ask("GET", "/api/v1/nodes")["items"]
            for row in node["status"]["conditions"]
            if row["type"] == "Ready"
        }
        assert ready == {"mine": "True", "node-1": "Unknown"}
        cluster.nodes.start("node-1")
        client.go_on("1s")
        (found,) = (
            row for row in client.ask("GET", "/api/v1/nodes/node-1")["status"]["conditions"] if row["type"] == "Ready"
        )
        assert found["status"] == "True"


def test_stages_drive_any_resource_without_simulated_nodes() -> None:
    stages = [
        stage_object("greets", "ConfigMap", selector={"matchLabels": {"greet": "yes"}},
                     steps=[{"patch": {"root": "data", "template": "greeting: hello {{ .metadata.name }}"}},
                            {"apply": {"template": "{apiVersion: v1, kind: Secret, metadata: {name: of-{{ .metadata.name }}}}"}},
                            {"patch": {"root": "metadata", "template": "labels: {greet: done}"}}]),
        stage_object("goes", "ConfigMap", selector={"matchLabels": {"greet": "done"}},
                     delay={"durationMilliseconds": 9000}, next={"delete": True}),
    ]  # fmt: skip
    maps = "/api/v1/namespaces/default/configmaps"
    with cluster_of(stages=stages) as cluster:
        client = Client(cluster)
        cluster.clock.stop()
        cluster.settle()
        client.ask("POST", maps, {"metadata": {"name": "a", "labels": {"greet": "yes"}}})
        cluster.settle()
        found = client.ask("GET", f"{maps}/a")
        assert (found["data"], found["metadata"]["labels"]) == ({"greeting": "hello a"}, {"greet": "done"})
        assert {field["manager"] for field in found["metadata"]["managedFields"]} >= {"kwok"}
        assert client.ask("GET", "/api/v1/namespaces/default/secrets/of-a")["type"] == "Opaque"
        client.go_on("9s")
        assert [item["metadata"]["name"] for item in client.ask("GET", maps)["items"]] == []


def test_the_next_stage_comes_at_once() -> None:
    counts = stage_object(
        "counts", "ConfigMap", selector=expression(".data.count", "In", "0", "1", "2"), immediateNextStage=True,
        steps=[{"patch": {"root": "data", "template": "count: {{ add1 .data.count | quote }}"}}],
    )  # fmt: skip
    path = "/api/v1/namespaces/default/configmaps"
    with cluster_of(stages=[counts]) as cluster:
        client = Client(cluster)
        cluster.settle()
        client.ask("POST", path, {"metadata": {"name": "a"}, "data": {"count": "0"}})
        cluster.settle()
        assert client.ask("GET", f"{path}/a")["data"] == {"count": "3"}


def test_a_patch_is_sent_in_the_name_of_another() -> None:
    steps = [{"patch": {"root": "data", "template": "by: jane", "impersonation": {"username": "jane"}}}]
    path = "/api/v1/namespaces/default/configmaps"
    with cluster_of(
        stages=[stage_object("s", "ConfigMap", selector={"matchLabels": {"a": "b"}}, steps=steps)]
    ) as cluster:
        client = Client(cluster)
        cluster.settle()
        client.ask("POST", path, {"metadata": {"name": "a", "labels": {"a": "b"}}})
        cluster.settle()
        assert "data" not in client.ask("GET", f"{path}/a")
        role = {
            "metadata": {"name": "jane"},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch"]}],
        }
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        client.ask("POST", f"{rbac}/clusterroles", role)
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "jane"}
        subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}]
        client.ask(
            "POST",
            f"{rbac}/clusterrolebindings",
            {"metadata": {"name": "jane"}, "roleRef": reference, "subjects": subjects},
        )
        client.ask("PATCH", f"{path}/a", {"metadata": {"labels": {"c": "d"}}}, "application/merge-patch+json")
        cluster.settle()
        assert client.ask("GET", f"{path}/a")["data"] == {"by": "jane"}


def test_stages_of_the_cluster_replace_the_kubelet_and_give_it_back() -> None:
    with cluster_of(nodes=1) as cluster:
        client = Client(cluster)
        cluster.clock.stop()
        cluster.settle()
        client.pod("before")
        assert client.phase("before") == "Running"
        client.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
        cluster.settle()
        for obj in (RUNS, GOES):
            client.ask("POST", STAGES, obj)
        cluster.settle()
        client.pod("staged")
        assert client.phase("staged") == "Pending"
        client.go_on("5s")
        assert client.phase("staged") == "Running"
        assert "containerStatuses" not in client.status("staged")
        # a changed stage applies also to pods that no stage matched before
        client.ask("POST", STAGES, FAILS)
        cluster.settle()
        client.go_on("1m")
        assert client.phase("staged") == "Failed"
        for obj in (RUNS, GOES, FAILS):
            client.ask("DELETE", f"{STAGES}/{obj['metadata']['name']}")
        cluster.settle()
        client.pod("after")
        assert client.phase("after") == "Running"


def test_an_invalid_stage_of_the_cluster_is_reported_and_ignored(caplog: pytest.LogCaptureFixture) -> None:
    bad = stage_object("bad", selector=expression(".a |", "Exists"))
    unknown = stage_object("unknown", "Gadget", "example.com/v1")
    with cluster_of(nodes=1) as cluster, caplog.at_level(logging.WARNING):
        client = Client(cluster)
        client.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
        cluster.settle()
        for obj in (bad, unknown):
            client.ask("POST", STAGES, obj)
        cluster.settle()
        client.pod("a")
        assert client.phase("a") == "Running"
        events = client.ask("GET", "/api/v1/namespaces/default/events")["items"]
        told = [event["message"] for event in events if event["reason"] == "InvalidStage"]
        assert told == ["Stage bad: spec.selector.matchExpressions[0]: jq '.a |': unexpected end of query"]
    lines = [record.getMessage() for record in caplog.records]
    assert told[0] in lines
    assert "stages for example.com/v1 Gadget wait: the server doesn't have that resource" in lines


@pytest.mark.parametrize(
    ("stages", "problem"),
    [
        (
            [stage_object("bad", next={"statusTemplate": "{{ Nope }}"})],
            'Stage bad: step 0: .*function "Nope" not defined',
        ),
        ([{"kind": "Pod"}], "there is no Stage"),
    ],
)
def test_bad_stages_given_are_refused(stages: list[Object], problem: str) -> None:
    with pytest.raises(ValueError, match=problem), cluster_of(stages=stages):
        pass


def test_a_stage_that_fails_leaves_the_others(caplog: pytest.LogCaptureFixture) -> None:
    fails = stage_object(
        "fails", "ConfigMap", selector={"matchLabels": {"a": "b"}}, next={"statusTemplate": "x: {{ index .data 3 }}"}
    )
    path = "/api/v1/namespaces/default/configmaps"
    with cluster_of(stages=[fails]) as cluster, caplog.at_level(logging.WARNING):
        client = Client(cluster)
        cluster.settle()
        client.ask("POST", path, {"metadata": {"name": "a", "labels": {"a": "b"}}, "data": {"k": "v"}})
        cluster.settle()
    assert [record.getMessage() for record in caplog.records if "Stage fails" in record.getMessage()] == [
        "Stage fails: template: _:1: error calling index: value has type int; should be string, for ConfigMap default/a"
    ]
