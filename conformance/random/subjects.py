"""Kinds of objects whose fields have random values, made by a function for each field."""

import copy
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

Make = Callable[[random.Random], Any]
GROUP: Final = "own.example.com"


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
