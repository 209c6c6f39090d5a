"""The objects of the traffic: where each kind keeps the three parts that the checks compare."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from conformance.robustness.history import Content

NAMESPACE: Final = "robust"
COLORS: Final = ("red", "green", "blue")
_KEYS: Final = "/registry/"
_GROUP: Final = "robust.example.com"


@dataclass(frozen=True)
class Kind:
    """`value_at` and `mark_at` are paths of fields; `base` is the rest of an object."""

    name: str
    resource: str
    group_version: str
    value_at: Sequence[str]
    mark_at: Sequence[str]
    names: Sequence[str]
    base: Mapping[str, object] = field(default_factory=dict)
    has_status: bool = False

    @property
    def path(self) -> str:
        root = "/api" if "/" not in self.group_version else "/apis"
        return f"{root}/{self.group_version}/namespaces/{NAMESPACE}/{self.resource}"

    def object(self, name: str, content: Content, revision: int = 0) -> dict[str, Any]:
        """An object for a request; `revision` is the one it is to replace, 0 for none."""
        made: dict[str, Any] = json.loads(json.dumps(self.base))
        made |= {"apiVersion": self.group_version, "kind": self.name}
        made.setdefault("metadata", {}).update(name=name, namespace=NAMESPACE, labels={"color": content.color})
        if revision:
            made["metadata"] |= {"resourceVersion": str(revision), "uid": content.uid}
        _put(made, self.value_at, content.value)
        if content.mark:
            _put(made, self.mark_at, content.mark)
        return made

    def patch(self, mark: str) -> dict[str, Any]:
        """A merge patch that sets the mark."""
        made: dict[str, Any] = {}
        _put(made, self.mark_at, mark)
        return made

    def content(self, obj: Any) -> Content:
        color, uid = (_at(obj, ("metadata", *path)) for path in (("labels", "color"), ("uid",)))
        return Content(_at(obj, self.value_at), _at(obj, self.mark_at), color, uid)


def _put(obj: dict[str, Any], path: Sequence[str], value: str | None) -> None:
    for name in path[:-1]:
        obj = obj.setdefault(name, {})
    obj[path[-1]] = value


def _at(obj: Any, path: Sequence[str]) -> str:
    for name in path:
        obj = obj.get(name) or {}
    return str(obj or "")


_ANNOTATIONS: Final = ("metadata", "annotations")
_EVENT: Final = {"involvedObject": {"kind": "Pod", "name": "p", "namespace": NAMESPACE}, "reason": "Traffic"}

CONFIG_MAPS: Final = Kind(
    "ConfigMap", "configmaps", "v1", ("data", "value"), ("data", "mark"), [f"c{number}" for number in range(8)]
)
LEASES: Final = Kind(
    "Lease",
    "leases",
    "coordination.k8s.io/v1",
    ("spec", "holderIdentity"),
    (*_ANNOTATIONS, "mark"),
    [f"l{number}" for number in range(4)],
)
WIDGETS: Final = Kind(
    "Widget",
    "widgets",
    f"{_GROUP}/v1",
    ("spec", "value"),
    ("status", "mark"),
    [f"w{number}" for number in range(5)],
    has_status=True,
)
# They are created under names of their own, and go by leases of etcd.
EVENTS: Final = Kind("Event", "events", "v1", ("message",), (*_ANNOTATIONS, "mark"), (), _EVENT)
KINDS: Final = {kind.resource: kind for kind in (CONFIG_MAPS, LEASES, WIDGETS, EVENTS)}


def read_object(key: str, value: bytes) -> tuple[str, Content]:
    """The name and the content of one of the traffic's objects as it is stored; an empty name for others. A deletion has no value."""
    resource, _, rest = key.removeprefix(_KEYS).removeprefix(f"{_GROUP}/").partition("/")
    namespace, _, name = rest.partition("/")
    if resource not in KINDS or namespace != NAMESPACE:
        return "", Content()
    return f"{resource}/{name}", KINDS[resource].content(json.loads(value or b"{}"))


def definition() -> dict[str, object]:
    """The CustomResourceDefinition of widgets."""
    text = {"type": "string"}
    properties = {
        part: {"type": "object", "properties": {name: text}} for part, name in (("spec", "value"), ("status", "mark"))
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
        "subresources": {"status": {}},
    }
    names = {"plural": WIDGETS.resource, "singular": "widget", "kind": WIDGETS.name, "listKind": "WidgetList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{WIDGETS.resource}.{_GROUP}"},
        "spec": {"group": _GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }
