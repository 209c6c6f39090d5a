"""Attacks with the lists and maps of metadata, and of a node's status."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from conformance.robustness.attacks.attack import BODY, Attack, Call, Object, encoded, filled, named, pairs, posted

_CONFIGMAPS: Final = "/api/v1/namespaces/default/configmaps"


def _address(number: int) -> str:
    return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


def _owner(number: int) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": f"o{number}", "uid": f"u{number}"}


def _entry(number: int) -> Object:
    fields: Object = {"f:data": {f"f:k{number}": {}}}
    return {
        "manager": f"m{number}",
        "operation": "Update",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }


_METADATA: Final[dict[str, Callable[[], Any]]] = {
    "labels": lambda: pairs(lambda i: (f"k{i}", "v")),
    "labels that are invalid": lambda: pairs(lambda i: (f"-{i}/-", "-")),
    "annotations": lambda: pairs(lambda i: (f"k{i}", "")),
    "finalizers": lambda: filled(lambda i: f"example.com/f{i}"),
    "finalizers that are invalid": lambda: filled(lambda i: f"f {i}"),
    "ownerReferences": lambda: filled(_owner),
    "managedFields": lambda: filled(_entry),
}


def attacks() -> Iterator[Attack]:
    yield Attack(
        "metadata: 8,000 ownerReferences",
        posted(_CONFIGMAPS, lambda: _with_metadata("ownerReferences", [_owner(i) for i in range(8000)])),
    )
    for name, value in _METADATA.items():
        obj = partial(_with_made, name.partition(" ")[0], value)
        yield Attack(f"metadata: {name}", posted(_CONFIGMAPS, obj))
    yield Attack("metadata: a name of 3 MB", posted(_CONFIGMAPS, lambda: named("v1", "ConfigMap", "n" * BODY)))
    before = [posted("/api/v1/nodes", lambda: named("v1", "Node", "status"))]
    for name, key, item in (
        ("conditions", "conditions", lambda i: {"type": f"t{i}", "status": "True"}),
        ("addresses", "addresses", lambda i: {"type": "InternalIP", "address": _address(i)}),
        ("images", "images", lambda i: {"names": [f"i{i}"]}),
    ):
        yield Attack(
            f"node status: {name}", Call("PUT", "/api/v1/nodes/status/status", partial(_node, key, item)), before
        )


def _node(key: str, item: Callable[[int], object]) -> bytes:
    return encoded(named("v1", "Node", "status", status={key: filled(item)}))


def _with_made(key: str, value: Callable[[], Any]) -> Object:
    return _with_metadata(key, value())


def _with_metadata(key: str, value: object) -> Object:
    obj = named("v1", "ConfigMap", "metadata")
    obj["metadata"][key] = value
    return obj
