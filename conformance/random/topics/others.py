"""Random requests for the plugins that no other topic has: classes, owners, events, services, namespaces."""

from collections.abc import Iterable
from typing import Final

from conformance.random.topics.topic import NAMES, Object, Request, Topic, as_user, patch, post


class Classes(Topic):
    """DefaultStorageClass, DefaultIngressClass, PersistentVolumeClaimResize, StorageObjectInUseProtection."""

    _STORAGE: Final = "/apis/storage.k8s.io/v1/storageclasses"
    _INGRESS: Final = "/apis/networking.k8s.io/v1/ingressclasses"
    pause = 0.05

    def setup(self) -> Iterable[Request]:
        yield self.create_namespace({})
        for name in ("s1", "s2", "s3"):
            yield post(self._STORAGE, self._storage_class(name))
            yield post(self._INGRESS, self._ingress_class(name))

    def _storage_class(self, name: str) -> Object:
        marks = {
            f"storageclass.{beta}kubernetes.io/is-default-class": self.pick("true", "false", "True")
            for beta in self.some(("", "beta."), 0.4)
        }
        found: Object = {"metadata": {"name": name, "annotations": marks}, "provisioner": "p"}
        if self.chance(0.5):
            found["allowVolumeExpansion"] = self.pick(True, True, False)
        return found

    def _ingress_class(self, name: str) -> Object:
        marks = (
            {"ingressclass.kubernetes.io/is-default-class": self.pick("true", "true", "false")}
            if self.chance(0.6)
            else {}
        )
        return {"metadata": {"name": name, "annotations": marks}, "spec": {"controller": "a.com/b"}}

    def request(self) -> Request:
        match self.pick(*"cccciiivVs"):
            case "c":
                return self._claim()
            case "i":
                return self._ingress()
            case "v":
                spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
                meta: Object = {
                    "name": f"{self.namespace}-{self.pick('v1', 'v2')}",
                    **self._finalizers("kubernetes.io/pv-protection"),
                }
                return self.write(
                    "/api/v1/persistentvolumes", {"metadata": meta, "spec": spec}, ("v1", "PersistentVolume")
                )
            case "V":
                meta = {
                    "name": f"{self.namespace}-{self.pick('a1', 'a2')}",
                    **self._finalizers("kubernetes.io/vac-protection"),
                }
                obj = {"metadata": meta, "driverName": "d", "parameters": {"a": "b"}}
                return self.write(
                    "/apis/storage.k8s.io/v1/volumeattributesclasses",
                    obj,
                    ("storage.k8s.io/v1", "VolumeAttributesClass"),
                )
            case _:
                name = self.pick("s1", "s2", "s3")
                if self.chance(0.5):
                    return patch(f"{self._STORAGE}/{name}", {"metadata": self._storage_class(name)["metadata"]})
                return {"method": "DELETE", "path": f"{self.pick(self._STORAGE, self._INGRESS)}/{name}"}

    def _finalizers(self, own: str) -> Object:
        return {"finalizers": self.pick([own], ["a.io/b"], ["a.io/b", own])} if self.chance(0.4) else {}

    def _claim(self) -> Request:
        path, name = self.path("persistentvolumeclaims"), self.pick(*NAMES)
        match self.pick(*"wwwwwrrrsd"):
            case "d":
                return self.delete(f"{path}/{name}")
            case "r":
                change = {"spec": {"resources": {"requests": {"storage": self.pick("1Gi", "2Gi", "3Gi", "1.5Gi")}}}}
                return patch(f"{path}/{name}{self.pick('', '?dryRun=All')}", change)
            case "s":
                return patch(
                    f"{path}/{name}/status",
                    {
                        "status": {
                            "phase": self.pick("Bound", "Pending", "Bound"),
                            "capacity": {"storage": self.pick("1Gi", "2Gi")},
                        }
                    },
                )
        spec: Object = {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": self.pick("1Gi", "2Gi")}},
        }
        if self.chance(0.6):
            spec["storageClassName"] = self.pick("s1", "s2", "s3", "", None)
        meta: Object = {"name": name, **self._finalizers("kubernetes.io/pvc-protection")}
        if self.chance(0.2):
            meta["annotations"] = {"volume.beta.kubernetes.io/storage-class": self.pick("s1", "s2", "")}
        return self.write(path, {"metadata": meta, "spec": spec}, ("v1", "PersistentVolumeClaim"))

    def _ingress(self) -> Request:
        path, name = self.path("ingresses", "networking.k8s.io/v1"), self.pick(*NAMES)
        if self.chance(0.2):
            return self.delete(f"{path}/{name}")
        meta: Object = {"name": name}
        if self.chance(0.2):
            meta["annotations"] = {"kubernetes.io/ingress.class": self.pick("s1", "")}
        spec: Object = {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}
        if self.chance(0.3):
            spec["ingressClassName"] = self.pick("s1", "s2", None)
        return self.write(path, {"metadata": meta, "spec": spec}, ("networking.k8s.io/v1", "Ingress"))

    def cleanup(self) -> Iterable[Request]:
        for name in ("s1", "s2", "s3"):
            yield {"method": "DELETE", "path": f"{self._STORAGE}/{name}"}
            yield {"method": "DELETE", "path": f"{self._INGRESS}/{name}"}


