"""Prose of built-in kinds, from a package with upstream's definitions where there is one."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakeapiserver.apis import scheme
from fakeapiserver.apis.custom_resources import resources_of
from fakeapiserver.apis.resource_table import ResourceTable
from fakeapiserver.endpoints.openapi import OpenAPI, descriptions, v2

POD = "io.k8s.api.core.v1.Pod"
PROSE = {
    POD: {
        "description": "About pods.",
        "properties": {
            "apiVersion": {"description": "About versions."},
            "kind": {"description": "About kinds."},
            "metadata": {"description": "About metadata. More info: https://x.y/z.md#metadata"},
            "spec": {"description": "About specs."},
        },
    }
}
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
    """A package laid out as kubernetes-validate is."""
    folder = tmp_path / "kubernetes_validate" / "kubernetes-json-schema" / "v1.36.0-local"
    folder.mkdir(parents=True)
    (tmp_path / "kubernetes_validate" / "__init__.py").write_text("raise RuntimeError('never imported')")
    (folder / "_definitions.json").write_text(json.dumps({"$defs": PROSE}))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    descriptions.load.cache_clear()
    yield folder
    descriptions.load.cache_clear()


def openapi() -> OpenAPI:
    table = ResourceTable(scheme.load())
    table.insert(*resources_of(GEARS))
    return OpenAPI(table)


def test_kinds_and_fields_are_described_in_both_versions(package: Path) -> None:
    documents = openapi()
    for pod in (
        documents.build("api/v1")["components"]["schemas"][POD],
        v2.document(documents.table, documents)["definitions"][POD],
    ):
        assert pod["description"] == "About pods."
        assert pod["properties"]["spec"]["description"] == "About specs."


def test_custom_kinds_keep_their_own_words(package: Path) -> None:
    schemas = openapi().build("apis/example.com/v1")["components"]["schemas"]
    gear, gears = schemas["com.example.v1.Gear"], schemas["com.example.v1.GearList"]
    assert gear["description"] == "My gears."
    assert gear["properties"]["kind"]["description"] == "About kinds."
    assert gears["description"] == "GearList is a list of Gear"
    assert gears["properties"]["items"]["description"] == "List of gears. More info: https://x.y/z.md"


def test_documents_have_another_hash_then(package: Path) -> None:
    described = openapi().document("api/v1")
    (package / "_definitions.json").unlink()
    descriptions.load.cache_clear()
    plain = openapi().document("api/v1")
    assert described is not None
    assert plain is not None
    assert described[1] != plain[1]
    assert b"About pods" not in plain[0]


def test_without_the_package_a_few_words_explain_what_every_object_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descriptions, "path_of", lambda version: None)
    descriptions.load.cache_clear()
    table = ResourceTable(scheme.load("v1.36"))
    table.insert(*resources_of(GEARS))
    schemas = OpenAPI(table).build("apis/example.com/v1")["components"]["schemas"]
    descriptions.load.cache_clear()
    gear = schemas["com.example.v1.Gear"]
    assert gear["description"] == "My gears."
    assert gear["properties"]["apiVersion"]["description"].startswith("APIVersion defines")
    assert gear["properties"]["metadata"]["description"] == "Standard object's metadata."
    assert schemas["com.example.v1.GearList"]["properties"]["items"]["description"] == "List of gears."
    meta = schemas["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"]["properties"]
    assert meta["creationTimestamp"]["description"].startswith("CreationTimestamp is a timestamp")
