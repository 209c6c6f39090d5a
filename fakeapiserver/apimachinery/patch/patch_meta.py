"""The patch strategy and merge key of fields, from the schema, and the errors of strategic merge patch.

The strategies recorded in OpenAPI are those of upstream's struct tags, for every field of every kind.
Upstream: k8s.io/apimachinery/pkg/util/strategicpatch/meta.go, pkg/util/mergepatch/errors.go,
third_party/forked/golang/json/fields.go; codes from k8s.io/apiserver/pkg/endpoints/handlers/patch.go.
"""

from typing import Any, Final

from msgspec import Struct

from fakeapiserver.apimachinery.errors import StatusError, new_bad_request, status_error
from fakeapiserver.apimachinery.patch.go_format import go_type_verb, go_value
from fakeapiserver.apimachinery.schema.resolve import Definitions, Schema, reference, resolve

MERGE: Final = "merge"
REPLACE: Final = "replace"
_KINDS: Final = {"array": "slice", "string": "string", "boolean": "bool", "integer": "int64", "number": "float64"}


class Node(Struct, frozen=True):
    """A place in the schema: its resolved schema and the name of its definition, empty where it has none."""

    schema: Schema
    definitions: Definitions
    definition: str = ""

    def kind(self) -> str:
        """The Go kind of the type there: struct, map, slice, string …"""
        declared = self.schema.get("type", "object")
        if declared != "object":
            return _KINDS.get(declared, "struct")
        return "map" if "additionalProperties" in self.schema else "struct"

    def struct_name(self) -> str:
        """The name of the Go struct, which is the definition's last word."""
        kinds = self.schema.get("x-kubernetes-group-version-kind")
        return self.definition.rpartition(".")[2] or (kinds[0]["kind"] if kinds else "")


class Field(Struct, frozen=True):
    """A field's type (of its elements, for a list) and how it is patched: strategy is merge, replace or empty."""

    node: Node
    strategy: str
    merge_key: str


def node_of(schema: Schema, definitions: Definitions) -> Node:
    return Node(resolve(schema, definitions), definitions, reference(schema))


def lookup(node: Node, name: str) -> Field:
    """A field of a struct by its JSON name, upper and lower case alike as in Go. Raises for what has no such field."""
    if node.kind() != "struct":
        raise failure(f"merging an object in json but data type is not struct, instead is: {node.kind()}")
    properties = node.schema.get("properties", {})
    schema = properties.get(name)
    if schema is None:
        folded = [key for key in properties if key.casefold() == name.casefold()]
        if not folded:
            raise failure(f'unable to find api field in struct {node.struct_name()} for the json field "{name}"')
        schema = properties[folded[0]]
    items = schema.get("items", schema)
    strategies = [word for word in schema.get("x-kubernetes-patch-strategy", "").split(",") if word != "retainKeys"]
    merge_key = schema.get("x-kubernetes-patch-merge-key", "")
    return Field(node_of(items, node.definitions), strategies[0] if strategies else "", merge_key)


# -------------------------------------------------------------------- errors


def failure(message: str) -> StatusError:
    """An error upstream has no code for: 500, and nothing but the message."""
    return status_error(500, "", message)


def no_lists_of_lists() -> StatusError:
    return status_error(422, "Invalid", "the server rejected our request due to an error in our request", {})


def panic() -> StatusError:
    """Returns the error in place of upstream's panic, which drops the connection."""
    return new_bad_request("invalid patch format")


def bad_argument(expected: str, actual: Any) -> StatusError:
    return failure(f"expected a {expected}, but received a {go_type_verb(actual)}")


def no_merge_key(element: dict[str, Any], merge_key: str) -> StatusError:
    return failure(f"map: {go_value(element)} does not contain declared merge key: {merge_key}")
