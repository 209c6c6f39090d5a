"""OpenAPI documents are those of a real kube-apiserver 1.36.3 without descriptions: digests of its documents."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fakeapiserver.apis import scheme
from fakeapiserver.apis.custom_resources import resources_of
from fakeapiserver.apis.resource_table import ResourceTable
from fakeapiserver.endpoints.openapi import descriptions, v2, words
from fakeapiserver.endpoints.openapi.documents import OpenAPI
from fakeapiserver.endpoints.openapi.operations import camel_group, group_tag

SPEC = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "default": 1},
        "description": {"type": "string"},
        "port": {"x-kubernetes-int-or-string": True},
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "nul": {"type": "string", "nullable": True},
    },
    "x-kubernetes-validations": [{"rule": "self.size < 5", "message": "hm"}],
}
STATUS = {"type": "object", "properties": {"replicas": {"type": "integer"}}}
WIDGET = {
    "type": "object",
    "required": ["spec"],
    "properties": {"spec": SPEC, "status": STATUS},
}
LIST = {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}
WIDGET_V1 = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "properties": {"size": {"type": "integer"}, "list": LIST}},
        "status": STATUS,
    },
}
NAMED = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}}}

WIDGETS = {
    "spec": {
        "group": "zeta.example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {"name": "v1alpha1", "served": True, "schema": {"openAPIV3Schema": WIDGET}},
            {
                "name": "v1",
                "served": True,
                "schema": {"openAPIV3Schema": WIDGET_V1},
                "selectableFields": [{"jsonPath": ".spec.size"}],
                "subresources": {"status": {}, "scale": {}},
            },
        ],
    }
}
BOLTS = {
    "spec": {
        "group": "alpha.example.com",
        "scope": "Cluster",
        "names": {"plural": "bolts", "kind": "Bolt"},
        "versions": [
            {
                "name": "v2",
                "served": True,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"metadata": NAMED}}},
            }
        ],
    }
}


@pytest.fixture(autouse=True)
def without_prose(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descriptions, "load", dict)
    for name in ("fixed", "operation", "connect", "parameter"):
        monkeypatch.setattr(words, name, lambda *_: "")


@pytest.fixture(scope="module")
def plain() -> OpenAPI:
    return OpenAPI(ResourceTable(scheme.load("v1.36")))


@pytest.fixture
def custom() -> OpenAPI:
    table = ResourceTable(scheme.load("v1.36"))
    table.insert(*resources_of(WIDGETS), *resources_of(BOLTS))
    return OpenAPI(table)


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def test_every_built_in_document(plain: OpenAPI) -> None:
    assert digest({key: plain.build(key) for key in plain.listed()}) == "6ee98f0580dc9a50"


# When the digest of all documents differs, these show which document does.
@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("api/v1", "5083d105582ce747"),
        ("apis/apps", "18a9c178f918de70"),
        ("apis/apps/v1", "c4a331c8f02c6ebc"),
        ("apis/authorization.k8s.io/v1", "d89f0b1ab767dbb9"),
        ("version", "d98f183e582dfd59"),
    ],
)
def test_built_in_document(plain: OpenAPI, key: str, expected: str) -> None:
    assert digest(plain.build(key)) == expected


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("apis/zeta.example.com/v1", "8c25256f74d1ed0c"),
        ("apis/zeta.example.com/v1alpha1", "794b69b3e349250d"),
        ("apis/alpha.example.com/v2", "02597a1c42e334f2"),
    ],
)
def test_custom_document(custom: OpenAPI, key: str, expected: str) -> None:
    assert digest(custom.build(key)) == expected


@pytest.mark.parametrize("switches", [{"OpenAPIEnums": False}, {}])
def test_values_of_enumerations_depend_on_the_gate(switches: dict[str, bool]) -> None:
    table = ResourceTable(scheme.serving("v1.36", switches, {}))
    openapi = OpenAPI(table)
    found = json.dumps([openapi.build("api/v1"), v2.document(table, openapi)])
    assert ('"enum": ["Always", "IfNotPresent", "Never"]' in found, '"enum": [' in found) == (not switches,) * 2
    assert (openapi.index() == OpenAPI(ResourceTable(scheme.load("v1.36"))).index()) == (not switches)


def test_index_addresses_each_document_by_its_hash(plain: OpenAPI) -> None:
    paths = json.loads(plain.index())["paths"]
    built = plain.document("apis/apps/v1")
    assert built is not None
    assert paths["apis/apps/v1"] == {"serverRelativeURL": f"/openapi/v3/apis/apps/v1?hash={built[1]}"}
    assert set(paths) == set(plain.listed())


def test_there_is_no_unknown_document(plain: OpenAPI) -> None:
    assert plain.document("apis/nope/v1") is None


def test_hash_changes_with_the_schema_and_only_there(custom: OpenAPI) -> None:
    before = json.loads(custom.index())["paths"]
    changed = json.loads(json.dumps(BOLTS))
    changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = {"type": "object"}
    custom.table.insert(*resources_of(changed))
    after = json.loads(custom.index())["paths"]
    assert [key for key in after if after[key] != before[key]] == ["apis/alpha.example.com/v2"]


def test_servers_that_serve_the_same_have_the_same_hashes() -> None:
    """A client may read the index at one server and a document at another one, which sends it to another address for another hash."""
    program = (
        "from tests.endpoints.test_openapi import BOLTS, WIDGETS, OpenAPI, ResourceTable, resources_of, scheme\n"
        "table = ResourceTable(scheme.load())\n"
        "table.insert(*resources_of(WIDGETS), *resources_of(BOLTS))\n"
        "print(OpenAPI(table).index().decode())\n"
    )
    root = Path(__file__).parents[2]
    indices = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(indices) == 1


def test_built_in_bytes_survive_a_new_generation(custom: OpenAPI) -> None:
    first = custom.document("apis/apps/v1")
    custom.table.insert(*resources_of(BOLTS))
    second = custom.document("apis/apps/v1")
    assert first is not None
    assert second is not None
    assert first[0] is second[0]


def test_patch_has_parameters_for_dry_run_and_field_validation(plain: OpenAPI) -> None:
    patch = plain.build("apis/apps/v1")["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert [row["name"] for row in patch["parameters"]] == ["dryRun", "fieldManager", "fieldValidation", "force"]


def test_version_2_definitions(plain: OpenAPI) -> None:
    document = v2.document(plain.table, plain)
    assert digest(document["definitions"]) == "0438559a40b572ea"
    assert digest(sorted(document["paths"])) == "a5382045677c67fe"


@pytest.mark.parametrize(
    ("group", "camel", "tag"),
    [
        ("", "Core", "core"),
        ("apps", "Apps", "apps"),
        ("rbac.authorization.k8s.io", "RbacAuthorization", "rbacAuthorization"),
        ("stable.example.com", "StableExampleCom", "stableExampleCom"),
    ],
)
def test_groups_in_operation_ids(group: str, camel: str, tag: str) -> None:
    assert (camel_group(group), group_tag(group)) == (camel, tag)


def test_where_cbor_is_spoken_built_in_kinds_say_so_and_custom_ones_dont() -> None:
    table = ResourceTable(scheme.load())
    table.insert(*resources_of(WIDGETS))
    openapi = OpenAPI(table, cbor=True)
    pods = openapi.build("api/v1")["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]
    assert "application/cbor" in pods["get"]["responses"]["200"]["content"]
    assert "application/apply-patch+cbor" in pods["patch"]["requestBody"]["content"]
    assert "cbor" not in json.dumps(
        [openapi.build(key)["paths"] for key in openapi.listed() if openapi.customised(key)]
    )


@pytest.mark.parametrize("as_protobuf", [False, True])
def test_version_2_rebuilds_only_changed_parts(
    custom: OpenAPI, monkeypatch: pytest.MonkeyPatch, as_protobuf: bool
) -> None:
    whole = v2.Version2(custom.table, custom)
    before = whole.body(as_protobuf=as_protobuf)
    changed = json.loads(json.dumps(BOLTS))
    changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = {"type": "object"}
    custom.table.insert(*resources_of(changed))
    made = []
    row_paths = custom.row_paths
    monkeypatch.setattr(custom, "row_paths", lambda row: made.append(row.gvk.kind) or row_paths(row))
    for step in whole.prepare(as_protobuf=as_protobuf):
        if step is not None:
            step()
    assert made == ["Bolt"]
    after = whole.body(as_protobuf=as_protobuf)
    assert made == ["Bolt"]
    assert after != before
    assert after == v2.Version2(custom.table, custom).body(as_protobuf=as_protobuf)


def test_parts_of_custom_resources_can_be_made_beside_the_event_loop(custom: OpenAPI) -> None:
    whole = v2.Version2(custom.table, custom)
    apart = [step for step in whole.prepare() if step is not None]
    assert len(apart) == sum(row.custom for row in custom.table)
    for step in apart:
        step()
    assert all(step is None for step in whole.prepare())
    assert whole.body() == v2.Version2(custom.table, custom).body()
