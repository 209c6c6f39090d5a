"""Discovery documents are those a real kube-apiserver 1.36.3 answers: its ETags, and digests of its documents."""

import hashlib
import json
from typing import Any

import pytest

from fakeapiserver.apimachinery.gvk import GroupVersion, GroupVersionResource
from fakeapiserver.apis import scheme
from fakeapiserver.apis.custom_resources import resources_of
from fakeapiserver.apis.resource_table import ResourceTable
from fakeapiserver.apis.scheme import Priority
from fakeapiserver.endpoints import discovery

ETAG_API = (
    "4D7E1BED90B364BC86049DD9E636494980AEF65B7F8CFAA267616FA062B514A8"
    "A3CC2C2851CC9337B8D28B4C80960E2353DE5E0B152E87CC223E02EA3C5C37AC"
)
ETAG_APIS = (
    "A74552DF419C4697E3A22F67B8FE55FD8F2CC33F6134FF206B16341598294CDE"
    "9896C7F67B2819217E6BB70E74F97FCC864DDFCDB02FDA565699CC7D6E3CC377"
)
# /apis once the definitions below exist
ETAG_CUSTOM = (
    "8F9F64C73C7F81518729ADC976872B863B0C7B3AD531332CDB019AB0695BF1FA"
    "C3F6B756BE1B49A732DA39B2E25FEA909D0B10DFFCFCD773B3F9ACA4632961B3"
)


def definition(group: str, scope: str, names: dict[str, Any], versions: list[dict[str, Any]]) -> dict[str, Any]:
    full = [{"served": True, "storage": False, **version} for version in versions]
    return {"spec": {"group": group, "scope": scope, "names": names, "versions": full}}


