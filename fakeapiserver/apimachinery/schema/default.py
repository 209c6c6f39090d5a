"""Defaults of structural schemas.

Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting/{algorithm,prunenulls}.go
"""

from copy import deepcopy
from typing import Any, Final

from fakeapiserver.apimachinery.allowance import spend
from fakeapiserver.apimachinery.schema.resolve import Schema

_NO_SCHEMA: Final[Schema] = {}
# Of a look at one property, in the units of effort.py.
_COST: Final = 4


def default(obj: dict[str, Any], schema: Schema) -> None:
    """Applies the schema's defaults to a resource, in place; also instead of nulls that the schema does not allow."""
    _default(obj, schema)


def presets_status(schema: Schema) -> bool:
    """Reports whether a resource without a status has one, by default."""
    return schema.get("properties", _NO_SCHEMA).get("status", _NO_SCHEMA).get("default") is not None


def _others(schema: Schema) -> Schema | None:
    """The schema of fields that aren't listed by name."""
    additional = schema.get("additionalProperties")
    return additional if isinstance(additional, dict) else None


def drop_nulls(value: Any, schema: Schema) -> None:
    """Drops, in place, fields that are null but may not be, unless they have a default that takes their place."""
    if isinstance(value, dict):
        properties, others = schema.get("properties", _NO_SCHEMA), _others(schema)
        dropped = []
        for key, item in value.items():
            known = properties.get(key, others)
            if known is None:
                continue
            if item is None and not known.get("nullable") and known.get("default") is None:
                dropped.append(key)
            elif isinstance(item, dict | list):
                drop_nulls(item, known)
        for key in dropped:
            del value[key]
    elif isinstance(value, list) and (items := schema.get("items")):
        for item in value:
            drop_nulls(item, items)


def _default(value: Any, schema: Schema) -> None:
    if isinstance(value, dict):
        _default_fields(value, schema)
    elif isinstance(value, list) and (items := schema.get("items")):
        for i, item in enumerate(value):
            if item is None and not items.get("nullable"):
                value[i] = deepcopy(items.get("default"))
            _default(value[i], items)


def _default_fields(value: dict[str, Any], schema: Schema) -> None:
    properties, others = schema.get("properties", _NO_SCHEMA), _others(schema)
    spend(_COST * len(properties))
    for key, known in properties.items():
        preset = known.get("default")
        if preset is not None and value.get(key) is None and (key not in value or not known.get("nullable")):
            spend(_COST * 10)
            value[key] = deepcopy(preset)
    for key, item in value.items():
        known = properties.get(key)
        if known is not None:
            _default(item, known)
        elif others is not None:
            if item is None and not others.get("nullable"):
                value[key] = deepcopy(others.get("default"))
            _default(value[key], others)
