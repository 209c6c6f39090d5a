"""Settings and requests for each group of admission plugins, from one random source: what `conformance.compare.access.admission` sends."""

import json
from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Any, Final

Object = dict[str, Any]
Request = dict[str, Any]

_MERGE: Final = "application/merge-patch+json"
_STRATEGIC: Final = "application/strategic-merge-patch+json"
_APPLY: Final = "application/apply-patch+yaml"
_NAMES: Final = ("p1", "p2", "p3", "p4")
_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
# More than what containers ask for in all.
_LARGE: Final = {"cpu": "20", "memory": "20Gi", "hugepages-2Mi": "64Mi"}
_EXTENDED: Final = ("example.com/gpu", "hugepages-2Mi", "deviceclass.resource.kubernetes.io/fast")


class Topic:
    """A round of requests. `pause` is the number of seconds between two requests."""

    pause: float = 0.0

    def __init__(self, random: Random, namespace: str) -> None:
        self.random = random
        self.namespace = namespace

    def setup(self) -> Iterable[Request]:
        yield self.create_namespace({})

    def request(self) -> Request:
        raise NotImplementedError

    def cleanup(self) -> Iterable[Request]:
        return ()

    # ------------------------------------------------------------------ choosing

    def pick(self, *options: Any) -> Any:
        return self.random.choice(options)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def some(self, options: Iterable[str], share: float = 0.5) -> list[str]:
        return [option for option in options if self.chance(share)]

    # ------------------------------------------------------------------ requests

    def create_namespace(self, meta: Object) -> Request:
        return post("/api/v1/namespaces", {"metadata": {"name": self.namespace, **meta}})

    def path(self, resource: str, group: str = "v1") -> str:
        return f"{'/api' if group == 'v1' else '/apis'}/{group}/namespaces/{self.namespace}/{resource}"

    def write(self, path: str, obj: Object, kind: tuple[str, str]) -> Request:
        """The object by any verb that makes one."""
        name = obj["metadata"]["name"]
        verb = self.pick("create", "create", "create", "create", "dry", "put", "apply", "merge")
        if verb in ("create", "dry"):
            return post(path + ("?dryRun=All" if verb == "dry" else ""), obj)
        if verb == "put":
            return {"method": "PUT", "path": f"{path}/{name}", "body": obj}
        if verb == "merge":
            return patch(f"{path}/{name}", obj)
        typed = {"apiVersion": kind[0], "kind": kind[1], **obj}
        return patch(f"{path}/{name}?fieldManager=m&force=true", typed, _APPLY)

    def delete(self, path: str) -> Request:
        return {"method": "DELETE", "path": f"{path}{self.pick('', '', '?dryRun=All', '?gracePeriodSeconds=0')}"}

    # ---------------------------------------------------------------------- pods

    def quantity(self, name: str) -> str:
        return str(self.pick(*_quantities(name)))

    def resources(self, share: float = 0.6, names: Iterable[str] = (*_COMPUTE, *_EXTENDED)) -> Object:
        """Mostly good ones: no request is more than its limit, and what can't be shared has both."""
        requests: dict[str, str] = {}
        limits: dict[str, str] = {}
        for name in self.some(names, share):
            amounts = _quantities(name)
            low, high = sorted((self.random.randrange(len(amounts)), self.random.randrange(len(amounts))))
            if name in _EXTENDED:
                low = high
            has = self.pick("both", "both", "request", "limit") if name in _COMPUTE else "both"
            if has != "limit":
                requests[name] = amounts[high if self.chance(0.02) else low]
            if has != "request":
                limits[name] = amounts[high]
        if "hugepages-2Mi" in requests:
            requests.setdefault("cpu", "0.0001")
        return {key: values for key, values in (("requests", requests), ("limits", limits)) if values}

    def container(self, name: str, resources: bool = True) -> Object:
        found: Object = {"name": name, "image": self.pick("i", "i:1", "j:2")}
        if resources and self.chance(0.8):
            found["resources"] = self.resources(
                0.4, self.pick(_COMPUTE, _COMPUTE, ("cpu", "memory"), (*_COMPUTE, *_EXTENDED))
            )
        return found

    def pod_spec(self, resources: bool = True) -> Object:
        spec: Object = {"containers": [self.container(f"c{i}", resources) for i in range(self.pick(1, 1, 2))]}
        if self.chance(0.3):
            spec["initContainers"] = [self.container(f"i{i}", resources) for i in range(self.pick(1, 2))]
            for container in spec["initContainers"]:
                if self.chance(0.5):
                    container["restartPolicy"] = "Always"
        if resources and self.chance(0.2):
            names = ("cpu", "memory", *self.some(("hugepages-2Mi",)))
            requests = {name: _LARGE[name] for name in names}
            spec["resources"] = {"requests": requests, "limits": dict(requests)}
        return spec

    def pod(self, resources: bool = True) -> Object:
        return {"metadata": {"name": self.pick(*_NAMES)}, "spec": self.pod_spec(resources)}

    def resize(self) -> Request:
        change: Object = {"spec": {"containers": [{"name": "c0", "resources": self.resources(0.5, ("cpu", "memory"))}]}}
        if self.chance(0.2):
            change["spec"] = {"resources": self.resources(0.5, ("cpu", "memory"))}
        return patch(
            f"{self.path('pods')}/{self.pick(*_NAMES)}/resize{self.pick('', '?dryRun=All')}", change, _STRATEGIC
        )

    def debug(self) -> Request:
        added = {"name": self.pick("d1", "d2", "d3"), "image": "d"}
        change = {"spec": {"ephemeralContainers": [added]}}
        return patch(f"{self.path('pods')}/{self.pick(*_NAMES)}/ephemeralcontainers", change, _STRATEGIC)

    def any_pod_request(self, pod: Callable[[], Object]) -> Request:
        path, name = self.path("pods"), self.pick(*_NAMES)
        match self.pick(*"wwwwwwwwdrlsebD"):
            case "w":
                return self.write(path, pod(), ("v1", "Pod"))
            case "d":
                return self.delete(f"{path}/{name}")
            case "r":
                return self.resize()
            case "l":
                return patch(f"{path}/{name}", {"metadata": {"labels": {"a": self.pick("b", "c")}}})
            case "s":
                return patch(
                    f"{path}/{name}/status", {"status": {"phase": self.pick("Running", "Succeeded", "Failed")}}
                )
            case "e":
                return self.debug()
            case "b":
                return post(
                    f"{path}/{name}/binding", {"metadata": {"name": name}, "target": {"kind": "Node", "name": "n"}}
                )
            case _:
                return patch(f"{path}/{name}", {"spec": {"activeDeadlineSeconds": self.pick(5, 100)}})