WIDGETS = definition(
    "zeta.example.com",
    "Namespaced",
    {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wg"], "categories": ["all"]},
    [
        {"name": "v1alpha1"},
        {"name": "v1", "storage": True, "subresources": {"status": {}, "scale": {}}},
        {"name": "v2beta1", "subresources": {"status": {}}},
        {"name": "v9", "served": False},
    ],
)
GEARS = definition(
    "alpha.example.com", "Cluster", {"plural": "gears", "kind": "Gear"}, [{"name": "v1", "storage": True}]
)
BOLTS = definition(
    "alpha.example.com", "Cluster", {"plural": "bolts", "kind": "Bolt"}, [{"name": "v2", "storage": True}]
)


@pytest.fixture
def table() -> ResourceTable:
    return ResourceTable(scheme.load("v1.36"))


@pytest.fixture
def custom_table(table: ResourceTable) -> ResourceTable:
    for crd in (WIDGETS, GEARS, BOLTS):
        table.insert(*resources_of(crd))
    return table


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def legacy_documents(table: ResourceTable) -> dict[str, Any]:
    documents: dict[str, Any] = {"/api/v1": discovery.api_resource_list(table, "", "v1")}
    for group in (view for view in table.groups() if view.name):
        documents[f"/apis/{group.name}"] = discovery.api_group(table, group.name)
        for version in group.versions:
            documents[f"/apis/{version.gv}"] = discovery.api_resource_list(table, *version.gv)
    return documents


@pytest.mark.parametrize(("legacy", "etag"), [(True, ETAG_API), (False, ETAG_APIS)])
def test_aggregated_documents_have_upstreams_etags(table: ResourceTable, legacy: bool, etag: str) -> None:
    body, ours = discovery.AggregatedDiscovery(table).document(legacy)
    document = json.loads(body)
    assert ours == f'"{etag}"'
    assert (document["kind"], document["apiVersion"]) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io/v2")


def test_aggregated_document_with_custom_resources(custom_table: ResourceTable) -> None:
    assert discovery.AggregatedDiscovery(custom_table).document(legacy=False)[1] == f'"{ETAG_CUSTOM}"'


def test_the_aggregated_document_follows_the_table(table: ResourceTable) -> None:
    """Although the JSON of each version is kept."""
    kept = discovery.AggregatedDiscovery(table)
    before = kept.document(legacy=False)
    for crd in (WIDGETS, GEARS, BOLTS):
        table.insert(*resources_of(crd))
    assert kept.document(legacy=False)[1] == f'"{ETAG_CUSTOM}"'
    for crd in (WIDGETS, GEARS, BOLTS):
        for resource in resources_of(crd):
            table.remove(resource.gvr)
    assert kept.document(legacy=False) == before


def test_older_documents(table: ResourceTable) -> None:
    assert digest(legacy_documents(table)) == "ff3c5df9d04393b1"
    assert digest(discovery.api_group_list(table)) == "e920f1a1900bf9d6"


def test_older_documents_with_custom_resources(custom_table: ResourceTable) -> None:
    assert digest(legacy_documents(custom_table)) == "ba1a9d80bf8a6cdb"
    assert digest(discovery.api_group_list(custom_table)) == "b33227177ef1bf82"


def test_root_lists_what_is_served(table: ResourceTable) -> None:
    assert digest(discovery.root_paths(table)) == "4fb205fc7692afa8"
    for crd in (WIDGETS, GEARS, BOLTS):
        table.insert(*resources_of(crd))
    assert digest(discovery.root_paths(table)) == "dd538cebdd4d725b"


def test_version(table: ResourceTable) -> None:
    facts = discovery.version_info(table)
    wanted = {"major": "1", "minor": "36", "gitVersion": "v1.36.3", "platform": "linux/amd64"}
    assert {key: facts[key] for key in wanted} == wanted


def test_api_versions_contain_the_servers_address() -> None:
    addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": "10.0.0.9:6443"}]
    expected = {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}
    assert discovery.api_versions("10.0.0.9:6443") == expected


@pytest.mark.parametrize(("group", "version"), [("", "v2"), ("apps", "v2"), ("nope", "v1")])
def test_there_are_no_unknown_documents(table: ResourceTable, group: str, version: str) -> None:
    assert discovery.api_resource_list(table, group, version) is None


def test_unknown_group_and_the_legacy_one_have_no_group_document(table: ResourceTable) -> None:
    assert discovery.api_group(table, "nope") is None
    assert discovery.api_group(table, "") is None


def test_group_leaves_with_its_last_resource(custom_table: ResourceTable) -> None:
    custom_table.remove(GroupVersionResource("alpha.example.com", "v1", "gears"))
    versions = discovery.api_group(custom_table, "alpha.example.com")
    assert versions is not None
    assert [row["version"] for row in versions["versions"]] == ["v2"]
    custom_table.remove(GroupVersionResource("alpha.example.com", "v2", "bolts"))
    assert discovery.api_group(custom_table, "alpha.example.com") is None


def test_priorities_order_groups_and_versions(custom_table: ResourceTable) -> None:
    custom_table.set_priority(GroupVersion("zeta.example.com", "v1alpha1"), Priority(2000, 200))
    names = [row["name"] for row in discovery.api_group_list(custom_table)["groups"]]
    assert names[-2:] == ["zeta.example.com", "alpha.example.com"]
    group = discovery.api_group(custom_table, "zeta.example.com")
    assert group is not None
    assert group["preferredVersion"]["version"] == "v1alpha1"


def test_cache_builds_once_a_generation(table: ResourceTable) -> None:
    cache = discovery.DocumentCache(table)
    built: list[int] = []

    def build() -> int:
        built.append(table.generation)
        return len(built)

    assert [cache.get("a", build), cache.get("a", build)] == [1, 1]
    table.insert(*resources_of(GEARS))
    assert cache.get("a", build) == 2
    assert built == [0, 1]


def test_registered_groups_are_ordered_by_their_api_services_names(table: ResourceTable) -> None:
    """A registered version is listed by the aggregator before anything in it is served."""
    low = Priority(1000, 100)
    table.register({GroupVersion("b.example.com", "v1"): low, GroupVersion("a.example.com", "v2"): low})
    groups = discovery.api_group_list(table)["groups"]
    assert [group["name"] for group in groups[-2:]] == ["b.example.com", "a.example.com"]
    assert discovery.api_group(table, "a.example.com") is not None
    assert discovery.api_resource_list(table, "a.example.com", "v2") is None


def test_the_hash_of_a_stored_version_that_is_not_served_is_left_out() -> None:
    unserved = definition(
        "x.example.com",
        "Cluster",
        {"plural": "gears", "kind": "Gear"},
        [{"name": "v1", "storage": True, "served": False}, {"name": "v2"}],
    )
    assert [row.storage_version_hash for row in resources_of(unserved)] == [""]
