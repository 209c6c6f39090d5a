"""The functions of stages' templates (upstream: sigs.k8s.io/kwok/pkg/utils/gotpl/funcs.go)."""

import ipaddress
import json
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final, Protocol

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.serializer import yaml
from fakeapiserver.languages.gotemplate import Function, function
from fakeapiserver.languages.gotemplate.sprig.functions import sprig_functions
from fakeapiserver.languages.gotemplate.sprig.json_text import to_json
from fakeapiserver.languages.gotemplate.times import rfc3339_nano
from fakeapiserver.languages.gotemplate.values import Number
from fakeapiserver.nodes.stages.stage import NODE, POD, Functions, ResourceRef

# Of KWOK, whose behaviour this is.
VERSION: Final = "0.8.0"
_CONDITIONS: Final = (
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("NetworkUnavailable", "False", "RouteCreated", "RouteController created a route"),
)


class Addresses(Protocol):
    """The addresses of nodes and pods."""

    def of_node(self, name: str) -> list[str]:
        """Returns the node's addresses, one of each family; empty if there is no such node."""

    def of_pod(self, node: str, uid: str) -> list[str]:
        """The same each time it is asked; none where the node isn't there."""


def _quote(value: Any) -> str:
    text = to_json(value)
    return text if text.startswith('"') else json.dumps(text, ensure_ascii=False)


def _plain(value: Any) -> Any:
    """Numbers as numbers."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [*map(_plain, value)]
    return json.loads(value) if isinstance(value, Number) else value


def _yaml(value: Any, *indent: int) -> str:
    text = yaml.encode(_plain(value)).decode()
    if len(indent) == 1 and indent[0] > 0:
        text = f"\n{text}".replace("\n", "\n" + " " * (min(indent[0], 100) * 2))
    return text


def _node_conditions() -> list[Any]:
    return [
        {
            "type": kind,
            "status": status,
            "lastHeartbeatTime": None,
            "lastTransitionTime": None,
            "reason": reason,
            "message": message,
        }
        for kind, status, reason, message in _CONDITIONS
    ]


def functions_for(now: Callable[[], float], random: Random, addresses: Addresses) -> Callable[[ResourceRef], Functions]:
    """By whose stages they are."""
    started = rfc3339_nano(now())

    def of_node(name: str) -> str:
        return next(iter(addresses.of_node(name)), "")

    def all_of_node(name: str) -> list[Any]:
        return addresses.of_node(name)

    def of_pod(node: str, host_network: bool, uid: str, name: str, namespace: str) -> str:
        return next(iter(all_of_pod(node, host_network, uid, name, namespace)), "")

    def all_of_pod(node: str, host_network: bool, uid: str, name: str, namespace: str) -> list[Any]:
        return addresses.of_node(node) if host_network else addresses.of_pod(node, uid)

    common = sprig_functions(now, random) | _named(
        {
            "Quote": _quote,
            "Now": lambda: rfc3339_nano(now()),
            "StartTime": lambda: started,
            "YAML": _yaml,
            "Version": lambda: VERSION,
            "NodeConditions": _node_conditions,
        }
    )
    pods = common | _named(
        {
            "NodeIPWith": of_node,
            "NodeIPsWith": all_of_node,
            "PodIPWith": of_pod,
            "PodIPsWith": all_of_pod,
            # what these are is known with the object: `functions_about`
            "NodeIP": lambda: "",
            "PodIP": lambda: "",
        }
    )
    nodes = common | _named({"NodeIP": lambda: "", "NodeName": lambda: "", "NodePort": lambda: 0})
    sets: Mapping[ResourceRef, Functions] = {POD: pods, NODE: nodes}
    return lambda ref: sets.get(ref, common)


def functions_about(obj: Object, ref: ResourceRef, addresses: Addresses) -> Functions:
    """Returns the functions that depend on the object.

    KWOK has one address and name for all its nodes, here each has its own; the kubelet's port is this server's.
    """
    metadata = obj["metadata"]
    if ref == NODE:
        name = metadata["name"]
        return _named({"NodeIP": lambda: next(iter(addresses.of_node(name)), ""), "NodeName": lambda: name})
    if ref == POD:
        node = (obj.get("spec") or {}).get("nodeName", "")
        return _named(
            {
                "NodeIP": lambda: next(iter(addresses.of_node(node)), ""),
                "PodIP": lambda: next(iter(addresses.of_pod(node, metadata.get("uid", ""))), ""),
            }
        )
    return {}


def _named(calls: Mapping[str, Callable[..., Any]]) -> dict[str, Function]:
    return {name: function(name, call) for name, call in calls.items()}


def host_addresses(node: Object) -> list[str]:
    """Internal ones before external ones, one of each family (upstream: getNodeHostIPs)."""
    addresses: list[str] = []
    rows = (node.get("status") or {}).get("addresses") or ()
    for kind in ("InternalIP", "ExternalIP"):
        for row in rows:
            if row.get("type") == kind and _is_address(row.get("address", "")):
                addresses.append(row["address"])
    other = [address for address in addresses[1:] if (":" in address) != (":" in addresses[0])]
    return addresses[:1] + other[:1]


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
