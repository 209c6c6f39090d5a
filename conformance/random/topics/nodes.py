"""Random requests of nodes, for the plugin NodeRestriction."""

from collections.abc import Iterable
from typing import Final

from conformance.random.topics.topic import NAMES, Object, Request, Topic, as_user, patch, post


class Nodes(Topic):
    """NodeRestriction, TaintNodesByCondition, PodTopologyLabels, PodResizeValidator, NodeDeclaredFeatureValidator."""

    _BINDINGS: Final = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    pause = 0.03

    def setup(self) -> Iterable[Request]:
        self.nodes = [f"{self.namespace}-{end}" for end in ("n1", "n2")]
        yield self.create_namespace({})
        subjects = [
            {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": f"system:node:{node}"}
            for node in self.nodes
        ]
        role = {"kind": "ClusterRole", "apiGroup": "rbac.authorization.k8s.io", "name": "cluster-admin"}
        yield post(self._BINDINGS, {"metadata": {"name": self.namespace}, "subjects": subjects, "roleRef": role})
        for node in self.nodes:
            yield post("/api/v1/nodes", self._node(node))
            status: Object = {"allocatable": {"cpu": self.pick("1", "4"), "memory": self.pick("1Gi", "4Gi")}}
            if self.chance(0.4):
                status["declaredFeatures"] = [self.pick("InPlacePodLevelResourcesVerticalScaling", "Other")]
            yield patch(f"/api/v1/nodes/{node}/status", {"status": status})

    def _node(self, name: str) -> Object:
        names = (
            "topology.kubernetes.io/zone",
            "topology.kubernetes.io/region",
            "kubernetes.io/os",
            "kubernetes.io/arch",
            "node-restriction.kubernetes.io/x",
            "node.kubernetes.io/a",
            "foo.kubelet.kubernetes.io/b",
            "example.com/c",
            "kubernetes.io/odd",
            "x.k8s.io/odd",
            "plain",
        )
        labels = {name: self.pick("a", "b", "linux") for name in self.some(names, self.pick(0.1, 0.4))}
        found: Object = {"metadata": {"name": name, "labels": labels}, "spec": {}}
        if self.chance(0.2):
            taint = self.pick(
                {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
                {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"},
                {"key": "a", "effect": "NoSchedule"},
            )
            found["spec"]["taints"] = [taint]
        if self.chance(0.1):
            found["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "u"}]
        return found

    def request(self) -> Request:
        request = self._request()
        if self.chance(0.65):
            return as_user(request, f"system:node:{self.pick(*self.nodes)}", "system:nodes")
        return request

    def _request(self) -> Request:
        return self._on_pod() if self.chance(0.65) else self._on_other()

    def _on_pod(self) -> Request:
        node, path, name = self.pick(*self.nodes), self.path("pods"), self.pick(*NAMES)
        match self.pick(*"ppppppsebBrd"):
            case "p":
                return self.write(path, self._pod(node), ("v1", "Pod"))
            case "s":
                change: Object = {"status": {"phase": self.pick("Running", "Failed")}}
                if self.chance(0.2):
                    change["metadata"] = {"labels": {"a": "b"}}
                if self.chance(0.2):
                    change["status"]["resourceClaimStatuses"] = [{"name": "r", "resourceClaimName": "c"}]
                return patch(f"{path}/{name}/status", change)
            case "e":
                return post(f"{path}/{name}/eviction", {"metadata": {"name": self.pick(name, name, "other")}})
            case "b":
                target = {"kind": self.pick("Node", "Node", "Pod"), "name": node}
                return post(f"{path}/{name}/binding", {"metadata": {"name": name}, "target": target})
            case "B":
                return post(
                    self.path("bindings"), {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
                )
            case "r":
                return self.resize()
            case _:
                return self.delete(f"{path}/{name}")

    def _on_other(self) -> Request:
        node, name = self.pick(*self.nodes), self.pick(*NAMES)
        spec: Object
        match self.pick(*"nnnnNtticlLd"):
            case "n":
                return self.write("/api/v1/nodes", self._node(self.pick(node, node, "other")), ("v1", "Node"))
            case "N":
                return patch(f"/api/v1/nodes/{node}/status", {"status": {"phase": self.pick("Running", "Pending")}})
            case "t":
                spec = {"audiences": self.some(("a", "b", "https://kubernetes.default.svc.cluster.local"), 0.4)}
                if self.chance(0.7):
                    spec["boundObjectRef"] = {"apiVersion": "v1", "kind": "Pod", "name": name}
                    if self.chance(0.7):
                        spec["boundObjectRef"]["uid"] = "some"
                return post(f"{self.path('serviceaccounts')}/default/token", {"spec": spec})
            case "i":
                spec = {"holderIdentity": node, "leaseDurationSeconds": 40}
                place = self.pick("kube-node-lease", self.namespace)
                obj = {"metadata": {"name": self.pick(node, "other")}, "spec": spec}
                path = f"/apis/coordination.k8s.io/v1/namespaces/{place}/leases"
                return self.write(path, obj, ("coordination.k8s.io/v1", "Lease"))
            case "c":
                spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
                obj = {"metadata": {"name": name}, "spec": spec}
                return self.write(self.path("persistentvolumeclaims"), obj, ("v1", "PersistentVolumeClaim"))
            case "l":
                drivers = [{"name": "d.example.com", "nodeID": "x", "topologyKeys": []}]
                obj = {"metadata": {"name": self.pick(node, "other")}, "spec": {"drivers": drivers}}
                return self.write("/apis/storage.k8s.io/v1/csinodes", obj, ("storage.k8s.io/v1", "CSINode"))
            case "L":
                pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
                spec = {"driver": "d.example.com", "pool": pool, "nodeName": self.pick(node, "other"), "devices": []}
                obj = {"metadata": {"name": f"{self.namespace}-s"}, "spec": spec}
                return self.write(
                    "/apis/resource.k8s.io/v1/resourceslices", obj, ("resource.k8s.io/v1", "ResourceSlice")
                )
            case _:
                return self.delete(f"/api/v1/nodes/{node}")

    def _pod(self, node: str) -> Object:
        pod = self.pod(self.chance(0.3))
        meta, spec = pod["metadata"], pod["spec"]
        if self.chance(0.7):
            spec["nodeName"] = node
        if self.chance(0.6):
            meta["annotations"] = {"kubernetes.io/config.mirror": "x"}
        if self.chance(0.6):
            owner: Object = {"apiVersion": "v1", "kind": self.pick("Node", "Node", "Pod"), "name": node, "uid": "u"}
            if self.chance(0.8):
                owner["controller"] = True
            if self.chance(0.1):
                owner["blockOwnerDeletion"] = True
            meta["ownerReferences"] = [owner]
        if self.chance(0.2):
            spec["serviceAccountName"] = "a"
        if self.chance(0.2):
            spec["volumes"] = [
                {"name": "v", **self.pick({"secret": {"secretName": "s"}}, {"configMap": {"name": "s"}})}
            ]
        return pod

    def cleanup(self) -> Iterable[Request]:
        for node in (*self.nodes, "other"):
            yield {"method": "DELETE", "path": f"/api/v1/nodes/{node}"}
            yield {"method": "DELETE", "path": f"/apis/storage.k8s.io/v1/csinodes/{node}"}
            yield {"method": "DELETE", "path": f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{node}"}
