"""Records which kinds a real kube-apiserver can decode beside those it serves: old versions, lists, options.

    python -m conformance.record.kinds --server URL --token T --out fakeapiserver/apis/versions/v1.36

A body of a kind that isn't asked for is answered in one of two ways: its kind is known to the decoder or it isn't. Asked are all
served kinds and their lists, and some more, in each version that a group ever had; kinds.json keeps the known ones that are no
served resource's: {"apps/v1beta1": ["Deployment", ...], ...}, and under "*" those known in any version.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from conformance.exchange import Client

_VERSIONS: Final = (
    *("v1", "v2", "v1alpha1", "v1alpha2", "v1alpha3", "v1beta1", "v1beta2", "v1beta3"),
    *("v2alpha1", "v2beta1", "v2beta2"),
)
_MORE_GROUPS: Final = ("extensions", "imagepolicy.k8s.io", "internal.apiserver.k8s.io", "storagemigration.k8s.io")
_MORE_KINDS: Final = (
    *("List", "Status", "APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "WatchEvent"),
    *("CreateOptions", "DeleteOptions", "GetOptions", "ListOptions", "PatchOptions", "UpdateOptions"),
    *("Binding", "Eviction", "Scale", "TokenRequest", "DeploymentRollback", "ReplicationControllerDummy"),
    *("PodAttachOptions", "PodExecOptions", "PodLogOptions", "PodPortForwardOptions", "PodProxyOptions"),
    *("NodeProxyOptions", "ServiceProxyOptions", "RangeAllocation", "SerializedReference", "PodStatusResult"),
    *("ComponentStatus", "PodSecurityPolicy", "JobTemplate", "ImageReview", "StorageVersion", "LeaseCandidate"),
    *("ClusterTrustBundle", "PodCertificateRequest", "StorageVersionMigration", "DeviceTaintRule", "Workload"),
    *("PodGroup", "ResourcePoolStatusRequest"),
)
_NOBODYS: Final = "nobody.example.com/v1"
_ASKED: Final = "/api/v1/namespaces/default/configmaps?dryRun=All"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--token", required=True)
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    arguments = parser.parse_args()
    client = Client(arguments.server, arguments.token)
    served = {(version, kind) for version, kind in served_kinds(client)}
    groups = {version.rpartition("/")[0] for version, _ in served} | set(_MORE_GROUPS)
    kinds = {kind for _, kind in served} | set(_MORE_KINDS)
    kinds |= {kind + "List" for kind in kinds if not kind.endswith("List")}
    found = {"*": [kind for kind in sorted(kinds) if is_known(client, _NOBODYS, kind)]}
    kinds -= set(found["*"])
    for group in sorted(groups):
        for version in _VERSIONS:
            name = f"{group}/{version}" if group else version
            known = [kind for kind in sorted(kinds) if (name, kind) not in served and is_known(client, name, kind)]
            if known:
                found[name] = known
    (arguments.out / "kinds.json").write_text(_written(found))
    print(f"{sum(map(len, found.values()))} kinds in {len(found)} versions", file=sys.stderr)
    return 0


def _written(found: dict[str, list[str]]) -> str:
    """A version a line."""
    rows = ",\n".join(f" {json.dumps(version)}: {json.dumps(kinds)}" for version, kinds in found.items())
    return "{\n" + rows + "\n}\n"


def served_kinds(client: Client) -> Iterator[tuple[str, str]]:
    """(apiVersion, kind) of every resource, without subresources."""
    groups = client.send({"method": "GET", "path": "/apis"}, [])["body"]["groups"]
    for name in ["v1", *(version["groupVersion"] for group in groups for version in group["versions"])]:
        path = f"/apis/{name}" if "/" in name else f"/api/{name}"
        for resource in client.send({"method": "GET", "path": path}, [])["body"]["resources"]:
            if "/" not in resource["name"]:
                yield name, resource["kind"]


def is_known(client: Client, version: str, kind: str) -> bool:
    body = {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}}
    answer = client.send({"method": "POST", "path": _ASKED, "body": body}, [])
    return "is registered for version" not in answer["body"].get("message", "")


if __name__ == "__main__":
    sys.exit(main())
