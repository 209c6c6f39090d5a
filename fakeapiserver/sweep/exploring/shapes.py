"""Values for fields that hold a structure of Kubernetes, such as tolerations or an image. They are recognised by name and members.

The schema accepts any text for most of these fields, and few texts mean something. The values are chosen so that the API server accepts the
pods, claims and services that an operator creates with them."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.quantity import BINARY, Quantity, parse

Schema = Mapping[str, Any]

KEY: Final = "example.com/explored"
_NOWHERE: Final = {
    "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": KEY, "operator": "In", "values": ["nowhere"]}]}]
    }
}
_APART: Final = {
    "preferredDuringSchedulingIgnoredDuringExecution": [
        {
            "weight": 7,
            "podAffinityTerm": {
                "labelSelector": {"matchLabels": {KEY: "a"}},
                "topologyKey": "kubernetes.io/hostname",
            },
        }
    ]
}
# The members by which an object is recognised, and values for it.
_OBJECTS: Final[Sequence[tuple[frozenset[str], Sequence[Any]]]] = (
    (
        frozenset(("limits", "requests")),
        (
            {"requests": {"cpu": "150m", "memory": "192Mi"}, "limits": {"cpu": "600m", "memory": "768Mi"}},
            {"limits": {"memory": "1Gi"}},
            {"requests": {"cpu": "0.25"}},
        ),
    ),
    (frozenset(("nodeAffinity", "podAntiAffinity")), ({"podAntiAffinity": _APART}, {"nodeAffinity": _NOWHERE})),
    (frozenset(("fsGroup", "supplementalGroups")), ({"runAsUser": 1001, "fsGroup": 1001}, {"fsGroup": 0})),
    (frozenset(("capabilities", "readOnlyRootFilesystem")), ({"runAsUser": 1001}, {"readOnlyRootFilesystem": True})),
    (
        frozenset(("periodSeconds", "failureThreshold", "tcpSocket")),
        ({"tcpSocket": {"port": 8080}, "periodSeconds": 17, "failureThreshold": 7},),
    ),
    (frozenset(("maxSkew", "topologyKey", "whenUnsatisfiable")), ()),
)
# The members by which the items of a list are recognised, and an item.
_ITEMS: Final[Sequence[tuple[frozenset[str], Any]]] = (
    (
        frozenset(("tolerationSeconds", "effect", "key")),
        {"key": KEY, "operator": "Equal", "value": "a", "effect": "NoSchedule"},
    ),
    (
        frozenset(("maxSkew", "topologyKey", "whenUnsatisfiable")),
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {KEY: "a"}},
        },
    ),
    (frozenset(("name", "value", "valueFrom")), {"name": "EXPLORED", "value": "a"}),
    (frozenset(("emptyDir", "configMap", "hostPath")), {"name": "explored", "emptyDir": {}}),
    (frozenset(("image", "command", "livenessProbe")), {"name": "explored", "image": "example.com/explored:1"}),
    (frozenset(("containerPort", "protocol")), {"name": "explored", "containerPort": 8099}),
    (frozenset(("port", "targetPort")), {"name": "explored", "port": 8099}),
)
_CLAIM: Final = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "3Gi"}}}
_MAPS: Final = re.compile(r"(.*[lL]abels|.*[aA]nnotations|.*[nN]odeSelector)")
# Fields with few meaningful texts, by their names.
_TEXTS: Final[Sequence[tuple[re.Pattern[str], Sequence[str]]]] = (
    (re.compile(r"(.*[iI]magePull|pull)Policy"), ("Always", "IfNotPresent", "Never")),
    (re.compile(r".*[sS]erviceType"), ("NodePort", "LoadBalancer", "ClusterIP")),
    (re.compile(r"podManagementPolicy"), ("Parallel", "OrderedReady")),
    (re.compile(r"restartPolicy"), ("Always", "OnFailure", "Never")),
    (re.compile(r".*[pP]riorityClassName"), ("system-cluster-critical", "system-node-critical")),
    (re.compile(r".*[sS]erviceAccountName"), ("default",)),
    (re.compile(r"schedule|.*Schedule"), ("*/5 * * * *", "0 3 * * *")),
    (re.compile(r".*[tT]opologyKey"), ("kubernetes.io/hostname", "topology.kubernetes.io/zone")),
    (re.compile(r"externalTrafficPolicy|internalTrafficPolicy"), ("Local", "Cluster")),
    (re.compile(r"sessionAffinity"), ("ClientIP", "None")),
    (re.compile(r"clusterDomain|dnsDomain"), ("cluster.local", "example.local")),
)
_OF_SERVICE: Final = frozenset(("clusterIP", "nodePort", "nodePorts", "loadBalancerIP", "externalTrafficPolicy"))
_SERVICE_TYPES: Final = ("NodePort", "LoadBalancer", "ClusterIP")
_IMAGE: Final = re.compile(r"image|.*Image|.*_image")
_IMAGE_TEXT: Final = re.compile(r"(?P<name>[^\s:@]+(?::\d+/[^\s:@]+)?)(?P<tag>:[\w.-]+)?(?P<digest>@\S+)?")
_QUANTITY: Final = re.compile(r"\d+(\.\d+)?([KMGTPE]i|[numkMGTPE])")


def suggested(name: str, schema: Schema, value: Any, parent: Schema) -> list[Any] | None:
    """Values for the field `name` of an object with the schema `parent`, the most telling first, or None if no structure of Kubernetes is
    recognised."""
    members = frozenset(schema.get("properties") or ())
    for required, values in _OBJECTS:
        if required <= members and not _is_of_claim(value):
            return [*values]
    if {"accessModes", "storageClassName"} <= members:
        return [_CLAIM] if value is None else []
    items = schema.get("items")
    if isinstance(items, Mapping):
        return _lists(frozenset(items.get("properties") or ()), value)
    if _MAPS.fullmatch(name) and schema.get("additionalProperties") and not isinstance(value, list):
        return _maps(value)
    if schema.get("type") == "string" or schema.get("x-kubernetes-int-or-string"):
        is_of_service = name == "type" and not _OF_SERVICE.isdisjoint(parent.get("properties") or ())
        return _texts("serviceType" if is_of_service else name, schema, value)
    return None


def is_recognised(schema: Schema) -> bool:
    """Reports whether an object is a structure of Kubernetes with many members, of which the unset ones aren't worth much."""
    members = frozenset(schema.get("properties") or ())
    return (
        any(required <= members for required, _ in (*_OBJECTS, *_ITEMS))
        or {"accessModes", "storageClassName"} <= members
        or {"containers", "restartPolicy"} <= members
    )


