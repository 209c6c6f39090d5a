"""Tests where the scheduler puts pods, and its messages when they fit nowhere."""

from typing import Any

import pytest

from fakeapiserver import Cluster
from fakeapiserver.nodes.scheduler.filters import cycle_of, refusal
from fakeapiserver.nodes.scheduler.node_info import PodInfo, Snapshot
from fakeapiserver.nodes.scheduler.scores import best
from tests.nodes.test_kubelet import PODS, PodClient

Object = dict[str, Any]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def node(name: str, *, cpu: str = "4", labels: Object | None = None, **spec: Any) -> Object:
    allocatable = {"cpu": cpu, "memory": "8Gi", "pods": "3"}
    labels = {"kubernetes.io/hostname": name, **(labels or {})}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": {"allocatable": allocatable}}


def pod(
    name: str = "p", *, cpu: str = "", labels: Object | None = None, ports: list[Object] | None = None, **spec: Any
) -> Object:
    container: Object = {"name": "c", "resources": {"requests": {"cpu": cpu} if cpu else {}}, "ports": ports or []}
    metadata = {"name": name, "namespace": "shop", "labels": labels or {}}
    return {"metadata": metadata, "spec": {"containers": [container], **spec}}


def world(nodes: list[Object], placed: list[tuple[str, Object]]) -> Snapshot:
    snapshot = Snapshot()
    snapshot.namespaces["shop"] = {}
    for found in nodes:
        snapshot.set_node(found)
    for number, (name, found) in enumerate(placed):
        found["metadata"]["name"] = f"old-{number}"
        snapshot.place(PodInfo(found), name)
    return snapshot


def affine(kind: str, key: str = "kubernetes.io/hostname", **labels: str) -> Object:
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": key}
    return {kind: {REQUIRED: [term]}}


SPREAD = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}


@pytest.mark.parametrize(
    ("nodes", "placed", "wanted", "reasons"),
    [
        ([node("a")], [], pod(), []),
        ([node("a", unschedulable=True)], [], pod(), ["node(s) were unschedulable"]),
        (
            [node("a", taints=[{"key": "gpu", "effect": "NoSchedule"}])],
            [],
            pod(),
            ["node(s) had untolerated taint(s)"],
        ),
        (
            [node("a", taints=[{"key": "gpu", "effect": "NoSchedule"}])],
            [],
            pod(tolerations=[{"key": "gpu", "operator": "Exists"}]),
            [],
        ),
        ([node("a")], [], pod(nodeSelector={"disk": "ssd"}), ["node(s) didn't match Pod's node affinity/selector"]),
        ([node("a")], [("a", pod(cpu="3"))], pod(cpu="2"), ["Insufficient cpu"]),
        ([node("a")], [("a", pod()), ("a", pod()), ("a", pod())], pod(), ["Too many pods"]),
        (
            [node("a")],
            [("a", pod(ports=[{"hostPort": 80}]))],
            pod(ports=[{"hostPort": 80, "hostIP": "10.0.0.1"}]),
            ["node(s) didn't have free ports for the requested pod ports"],
        ),
        ([node("a")], [("a", pod(ports=[{"hostPort": 80}]))], pod(ports=[{"hostPort": 80, "protocol": "UDP"}]), []),
        (
            [node("a")],
            [],
            pod(affinity=affine("podAffinity", app="db")),
            ["node(s) didn't match pod affinity rules"],
        ),
        ([node("a")], [("a", pod(labels={"app": "db"}))], pod(affinity=affine("podAffinity", app="db")), []),
        ([node("a")], [], pod(labels={"app": "web"}, affinity=affine("podAffinity", app="web")), []),
        (
            [node("a")],
            [("a", pod(labels={"app": "web"}))],
            pod(affinity=affine("podAntiAffinity", app="web")),
            ["node(s) didn't match pod anti-affinity rules"],
        ),
        (
            [node("a")],
            [("a", pod(affinity=affine("podAntiAffinity", app="web")))],
            pod(labels={"app": "web"}),
            ["node(s) didn't satisfy existing pods anti-affinity rules"],
        ),
        (
            [node("a", labels={"zone": "1"}), node("b", labels={"zone": "2"})],
            [("a", pod(labels={"app": "web"}))],
            pod(labels={"app": "web"}, topologySpreadConstraints=[SPREAD]),
            ["node(s) didn't match pod topology spread constraints"],
        ),
        (
            [node("a"), node("b", labels={"zone": "2"})],
            [],
            pod(labels={"app": "web"}, topologySpreadConstraints=[SPREAD]),
            ["node(s) didn't match pod topology spread constraints (missing required label)"],
        ),
    ],
)
def test_a_node_that_a_pod_cannot_run_on_says_why(
    nodes: list[Object], placed: list[tuple[str, Object]], wanted: Object, reasons: list[str]
) -> None:
    snapshot = world(nodes, placed)
    found = refusal(cycle_of(PodInfo(wanted), snapshot), snapshot.nodes["a"])
    assert list(found.reasons if found else ()) == reasons


