"""The legacy group's strategies do what a real server (v1.36.3) did to the recorded bodies.

- core_created.json: a body, what was stored, the warnings, and the cells its table showed right then
- core_refused.json: a body and the causes of its 422
- core_rows.json: objects as they stood, and their cells
- core_updates.json: a stored object, what was PUT, and what was stored then or the causes of its 422

Admission had its part in what was stored: its fields are left out of the comparison, and what is handed out at random is
compared by its place only.
"""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.schema.builtin import BuiltinType, compile_builtin
from fakeapiserver.apimachinery.timestamp import seconds_of
from fakeapiserver.apis.feature_gates import feature_gates
from fakeapiserver.apis.recorded import VERSIONS
from fakeapiserver.apis.scheme import load
from fakeapiserver.clock import SystemClock
from fakeapiserver.registry.core.service.allocation import (
    Operation,
    plan_addresses,
    plan_new_addresses,
    plan_new_ports,
    plan_ports,
)
from fakeapiserver.registry.core.service.ips import ClusterIPs
from fakeapiserver.registry.core.service.port_record import Recorded
from fakeapiserver.registry.core.service.ports import NodePorts, PortOperation, held_ports
from fakeapiserver.registry.generic.strategy import Strategy
from fakeapiserver.registry.strategies import strategy_for

HERE = Path(__file__).parent
VERSION = "v1.36"
DEFINITIONS = json.loads((VERSIONS / VERSION / "schemas.json").read_bytes())
RESOURCES = {
    gvr.resource: strategy_for(resource, feature_gates(VERSION, {}))
    for gvr, resource in load(VERSION).resources.items()
    if gvr.group == ""
}
CREATED = json.loads((HERE / "core_created.json").read_bytes())
REFUSED = json.loads((HERE / "core_refused.json").read_bytes())
UPDATES = json.loads((HERE / "core_updates.json").read_bytes())
ROWS = json.loads((HERE / "core_rows.json").read_bytes())
KINDS = {
    "configmaps": "ConfigMap",
    "endpoints": "Endpoints",
    "events": "Event",
    "limitranges": "LimitRange",
    "nodes": "Node",
    "persistentvolumeclaims": "PersistentVolumeClaim",
    "persistentvolumes": "PersistentVolume",
    "pods": "Pod",
    "podtemplates": "PodTemplate",
    "replicationcontrollers": "ReplicationController",
    "resourcequotas": "ResourceQuota",
    "secrets": "Secret",
    "serviceaccounts": "ServiceAccount",
    "services": "Service",
}
CLUSTER_SCOPED = ("nodes", "persistentvolumes")
RANDOM = ("clusterIP", "clusterIPs", "nodePort", "healthCheckNodePort")
OF_ADMISSION = ("priority", "preemptionPolicy", "tolerations", "taints", "finalizers", "generation")


def kind(resource: str) -> BuiltinType:
    return compile_builtin(DEFINITIONS, f"io.k8s.api.core.v1.{KINDS[resource]}")


class OneRange:
    """The objects of a cluster with one range of addresses, all of them free."""

    def get(self, resource: str, namespace: str, name: str) -> None:
        return None

    def list(self, resource: str, namespace: str = "") -> list[dict[str, Any]]:
        return [{"metadata": {"name": "kubernetes"}, "spec": {"cidrs": ["10.0.0.0/24"]}}]


def operation(*held: int) -> Operation:
    """The operation of a server that has allocated these ports."""
    ports = NodePorts()
    recorded = Recorded(ports.bits(held), 1, ports.range_text)
    return Operation(("IPv4",), ClusterIPs(OneRange()), PortOperation(ports, dry_run=False, recorded=recorded))


def strategy(resource: str) -> Strategy:
    return RESOURCES[resource].for_server(SystemClock())


def prepared(resource: str, body: dict[str, Any], meta: dict[str, Any]) -> dict[str, Any]:
    """The body as it comes to validation."""
    obj = {"kind": KINDS[resource], "apiVersion": "v1", **copy.deepcopy(body)}
    kind(resource).decode(obj)
    kind(resource).default(obj)
    rules = strategy(resource)
    rules.default(obj, "v1")
    obj["metadata"] |= meta
    if resource == "services":
        allocation = operation()
        plan_new_addresses(allocation, obj)
        plan_new_ports(allocation.ports, obj)
    rules.prepare_for_create(obj)
    return obj


def comparable(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: comparable(item) for key, item in value.items() if key not in OF_ADMISSION}
        return {
            key: "given out" if key in RANDOM and value[key] not in ("None", ["None"]) else kept[key] for key in kept
        }
    if isinstance(value, list):
        return [comparable(item) for item in value]
    return value


def title(case: dict[str, Any]) -> str:
    return f"{case['resource']}-{next(case[key] for key in ('body', 'object', 'sent') if key in case)['metadata'].get('name', '')[:10]}"


@pytest.mark.parametrize("case", CREATED, ids=title)
def test_stores_what_the_server_stores(case: dict[str, Any]) -> None:
    stored = case["stored"]
    system = ("uid", "creationTimestamp", "resourceVersion", "namespace")
    obj = prepared(case["resource"], case["body"], {k: v for k, v in stored["metadata"].items() if k in system})
    assert RESOURCES[case["resource"]].validate(obj) == []
    assert RESOURCES[case["resource"]].warnings_on_create(obj) == case.get("warnings", [])
    del obj["kind"], obj["apiVersion"]
    assert comparable(obj) == comparable(stored)