def spellings(text: str) -> list[str]:
    """Other quantities near this one, or none if it isn't one: twice as much, half of it, and the same written in another way."""
    if not _QUANTITY.fullmatch(text):
        return []
    quantity = parse(text)
    half = Quantity(quantity.amount / 2, quantity.family)
    return [str(quantity + quantity), *([str(half)] if half.amount else []), *_respelled(text)]


def _respelled(text: str) -> list[str]:
    suffix = text.lstrip("0123456789.")
    number = text.removesuffix(suffix)
    if suffix in BINARY[2:] and number.isdigit():
        return [f"{int(number) * 1024}{BINARY[BINARY.index(suffix) - 1]}"]
    if suffix == "m" and number.isdigit() and int(number) % 1000 == 0:
        return [str(int(number) // 1000)]
    return []


def _is_of_claim(value: Any) -> bool:
    """Whether these are the resources of a volume claim, not of a container."""
    return isinstance(value, dict) and "storage" in (value.get("requests") or {})


def _lists(members: frozenset[str], value: Any) -> list[Any] | None:
    for required, item in _ITEMS:
        if required <= members:
            others = value if isinstance(value, list) else []
            return [[*others, item], *([others[:-1], []] if len(others) > 1 else [[]] if others else [])]
    return None


def _maps(value: Any) -> list[Any]:
    present = value if isinstance(value, dict) else {}
    grown = {**present, KEY: "a"}
    if not present:
        return [grown]
    first, *_ = present
    fewer = {key: item for key, item in present.items() if key != first}
    return [grown, fewer, {**present, first: f"{present[first]}2"}]


def _texts(name: str, schema: Schema, value: Any) -> list[Any] | None:
    if isinstance(value, str) and (near := spellings(value)):
        return [*near]
    if schema.get("enum"):
        return None
    for pattern, texts in _TEXTS:
        if pattern.fullmatch(name):
            return [*texts]
    if value in _SERVICE_TYPES and name == "type":
        return [*_SERVICE_TYPES]
    if _IMAGE.fullmatch(name):
        return _images(value)
    return None


def _images(value: Any) -> list[Any]:
    match = _IMAGE_TEXT.fullmatch(value) if isinstance(value, str) else None
    if match is None or not match["tag"]:
        return [f"{match['name']}:explored" if match is not None else "example.com/explored:1"]
    return [f"{match['name']}:explored", f"example.com/{match['name'].rpartition('/')[2]}{match['tag']}"]