def _quantities(name: str) -> tuple[str, ...]:
    """In order of size."""
    if name == "cpu":
        return "0", "0.0001", "100m", "0.5", "1", "1500m", "2", "3"
    if name.startswith("hugepages"):
        return "2Mi", "4Mi", "8Mi"
    if "/" in name:
        return "0", "1", "2", "5"
    return "0", "100m", "1000", "64Mi", "128Mi", "0.5Gi", "1e9", "1G", "2Gi"


def post(path: str, body: Object) -> Request:
    return {"method": "POST", "path": path, "body": body}


def patch(path: str, body: Any, kind: str = _MERGE) -> Request:
    return {"method": "PATCH", "path": path, "body": body, "type": kind}


def as_user(request: Request, user: str, *groups: str) -> Request:
    headers = {"Impersonate-User": user}
    if groups:
        headers["Impersonate-Group"] = groups[0]
    return {**request, "headers": headers}


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
            else self.pick(_COMPUTE, ("cpu",), ("memory",), (*_COMPUTE, *_EXTENDED))
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
        path, name = self.path(resource, group), self.pick(*_NAMES)
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
        path, name = self.path("persistentvolumeclaims"), self.pick(*_NAMES)
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
        path, name = self.path("resourceclaims", "resource.k8s.io/v1"), self.pick(*_NAMES)
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


