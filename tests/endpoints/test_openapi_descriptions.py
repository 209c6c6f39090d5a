"""Prose of built-in kinds and fields, from the package that has upstream's; and the words about operations and parameters."""

from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from fakeapiserver.apis import prose, scheme
from fakeapiserver.apis.custom_resources import resources_of
from fakeapiserver.apis.resource_table import ResourceTable
from fakeapiserver.apis.scheme import APIResource
from fakeapiserver.endpoints.negotiation import columns
from fakeapiserver.endpoints.openapi import v2
from fakeapiserver.endpoints.openapi.documents import OpenAPI

POD = "io.k8s.api.core.v1.Pod"
MODULE = '''
@dataclass
class Pod(DictMixin):
    r"""About pods.

      **parameters**

      * **apiVersion** ``Optional[str]`` - About versions.
      * **kind** ``Optional[str]`` - About kinds.
      * **metadata** ``Optional[meta_v1.ObjectMeta]`` - About metadata. More info: https://x.y/z.md#metadata
      * **spec** ``Optional[PodSpec]`` - About specs, which go on for so long that all of their words can't fit into
        one line.
        Another paragraph.
        - an item
          indented
    """
    apiVersion: 'Optional[str]' = None


@dataclass
class PodSpec(DictMixin):
    r"""Nothing but a head."""
'''
META = '''
@dataclass
class ObjectMeta(DictMixin):
    r"""About objects.

      **parameters**

      * **name** ``Optional[str]`` - About names.
      * **creationTimestamp** ``Optional[datetime]`` - About ages.
    """
'''
GEARS = {
    "spec": {
        "group": "example.com",
        "scope": "Cluster",
        "names": {"plural": "gears", "kind": "Gear"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "description": "My gears."}},
            }
        ],
    }
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder laid out as the package is; nothing in it can be imported."""
    (tmp_path / "core_v1.py").write_text(f"raise RuntimeError('never imported')\n{MODULE}")
    (tmp_path / "meta_v1.py").write_text(META)
    yield from _instead(tmp_path, monkeypatch)


@pytest.fixture
def nothing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package isn't installed."""
    for _ in _instead(None, monkeypatch):
        yield