class Owners(Topic):
    """OwnerReferencesPermissionEnforcement."""

    _RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"

    def setup(self) -> Iterable[Request]:
        yield self.create_namespace({})
        rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create", "update", "patch"]}]
        if self.chance(0.5):
            rules[0]["verbs"].append("delete")
        for resource in self.some(("configmaps", "pods", "deployments"), 0.5):
            group = "apps" if resource == "deployments" else ""
            rules.append({"apiGroups": [group], "resources": [f"{resource}/finalizers"], "verbs": ["update"]})
        if self.chance(0.2):
            rules.append({"apiGroups": [""], "resources": ["nodes/finalizers"], "verbs": ["*"]})
        name = {"metadata": {"name": self.namespace}}
        yield post(f"{self._RBAC}/clusterroles", {**name, "rules": rules})
        subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": self.namespace}
        role = {"kind": "ClusterRole", "apiGroup": "rbac.authorization.k8s.io", "name": self.namespace}
        yield post(f"{self._RBAC}/clusterrolebindings", {**name, "subjects": [subject], "roleRef": role})

    def request(self) -> Request:
        path, name = self.path("configmaps"), self.pick(*NAMES)
        meta: Object = {"name": name}
        if self.chance(0.8):
            meta["ownerReferences"] = [self._owner() for _ in range(self.pick(1, 1, 2))]
        request = self.write(path, {"metadata": meta, "data": {"a": self.pick("1", "2")}}, ("v1", "ConfigMap"))
        if self.chance(0.1):
            request = self.delete(f"{path}/{name}")
        return as_user(request, self.namespace) if self.chance(0.8) else request

    def _owner(self) -> Object:
        version, kind = self.pick(
            ("v1", "ConfigMap"),
            ("v1", "Pod"),
            ("apps/v1", "Deployment"),
            ("v1", "Node"),
            ("x.io/v1", "Lost"),
            ("v1", "Lost"),
        )
        found: Object = {
            "apiVersion": version,
            "kind": kind,
            "name": self.pick("o1", "o2"),
            "uid": self.pick("u1", "u2"),
        }
        for key in self.some(("blockOwnerDeletion", "controller"), 0.5):
            found[key] = self.pick(True, True, False)
        return found