class PodSecurity(Topic):
    _PREFIX: Final = "pod-security.kubernetes.io/"

    def setup(self) -> Iterable[Request]:
        if self.chance(0.15):
            self.namespace = "exempt-1"
        yield self.create_namespace({"labels": self._labels()})
        for name, handler in (("exempt", "h"), ("plain", "h")):
            yield post("/apis/node.k8s.io/v1/runtimeclasses", {"metadata": {"name": name}, "handler": handler})

    def _labels(self, bad: float = 0.03) -> Object:
        found = {}
        for mode in self.some(("enforce", "warn", "audit"), 0.6):
            found[self._PREFIX + mode] = (
                "wrong"
                if self.chance(bad)
                else self.pick("baseline", "restricted", "restricted", "privileged", "baseline")
            )
        for mode in self.some(("enforce", "warn", "audit"), 0.4):
            version = (
                "1.2"
                if self.chance(bad)
                else self.pick(
                    "latest",
                    *(f"v1.{minor}" for minor in (0, 7, 8, 18, 19, 21, 22, 23, 24, 25, 27, 29, 31, 32, 34, 35, 36, 99)),
                )
            )
            found[f"{self._PREFIX}{mode}-version"] = version
        if self.chance(0.1):
            found[self._PREFIX + "other"] = "x"
        return found

    def request(self) -> Request:
        request = self._request()
        return as_user(request, self.pick("trusted", "somebody"), "system:masters") if self.chance(0.1) else request

    def _request(self) -> Request:
        namespace = f"/api/v1/namespaces/{self.namespace}"
        if self.chance(0.1):
            labels = {
                self._PREFIX + key: None for key in self.some(("enforce", "warn", "audit", "enforce-version"), 0.3)
            } | self._labels(0.2)
            query = self.pick("", "", "?dryRun=All")
            return patch(namespace + query, {"metadata": {"labels": labels}})
        if self.chance(0.03):
            return post(
                "/api/v1/namespaces?dryRun=All",
                {"metadata": {"name": self.pick("made", "exempt-1"), "labels": self._labels(0.3)}},
            )
        if self.chance(0.25):
            return self._controller()
        return self.any_pod_request(
            lambda: {
                "metadata": {"name": self.pick(*_NAMES), **self._owners(), **self._annotations()},
                "spec": self.secured_spec(),
            }
        )

    def _owners(self) -> Object:
        if self.chance(0.8):
            return {}
        return {
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": "r",
                    "uid": self.pick("u1", "u2"),
                    "controller": True,
                }
            ]
        }

    def _annotations(self) -> Object:
        if self.chance(0.8):
            return {}
        return {
            "annotations": self.pick(
                {"seccomp.security.alpha.kubernetes.io/pod": self.pick("unconfined", "runtime/default", "localhost/x")},
                {
                    "container.apparmor.security.beta.kubernetes.io/c0": self.pick(
                        "unconfined", "runtime/default", "localhost/x"
                    )
                },
                {"container.seccomp.security.alpha.kubernetes.io/c0": self.pick("unconfined", "runtime/default")},
            )
        }

    def _controller(self) -> Request:
        template = {"metadata": {"labels": {"a": "b"}, **self._annotations()}, "spec": self.secured_spec()}
        selector = {"matchLabels": {"a": "b"}}
        never = {**template, "spec": {**template["spec"], "restartPolicy": "Never"}}
        kinds: Mapping[str, tuple[str, str, Object]] = {
            "podtemplates": ("v1", "PodTemplate", {"template": template}),
            "replicationcontrollers": (
                "v1",
                "ReplicationController",
                {"spec": {"selector": {"a": "b"}, "template": template}},
            ),
            "deployments": ("apps/v1", "Deployment", {"spec": {"selector": selector, "template": template}}),
            "daemonsets": ("apps/v1", "DaemonSet", {"spec": {"selector": selector, "template": template}}),
            "replicasets": ("apps/v1", "ReplicaSet", {"spec": {"selector": selector, "template": template}}),
            "statefulsets": (
                "apps/v1",
                "StatefulSet",
                {"spec": {"selector": selector, "serviceName": "s", "template": template}},
            ),
            "jobs": ("batch/v1", "Job", {"spec": {"template": never}}),
            "cronjobs": (
                "batch/v1",
                "CronJob",
                {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": never}}}},
            ),
        }
        resource = self.pick(*kinds)
        group, kind, content = kinds[resource]
        path, name = self.path(resource, group), self.pick("w1", "w2")
        if self.chance(0.15):
            return self.delete(f"{path}/{name}")
        return self.write(path, {"metadata": {"name": name}, **content}, (group, kind))

    def secured_spec(self) -> Object:
        spec = self.pod_spec(False)
        level = self.pick(0.0, 0.05, 0.15)  # how odd it is
        for container in (*spec["containers"], *spec.get("initContainers", ())):
            if self.chance(0.7):
                container["securityContext"] = self._context(level)
            if self.chance(level):
                container["ports"] = [{"containerPort": 80, "hostPort": self.pick(80, 0, 81)}]
            if self.chance(level):
                handler = self.pick(
                    {"httpGet": {"port": 80, "host": self.pick("h", "")}}, {"tcpSocket": {"port": 80, "host": "h"}}
                )
                container.update(
                    self.pick(
                        {"livenessProbe": handler}, {"lifecycle": {"postStart": handler}}, {"readinessProbe": handler}
                    )
                )
        if self.chance(0.6):
            spec["securityContext"] = self._pod_context(level)
        for field in ("hostNetwork", "hostPID", "hostIPC"):
            if self.chance(level):
                spec[field] = self.pick(True, False)
        if self.chance(level):
            spec["hostUsers"] = self.pick(True, False)
        if self.chance(level):
            spec["os"] = {"name": self.pick("windows", "linux")}
        if self.chance(0.1):
            spec["runtimeClassName"] = self.pick("exempt", "plain")
        if self.chance(0.4):
            spec["volumes"] = [{"name": f"v{i}", **self._volume(level)} for i in range(self.pick(1, 2))]
        return spec

    def _volume(self, level: float) -> Any:
        good: tuple[Object, ...] = (
            {"emptyDir": {}},
            {"configMap": {"name": "c"}},
            {"secret": {"secretName": "s"}},
            {"projected": {"sources": []}},
            {},
        )
        bad = (
            {"hostPath": {"path": "/x"}},
            {"nfs": {"server": "s", "path": "/p"}},
            {"iscsi": {"targetPortal": "1.2.3.4", "iqn": "iqn.2001-04.com.example:a", "lun": 0}},
            {"image": {"reference": "r"}},
            {"csi": {"driver": "d.example.com"}},
            {
                "ephemeral": {
                    "volumeClaimTemplate": {
                        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
                    }
                }
            },
            {"gcePersistentDisk": {"pdName": "p"}},
        )
        return self.pick(*bad) if self.chance(3 * level) else self.pick(*good)

    def _seccomp(self, level: float) -> Object:
        if self.chance(level):
            return {"type": self.pick("Unconfined", "Localhost"), **self.pick({}, {"localhostProfile": "p"})}
        return {"type": "RuntimeDefault"}

    def _context(self, level: float) -> Object:
        found: Object = {}
        if self.chance(0.8):
            found["allowPrivilegeEscalation"] = self.chance(level)
        if self.chance(0.8):
            found["capabilities"] = {"drop": ["all" if self.chance(level) else "ALL"]}
            if self.chance(2 * level):
                found["capabilities"]["add"] = self.some(
                    ("NET_BIND_SERVICE", "CHOWN", "SYS_ADMIN", "NET_RAW", "KILL"), 0.4
                )
        if self.chance(0.6):
            found["runAsNonRoot"] = not self.chance(level)
        if self.chance(0.6):
            found["seccompProfile"] = self._seccomp(level)
        if self.chance(level):
            found["privileged"] = self.pick(True, False)
        if self.chance(level):
            found["procMount"] = self.pick("Default", "Unmasked")
        if self.chance(level):
            found["runAsUser"] = self.pick(0, 1000)
        if self.chance(level):
            found["seLinuxOptions"] = self._selinux()
        if self.chance(level):
            found["appArmorProfile"] = self.pick(
                {"type": "Unconfined"}, {"type": "RuntimeDefault"}, {"type": "Localhost", "localhostProfile": "p"}
            )
        if self.chance(level):
            found["windowsOptions"] = {"hostProcess": self.pick(True, False)}
        return found

    def _selinux(self) -> Object:
        options: Object = {"type": self.pick("container_t", "container_init_t", "container_engine_t", "spc_t", "")}
        return options | dict(self.pick({}, {"user": "u"}, {"role": "r"}, {"user": "u", "role": "r"}))

    def _pod_context(self, level: float) -> Object:
        found: Object = {}
        if self.chance(0.6):
            found["runAsNonRoot"] = not self.chance(level)
        if self.chance(0.6):
            found["seccompProfile"] = self._seccomp(level)
        if self.chance(level):
            found["runAsUser"] = self.pick(0, 1000)
        if self.chance(level):
            found["seLinuxOptions"] = self._selinux()
        if self.chance(level):
            found["appArmorProfile"] = self.pick({"type": "Unconfined"}, {"type": "RuntimeDefault"})
        if self.chance(level):
            names = (
                "kernel.shm_rmid_forced",
                "net.ipv4.ip_local_port_range",
                "net.ipv4.tcp_keepalive_time",
                "net.ipv4.tcp_rmem",
                "kernel.msgmax",
                "net.ipv4.ip_local_reserved_ports",
            )
            found["sysctls"] = [{"name": name, "value": "1"} for name in self.some(names, 0.4)]
        if self.chance(level):
            found["windowsOptions"] = {"hostProcess": self.pick(True, False)}
        return found


class Priority(Topic):
    _PATH: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"

    def setup(self) -> Iterable[Request]:
        yield self.create_namespace({})
        for name in ("c1", "c2", "c3"):
            yield post(self._PATH, self._class(name))

    def _class(self, name: str) -> Object:
        found: Object = {"metadata": {"name": name}, "value": self.pick(1, 5, -3, 0, 1000000000, 1000000001)}
        if self.chance(0.3):
            found["globalDefault"] = self.pick(True, True, False)
        if self.chance(0.4):
            found["preemptionPolicy"] = self.pick("Never", "PreemptLowerPriority", "Sometimes")
        return found

    def request(self) -> Request:
        if self.chance(0.15):
            self.pause = 0.25  # informers
            name = self.pick("c1", "c2", "c3", "system-x", "system-node-critical")
            if self.chance(0.3):
                return {"method": "DELETE", "path": f"{self._PATH}/{self.pick('c1', 'c2', 'c3')}"}
            return self.write(self._PATH, self._class(name), ("scheduling.k8s.io/v1", "PriorityClass"))
        self.pause = 0.25 if self.pause else 0.0
        request = self.any_pod_request(self._pod)
        self.pause = 0.0
        return request

    def _pod(self) -> Object:
        pod = self.pod(False)
        spec = pod["spec"]
        if self.chance(0.6):
            spec["priorityClassName"] = self.pick(
                "c1", "c2", "c3", "missing", "system-node-critical", "system-cluster-critical", ""
            )
        if self.chance(0.2):
            spec["priority"] = self.pick(0, 1, 5, 2000001000)
        if self.chance(0.2):
            spec["preemptionPolicy"] = self.pick("Never", "PreemptLowerPriority")
        return pod

    def cleanup(self) -> Iterable[Request]:
        for name in ("c1", "c2", "c3"):
            yield {"method": "DELETE", "path": f"{self._PATH}/{name}"}


class RuntimeClass(Topic):
    _PATH: Final = "/apis/node.k8s.io/v1/runtimeclasses"

    def setup(self) -> Iterable[Request]:
        yield self.create_namespace({})
        for name in ("r1", "r2", "r3"):
            yield post(self._PATH, self._class(name))

    def _class(self, name: str) -> Object:
        found: Object = {"metadata": {"name": name}, "handler": "h"}
        if self.chance(0.6):
            found["overhead"] = {"podFixed": {key: self.quantity(key) for key in self.some(("cpu", "memory"), 0.6)}}
        if self.chance(0.6):
            scheduling: Object = {}
            if self.chance(0.7):
                scheduling["nodeSelector"] = {key: self.pick("x", "y") for key in self.some(("a", "b", "c"), 0.4)}
            if self.chance(0.7):
                scheduling["tolerations"] = [self._toleration() for _ in range(self.pick(1, 2))]
            found["scheduling"] = scheduling
        return found

    def _toleration(self) -> Object:
        found: Object = {"key": self.pick("a", "b"), "operator": self.pick("Exists", "Equal", "Lt")}
        if found["operator"] != "Exists":
            found["value"] = self.pick("1", "2")
        if self.chance(0.7):
            found["effect"] = self.pick("NoSchedule", "NoExecute")
        if found.get("effect") == "NoExecute" and self.chance(0.5):
            found["tolerationSeconds"] = self.pick(5, 10)
        return found

    def request(self) -> Request:
        return self.any_pod_request(self._pod)

    def _pod(self) -> Object:
        pod = self.pod(self.chance(0.3))
        spec = pod["spec"]
        if self.chance(0.8):
            spec["runtimeClassName"] = self.pick("r1", "r2", "r3", "r1", "r2", "missing")
        if self.chance(0.3):
            spec["overhead"] = {key: self.quantity(key) for key in self.some(("cpu", "memory"), 0.6)}
        if self.chance(0.4):
            spec["nodeSelector"] = {key: self.pick("x", "y") for key in self.some(("a", "b", "c"), 0.4)}
        if self.chance(0.4):
            spec["tolerations"] = [self._toleration() for _ in range(self.pick(1, 2))]
        return pod

    def cleanup(self) -> Iterable[Request]:
        for name in ("r1", "r2", "r3"):
            yield {"method": "DELETE", "path": f"{self._PATH}/{name}"}


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
        path, name = self.path("persistentvolumeclaims"), self.pick(*_NAMES)
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
        path, name = self.path("ingresses", "networking.k8s.io/v1"), self.pick(*_NAMES)
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
        node, path, name = self.pick(*self.nodes), self.path("pods"), self.pick(*_NAMES)
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
        node, name = self.pick(*self.nodes), self.pick(*_NAMES)
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


class Tolerations(Topic):
    """PodTolerationRestriction, ExtendedResourceToleration, DefaultTolerationSeconds, PodNodeSelector, LimitPodHardAntiAffinityTopology."""

    def setup(self) -> Iterable[Request]:
        found = {}
        for name in self.some(("defaultTolerations", "tolerationsWhitelist"), 0.5):
            text = json.dumps([self._toleration() for _ in range(self.pick(0, 1, 2, 3))])
            found[f"scheduler.alpha.kubernetes.io/{name}"] = self.pick(text, text, text, text, "", "{", "null")
        if self.chance(0.5):
            text = self.pick(
                "a=x", "a=x,b=y", "pool=special", "", " a = x ", "a", "a==x", "a=x,,b=y", "a b=c", "a=b c", "A/b/c=d"
            )
            found["scheduler.alpha.kubernetes.io/node-selector"] = text
        yield self.create_namespace({"annotations": found})

    def _toleration(self) -> Object:
        found: Object = {}
        if self.chance(0.9):
            found["key"] = self.pick("a", "b", "c", "example.com/gpu", "node.kubernetes.io/not-ready")
        if self.chance(0.8):
            found["operator"] = self.pick("Exists", "Equal")
        if found.get("operator") != "Exists" and self.chance(0.7):
            found["value"] = self.pick("1", "2")
        if self.chance(0.7):
            found["effect"] = self.pick("NoSchedule", "NoExecute", "PreferNoSchedule")
        if found.get("effect") == "NoExecute" and self.chance(0.5):
            found["tolerationSeconds"] = self.pick(5, 10, 300)
        return found

    def request(self) -> Request:
        if self.chance(0.1):
            tolerations = [self._toleration() for _ in range(self.pick(1, 2, 4))]
            return patch(f"{self.path('pods')}/{self.pick(*_NAMES)}", {"spec": {"tolerations": tolerations}})
        return self.any_pod_request(self._pod)

    def _pod(self) -> Object:
        pod = self.pod(self.chance(0.6))
        spec = pod["spec"]
        if self.chance(0.5):
            spec["tolerations"] = [self._toleration() for _ in range(self.pick(1, 2, 3))]
        if self.chance(0.4):
            spec["nodeSelector"] = {key: self.pick("x", "y", "general") for key in self.some(("a", "b", "pool"), 0.5)}
        if self.chance(0.2):
            term = {"topologyKey": self.pick("kubernetes.io/hostname", "zone"), "labelSelector": {}}
            rule = self.pick("required", "required", "preferred")
            terms: Any = [term] if rule == "required" else [{"weight": 1, "podAffinityTerm": term}]
            spec["affinity"] = {"podAntiAffinity": {f"{rule}DuringSchedulingIgnoredDuringExecution": terms}}
        return pod


class Selectors(Tolerations):
    """PodNodeSelector in namespaces that the configuration names."""

    def setup(self) -> Iterable[Request]:
        self.namespace = self.pick("sel-1", "sel-2")
        yield {"method": "DELETE", "path": self.path("pods") + "?gracePeriodSeconds=0"}
        note = {"scheduler.alpha.kubernetes.io/node-selector": self.pick("a=x", "pool=general", "disk=ssd", "")}
        yield self.create_namespace({"annotations": note if self.chance(0.5) else {}})

    def _pod(self) -> Object:
        pod = super()._pod()
        if self.chance(0.6):
            keys = ("a", "pool", "zone", "disk")
            pod["spec"]["nodeSelector"] = {key: self.pick("x", "general", "a", "ssd") for key in self.some(keys, 0.4)}
        return pod


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
        path, name = self.path("configmaps"), self.pick(*_NAMES)
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


class Accounts(Topic):
    """ServiceAccount, AlwaysPullImages, NamespaceAutoProvision."""

    pause = 0.03

    def setup(self) -> Iterable[Request]:
        yield self.create_namespace({})
        for name in ("default", "a", "b"):
            yield post(self.path("serviceaccounts"), self._account(name))

    def _account(self, name: str) -> Object:
        meta: Object = {"name": name}
        if self.chance(0.4):
            meta["annotations"] = {"kubernetes.io/enforce-mountable-secrets": self.pick("true", "1", "false", "yes")}
        found: Object = {"metadata": meta}
        if self.chance(0.4):
            found["automountServiceAccountToken"] = self.pick(True, False)
        if self.chance(0.5):
            found["secrets"] = [{"name": name} for name in self.some(("s1", "s2"))]
        if self.chance(0.5):
            found["imagePullSecrets"] = [{"name": name} for name in self.some(("i1", "i2"))]
        return found

    def request(self) -> Request:
        return self.any_pod_request(self._pod)

    def _pod(self) -> Object:
        pod = self.pod(False)
        meta, spec = pod["metadata"], pod["spec"]
        if self.chance(0.6):
            spec["serviceAccountName"] = self.pick("default", "a", "b", "b", "lost")
        if self.chance(0.3):
            spec["automountServiceAccountToken"] = self.pick(True, False)
        if self.chance(0.3):
            spec["imagePullSecrets"] = [{"name": self.pick("i1", "i3")}]
        if self.chance(0.1):
            meta["annotations"] = {"kubernetes.io/config.mirror": "x"}
            spec["nodeName"] = "n"
        if self.chance(0.4):
            sources: Any = {"sources": [{"serviceAccountToken": {"path": "token"}}]}
            volume = self.pick(
                {"secret": {"secretName": "s1"}},
                {"secret": {"secretName": "s3"}},
                {"projected": sources},
                {"image": {"reference": "r"}},
                {"image": {"reference": "r", "pullPolicy": "Never"}},
            )
            spec["volumes"] = [{"name": self.pick("v", "kube-api-access-mine"), **volume}]
        for container in (*spec["containers"], *spec.get("initContainers", ())):
            if self.chance(0.2):
                reference = {"secretKeyRef": {"name": self.pick("s1", "s3"), "key": "k"}}
                container["env"] = [{"name": "E", "valueFrom": reference}]
            if self.chance(0.1):
                container["envFrom"] = [{"secretRef": {"name": self.pick("s1", "s3")}}]
            if self.chance(0.1):
                container["volumeMounts"] = [
                    {"name": "v", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
                ]
            if self.chance(0.3):
                container["imagePullPolicy"] = self.pick("Always", "Never", "IfNotPresent")
        return pod


class Everything(Topic):
    """Pods that several plugins reject: only the first plugin's error is reported."""

    def setup(self) -> Iterable[Request]:
        parts = [topic(self.random, self.namespace) for topic in (LimitRanger, ResourceQuota, PodSecurity)]
        self.ranges, self.quotas, self.security = parts
        labels = {f"pod-security.kubernetes.io/{mode}": "baseline" for mode in self.some(("enforce", "warn"), 0.6)}
        yield self.create_namespace({"labels": labels})
        for topic in (self.ranges, self.quotas):
            yield from list(topic.setup())[1:]

    def request(self) -> Request:
        def pod() -> Object:
            found = self.pod()
            spec = found["spec"]
            if self.chance(0.3):
                spec["priorityClassName"] = self.pick("bronze", "lost")
            if self.chance(0.3):
                spec["runtimeClassName"] = self.pick("plain", "lost")
            if self.chance(0.3):
                spec["hostNetwork"] = True
            if self.chance(0.2):
                spec["overhead"] = {"cpu": "1"}
            if self.chance(0.2):
                spec["containers"][0]["image"] = ""
            if self.chance(0.1):
                found["metadata"]["name"] = "A_"
            return found

        if self.chance(0.05):
            return {"method": "DELETE", "path": self.path("pods") + self.pick("", "?dryRun=All")}
        return self.any_pod_request(pod)


TOPICS: Final[Mapping[str, type[Topic]]] = {
    topic.__name__: topic
    for topic in (
        LimitRanger,
        ResourceQuota,
        PodSecurity,
        Priority,
        RuntimeClass,
        Classes,
        Nodes,
        Tolerations,
        Selectors,
        Owners,
        Events,
        Services,
        Lifecycle,
        Accounts,
        Everything,
    )
}