def prefers(labels: Object) -> Object:
    expressions = [{"key": key, "operator": "In", "values": [value]} for key, value in labels.items()]
    return {"nodeAffinity": {PREFERRED: [{"weight": 10, "preference": {"matchExpressions": expressions}}]}}


@pytest.mark.parametrize(
    ("nodes", "placed", "wanted", "chosen"),
    [
        ([node("a"), node("b")], [("a", pod())], pod(), "b"),
        ([node("a", cpu="2"), node("b", cpu="8")], [], pod(cpu="1"), "b"),
        ([node("a"), node("b", labels={"disk": "ssd"})], [("b", pod())], pod(affinity=prefers({"disk": "ssd"})), "b"),
        ([node("a", taints=[{"key": "x", "effect": "PreferNoSchedule"}]), node("b")], [("b", pod())], pod(), "b"),
        (
            [node("a", labels={"zone": "1"}), node("b", labels={"zone": "2"})],
            [("a", pod(labels={"app": "web"})), ("b", pod()), ("b", pod())],
            pod(labels={"app": "web"}, topologySpreadConstraints=[{**SPREAD, "whenUnsatisfiable": "ScheduleAnyway"}]),
            "b",
        ),
    ],
)
def test_the_best_node_is_the_emptiest_that_the_pod_likes(
    nodes: list[Object], placed: list[tuple[str, Object]], wanted: Object, chosen: str
) -> None:
    snapshot = world(nodes, placed)
    assert best(PodInfo(wanted), [*snapshot.nodes.values()], snapshot).name == chosen


def body(name: str, cpu: str = "", **spec: Any) -> Object:
    found = pod(name, cpu=cpu, **spec)
    found["spec"]["containers"][0]["image"] = "x"
    del found["metadata"]["namespace"]
    return found


def test_pods_are_spread_over_nodes_with_events() -> None:
    with Cluster(nodes=3) as cluster:
        client = PodClient(cluster)
        cluster.settle()
        for number in range(6):
            client.ask("POST", PODS, body(f"p{number}"))
        cluster.settle()
        placed = sorted(found["spec"]["nodeName"] for found in client.ask("GET", PODS)["items"])
        assert placed == ["node-1", "node-1", "node-2", "node-2", "node-3", "node-3"]
        events = client.ask("GET", "/api/v1/namespaces/default/events")["items"]
        told = [event["message"].rpartition(" to ")[0] for event in events if event["reason"] == "Scheduled"]
        assert sorted(told) == [f"Successfully assigned default/p{number}" for number in range(6)]


