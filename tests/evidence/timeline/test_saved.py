"""A saved state of a server with its page has what was recorded; the server that is started with it goes on."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from fakeapiserver import Cluster
from fakeapiserver.state import file
from tests.evidence.timeline.recorded import TIMELINE, at, of_type, records, states
from tests.plain_client import Client

CONFIG_MAPS: Final = "/api/v1/namespaces/default/configmaps"
MARKER: Final = "hunter2-is-the-password"
CONFIG_MAP: Final = {"metadata": {"name": "a"}, "data": {"k": "v"}}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The file of a state, the records that were there, and the answer about the request that created an object."""
    path = tmp_path_factory.mktemp("saved") / "state.json"
    with Cluster(ui=True, controllers=("deployment", "replicaset")) as cluster:
        client = Client(cluster)
        client.ask("POST", CONFIG_MAPS, CONFIG_MAP)
        client.ask(
            "POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}, "stringData": {"p": MARKER}}
        )
        client.status("POST", CONFIG_MAPS, {"metadata": {"name": "in valid"}})
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        spec = {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template}
        cluster.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})
        cluster.settle()
        client.ask("DELETE", f"{CONFIG_MAPS}/a")
        cluster.faults.add(verb="get", resource="pods", status=500)
        everything = records(cluster)
        cluster.save(path)
        (created,) = of_type(everything, "request", verb="create", r="configmaps", status=201)
        yield path, everything, client.ask("GET", f"{TIMELINE}/requests/{created['seq']}")


@pytest.fixture(scope="module")
def loaded(saved: Any) -> Iterator[Cluster]:
    with Cluster.load(saved[0], ui=True, controllers=()) as cluster:
        yield cluster


@pytest.mark.parametrize("kind", ["request", "reconcile", "delivery", "state"])
def test_the_records_are_there_again(saved: Any, loaded: Cluster, kind: str) -> None:
    def without_numbers(everything: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**record, "n": 0} for record in of_type(everything, kind)]

    before, after = without_numbers(saved[1]), without_numbers(records(loaded))
    assert before
    assert after[: len(before)] == before


def test_states_are_found_at_each_moment(saved: Any, loaded: Cluster) -> None:
    everything = records(loaded)
    revisions = {record["of"] or int(record["rev"]) for record in of_type(everything, "state")}
    assert {int(revision) for revision in states(loaded, revisions)["states"]} == revisions
    moments = [record["rev"] for record in of_type(saved[1], "state", r="configmaps")]
    for moment in moments:
        assert at(everything, "configmaps", moment) == at(saved[1], "configmaps", moment)


def test_a_request_has_its_bodies(saved: Any, loaded: Cluster) -> None:
    _, _, shown = saved
    (created,) = of_type(records(loaded), "request", verb="create", r="configmaps", status=201)
    assert shown["body"] == CONFIG_MAP
    assert Client(loaded).ask("GET", f"{TIMELINE}/requests/{created['seq']}") == shown


def test_watches_have_ended_and_faults_are_removed(saved: Any, loaded: Cluster) -> None:
    watches = {record["seq"] for record in of_type(saved[1], "request", verb="watch")}
    ended = {record["seq"] for record in of_type(records(loaded), "watch", ended="saved")}
    assert ended == watches
    assert [record["change"] for record in of_type(records(loaded), "fault")] == ["add", "remove"]


def test_it_goes_on_with_other_numbers(saved: Any, loaded: Cluster) -> None:
    Client(loaded).ask("POST", CONFIG_MAPS, {"metadata": {"name": "later"}})
    everything = records(loaded)
    (created,) = [one for one in of_type(everything, "request", verb="create") if one["name"] == "later"]
    assert created["seq"] > max(record["seq"] for record in of_type(saved[1], "request"))
    assert created["at"] >= max(record["at"] for record in of_type(saved[1], "request"))
    (state,) = of_type(everything, "state", name="later")
    assert state["by"] == created["seq"]
    assert [record["n"] for record in everything[1:]] == [*range(1, len(everything))]


def test_bodies_of_secrets_are_not_in_the_recording(saved: Any) -> None:
    recording = file.read(saved[0]).recording
    assert recording.count(b"\n") > 10
    assert MARKER.encode() not in recording


def test_a_fork_has_the_requests_of_the_first_server() -> None:
    with Cluster(ui=True, controllers=()) as cluster:
        Client(cluster).ask("POST", CONFIG_MAPS, CONFIG_MAP)
        with cluster.fork() as other:
            assert of_type(records(other), "request", verb="create", name="a")


def test_a_server_without_a_page_saves_and_loads_no_records(saved: Any, tmp_path: Path) -> None:
    with Cluster.load(saved[0], controllers=()) as cluster:
        cluster.save(tmp_path / "plain.json")
    assert file.read(tmp_path / "plain.json").recording == b""
    assert b'"version":1' in (tmp_path / "plain.json").read_bytes().partition(b"\n")[0]


@pytest.mark.parametrize("line", [b'{"t":"nonsense"}\n', b"{\n", b'{"t":"gap","before":1}\n'])
def test_another_text_in_its_place_is_refused(saved: Any, tmp_path: Path, line: bytes) -> None:
    state = file.read(saved[0])
    path = tmp_path / "state.json"
    file.write(path, file.encode(file.Saved(state.kubernetes_version, state.storage, state.seconds, recording=line)))
    with (
        pytest.raises(ValueError, match="the recording in the saved state"),
        Cluster.load(path, ui=True, controllers=()),
    ):
        pass
