"""Random requests to every subresource, for `conformance.compare.subresources`.

Each is made as a client would make it, with one thing or another wrong: media types, kinds, names, revisions, values of other types.
"""

import copy
from collections.abc import Callable, Iterator
from typing import Any, Final

from conformance.random.subresource_writes import (
    NODE,
    QUERIES,
    Object,
    Request,
    Source,
    patch,
    pod,
)
from conformance.random.writes import OBJECTS, RICH

_CORE: Final = "/api/v1/namespaces/default"
_PODS: Final = f"{_CORE}/pods"
_SCALES: Final = {
    "/apis/apps/v1/namespaces/default/deployments": "autoscaling/v1",
    "/apis/apps/v1/namespaces/default/replicasets": "autoscaling/v1",
    "/apis/apps/v1/namespaces/default/statefulsets": "autoscaling/v1",
    f"{_CORE}/replicationcontrollers": "autoscaling/v1",
}


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_WITHOUT_STATUS: Final = frozenset(
    _words(
        "bindings clusterrolebindings clusterroles configmaps controllerrevisions csidrivers csinodes csistoragecapacities deviceclasses "
        "endpoints endpointslices events ipaddresses leases limitranges mutatingadmissionpolicies mutatingadmissionpolicybindings "
        "mutatingwebhookconfigurations networkpolicies podtemplates priorityclasses resourceclaimtemplates "
        "resourceslices rolebindings roles "
        "runtimeclasses secrets serviceaccounts storageclasses validatingadmissionpolicybindings validatingwebhookconfigurations "
        "volumeattributesclasses ingressclasses tokenreviews subjectaccessreviews "
    )
)
_STATUS_FIELDS: Final = _words(
    "conditions conditions conditions replicas readyReplicas availableReplicas observedGeneration phase active "
    "currentReplicas updatedReplicas collisionCount capacity accessModes hard used loadBalancer addresses "
    "attached podIP podIPs hostIPs containerStatuses qosClass resize allocatedResources startTime succeeded failed "
    "desiredReplicas currentMetrics disruptionsAllowed expectedPods disruptedPods allocation reservedFor unknown "
    "nodeInfo volumesAttached images lastScheduleTime completedIndexes nominatedNodeName certificate typeChecking "
)


