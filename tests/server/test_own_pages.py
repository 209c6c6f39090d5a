"""A port on loopback: whose pages may send requests to it."""

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from fakeapiserver.server.control.own_pages import OwnPages

APP = OwnPages(Starlette(routes=[Route("/", lambda request: PlainTextResponse("ok"))]))


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "127.0.0.1:8080"}, 200),
        ({"host": "localhost"}, 200),
        ({"host": "[::1]:8080"}, 200),
        ({"host": "LOCALHOST:8080", "origin": "http://localhost:8080"}, 200),
        ({"host": "example.com"}, 403),
        ({"host": "127.0.0.1.example.com:8080"}, 403),
        ({"host": ""}, 403),
        ({"host": "127.0.0.1:8080", "origin": "http://example.com"}, 403),
        ({"host": "127.0.0.1:8080", "origin": "http://127.0.0.1:8081"}, 403),
        ({"host": "127.0.0.1:8080", "origin": "null"}, 403),
    ],
)
def test_pages_of_others_are_refused(headers: dict[str, str], status: int) -> None:
    assert TestClient(APP).get("/", headers=headers).status_code == status


def test_a_page_of_this_port_without_tls_is_another_one() -> None:
    client = TestClient(APP, base_url="https://localhost:8080")
    assert client.get("/", headers={"origin": "https://localhost:8080"}).status_code == 200
    assert client.get("/", headers={"origin": "http://localhost:8080"}).status_code == 403
