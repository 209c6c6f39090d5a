"""Random pods, volumes and what else nodes have to do with, and what nodes try, out of one random source."""

import base64
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

from conformance.random.roles import NAMESPACES, Request, Roles

NODES: Final = ("n1", "n2")
_PODS: Final = ("web", "job", "static")
_MIRROR: Final = "kubernetes.io/config.mirror"
_MERGE: Final = "application/merge-patch+json"
_LABELS: Final = (
    *("a.io/b", "x", "kubernetes.io/hostname", "kubernetes.io/x", "node.kubernetes.io/any", "a.node.kubernetes.io/b"),
    *("kubelet.kubernetes.io/x", "node-restriction.kubernetes.io/x", "a.node-restriction.kubernetes.io/x", "k8s.io/x"),
    *("topology.kubernetes.io/zone", "node-role.kubernetes.io/master", "beta.kubernetes.io/os", "xkubernetes.io/a"),
)


class Nodes(Roles):
    """`preparation` changes what is in the cluster, `question` is what a node asks."""

    # ------------------------------------------------------------ what there is

    def beginning(self) -> Iterator[Request]:
        for node in NODES:
            yield _post("/api/v1/nodes", {"metadata": {"name": node}})
        for driver, audiences in (("d", ["csi-aud"]), ("e", [])):
            spec = {"tokenRequests": [{"audience": audience} for audience in audiences]}
            yield _post("/apis/storage.k8s.io/v1/csidrivers", {"metadata": {"name": driver}, "spec": spec})
        for namespace in NAMESPACES:
            for account in ("robot", "other"):
                yield _post(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": account}})
            for claim in ("a", "b", "web-v0"):
                yield _post(f"/api/v1/namespaces/{namespace}/persistentvolumeclaims", _claim(claim))

    def preparation(self) -> Iterator[Request]:
        for _ in range(self.pick(2, 4)):
            yield from self.pick(self._pod, self._pod, self._disk, self._attachment, self._slice, self._pod_change)()

    def _pod(self) -> Iterator[Request]:
        name, path = self.pick(*_PODS), f"/api/v1/namespaces/{self.pick(*NAMESPACES)}/pods"
        yield {"method": "DELETE", "path": f"{path}/{name}?gracePeriodSeconds=0"}
        if self.chance(0.85):
            yield _post(path, self.pod(name, self.pick("n1", "n1", "n2", "")))

    def pod(self, name: str, node: str) -> dict[str, Any]:
        sources = self.random.sample(self._sources(), self.random.randint(0, 3))
        spec: dict[str, Any] = {
            "containers": [self._container("c")],
            "volumes": [{"name": f"v{i}", **source} for i, source in enumerate(sources)],
        }
        if self.chance(0.7):
            spec["serviceAccountName"] = self.pick("robot", "other", "default")
        if self.chance(0.3):
            spec["initContainers"] = [self._container("i")]
        if self.chance(0.2):
            spec["imagePullSecrets"] = [{"name": self._name()}]
        if self.chance(0.2):
            claim = self.pick({"resourceClaimName": self._name()}, {"resourceClaimTemplateName": "t"})
            spec["resourceClaims"] = [{"name": "r", **claim}]
        if node:
            spec["nodeName"] = node
        meta: dict[str, Any] = {"name": name}
        if self.chance(0.2):
            meta["annotations"] = {_MIRROR: "x"}
        return {"metadata": meta, "spec": spec}

    def _container(self, name: str) -> dict[str, Any]:
        container: dict[str, Any] = {"name": name, "image": "i"}
        if self.chance(0.3):
            container["envFrom"] = [{self.pick("secretRef", "configMapRef"): {"name": self._name()}}]
        if self.chance(0.3):
            reference = {self.pick("secretKeyRef", "configMapKeyRef"): {"name": self._name(), "key": "k"}}
            container["env"] = [{"name": "E", "valueFrom": reference}]
        return container

    def _name(self) -> str:
        return str(self.pick("a", "b", "c"))

    def _sources(self) -> list[dict[str, Any]]:
        name, other = self._name(), self._name()
        claim = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
        token = {"serviceAccountToken": {"path": "t", "audience": self.pick("aud", "csi-aud", "")}}
        secret, config = {"name": name}, {"name": other}
        return [
            {"secret": {"secretName": name}},
            {"configMap": {"name": name}},
            {"persistentVolumeClaim": {"claimName": self.pick("a", "b", "lost")}},
            {"projected": {"sources": [{"secret": secret}, {"configMap": config}]}},
            {"projected": {"sources": [token]}},
            {"csi": {"driver": self.pick("d", "e", "lost"), "nodePublishSecretRef": secret}},
            {"ephemeral": {"volumeClaimTemplate": claim}},
            {"azureFile": {"secretName": name, "shareName": "s"}},
            {"cephfs": {"monitors": ["m"], "secretRef": secret}},
            {"rbd": {"monitors": ["m"], "image": "i", "secretRef": secret}},
            {"iscsi": {"targetPortal": "1.2.3.4", "iqn": "iqn.2001-04.com.example:x", "lun": 1, "secretRef": secret}},
            {"flexVolume": {"driver": "a/b", "secretRef": secret}},
            {"scaleIO": {"gateway": "g", "system": "s", "volumeName": "v", "secretRef": secret}},
            {"storageos": {"volumeName": "v", "secretRef": secret}},
            {"emptyDir": {}},
            {"downwardAPI": {"items": []}},
            {"glusterfs": {"endpoints": "e", "path": "p"}},
            {"hostPath": {"path": "/x"}},
        ]

    def _pod_change(self) -> Iterator[Request]:
        path = f"/api/v1/namespaces/{self.pick(*NAMESPACES)}/pods/{self.pick(*_PODS)}"
        match self.pick("bind", "debug", "claims", "labels"):
            case "bind":
                target = {"kind": "Node", "name": self.pick(*NODES)}
                yield _post(f"{path}/binding", {"metadata": {"name": path.rpartition("/")[2]}, "target": target})
            case "debug":
                container = {**self._container(f"d{self.random.randint(0, 99)}")}
                body = {"spec": {"ephemeralContainers": [container]}}
                strategic = "application/strategic-merge-patch+json"
                yield {"method": "PATCH", "path": f"{path}/ephemeralcontainers", "body": body, "type": strategic}
            case "claims":
                status = {"resourceClaimStatuses": [{"name": "r", "resourceClaimName": self._name()}]}
                yield _merge(f"{path}/status", {"status": status})
            case "labels":
                yield _merge(path, {"metadata": {"labels": {"x": self._name()}}})

    def _disk(self) -> Iterator[Request]:
        name = self.pick("disk1", "disk2")
        path = "/api/v1/persistentvolumes"
        yield {"method": "DELETE", "path": f"{path}/{name}"}
        yield _merge(f"{path}/{name}", {"metadata": {"finalizers": None}})
        secret: dict[str, Any] = {"name": self._name()}
        if self.chance(0.5):
            secret["namespace"] = self.pick(*NAMESPACES)
        fields = ("nodeStageSecretRef", "controllerPublishSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef")
        csi = {"driver": self.pick("d", "e"), "volumeHandle": "h", self.pick(*fields): {"namespace": "da", **secret}}
        source = self.pick(
            {"csi": csi},
            {"csi": csi},
            {"azureFile": {"secretName": "a", "shareName": "s", "secretNamespace": self.pick(None, *NAMESPACES)}},
            {"cephfs": {"monitors": ["m"], "secretRef": secret}},
            {"rbd": {"monitors": ["m"], "image": "i", "secretRef": secret}},
            {"flexVolume": {"driver": "a/b", "secretRef": secret}},
            {"iscsi": {"targetPortal": "1.2.3.4", "iqn": "iqn.2001-04.com.example:x", "lun": 1, "secretRef": secret}},
            {"hostPath": {"path": "/x"}},
        )
        spec = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, **source}
        if self.chance(0.85):
            spec["claimRef"] = {"namespace": self.pick(*NAMESPACES), "name": self.pick("a", "b", "web-v0")}
        yield _post(path, {"metadata": {"name": name}, "spec": spec})

    def _attachment(self) -> Iterator[Request]:
        path = "/apis/storage.k8s.io/v1/volumeattachments"
        name = self._name()
        yield {"method": "DELETE", "path": f"{path}/{name}"}
        spec = {"attacher": "d", "nodeName": self.pick(*NODES), "source": {"persistentVolumeName": "disk1"}}
        yield _post(path, {"metadata": {"name": name}, "spec": spec})

    def _slice(self) -> Iterator[Request]:
        name = self._name()
        yield {"method": "DELETE", "path": f"/apis/resource.k8s.io/v1/resourceslices/{name}"}
        yield _post("/apis/resource.k8s.io/v1/resourceslices", self._slice_of(name))

    def _slice_of(self, name: str) -> dict[str, Any]:
        place = self.pick({"nodeName": "n1"}, {"nodeName": "n1"}, {"nodeName": "n2"}, {"allNodes": True})
        pool = {"name": "p", "resourceSliceCount": 1, "generation": 1}
        return {"metadata": {"name": name}, "spec": {"driver": "d.io", "pool": pool, "devices": [], **place}}

    # -------------------------------------------------------------- what nodes try

    def question(self) -> Request:
        node = self.pick("n1", "n1", "n1", "n2", "n3")
        request = self.pick(self._read, self._read, self._write, self._write, self._token, self._own_node)(node)
        user, group = f"system:node:{node}", "system:nodes"
        if self.chance(0.03):
            user, group = self.pick(("system:node:", group), (user, "other"), ("system:nodes:n1", group))
        return {**request, "headers": {"Impersonate-User": user, "Impersonate-Group": group}}

    def _read(self, node: str) -> Request:
        namespace = self.pick(*NAMESPACES)
        home, name = f"/api/v1/namespaces/{namespace}", self._name()
        path = self.pick(
            *(f"{home}/{kind}/{name}" for kind in ("secrets", "configmaps", "persistentvolumeclaims") * 2),
            f"{home}/{self.pick('secrets', 'configmaps', 'pods', 'serviceaccounts')}",
            f"{home}/{self.pick('secrets', 'configmaps')}?fieldSelector=metadata.name%3D{name}",
            f"{home}/persistentvolumeclaims/web-v0",
            f"{home}/serviceaccounts/{self.pick('robot', 'other', 'default')}",
            f"{home}/pods/{self.pick(*_PODS)}{self.pick('', '', '/log', '/status')}",
            f"{home}/pods?fieldSelector=metadata.name%3D{self.pick(*_PODS)}",
            f"/api/v1/pods?fieldSelector={self.pick('spec.nodeName%3Dn1', 'spec.nodeName!%3Dn1', 'spec.nodeName%3Dn2')}",
            f"/api/v1/pods?fieldSelector=spec.nodeName%3Dn1%2Cstatus.phase%3D{self.pick('Running', '')}",
            "/api/v1/nodes"
            + self.pick("", "/n1", "/n2", "?fieldSelector=metadata.name%3Dn1", "/n1/status", "/n1/proxy"),
            f"/api/v1/persistentvolumes/{self.pick('disk1', 'disk2')}",
            f"/api/v1/{self.pick('secrets', 'services', 'namespaces/da', 'watch/secrets', 'persistentvolumes')}",
            f"/api/v1/watch/namespaces/{namespace}/secrets/{name}?timeoutSeconds=1",
            f"/apis/coordination.k8s.io/v1/namespaces/{self.pick('kube-node-lease', 'da')}/leases{self.pick('', '/n1', '/n2')}",
            f"/apis/storage.k8s.io/v1/{self.pick('csinodes', 'csinodes/n1', 'csinodes/n2', 'csidrivers', 'storageclasses')}",
            f"/apis/storage.k8s.io/v1/volumeattachments/{name}",
            "/apis/storage.k8s.io/v1/volumeattachments",
            f"/apis/resource.k8s.io/v1/resourceslices{self.pick('', f'/{name}', '?fieldSelector=spec.nodeName%3Dn1')}",
            f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims{self.pick('', *(f'/{x}' for x in 'abc'))}",
            f"/apis/{self.pick('node.k8s.io/v1/runtimeclasses', 'certificates.k8s.io/v1/certificatesigningrequests')}",
        )
        return {"method": self.pick("GET", "GET", "GET", "GET", "HEAD"), "path": path}

    def _write(self, node: str) -> Request:
        way: Callable[[str], Request] = self.pick(
            *(self._write_pod, self._write_pod, self._pod_status, self._pod_status, self._delete, self._write_lease),
            *(self._write_csi_node, self._write_slice, self._claim_status, self._request_certificate, self._other),
        )
        return way(node)

    def _write_pod(self, node: str) -> Request:
        pod = self.pod(self.pick("static", "m"), self.pick(node, node, node, "n2", ""))
        owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": f"${{uid.{node}}}", "controller": True}
        owner |= self.pick(
            {}, {}, {}, {"controller": False}, {"uid": "x"}, {"kind": "Pod"}, {"blockOwnerDeletion": True}
        )
        if self.chance(0.8):
            pod["metadata"]["annotations"] = {_MIRROR: "x"}
        if self.chance(0.5):
            pod["spec"] |= {"volumes": pod["spec"]["volumes"][:1], "containers": [{"name": "c", "image": "i"}]}
            pod["spec"].pop("serviceAccountName", None)
        pod["metadata"]["ownerReferences"] = self.pick([], [owner], [owner], [owner], [owner], [owner, owner])
        return _dry(_post(f"/api/v1/namespaces/{self.pick(*NAMESPACES)}/pods", pod))

    def _pod_status(self, node: str) -> Request:
        path = f"/api/v1/namespaces/{self.pick(*NAMESPACES)}/pods/{self.pick(*_PODS)}"
        bodies: tuple[dict[str, Any], ...] = (
            {"status": {"phase": "Running"}},
            {"metadata": {"labels": {"x": "new"}}},
            {"metadata": {"annotations": {"x": "new"}, "finalizers": ["a.io/b"]}},
            {"status": {"resourceClaimStatuses": [{"name": "r", "resourceClaimName": self._name()}]}},
            {"status": {"extendedResourceClaimStatus": {"resourceClaimName": "a", "requestMappings": []}}},
            {"spec": {"nodeName": "n2"}},
            {"spec": {"tolerations": [{"operator": "Exists"}]}},
        )
        return _dry(_merge(path + self.pick("/status", "/status", "/status", "", "/resize"), self.pick(*bodies)))

    def _delete(self, node: str) -> Request:
        home, name = f"/api/v1/namespaces/{self.pick(*NAMESPACES)}", self.pick(*_PODS)
        path = self.pick(
            f"{home}/pods/{name}",
            f"{home}/pods/{name}",
            f"{home}/pods",
            f"{home}/pods?fieldSelector=spec.nodeName%3D{node}",
            f"/api/v1/nodes/{self.pick(*NODES)}",
            "/api/v1/nodes",
            f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{self.pick(*NODES)}",
            f"/apis/storage.k8s.io/v1/csinodes/{self.pick(*NODES)}",
            f"/apis/resource.k8s.io/v1/resourceslices/{self._name()}",
            f"/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.nodeName%3D{self.pick(*NODES)}",
            f"{home}/secrets/a",
        )
        if self.chance(0.2):
            eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
            return _dry(_post(f"{home}/pods/{name}/eviction", eviction))
        return _dry({"method": "DELETE", "path": path})

    def _write_lease(self, node: str) -> Request:
        path = f"/apis/coordination.k8s.io/v1/namespaces/{self.pick('kube-node-lease', 'kube-node-lease', 'da')}/leases"
        name = self.pick(node, "n2", "n1")
        lease = {"metadata": {"name": name}, "spec": {"holderIdentity": node, "leaseDurationSeconds": 40}}
        if self.chance(0.5):
            return _dry(_post(path, lease))
        return _dry({"method": "PUT", "path": f"{path}/{name}", "body": lease})

    def _write_csi_node(self, node: str) -> Request:
        name = self.pick(node, node, *NODES)
        obj = {"metadata": {"name": name}, "spec": {"drivers": []}}
        if self.chance(0.1):
            obj["metadata"] = {"generateName": name}
        path = "/apis/storage.k8s.io/v1/csinodes"
        return _dry(self.pick(_post(path, obj), _merge(f"{path}/{name}", {"metadata": {"labels": {"x": "y"}}})))

    def _write_slice(self, node: str) -> Request:
        path, name = "/apis/resource.k8s.io/v1/resourceslices", self._name()
        if self.chance(0.5):
            return _dry(_post(path, self._slice_of(self.pick("new", "new", name))))
        body = self.pick({"metadata": {"labels": {"x": "y"}}}, {"spec": {"nodeName": self.pick(*NODES)}})
        return _dry(_merge(f"{path}/{name}", body))

    def _claim_status(self, node: str) -> Request:
        path = f"/api/v1/namespaces/{self.pick(*NAMESPACES)}/persistentvolumeclaims/{self.pick('a', 'b')}"
        body = self.pick(
            {"status": {"capacity": {"storage": "2Gi"}}},
            {"status": {"conditions": [{"type": "Resizing", "status": "True"}]}},
            {"status": {"allocatedResources": {"storage": "2Gi"}}},
            {"spec": {"volumeName": "disk2"}},
            {"metadata": {self.pick("labels", "annotations"): {"x": "y"}}},
            {"metadata": {"finalizers": self.pick(["a.io/b"], None)}},
            {"status": {"phase": "Bound", "accessModes": ["ReadWriteOnce"]}},
            {"status": {"modifyVolumeStatus": {"status": "Pending"}}},
        )
        return _dry(_merge(path + self.pick("/status", "/status", "/status", ""), body))

    def _request_certificate(self, node: str) -> Request:
        signers = ("kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving", "a.io/b")
        name = self.pick(f"system:node:{node}", "system:node:n2", "jane")
        usages = ["digital signature", self.pick("client auth", "server auth")]
        spec = {"signerName": self.pick(*signers), "request": request_for(name), "usages": usages}
        path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
        return _dry(_post(path, {"metadata": {"name": "c"}, "spec": spec}))

    def _other(self, node: str) -> Request:
        home = f"/api/v1/namespaces/{self.pick(*NAMESPACES)}"
        path = self.pick(
            *(
                f"{home}/{rest}"
                for rest in ("secrets/a", "configmaps/a", "serviceaccounts/robot", "pods/web/exec?command=x")
            ),
            *("/api/v1/namespaces/da", f"{home}/events/a", "/api/v1/persistentvolumes/disk1"),
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/x",
        )
        return _dry(
            self.pick(
                _merge(path, {"metadata": {"labels": {"x": "y"}}}),
                _post(path.rpartition("/")[0], {"metadata": {"name": "q"}}),
            )
        )

    def _token(self, node: str) -> Request:
        pod = self.pick(*_PODS)
        namespace = self.pick(*NAMESPACES)
        bound = {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": f"${{uid.{namespace}.{pod}}}"}
        bound |= self.pick(
            {}, {}, {}, {}, {"uid": "x"}, {"uid": ""}, {"kind": "Secret"}, {"name": "lost"}, {"apiVersion": "v2"}
        )
        spec: dict[str, Any] = {"audiences": self.pick([], [], ["aud"], ["csi-aud"], ["other"], ["aud", "csi-aud"])}
        if self.chance(0.95):
            spec["boundObjectRef"] = bound
        account = self.pick("robot", "robot", "other", "default")
        return _post(f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token", {"spec": spec})

    def _own_node(self, node: str) -> Request:
        name, path = self.pick(node, node, node, *NODES), "/api/v1/nodes"
        if self.chance(0.2):
            spec = self.pick(
                {}, {"configSource": {"configMap": {"name": "a", "namespace": "da", "kubeletConfigKey": "k"}}}
            )
            return _dry(_post(path, {"metadata": {"name": name, "labels": self._labels()}, "spec": spec}))
        bodies: tuple[dict[str, Any], ...] = (
            {"metadata": {"labels": self._labels()}},
            {"metadata": {"labels": self._labels()}},
            {"metadata": {"annotations": {"x": "y"}}},
            {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u"}]}},
            {"spec": {"taints": self.pick([], [{"key": "a", "effect": "NoSchedule"}])}},
            {"spec": {"unschedulable": True}},
            {"status": {"capacity": {"cpu": "4"}}},
            {"metadata": {"finalizers": ["a.io/b"]}},
        )
        return _dry(_merge(f"{path}/{name}{self.pick('', '/status')}", self.pick(*bodies)))

    def _labels(self) -> dict[str, str]:
        return dict.fromkeys(self.random.sample(_LABELS, self.random.randint(1, 3)), "y")


@cache
def request_for(name: str) -> str:
    """A PEM request for a certificate, in base64, as objects have it."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    subject = x509.Name(
        [x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:nodes"), x509.NameAttribute(NameOID.COMMON_NAME, name)]
    )
    key = ec.generate_private_key(ec.SECP256R1())
    signed = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    return base64.b64encode(signed.public_bytes(serialization.Encoding.PEM)).decode()


def _claim(name: str) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": name}, "spec": spec}


def _post(path: str, body: dict[str, Any]) -> Request:
    return {"method": "POST", "path": path, "body": body}


def _merge(path: str, body: dict[str, Any]) -> Request:
    return {"method": "PATCH", "path": path, "body": body, "type": _MERGE}


def _dry(request: Request) -> Request:
    """The same, without an effect."""
    path = request["path"]
    return {**request, "path": f"{path}{'&' if '?' in path else '?'}dryRun=All"}
