"""The identities for calls of webhooks: users of a kubeconfig that are named after the servers.

Upstream: k8s.io/apiserver/pkg/util/webhook/authentication.go.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from fakeapiserver.transport.client_config import endpoint_of
from fakeapiserver.transport.kubeconfigs import clientcmd
from fakeapiserver.transport.rest_config import RESTConfig
from fakeapiserver.transport.webhook import Endpoint

_HTTPS: Final = ":443"


class WebhookUsers:
    """The users of a kubeconfig: `host:port`, `host` (for port 443), `*.domain` for all names below it, and `*`."""

    def __init__(self, path: Path) -> None:
        """OSError and ValueError with clientcmd's sentence."""
        config = clientcmd.read(path)
        self._users = config.users
        self._usual = (config.contexts.get(config.current_context) or {}).get("user") or ""

    def presenting(self, endpoint: Endpoint) -> Endpoint:
        """The endpoint, called as the user that is named after it. OSError, ValueError for files that can't be read."""
        host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
        name = next((name for name in self._names(f"{host}:{endpoint.port}") if name in self._users), None)
        if name is None:
            return endpoint
        identity = endpoint_of(clientcmd.with_user(RESTConfig(endpoint.url), self._users[name])).identity
        return replace(endpoint, identity=replace(identity, user_agent=endpoint.identity.user_agent))

    def _names(self, target: str) -> Iterator[str]:
        """Yields the possible names of the user, the most specific first."""
        yield from _with_stars(target)
        if target.endswith(_HTTPS):
            yield from _with_stars(target.removesuffix(_HTTPS))
        yield "*"
        if self._usual:
            yield self._usual


def _with_stars(target: str) -> Iterator[str]:
    yield target
    words = target.split(".")
    for i in range(1, len(words)):
        yield f"*.{'.'.join(words[i:])}"
