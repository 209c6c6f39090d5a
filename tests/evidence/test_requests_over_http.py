"""GET /fakeapiserver/requests: the last requests, for tests in any language."""

import json
import threading
from collections.abc import Iterator
from urllib.error import HTTPError

import pytest

from fakeapiserver import Cluster
from tests.plain_client import Client

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PATH = "/fakeapiserver/requests"


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with Cluster(controllers=()) as cluster:
        client = Client(cluster)
        client.status("POST", CONFIG_MAPS, {"metadata": {"name": "a"}})
        client.status(
            "POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}, "stringData": {"k": "hidden"}}
        )
        yield client


def test_requests_are_listed(client: Client) -> None:
    [created] = client.ask("GET", f"{PATH}?query=create%20configmaps")
    assert (created["verb"], created["name"], created["status"], created["changed"]) == ("create", "a", 201, True)
    assert client.ask("GET", f"{PATH}?query=create%20configmaps&since={created['seq']}") == []
    assert "hidden" not in json.dumps(client.ask("GET", PATH))


def test_requests_are_written_as_text(client: Client) -> None:
    with client.open("GET", f"{PATH}?query=create%20*&output=transcript") as answer:
        lines = answer.read().decode().splitlines()
    assert lines == [
        "Python-urllib create configmaps default/a -> 201",
        "Python-urllib create secrets default/s -> 201",
    ]


def test_a_wait_ends_with_the_request(client: Client) -> None:
    sender = threading.Timer(0.05, client.status, ("DELETE", f"{CONFIG_MAPS}/a"))
    sender.start()
    [deleted] = client.ask("GET", f"{PATH}?query=delete%20configmaps&wait=10")
    sender.join()
    assert deleted["status"] == 200


@pytest.mark.parametrize(
    ("query", "status"),
    [("query=updat%20pods", 422), ("wait=99", 422), ("output=xml", 422), ("query=delete%20nodes&wait=0.01", 504)],
)
def test_a_refusal(query: str, status: int, client: Client) -> None:
    with pytest.raises(HTTPError) as refused:
        client.ask("GET", f"{PATH}?{query}")
    assert refused.value.code == status
