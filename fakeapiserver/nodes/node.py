"""A simulated node as an object (upstream: pkg/kubelet/nodestatus/setters.go, kubelet_node_status.go). Pure."""

import ipaddress
from collections.abc import Iterable, Mapping
from typing import Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import rfc3339, rfc3339_micro
from fakeapiserver.component_helpers.objects import node_reference
from fakeapiserver.nodes.pod_lifecycle.eviction import Pressure

LEASE_NAMESPACE: Final = "kube-node-lease"
LEASE_SECONDS: Final = 40
RENEW_SECONDS: Final = 10.0
STATUS_SECONDS: Final = 300.0
_SAFETY_SECONDS: Final = 5.0
CAPACITY: Final[Mapping[str, str]] = {
    "cpu": "32",
    "memory": "256Gi",
    "pods": "1000",
    "ephemeral-storage": "1Ti",
    "hugepages-1Gi": "0",
    "hugepages-2Mi": "0",
}
# Used by no network, with room for 4,094 pods on each node: shared address space (RFC 6598) for the first 1,024 nodes, reserved
# addresses (RFC 1112) for the others.
_PODS_PER_NODE: Final = 1 << 12
_FIRST_PODS: Final = ipaddress.IPv4Network("100.64.0.0/10")
_FIRST_NODES: Final = _FIRST_PODS.num_addresses // _PODS_PER_NODE
_OTHER_PODS: Final = ipaddress.IPv4Network("240.0.0.0/4")
MAX_NODES: Final = 10_000
_HEALTHY: Final = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


def name_of(number: int) -> str:
    """`node-1` is the first."""
    return f"node-{number}"


def renew_slack(grace_period: float) -> float:
    """Returns the seconds by which renewals may be late while a test advances the clock.

    The node isn't considered lost before `grace_period` seconds. When the clock rests, due renewals are done.
    """
    return max(0.0, grace_period - RENEW_SECONDS - _SAFETY_SECONDS)


def address_of(number: int) -> str:
    """Returns the node's address; no server listens there."""
    return f"172.18.{number // 250}.{number % 250 + 2}"


def pod_range(number: int) -> ipaddress.IPv4Network:
    """Returns the range of the node's pod addresses."""
    place, pods = (number - 1, _FIRST_PODS) if number <= _FIRST_NODES else (number - 1 - _FIRST_NODES, _OTHER_PODS)
    return ipaddress.IPv4Network((int(pods.network_address) + place * _PODS_PER_NODE, 20))


def addresses_of(number: int, *, dual_stack: bool) -> list[str]:
    """Returns the node's addresses, one per IP family; no server listens there."""
    return [address_of(number), *([f"fd00:18::{number:x}"] if dual_stack else [])]


def pod_ranges(number: int, *, dual_stack: bool) -> list[str]:
    """Returns the ranges of the node's pod addresses in the order of the IP families."""
    return [str(pod_range(number)), *([f"fd00:64:0:{number:x}::/64"] if dual_stack else [])]


def node(
    number: int,
    now: float,
    *,
    ready: bool = True,
    dual_stack: bool = False,
    endpoint: tuple[str, int] | None = None,
    version: str,
) -> Object:
    """Returns a Node as a kubelet of `version` registers it; without conditions if it isn't `ready`."""
    name = name_of(number)
    labels = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
    }
    told = status(number, now, dual_stack=dual_stack, endpoint=endpoint, version=version)
    ranges = pod_ranges(number, dual_stack=dual_stack)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
        },
        "spec": {"podCIDR": ranges[0], "podCIDRs": ranges},
        "status": told if ready else {key: value for key, value in told.items() if key != "conditions"},
    }


def conditions(pressures: Iterable[Pressure] = (), *, shuts_down: bool = False) -> list[tuple[str, str, str, str]]:
    """Types, status, reasons and messages."""
    low = {
        pressure.condition: (pressure.condition, "True", pressure.reason, pressure.message) for pressure in pressures
    }
    if shuts_down:
        low["Ready"] = ("Ready", "False", "KubeletNotReady", "node is shutting down")
    return [low.get(healthy[0], healthy) for healthy in _HEALTHY]


def unallocatable(node_status: Object) -> dict[str, str]:
    """Returns the extended resources in a node's capacity that can't be allocated yet, e.g. `{"example.com/dongle": "4"}`.

    A user adds them to the capacity, and the kubelet makes them allocatable (upstream: pkg/kubelet/nodestatus/setters.go, MachineInfo).
    Extended resources that only `allocatable` has are kept here, where upstream's kubelet removes them.
    """
    allocatable = node_status.get("allocatable") or {}
    capacity: dict[str, str] = node_status.get("capacity") or {}
    return {name: text for name, text in capacity.items() if "/" in name and allocatable.get(name) != text}


def status(
    number: int,
    now: float,
    old: Object | None = None,
    *,
    told: Iterable[tuple[str, str, str, str]] = _HEALTHY,
    dual_stack: bool = False,
    endpoint: tuple[str, int] | None = None,
    version: str,
) -> Object:
    """With conditions, `told` as `conditions` has them, whose transition is that of `old` where they are as they were. `endpoint`:
    where its kubelet answers."""
    since = {row["type"]: row for row in (old or {}).get("conditions") or ()}
    addresses = [{"type": "InternalIP", "address": text} for text in addresses_of(number, dual_stack=dual_stack)]
    if endpoint is None:
        addresses.append({"type": "Hostname", "address": name_of(number)})
    else:  # no Hostname: its name can't be resolved, and an API server would try it first
        addresses = [{"type": "InternalIP", "address": endpoint[0]}]
    return {
        "capacity": dict(CAPACITY),
        "allocatable": dict(CAPACITY),
        "addresses": addresses,
        "conditions": [
            {
                "type": kind,
                "status": value,
                "reason": reason,
                "message": message,
                "lastHeartbeatTime": rfc3339(now),
                "lastTransitionTime": since[kind]["lastTransitionTime"]
                if kind in since and since[kind]["status"] == value
                else rfc3339(now),
            }
            for kind, value, reason, message in told
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250 if endpoint is None else endpoint[1]}},
        "nodeInfo": {
            "architecture": "amd64",
            "bootID": "",
            "containerRuntimeVersion": "containerd://2.2.0",
            "kernelVersion": "6.12.0",
            "kubeProxyVersion": "",
            "kubeletVersion": version,
            "machineID": "",
            "operatingSystem": "linux",
            "osImage": "fakeapiserver",
            "systemUUID": "",
        },
    }


def lease(name: str, uid: str, now: float) -> Object:
    """Returns the node's Lease."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": LEASE_NAMESPACE, "ownerReferences": [node_reference(name, uid)]},
        "spec": {
            "holderIdentity": name,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": rfc3339_micro(now),
        },
    }
