"""As whom webhooks are called: users of a kubeconfig that are named after the servers they are for.

Upstream: k8s.io/apiserver/pkg/util/webhook/authentication.go.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from fakeapiserver.transport.client_config import identity_of, read_config
from fakeapiserver.transport.webhook import Endpoint

_HTTPS: Final = ":443"


class WebhookUsers:
    """The users of a kubeconfig: `host:port`, `host` (for port 443), `*.domain` for what is below it, and `*`."""

    def __init__(self, path: Path) -> None:
        """OSError and ValueError with clientcmd's sentence."""
        config = read_config(path)
        self._folder = path.parent
        self._users: dict[str, Mapping[str, Any]] = {
            row.get("name") or "": row.get("user") or {} for row in config.get("users") or ()
        }
        context = next(
            (
                row.get("context") or {}
                for row in config.get("contexts") or ()
                if row.get("name") == config.get("current-context")
            ),
            {},
        )
        self._usual: str = context.get("user") or ""

    def presenting(self, endpoint: Endpoint) -> Endpoint:
        """The endpoint, called as the user that is named after it. OSError, ValueError for files that can't be read."""
        host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
        name = next((name for name in self._names(f"{host}:{endpoint.port}") if name in self._users), None)
        if name is None:
            return endpoint
        found = identity_of(self._users[name], self._folder)
        return replace(endpoint, identity=replace(found, user_agent=endpoint.identity.user_agent))

    def _names(self, target: str) -> Iterator[str]:
        """What the user may be called, the best first."""
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
