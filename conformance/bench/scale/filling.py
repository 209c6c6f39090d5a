"""Fills an etcd with pods and nodes as API servers write them: copies of objects that a server has written, with other names and uids.

A hundred thousand objects are there within seconds, where clients of a server would need minutes. Any API server on that etcd serves them.
"""

import base64
import json
import urllib.request
from collections.abc import Iterable, Iterator
from typing import Any, Final

from conformance.exchange import Client

# etcd allows 128 operations in a transaction by default.
_TRANSACTION: Final = 100
_PODS: Final = "/api/v1/namespaces/default/pods"
_NODES: Final = "/api/v1/nodes"
# Parts of the first objects that differ in each copy. All copies of a part are as long as the part, so that protobuf stays protobuf.
_POD: Final = "pod-000000"
_NODE: Final = "node-00000"
_TENTH: Final = "tenth-0"
_NOW: Final = "2026-01-01T00:00:00Z"


def pod_name(number: int) -> str:
    return f"pod-{number:06d}"


def fill(client: Client, etcd: str, pods: int, nodes: int) -> None:
    """Creates one pod and one node by the server, and copies both until there are `pods` and `nodes`; `etcd` is its URL.

    Pods have the label `tenth`, with the values `tenth-0` to `tenth-9`. Raises OSError and ValueError.
    """
    node = _created(client, _NODES, _node())
    pod = _created(client, _PODS, _pod())
    copies = _copies(_stored(etcd, f"/registry/minions/{_NODE}"), node["metadata"]["uid"], nodes, _NODE)
    _put(etcd, (("/registry/minions/" + _numbered(_NODE, number), value) for number, value in copies))
    value = _stored(etcd, f"/registry/pods/default/{_POD}")
    puts = (
        (f"/registry/pods/default/{pod_name(number)}", _moved(copy, number, nodes))
        for number, copy in _copies(value, pod["metadata"]["uid"], pods, _POD)
    )
    _put(etcd, puts)


def _created(client: Client, collection: str, obj: dict[str, Any]) -> dict[str, Any]:
    """Creates the object, and then writes its status."""
    answer = client.send({"method": "POST", "path": collection, "body": obj}, [])
    if answer["status"] != 201:
        raise ValueError(f"POST {collection}: {answer}")
    path = f"{collection}/{obj['metadata']['name']}/status"
    status = {
        "method": "PATCH",
        "path": path,
        "type": "application/merge-patch+json",
        "body": {"status": obj["status"]},
    }
    created: dict[str, Any] = client.send(status, [])["body"]
    return created


def _copies(value: bytes, uid: str, count: int, name: str) -> Iterator[tuple[int, bytes]]:
    """Yields the numbers from 1 to `count`, without the last, each with the value under its name and a uid of its own."""
    for number in range(1, count):
        copy = value.replace(name.encode(), _numbered(name, number).encode())
        yield number, copy.replace(uid.encode(), f"{number:08x}{uid[8:]}".encode())


def _moved(value: bytes, number: int, nodes: int) -> bytes:
    """The pod on one of the nodes, with one of ten values of its label."""
    moved = value.replace(_NODE.encode(), _numbered(_NODE, number % nodes).encode())
    return moved.replace(_TENTH.encode(), f"tenth-{number % 10}".encode())


def _numbered(name: str, number: int) -> str:
    prefix, _, digits = name.rpartition("-")
    return f"{prefix}-{number:0{len(digits)}d}"


# -------------------------------------------------------------------------- etcd, by its JSON gateway


def _stored(etcd: str, key: str) -> bytes:
    (found,) = _call(etcd, "range", {"key": _text(key.encode())})["kvs"]
    return base64.b64decode(found["value"])


def _put(etcd: str, pairs: Iterable[tuple[str, bytes]]) -> None:
    batch: list[dict[str, Any]] = []
    for key, value in pairs:
        batch.append({"requestPut": {"key": _text(key.encode()), "value": _text(value)}})
        if len(batch) == _TRANSACTION:
            _call(etcd, "txn", {"success": batch})
            batch = []
    if batch:
        _call(etcd, "txn", {"success": batch})


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _call(etcd: str, method: str, body: dict[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(f"{etcd}/v3/kv/{method}", json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=60) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


# -------------------------------------------------------------------------- the objects


def _pod() -> dict[str, Any]:
    """A running pod, as a Deployment's pods are."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d4f8c7b6d", "controller": True}
    container = {
        "name": "web",
        "image": "registry.example.com/shop/web:1.27.3",
        "ports": [{"name": "http", "containerPort": 8080}],
        "env": [
            {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "LEVEL", "value": "info"},
        ],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 5},
        "volumeMounts": [{"name": "cache", "mountPath": "/var/cache/web"}],
    }
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    running = {
        "name": "web",
        "image": container["image"],
        "imageID": "registry.example.com/shop/web@sha256:" + "0123456789abcdef" * 4,
        "containerID": "containerd://" + "fedcba9876543210" * 4,
        "ready": True,
        "started": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": _NOW}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": _POD,
            "generateName": "pod-",
            "labels": {"app": "bench", "pod-template-hash": "5d4f8c7b6d", "tenth": _TENTH},
            "ownerReferences": [owner | {"uid": "5f4d1c8e-0000-4000-8000-000000000001", "blockOwnerDeletion": True}],
        },
        "spec": {
            "nodeName": _NODE,
            "containers": [container],
            "volumes": [{"name": "cache", "emptyDir": {}}],
            "tolerations": [{"key": "example.com/spot", "operator": "Exists", "effect": "NoSchedule"}],
        },
        "status": {
            "phase": "Running",
            "hostIP": "10.1.0.1",
            "podIP": "10.2.0.1",
            "podIPs": [{"ip": "10.2.0.1"}],
            "startTime": _NOW,
            "conditions": [{"type": kind, "status": "True", "lastTransitionTime": _NOW} for kind in kinds],
            "containerStatuses": [running],
        },
    }


def _node() -> dict[str, Any]:
    amounts = {"cpu": "32", "memory": "256Gi", "pods": "110"}
    kinds = ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    conditions = [
        {
            "type": kind,
            "status": str(kind == "Ready"),
            "reason": f"Kubelet{kind}",
            "message": "kubelet reports this condition",
            "lastHeartbeatTime": _NOW,
            "lastTransitionTime": _NOW,
        }
        for kind in kinds
    ]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": _NODE, "labels": {"kubernetes.io/hostname": _NODE, "topology.kubernetes.io/zone": "a"}},
        "spec": {"podCIDR": "10.2.0.0/24", "podCIDRs": ["10.2.0.0/24"]},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": conditions,
            "addresses": [{"type": "InternalIP", "address": "10.1.0.1"}, {"type": "Hostname", "address": _NODE}],
        },
    }
