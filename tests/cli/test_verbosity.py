"""`serve -v=2`: a line of the log for each request."""

import logging
import re

import pytest

from fakeapiserver import Cluster
from fakeapiserver.cli.flags import parse
from fakeapiserver.server.options.config import Config
from tests.plain_client import Client


@pytest.mark.parametrize(("flag", "prints"), [("-v=1", False), ("-v=2", True), ("--v=9", True)])
def test_the_level_that_prints_requests(flag: str, prints: bool) -> None:
    assert parse([flag]).config.prints_requests is prints


@pytest.mark.parametrize("kept", [0, 100])
def test_requests_are_printed(kept: int, caplog: pytest.LogCaptureFixture) -> None:
    config = Config(controllers=(), prints_requests=True, kept_requests=kept)
    with caplog.at_level(logging.INFO, "fakeapiserver.requests"), Cluster.from_config(config) as cluster:
        client = Client(cluster)
        client.status("GET", "/api/v1/namespaces/default/configmaps?limit=5")
        client.status("GET", "/api/v1/namespaces/default/secrets/none?x=hidden")
        client.status("GET", "/api/v1/namespaces/a%0Ab%1B")
        assert (cluster._server.api.request_log is None) is (kept == 0)  # type: ignore[union-attr]
    lines = [record.getMessage() for record in caplog.records if record.name == "fakeapiserver.requests"]
    assert [re.sub(r"[0-9.]+ ms", "0 ms", line.partition(" ")[2]) for line in lines] == [
        "list /api/v1/namespaces/default/configmaps?limit=5 200 0 ms",
        "get /api/v1/namespaces/default/secrets/none 404 0 ms NotFound",
        "get /api/v1/namespaces/a\\nb\\x1b 404 0 ms NotFound",
    ]
