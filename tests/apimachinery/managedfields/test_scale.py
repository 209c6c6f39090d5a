"""Owners of replicas, seen through the scale subresource."""

from typing import Any

import pytest

from fakeapiserver.apimachinery.managedfields.scale import to_parent, to_scale

Object = dict[str, Any]
PATHS = {"apps/v1": ("f:spec", "f:replicas"), "apps/v1beta1": None}
REPLICAS = {"f:spec": {"f:replicas": {}}}
BOTH = {"f:spec": {"f:paused": {}, "f:replicas": {}}}
REST = {"f:spec": {"f:paused": {}}}


def entry(manager: str, fields: Object, operation: str = "Update", version: str = "apps/v1", **more: str) -> Object:
    found = {"manager": manager, "operation": operation, "apiVersion": version, "fieldsType": "FieldsV1"}
    return {**found, "fieldsV1": fields, **more}


def scaled(manager: str, fields: Object = REPLICAS, operation: str = "Update", **more: str) -> Object:
    return entry(manager, fields, operation, "autoscaling/v1", **more)


@pytest.mark.parametrize(
    ("parent", "seen"),
    [
        ([], []),
        ([entry("a", REST)], []),
        ([entry("a", BOTH, time="2026-01-01T00:00:00Z")], [scaled("a", time="2026-01-01T00:00:00Z")]),
        ([entry("a", BOTH, "Apply")], [scaled("a", operation="Apply")]),
        ([entry("a", BOTH, version="apps/v1beta1")], []),
        ([entry("a", BOTH, version="gone/v1")], []),
    ],
    ids=("nobody", "of other fields", "an updater", "an applier", "a version without scale", "an unknown version"),
)
def test_the_scale_shows_owners_of_the_replicas(parent: list[Object], seen: list[Object]) -> None:
    assert to_scale(parent, PATHS) == seen


@pytest.mark.parametrize(
    ("parent", "after", "stored"),
    [
        ([entry("a", BOTH, "Apply")], [scaled("a", operation="Apply")], [entry("a", BOTH, "Apply")]),
        ([entry("a", BOTH, "Apply")], [scaled("b")], [entry("a", REST, "Apply"), entry("b", REPLICAS)]),
        ([entry("a", REPLICAS, "Apply")], [scaled("b")], [entry("b", REPLICAS)]),
        ([entry("a", REPLICAS, "Apply")], [], []),
        ([entry("a", REST)], [scaled("b", {"f:metadata": {}})], [entry("a", REST)]),
        ([entry("a", REPLICAS, "Apply")], [scaled("a", {"f:spec": {}}, "Apply")], [entry("a", REPLICAS, "Apply")]),
        ([entry("a", REST, version="gone/v1")], [], []),
        ([entry("a", BOTH, version="apps/v1beta1")], [], [entry("a", BOTH, version="apps/v1beta1")]),
    ],
    ids=(
        "kept",
        "taken by another",
        "taken as the last field",
        "given up",
        "of something else",
        "an owner of less keeps its entry",
        "an unknown version goes",
        "a version without scale stays",
    ),
)
def test_a_write_to_the_scale_moves_the_replicas(
    parent: list[Object], after: list[Object], stored: list[Object]
) -> None:
    assert to_parent(parent, after, PATHS, "apps/v1") == stored


def test_an_updaters_entry_is_split_for_the_scale_has_another_version() -> None:
    parent = [entry("a", BOTH, time="2026-01-01T00:00:00Z")]
    found = to_parent(parent, to_scale(parent, PATHS), PATHS, "apps/v1")
    assert found == [entry("a", REPLICAS), entry("a", REST, time="2026-01-01T00:00:00Z")]
