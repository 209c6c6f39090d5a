"""Requests in a recording: who sent them, what became of them, what allowed and changed them, and nothing secret."""

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from typing import Any, Final

import pytest

from fakeapiserver import Cluster
from fakeapiserver.evidence.timeline import embedded
from fakeapiserver.evidence.timeline.requests import short_name
from fakeapiserver.ui import export
from tests.evidence.timeline.recorded import TIMELINE, of_type, recorded, recorder, records, states, texts
from tests.plain_client import Client

CONFIG_MAPS: Final = "/api/v1/namespaces/default/configmaps"
SECRETS: Final = "/api/v1/namespaces/default/secrets"
ACCOUNTS: Final = "/api/v1/namespaces/default/serviceaccounts"
MARKER: Final = "hunter2-is-the-password"
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with recorded(controllers=("none",)) as cluster:
        yield cluster


@pytest.mark.parametrize(
    ("method", "path", "body", "expected"),
    [
        ("GET", CONFIG_MAPS, None, ("list", "configmaps", "", 200, "", False)),
        ("POST", CONFIG_MAPS, {"metadata": {"name": "a"}}, ("create", "configmaps", "a", 201, "", True)),
        (
            "POST",
            f"{CONFIG_MAPS}?dryRun=All",
            {"metadata": {"name": "a"}},
            ("create", "configmaps", "a", 201, "", False),
        ),
        ("GET", f"{CONFIG_MAPS}/none", None, ("get", "configmaps", "none", 404, "NotFound", False)),
        ("GET", "/version", None, ("get", "", "", 200, "", False)),
        (
            "GET",
            "/apis/apps/v1/namespaces/x/deployments/y/status",
            None,
            ("get", "deployments.apps", "y", 404, "NotFound", False),
        ),
    ],
)
def test_a_request_of_a_client(
    cluster: Cluster, method: str, path: str, body: object, expected: tuple[object, ...]
) -> None:
    Client(cluster).status(method, path, body)
    (request,) = of_type(records(cluster), "request", client="Python-urllib")
    names = ("verb", "r", "name", "status", "reason", "changed")
    assert tuple(request[name] for name in names) == expected
    assert (request["bundled"], request["user"], request["reconcile"]) == (False, "system:apiserver", 0)
    assert request["time"] == 1_800_000_000.0
    assert request["ms"] > 0


def test_the_authorizers_reason(cluster: Cluster) -> None:
    group = "rbac.authorization.k8s.io"
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]
    role = {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": "readers"}, "rules": rules}
    subjects = [{"kind": "User", "name": "jane", "apiGroup": group}]
    reference = {"apiGroup": group, "kind": "ClusterRole", "name": "readers"}
    binding = {**role, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": subjects}
    del binding["rules"]
    cluster.apply([role, binding])
    token = cluster.user_token("jane")
    assert [Client(cluster).status("GET", path, token=token) for path in (CONFIG_MAPS, SECRETS)] == [200, 403]
    allowed, refused = of_type(records(cluster), "request", user="jane")
    assert allowed["why"] == 'RBAC: allowed by ClusterRoleBinding "readers" of ClusterRole "readers" to User "jane"'
    assert (refused["status"], refused["reason"]) == (403, "Forbidden")


@pytest.mark.parametrize(
    ("user", "agent", "bundled", "name"),
    [
        ("kubernetes-admin", "kubectl/v1.36.3 (linux/amd64) kubernetes/abc", False, "kubectl"),
        ("jane", "", False, "jane"),
        ("", "", False, "unknown"),
        (
            "system:serviceaccount:kube-system:deployment-controller",
            "kube-controller-manager/v1",
            True,
            "deployment-controller",
        ),
        ("system:node:node-1", "kubelet/v1", True, "kubelet"),
        ("system:kube-scheduler", "kube-scheduler/v1", True, "kube-scheduler"),
        ("fakeapiserver:ui", "Mozilla/5.0 (X11)", False, "the page"),
        ("fakeapiserver:cluster", "", False, "the test"),
    ],
)
def test_short_names(user: str, agent: str, bundled: bool, name: str) -> None:
    assert short_name(user, agent, bundled=bundled) == name


def test_admission_has_its_steps() -> None:
    with recorded(controllers=("serviceaccount",)) as cluster:
        client = Client(cluster)
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        client.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "strict", "labels": labels}})
        cluster.settle()
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
        client.ask("POST", "/api/v1/namespaces/default/pods", pod)
        assert client.status("POST", "/api/v1/namespaces/strict/pods", pod) == 403
        made, refused = of_type(records(cluster), "request", verb="create", r="pods")
        steps = client.ask("GET", f"{TIMELINE}/requests/{made['seq']}")["admission"]
        refusing = client.ask("GET", f"{TIMELINE}/requests/{refused['seq']}")["admission"]
    assert made["admission"] == ["ServiceAccount", "Priority", "DefaultTolerationSeconds"]
    assert [step["plugin"] for step in steps] == made["admission"]
    assert {"op": "add", "path": "/spec/serviceAccountName", "value": "default"} in steps[0]["patch"]
    assert refusing[-1] == {"plugin": "PodSecurity", "kind": "validating", "patch": []}


