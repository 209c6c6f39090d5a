"""Owners after writes and applies: what recorded sequences don't show at a glance."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.managedfields import Operation, apply, keep_times_if_unchanged, update
from fakeapiserver.apimachinery.managedfields.compare import to_fieldset
from fakeapiserver.apimachinery.managedfields.fieldset import (
    canonical,
    difference,
    in_order,
    intersection,
    leaves,
    path_text,
    paths,
    recursive_difference,
    union,
)
from fakeapiserver.apimachinery.managedfields.typed import DEDUCED, TypedSchema, builtin_schema, structural_schema

ROOT = Path(__file__).parents[3]
Object = dict[str, Any]
AT, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"


@cache
def thing() -> TypedSchema:
    definitions = json.loads((ROOT / "fakeapiserver/apis/versions/v1.36/schemas.json").read_bytes())
    return structural_schema(json.loads((Path(__file__).parent / "thing_schema.json").read_bytes()), definitions)


@cache
def config_map_schema() -> TypedSchema:
    definitions = json.loads((ROOT / "fakeapiserver/apis/versions/v1.36/schemas.json").read_bytes())
    return builtin_schema(definitions, "io.k8s.api.core.v1.ConfigMap")


def config_map(**data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "uid": "1"}, "data": data}


def a_thing(**spec: Any) -> Object:
    return {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x"}, "spec": spec}


@cache
def service_account_schema() -> TypedSchema:
    definitions = json.loads((ROOT / "fakeapiserver/apis/versions/v1.37/schemas.json").read_bytes())
    return builtin_schema(definitions, "io.k8s.api.core.v1.ServiceAccount")


def put(live: Object | None, new: Object, manager: str, now: str = AT, **more: Any) -> Object:
    return update(live, new, Operation(config_map_schema(), manager, "v1", now=now, **more))


def apply_thing(
    live: Object | None, applied: Object, manager: str = "me", now: str = AT, force: bool = False, **more: Any
) -> Object:
    return apply(live, applied, Operation(thing(), manager, "example.com/v1", now=now, **more), force=force)


def owners(obj: Object) -> dict[str, Any]:
    return {entry["manager"]: entry["fieldsV1"] for entry in obj["metadata"].get("managedFields", ())}


def test_a_created_object_is_its_creators() -> None:
    assert put(None, config_map(a="1"), "m")["metadata"]["managedFields"] == [
        {
            "manager": "m",
            "operation": "Update",
            "apiVersion": "v1",
            "time": AT,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {".": {}, "f:a": {}}},
        }
    ]


def test_a_write_that_changes_nothing_keeps_entries_and_times() -> None:
    live = put(None, config_map(a="1"), "m")
    assert put(live, config_map(a="1"), "other", LATER) == live


def test_a_manager_that_loses_every_field_is_gone() -> None:
    live = put(None, config_map(a="1"), "m")
    live = put(live, {key: value for key, value in live.items() if key != "data"}, "other", LATER)
    assert "managedFields" not in live["metadata"]


def test_an_object_whose_owners_were_reset_is_not_tracked_until_it_is_applied() -> None:
    live = put(None, config_map(a="1"), "m")
    reset = config_map(a="1")
    reset["metadata"]["managedFields"] = []
    live = put(live, reset, "m")
    assert "managedFields" not in live["metadata"]
    live = put(live, config_map(a="2"), "m")
    assert "managedFields" not in live["metadata"]
    live = apply(live, config_map(b="1"), Operation(config_map_schema(), "me", "v1", now=LATER))
    assert owners(live) == {"me": {"f:data": {"f:b": {}}}, "before-first-apply": {"f:data": {".": {}, "f:a": {}}}}


def test_more_than_ten_updaters_become_ancient_changes() -> None:
    live = put(None, config_map(a="0"), "m00", AT)
    for i in range(1, 13):
        data = live["data"] | {f"k{i}": "1"}
        live = put(live, config_map(**data), f"m{i:02}", f"2026-01-01T00:00:{i:02}Z")
    assert list(owners(live)) == ["ancient-changes", *(f"m{i:02}" for i in range(4, 13))]
    assert owners(live)["ancient-changes"] == {"f:data": {".": {}, "f:a": {}, "f:k1": {}, "f:k2": {}, "f:k3": {}}}


NAME = "failed to create typed patch object (/x; example.com/v1, Kind=Thing): "


@pytest.mark.parametrize(
    ("applied", "code", "message"),
    [
        (a_thing(zz=1), 500, NAME + ".spec.zz: field not declared in schema"),
        (
            a_thing(nested={"a": 1}),
            500,
            NAME + ".spec.nested.a: expected string, got &value.valueUnstructured{Value:1}",
        ),
        (
            a_thing(nested={"b": {"c": "x"}}),
            500,
            NAME + ".spec.nested.b.c: expected numeric (int or float), got string",
        ),
        (a_thing(nested="a"), 500, NAME + ".spec.nested: expected map, got &{a}"),
        (a_thing(ports={"a": 1}), 500, NAME + ".spec.ports: expected list, got &{map[a:1]}"),
        (a_thing(tags=["a", "a"]), 500, NAME + '.spec.tags: duplicate entries for key [="a"]'),
        (
            a_thing(ports=[{"port": 1}, {"port": 1, "protocol": "TCP"}]),
            500,
            NAME + '.spec.ports: duplicate entries for key [port=1,protocol="TCP"]',
        ),
        (a_thing() | {"metadata": {"name": "x", "managedFields": []}}, 400, "metadata.managedFields must be nil"),
        (a_thing() | {"apiVersion": "v2"}, 400, "invalid object type: /v2, Kind=Thing"),
    ],
)
def test_what_does_not_fit_is_refused_in_the_servers_words(applied: Object, code: int, message: str) -> None:
    with pytest.raises(StatusError) as refused:
        apply_thing(None, applied)
    assert (refused.value.code, refused.value.message) == (code, message)


def test_a_conflict_names_managers_and_fields() -> None:
    live = apply_thing(None, a_thing(labels={"a": "1"}, nested={"a": "1"}), "first")
    with pytest.raises(StatusError) as refused:
        apply_thing(live, a_thing(labels={"a": "2"}, nested={"a": "2"}), "second")
    assert refused.value.message == (
        'Apply failed with 2 conflicts: conflicts with "first":\n- .spec.labels.a\n- .spec.nested.a'
    )
    taken = apply_thing(live, a_thing(labels={"a": "2"}, nested={"a": "2"}), "second", force=True)
    assert list(owners(taken)) == ["second"]


def test_an_equal_value_is_shared_and_goes_with_its_last_owner() -> None:
    live = apply_thing(None, a_thing(labels={"a": "1", "b": "1"}), "first")
    live = apply_thing(live, a_thing(labels={"a": "1"}), "second")
    live = apply_thing(live, a_thing(ios=1), "first")
    assert live["spec"] == {"labels": {"a": "1"}, "ios": 1}
    assert apply_thing(live, a_thing(ios=1), "second")["spec"] == {"ios": 1}


@pytest.mark.parametrize(
    ("live", "applied", "merged"),
    [
        (["a", "b", "c"], ["c", "a"], ["b", "c", "a"]),
        (["a", "b"], ["x"], ["a", "b", "x"]),
        (["a", "b"], ["x", "b"], ["a", "x", "b"]),
        ([], ["b", "a"], ["b", "a"]),
    ],
)
def test_a_set_follows_the_applied_order(live: list[str], applied: list[str], merged: list[str]) -> None:
    first = apply_thing(None, a_thing(tags=live), "first")
    assert apply_thing(first, a_thing(tags=applied), "second")["spec"]["tags"] == merged


def test_an_entry_of_another_version_is_compared_in_that_version() -> None:
    live = apply_thing(None, a_thing(labels={"old": "1"}), "first")
    live["metadata"]["managedFields"][0] |= {
        "apiVersion": "example.com/v1beta1",
        "fieldsV1": {"f:spec": {"f:tags": {'v:"old"': {}}}},
    }

    def convert(obj: Object, version: str) -> Object:
        spec = obj.get("spec") or {}
        if version == "example.com/v1beta1":
            return obj | {"apiVersion": version, "spec": {"tags": sorted(spec.get("labels") or ())}}
        return obj | {"apiVersion": version, "spec": {"labels": dict.fromkeys(spec.get("tags") or (), "1")}}

    live = apply_thing(live, a_thing(labels={"new": "1"}), "second", convert=convert)
    assert owners(live)["first"] == {"f:spec": {"f:tags": {'v:"old"': {}}}}
    live = apply_thing(live, a_thing(), "first", convert=convert)
    assert live["spec"]["labels"] == {"new": "1"}

    def gone(obj: Object, version: str) -> Object:
        raise LookupError(version)

    live["metadata"]["managedFields"][0]["apiVersion"] = "example.com/v0"
    assert list(owners(apply_thing(live, a_thing(ios=1), "third", convert=gone))) == ["second", "third"]


def test_times_alone_are_no_change() -> None:
    live = put(None, config_map(a="1"), "m")
    again = put(None, config_map(a="1"), "m", LATER)
    assert keep_times_if_unchanged(live, again) is live
    assert keep_times_if_unchanged(live, put(None, config_map(a="2"), "m")) is not live


def test_without_a_schema_maps_are_granular_and_lists_are_not() -> None:
    assert to_fieldset({"a": {"b": [{"c": 1}], "d": {}}}, DEDUCED) == {"f:a": {".": {}, "f:b": {}, "f:d": {}}}


def test_paths_print_members_first_and_keys_by_value() -> None:
    fields = canonical({"f:p": {'k:{"b":"x","a":10}': {".": {}, "f:z": {}}, 'k:{"a":9}': {}}, "f:a": {}})
    assert [path_text(path) for path in paths(fields)] == [".a", ".p[a=9]", '.p[a=10,b="x"]', '.p[a=10,b="x"].z']
    assert [path_text(path) for path in leaves(fields)] == [".a", ".p[a=9]", '.p[a=10,b="x"].z']
    assert list(in_order(fields)["f:p"]) == ['k:{"a":9}', 'k:{"a":10,"b":"x"}']


def test_many_path_elements_are_in_order() -> None:
    numbers = [number * 7919 % 20_011 for number in range(20_011)]
    assert list(in_order({f"i:{number}": {} for number in numbers})) == [f"i:{number}" for number in range(20_011)]


trees = st.recursive(
    st.just({}),
    lambda below: st.dictionaries(st.sampled_from([".", "f:a", "f:b", 'v:"x"']), below, max_size=3),
    max_leaves=8,
)


@settings(max_examples=100)
@given(trees, trees)
def test_sets_behave_as_sets_of_paths(a: Object, b: Object) -> None:
    a, b = canonical(a), canonical(b)
    left, right = set(paths(a)), set(paths(b))
    assert set(paths(union(a, b))) == left | right
    assert set(paths(intersection(a, b))) == left & right
    assert set(paths(difference(a, b))) == left - right
    below = {path for path in left if any(path[:n] in right for n in range(1, len(path) + 1))}
    assert set(paths(recursive_difference(a, b))) == left - below


words = st.sampled_from(["a", "b", "c"])
ports = st.lists(
    st.fixed_dictionaries(
        {"port": st.integers(1, 3)}, optional={"protocol": st.sampled_from(["TCP", "UDP"]), "label": words}
    ),
    unique_by=lambda port: (port["port"], port.get("protocol", "TCP")),
    max_size=3,
)
specs = st.fixed_dictionaries(
    {},
    optional={
        "ports": ports,
        "tags": st.lists(words, unique=True),
        "args": st.lists(words),
        "labels": st.dictionaries(words, words, min_size=1),
        "nested": st.fixed_dictionaries({}, optional={"a": words, "b": st.just({"c": 1})}),
    },
)


@settings(max_examples=60)
@given(specs, specs)
def test_an_applier_owns_what_it_applied_and_applying_again_changes_nothing(theirs: Object, mine: Object) -> None:
    live = apply_thing(None, a_thing(**theirs), "them")
    applied = a_thing(**mine)
    result = apply_thing(live, applied, force=True)
    owned = owners(result).get("me", {})
    assert owned == difference(
        to_fieldset(applied, thing()), {"f:apiVersion": {}, "f:kind": {}, "f:metadata": {".": {}, "f:name": {}}}
    )
    assert set(paths(owned)) <= set(paths(to_fieldset(result, thing()))) | set(paths(to_fieldset(applied, thing())))
    assert apply_thing(result, applied, now=LATER) == result


@pytest.mark.parametrize("keeps_live", [True, False], ids=["1.37", "1.36"])
@pytest.mark.parametrize("secrets", [([{}], [{}]), ([{}], [{"name": "a"}]), ([{"name": "a"}], [{}])])
def test_a_service_account_with_a_secret_without_a_name_gets_no_new_owners(
    secrets: tuple[list[Object], list[Object]], keeps_live: bool
) -> None:
    before, after = secrets
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "x", "uid": "1"}}
    fields = {"fieldsType": "FieldsV1", "fieldsV1": {"f:imagePullSecrets": {}}}
    owners = [{"manager": "a", "operation": "Update", "apiVersion": "v1", "time": AT, **fields}]
    live = {**account, "metadata": {**account["metadata"], "managedFields": owners}, "secrets": before}
    new = {**account, "secrets": after, "imagePullSecrets": [{"name": "pull"}]}
    operation = Operation(service_account_schema(), "b", "v1", now=AT)
    stored = update(live, new, operation, keeps_live=keeps_live)
    assert stored["metadata"].get("managedFields") == (owners if keeps_live else None)
