"""As whom controllers ask the server (upstream: k8s.io/controller-manager/pkg/clientbuilder)."""

from typing import Final, Protocol

from fakeapiserver.client.config import RESTConfig
from fakeapiserver.client.rest import RESTClient, RoundTripper
from fakeapiserver.clock import Clock

# Its first word is what managedFields show as the manager.
USER_AGENT: Final = "kube-controller-manager/v1.36 (fakeapiserver)"
_ROOT: Final = "system:kube-controller-manager"
_NAMESPACE: Final = "kube-system"


class ClientBuilder(Protocol):
    """Makes clients; `close` ends them all."""

    def client(self, account: str) -> RESTClient:
        """For the controller whose service account in kube-system is `account`; "" for what they share."""

    def close(self) -> None:
        """Closes the connections of all."""


class SimpleClientBuilder:
    """Everybody is who the config says."""

    def __init__(self, config: RESTConfig, transport: RoundTripper | None = None, clock: Clock | None = None) -> None:
        self._client = RESTClient(config.with_(user_agent=USER_AGENT), transport, clock)

    def client(self, account: str) -> RESTClient:
        return self._client

    def close(self) -> None:
        self._client.close()


class ImpersonatingClientBuilder:
    """Each controller is its service account, what they share is system:kube-controller-manager: whoever `config` says may be
    anybody. No account and no token is needed for it."""

    def __init__(self, config: RESTConfig, transport: RoundTripper | None = None, clock: Clock | None = None) -> None:
        self._config = config.with_(user_agent=USER_AGENT)
        self._transport = transport
        self._clock = clock
        self._clients: dict[str, RESTClient] = {}

    def client(self, account: str) -> RESTClient:
        if account not in self._clients:
            user, groups = _ROOT, ["system:authenticated"]
            if account:
                user = f"system:serviceaccount:{_NAMESPACE}:{account}"
                groups = ["system:serviceaccounts", f"system:serviceaccounts:{_NAMESPACE}", *groups]
            config = self._config.impersonating(user, groups)
            self._clients[account] = RESTClient(config, self._transport, self._clock)
        return self._clients[account]

    def close(self) -> None:
        for client in self._clients.values():
            client.close()
