"""Hostile requests get an error message at once, and leave no traceback in the log.

Each value could break a parser: more digits than Python's int() takes, numbers beyond float64, endless brackets and separators, characters
that end strings elsewhere.
"""

import json
import logging
import ssl
from collections.abc import Iterator
from http.client import HTTPSConnection
from time import process_time
from typing import Final
from urllib.parse import quote

import pytest

from fakeapiserver.cluster import Cluster

_DIGITS: Final = "9" * 5000
_BEYOND_FLOAT64: Final = "1" + "0" * 400
_VALUES: Final = {
    "digits": _DIGITS,
    "negative digits": f"-{_DIGITS}",
    "zeros": "0" * 5000,
    "power": "1e999999999",
    "brackets": "(" * 50_000,
    "commas": "," * 50_000,
    "backslashes": "\\" * 50_000,
    "durations": "1h" * 50_000,
    "dots": "." * 50_000,
    "slashes": "a/" * 50_000,
    "percent": "%" * 50_000,
    "nul": "a\0b",
    "line end": "a\r\nb: c",
    "surrogate": "\ud800",
    "other digits": "١",
}
_PARAMETERS: Final = (
    *("timeout", "labelSelector", "fieldSelector", "limit", "continue", "resourceVersion", "resourceVersionMatch"),
    *("pretty", "fieldManager", "fieldValidation", "dryRun", "timeoutSeconds", "shardSelector"),
)
_HEADERS: Final = (
    *(
        "Accept",
        "Accept-Encoding",
        "Range",
        "If-None-Match",
        "If-Modified-Since",
        "User-Agent",
        "Authorization",
        "Cookie",
    ),
    *(
        "Impersonate-User",
        "Impersonate-Group",
        "Impersonate-Extra-a",
        "X-Remote-User",
        "Content-Type",
        "Traceparent",
        "Origin",
    ),
)
_NUMBERS: Final = (
    _DIGITS,
    f"-{_DIGITS}",
    _BEYOND_FLOAT64,
    f"-{_BEYOND_FLOAT64}",
    "1e999",
    "1e-999999999",
    f"1.{_DIGITS}",
)
_BODIES: Final = {
    "application/json": '{"metadata":{"name":"a","generation":%s},"data":{"a":%s}}',
    "application/yaml": "metadata: {name: a, generation: %s}\ndata: {a: %s}",
}
# Not apply: upstream answers 500 to a value of another type than the field's.
_PATCHES: Final = {
    "application/json-patch+json": '[{"op":"add","path":"/metadata/finalizers/%s","value":%s}]',
    "application/merge-patch+json": '{"metadata":{"generation":%s},"data":{"a":%s}}',
    "application/strategic-merge-patch+json": '{"metadata":{"generation":%s},"data":{"a":%s}}',
}
_CONFIG_MAPS: Final = "/api/v1/namespaces/default/configmaps"
_MOST_SECONDS: Final = 20  # of CPU: against what hangs


class _Client:
    """Sends one request per connection, as its bytes say."""

    def __init__(self, cluster: Cluster) -> None:
        self._host, _, port = cluster.url.removeprefix("https://").partition(":")
        self._port = int(port)
        self._context = ssl.create_default_context(cadata=cluster.ca.decode())
        self.credentials = {"Authorization": f"Bearer {cluster.token}"}

    def status(self, method: str, path: str, body: str = "", headers: dict[str, str] | None = None) -> int:
        """Returns the answer's status, after it was read to its end."""
        connection = HTTPSConnection(self._host, self._port, context=self._context, timeout=60)
        try:
            connection.request(method, path, body.encode(), headers or {})
            response = connection.getresponse()
            response.read()
            return response.status
        finally:
            connection.close()


@pytest.fixture(scope="module")
def client() -> Iterator[_Client]:
    with Cluster(controllers=()) as cluster:
        client = _Client(cluster)
        body = json.dumps({"metadata": {"name": "a", "finalizers": ["example.com/a"]}})
        assert client.status("POST", _CONFIG_MAPS, body, client.credentials) == 201
        yield client


@pytest.fixture(autouse=True)
def _answered_at_once(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    start = process_time()
    yield
    assert process_time() - start < _MOST_SECONDS
    assert [record.message for record in caplog.records if record.levelno >= logging.ERROR] == []


def _is_answer(status: int) -> bool:
    """Reports whether this is an answer to a bad request, rather than a failure; 504 is for revisions that don't exist yet."""
    return status < 500 or status == 504


@pytest.mark.parametrize("value", _VALUES.values(), ids=_VALUES)
@pytest.mark.parametrize("parameter", _PARAMETERS)
def test_parameters(client: _Client, parameter: str, value: str) -> None:
    query = f"?{parameter}={quote(value, errors='surrogatepass')}"
    assert _is_answer(client.status("GET", f"/livez{query}"))
    assert _is_answer(client.status("GET", f"{_CONFIG_MAPS}{query}", headers=client.credentials))


@pytest.mark.parametrize("value", _VALUES.values(), ids=_VALUES)
def test_paths(client: _Client, value: str) -> None:
    name = quote(value[:5000], errors="surrogatepass", safe="")
    for path in (f"/api/v1/namespaces/{name}/pods/a", f"{_CONFIG_MAPS}/{name}", f"/apis/{name}", f"/{name}"):
        assert _is_answer(client.status("GET", path))
        assert _is_answer(client.status("GET", path, headers=client.credentials))


@pytest.mark.parametrize("header", _HEADERS)
def test_headers(client: _Client, header: str) -> None:
    for value in _VALUES.values():
        if value.isascii() and value.isprintable():
            assert _is_answer(client.status("GET", _CONFIG_MAPS, headers={header: value}))
            assert _is_answer(client.status("GET", _CONFIG_MAPS, headers={**client.credentials, header: value}))


@pytest.mark.parametrize("number", _NUMBERS, ids=lambda number: number[:8])
@pytest.mark.parametrize(("media_type", "template"), _BODIES.items(), ids=_BODIES)
def test_numbers_in_bodies(client: _Client, media_type: str, template: str, number: str) -> None:
    headers = {**client.credentials, "Content-Type": media_type}
    assert 400 <= client.status("POST", _CONFIG_MAPS, template % (number, number), headers) < 500


@pytest.mark.parametrize("number", _NUMBERS, ids=lambda number: number[:8])
@pytest.mark.parametrize(("media_type", "template"), _PATCHES.items(), ids=_PATCHES)
def test_numbers_in_patches(client: _Client, media_type: str, template: str, number: str) -> None:
    headers = {**client.credentials, "Content-Type": media_type}
    path = f"{_CONFIG_MAPS}/a?fieldManager=a"
    assert 400 <= client.status("PATCH", path, template % (number, number), headers) < 500


def test_a_long_resource_version_of_a_new_object(client: _Client) -> None:
    """No uint64: upstream's versioner can't read it, and ignores it."""
    body = f'{{"metadata":{{"name":"long","resourceVersion":"{_DIGITS}"}}}}'
    headers = {**client.credentials, "Content-Type": "application/json"}
    assert client.status("POST", _CONFIG_MAPS, body, headers) == 201
