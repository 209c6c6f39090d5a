"""Random priorities, runtime classes, tolerations, node selectors and accounts of pods."""

import json
from collections.abc import Iterable
from typing import Any, Final

from conformance.random.topics.topic import NAMES, Object, Request, Topic, patch, post


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
            return patch(f"{self.path('pods')}/{self.pick(*NAMES)}", {"spec": {"tolerations": tolerations}})
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
