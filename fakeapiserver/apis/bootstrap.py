"""The objects a fresh server has: namespaces, default roles and bindings, priority classes, flow schemas, API services ...

Upstream: k8s.io/kubernetes/pkg/controlplane, pkg/registry/{rbac,scheduling}/rest, plugin/pkg/auth/authorizer/rbac/bootstrappolicy
"""

import json
from collections.abc import Iterator
from typing import Any

from fakeapiserver.apis import removed_versions
from fakeapiserver.apis.recorded import VERSIONS, read_table
from fakeapiserver.apis.scheme import Scheme


def objects(scheme: Scheme) -> Iterator[dict[str, Any]]:
    """Fresh copies in the order a real server makes them, each parsed as it is asked for.

    They have no uid, resourceVersion, creationTimestamp, managedFields times or condition times: the caller adds them.
    Not among them: leases, and Endpoints and EndpointSlice of the service `kubernetes`, which hold the server's own address.
    """
    gated = _gated(scheme)
    for line in (VERSIONS / scheme.version / "bootstrap.json").read_bytes().splitlines()[1:-1]:
        obj = json.loads(line.rstrip(b","))
        if obj["kind"] == "APIService" and obj["spec"]["version"] not in scheme.groups.get(
            obj["spec"].get("group", ""), ()
        ):
            continue
        yield gated.pop(_key(obj), obj)
        yield from removed_versions.services_beside(obj, scheme.groups)
    yield from gated.values()


def _gated(scheme: Scheme) -> dict[tuple[str, str, str], dict[str, Any]]:
    """Returns the objects that switched feature gates add or change, by kind, namespace and name.

    A role that several gates change has the rules of each.
    """
    flipped = [(gate, scheme.features.enabled(gate)) for gate in scheme.features.flipped()]
    if not flipped:
        return {}
    recorded = read_table(scheme.version, "bootstrap_gated.json")
    rows: dict[tuple[str, str, str], dict[str, Any]] = {}
    for gate, on in flipped:
        for obj in recorded.get(gate if on else f"-{gate}", ()):
            first = rows.setdefault(_key(obj), obj)
            if "rules" in first:
                first["rules"] += [rule for rule in obj["rules"] if rule not in first["rules"]]
    return rows


def _key(obj: dict[str, Any]) -> tuple[str, str, str]:
    return obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
