"""Dropping what a structural schema does not specify.

Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning/algorithm.go
"""

from typing import Any, Final

from fakeapiserver.apimachinery.schema.resolve import Schema

_META_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})
_NO_SCHEMA: Final[Schema] = {}


def prune(value: Any, schema: Schema, *, is_resource: bool = True) -> list[str]:
    """Drops, in place, the fields of a value its schema does not know; returns their paths, sorted.

    apiVersion, kind and metadata of a resource itself always stay.
    """
    unknown: list[str] = []
    _prune(value, {**schema, "x-kubernetes-embedded-resource": True} if is_resource else schema, "", unknown)
    return sorted(unknown)


def additional(schema: Schema) -> Schema | None:
    """Returns the schema of fields that are not listed by name:

    None if there may be no such fields, empty if they may have any value.
    """
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        return additional
    # Also where none are allowed: validation reports them.
    return None if additional is None else _NO_SCHEMA


def _prune(value: Any, schema: Schema, path: str, unknown: list[str]) -> None:
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        _keep(value, schema, path, unknown)
    elif isinstance(value, dict):
        _prune_fields(value, schema, path, unknown)
    elif isinstance(value, list):
        items = schema.get("items") or _NO_SCHEMA
        for i, item in enumerate(value):
            if isinstance(item, dict | list):
                _prune(item, items, f"{path}[{i}]", unknown)


def _prune_fields(value: dict[str, Any], schema: Schema, path: str, unknown: list[str]) -> None:
    properties, others = schema.get("properties", _NO_SCHEMA), additional(schema)
    embedded = schema.get("x-kubernetes-embedded-resource")
    dropped = []
    for key, item in value.items():
        if embedded and key in _META_FIELDS:
            continue
        known = properties.get(key, others)
        if known is None:
            dropped.append(key)
        elif isinstance(item, dict | list):
            _prune(item, known, _child(path, key), unknown)
    for key in dropped:
        del value[key]
        if path or key not in _META_FIELDS:
            unknown.append(_child(path, key))


def _keep(value: Any, schema: Schema, path: str, unknown: list[str]) -> None:
    """Prunes only below the fields specified beside x-kubernetes-preserve-unknown-fields."""
    if isinstance(value, dict):
        properties, others = schema.get("properties", _NO_SCHEMA), additional(schema)
        embedded = schema.get("x-kubernetes-embedded-resource")
        for key, item in value.items():
            known = properties.get(key, others)
            if known is not None and not (embedded and key in _META_FIELDS):
                _prune(item, known, _child(path, key), unknown)
    elif isinstance(value, list) and (items := schema.get("items")):
        for i, item in enumerate(value):
            _keep(item, items, f"{path}[{i}]", unknown)


def _child(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