@pytest.mark.parametrize(("version", "claims"), [("1.36", "no new claims to deallocate, "), ("1.37", "")])
def test_what_fits_nowhere_waits_for_room(version: str, claims: str) -> None:
    with Cluster(nodes=2, kubernetes_version=version) as cluster:
        client = PodClient(cluster)
        for name in ("a", "b", "late"):
            client.ask("POST", PODS, body(name, cpu="20"))
        cluster.settle()
        [waiting] = [found for found in client.ask("GET", PODS)["items"] if not found["spec"].get("nodeName")]
        [condition] = waiting["status"]["conditions"]
        assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
        assert condition["message"] == (
            f"0/2 nodes are available: 2 Insufficient cpu. {claims}preemption: 0/2 nodes are available: "
            "2 No preemption victims found for incoming pod."
        )
        gone = next(
            found["metadata"]["name"] for found in client.ask("GET", PODS)["items"] if found["spec"].get("nodeName")
        )
        client.ask("DELETE", f"{PODS}/{gone}")
        cluster.clock.advance("10s")  # its back-off
        assert client.pod_status(waiting["metadata"]["name"])["phase"] == "Running"


def test_who_is_more_important_goes_first() -> None:
    with Cluster(nodes=1) as cluster:
        client = PodClient(cluster)
        classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
        client.ask("POST", classes, {"metadata": {"name": "high"}, "value": 1000})
        client.ask("POST", PODS, body("low", cpu="20"))
        cluster.settle()
        client.ask("POST", PODS, body("high", cpu="20", priorityClassName="high"))
        cluster.settle()
        assert [found["metadata"]["name"] for found in client.ask("GET", PODS)["items"]] == ["high"]
        assert client.pod_status("high")["phase"] == "Running"


@pytest.mark.parametrize(
    ("promised", "wanted", "reasons"),
    [
        (pod("first", cpu="3", priority=5), pod(cpu="2", priority=5), ["Insufficient cpu"]),
        (pod("first", cpu="3", priority=5), pod(cpu="1", priority=5), []),
        (pod("first", cpu="3", priority=5), pod(cpu="2", priority=6), []),
        (pod("p", cpu="3", priority=5), pod("p", cpu="3", priority=5), []),
        (
            pod("first", affinity=affine("podAntiAffinity", app="web")),
            pod(labels={"app": "web"}),
            ["node(s) didn't satisfy existing pods anti-affinity rules"],
        ),
        (
            pod("first", labels={"app": "db"}),
            pod(affinity=affine("podAffinity", app="db")),
            ["node(s) didn't match pod affinity rules"],
        ),
    ],
)
def test_a_node_that_is_promised_to_a_pod_has_room_for_others_as_if_it_were_there_and_as_if_not(
    promised: Object, wanted: Object, reasons: list[str]
) -> None:
    snapshot = world([node("a")], [])
    snapshot.nominate(PodInfo(promised), "a")
    why = refusal(cycle_of(PodInfo(wanted), snapshot), snapshot.nodes["a"])
    assert list(why.reasons if why else ()) == reasons


def test_a_promise_ends_when_the_pod_is_placed_or_gone() -> None:
    snapshot = world([node("a"), node("b")], [])
    first = PodInfo(pod("first"))
    for end in (lambda: snapshot.place(first, "b"), lambda: snapshot.remove_pod(first.key)):
        snapshot.nominate(first, "a")
        end()
        assert not snapshot.nominated


def test_replacements_of_victims_do_not_get_their_room() -> None:
    with Cluster(nodes=1, controllers=("replicaset-controller",)) as cluster:
        client = PodClient(cluster)
        classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
        client.ask("POST", classes, {"metadata": {"name": "high"}, "value": 1000})
        labels = {"app": "low"}
        template = {"metadata": {"labels": labels}, "spec": body("low", cpu="20")["spec"]}
        spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
        sets = PODS.replace("/api/v1", "/apis/apps/v1").replace("/pods", "/replicasets")
        client.ask("POST", sets, {"metadata": {"name": "low"}, "spec": spec})
        cluster.settle()
        client.ask("POST", PODS, body("high", cpu="20", priorityClassName="high"))
        cluster.settle()
        cluster.clock.advance("10s")
        cluster.settle()
        found = {pod["metadata"]["name"].split("-")[0]: pod for pod in client.ask("GET", PODS)["items"]}
        assert {name: pod["status"]["phase"] for name, pod in found.items()} == {"high": "Running", "low": "Pending"}
        assert "nominatedNodeName" not in found["high"]["status"]


