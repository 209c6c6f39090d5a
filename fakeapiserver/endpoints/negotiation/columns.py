"""The columns of a resource's Tables, each described as the field that it shows.

Upstream: pkg/printers/internalversion/printers.go, k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor. Which
field is described in which column is recorded (`apis/column_fields.json`); the descriptions come from `apis/prose.py`.
"""

from collections.abc import Mapping
from typing import Any, Final

from fakeapiserver.apis import prose
from fakeapiserver.apis.custom_resources import AGE_COLUMN, NAME_COLUMN
from fakeapiserver.apis.recorded import read_shared_table
from fakeapiserver.apis.scheme import APIResource

Column = Mapping[str, Any]

_OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_CUSTOM: Final = {id(NAME_COLUMN): f"{_OBJECT_META} name", id(AGE_COLUMN): f"{_OBJECT_META} creationTimestamp"}


def described(resource: APIResource) -> list[Column]:
    """The resource's columns: {"name", "type", "format", "description", "priority"}. A description is "" if the column shows no
    single field, or if the prose isn't installed."""
    known = prose.installed()
    gv = resource.gvr.group_version
    path = f"/{f'apis/{gv}' if gv.group else f'api/{gv}'}/{resource.gvr.resource}"
    fields = {} if resource.custom else read_shared_table("column_fields.json").get(path, {})
    return [
        _with_description(column, _text(known, _CUSTOM.get(id(column)) or fields.get(column["name"], "")))
        if "description" not in column
        else column
        for column in resource.columns
    ]


def _with_description(column: Column, text: str) -> Column:
    """The priority comes last, as Go writes it."""
    others = {key: value for key, value in column.items() if key != "priority"}
    return {**others, "description": text, "priority": column["priority"]}


def _text(known: prose.Descriptions | None, field: str) -> str:
    if known is None:
        return ""
    definition, _, name = field.partition(" ")
    text: str = known.get(definition, {}).get("properties", {}).get(name, {}).get("description", "")
    return text