def test_a_watch_has_deliveries_and_an_end(cluster: Cluster) -> None:
    client = Client(cluster)
    begun = threading.Event()

    def watch() -> None:
        with client.open("GET", f"{CONFIG_MAPS}?watch=true&resourceVersion={start}&timeoutSeconds=600") as answer:
            begun.set()
            answer.readline()

    start = client.ask("GET", CONFIG_MAPS)["metadata"]["resourceVersion"]
    thread = threading.Thread(target=watch)
    thread.start()
    assert begun.wait(60)
    client.ask("POST", CONFIG_MAPS, {"metadata": {"name": "a"}})
    thread.join(60)

    def has_ended() -> bool:
        return bool(of_type(records(cluster), "watch", ended="client"))

    cluster.eventually(has_ended)
    everything = records(cluster)
    (written,) = of_type(everything, "state", r="configmaps", name="a")
    (ended,) = of_type(everything, "watch", ended="client")
    (request,) = of_type(everything, "request", seq=ended["seq"])
    assert (request["verb"], request["r"], ended["events"]) == ("watch", "configmaps", 1)
    (delivery,) = of_type(everything, "delivery", seq=ended["seq"])
    assert delivery["rev"] == [written["rev"]]


def test_a_watch_over_a_web_socket_has_deliveries_and_an_end(cluster: Cluster) -> None:
    websockets = pytest.importorskip("websockets.sync.client")
    address = f"{cluster.url.replace('https', 'wss')}{CONFIG_MAPS}?watch=true&labelSelector=over=socket"
    context = ssl.create_default_context(cadata=cluster.ca.decode())
    headers = {"Authorization": f"Bearer {cluster.token}"}
    # the first one in a process imports for seconds where the machine is busy
    options = {"origin": "http://localhost", "additional_headers": headers, "open_timeout": 60}
    with websockets.connect(address, ssl=context, **options) as socket:
        labels = {"over": "socket"}
        Client(cluster).ask("POST", CONFIG_MAPS, {"metadata": {"name": "by-socket", "labels": labels}})
        assert json.loads(socket.recv())["object"]["metadata"]["name"] == "by-socket"
        (written,) = of_type(records(cluster), "state", r="configmaps", name="by-socket")
        (request,) = [one for one in of_type(records(cluster), "request", verb="watch") if "socket" in one["query"]]
    (delivery,) = of_type(records(cluster), "delivery", seq=request["seq"])
    assert delivery["rev"] == [written["rev"]]
    cluster.eventually(lambda: bool(of_type(records(cluster), "watch", seq=request["seq"])))
    (ended,) = of_type(records(cluster), "watch", seq=request["seq"])
    assert (ended["events"], ended["ended"]) == (1, "client")


