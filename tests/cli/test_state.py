"""`fakeapiserver state`, and the paths below /fakeapiserver/state that it uses."""

import json
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from fakeapiserver import Cluster
from fakeapiserver.cli.control import remote
from fakeapiserver.cli.control.state import main

Run = Callable[..., int]


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(controllers=()) as cluster:
        yield cluster


@pytest.fixture
def client(cluster: Cluster) -> Iterator[httpx.Client]:
    trusted = ssl.create_default_context(cadata=cluster.ca.decode())
    headers = {"Authorization": f"Bearer {cluster.token}"}
    with httpx.Client(base_url=f"{cluster.url}/fakeapiserver", verify=trusted, headers=headers) as client:
        yield client


@pytest.fixture
def run(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command against the cluster, as if it were in the background."""
    facts = {"kubeconfig": cluster.kubeconfig}
    monkeypatch.setattr(remote.background.Server, "facts", lambda server: facts if server.name == "default" else None)
    return lambda *words: main([str(word) for word in words])


def test_a_state_is_saved_compared_and_loaded(
    cluster: Cluster, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "state.json.gz"
    cluster.apply(config_map("a", k="1"))
    before = cluster.snapshot()
    assert run("save", saved) == 0
    cluster.apply(config_map("a", k="2"))
    assert run("save", tmp_path / "later.json") == 0
    capsys.readouterr()
    for files in ([saved], [saved, tmp_path / "later.json"]):
        assert run("diff", *files) == 0
        assert capsys.readouterr().out == "changed:\n  configmaps default/a:\n    data.k: 1 -> 2\n"
    assert run("load", saved) == 0
    assert not cluster.diff(before, noise=True)
    assert run("show") == 0
    assert "open watches" in capsys.readouterr().out


def test_objects_from_elsewhere_are_added(
    cluster: Cluster, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.apply(config_map("kept"))
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "maps.json").write_text(json.dumps([config_map("one"), {"apiVersion": "x/v1", "kind": "Y"}]))
    assert run("load", tmp_path) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == f"1 object of {tmp_path} loaded: 1 configmaps"
    assert printed[1:] == ["not taken: Y (shop/maps.json#2): it has no metadata"]
    assert cluster.get("cm/one")
    assert cluster.get("cm/kept")


def test_objects_are_exported(cluster: Cluster, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.apply(config_map("exported"))
    assert run("export", tmp_path) == 0
    assert "kubectl apply -R -f" in capsys.readouterr().out
    assert (tmp_path / "default/configmap-exported.yaml").exists()


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["sav"], 2, "there is no state sav: the actions are show, save, load, diff, export"),
        (["save"], 2, "state save needs the name of a file"),
        (["diff", "a", "b", "c"], 2, "state diff needs the names of one or two saved files"),
        (["load", "missing.json"], 1, "there is no file or folder missing.json"),
        (["show", "--server=other"], 1, "no server 'other' runs"),
    ],
)
def test_mistakes(run: Run, capsys: pytest.CaptureFixture[str], words: list[str], status: int, message: str) -> None:
    assert run(*words) == status
    assert message in capsys.readouterr().err


def test_the_diff_of_snapshots_over_http(cluster: Cluster, client: httpx.Client) -> None:
    first = client.post("/snapshots").json()["id"]
    cluster.apply(config_map("later"))
    second = client.post("/snapshots").json()["id"]
    answer = client.get("/state/diff", params={"from": first})
    assert (answer.headers["content-type"], answer.text) == (
        "text/yaml; charset=utf-8",
        "added:\n- configmaps default/later\n",
    )
    assert client.get("/state/diff", params={"from": first, "to": second}).text == answer.text
    assert client.get("/state/diff", params={"from": 99}).status_code == 404


def test_a_damaged_file_is_refused_over_http(cluster: Cluster, client: httpx.Client) -> None:
    before = cluster.snapshot()
    saved = client.get("/state/save").content
    answer = client.post("/state/load", content=saved[:-5])
    assert answer.status_code == 422
    assert answer.json()["message"] == (
        "the body is truncated or was changed: its checksum is wrong; save the state again"
    )
    assert not cluster.diff(before, noise=True)


def test_a_large_state_is_loaded_over_http(cluster: Cluster, client: httpx.Client) -> None:
    cluster.apply([config_map(f"large-{number}", k="x" * 900_000) for number in range(5)])
    saved = client.get("/state/save").content
    assert len(saved) > 4_000_000
    cluster.delete("cm/large-0")
    assert client.post("/state/load", content=saved).status_code == 200
    assert len(cluster.get("cm/large-0")["data"]["k"]) == 900_000


def test_a_state_of_a_later_revision_is_loaded_at_a_later_revision(client: httpx.Client) -> None:
    with Cluster(controllers=()) as other:
        saved = client.get("/state/save").content
        trusted = ssl.create_default_context(cadata=other.ca.decode())
        headers = {"Authorization": f"Bearer {other.token}"}
        answer = httpx.post(f"{other.url}/fakeapiserver/state/load", content=saved, headers=headers, verify=trusted)
        assert answer.status_code == 200
        [changed] = other.apply(config_map("a", k="new"))
    revision = client.get("/state").json()["revision"]
    assert int(changed["metadata"]["resourceVersion"]) > revision
