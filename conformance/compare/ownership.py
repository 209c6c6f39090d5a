"""Random sequences of writes by several managers to one object: apply, PUT, every patch, subresources.

What an object may hold is a small grammar per kind, so that managers meet on the same fields often. A sequence's requests are
made from one random source; only a PUT also needs what the server under test answered last (`complete`).
"""

import copy
import http.client
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from conformance.exchange import Answer, Client, difference

Request = dict[str, Any]
Make = Callable[[random.Random], Any]

GROUP: Final = "own.example.com"
DELETIONS: Final[tuple[Any, ...]] = (
    *({}, {"gracePeriodSeconds": 0}, {"dryRun": ["All"]}, {"propagationPolicy": "Foreground"}),
    *({"propagationPolicy": "Orphan"}, {"gracePeriodSeconds": 1000}, {"preconditions": {"uid": "x"}}),
)
MANAGERS: Final = ("a", "b", "kubectl")
# More than an object keeps entries for.
CROWD: Final = (*MANAGERS, *(f"m{i}" for i in range(12)))
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"

# ------------------------------------------------------------------ grammar


def one_of(*values: Any) -> Make:
    return lambda rng: copy.deepcopy(rng.choice(values))


def struct(share: float = 0.4, **fields: Make) -> Make:
    """Some of the fields; a name that begins with `_` is always there, without the `_`."""

    def make(rng: random.Random) -> Any:
        return {key.lstrip("_"): fields[key](rng) for key in fields if key.startswith("_") or rng.random() < share}

    return make


def items(*pools: tuple[str, Sequence[Any]], **others: Make) -> Make:
    """A list of objects, each with a value of every pool, usually no two alike in all of them."""

    def make(rng: random.Random) -> Any:
        found: list[Any] = []
        for _ in range(rng.randint(0 if rng.random() < 0.1 else 1, 3)):
            keys = {name: rng.choice(values) for name, values in pools}
            keys = {name: value for name, value in keys.items() if value is not None}
            if rng.random() > 0.05 and any(all(item.get(k) == v for k, v in keys.items()) for item in found):
                continue
            found.append({**keys, **struct(0.5, **others)(rng)})
        return found

    return make


def some(*values: Any) -> Make:
    """A list of different scalars."""
    return lambda rng: rng.sample(values, rng.randint(0 if rng.random() < 0.1 else 1, len(values)))


def mapping(keys: Sequence[str], value: Make) -> Make:
    return lambda rng: {key: value(rng) for key in rng.sample(keys, rng.randint(0, len(keys)))}


