"""Descriptions in the schemas of OpenAPI documents.

Without the package that has upstream's prose (`fakeapiserver/apis/prose.py`), a few words describe what every object has, so that
`kubectl explain` of a custom resource says something. Missing in comparison with the real server: the list of values at the end of
an enumeration's description, and the descriptions of types that are plain values (Quantity, Time).
"""

from collections.abc import Mapping
from typing import Any, Final

from fakeapiserver.apis import prose
from fakeapiserver.apis.scheme import APIResource

Schema = dict[str, Any]

# A kind whose type and metadata are described as every kind's are.
_ANY_KIND: Final = "io.k8s.api.core.v1.Pod"
_META: Final = ("apiVersion", "kind", "metadata")
_OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def _said(**fields: str) -> dict[str, Schema]:
    return {name: {"description": text} for name, text in fields.items()}


_OWN_WORDS: Final[Mapping[str, Schema]] = {
    _ANY_KIND: {
        "properties": _said(
            apiVersion="APIVersion defines in which group and version this object is written.",
            kind="Kind names what this object is.",
            metadata="Standard object's metadata.",
        )
    },
    _OBJECT_META: {
        "description": "ObjectMeta is what every stored object has beside what makes its kind.",
        "properties": _said(
            annotations="Annotations hold what programs keep with this object; nothing is found by them.",
            creationTimestamp="CreationTimestamp is a timestamp of when the server stored this object. The server sets it.",
            deletionGracePeriodSeconds="DeletionGracePeriodSeconds is how long it may take to end once it is deleted.",
            deletionTimestamp="DeletionTimestamp is when it is going to be gone. The server sets it on a graceful delete.",
            finalizers="Finalizers name what has to be done before it is gone; it stays until the list is empty.",
            generateName="GenerateName is what the server puts before a random name where none is given.",
            generation="Generation counts the changes of what is wished for. The server sets it.",
            labels="Labels are what selectors find this object by.",
            managedFields="ManagedFields tell who set which fields.",
            name="Name is unique among the objects of its kind in a namespace, and never changes.",
            namespace="Namespace is the space its name is unique in, and never changes.",
            ownerReferences="OwnerReferences name what this object goes with: without any of them it is deleted.",
            resourceVersion="ResourceVersion changes with each write. It is to be compared, not read.",
            uid="UID tells this object from others of the same name, before and after it. The server sets it.",
        ),
    },
}


def load() -> prose.Descriptions:
    """Descriptions by definition: upstream's if they are installed, else this project's own words."""
    return prose.installed() or _OWN_WORDS


def without_enums(schema: Schema) -> Schema:
    """A built-in definition that leaves the values of enumerations open, as it is without the gate OpenAPIEnums (upstream:
    k8s.io/apiserver/pkg/util/openapi/enablement.go)."""
    without = {key: value for key, value in schema.items() if key != "enum"}
    for key in ("items", "additionalProperties"):
        if isinstance(value := without.get(key), dict):
            without[key] = without_enums(value)
    if "properties" in without:
        without["properties"] = {key: without_enums(value) for key, value in without["properties"].items()}
    return without


def described(name: str, schema: Schema, known: prose.Descriptions) -> Schema:
    """A built-in definition with the prose of it and its fields."""
    own = known.get(name, {})
    return _with_prose(schema, own, own.get("properties", {})) if own else schema


def described_custom(row: APIResource, name: str, schema: Schema, known: prose.Descriptions) -> Schema:
    """Returns the definition of a custom kind or its list, with prose for the fields that all kinds have.

    The user's prose stays.
    """
    fields = known.get(_ANY_KIND, {}).get("properties", {})
    if not fields:
        return schema
    meta = {key: fields[key] for key in _META}
    if name == row.definition:
        return _with_prose(schema, {}, meta)
    more = fields["metadata"]["description"].partition(" More info: ")[2].partition("#")[0]
    meta["items"] = {"description": f"List of {row.gvr.resource}." + (f" More info: {more}" if more else "")}
    return _with_prose(schema, {"description": f"{row.list_kind} is a list of {row.gvk.kind}"}, meta)


def _with_prose(schema: Schema, known: Schema, fields: Mapping[str, Schema]) -> Schema:
    own = {"description": known["description"]} if "description" in known else {}
    if "properties" not in schema:
        return {**own, **schema}
    properties = {
        key: {"description": fields[key]["description"], **value} if "description" in fields.get(key, {}) else value
        for key, value in schema["properties"].items()
    }
    return {**own, **schema, "properties": properties}
