"""`diff` and `cluster.diff`: what has changed between two states."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from fakeapiserver import Cluster, diff
from fakeapiserver.apimachinery.depth import flattened
from fakeapiserver.state.diff import ABSENT, Field, _fields, fields

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {"containers": [{"name": "c", "image": "nginx:1"}]},
}


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(controllers=()) as cluster:
        yield cluster


def test_added_removed_and_changed_objects_are_shown_as_yaml(cluster: Cluster, tmp_path: Path) -> None:
    cluster.apply([config_map("gone"), config_map("edited", k="1", old="x"), POD])
    before = cluster.snapshot()
    cluster.save(tmp_path / "before.json")
    cluster.delete("cm/gone")
    pod = {**POD, "spec": {"containers": [{"name": "c", "image": "nginx:2"}]}}
    cluster.apply([config_map("new"), config_map("edited", k="2: #"), pod])
    found = cluster.diff(before)
    text = """\
added:
- configmaps default/new
removed:
- configmaps default/gone
changed:
  configmaps default/edited:
    data.k: "1 -> 2: #"
    data.old: x -> (absent)
  pods default/web:
    spec.containers[name=c].image: nginx:1 -> nginx:2
"""
    assert str(found) + "\n" == text
    assert yaml.safe_load(str(found))["changed"]["pods default/web"]
    assert str(diff(tmp_path / "before.json", cluster)) == str(found)
    assert [entry.name for entry in found.added] == ["new"]
    assert found.changed[1].fields == (Field("spec.containers[name=c].image", "nginx:1", "nginx:2"),)


def test_what_the_server_sets_is_noise(cluster: Cluster) -> None:
    cluster.apply(config_map("a"))
    before = cluster.snapshot()
    cluster.delete("cm/a")
    cluster.apply(config_map("a"))
    assert not cluster.diff(before)
    assert str(cluster.diff(before)) == "{}"
    assert "metadata.uid" in [field.path for field in cluster.diff(before, noise=True).changed[0].fields]


def test_values_of_secrets_are_not_shown(cluster: Cluster) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    cluster.apply({**secret, "stringData": {"p": "hunter2"}})
    before = cluster.snapshot()
    cluster.apply({**secret, "stringData": {"p": "hunter3"}})
    found = cluster.diff(before)
    assert str(found) == "changed:\n  secrets default/s:\n    data.p: (secret) -> (another secret)"
    assert "aHVudGVy" not in repr(found)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"a": [1, 2]}, {"a": [1, 3]}, ["a[1]: 2 -> 3"]),
        ({"a": [1]}, {"a": [1, 3]}, ["a: [1] -> [1, 3]"]),
        ({"labels": {"x/y": "1"}}, {"labels": {}}, ['labels["x/y"]: 1 -> (absent)']),
        ({"data": {"uid": "1"}}, {"data": {"uid": "2"}}, ["data.uid: 1 -> 2"]),
        ({"at": "2026-01-01T00:00:00Z"}, {"at": "2026-01-02T00:00:00Z"}, []),
        ({}, {"deletionTimestamp": "2026-01-02T00:00:00Z"}, ["deletionTimestamp: (absent) -> 2026-01-02T00:00:00Z"]),
        (
            {"a": [{"type": "R", "s": 1}]},
            {"a": [{"type": "R", "s": 2}, {"type": "S"}]},
            ["a[type=R].s: 1 -> 2", 'a[type=S]: (absent) -> {"type": "S"}'],
        ),
    ],
)
def test_fields(old: Any, new: Any, expected: list[str]) -> None:
    assert [str(field) for field in flattened(_fields("", old, new, False))] == expected
    assert repr(ABSENT) == "(absent)"


def nested(leaf: int) -> dict[str, Any]:
    value: Any = leaf
    for _ in range(9980):
        value = {"a": value}
    return {"spec": value}


def test_objects_of_any_depth_are_compared() -> None:
    path = "spec" + ".a" * 9980
    assert [(field.path, field.old, field.new) for field in fields("deeps", nested(1), nested(2))] == [(path, 1, 2)]
    assert fields("deeps", nested(1), nested(1)) == []
    assert str(*fields("deeps", {"spec": 1}, nested(1))).count('"a"') == 9980