def _instead(folder: Path | None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(prose, "folder", lambda: folder)
    prose.installed.cache_clear()
    yield folder or Path()
    prose.installed.cache_clear()


def openapi() -> OpenAPI:
    table = ResourceTable(scheme.load())
    table.insert(*resources_of(GEARS))
    return OpenAPI(table)


def resource(documents: OpenAPI, group: str, version: str, name: str) -> APIResource:
    view = documents.table.version(group, version)
    assert view is not None
    return next(row for row in view.resources if row.gvr.resource == name)


def test_kinds_and_fields_are_described_in_both_versions(package: Path) -> None:
    documents = openapi()
    for pod in (
        documents.build("api/v1")["components"]["schemas"][POD],
        v2.document(documents.table, documents)["definitions"][POD],
    ):
        assert pod["description"] == "About pods."
        assert pod["properties"]["spec"]["description"] == (
            "About specs, which go on for so long that all of their words can't fit into one line."
            "\n\nAnother paragraph.\n\n- an item\n  indented"
        )


def test_custom_kinds_keep_their_own_words(package: Path) -> None:
    schemas = openapi().build("apis/example.com/v1")["components"]["schemas"]
    gear, gears = schemas["com.example.v1.Gear"], schemas["com.example.v1.GearList"]
    assert gear["description"] == "My gears."
    assert gear["properties"]["kind"]["description"] == "About kinds."
    assert gears["description"] == "GearList is a list of Gear"
    assert gears["properties"]["items"]["description"] == "List of gears. More info: https://x.y/z.md"


def test_documents_have_another_hash_then(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    described = openapi().document("api/v1")
    monkeypatch.setattr(prose, "folder", lambda: None)
    prose.installed.cache_clear()
    plain = openapi().document("api/v1")
    assert described is not None
    assert plain is not None
    assert described[1] != plain[1]
    assert b"About pods" not in plain[0]


def test_columns_are_described_as_the_fields_they_show(package: Path) -> None:
    documents = openapi()
    pods = {row["name"]: row["description"] for row in columns.described(resource(documents, "", "v1", "pods"))}
    assert pods["Name"] == "About names."
    assert pods["Age"] == "About ages."
    assert pods["Status"] == ""  # upstream's own words, which no field has
    gears = columns.described(resource(documents, "example.com", "v1", "gears"))
    assert [row["description"] for row in gears] == ["About names.", "About ages."]


def test_without_the_package_columns_have_no_description(nothing: None) -> None:
    assert {row["description"] for row in columns.described(resource(openapi(), "", "v1", "pods"))} == {""}


def test_without_the_package_a_few_words_explain_what_every_object_has(nothing: None) -> None:
    schemas = openapi().build("apis/example.com/v1")["components"]["schemas"]
    gear = schemas["com.example.v1.Gear"]
    assert gear["description"] == "My gears."
    assert gear["properties"]["apiVersion"]["description"].startswith("APIVersion defines")
    assert gear["properties"]["metadata"]["description"] == "Standard object's metadata."
    assert schemas["com.example.v1.GearList"]["properties"]["items"]["description"] == "List of gears."
    meta = schemas["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"]["properties"]
    assert meta["creationTimestamp"]["description"].startswith("CreationTimestamp is a timestamp")


@pytest.mark.skipif(
    int(version("lightkube-models").split(".")[1]) < 37,
    reason="lightkube-models before 1.37 lacks 1.37's fields: install the newest one",
)
def test_the_dependency_describes_nearly_every_field() -> None:
    definitions = v2.document((documents := openapi()).table, documents)["definitions"]
    fields = [field for schema in definitions.values() for field in schema.get("properties", {}).values()]
    described = [field for field in fields if field.get("description")]
    assert len(described) > 0.95 * len(fields)
    container = definitions["io.k8s.api.core.v1.Container"]["properties"]
    assert container["image"]["description"].startswith("Container image name.")


NAMESPACED = "/api/v1/namespaces/{namespace}"


@pytest.mark.parametrize(
    ("path", "method", "text"),
    [
        (f"{NAMESPACED}/pods", "get", "list or watch objects of kind Pod"),
        (f"{NAMESPACED}/pods", "post", "create a Pod"),
        (f"{NAMESPACED}/events", "post", "create an Event"),
        (f"{NAMESPACED}/endpoints", "post", "create Endpoints"),
        (f"{NAMESPACED}/pods", "delete", "delete collection of Pod"),
        (f"{NAMESPACED}/pods/{{name}}", "patch", "partially update the specified Pod"),
        (f"{NAMESPACED}/pods/{{name}}/status", "put", "replace status of the specified Pod"),
        (f"{NAMESPACED}/pods/{{name}}/eviction", "post", "create eviction of a Pod"),
        (f"{NAMESPACED}/pods/{{name}}/exec", "post", "connect POST requests to exec of Pod"),
        ("/api/v1/componentstatuses", "get", "list objects of kind ComponentStatus"),
        ("/api/v1/", "get", "get available resources"),
        ("/apis/apps/", "get", "get information of a group"),
        ("/version/", "get", "get the version information for this server"),
        ("/apis/example.com/v1/gears", "get", "list objects of kind Gear"),
        ("/apis/example.com/v1/gears/{name}", "delete", "delete a Gear"),
    ],
)
def test_operations_are_described_as_upstream_describes_them(path: str, method: str, text: str) -> None:
    documents = openapi()
    assert v2.document(documents.table, documents)["paths"][path][method]["description"] == text


def test_every_parameter_is_described() -> None:
    documents = openapi()
    document = v2.document(documents.table, documents)
    parameters = [*document["parameters"].values()]
    for item in document["paths"].values():
        for value in item.values():
            parameters += value if isinstance(value, list) else value.get("parameters", ())
    undescribed = [
        row for row in parameters if row.get("in") != "body" and "$ref" not in row and "description" not in row
    ]
    assert undescribed == []
    eviction = document["paths"][f"{NAMESPACED}/pods/{{name}}/eviction"]["parameters"]
    assert [row["description"] for row in eviction if row.get("name") == "name"] == ["name of the Eviction"]
