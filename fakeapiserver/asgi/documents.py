"""The application's OpenAPI document: FastAPI's, for the routes of the user, with the operations of Kubernetes."""

from typing import Any

from fakeapiserver.apis.resource_table import ResourceTable
from fakeapiserver.endpoints.openapi.documents import EVERYWHERE, SECURITY, OpenAPI

Document = dict[str, Any]


class Documents:
    """The Kubernetes part is made when it is first asked for, and kept until what is served changes."""

    def __init__(self) -> None:
        self._made: tuple[ResourceTable, int, Document] | None = None

    def merged(self, own: Document, table: ResourceTable) -> Document:
        """`own`, with what `table` serves. Of two paths that are equal, the one of `own` counts."""
        kubernetes = self._kubernetes(table)
        components = own.get("components", {})
        schemas = {**kubernetes["schemas"], **components.get("schemas", {})}
        security = {**SECURITY, **components.get("securitySchemes", {})}
        return {
            **own,
            "paths": {**own["paths"], **kubernetes["paths"], **own["paths"]},
            "components": {**components, "schemas": schemas, "securitySchemes": security},
            "tags": [*own.get("tags", []), *kubernetes["tags"]],
        }

    def _kubernetes(self, table: ResourceTable) -> Document:
        if self._made is None or self._made[:2] != (table, table.generation):
            self._made = (table, table.generation, _document(table))
        return self._made[2]


def _document(table: ResourceTable) -> Document:
    openapi = OpenAPI(table)
    paths: Document = {}
    schemas: Document = {}
    tags: Document = {}
    for key in openapi.listed():
        document = openapi.build(key)
        paths |= document["paths"]
        schemas |= document["components"].get("schemas", {})
        for tag in _tags(document):
            tags.setdefault(tag, {"name": tag, "description": key.removeprefix("apis/").removeprefix("api/")})
    # In the document of one group version, these name that group version only.
    schemas |= {name: openapi.built_in(name) for name in EVERYWHERE}
    return {"paths": paths, "schemas": schemas, "tags": [*tags.values()]}


def _tags(document: Document) -> list[str]:
    return [tag for item in document["paths"].values() for row in item.values() if "tags" in row for tag in row["tags"]]