def test_a_pod_of_lower_priority_loses_its_nomination_to_one_of_higher() -> None:
    with Cluster(nodes=1) as cluster:
        client = PodClient(cluster)
        classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
        for name, value in (("high", 1000), ("higher", 2000)):
            client.ask("POST", classes, {"metadata": {"name": name}, "value": value})
        cluster.clock.stop()  # once deleted, the pod stays for a while: the others wait for it
        cluster.nodes.script(name="low", stops_after=30.0)
        client.ask("POST", PODS, body("low", cpu="20", terminationGracePeriodSeconds=60))
        cluster.settle()
        for name in ("high", "higher"):
            client.ask("POST", PODS, body(name, cpu="20", priorityClassName=name))
            cluster.settle()
            promised = [
                p["metadata"]["name"] for p in client.ask("GET", PODS)["items"] if p["status"].get("nominatedNodeName")
            ]
            assert promised == [name]


def test_a_gated_pod_waits_until_its_gates_are_gone() -> None:
    with Cluster(nodes=1) as cluster:
        client = PodClient(cluster)
        client.ask("POST", PODS, body("p", schedulingGates=[{"name": "example.com/wait"}]))
        cluster.settle()
        found = client.ask("GET", f"{PODS}/p")
        assert "nodeName" not in found["spec"]
        del found["spec"]["schedulingGates"]
        client.ask("PUT", f"{PODS}/p", found)
        cluster.settle()
        assert client.pod_status("p")["phase"] == "Running"


GPU = {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}
RESOURCE = "/apis/resource.k8s.io/v1"


@pytest.mark.parametrize(("version", "freed"), [("1.36", "still not schedulable, "), ("1.37", "")])
def test_claims_for_devices_are_allocated_before_their_pods_run(version: str, freed: str) -> None:
    def claims(names: list[str]) -> Object:
        rows = [{"name": name, "resourceClaimName": name} for name in names]
        return {"resourceClaims": rows, "containers": [{"name": "c", "image": "x"}]}

    with Cluster(nodes=2, controllers=("*",), kubernetes_version=version) as cluster:
        client = PodClient(cluster)
        cluster.clock.stop()
        client.ask("POST", f"{RESOURCE}/deviceclasses", {"metadata": {"name": "gpu"}, "spec": {}})
        for name in ("one", "two"):
            body = {"metadata": {"name": name}, "spec": {"devices": GPU}}
            client.ask("POST", f"{RESOURCE}/namespaces/default/resourceclaims", body)
            client.ask("POST", PODS, {"metadata": {"name": name}, "spec": claims([name])})
        cluster.settle()
        told = [row["message"] for row in client.pod_status("one")["conditions"]]
        assert told == [
            f"0/2 nodes are available: 2 cannot allocate all claims. {freed}preemption: 0/2 nodes are "
            "available: 2 Preemption is not helpful for scheduling."
        ]
        pool = {"name": "node-2", "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": "gpu.example.com", "pool": pool, "nodeName": "node-2", "devices": [{"name": "d"}]}
        client.ask("POST", f"{RESOURCE}/resourceslices", {"metadata": {"name": "s"}, "spec": spec})
        cluster.clock.advance("11s")
        cluster.settle()
        phases = {client.pod_status(name)["phase"]: name for name in ("one", "two")}
        assert sorted(phases) == ["Pending", "Running"]
        running, waiting = phases["Running"], phases["Pending"]
        claim = client.ask("GET", f"{RESOURCE}/namespaces/default/resourceclaims/{running}")
        assert claim["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
        assert [row["name"] for row in claim["status"]["reservedFor"]] == [running]
        assert [row["device"] for row in claim["status"]["allocation"]["devices"]["results"]] == ["d"]
        client.ask("DELETE", f"{PODS}/{running}")
        cluster.clock.advance("1m")
        cluster.settle()
        assert client.pod_status(waiting)["phase"] == "Running"