@pytest.mark.parametrize("case", CREATED, ids=title)
def test_what_is_stored_stays_as_it_is_when_read_again(case: dict[str, Any]) -> None:
    obj = {"kind": KINDS[case["resource"]], "apiVersion": "v1", **copy.deepcopy(case["stored"])}
    before = copy.deepcopy(obj)
    kind(case["resource"]).decode(obj)
    kind(case["resource"]).default(obj)
    RESOURCES[case["resource"]].default(obj, "v1")
    assert obj == before


@pytest.mark.parametrize("case", REFUSED, ids=title)
def test_refuses_what_the_server_refuses(case: dict[str, Any]) -> None:
    rules = strategy(case["resource"])
    namespaced = case["resource"] not in CLUSTER_SCOPED
    try:
        obj = prepared(case["resource"], case["body"], {"namespace": "demo"} if namespaced else {})
    except StatusError as refused:
        messages = [f"{cause['field']}: {cause['message']}" for cause in refused.status["details"]["causes"]]
    else:
        path = field.Path("metadata")
        errors = names.validate_object_meta(obj["metadata"], namespaced, rules.validate_name, path) + rules.validate(
            obj
        )
        messages = [str(error) for error in errors]
    # Go walks maps in any order.
    assert sorted(messages) == sorted(case["causes"])


@pytest.mark.parametrize("case", UPDATES, ids=title)
def test_updates_as_the_server_does(case: dict[str, Any]) -> None:
    resource, old, new = case["resource"], copy.deepcopy(case["old"]), copy.deepcopy(case["sent"])
    rules = strategy(resource)
    has_status = "status" in DEFINITIONS[f"io.k8s.api.core.v1.{KINDS[resource]}"]["properties"]
    rules = replace(rules, reset_fields=("status",) if has_status else ())
    kind(resource).decode(new)
    kind(resource).default(new)
    rules.default(new, "v1")
    try:
        if case["subresource"] == "status":
            rules.prepare_for_status_update(new, old)
            errors = rules.validate_status_update(new, old)
        elif case["subresource"]:
            rules.prepare_for_subresource_update(case["subresource"], new, old)
            errors = []
        else:
            if resource == "services":
                allocation = operation(*held_ports(old))
                plan_addresses(allocation, new, old)
                plan_ports(allocation.ports, new, old)
            rules.prepare_for_update(new, old)
            errors = rules.validate_immutable(new, old) + rules.validate_update(new, old)
    except StatusError as refused:
        messages = [f"{cause['field']}: {cause['message']}" for cause in refused.status["details"]["causes"]]
    else:
        # What follows the first line is a difference of types that only upstream has.
        messages = [str(error).partition("\n")[0] for error in errors]
    assert messages == case.get("causes", [])
    if not messages:
        assert without_revision(comparable(new)) == without_revision(comparable(case["stored"]))


def without_revision(obj: dict[str, Any]) -> dict[str, Any]:
    obj["metadata"].pop("resourceVersion", None)
    return obj


@pytest.mark.parametrize("case", CREATED, ids=title)
def test_prints_new_objects(case: dict[str, Any]) -> None:
    born = seconds_of(case["stored"]["metadata"]["creationTimestamp"]) or 0.0
    cells = RESOURCES[case["resource"]].table_row(case["stored"], born)
    if cells is None:
        meta = case["stored"]["metadata"]
        cells = [meta["name"], meta["creationTimestamp"]]
    if case["resource"] == "events":  # their ages count from times in the body
        cells[0], cells[7] = case["cells"][0], case["cells"][7]
    assert cells == case["cells"]


@pytest.mark.parametrize("case", ROWS, ids=title)
def test_prints_objects_in_every_state(case: dict[str, Any]) -> None:
    born = seconds_of(case["object"]["metadata"]["creationTimestamp"]) or 0.0
    assert RESOURCES[case["resource"]].table_row(case["object"], born) == case["cells"]


@pytest.mark.parametrize(
    ("grace", "node", "phase", "expected"),
    [
        (None, "n", "Running", 30),
        (None, "", "Pending", 0),
        (None, "n", "Failed", 0),
        (None, "n", "Succeeded", 0),
        (5, "n", "Running", 5),
        (0, "n", "Running", 0),
        (-3, "n", "Running", 1),
        (5, "", "Pending", 0),
    ],
)
def test_pods_are_given_time_to_end(grace: int | None, node: str, phase: str, expected: int) -> None:
    obj = {"metadata": {}, "spec": {"nodeName": node, "terminationGracePeriodSeconds": 30}, "status": {"phase": phase}}
    assert RESOURCES["pods"].grace_period(obj, grace) == expected


def test_fields_that_pods_are_selected_by() -> None:
    pods = RESOURCES["pods"]
    obj = {"metadata": {"name": "a", "namespace": "b"}, "spec": {"nodeName": "n", "hostNetwork": True}}
    fields, labels = pods.fields_of(obj), pods.field_labels(namespaced=True)
    assert (fields["spec.nodeName"], fields["spec.hostNetwork"], fields["status.phase"]) == ("n", "true", "")
    assert labels["spec.host"] == "spec.nodeName"
    assert fields.keys() <= labels.keys()
    assert "metadata.namespace" not in RESOURCES["nodes"].field_labels(namespaced=False)


def test_a_dry_run_makes_up_ports_above_zero() -> None:
    ports = PortOperation(NodePorts(), dry_run=True)
    assert ports.allocate_next() == 32769
    ports = PortOperation(NodePorts(), dry_run=True)
    ports.allocate(-1)
    assert ports.allocate_next() == 1
