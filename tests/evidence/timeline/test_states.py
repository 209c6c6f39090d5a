"""The recorded states: at each revision they are what a list at that revision shows, whatever keeps the objects."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from fakeapiserver import Cluster
from fakeapiserver.cluster.processes.etcd_process import EtcdProcess
from fakeapiserver.evidence.timeline.records import Request, State
from fakeapiserver.server.options.config import EtcdOptions
from fakeapiserver.storage.interface import ListQuery
from tests.evidence.timeline.recorded import at, of_type, recorded, recorder, records, states
from tests.plain_client import Client

CONFIG_MAPS: Final = "/api/v1/namespaces/default/configmaps"
NAMES: Final = ("a", "b", "c")
Moments = dict[int, dict[tuple[str, str], int]]


def in_memory(folder: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    return {}


def in_a_file(folder: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    return {"data_dir": folder / "data"}


def in_etcd(folder: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    etcd: EtcdProcess = request.getfixturevalue("shared_etcd")
    return {"etcd": EtcdOptions(servers=(etcd.url,), prefix=f"/{folder.name}")}


@pytest.fixture(params=[in_memory, in_a_file, in_etcd])
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    options: Callable[[Path, pytest.FixtureRequest], dict[str, Any]] = request.param
    with recorded(controllers=("none",), **options(tmp_path, request)) as cluster:
        yield cluster


def write(cluster: Cluster, client: Client, dice: Random, value: int) -> None:
    """Creates, updates or deletes a config map, or writes what is there already."""
    name, body = dice.choice(NAMES), {"data": {"value": str(value)}}
    path = f"{CONFIG_MAPS}/{name}"
    if dice.random() < 0.3:
        client.status("DELETE", path)
    elif client.status("PATCH", path, body, "application/merge-patch+json") == 404:
        client.status("POST", CONFIG_MAPS, {"metadata": {"name": name}, **body})


def listed(cluster: Cluster) -> dict[tuple[str, str], int]:
    """The config maps in the storage now, and the revisions that wrote them."""
    api = cluster._server.api
    assert api is not None
    keys = {stored.key: stored.mod_revision for stored in api.storage.list_now("/registry/configmaps/").items}
    return {(key.split("/")[3], key.split("/")[4]): revision for key, revision in keys.items()}


@pytest.mark.parametrize("seed", range(3))
def test_each_moment_is_as_a_list_then(cluster: Cluster, seed: int) -> None:
    dice, client, moments = Random(seed), Client(cluster), Moments()
    for value in range(40):
        write(cluster, client, dice, value)
        moments[revision(cluster)] = listed(cluster)
    everything = records(cluster)
    assert moments == {moment: at(everything, "configmaps", moment) for moment in moments}
    numbers = [record["n"] for record in everything[1:]]
    assert numbers == [*range(1, len(everything))]


def revision(cluster: Cluster) -> int:
    api = cluster._server.api
    assert api is not None
    return api.storage.revision


def test_each_state_has_its_request_and_its_object(cluster: Cluster) -> None:
    client = Client(cluster)
    client.ask("POST", CONFIG_MAPS, {"metadata": {"name": "a"}, "data": {"k": "1"}})
    client.status("PATCH", f"{CONFIG_MAPS}/a", {"data": {"k": "2"}}, "application/merge-patch+json")
    client.ask("DELETE", f"{CONFIG_MAPS}/a")
    everything = records(cluster)
    written = of_type(everything, "state", r="configmaps", name="a")
    assert [state["op"] for state in written] == ["create", "update", "delete"]
    requests = [of_type(everything, "request", seq=state["by"])[0] for state in written]
    assert [request["verb"] for request in requests] == ["create", "patch", "delete"]
    assert [request["rev"] for request in requests] == [state["rev"] for state in written]
    shown = states(cluster, [state["of"] or state["rev"] for state in written])["states"]
    assert [state["object"]["data"]["k"] for state in shown.values()] == ["1", "2", "2"]
    assert [state["object"]["kind"] for state in shown.values()] == ["ConfigMap"] * 3
    assert {state["cells"][1] for state in shown.values()} == {1}
    details = [client.ask("GET", f"/fakeapiserver/timeline/requests/{state['by']}") for state in written]
    values = [[(detail[side] or {}).get("data") for side in ("before", "after")] for detail in details]
    assert values == [[None, {"k": "1"}], [{"k": "1"}, {"k": "2"}], [{"k": "2"}, None]]


def test_a_restore_changes_objects_at_once(cluster: Cluster) -> None:
    dice, client, moments = Random(7), Client(cluster), Moments()
    for value in range(10):
        write(cluster, client, dice, value)
    snapshot, before = cluster.snapshot(), listed(cluster)
    for value in range(10, 20):
        write(cluster, client, dice, value)
        moments[revision(cluster)] = listed(cluster)
    cluster.restore(snapshot)
    after = records(cluster)
    for value in range(20, 30):
        write(cluster, client, dice, value)
        moments[revision(cluster)] = listed(cluster)
    everything = records(cluster)
    assert moments == {moment: at(everything, "configmaps", moment) for moment in moments}
    newest = max(state["rev"] for state in of_type(after, "state"))
    objects = states(cluster, at(after, "configmaps", newest).values())["states"].values()
    expected = states(cluster, before.values())["states"].values()
    assert [*map(content, objects)] == [*map(content, expected)]
    revisions = [state["rev"] for state in of_type(everything, "state") if state["op"] != "base"]
    assert revisions == sorted({*revisions})


def content(state: Any) -> tuple[str, Any]:
    return state["object"]["metadata"]["name"], state["object"].get("data")


@pytest.mark.parametrize("cluster", [in_memory], indirect=True)
@pytest.mark.parametrize("most", [60, 300])
def test_what_is_forgotten_is_the_beginning(cluster: Cluster, most: int) -> None:
    recording = recorder(cluster).recording
    recording._most = most
    dice, client, moments = Random(1), Client(cluster), Moments()
    for value in range(150):
        write(cluster, client, dice, value)
        moments[revision(cluster)] = listed(cluster)
    everything = records(cluster)
    oldest = everything[0]["revision"]
    shown = {moment: objects for moment, objects in moments.items() if moment >= oldest}
    assert 3 < len(shown) < len(moments)
    assert shown == {moment: at(everything, "configmaps", moment) for moment in shown}
    assert of_type(everything, "gap")[-1]["before"] == oldest
    revisions = {state["of"] or state["rev"] for state in of_type(everything, "state")}
    assert {*map(int, states(cluster, revisions)["states"])} == revisions
    assert recording.last - recording.first < most

    async def owned() -> tuple[set[int], set[int]]:
        kept = recording.kept
        kept_states = {record.content for record in kept if isinstance(record, State)}
        return kept_states, {record.seq for record in kept if isinstance(record, Request)}

    sources = recorder(cluster)
    assert cluster._run(owned) == ({*sources.states._by_revision}, {*sources.requests._details})


@pytest.mark.parametrize("cluster", [in_memory], indirect=True)
def test_bytes_are_bounded(cluster: Cluster) -> None:
    recording, client = recorder(cluster).recording, Client(cluster)
    recording._most_bytes = most = recording.size + 200_000
    for number in range(60):
        client.ask("POST", CONFIG_MAPS, {"metadata": {"name": f"c{number}"}, "data": {"k": "x" * 10_000}})
    assert recording.size < most
    assert len(at(records(cluster), "configmaps", revision(cluster))) == len(listed(cluster))
    for _ in range(300):
        client.status("GET", f"{CONFIG_MAPS}/c1")
    recording.restart()
    assert recording.size == 0


@pytest.mark.parametrize("cluster", [in_memory], indirect=True)
def test_kinds_are_recorded_when_they_change(cluster: Cluster) -> None:
    (kinds,) = of_type(records(cluster), "kinds")
    by_name = {kind["r"]: kind for kind in kinds["kinds"]}
    assert by_name["deployments.apps"] == {
        "r": "deployments.apps", "group": "apps", "version": "v1", "resource": "deployments", "kind": "Deployment",
        "namespaced": True, "short": ["deploy"],
    }  # fmt: skip
    assert by_name["nodes"]["namespaced"] is False
    cluster.apply(json.loads(DEFINITION))
    cluster.apply({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}})
    everything = records(cluster)
    added = {kind["r"] for kind in of_type(everything, "kinds")[-1]["kinds"]} - {*by_name}
    assert added == {"widgets.example.com"}
    (widget,) = of_type(everything, "state", r="widgets.example.com")
    answer = states(cluster, [widget["rev"]])
    assert answer["states"][str(widget["rev"])]["cells"][0] == "w"
    assert [column["name"] for column in answer["columns"]["widgets.example.com"]] == ["Name", "Age"]


def test_a_loaded_state_has_its_history(tmp_path: Path) -> None:
    with Cluster(controllers=(), stopped_at=1_800_000_000) as cluster:
        client, dice, moments = Client(cluster), Random(5), Moments()
        for value in range(20):
            cluster.clock.advance("1m")
            write(cluster, client, dice, value)
            moments[revision(cluster)] = listed(cluster)
        cluster.save(tmp_path / "state.json")
    with Cluster.load(tmp_path / "state.json", ui=True, controllers=()) as cluster:
        everything = records(cluster)
        assert moments == {moment: at(everything, "configmaps", moment) for moment in moments}
        times = [state["time"] for state in of_type(everything, "state", r="configmaps", ns="default")]
        assert times[0] >= 1_800_000_060
        shown = states(cluster, {state["rev"] for state in of_type(everything, "state", r="configmaps")})["states"]
        assert len(shown) == len(of_type(everything, "state", r="configmaps"))


def test_a_list_at_a_revision_agrees() -> None:
    """The helper `at` agrees with the storage's own view of the past."""
    with recorded(controllers=("none",)) as cluster:
        client, dice = Client(cluster), Random(3)
        for value in range(30):
            write(cluster, client, dice, value)
        everything, storage = records(cluster), recorder(cluster).states._storage
        for moment in range(everything[0]["revision"], revision(cluster) + 1):

            async def then(moment: int = moment) -> list[int]:
                listed = await storage.list("/registry/configmaps/", ListQuery(revision=moment))
                return [stored.mod_revision for stored in listed.items]

            assert sorted(cluster._run(then)) == sorted(at(everything, "configmaps", moment).values())


DEFINITION: Final = """{
  "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"},
  "spec": {"group": "example.com", "scope": "Cluster", "names": {"plural": "widgets", "kind": "Widget"},
    "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}
}"""
