"""--event-ttl: Events go when they are an hour old, by the server's clock."""

import pytest

from fakeapiserver import Cluster
from fakeapiserver.cli.flags import parse
from tests.plain_client import Client

EVENTS = "/api/v1/namespaces/default/events"


def event(name: str) -> dict[str, object]:
    involved = {"kind": "Namespace", "name": "default", "namespace": "default"}
    return {"metadata": {"name": name}, "involvedObject": involved, "reason": "Tried"}


def names(client: Client) -> list[str]:
    return [item["metadata"]["name"] for item in client.ask("GET", EVENTS)["items"]]


def test_an_event_expires_an_hour_after_it_was_last_written() -> None:
    with Cluster(controllers=(), stopped_at="2026-01-01T00:00:00Z") as cluster:
        client = Client(cluster)
        for name in ("old", "renewed"):
            client.ask("POST", EVENTS, event(name))
        cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "lasting"}})
        cluster.clock.advance("50m")
        renewed = client.ask("GET", f"{EVENTS}/renewed")
        client.ask("PUT", f"{EVENTS}/renewed", {**renewed, "count": 2})
        cluster.clock.advance("9m")
        assert names(client) == ["old", "renewed"]
        cluster.clock.advance("3m")
        assert names(client) == ["renewed"]
        cluster.clock.advance("50m")
        assert names(client) == []
        assert cluster.get("cm/lasting")["metadata"]["name"] == "lasting"


@pytest.mark.parametrize(("ttl", "left"), [("10s", []), ("2h", ["a"]), ("0", ["a"])])
def test_the_flag_says_how_long(ttl: str, left: list[str]) -> None:
    with Cluster.from_config(parse([f"--event-ttl={ttl}", "--controllers=none"]).config) as cluster:
        cluster.clock.stop()
        client = Client(cluster)
        client.ask("POST", EVENTS, event("a"))
        cluster.clock.advance("65m")
        assert names(client) == left


def test_events_of_a_restored_state_begin_their_hour_again() -> None:
    with Cluster(controllers=(), stopped_at="2026-01-01T00:00:00Z") as cluster:
        client = Client(cluster)
        client.ask("POST", EVENTS, event("a"))
        state = cluster.snapshot()
        cluster.clock.advance("2h")
        assert names(client) == []
        cluster.restore(state)
        cluster.clock.advance("58m")
        assert names(client) == ["a"]
        cluster.clock.advance("4m")
        assert names(client) == []
