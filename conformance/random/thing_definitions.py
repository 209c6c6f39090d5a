"""Custom kinds whose objects have every kind of list and map that managers can share."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from conformance.random.subjects import GROUP


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


def served() -> Iterator[str]:
    """Paths that answer 200 when the server is ready for sequences."""
    for definition in DEFINITIONS:
        yield f"/apis/{GROUP}/v1/namespaces/default/{definition['spec']['names']['plural']}"
