"""Kubelets in other processes: tests which address of a node is called, and the errors of unreachable nodes."""

from typing import Any

import pytest

from fakeapiserver import Cluster
from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.client import synchronous
from fakeapiserver.client.errors import StatusError as Refused
from fakeapiserver.server.proxies.kubelet_client import ADDRESS_TYPES, KubeletClient

Object = dict[str, Any]


def node(port: int = 0, **addresses: str) -> Object:
    known = [{"type": kind, "address": address} for kind, address in addresses.items()]
    endpoints = {"daemonEndpoints": {"kubeletEndpoint": {"Port": port}}} if port else {}
    return {"status": {"addresses": known, **endpoints}}


@pytest.mark.parametrize(
    ("types", "found", "authority"),
    [
        (ADDRESS_TYPES, node(InternalIP="10.0.0.3", Hostname="one"), "one:10250"),
        (("InternalIP",), node(InternalIP="10.0.0.3", Hostname="one"), "10.0.0.3:10250"),
        (("InternalIP",), node(1234, InternalIP="fd00::3"), "[fd00::3]:1234"),
    ],
)
def test_where_a_kubelet_is(types: tuple[str, ...], found: Object, authority: str) -> None:
    assert KubeletClient(address_types=types).authority(found) == authority


def test_an_address_of_a_type_that_is_wanted_is_needed() -> None:
    with pytest.raises(StatusError, match=r"no preferred addresses found; known addresses: \[\{Hostname one\}\]"):
        KubeletClient(address_types=("InternalIP",)).check_addresses(node(Hostname="one"))


def test_no_kubelet_answers() -> None:
    with Cluster() as cluster, synchronous.connect(cluster.kubeconfig) as client:
        made = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "far"}}
        nodes = client.resource("nodes")
        nodes.create(made)
        nodes.patch("far", node(1, InternalIP="127.0.0.1"), "status")
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
        spec = {"nodeName": "far", "containers": [{"name": "c", "image": "x"}]}
        client.resource("pods", "default").create({**pod, "spec": spec})
        refused = "dial tcp 127.0.0.1:1: connect: connection refused"
        with pytest.raises(Refused) as raised:
            b"".join(client.logs("p"))
        assert str(raised.value).endswith(f'Get "https://127.0.0.1:1/containerLogs/default/p/c": {refused}')
        with pytest.raises(Refused) as raised:
            client.run("p", ["id"])
        url = "https://127.0.0.1:1/exec/default/p/c?command=id&error=1&output=1"
        assert str(raised.value).endswith(f'Internal error occurred: error sending request: Post "{url}": {refused}')
