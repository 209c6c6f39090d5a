"""`cluster.save` and `Cluster.load`: a state in a file."""

import gzip
import json
import ssl
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fakeapiserver import Cluster
from tests.plain_client import Client

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def objects(cluster: Cluster) -> dict[str, Any]:
    """Returns what is stored, without resources of which there are no objects."""
    return {name: stored for name, stored in cluster.snapshot().buckets.items() if stored}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(controllers=()) as cluster:
        cluster.apply([DEFINITION, {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}])
        cluster.apply([config_map("changed", k="1"), config_map("deleted")])
        cluster.apply(config_map("changed", k="2"))
        cluster.delete("cm/deleted")
        yield cluster


@pytest.mark.parametrize("name", ["state.json", "state.json.gz"])
def test_a_loaded_cluster_has_the_same_objects_and_history(cluster: Cluster, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    cluster.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes().startswith(b"\x1f\x8b") == name.endswith(".gz")
    loaded = Cluster.load(path, controllers=())
    with loaded as other:
        assert objects(other) == objects(cluster)
        assert other.get("widgets.example.com", "w") == cluster.get("widgets.example.com", "w")
        ours = other._core._api.storage.changes_now(other._core._api.storage.compacted)
        assert [*ours] == [*cluster._core._api.storage.changes_now(cluster._core._api.storage.compacted)]
        other.apply(config_map("new"))
    with loaded as again:  # starts with the file's state as often as wanted
        assert objects(again) == objects(cluster)


def test_a_compacted_history_is_saved_from_where_it_begins(tmp_path: Path) -> None:
    with Cluster(controllers=()) as cluster:
        cluster.apply([config_map("a", k="1"), config_map("b")])
        storage = cluster._core._api.storage
        cluster._run(lambda: storage.compact(storage.revision - 1))
        cluster.apply(config_map("a", k="2"))
        cluster.save(tmp_path / "state.json")
        with Cluster.load(tmp_path / "state.json", controllers=()) as other:
            assert objects(other) == objects(cluster)
            assert other._core._api.storage.compacted == storage.compacted
            path = f"{CONFIG_MAPS}?resourceVersion={storage.compacted}&resourceVersionMatch=Exact"
            assert Client(other).ask("GET", path) == Client(cluster).ask("GET", path)


def test_keys_are_saved_only_when_asked_for(cluster: Cluster, tmp_path: Path) -> None:
    cluster.save(tmp_path / "without")
    cluster.save(tmp_path / "with", keys=True)
    assert b"PRIVATE KEY" not in (tmp_path / "without").read_bytes()
    with Cluster.load(tmp_path / "without", controllers=()) as other:
        assert other.ca != cluster.ca
    with Cluster.load(tmp_path / "with", controllers=()) as other:
        assert (other.ca, other.token) == (cluster.ca, cluster.token)
        ssl.create_default_context(cadata=cluster.ca.decode())
        assert Client(other).status("GET", CONFIG_MAPS) == 200
        assert other._core._api.access.issuer.keys.jwks() == cluster._core._api.access.issuer.keys.jwks()


def test_the_time_does_not_go_back(tmp_path: Path) -> None:
    with Cluster(controllers=()) as cluster:
        cluster.clock.advance("100h")
        cluster.save(tmp_path / "state.json")
        saved = cluster.clock.now()
    with Cluster.load(tmp_path / "state.json", controllers=()) as other:
        assert 0 <= other.clock.now() - saved + 1e-3 < 60


def with_header(**changes: object) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        first, _, rest = data.partition(b"\n")
        return json.dumps(json.loads(first) | changes).encode() + b"\n" + rest

    return change


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data[:-100], "is truncated or was changed: its checksum is wrong"),
        (lambda data: data.replace(b'"k":"2"', b'"k":"3"'), "is truncated or was changed"),
        (lambda data: gzip.compress(data)[:-20], "is truncated or damaged: it can't be decompressed"),
        (with_header(version=3), "has the format version 3, but this fakeapiserver reads up to version 2: use a newer"),
        (with_header(format="other"), "is not a saved state"),
        (with_header(revision="x"), "the first line of .* is invalid"),
        (with_header(revision=1), "holds no valid state"),
        (with_header(objects=10**6), "holds no valid state: it has"),
        (lambda data: b"", "holds no Kubernetes objects"),
        (lambda data: b"\xff\xfe\n", "is no saved state, no YAML or JSON"),
    ],
)
def test_a_damaged_file_is_refused(
    cluster: Cluster, tmp_path: Path, damage: Callable[[bytes], bytes], message: str
) -> None:
    path = tmp_path / "state.json"
    cluster.save(path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=message):
        Cluster.load(path)


def test_places_that_cannot_be_saved_to_or_loaded_from(cluster: Cluster, tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="is a folder: name a file"):
        cluster.save(tmp_path)
    with pytest.raises(FileNotFoundError, match="create it first"):
        cluster.save(tmp_path / "missing" / "state.json")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        Cluster.load(tmp_path / "state.json")


def test_an_older_kubernetes_version_is_kept(tmp_path: Path) -> None:
    with Cluster(controllers=(), kubernetes_version="v1.34") as cluster:
        cluster.save(tmp_path / "state.json")
    with Cluster.load(tmp_path / "state.json", controllers=()) as other:
        assert Client(other).ask("GET", "/version")["minor"] == "34"