def test_faults_and_the_clock(cluster: Cluster) -> None:
    fault = cluster.faults.add(verb="get", resource="configmaps", status=503)
    assert Client(cluster).status("GET", f"{CONFIG_MAPS}/a") == 503
    fault.remove()
    cluster.clock.advance("5m")
    cluster.clock.start()
    cluster.clock.stop()
    cluster.clock.jump("-1m")
    everything = records(cluster)
    added, removed = of_type(everything, "fault")
    assert (added["change"], added["fault"]["status"], removed["change"]) == ("add", 503, "remove")
    assert added["id"] == removed["id"]
    (struck,) = of_type(everything, "request", status=503)
    assert struck["fault"]
    changes = [(record["change"], record["seconds"]) for record in of_type(everything, "clock")]
    assert changes == [("advance", 300), ("start", 0), ("stop", 0), ("jump", -60)]


@pytest.mark.parametrize("stopped", [True, False])
def test_a_stream_begins_with_the_state_of_the_clock(stopped: bool) -> None:
    with Cluster(controllers=(), ui=True, **({"stopped_at": 1_800_000_000} if stopped else {})) as cluster:
        assert records(cluster)[0]["stopped"] is stopped


def test_nothing_secret_is_in_it(cluster: Cluster) -> None:
    client, encoded = Client(cluster), base64.b64encode(MARKER.encode()).decode()
    applied = {LAST_APPLIED: json.dumps({"data": {"password": encoded}})}
    secret = {"metadata": {"name": "s", "annotations": applied}, "data": {"password": encoded}}
    client.ask("POST", SECRETS, secret)
    client.status("PATCH", f"{SECRETS}/s", {"stringData": {"more": MARKER}}, "application/merge-patch+json")
    assert client.status("POST", SECRETS, {**secret, "metadata": {"name": MARKER.upper()}}) == 422
    client.ask("GET", f"{SECRETS}/s")
    client.ask("GET", SECRETS)
    client.ask("POST", ACCOUNTS, {"metadata": {"name": "robot"}})
    token = client.ask("POST", f"{ACCOUNTS}/robot/token", {"spec": {"audiences": ["x"]}})["status"]["token"]
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    client.ask("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
    client.status("DELETE", f"{SECRETS}/s")
    everything = records(cluster)
    of_secret = of_type(everything, "state", r="secrets", name="s")
    shown = states(cluster, [state["rev"] for state in of_secret])["states"]
    assert [state["object"]["data"] for state in shown.values()] == [
        {"password": "<23 bytes>"},
        {"password": "<23 bytes>", "more": "<23 bytes>"},
        {"password": "<23 bytes>", "more": "<23 bytes>"},
    ]
    sources = recorder(cluster)
    document = cluster._run(lambda: embedded.document(sources))
    hidden = (MARKER, encoded, token, cluster.token, MARKER.upper())
    found = {text for text in texts(json.loads(document)) if any(part in text for part in hidden)}
    assert found == set()
    details: list[Any] = [
        client.ask("GET", f"{TIMELINE}/requests/{record['seq']}") for record in of_type(everything, "request")
    ]
    assert [text for text in texts(details) if any(part in text for part in hidden)] == []
    assert b"<" not in export.page(document).partition(b'id="recording">')[2].partition(b"</script>")[0]


@pytest.mark.parametrize("path", ["", "/requests/1", "/page"])
def test_a_server_that_records_nothing_says_so(path: str) -> None:
    with Cluster(controllers=()) as cluster:
        assert Client(cluster).status("GET", f"{TIMELINE}{path}") == 404


def test_a_cursor_goes_on_and_a_stream_follows(cluster: Cluster) -> None:
    client = Client(cluster)
    last = records(cluster)[-1]["n"]
    assert [record["t"] for record in records(cluster, f"?since={last}")] == ["start"]
    with client.open("GET", f"{TIMELINE}?since={last}&follow=true") as stream:
        assert json.loads(stream.readline())["t"] == "start"
        client.ask("POST", CONFIG_MAPS, {"metadata": {"name": "a"}})
        state = json.loads(stream.readline())
        assert (state["t"], state["name"], state["n"]) == ("state", "a", last + 1)
        assert json.loads(stream.readline())["verb"] == "create"
        cluster._run(restart(cluster))
        assert json.loads(stream.readline())["t"] == "start"
        assert json.loads(stream.readline())["t"] == "kinds"
        assert json.loads(stream.readline())["op"] == "base"


def restart(cluster: Cluster) -> Any:
    async def restarted() -> None:
        recorder(cluster).restart()

    return restarted
