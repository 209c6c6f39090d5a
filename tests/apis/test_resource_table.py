"""The living table of served resources."""

from dataclasses import replace

import pytest

from fakeapiserver.apimachinery.gvk import GroupVersionKind, GroupVersionResource
from fakeapiserver.apis import scheme
from fakeapiserver.apis.resource_table import ResourceTable
from fakeapiserver.apis.scheme import APIResource

GADGETS = APIResource(
    gvr=GroupVersionResource("example.com", "v1", "gadgets"),
    gvk=GroupVersionKind("example.com", "v1", "Gadget"),
    singular="gadget",
    namespaced=True,
    verbs=frozenset({"get", "list"}),
    definition="com.example.v1.Gadget",
    custom=True,
    definitions={"com.example.v1.Gadget": {"type": "object"}},
)


@pytest.fixture
def table() -> ResourceTable:
    return ResourceTable(scheme.load())


def test_lookup(table: ResourceTable) -> None:
    row = table.lookup("apps", "v1", "deployments")
    assert row is not None
    assert row.gvk.kind == "Deployment"
    assert table.for_kind(row.gvk) is row
    assert table.lookup("apps", "v1", "gadgets") is None


def test_insert_and_remove(table: ResourceTable) -> None:
    size = len(table)
    table.insert(GADGETS)
    assert table.generation == 1
    assert table.lookup("example.com", "v1", "gadgets") is GADGETS
    assert table.for_kind(GADGETS.gvk) is GADGETS
    assert len(table) == size + 1
    table.remove(GADGETS.gvr)
    assert table.generation == 2
    assert table.lookup("example.com", "v1", "gadgets") is None
    assert table.for_kind(GADGETS.gvk) is None
    assert len(list(table)) == size


def test_insert_replaces_a_row_and_forgets_its_kind(table: ResourceTable) -> None:
    gizmo = GroupVersionKind("example.com", "v1", "Gizmo")
    table.insert(GADGETS)
    table.insert(replace(GADGETS, gvk=gizmo))
    assert table.for_kind(GADGETS.gvk) is None
    assert table.for_kind(gizmo) is not None


def test_removing_what_is_not_served_is_no_error(table: ResourceTable) -> None:
    table.remove(GADGETS.gvr)


def test_tables_of_one_scheme_are_independent(table: ResourceTable) -> None:
    table.insert(GADGETS)
    assert ResourceTable(scheme.load()).lookup("example.com", "v1", "gadgets") is None


@pytest.mark.parametrize("name", ["example.com", "aaa.example.com"])
def test_custom_groups_come_last(table: ResourceTable, name: str) -> None:
    table.insert(replace(GADGETS, gvr=GroupVersionResource(name, "v1", "gadgets")))
    assert table.groups()[-1].name == name


def test_views_are_kept_until_a_change(table: ResourceTable) -> None:
    assert table.groups() is table.groups()
    before = table.groups()
    table.insert(GADGETS)
    assert table.groups() is not before
    view = table.version("example.com", "v1")
    assert view is not None
    assert view.resources == (GADGETS,)


def test_definitions_of_custom_and_built_in_rows(table: ResourceTable) -> None:
    assert table.definition(GADGETS) == {"type": "object"}
    pods = table.lookup("", "v1", "pods")
    assert pods is not None
    assert "properties" in (table.definition(pods) or {})


def test_a_change_leaves_the_views_of_other_groups_alone(table: ResourceTable) -> None:
    table.insert(GADGETS)
    apps, example = table.group("apps"), table.group("example.com")
    assert table.groups()[-1] is example
    table.insert(replace(GADGETS, gvr=GADGETS.gvr._replace(resource="gizmos")))
    assert table.group("apps") is apps
    changed = table.group("example.com")
    assert changed is not None
    assert [row.gvr.resource for row in changed.versions[0].resources] == ["gadgets", "gizmos"]
    table.remove(GADGETS.gvr, GADGETS.gvr._replace(resource="gizmos"))
    assert table.group("example.com") is None
    assert all(view.name != "example.com" for view in table.groups())