class Events(Topic):
    """EventRateLimit: bursts with rests between them."""

    def setup(self) -> Iterable[Request]:
        yield self.create_namespace({})
        yield post("/api/v1/namespaces", {"metadata": {"name": f"{self.namespace}-b"}})
        self.number = 0

    def request(self) -> Request:
        self.number += 1
        self.pause = 13.0 if self.number % 20 == 0 else 0.0
        namespace = self.pick(self.namespace, self.namespace, f"{self.namespace}-b")
        about = {"kind": "Pod", "namespace": namespace, "name": self.pick("a", "b"), "apiVersion": "v1"}
        name = f"e{self.number}" if self.chance(0.8) else f"e{self.random.randrange(self.number)}"
        query = self.pick("", "", "", "", "?dryRun=All")
        meta = {"name": name}
        if self.chance(0.3):
            new = {
                "metadata": meta,
                "regarding": about,
                "eventTime": "2026-01-01T00:00:00.000000Z",
                "reportingController": "c.io/a",
                "reportingInstance": "i",
                "action": "A",
                "reason": "R",
                "type": "Normal",
            }
            request = post(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events{query}", new)
        else:
            old = {
                "metadata": meta,
                "involvedObject": about,
                "source": {"component": self.pick("c", "d")},
                "reason": "R",
            }
            request = self.pick(
                post(f"/api/v1/namespaces/{namespace}/events{query}", old),
                patch(f"/api/v1/namespaces/{namespace}/events/{name}", {"message": self.pick("x", "y")}),
                post(f"/api/v1/namespaces/{namespace}/events{query}", old),
            )
        return as_user(request, self.pick("jane", "joe"), "system:masters") if self.chance(0.5) else dict(request)


class Services(Topic):
    """DenyServiceExternalIPs."""

    def request(self) -> Request:
        spec: Object = {"ports": [{"port": 80}]}
        if self.chance(0.6):
            spec["externalIPs"] = self.some(("1.2.3.4", "5.6.7.8", "fd00::1"), 0.5)
        path, name = self.path("services"), self.pick("s1", "s2")
        if self.chance(0.15):
            return self.delete(f"{path}/{name}")
        if self.chance(0.3):
            return patch(f"{path}/{name}", {"spec": {"externalIPs": self.pick([], None, ["1.2.3.4"], ["9.9.9.9"])}})
        return self.write(path, {"metadata": {"name": name}, "spec": spec}, ("v1", "Service"))


class Lifecycle(Topic):
    """NamespaceLifecycle."""

    pause = 0.03

    def setup(self) -> Iterable[Request]:
        yield self.create_namespace({})
        yield post("/api/v1/namespaces", {"metadata": {"name": f"{self.namespace}-end"}})
        yield post(f"/api/v1/namespaces/{self.namespace}-end/configmaps", {"metadata": {"name": "p1"}})
        yield {"method": "DELETE", "path": f"/api/v1/namespaces/{self.namespace}-end"}

    def request(self) -> Request:
        if self.chance(0.2):
            name = self.pick("default", "kube-system", "kube-public", "kube-node-lease", self.namespace, "lost")
            return {"method": "DELETE", "path": f"/api/v1/namespaces/{name}?dryRun=All"}
        place = self.pick(self.namespace, f"{self.namespace}-end", f"{self.namespace}-end", "lost")
        kind, resource, group, content = self.pick(
            ("ConfigMap", "configmaps", "v1", {"data": {"a": self.pick("1", "2")}}),
            ("Pod", "pods", "v1", {"spec": self.pod_spec(False)}),
            ("Deployment", "deployments", "apps/v1", {"spec": self._workload()}),
        )
        path = f"{'/api' if group == 'v1' else '/apis'}/{group}/namespaces/{place}/{resource}"
        name = self.pick("p1", "p2")
        if self.chance(0.1):
            return self.delete(f"{path}/{name}")
        if self.chance(0.1):
            attributes = {"namespace": place, "verb": "get", "resource": "pods"}
            review = {"spec": {"resourceAttributes": attributes, "user": "jane"}}
            return post(f"/apis/authorization.k8s.io/v1/namespaces/{place}/localsubjectaccessreviews", review)
        if self.chance(0.1):
            return patch(f"{path}/{name}/status", {"status": {"phase": "Running"}})
        if kind == "Deployment" and self.chance(0.3):
            return patch(f"{path}/{name}/scale", {"spec": {"replicas": self.pick(1, 2)}})
        if kind == "Pod" and self.chance(0.3):
            return post(f"{path}/{name}/eviction", {"metadata": {"name": name}})
        return self.write(path, {"metadata": {"name": name}, **content}, (group, kind))

    def _workload(self) -> Object:
        template = {"metadata": {"labels": {"a": "b"}}, "spec": self.pod_spec(False)}
        return {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template}
