"""`fakeapiserver nodes`: simulated nodes and a scheduler for a server of another process."""

import asyncio
import json
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from conformance.bench.servers import free_port
from fakeapiserver import Cluster
from fakeapiserver.apimachinery.gvk import GroupVersionResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.cli.arguments import UsageError
from fakeapiserver.cli.nodes import command as nodes
from fakeapiserver.client import kubeconfig, streams, synchronous, wait
from fakeapiserver.client.dynamic import DynamicClient
from fakeapiserver.client.errors import StatusError
from fakeapiserver.client.rest import RESTClient

PODS = GroupVersionResource("", "v1", "pods")
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"containers": [{"name": "c", "image": "x"}]},
}

SCRAPER = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: scraper}
rules: [{apiGroups: [""], resources: [nodes/metrics], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: scraper}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: scraper}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: scraper}]
"""


def test_flags() -> None:
    options = nodes.parse(["--kubeconfig=k", "--nodes", "5", "--scheduler=false", "--control-port=8080"])
    assert (options.kubeconfig, options.nodes, options.scheduler, options.control_port) == (
        "k",
        5,
        False,
        8080,
    )


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--node=3", "unknown flag: --node"),
        ("--nodes=some", '--nodes: "some" is not a number from 0 to 10000'),
    ],
)
def test_a_wrong_command_line_is_refused(argument: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        nodes.parse([argument])
    assert str(raised.value) == message


@contextmanager
def _simulated(cluster: Cluster, *flags: str) -> Iterator[None]:
    command = [sys.executable, "-m", "fakeapiserver", "nodes", f"--kubeconfig={cluster.kubeconfig}", *flags]
    process = subprocess.Popen(command)
    try:
        yield
    finally:
        process.terminate()
        assert process.wait(60) == 0


async def _pod(config: str, condition: str) -> Object:
    """`web`, which is made, once a container of it is in this state."""
    async with RESTClient(kubeconfig.load(config)) as rest:
        pods = DynamicClient(rest).resource(PODS, "default")
        await pods.create(POD)

        def holds(pod: Object | None) -> bool:
            statuses = (pod or {}).get("status", {}).get("containerStatuses") or ()
            return any(condition in json.dumps(status["state"]) for status in statuses)

        found = await wait.until(pods, holds, name="web", timeout=120)
        assert found is not None
        return found


def test_pods_live_on_nodes_of_another_process() -> None:
    with Cluster(controllers=("node-lifecycle-controller",)) as cluster:
        with _simulated(cluster, "--nodes=1"):
            pod = asyncio.run(_pod(cluster.kubeconfig, "running"))
        assert (pod["spec"]["nodeName"], pod["status"]["phase"]) == ("node-1", "Running")
        assert {row["manager"] for row in pod["metadata"]["managedFields"]} >= {"kubelet"}


def test_what_containers_do_is_scripted_over_http() -> None:
    port = free_port()
    with (
        Cluster(controllers=("node-lifecycle-controller",)) as cluster,
        _simulated(cluster, f"--control-port={port}"),
    ):
        asyncio.run(_node(cluster.kubeconfig))
        assert _control(port, {"pull_error": "no such image"}, cluster.token) == 201
        pod = asyncio.run(_pod(cluster.kubeconfig, "ImagePull"))
        assert "no such image" in json.dumps(pod["status"])


def test_the_server_asks_their_kubelets() -> None:
    kubelets, control = free_port(), free_port()
    with (
        Cluster(controllers=("node-lifecycle-controller",)) as cluster,
        _simulated(cluster, f"--control-port={control}", f"--kubelet-port={kubelets}", "--nodes=1"),
        synchronous.connect(cluster.kubeconfig) as client,
    ):
        asyncio.run(_pod(cluster.kubeconfig, "running"))
        script = {"log": "one\ntwo\n", "exec": {"fail": {"stderr": "no", "exit_code": 3}}}
        assert _control(control, script, cluster.token) == 201
        assert b"".join(client.logs("web", tail_lines=1)) == b"two\n"
        assert client.run("web", ["fail"]) == streams.Completed(3, b"", b"no")
        with pytest.raises(StatusError, match="address not allowed"):
            client.request("GET", "/api/v1/nodes/node-1/proxy/healthz")
        with pytest.raises(StatusError, match="container gone is not valid for pod web"):
            b"".join(client.logs("web", container="gone"))


def test_both_ports_ask_the_server_who_may_do_what() -> None:
    kubelets, control = free_port(), free_port()
    script: Object = {"log": "one"}
    with (
        Cluster(controllers=("node-lifecycle-controller",)) as cluster,
        _simulated(cluster, f"--control-port={control}", f"--kubelet-port={kubelets}", "--nodes=1"),
    ):
        asyncio.run(_node(cluster.kubeconfig))
        scraper, stranger = cluster.user_token("scraper"), cluster.user_token("stranger")
        cluster.apply(SCRAPER)
        assert _get(kubelets, "/metrics/resource", scraper)[0] == 200
        assert _get(kubelets, "/healthz", cluster.token) == (200, "ok")
        assert _get(kubelets, "/pods", "") == (401, "Unauthorized")
        assert _get(kubelets, "/pods", "unknown") == (401, "Unauthorized")
        forbidden = "Forbidden (user=scraper, verb=get, resource=nodes, subresource(s)=[pods proxy])"
        assert _get(kubelets, "/pods", scraper) == (403, forbidden)
        assert _get(kubelets, "/metrics/resource", stranger)[0] == 403
        assert [_control(control, script, token) for token in ("", "unknown", stranger)] == [401, 401, 403]
        assert _control(control, script, cluster.token, Host="example.com") == 403
        assert _control(control, script, cluster.token, Origin="https://example.com") == 403


def _sent(request: urllib.request.Request, token: str) -> tuple[int, str]:
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, context=ssl._create_unverified_context()) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def _get(port: int, path: str, token: str) -> tuple[int, str]:
    return _sent(urllib.request.Request(f"https://127.0.0.1:{port}{path}"), token)


def _control(port: int, script: Object, token: str, **headers: str) -> int:
    """Sends a script to the control, and returns the answer's status."""
    headers = {"Content-Type": "application/json", **headers}
    url = f"https://127.0.0.1:{port}/fakeapiserver/scripts"
    return _sent(urllib.request.Request(url, json.dumps(script).encode(), headers), token)[0]


async def _node(config: str) -> None:
    async with RESTClient(kubeconfig.load(config)) as rest:
        found = DynamicClient(rest).resource(GroupVersionResource("", "v1", "nodes"))
        await wait.until(found, lambda node: node is not None, name="node-1", timeout=120)