class Generator(Source):
    """Makes requests from a random source. `objects`: the existing objects by collection, as they were sent; `kinds`: their kinds."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.objects: dict[str, list[Object]] = {}
        for collection in {**RICH, **OBJECTS}:
            kind = collection.rpartition("/")[2]
            if "example.com" in collection or kind in (
                "customresourcedefinitions",
                "apiservices",
                "namespaces",
                "events",
            ):
                continue
            rows = [*([OBJECTS[collection]] if collection in OBJECTS else []), *RICH.get(collection, ())][:2]
            named = [_named(row, f"s{number}") for number, row in enumerate(rows)]
            self.objects[collection] = named
        self.parts: dict[str, Callable[[], Request]] = {
            "status": self._status,
            "scale": self._scale,
            "eviction": self._eviction,
            "binding": self._binding,
            "log": self._log,
            "token": self._token,
            "approval": self._approval,
            "finalize": self._finalize,
            "resize": self._resize,
            "ephemeralcontainers": self._ephemeral,
            "connect": self._connect,
            "componentstatuses": self._component_status,
            "other": self._other,
        }

    def setup(self) -> Iterator[Request]:
        """Yields requests that create the objects for the other requests."""
        yield _post("/api/v1/nodes", {"metadata": {"name": NODE}})
        for name in ("sub-ns", "sub-ns2"):
            yield _post("/api/v1/namespaces", {"metadata": {"name": name}})
        for collection, rows in self.objects.items():
            for row in rows:
                yield _post(collection, row)
        for name, extra in (("p0", {}), ("p1", {}), ("bound", {"nodeName": NODE}), ("p2", {})):
            yield _post(_PODS, {**pod(name), "spec": {**pod(name)["spec"], **extra}})
        two = pod("two")
        two["spec"]["containers"].append({"name": "d", "image": "i"})
        two["spec"]["nodeName"] = NODE
        yield _post(_PODS, two)
        for name in ("s0", "s1", "sa"):
            yield _post(f"{_CORE}/serviceaccounts", {"metadata": {"name": name}})
        yield _post(f"{_CORE}/secrets", {"metadata": {"name": "held"}})
        budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
        for name, app in (("b0", "p0"), ("b1", "p1"), ("b2", "p2"), ("b3", "p2")):
            yield _post(
                budgets,
                {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": {"app": app}}, "minAvailable": 1}},
            )
        for name in ("p0", "p1", "bound"):
            running = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            yield patch(f"{_PODS}/{name}/status", "merge-patch+json", {"status": running})

    def request(self, part: str = "") -> tuple[str, Request]:
        names = [name for name in self.parts if part in name]
        weights = [4 if name in ("status", "scale", "resize", "eviction") else 2 for name in names]
        (name,) = self._random.choices(names, weights)
        return name, self._spoiled(self.parts[name]())

    # ------------------------------------------------------------------ parts

    def _status(self) -> Request:
        collections = [path for path in self.objects if path.rpartition("/")[2] not in _WITHOUT_STATUS]
        collection = self._pick(*collections)
        row = self._pick(*self.objects[collection])
        path = f"{collection}/{row['metadata']['name']}/status"
        status = copy.deepcopy(row.get("status") or {}) if self._chance(0.5) else {}
        for _ in range(self._random.randint(0, 2)):
            key = self._pick(*_STATUS_FIELDS)
            status[key] = self._value(key)
        return self._write(path, row, {"status": status})

    def _scale(self) -> Request:
        collection = self._pick(*_SCALES)
        row = self._pick(*self.objects.get(collection, [{"metadata": {"name": "s0"}}]))
        name = row["metadata"]["name"]
        scale = {
            "apiVersion": self._pick(
                "autoscaling/v1", "autoscaling/v1", "autoscaling/v1", "autoscaling/v2", "apps/v1", "extensions/v1beta1"
            ),
            "kind": self._pick("Scale", "Scale", "Scale", "Scale", "Deployment", ""),
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"replicas": self._pick(0, 1, 2, 3, 3, -1, "x", None, 2**31)},
        }
        if self._chance(0.2):
            scale["status"] = {"replicas": self._pick(1, 5), "selector": "a=b"}
        return self._write(f"{collection}/{name}/scale", scale, {"spec": scale["spec"]}, whole=scale)

    def _eviction(self) -> Request:
        name = self._pick("p0", "p1", "p2", "bound", "none")
        body: Object = {
            "apiVersion": self._pick("policy/v1", "policy/v1", "policy/v1beta1", "v1", ""),
            "kind": self._pick("Eviction", "Eviction", "Eviction", "Pod", ""),
            "metadata": {
                "name": self._pick(name, name, name, "other", ""),
                "namespace": self._pick("default", "", "other"),
            },
        }
        if self._chance(0.6):
            body["deleteOptions"] = self._pick(
                {"gracePeriodSeconds": 5},
                {"dryRun": ["All"]},
                {"dryRun": ["x"]},
                {"preconditions": {"uid": "x"}},
                {"preconditions": {"resourceVersion": "1"}},
                {"propagationPolicy": "Bad"},
                {"gracePeriodSeconds": -1},
                {"orphanDependents": True, "propagationPolicy": "Orphan"},
                "x",
                {},
                {"unknown": 1},
            )
        query = (
            self._pick("?dryRun=All", "?dryRun=All", "", *QUERIES)
            if name in ("p0", "p1", "p2", "none")
            else "?dryRun=All"
        )
        return {"method": "POST", "path": f"{_PODS}/{name}/eviction{query}", "body": body}

    def _binding(self) -> Request:
        name = self._pick("p0", "p1", "bound", "none")
        target = self._pick(
            {"kind": "Node", "name": NODE},
            {"name": NODE},
            {"kind": "Pod", "name": "x"},
            {"kind": "Node"},
            {},
            None,
            {"kind": "Node", "name": "A b"},
            {"kind": "Node", "name": NODE, "apiVersion": "v1", "uid": "u"},
        )
        meta: Object = {"name": self._pick(name, name, "other", ""), "namespace": self._pick("default", "", "other")}
        if self._chance(0.3):
            meta["annotations"] = {"a": "b"}
        if self._chance(0.2):
            meta[self._pick("uid", "resourceVersion")] = self._pick("x", "1", "")
        body = {"apiVersion": "v1", "kind": self._pick("Binding", "Binding", "Pod"), "metadata": meta, "target": target}
        query = self._pick("?dryRun=All", "?dryRun=All", *[q for q in QUERIES if "dryRun" in q or "x" in q])
        path = f"{_CORE}/bindings" if self._chance(0.3) else f"{_PODS}/{name}/binding"
        return {"method": "POST", "path": path + query, "body": body}

    def _log(self) -> Request:
        name = self._pick("p0", "two", "bound", "none")
        options = (
            "container=c",
            "container=x",
            "follow=x",
            "tailLines=-1",
            "tailLines=x",
            "limitBytes=0",
            "sinceSeconds=0",
            "previous",
            "sinceTime=2020-01-01T00:00:00Z",
            "sinceTime=x",
            "sinceSeconds=5",
            "stream=All",
            "stream=Stdout",
            "stream=x",
            "timestamps=1",
            "insecureSkipTLSVerifyBackend=true",
            "tailLines=9223372036854775808",
            "unknown=1",
            "pretty=true",
        )
        query = "&".join(self._random.sample(options, self._random.randint(0, 3)))
        return {"method": "GET", "path": f"{_PODS}/{name}/log{'?' if query else ''}{query}"}

    def _token(self) -> Request:
        name = self._pick("sa", "sa", "sa", "none")
        refs: tuple[Any, ...] = (
            {"kind": "Pod", "apiVersion": "v1", "name": "p0"},
            {"kind": "Secret", "apiVersion": "v1", "name": "held"},
            {"kind": "Node", "apiVersion": "v1", "name": NODE},
            {"kind": "Pod", "apiVersion": "v1", "name": "none"},
            {"kind": "Secret", "apiVersion": "v1", "name": "none"},
            {"kind": "Node", "apiVersion": "v1", "name": "none"},
            {"kind": "ConfigMap", "apiVersion": "v1", "name": "x"},
            {"kind": "Pod", "name": "p0"},
            {"kind": "Pod", "apiVersion": "v1"},
            {},
            {"kind": "Pod", "apiVersion": "v1", "name": "p0", "uid": "wrong"},
            {"kind": "Secret", "apiVersion": "v1", "name": "held", "uid": "u"},
            {"kind": "Node", "apiVersion": "v1", "name": NODE, "uid": "u"},
            "x",
            {"kind": "Pod", "apiVersion": "a/b/c", "name": "p0"},
        )
        spec: Object = {"audiences": self._pick(["a"], ["a", "b"], [], None, "x", [""])}
        if self._chance(0.7):
            spec["expirationSeconds"] = self._pick(600, 3600, 599, 0, -1, 2**32, 2**32 + 1, "x", None, 2**63)
        if self._chance(0.7):
            spec["boundObjectRef"] = self._pick(*refs)
        body: Object = {
            "apiVersion": self._pick("authentication.k8s.io/v1", "authentication.k8s.io/v1", "v1", ""),
            "kind": self._pick("TokenRequest", "TokenRequest", "Pod", ""),
            "spec": spec,
        }
        if self._chance(0.4):
            body["metadata"] = self._pick(
                {"name": name},
                {"name": "other"},
                {"namespace": "default"},
                {"namespace": "x"},
                {"name": name, "uid": "x"},
            )
        return {"method": "POST", "path": f"{_CORE}/serviceaccounts/{name}/token{self._pick(*QUERIES)}", "body": body}

    def _approval(self) -> Request:
        collection = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
        row = self._pick(*self.objects[collection])
        conditions = [
            {
                "type": self._pick("Approved", "Denied", "Failed", "Other", ""),
                "status": self._pick("True", "False", "Unknown", "", "x"),
                **self._pick(
                    {},
                    {"reason": "R"},
                    {"message": "m", "lastUpdateTime": "2024-01-01T00:00:00Z"},
                    {"lastTransitionTime": "x"},
                ),
            }
            for _ in range(self._random.randint(0, 2))
        ]
        status: Object = {"conditions": conditions}
        if self._chance(0.3):
            status["certificate"] = self._pick("eA==", "x", "", None, "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==")
        change: Object = {"status": status}
        if self._chance(0.2):
            change["spec"] = {"username": "x", "signerName": "example.com/other"}
        return self._write(
            f"{collection}/{row['metadata']['name']}/{self._pick('approval', 'approval', 'status')}", row, change
        )

    def _finalize(self) -> Request:
        name = self._pick("sub-ns", "sub-ns2", "default", "none")
        body: Object = {
            "metadata": {"name": self._pick(name, name, name, "other", "")},
            "spec": self._pick(
                {"finalizers": ["kubernetes"]},
                {"finalizers": ["kubernetes", "a.io/b"]},
                {"finalizers": ["bad one"]},
                {"finalizers": []},
                {},
                {"finalizers": "x"},
                {"finalizers": ["x"]},
                None,
            ),
        }
        if self._chance(0.4):
            body |= {"apiVersion": self._pick("v1", "apps/v1"), "kind": self._pick("Namespace", "Pod")}
        if self._chance(0.3):
            body["metadata"][self._pick("resourceVersion", "uid", "labels")] = self._pick("1", "x", {"a": "b"})
        return {"method": "PUT", "path": f"/api/v1/namespaces/{name}/finalize{self._pick(*QUERIES)}", "body": body}

    def _resize(self) -> Request:
        name = self._pick("p0", "two", "bound", "rs0", "rs1", "none")
        amounts = ("1", "100m", "2", "64Mi", "1Gi", "x", "-1", "", 1, None)
        resources = {
            kind: {
                key: self._pick(*amounts)
                for key in self._random.sample(
                    ("cpu", "memory", "ephemeral-storage", "example.com/x"), self._random.randint(0, 2)
                )
            }
            for kind in ("requests", "limits")
            if self._chance(0.7)
        }
        container: Object = {"name": self._pick("c", "c", "c", "d", "x"), "resources": resources}
        if self._chance(0.3):
            container |= self._pick(
                {"image": "j"},
                {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]},
                {"resizePolicy": [{"resourceName": "x", "restartPolicy": "y"}]},
                {"env": [{"name": "A"}]},
            )
        spec: Object = {"containers": [container]}
        if self._chance(0.2):
            spec |= self._pick(
                {"resources": resources},
                {"nodeName": "x"},
                {"restartPolicy": "Never"},
                {"priority": 5},
                {"tolerations": [{"operator": "Exists"}]},
                {"activeDeadlineSeconds": 5},
                {"initContainers": [container]},
            )
        row = self._sized(name)
        whole = copy.deepcopy(row)
        whole["spec"]["containers"] = [
            {**old, **({k: v for k, v in container.items() if k != "name"} if old["name"] == container["name"] else {})}
            for old in row["spec"]["containers"]
        ]
        whole["spec"] |= {key: value for key, value in spec.items() if key != "containers"}
        return self._write(f"{_PODS}/{name}/resize", row, {"spec": spec}, whole=whole)

    def _ephemeral(self) -> Request:
        name = self._pick("p0", "two", "bound", "none")
        container: Object = {"name": self._pick("e0", "e1", "c", "A b", ""), "image": self._pick("i", "i", "", None)}
        if self._chance(0.6):
            container |= self._pick(
                {"targetContainerName": "c"},
                {"targetContainerName": "x"},
                {"ports": [{"containerPort": 1}]},
                {"resources": {"limits": {"cpu": "1"}}},
                {"livenessProbe": {"tcpSocket": {"port": 1}}},
                {"lifecycle": {"preStop": {"exec": {"command": ["x"]}}}},
                {"tty": True, "stdin": True},
                {"imagePullPolicy": "x"},
                {"volumeMounts": [{"name": "none", "mountPath": "/x"}]},
                {"securityContext": {"privileged": True}},
                {"restartPolicy": "Always"},
                {"terminationMessagePolicy": "x"},
                {"command": ["a"]},
                {"unknown": 1},
                {"resizePolicy": []},
                {"volumeDevices": [{"name": "x", "devicePath": "/x"}]},
                {"env": [{"name": "A", "value": "b"}]},
            )
        row = self._sized(name)
        whole = copy.deepcopy(row)
        whole["spec"]["ephemeralContainers"] = [container]
        return self._write(
            f"{_PODS}/{name}/ephemeralcontainers", row, {"spec": {"ephemeralContainers": [container]}}, whole=whole
        )

    def _connect(self) -> Request:
        name = self._pick("p0", "two", "bound", "none")
        sub = self._pick("exec", "attach", "portforward", "proxy")
        options = (
            "container=c",
            "container=x",
            "command=ls",
            "stdin=true",
            "stdout=1",
            "tty=x",
            "stderr=",
            "ports=80",
            "ports=x",
            "ports=70000",
            "ports=1,2",
            "dryRun=All",
            "path=/x",
        )
        query = "&".join(self._random.sample(options, self._random.randint(0, 3)))
        if sub == "proxy":
            what = self._pick(
                f"{_PODS}/{name}",
                f"{_CORE}/services/s0",
                f"/api/v1/nodes/{NODE}",
                f"{_PODS}/a:b:c:d",
                f"{_CORE}/services/none:1",
            )
            return {
                "method": self._pick("GET", "POST", "DELETE"),
                "path": f"{what}/proxy/x{'?' if query else ''}{query}",
            }
        return {"method": self._pick("GET", "POST"), "path": f"{_PODS}/{name}/{sub}{'?' if query else ''}{query}"}

    def _component_status(self) -> Request:
        name = self._pick("", "", "/etcd-0", "/scheduler", "/controller-manager", "/none")
        table = "application/json;as=Table;v=v1;g=meta.k8s.io"
        query = self._pick(
            "",
            "",
            "?labelSelector=a%3Db",
            "?fieldSelector=metadata.name%3Detcd-0",
            "?limit=1",
            "?fieldSelector=x%3Dy",
            "?labelSelector=,",
        )
        method = self._pick("GET", "GET", "GET", "POST", "DELETE")
        body = {"metadata": {"name": "x"}}
        found: Request = {
            "method": method,
            "path": f"/api/v1/componentstatuses{name}{query}",
            "accept": self._pick("application/json", table),
        }
        return found | ({"body": body} if method == "POST" else {})

    def _other(self) -> Request:
        """Subresources that kinds don't have, methods that subresources don't have."""
        collection = self._pick(*self.objects)
        name = self._pick(self.objects[collection][0]["metadata"]["name"], "none")
        sub = self._pick(
            "status",
            "scale",
            "rollback",
            "finalize",
            "approval",
            "binding",
            "eviction",
            "token",
            "log",
            "resize",
            "x",
            "status/x",
            "ephemeralcontainers",
        )
        method = self._pick("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
        return {
            "method": method,
            "path": f"{collection}/{name}/{sub}",
            **({"body": {}} if method in ("POST", "PUT", "PATCH") else {}),
        }


def _post(path: str, body: Object) -> Request:
    return {"method": "POST", "path": path, "body": body}


def _named(row: Object, name: str) -> Object:
    made: Object = copy.deepcopy(row)
    made["metadata"] = {"name": name, **made.get("metadata", {})}
    return made
