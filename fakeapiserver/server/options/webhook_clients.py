"""Clients of webhooks by kubeconfigs, including credentials that change.

Upstream: k8s.io/apiserver/pkg/util/webhook/webhook.go, k8s.io/client-go/{transport/token_source.go,plugin/pkg/client/auth/exec}.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from fakeapiserver.client.credentials import source_of
from fakeapiserver.client.exec_plugin import ExecPlugin
from fakeapiserver.clock import Clock
from fakeapiserver.transport.client_config import Credentials, Remote, load_kubeconfig
from fakeapiserver.transport.kubeconfigs import clientcmd
from fakeapiserver.transport.webhook import Endpoint, Identity

if TYPE_CHECKING:
    from fakeapiserver.client.credentials import Credential, CredentialSource


def remote(path: Path, timeout: float, clock: Clock) -> Remote:
    """`timeout` in seconds, of each try. ValueError and OSError for a kubeconfig that can't be used."""
    endpoint = load_kubeconfig(path)
    return Remote(endpoint, timeout, credentials=credentials_of(path, endpoint, clock))


def credentials_of(path: Path, endpoint: Endpoint, clock: Clock) -> Credentials | None:
    """Returns the changing credentials of a kubeconfig, or None if the endpoint's identity is all.

    Raises ValueError and OSError.
    """
    if not endpoint.has_changing_credentials:
        return None

    return _Changing(source_of(clientcmd.load_file(path), clock, ExecPlugin), endpoint.identity)


class _Changing:
    """Credentials from a source, in addition to the kubeconfig's own."""

    def __init__(self, source: "CredentialSource", own: Identity) -> None:
        self._source = source
        self._own = own
        self._last: Credential | None = None

    async def current(self) -> Identity:
        identity = self._last = await self._source.current()
        certificate = identity.certificate
        return Identity(
            certificate.certificate if certificate is not None else self._own.certificate,
            certificate.key if certificate is not None else self._own.key,
            identity.authorization or self._own.authorization,
            self._own.user_agent,
        )

    def rejected(self) -> None:
        if self._last is not None:
            self._source.rejected(self._last)
