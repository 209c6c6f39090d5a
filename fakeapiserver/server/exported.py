"""The objects of a running server that its users have made, for manifests."""

from collections.abc import Iterator
from typing import Protocol

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apis.resource_table import ResourceTable
from fakeapiserver.component_helpers.cluster_signing import KUBE_APISERVER_SERVING
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.server.options.config import Config
from fakeapiserver.server.upkeep import bootstrap
from fakeapiserver.state import manifests
from fakeapiserver.storage.memory import MemoryStorage

# Kinds that the server and controllers write.
_MADE = frozenset(("ComponentStatus", "Endpoints", "EndpointSlice", "Event", "IPAddress", "Lease", "Node", "CSINode"))
_AUTOMANAGED = "kube-aggregator.kubernetes.io/automanaged"


class Exported(Protocol):
    """The part of an API server that has objects."""

    config: Config
    scopes: RequestScopes
    storage: MemoryStorage
    table: ResourceTable


def objects(api: Exported, *, secrets: bool) -> Iterator[Object]:
    """Yields manifests of all objects but those that a fresh server has, those that controllers make, and those that belong to a
    controller's object, such as the pods of a Deployment."""
    fresh = {_identity(obj) for obj in bootstrap.wanted(api.table.scheme, api.config)}
    for group in api.table.groups():
        seen = set()
        for version in group.versions:  # the preferred one first
            for row in [row for row in api.table if row.gvr.group_version == version.gv]:
                if row.gvr.resource in seen or "create" not in row.verbs or row.gvk.kind in _MADE:
                    continue
                scope = api.scopes.lookup(*row.gvr)
                if scope is None or scope.store is None:
                    continue
                seen.add(row.gvr.resource)
                for stored in api.storage.list_now(scope.store.prefix).items:
                    obj = {"apiVersion": str(row.gvk.group_version), "kind": row.gvk.kind, **scope.decode(stored.value)}
                    if _identity(obj) not in fresh and not _is_made(obj):
                        yield manifests.manifest(obj, secrets=secrets)


def _identity(obj: Object) -> tuple[str, str, str]:
    meta = obj["metadata"]
    return obj["kind"], meta.get("namespace", ""), meta["name"]


def _is_made(obj: Object) -> bool:
    """Reports whether a controller has made the object and makes it again."""
    meta = obj["metadata"]
    if any(owner.get("controller") for owner in meta.get("ownerReferences", ())):
        return True
    if meta.get("deletionTimestamp") or _AUTOMANAGED in meta.get("labels", {}):
        return True
    kind, name = obj["kind"], meta["name"]
    if kind == "Namespace":
        return name in ("default", "kube-system", "kube-public", "kube-node-lease")
    if kind == "APIService":
        return "service" not in obj["spec"]
    if kind == "ClusterTrustBundle":
        return bool(obj["spec"].get("signerName") == KUBE_APISERVER_SERVING)
    return (kind, name) in (("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt"))