LABELS: Final = mapping("xyz", one_of("1", "2"))
OWNERS: Final = items(("uid", ("u1", "u2")), _apiVersion=one_of("v1"), _kind=one_of("K"), _name=one_of("n", "m"))
META: Final = struct(
    0.25,
    labels=LABELS,
    annotations=LABELS,
    finalizers=some("e.com/a", "e.com/b", "e.com/c"),
    ownerReferences=OWNERS,
)
QUANTITIES: Final = mapping(("cpu", "memory"), one_of("1", "100m", 2, "1Gi"))
CONTAINER: Final = {
    "_image": one_of("i:1", "i:2"),
    "args": one_of(["a"], ["a", "b"], []),
    "env": items(
        ("name", ("A", "B", "C")),
        value=one_of("1", "2", ""),
        valueFrom=one_of({"fieldRef": {"fieldPath": "metadata.name"}}, None, None),
    ),
    "ports": items(("containerPort", (80, 81)), ("protocol", (None, "TCP", "UDP")), name=one_of("p", "q")),
    "resources": struct(0.6, limits=QUANTITIES, requests=QUANTITIES),
    "volumeMounts": items(("mountPath", ("/a", "/b")), _name=one_of("v", "w"), readOnly=one_of(True, False)),
    "livenessProbe": struct(
        0.5, _httpGet=struct(0.5, _port=one_of(80, "p"), path=one_of("/", "/x")), periodSeconds=one_of(5, 6)
    ),
    "securityContext": struct(
        0.5, runAsUser=one_of(0, 1), capabilities=struct(0.6, add=one_of(["A"], ["A", "B"]), drop=one_of(["ALL"]))
    ),
}
POD_SPEC: Final = struct(
    0.25,
    _containers=items(("name", ("c", "d")), **CONTAINER),
    initContainers=items(("name", ("i",)), **CONTAINER),
    volumes=items(
        ("name", ("v", "w")), emptyDir=one_of({}, {"medium": "Memory"}), configMap=one_of({"name": "c"}, None, None)
    ),
    nodeSelector=LABELS,
    tolerations=items(("key", ("k", "l")), operator=one_of("Exists"), effect=one_of("NoSchedule")),
    imagePullSecrets=items(("name", ("s", "t"))),
    hostAliases=items(("ip", ("1.1.1.1", "2.2.2.2")), hostnames=some("a", "b")),
    topologySpreadConstraints=items(
        ("topologyKey", ("zone", "host")),
        ("whenUnsatisfiable", ("DoNotSchedule", "ScheduleAnyway")),
        _maxSkew=one_of(1, 2),
        _labelSelector=one_of({"matchLabels": {"a": "b"}}, {}),
    ),
    restartPolicy=one_of("Always", "Always", "Never"),
    securityContext=struct(0.5, runAsUser=one_of(1, 2), supplementalGroups=some(1, 2)),
    affinity=one_of({"nodeAffinity": {}}, {}),
)
CONDITIONS: Final = items(
    ("type", ("A", "B", "Ready")),
    _status=one_of("True", "False"),
    reason=one_of("R", "S"),
    message=one_of("m", ""),
    _lastTransitionTime=one_of("2020-01-01T00:00:00Z"),
)
THING_SPEC: Final = struct(
    0.35,
    map=items(
        ("name", ("a", "b", "c")), value=one_of(1, 2, None), deep=struct(0.5, list=some("x", "y"), on=one_of(True))
    ),
    multi=items(("port", (1, 2)), ("protocol", (None, "TCP", "UDP")), name=one_of("n", "m")),
    set=some("a", "b", "c"),
    numbers=some(1, 2, 3),
    atomic=items(("name", ("a", "b"))),
    plain=some("p", "q"),
    object=struct(0.6, a=one_of("1", "2"), b=one_of("1", None), c=struct(0.6, d=one_of(1, 2))),
    atomicObject=struct(0.6, a=one_of("1", "2"), b=one_of("1")),
    strings=LABELS,
    any=one_of(
        {"a": 1}, {"a": 1, "b": [1]}, {"c": {"d": "x"}}, {"c": {"d": "y", "e": [{"f": 1}]}}, {}, [1, 2], "s", None
    ),
    port=one_of(80, "http", 81, None),
    replicas=one_of(1, 2, 3),
    defaulted=one_of("given"),
    nullable=one_of(None, "x"),
    embedded=one_of({"apiVersion": "v1", "kind": "X", "metadata": {"name": "n", "labels": {"x": "1"}}, "more": 1}),
)


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A kind to write to. `versions`: group version -> content of that version; `status`: what its status may hold.

    `others`: subresources that hold the object itself. `namespace` is "" for cluster-scoped kinds.
    """

    kind: str
    resource: str
    versions: Mapping[str, Make]
    status: Make | None = None
    scaled: bool = False
    namespace: str = "default"
    others: tuple[str, ...] = ()

    def path(self, version: str, name: str) -> str:
        prefix = f"/apis/{version}" if "/" in version else f"/api/{version}"
        return f"{prefix}{f'/namespaces/{self.namespace}' if self.namespace else ''}/{self.resource}/{name}"


def spec(make: Make) -> Make:
    return struct(0.9, spec=make)


def _hpa(version: int) -> Make:
    target = {
        "_scaleTargetRef": one_of({"kind": "D", "name": "d"}, {"kind": "D", "name": "e", "apiVersion": "apps/v1"})
    }
    common = {**target, "minReplicas": one_of(1, 2), "_maxReplicas": one_of(3, 4)}
    if version == 1:
        return spec(struct(0.5, **common, targetCPUUtilizationPercentage=one_of(50, 60)))
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    memory = {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}
    metrics = one_of(
        [{"type": "Resource", "resource": cpu}],
        [{"type": "Resource", "resource": memory}],
        [{"type": "Resource", "resource": memory}, {"type": "Resource", "resource": cpu}],
    )
    behavior = one_of({"scaleDown": {"stabilizationWindowSeconds": 3}}, {"scaleUp": {"selectPolicy": "Min"}}, {})
    return spec(struct(0.5, **common, metrics=metrics, behavior=behavior))


SUBJECTS: Final = (
    Subject(
        kind="ConfigMap",
        resource="configmaps",
        versions={"v1": struct(0.6, data=LABELS, binaryData=mapping("pq", one_of("YQ==", "Yg==")))},
    ),
    Subject(
        kind="Deployment",
        resource="deployments",
        versions={
            "apps/v1": spec(
                struct(
                    0.4,
                    replicas=one_of(1, 2, 3),
                    _selector=one_of({"matchLabels": {"a": "b"}}),
                    _template=struct(1, metadata=one_of({"labels": {"a": "b"}}), spec=POD_SPEC),
                    strategy=one_of(
                        {"type": "Recreate"},
                        {"type": "RollingUpdate"},
                        {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
                    ),
                    minReadySeconds=one_of(0, 5),
                    paused=one_of(True, False),
                )
            )
        },
        status=struct(0.5, replicas=one_of(1, 2), observedGeneration=one_of(1), conditions=CONDITIONS),
        scaled=True,
    ),
    Subject(
        kind="Service",
        resource="services",
        versions={
            "v1": spec(
                struct(
                    0.3,
                    _ports=items(
                        ("port", (80, 81)),
                        ("protocol", (None, "TCP", "UDP")),
                        _name=one_of("p", "q", "r"),
                        targetPort=one_of(80, "p", 8080),
                    ),
                    selector=LABELS,
                    externalIPs=some("1.1.1.1", "2.2.2.2"),
                    sessionAffinity=one_of("ClientIP", "None"),
                    clusterIP=one_of("None"),
                    publishNotReadyAddresses=one_of(True),
                )
            )
        },
        status=struct(0.7, conditions=CONDITIONS, loadBalancer=one_of({})),
    ),
    Subject(
        kind="Pod",
        resource="pods",
        versions={"v1": spec(POD_SPEC)},
        status=struct(
            0.5,
            phase=one_of("Running", "Pending"),
            conditions=CONDITIONS,
            podIPs=one_of([{"ip": "1.1.1.1"}], [{"ip": "2.2.2.2"}]),
        ),
    ),
    Subject(
        kind="ServiceAccount",
        resource="serviceaccounts",
        versions={
            "v1": struct(
                0.5,
                secrets=items(("name", ("s", "t"))),
                imagePullSecrets=items(("name", ("s", "t"))),
                automountServiceAccountToken=one_of(True, False),
            )
        },
    ),
    Subject(
        kind="Node",
        resource="nodes",
        namespace="",
        versions={
            "v1": spec(
                struct(
                    0.4,
                    unschedulable=one_of(True, False),
                    taints=items(("key", ("k", "l")), _effect=one_of("NoSchedule", "NoExecute")),
                    podCIDRs=one_of(["10.0.0.0/24"]),
                    providerID=one_of("p://1"),
                )
            )
        },
        status=struct(
            0.5,
            conditions=CONDITIONS,
            addresses=items(("type", ("InternalIP", "Hostname")), _address=one_of("1.1.1.1", "h")),
            capacity=QUANTITIES,
        ),
    ),
    Subject(
        kind="HorizontalPodAutoscaler",
        resource="horizontalpodautoscalers",
        versions={"autoscaling/v2": _hpa(2), "autoscaling/v1": _hpa(1)},
    ),
    Subject(
        kind="EndpointSlice",
        resource="endpointslices",
        versions={
            "discovery.k8s.io/v1": struct(
                0.8,
                _addressType=one_of("IPv4"),
                _endpoints=items(
                    ("nodeName", ("a", "b")), _addresses=one_of(["1.1.1.1"], ["2.2.2.2"]), hostname=one_of("h")
                ),
                ports=items(("name", ("p", "q")), port=one_of(80, 81)),
            )
        },
    ),
    Subject(
        kind="Role",
        resource="roles",
        versions={
            "rbac.authorization.k8s.io/v1": struct(
                0.8,
                rules=items(
                    ("verbs", (["get"], ["get", "list"])), _apiGroups=one_of([""]), _resources=one_of(["a"], ["a", "b"])
                ),
            )
        },
    ),
    Subject(
        kind="Thing",
        resource="things",
        versions={f"{GROUP}/v1": spec(THING_SPEC), f"{GROUP}/v2": spec(THING_SPEC)},
        status=struct(0.6, conditions=CONDITIONS, replicas=one_of(1, 2), note=one_of("n", None)),
        scaled=True,
    ),
    Subject(kind="Free", resource="frees", versions={f"{GROUP}/v1": struct(0.8, spec=THING_SPEC, data=LABELS)}),
)


# ---------------------------------------------------------- custom resources


def _string_map(**extra: Any) -> Any:
    return {"type": "object", "additionalProperties": {"type": "string"}, **extra}


def _strings(**properties: Any) -> Any:
    return {"type": "object", "properties": {key: {"type": "string"} for key in "ab"} | properties}


def _list(item: Any, kind: str = "", *keys: str) -> Any:
    found: dict[str, Any] = {"type": "array", "items": item}
    if kind:
        found["x-kubernetes-list-type"] = kind
    if keys:
        found["x-kubernetes-list-map-keys"] = list(keys)
    return found


_NAME: Final = {"type": "string"}
_THING: Final = {
    "map": _list(
        {
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": _NAME,
                "value": {"type": "integer", "nullable": True},
                "deep": {
                    "type": "object",
                    "properties": {"list": _list(_NAME, "set"), "on": {"type": "boolean"}},
                },
            },
        },
        "map",
        "name",
    ),
    "multi": _list(
        {
            "type": "object",
            "required": ["port"],
            "properties": {
                "port": {"type": "integer"},
                "protocol": {"type": "string", "default": "TCP"},
                "name": _NAME,
            },
        },
        "map",
        "port",
        "protocol",
    ),
    "set": _list(_NAME, "set"),
    "numbers": _list({"type": "integer"}, "set"),
    "atomic": _list({"type": "object", "properties": {"name": _NAME}}, "atomic"),
    "plain": _list(_NAME),
    "object": _strings(
        b={"type": "string", "nullable": True}, c={"type": "object", "properties": {"d": {"type": "integer"}}}
    ),
    "atomicObject": {**_strings(), "x-kubernetes-map-type": "atomic"},
    "strings": _string_map(),
    "any": {"x-kubernetes-preserve-unknown-fields": True, "nullable": True},
    "port": {"x-kubernetes-int-or-string": True, "nullable": True},
    "replicas": {"type": "integer"},
    "defaulted": {"type": "string", "default": "d"},
    "nullable": {"type": "string", "nullable": True},
    "embedded": {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    },
}
_CONDITION: Final = {
    "type": "object",
    "required": ["type", "status"],
    "properties": {key: {"type": "string"} for key in ("type", "status", "reason", "message", "lastTransitionTime")},
}


def _definition(kind: str, plural: str, versions: Sequence[str], schema: Any, **subresources: Any) -> Any:
    served = [
        {
            "name": version,
            "served": True,
            "storage": version == "v1",
            "schema": {"openAPIV3Schema": schema},
            **({"subresources": subresources} if subresources else {}),
        }
        for version in versions
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": kind + "List"},
            "versions": served,
        },
    }


DEFINITIONS: Final = (
    _definition(
        "Thing",
        "things",
        ("v1", "v2"),
        {
            "type": "object",
            "properties": {
                "spec": {"type": "object", "properties": _THING},
                "status": {
                    "type": "object",
                    "properties": {
                        "conditions": _list(_CONDITION, "map", "type"),
                        "replicas": {"type": "integer"},
                        "note": {"type": "string", "nullable": True},
                    },
                },
            },
        },
        status={},
        scale={"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
    ),
    _definition("Free", "frees", ("v1",), {"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
)


def setup() -> Iterator[Request]:
    """The custom resources that sequences need; a server that has them answers 409."""
    for definition in DEFINITIONS:
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        yield {"method": "POST", "path": path, "body": definition}


def served() -> Iterator[str]:
    """Paths that answer 200 when the server is ready for sequences."""
    for definition in DEFINITIONS:
        yield f"/apis/{GROUP}/v1/namespaces/default/{definition['spec']['names']['plural']}"


# ---------------------------------------------------------------- sequences

_OWNED: Final[tuple[Any, ...]] = (
    {"f:metadata": {"f:labels": {".": {}, "f:x": {}}, "f:annotations": {"f:x": {}}}},
    {
        "f:spec": {
            "f:replicas": {},
            "f:template": {"f:spec": {"f:containers": {'k:{"name":"c"}': {".": {}, "f:image": {}}}}},
        }
    },
    {"f:spec": {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}, 'k:{"port":80}': {".": {}}}}},
    {"f:spec": {"f:set": {'v:"a"': {}}, "f:multi": {'k:{"port":1,"protocol":"TCP"}': {".": {}, "f:port": {}}}}},
    {"f:data": {".": {}, "f:x": {}}, "f:rules": {}, "f:status": {"f:conditions": {'k:{"type":"A"}': {".": {}}}}},
    {"f:metadata": {"f:finalizers": {'v:"e.com/a"': {}}, "f:ownerReferences": {'k:{"uid":"u1"}': {}}}},
    {"f:unknown": {"f:a": {}}, "f:spec": {"i:0": {}, "f:list": {"i:1": {}}}},
    {},
)


class History:
    """The writes to one object, in order."""

    def __init__(self, rng: random.Random, name: str, subjects: Sequence[Subject] = SUBJECTS) -> None:
        self._rng, self._name = rng, name
        self._subject = rng.choice(subjects)
        self._managers = CROWD if rng.random() < 0.1 else MANAGERS

    def requests(self) -> Iterator[Request]:
        yield self._first()
        for _ in range(self._rng.randint(2, 9) if self._managers is MANAGERS else self._rng.randint(14, 24)):
            yield self._next()

    def cleanup(self) -> Iterator[Request]:
        path = self._subject.path(next(iter(self._subject.versions)), self._name)
        free = {"metadata": {"finalizers": None}}
        yield {"method": "PATCH", "path": path, "body": free, "type": "application/merge-patch+json"}
        yield {"method": "DELETE", "path": path + "?gracePeriodSeconds=0"}

    def _first(self) -> Request:
        if self._rng.random() < 0.5:
            return self._apply()
        version = self._version()
        path = self._subject.path(version, self._name).rpartition("/")[0]
        return {"method": "POST", "path": f"{path}?fieldManager={self._manager()}", "body": self._object(version)}

    def _next(self) -> Request:
        makers: dict[Callable[[], Request], int] = {
            self._apply: 40,
            self._put: 8,
            self._merge: 10,
            self._strategic: 12,
            self._json: 8,
            self._client_side: 4,
            self._reset: 3,
            self._upgrade: 3,
            self._status: 12 if self._subject.status else 0,
            self._scale: 8 if self._subject.scaled else 0,
            self._other: 6 if self._subject.others else 0,
            self._delete: 3,
            self._again: 2,
        }
        (maker,) = self._rng.choices(list(makers), list(makers.values()))
        return maker()

    def _manager(self) -> str:
        return self._rng.choice(self._managers)

    def _version(self) -> str:
        return self._rng.choice(tuple(self._subject.versions))

    def _object(self, version: str) -> Any:
        found = {
            "apiVersion": version,
            "kind": self._subject.kind,
            "metadata": {"name": self._name, **META(self._rng)},
            **self._subject.versions[version](self._rng),
        }
        return self._spoilt(found) if self._rng.random() < 0.08 else found

    def _spoilt(self, obj: Any) -> Any:
        """The object with one value somewhere replaced by a wrong one."""
        at = obj
        while True:
            keys = list(at) if isinstance(at, dict) else list(range(len(at)))
            if not keys:
                return obj
            key = self._rng.choice(keys)
            if key in ("apiVersion", "kind", "name"):
                return obj
            if isinstance(at[key], dict | list) and at[key] and self._rng.random() < 0.7:
                at = at[key]
                continue
            wrong: tuple[Any, ...] = (None, "x", 1, {}, [], {"unknown": 1}, True, ["x", "x"], 1.5)
            if isinstance(at, dict) and self._rng.random() < 0.2:
                at["unknown"] = self._rng.choice(wrong)
            else:
                at[key] = self._rng.choice(wrong)
            return obj

    def _query(self, **options: str) -> str:
        found = {"fieldManager": self._manager(), **options}
        if self._rng.random() < 0.06:
            found["dryRun"] = "All"
        if self._rng.random() < 0.1:
            found["fieldValidation"] = self._rng.choice(("Strict", "Ignore"))
        return "?" + "&".join(f"{key}={value}" for key, value in found.items())

    def _patch(self, path: str, body: Any, kind: str) -> Request:
        return {"method": "PATCH", "path": path, "body": body, "type": f"application/{kind}"}

    def _apply(self) -> Request:
        version = self._version()
        options = {"force": "true"} if self._rng.random() < 0.45 else {}
        path = self._subject.path(version, self._name) + self._query(**options)
        return self._patch(path, self._object(version), "apply-patch+yaml")

    def _put(self) -> Request:
        version = self._version()
        changes = self._object(version)
        return {
            "method": "PUT",
            "path": self._subject.path(version, self._name) + self._query(),
            "live": self._subject.path(version, self._name),
            "changes": changes if self._rng.random() < 0.5 else {"metadata": changes["metadata"]},
        }

    def _merge(self) -> Request:
        version = self._version()
        path = self._subject.path(version, self._name) + self._query()
        return self._patch(path, self._part(version), "merge-patch+json")

    def _strategic(self) -> Request:
        version = self._version()
        path = self._subject.path(version, self._name) + self._query()
        body = self._part(version)
        return self._patch(
            path, self._directed(body) if self._rng.random() < 0.5 else body, "strategic-merge-patch+json"
        )

    def _directed(self, value: Any) -> Any:
        """The patch with a directive here and there."""
        if isinstance(value, list):
            return self._directed_list([self._directed(item) for item in value])
        if not isinstance(value, dict):
            return value
        out: dict[str, Any] = {}
        for key, item in value.items():
            chance = self._rng.random()
            if isinstance(item, list) and chance < 0.12:
                out[f"$deleteFromPrimitiveList/{key}"] = item
            elif isinstance(item, list) and chance < 0.25:
                out[f"$setElementOrder/{key}"] = self._rng.sample(item, len(item))
                out[key] = item
            else:
                out[key] = self._directed(item)
        if self._rng.random() < 0.06:
            out["$patch"] = self._rng.choice(("replace", "merge", "delete", "x", 1))
        if self._rng.random() < 0.08:
            out["$retainKeys"] = list(value)
        return out

    def _directed_list(self, value: list[Any]) -> list[Any]:
        if value and isinstance(value[0], dict) and self._rng.random() < 0.15:
            value = [{**value[0], "$patch": "delete"}, *value[1:]]
        return [*value, {"$patch": "replace"}] if self._rng.random() < 0.06 else value

    def _part(self, version: str) -> Any:
        body = self._object(version)
        if self._rng.random() < 0.4:
            return {"metadata": body.get("metadata")}
        return {key: value for key, value in body.items() if key not in ("apiVersion", "kind")}

    def _json(self) -> Request:
        version = self._version()
        content = self._part(version)
        operations = [self._operation(content) for _ in range(self._rng.randint(1, 3))]
        path = self._subject.path(version, self._name) + self._query()
        return self._patch(path, operations, "json-patch+json")

    def _operation(self, content: Any) -> Any:
        kind = self._rng.choice(("add", "add", "add", "replace", "remove", "test", "copy", "move"))
        pointer, value = self._place(content)
        found = {"op": kind, "path": pointer}
        if kind in ("copy", "move"):
            return {**found, "from": self._place(content)[0]}
        return found if kind == "remove" else {**found, "value": value}

    def _place(self, content: Any) -> tuple[str, Any]:
        """A pointer into an object, and the value there."""
        pointer, value = "", content
        while isinstance(value, dict | list) and value and (not pointer or self._rng.random() < 0.75):
            key = self._rng.choice(list(value) if isinstance(value, dict) else range(len(value)))
            value = value[key]
            pointer += "/" + (
                self._rng.choice(("-", "-1", str(key))) if isinstance(key, int) else key.replace("/", "~1")
            )
        return pointer, value

    def _client_side(self) -> Request:
        """Makes the request of `kubectl apply` without --server-side: a merge patch that carries its own text."""
        version = self._version()
        body = self._object(version)
        text = json.dumps(body)
        if not isinstance(meta := body["metadata"], dict) or not isinstance(meta.get("annotations", {}), dict):
            return self._merge()
        meta["annotations"] = {**meta.get("annotations", {}), LAST_APPLIED: text}
        path = self._subject.path(version, self._name) + "?fieldManager=kubectl-client-side-apply"
        return self._patch(path, body, "merge-patch+json")

    def _upgrade(self) -> Request:
        """Makes the request with which `kubectl apply --server-side` takes over the entry of a client-side apply."""
        entries = [
            {
                "manager": self._rng.choice(("kubectl", "kubectl-client-side-apply", self._manager())),
                "operation": self._rng.choice(("Apply", "Update")),
                "apiVersion": self._version(),
                "fieldsType": "FieldsV1",
                "time": "2020-01-01T00:00:00Z",
                "fieldsV1": self._rng.choice(_OWNED),
                **({"subresource": "status"} if self._rng.random() < 0.2 else {}),
            }
            for _ in range(self._rng.randint(1, 3))
        ]
        path = self._subject.path(self._version(), self._name) + self._query()
        operations: list[Any] = [{"op": "replace", "path": "/metadata/managedFields", "value": entries}]
        if self._rng.random() < 0.3:
            operations.append({"op": "remove", "path": f"/metadata/managedFields/{self._rng.randint(0, 2)}"})
        if self._rng.random() < 0.3:
            operations += [self._operation(self._part(self._version()))]
        return self._patch(path, operations, "json-patch+json")

    def _reset(self) -> Request:
        entry: Any = {
            "manager": "m",
            "operation": self._rng.choice(("Apply", "Update")),
            "apiVersion": self._version(),
            "fieldsType": "FieldsV1",
            "fieldsV1": self._rng.choice(
                (
                    {"f:metadata": {"f:labels": {"f:x": {}}}},
                    {"f:spec": {"f:replicas": {}, "f:template": {}}, "f:data": {".": {}, "f:x": {}}},
                    {"f:spec": {"f:set": {'v:"a"': {}}, "f:map": {'k:{"name":"a"}': {".": {}, "f:value": {}}}}},
                    {"bad": {}},
                    {"f:metadata": 1},
                )
            ),
        }
        sent: Any = self._rng.choice(
            ([{}], [], [entry], [{**entry, "fieldsType": "V0"}], [{**entry, "operation": "x"}], None)
        )
        path = self._subject.path(self._version(), self._name) + self._query()
        return self._patch(path, {"metadata": {"managedFields": sent}}, "merge-patch+json")

    def _status(self) -> Request:
        version = self._version()
        assert self._subject.status is not None
        status = self._subject.status(self._rng)
        path = self._subject.path(version, self._name) + "/status"
        kind = self._rng.choice(("apply-patch+yaml", "merge-patch+json", "strategic-merge-patch+json"))
        body: Any = {"status": status}
        if self._rng.random() < 0.2:
            body = {"metadata": META(self._rng), **body}
        options = {}
        if kind == "apply-patch+yaml":
            body = {"apiVersion": version, "kind": self._subject.kind, **body}
            body["metadata"] = {**(body.get("metadata") or {}), "name": self._name}
            if self._rng.random() < 0.5:
                options = {"force": "true"}
        return self._patch(path + self._query(**options), body, kind)

    def _scale(self) -> Request:
        version = self._version()
        path = self._subject.path(version, self._name) + "/scale"
        replicas = self._rng.choice((1, 2, 3, 4, 0, -1, "x", None))
        body: Any = {"spec": {"replicas": replicas}}
        if self._rng.random() < 0.2:
            body = {"spec": {}}
        kind = self._rng.choice(("apply-patch+yaml", "merge-patch+json", "strategic-merge-patch+json", "put"))
        full = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": self._name}, **body}
        if kind == "put":
            full["metadata"]["namespace"] = "default"
            return {"method": "PUT", "path": path + self._query(), "body": full}
        options = {"force": "true"} if kind == "apply-patch+yaml" and self._rng.random() < 0.5 else {}
        return self._patch(path + self._query(**options), full if kind == "apply-patch+yaml" else body, kind)

    def _other(self) -> Request:
        """A write to a subresource that holds the object itself."""
        version = self._version()
        path = f"{self._subject.path(version, self._name)}/{self._rng.choice(self._subject.others)}"
        kind = self._rng.choice(("apply-patch+yaml", "merge-patch+json", "strategic-merge-patch+json", "put"))
        if kind == "put":
            live = self._subject.path(version, self._name)
            return {"method": "PUT", "path": path + self._query(), "live": live, "changes": self._object(version)}
        body = self._object(version) if kind == "apply-patch+yaml" else self._part(version)
        return self._patch(path + self._query(), body, kind)

    def _delete(self) -> Request:
        path = self._subject.path(self._version(), self._name)
        return {"method": "DELETE", "path": path, "body": self._rng.choice(DELETIONS)}

    def _again(self) -> Request:
        """Makes a creation, mostly of an object that exists already."""
        version = self._version()
        path = self._subject.path(version, self._name).rpartition("/")[0]
        return {"method": "POST", "path": path + self._query(), "body": self._object(version)}


def send(client: Client, request: Request, revisions: dict[str, str]) -> Answer:
    """Sends a request of a history and returns the answer in a form in which two servers' answers can be compared.

    `revisions`: each server's last resourceVersion of the object; the answer's `changed` is true if it has changed.
    """
    if "live" in request:
        live = client.send({"method": "GET", "path": request["live"]}, [])["body"]
        body = merged(live if live.get("kind") != "Status" else {}, request["changes"])
        request = {"method": "PUT", "path": request["path"], "body": body}
    try:
        answer = client.send(request, [])
    except (http.client.HTTPException, ConnectionError):
        return {"status": 0}  # a panic: Go's server drops the connection
    revision = (answer.get("body") or {}).get("metadata", {}).get("resourceVersion")
    if revision:
        answer["changed"] = revision != revisions.get(client.url)
        revisions[client.url] = revision
    return answer


def merged(target: Any, patch: Any) -> Any:
    """RFC 7386, but nulls are kept out of the way."""
    if not isinstance(patch, dict) or not isinstance(target, dict):
        return patch
    out = dict(target)
    for key, value in patch.items():
        out[key] = merged(target.get(key), value)
    return out


def alike(expected: Answer, got: Answer) -> bool:
    """Reports whether both servers can hold the same object after these answers."""
    return expected["status"] == got["status"] and (
        expected["status"] >= 400 or not difference({"body": expected["body"]}, {"body": got["body"]})
    )
