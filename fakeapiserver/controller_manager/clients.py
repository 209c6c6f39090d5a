"""The identities of controllers (upstream: k8s.io/controller-manager/pkg/clientbuilder)."""

import asyncio
from collections.abc import Sequence
from typing import Final, Protocol

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apis.recorded import NEWEST
from fakeapiserver.client.config import RESTConfig
from fakeapiserver.client.dynamic import DynamicClient
from fakeapiserver.client.errors import StatusError, TransportError, is_already_exists, is_not_found
from fakeapiserver.client.rest import RequestMetrics, RESTClient
from fakeapiserver.client.round_tripper import Answer, HTTPRoundTripper, RoundTripper
from fakeapiserver.clock import Clock, SystemClock
from fakeapiserver.component_helpers.objects import SERVICE_ACCOUNTS
from fakeapiserver.transport.key_pair import KeyPair

# Its first word is what managedFields show as the manager.
USER_AGENT: Final = f"kube-controller-manager/{NEWEST} (fakeapiserver)"
_ROOT: Final = "system:kube-controller-manager"
_NAMESPACE: Final = "kube-system"
# Who plays stages may do what these say, as kwok in kwokctl's clusters.
KWOK: Final = "system:kwok-controller"
_TOKEN_SECONDS: Final = 3600


class ClientBuilder(Protocol):
    """Makes clients; `close` ends them all."""

    def client(self, account: str) -> RESTClient:
        """Returns the client of the service account `account` in kube-system, or of the user `system:…`; "" is the
        shared one.
        """

    def close(self) -> None:
        """Closes the connections of all."""


class SimpleClientBuilder:
    """Everybody is who the config says, but for the user agent: managedFields show which component has written."""

    def __init__(
        self,
        config: RESTConfig,
        transport: RoundTripper | None = None,
        clock: Clock | None = None,
        metrics: RequestMetrics | None = None,
    ) -> None:
        self._config = config
        self._metrics = metrics
        self._transport = transport
        self._clock = clock
        self._clients: dict[str, RESTClient] = {}

    def client(self, account: str) -> RESTClient:
        user_agent = identity_of(account)[2]
        if user_agent not in self._clients:
            config = self._config.with_(user_agent=user_agent)
            self._clients[user_agent] = RESTClient(config, self._transport, self._clock, metrics=self._metrics)
        return self._clients[user_agent]

    def close(self) -> None:
        for client in self._clients.values():
            client.close()


def identity_of(account: str) -> tuple[str, Sequence[str], str]:
    """Returns (user, groups, user agent) of a controller's service account, of a user, or, for "", of the shared
    clients.
    """
    if account.startswith("system:node:"):
        return account, ["system:nodes"], f"kubelet/{NEWEST} (fakeapiserver)"
    if account == KWOK:
        return account, ["system:masters"], "kwok/v0.8 (fakeapiserver)"
    if account.startswith("system:"):
        return account, [], f"{account.rpartition(':')[2]}/{NEWEST} (fakeapiserver)"
    if not account:
        return _ROOT, [], USER_AGENT
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{_NAMESPACE}"]
    return f"system:serviceaccount:{_NAMESPACE}:{account}", groups, USER_AGENT


class ServiceAccountClientBuilder:
    """Each controller is its own service account of kube-system, made when it is missing, by tokens that `config` may request;
    what they share is done as `config` says."""

    def __init__(self, config: RESTConfig, clock: Clock | None = None, metrics: RequestMetrics | None = None) -> None:
        self._config = config.with_(user_agent=USER_AGENT)
        self._clock = clock or SystemClock()
        self._metrics = metrics
        self._root = RESTClient(self._config, clock=self._clock, metrics=metrics)
        self._clients: dict[str, RESTClient] = {}

    def client(self, account: str) -> RESTClient:
        if not account:
            return self._root
        if account not in self._clients:
            anonymous = RESTConfig(
                self._config.host,
                ca_data=self._config.ca_data,
                server_name=self._config.server_name,
                insecure=self._config.insecure,
                proxy_url=self._config.proxy_url,
                user_agent=USER_AGENT,
                qps=self._config.qps,
                burst=self._config.burst,
            )
            transport = _AccountTransport(HTTPRoundTripper(anonymous), self._root, account, self._clock)
            self._clients[account] = RESTClient(anonymous, transport, self._clock, metrics=self._metrics)
        return self._clients[account]

    def close(self) -> None:
        for client in (self._root, *self._clients.values()):
            client.close()


class _AccountTransport:
    """A RoundTripper that shows a service account's token, and renews it when half of its time is over."""

    def __init__(self, inner: RoundTripper, root: RESTClient, account: str, clock: Clock) -> None:
        self._inner = inner
        self._accounts = DynamicClient(root).resource(SERVICE_ACCOUNTS, _NAMESPACE)
        self._account = account
        self._clock = clock
        self._token = ""
        self._renew_at = float("-inf")
        self._lock = asyncio.Lock()

    async def round_trip(
        self, method: str, target: str, headers: Sequence[tuple[str, str]], body: bytes, certificate: KeyPair | None
    ) -> Answer:
        shown = ("Authorization", f"Bearer {await self._current()}")
        return await self._inner.round_trip(method, target, [shown, *headers], body, certificate)

    def close(self) -> None:
        self._inner.close()

    async def _current(self) -> str:
        """TransportError: the server gives none."""
        async with self._lock:
            if self._clock.monotonic() >= self._renew_at:
                try:
                    token = await self._requested()
                except StatusError as error:
                    raise TransportError(f"no token for {_NAMESPACE}/{self._account}: {error}") from error
                self._token = token["status"]["token"]
                self._renew_at = self._clock.monotonic() + _TOKEN_SECONDS / 2
        return self._token

    async def _requested(self) -> Object:
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "metadata": {"name": self._account},
            "spec": {"expirationSeconds": _TOKEN_SECONDS},
        }
        try:
            return await self._accounts.create(request, "token")
        except StatusError as error:
            if not is_not_found(error):
                raise
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": self._account}}
        try:
            await self._accounts.create(account)
        except StatusError as error:
            if not is_already_exists(error):
                raise
        return await self._accounts.create(request, "token")
