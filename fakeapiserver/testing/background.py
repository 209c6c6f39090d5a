"""A server with any configuration in a thread, for tests that need more than `Cluster` offers."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fakeapiserver.cluster import Cluster
from fakeapiserver.server.local import LocalServer
from fakeapiserver.server.options.config import Config


@contextmanager
def running_server(**options: Any) -> Iterator[LocalServer]:
    """`options` are fields of server.config.Config; without any, no controllers run. The server is for reading (url, token), not
    for calls from this thread."""
    with Cluster.from_config(Config(**{"controllers": (), **options})) as cluster:
        yield cluster._server
