"""The objects a fresh server has: namespaces, default roles and bindings, priority classes, flow schemas, API services ...

Upstream: k8s.io/kubernetes/pkg/controlplane, pkg/registry/{rbac,scheduling}/rest, plugin/pkg/auth/authorizer/rbac/bootstrappolicy
"""

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from fakeapiserver.apis.scheme import VERSIONS, read_table


def objects(version: str = "v1.36") -> Iterator[dict[str, Any]]:
    """Fresh copies in the order a real server makes them, each parsed as it is asked for.

    They have no uid, resourceVersion, creationTimestamp, managedFields times or condition times: whoever stores them adds those.
    Not among them: leases, and Endpoints and EndpointSlice of the service `kubernetes`, which hold the server's own address.
    """
    for line in (VERSIONS / version / "bootstrap.json").read_bytes().splitlines()[1:-1]:
        yield json.loads(line.rstrip(b","))


def gated_objects(gates: Collection[str], version: str = "v1.36") -> Sequence[dict[str, Any]]:
    """Those that a server has beside these with feature gates on that are off by default. Fresh copies."""
    if not gates:
        return ()
    found = read_table(version, "bootstrap_gated.json")
    return [json.loads(json.dumps(obj)) for gate in gates for obj in found.get(gate, ())]
