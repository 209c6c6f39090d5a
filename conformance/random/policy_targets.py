"""The kinds that random admission policies are about, and the custom kinds and params among them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

Spec = dict[str, Any]
GROUP: Final = "policies.example.com"
# Expressions of all sorts, and the schema of the custom resources.
TABLES: Final = json.loads((Path(__file__).parent / "policies.json").read_text())


class Target(NamedTuple):
    """A resource that policies are about: where it is served, its own kind and group version, and whether in namespaces."""

    version: str
    resource: str
    kind: str
    namespaced: bool = True
    subresources: tuple[str, ...] = ()

    @property
    def group(self) -> str:
        return self.version.rpartition("/")[0]

    def path(self, namespace: str) -> str:
        root = f"/apis/{self.version}" if self.group else f"/api/{self.version}"
        return f"{root}/namespaces/{namespace}/{self.resource}" if self.namespaced else f"{root}/{self.resource}"


TARGETS: Final = (
    Target("v1", "configmaps", "ConfigMap"),
    Target("v1", "configmaps", "ConfigMap"),
    Target("v1", "pods", "Pod", subresources=("status", "ephemeralcontainers", "resize")),
    Target("v1", "services", "Service", subresources=("status",)),
    Target("v1", "secrets", "Secret"),
    Target("v1", "serviceaccounts", "ServiceAccount"),
    Target("apps/v1", "deployments", "Deployment", subresources=("status", "scale")),
    Target("apps/v1", "deployments", "Deployment", subresources=("status", "scale")),
    Target("autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", subresources=("status",)),
    Target("autoscaling/v1", "horizontalpodautoscalers", "HorizontalPodAutoscaler"),
    Target("networking.k8s.io/v1", "ingresses", "Ingress"),
    Target(f"{GROUP}/v1", "widgets", "Widget", subresources=("status", "scale")),
    Target(f"{GROUP}/v2", "widgets", "Widget", subresources=("status", "scale")),
    Target(f"{GROUP}/v1", "regions", "Region", namespaced=False),
    Target("v1", "persistentvolumes", "PersistentVolume", namespaced=False),
    Target("rbac.authorization.k8s.io/v1", "clusterroles", "ClusterRole", namespaced=False),
)


def definition(plural: str, kind: str, versions: tuple[str, ...], scope: str, schema: Spec) -> Spec:
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    served = [
        {
            "name": name,
            "served": True,
            "storage": name == versions[0],
            "schema": {"openAPIV3Schema": schema},
            "subresources": {"status": {}, "scale": scale} if kind == "Widget" else {},
        }
        for name in versions
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {"group": GROUP, "scope": scope, "names": {"plural": plural, "kind": kind}, "versions": served},
    }


def definitions() -> Iterator[Spec]:
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    yield definition("widgets", "Widget", ("v1", "v2"), "Namespaced", TABLES["schema"])
    yield definition("regions", "Region", ("v1",), "Cluster", TABLES["schema"])
    yield definition("rules", "Rule", ("v1",), "Namespaced", free)
    yield definition("clusterrules", "ClusterRule", ("v1",), "Cluster", free)


PARAM_KINDS: Final = (
    ("v1", "ConfigMap"),
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    (f"{GROUP}/v1", "Rule"),
    (f"{GROUP}/v1", "Rule"),
    (f"{GROUP}/v1", "ClusterRule"),
    ("v1", "Namespace"),
    ("apps/v1", "Deployment"),
    (f"{GROUP}/v1", "Missing"),
    (f"{GROUP}/v9", "Rule"),
)
