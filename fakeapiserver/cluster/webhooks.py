"""`cluster.webhooks`: where a webhook server under test has to listen, and with which certificate."""

import asyncio
from typing import TYPE_CHECKING

from fakeapiserver.cluster.faces import Blocking, Call, blocking

if TYPE_CHECKING:
    from fakeapiserver.server.projects.local_webhooks import LocalWebhooks


class WebhookAddress:
    """The address at which this cluster calls webhooks that name a Service, and the certificate that their server needs. The server
    may be started at any time; until then, calls to it fail as each webhook's failure policy says."""

    def __init__(self, local: "LocalWebhooks") -> None:
        self._local = local

    @property
    def host(self) -> str:
        """127.0.0.1"""
        return self._local.host

    @property
    def port(self) -> int:
        """The port on which the webhook server has to listen."""
        return self._local.port

    @property
    def url(self) -> str:
        """`https://127.0.0.1:PORT`."""
        return self._local.url

    @property
    def cert_dir(self) -> str:
        """The folder with `tls.crt` and `tls.key`, as controller-runtime's server expects them, and `ca.crt`, their authority."""
        return self._local.cert_dir

    @property
    def ca(self) -> bytes:
        """The authority of the certificate, as PEM."""
        return self._local.ca


class AsyncWebhooks(WebhookAddress):
    """The address of webhooks, and a wait for their server."""

    async def wait(self, timeout: float = 10.0) -> None:
        """Waits until the webhook server answers with its certificate. TimeoutError after `timeout` seconds, with the last problem."""
        await asyncio.to_thread(self._local.wait, timeout)


class Webhooks(WebhookAddress, Blocking[AsyncWebhooks]):
    """The address of webhooks, and a wait for their server."""

    def __init__(self, core: AsyncWebhooks, call: Call) -> None:
        WebhookAddress.__init__(self, core._local)
        Blocking.__init__(self, core, call)

    wait = blocking(AsyncWebhooks.wait)
