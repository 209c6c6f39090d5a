"""Rows of the resource table for a CustomResourceDefinition.

Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_discovery_controller.go, .../customresource_handler.go
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fakeapiserver.apimachinery.gvk import GroupVersionKind, GroupVersionResource
from fakeapiserver.apimachinery.jsonpath import compile_path
from fakeapiserver.apimachinery.meta import Object, is_terminating
from fakeapiserver.apis.custom_definitions import CustomDefinitions, definition_name
from fakeapiserver.apis.custom_schema import CustomSchema
from fakeapiserver.apis.scheme import APIResource, Subresource, storage_version_hash
from fakeapiserver.apis.version_priority import kube_aware_key

VERBS: Final = frozenset({"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"})
SUBRESOURCE_VERBS: Final = frozenset({"get", "patch", "update"})
SCALE: Final = GroupVersionKind("autoscaling", "v1", "Scale")
SCALE_DEFINITION: Final = "io.k8s.api.autoscaling.v1.Scale"

NAME_COLUMN: Final = {"name": "Name", "type": "string", "format": "name", "priority": 0}
AGE_COLUMN: Final = {"name": "Age", "type": "date", "format": "", "priority": 0}


def resources_of(definition: Object) -> tuple[APIResource, ...]:
    """Returns a resource for each served version of an apiextensions.k8s.io/v1 CustomResourceDefinition.

    Names are those that its status accepted, or the wanted ones while there is no status.
    """
    spec = definition["spec"]
    accepted = definition.get("status", {}).get("acceptedNames") or {}
    names = {**spec["names"], **{name: value for name, value in accepted.items() if value}}
    served = [version for version in spec["versions"] if version.get("served")]
    # Set only if the stored version is served.
    stored = next(
        (GroupVersionKind(spec["group"], v["name"], spec["names"]["kind"]) for v in served if v.get("storage")), None
    )
    stored_hash = storage_version_hash(stored) if stored is not None else ""
    ending = is_terminating(definition)
    return tuple(_row(spec, names, version, stored_hash, ending) for version in served)


def _row(spec: Object, names: Mapping[str, Any], version: Object, stored_hash: str, terminating: bool) -> APIResource:
    gvk = GroupVersionKind(spec["group"], version["name"], names["kind"])
    list_kind = names.get("listKind") or names["kind"] + "List"
    schema = CustomSchema((version.get("schema") or {}).get("openAPIV3Schema"))
    selectable = tuple(field["jsonPath"] for field in version.get("selectableFields") or ())
    return APIResource(
        gvr=GroupVersionResource(spec["group"], version["name"], names["plural"]),
        gvk=gvk,
        singular=names.get("singular") or names["kind"].lower(),
        namespaced=spec["scope"] == "Namespaced",
        verbs=VERBS,
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources={item.name: item for item in _subresources(gvk, version.get("subresources") or {})},
        storage_version_hash=stored_hash,
        definition=definition_name(gvk),
        columns=tuple(_columns(version)),
        custom=True,
        terminating=terminating,
        deprecation=_deprecation(version, spec),
        list_kind=list_kind,
        definitions=CustomDefinitions(gvk, list_kind, schema, selectable),
        schema=schema,
        selectable_fields=selectable,
    )


def _deprecation(version: Object, spec: Object) -> str:
    """Returns the warning that each answer in a deprecated version carries, or "" (upstream:

    defaultDeprecationWarning).
    """
    if not version.get("deprecated"):
        return ""
    if version.get("deprecationWarning") is not None:
        return str(version["deprecationWarning"])
    name, kind = version["name"], spec["names"]["kind"]
    newer = [
        other["name"]
        for other in spec["versions"]
        if other.get("served") and not other.get("deprecated") and kube_aware_key(other["name"]) < kube_aware_key(name)
    ]
    text = f"{spec['group']}/{name} {kind} is deprecated"
    return f"{text}; use {spec['group']}/{min(newer, key=kube_aware_key)} {kind}" if newer else text


def _subresources(gvk: GroupVersionKind, wanted: Object) -> Iterator[Subresource]:
    if wanted.get("status") is not None:
        yield Subresource("status", gvk, SUBRESOURCE_VERBS, definition_name(gvk))
    if wanted.get("scale") is not None:
        yield Subresource("scale", SCALE, SUBRESOURCE_VERBS, SCALE_DEFINITION)


def _columns(version: Object) -> Iterator[Object]:
    """Yields the name and the version's own columns up to the first without a path, or the age if it has none."""
    yield NAME_COLUMN
    for column in version.get("additionalPrinterColumns") or ():
        try:
            compile_path(column["jsonPath"])
        except ValueError:
            return  # upstream drops this column and those after it
        yield {
            "name": column["name"],
            "type": column["type"],
            "format": column.get("format", ""),
            "description": column.get("description")
            or f"Custom resource definition column (in JSONPath format): {column['jsonPath']}",
            "priority": column.get("priority", 0),
        }
    if not version.get("additionalPrinterColumns"):
        yield AGE_COLUMN
