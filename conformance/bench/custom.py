"""Custom resources: a large one with rules that is validated, and many operators' definitions at once."""

import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from typing import Any, Final

from conformance.exchange import Answer, Client

Object = dict[str, Any]

GROUP: Final = "bench.example.com"
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
COLLECTION: Final = f"/apis/{GROUP}/v1/namespaces/default/routers"
_ROUTES: Final = 500
_AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_DOCUMENTS: Final = (
    ("definitions_apis", "/apis", _AGGREGATED),
    ("definitions_v3", "/openapi/v3", "application/json"),
    ("definitions_v2", "/openapi/v2", "application/json"),
)


def definition() -> Object:
    """Routes with nested lists, patterns, enumerations, keyed lists and CEL rules on three levels."""
    port = {
        "type": "object",
        "required": ["number"],
        "properties": {
            "number": {"type": "integer", "minimum": 1, "maximum": 65535},
            "protocol": {"type": "string", "enum": ["TCP", "UDP"], "default": "TCP"},
        },
        "x-kubernetes-validations": [{"rule": "self.protocol != 'UDP' || self.number > 1000"}],
    }
    backend = {
        "type": "object",
        "required": ["host"],
        "properties": {
            "host": {"type": "string", "maxLength": 253, "pattern": "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"},
            "weight": {"type": "integer", "default": 1, "minimum": 0},
            "ports": {"type": "array", "maxItems": 4, "items": port},
        },
    }
    route = {
        "type": "object",
        "required": ["name", "backends"],
        "properties": {
            "name": {"type": "string", "maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"},
            "path": {"type": "string", "maxLength": 1024},
            "backends": {"type": "array", "maxItems": 4, "items": backend},
            "headers": {
                "type": "object",
                "maxProperties": 4,
                "additionalProperties": {"type": "string", "maxLength": 128},
            },
        },
        "x-kubernetes-validations": [
            {"rule": "!has(self.path) || self.path.startsWith('/')", "message": "a path begins with /"},
            {"rule": "self.backends.exists(b, b.weight > 0)", "message": "one backend must have a weight"},
        ],
    }
    routes = {
        "type": "array",
        "maxItems": _ROUTES,
        "items": route,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }
    spec = {
        "type": "object",
        "properties": {"routes": routes},
        "x-kubernetes-validations": [{"rule": f"size(self.routes) <= {_ROUTES}"}],
    }
    schema = {"type": "object", "properties": {"spec": spec, "status": {"type": "object"}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "routers", "kind": "Router"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"routers.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def large_object(name: str) -> Object:
    """About 300 KiB."""
    routes = [
        {
            "name": f"route-{number}",
            "path": f"/api/v1/tenants/{number}/services",
            "headers": {f"x-header-{key}": f"value-{number}-{key}" * 2 for key in range(4)},
            "backends": [
                {
                    "host": f"backend-{number}-{index}.namespace-{number}.svc.cluster.local",
                    "ports": [{"number": 8080 + key, "protocol": "UDP" if key % 2 else "TCP"} for key in range(2)],
                }
                for index in range(3)
            ],
        }
        for number in range(_ROUTES)
    ]
    return {"apiVersion": f"{GROUP}/v1", "kind": "Router", "metadata": {"name": name}, "spec": {"routes": routes}}


def validate(client: Client, repeats: int) -> float:
    """Median milliseconds of a dry run's creation of the large object."""
    client.send({"method": "POST", "path": DEFINITIONS, "body": definition()}, [])
    _wait(client, {"method": "GET", "path": COLLECTION}, lambda answer: answer["status"] == 200)
    request = {"method": "POST", "path": f"{COLLECTION}?dryRun=All", "body": large_object("x")}
    _wait(client, request, lambda answer: answer["status"] == 201)
    return 1000 * statistics.median(_seconds(client, request) for _ in range(repeats))


def many(originals: Sequence[Object], count: int) -> Iterator[Object]:
    """Yields `count` definitions: the originals, then copies of them in other groups."""
    for number in range(count):
        found: Object = deepcopy(originals[number % len(originals)])
        spec = found["spec"]
        spec["group"] = f"n{number // len(originals)}.{spec['group'].replace('k8s.io', 'example.com')}"
        spec.pop("conversion", None)
        found["metadata"] = {"name": f"{spec['names']['plural']}.{spec['group']}"}
        yield found


def define(client: Client, definitions: Iterable[Object]) -> Iterator[tuple[str, float]]:
    """Yields (row, seconds): applies definitions, waits until discovery lists all of them, and reads each of the documents."""
    started, last = time.monotonic(), {}
    for last in definitions:
        path = f"{DEFINITIONS}/{last['metadata']['name']}?fieldManager=bench"
        client.send({"method": "PATCH", "path": path, "type": "application/apply-patch+yaml", "body": last}, [])
    yield "definitions_apply", time.monotonic() - started
    version = next(version["name"] for version in last["spec"]["versions"] if version["served"])
    own = f"apis/{last['spec']['group']}/{version}"
    index = {"method": "GET", "path": "/openapi/v3"}
    _wait(client, index, lambda answer: own in answer["body"]["paths"])
    yield "definitions_served", time.monotonic() - started
    for row, path, accept in _DOCUMENTS:
        yield row, _seconds(client, {"method": "GET", "path": path, "accept": accept})


def _wait(client: Client, request: Object, ready: Callable[[Answer], bool]) -> None:
    while not ready(client.send(request, [])):
        time.sleep(0.1)


def _seconds(client: Client, request: Object) -> float:
    started = time.perf_counter()
    client.send(request, [])
    return time.perf_counter() - started
