"""Random limit ranges and resource quotas, and pods and others that they limit."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from conformance.random.topics.topic import COMPUTE, EXTENDED, NAMES, Object, Request, Topic, patch, post


class LimitRanger(Topic):
    def setup(self) -> Iterable[Request]:
        yield self.create_namespace({})
        yield self._range("one")
        if self.chance(0.3):
            yield self._range("two")

    def _range(self, name: str) -> Request:
        limits = [self._limit() for _ in range(self.pick(1, 1, 2, 3))]
        return post(self.path("limitranges"), {"metadata": {"name": name}, "spec": {"limits": limits}})

    def _limit(self) -> Object:
        kind = self.pick("Container", "Container", "Pod", "PersistentVolumeClaim")
        names = (
            ("storage",)
            if kind == "PersistentVolumeClaim"
            else self.pick(COMPUTE, ("cpu",), ("memory",), (*COMPUTE, *EXTENDED))
        )
        limit: Object = {"type": kind}
        small = {"cpu": "100m", "memory": "64Mi", "ephemeral-storage": "1000", "storage": "1Gi"}
        large = {"cpu": "2", "memory": "2Gi", "ephemeral-storage": "2Gi", "storage": "5Gi", "hugepages-2Mi": "4Mi"}
        if self.chance(0.5):
            limit["max"] = {name: large.get(name, "3") for name in self.some(names, 0.7)}
        if self.chance(0.5):
            limit["min"] = {name: small.get(name, "1") for name in self.some(names, 0.7) if not name.startswith("huge")}
        if self.chance(0.3):
            limit["maxLimitRequestRatio"] = {name: self.pick("1", "1.1", "2", "1.5") for name in self.some(names, 0.6)}
        if self.chance(0.6) and (kind == "Container" or self.chance(0.05)):
            default = {name: self.pick(large.get(name, "2"), small.get(name, "2")) for name in self.some(names, 0.7)}
            limit["default"] = default
            if self.chance(0.6):
                limit["defaultRequest"] = {
                    name: small.get(name, default.get(name, "2")) for name in self.some(names, 0.7)
                }
        return limit

    def request(self) -> Request:
        if self.chance(0.2):
            return self._claim()
        if self.chance(0.1):
            return self.write(
                self.path("limitranges"), self._range(self.pick("three", "one"))["body"], ("v1", "LimitRange")
            ) | {
                "path": self.path("limitranges") + "?dryRun=All",
                "method": "POST",
                "type": "application/json",
            }
        return self.any_pod_request(self.pod)

    def _claim(self) -> Request:
        storage = self.pick("1Gi", "512Mi", "6Gi", "5Gi", "0.5")
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}
        obj = {"metadata": {"name": self.pick("v1", "v2", "v3")}, "spec": spec}
        path = self.path("persistentvolumeclaims")
        if self.chance(0.2):
            return self.delete(f"{path}/{obj['metadata']['name']}")
        return self.write(path, obj, ("v1", "PersistentVolumeClaim"))


class ResourceQuota(Topic):
    _SCOPES: Final = (
        "Terminating",
        "NotTerminating",
        "BestEffort",
        "NotBestEffort",
        "PriorityClass",
        "CrossNamespacePodAffinity",
    )
    _POD: Final = (
        "pods",
        "count/pods",
        "cpu",
        "memory",
        "requests.cpu",
        "requests.memory",
        "limits.cpu",
        "limits.memory",
    )
    _ODD: Final = (
        "requests.ephemeral-storage",
        "ephemeral-storage",
        "limits.ephemeral-storage",
        "requests.example.com/gpu",
        "requests.hugepages-2Mi",
        "hugepages-2Mi",
        "requests.deviceclass.resource.kubernetes.io/fast",
    )
    _OTHER: Final = (
        "services",
        "count/services",
        "services.nodeports",
        "services.loadbalancers",
        "configmaps",
        "count/configmaps",
        "count/secrets",
        "secrets",
        "replicationcontrollers",
        "resourcequotas",
        "count/resourcequotas",
        "count/deployments.apps",
        "count/jobs.batch",
        "count/serviceaccounts",
    )
    _CLAIMS: Final = (
        "persistentvolumeclaims",
        "count/persistentvolumeclaims",
        "requests.storage",
        "gold.storageclass.storage.k8s.io/requests.storage",
        "gold.storageclass.storage.k8s.io/persistentvolumeclaims",
    )
    _DEVICES: Final = (
        "count/resourceclaims.resource.k8s.io",
        "fast.deviceclass.resource.k8s.io/devices",
        "slow.deviceclass.resource.k8s.io/devices",
        "requests.deviceclass.resource.kubernetes.io/fast",
    )

    def setup(self) -> Iterable[Request]:
        yield self.create_namespace({})
        for name in ("bronze", "dear"):
            yield post("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": 5})
        self.theme = self.pick("pods", "pods", "pods", "other", "claims", "devices")
        for name in ("q1", "q2")[: self.pick(1, 1, 2)]:
            quota = self._quota(name)
            yield post(self.path("resourcequotas"), quota)
            if self.chance(0.95):
                hard = quota["spec"].get("hard", {})
                used = {key: self.pick("0", "0", "1") for key in hard}
                if self.chance(0.1) and used:
                    used.pop(next(iter(used)))
                status = {"status": {"hard": hard, "used": used}}
                yield patch(f"{self.path('resourcequotas')}/{name}/status", status)

    def _quota(self, name: str) -> Object:
        names = {
            "pods": (*self._POD, *self.some(self._ODD, 0.4)),
            "other": self._OTHER,
            "claims": self._CLAIMS,
            "devices": self._DEVICES,
        }[self.theme]
        hard = {}
        for key in self.some(names, self.pick(0.2, 0.5)):
            hard[key] = self._hard(key)
        spec: Object = {"hard": hard}
        if self.theme == "pods" and self.chance(0.5):
            if self.chance(0.5):
                spec["scopes"] = self.some(self._SCOPES, 0.25)
            else:
                spec["scopeSelector"] = {"matchExpressions": [self._selector() for _ in range(self.pick(1, 1, 2))]}
        if self.theme == "claims" and self.chance(0.4):
            spec["scopeSelector"] = {"matchExpressions": [self._selector("VolumeAttributesClass")]}
        return {"metadata": {"name": name}, "spec": spec}

    def _hard(self, key: str) -> str:
        if "hugepages" in key:
            return "16Mi"
        if "memory" in key or key.endswith("storage"):
            return str(self.pick("3Gi", "4Gi", "3e9"))
        return str(self.pick("3", "4", "5500m", "8")) if "cpu" in key else str(self.pick("2", "3", "5", "0"))

    def _selector(self, scope: str = "") -> Object:
        scope = scope or self.pick("PriorityClass", "PriorityClass", *self._SCOPES)
        operator = (
            self.pick("In", "NotIn", "Exists", "DoesNotExist")
            if scope in ("PriorityClass", "VolumeAttributesClass")
            else self.pick("Exists", "Exists", "Exists", "In")
        )
        found = {"scopeName": scope, "operator": operator}
        if operator in ("In", "NotIn"):
            found["values"] = self.pick(["bronze"], ["bronze", "dear"], ["dear"])
        return found

    def request(self) -> Request:
        if self.chance(0.1):
            return {"method": "GET", "path": self.path("resourcequotas")}
        if self.chance(0.05):
            return self.write(self.path("resourcequotas"), self._quota(self.pick("q2", "q3")), ("v1", "ResourceQuota"))
        match self.theme:
            case "pods":
                return self.any_pod_request(self._pod)
            case "other":
                return self._other()
            case "claims":
                return self._claim()
            case _:
                return self._device_claim()

    def _pod(self) -> Object:
        pod = self.pod(self.chance(0.8))
        spec = pod["spec"]
        if self.chance(0.3):
            spec["activeDeadlineSeconds"] = 10
        if self.chance(0.4):
            spec["priorityClassName"] = self.pick("bronze", "dear")
        if self.chance(0.3):
            term: Object = {"topologyKey": "a", "labelSelector": {}}
            term |= self.pick({}, {"namespaces": ["x"]}, {"namespaceSelector": {}}, {"namespaces": []})
            kind = self.pick("podAffinity", "podAntiAffinity")
            spec["affinity"] = {
                kind: self.pick(
                    {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
                    {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]},
                )
            }
        return pod

    def _other(self) -> Request:
        kinds: Mapping[str, tuple[str, str, Callable[[], Object]]] = {
            "services": ("v1", "Service", self._service),
            "configmaps": ("v1", "ConfigMap", lambda: {"data": {"a": self.pick("1", "2")}}),
            "secrets": ("v1", "Secret", lambda: {"stringData": {"a": self.pick("1", "2")}}),
            "serviceaccounts": ("v1", "ServiceAccount", dict),
            "replicationcontrollers": ("v1", "ReplicationController", lambda: {"spec": self._workload(None)}),
            "deployments": ("apps/v1", "Deployment", lambda: {"spec": self._workload({"matchLabels": {"a": "b"}})}),
            "jobs": ("batch/v1", "Job", self._job),
        }
        resource = self.pick("services", "services", "services", *kinds)
        group, kind, content = kinds[resource]
        path, name = self.path(resource, group), self.pick(*NAMES)
        if self.chance(0.2):
            return self.delete(f"{path}/{name}")
        if self.chance(0.05):
            return {"method": "DELETE", "path": path}
        return self.write(path, {"metadata": {"name": name}, **content()}, (group, kind))

    def _workload(self, selector: Object | None) -> Object:
        template = {"metadata": {"labels": {"a": "b"}}, "spec": self.pod_spec(False)}
        return {"replicas": self.pick(0, 1), "selector": selector or {"a": "b"}, "template": template}

    def _job(self) -> Object:
        return {"spec": {"template": {"spec": {**self.pod_spec(False), "restartPolicy": "Never"}}}}

    def _service(self) -> Object:
        kind = self.pick("ClusterIP", "NodePort", "NodePort", "LoadBalancer", "ExternalName")
        ports: list[Object] = [{"name": f"a{i}", "port": 80 + i} for i in range(self.pick(1, 2, 3))]
        spec: Object = {"type": kind, "ports": ports}
        if kind == "LoadBalancer" and self.chance(0.5):
            spec["allocateLoadBalancerNodePorts"] = self.pick(True, False)
        if kind == "ExternalName":
            spec["externalName"] = "a.example.com"
        return {"spec": spec}

    def _claim(self) -> Request:
        path, name = self.path("persistentvolumeclaims"), self.pick(*NAMES)
        if self.chance(0.2):
            return self.delete(f"{path}/{name}")
        if self.chance(0.15):
            status: Object = {"phase": self.pick("Bound", "Pending")}
            if self.chance(0.5):
                status["allocatedResources"] = {"storage": self.pick("1Gi", "2Gi", "3Gi")}
            if self.chance(0.3):
                status["currentVolumeAttributesClassName"] = self.pick("bronze", "dear")
            return patch(f"{path}/{name}/status", {"status": status})
        spec: Object = {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": self.pick("1Gi", "500Mi", "0.5", "100m", "2Gi")}},
        }
        if self.chance(0.5):
            spec["storageClassName"] = self.pick("gold", "iron", "")
        if self.chance(0.4):
            spec["volumeAttributesClassName"] = self.pick("bronze", "dear", "other")
        meta: Object = {"name": name}
        if self.chance(0.15):
            meta["annotations"] = {"volume.beta.kubernetes.io/storage-class": self.pick("gold", "")}
        return self.write(path, {"metadata": meta, "spec": spec}, ("v1", "PersistentVolumeClaim"))

    def _device_claim(self) -> Request:
        path, name = self.path("resourceclaims", "resource.k8s.io/v1"), self.pick(*NAMES)
        if self.chance(0.2):
            return self.delete(f"{path}/{name}")
        requests = [self._device_request(f"r{i}") for i in range(self.pick(1, 1, 2))]
        obj = {"metadata": {"name": name}, "spec": {"devices": {"requests": requests}}}
        return self.write(path, obj, ("resource.k8s.io/v1", "ResourceClaim"))

    def _device_request(self, name: str) -> Object:
        def one() -> Object:
            mode = self.pick(
                {}, {"allocationMode": "All"}, {"allocationMode": "ExactCount", "count": self.pick(1, 2, 3)}
            )
            return {"deviceClassName": self.pick("fast", "slow"), **mode}

        if self.chance(0.3):
            return {"name": name, "firstAvailable": [{"name": f"s{i}", **one()} for i in range(self.pick(1, 2))]}
        return {"name": name, "exactly": one()}
