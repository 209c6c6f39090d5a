"""The services that handlers and stores use next to the scopes: admission, authorization, reviews, tokens, kubelets.

They read objects through the scopes themselves, so they are made after these (`RequestScopes.services`).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from msgspec import Struct

from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apis.scheme import APIResource
from fakeapiserver.auth.interfaces import Authorizer
from fakeapiserver.auth.service_account_keys import ServiceAccountKeys
from fakeapiserver.chance import UNSEEDED, Chance
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.scope import RequestScope, Virtual
from fakeapiserver.registry.generic.interfaces import AdmissionChain
from fakeapiserver.registry.generic.write_request import Allocation, Guard

if TYPE_CHECKING:
    from fakeapiserver.component_helpers.streaming import Kubelets, Streams
    from fakeapiserver.endpoints.streams.proxy import Location


class TokenIssuer(Struct, frozen=True):
    """Signs service account tokens. `extends` is --service-account-extend-token-expiration, `longest` (seconds, 0 for any)
    --service-account-max-token-expiration, `jwks_uri` where the keys are published (empty: by this server)."""

    keys: ServiceAccountKeys
    issuer: str
    audiences: Sequence[str]
    extends: bool = True
    longest: int = 0
    jwks_uri: str = ""
    chance: Chance = UNSEEDED


class Proxy(Protocol):
    """Proxies requests to pods, to services, and to ports of nodes other than the kubelet's."""

    async def serve(self, request: Request, location: "Location") -> Response:
        """StatusError 503 or 500 if the target can't be reached."""


class KubeletClient(Protocol):
    """Talks to kubelets in other processes, at the addresses of their nodes."""

    def check_addresses(self, node: Object) -> None:
        """StatusError 500: the node has no address of a preferred type."""

    def address(self, node: Object) -> tuple[str, int]:
        """Host and port."""

    def authority(self, node: Object) -> str: ...

    async def logs(self, request: Request, node: Object, path: str) -> Response:
        """StatusError: the kubelet can't be reached, or what it says instead of a log."""

    async def upgrade(self, request: Request, node: Object, path: str) -> Response:
        """Bytes to and fro once the kubelet switches protocols. StatusError 500: it can't be reached."""

    async def execute(self, node: Object, path: str, streams: "Streams") -> int:
        """Runs over SPDY what `path` says; its exit code. KubeletError: the kubelet can't be reached, or refuses."""

    async def tunnel(self, request: Request, node: Object, path: str, protocols: Sequence[str]) -> Response:
        """SPDY to the kubelet, inside of a WebSocket to the client, who offers `protocols` to be spoken in it. StatusError 500."""

    async def proxy(self, request: Request, location: "Location") -> Response:
        """To a kubelet. StatusError 503, 500: it can't be reached."""


class KubeletServer(Protocol):
    """Serves the HTTP endpoints of the kubelets in this process."""

    async def handle(self, request: Request, node: str = "") -> Response:
        """`node`: the one that is asked; "": any."""


class SimulatedNodes(NamedTuple):
    """The kubelets in this process: what runs their pods, and what they answer over HTTP."""

    kubelets: "Kubelets"
    server: KubeletServer


class Services(Struct, frozen=True, kw_only=True):
    """Made once, when a scope is first looked up.

    admission_of_stores: `admission`, or for a server that is read-only one that refuses writes to stored objects.
    authorizer: asked by handlers about what a request implies, such as a pod's exec.
    guard_for: returns further checks of writes to a resource, or None.
    allocations: hand out what objects of a resource hold, such as addresses.
    virtual: the resources that aren't stored (reviews).
    make_custom: makes the scope of a custom resource.
    simulated_nodes: returns the kubelets in this process, or None.
    kubelet_client, proxy: make the clients of other kubelets, and of pods and services, when they are first needed.
    """

    admission: AdmissionChain
    admission_of_stores: AdmissionChain
    authorizer: Authorizer
    guard_for: Callable[[GroupResource], Guard | None]
    allocations: Mapping[GroupResource, Allocation]
    virtual: Mapping[GroupResource, Virtual]
    token_issuer: TokenIssuer
    make_custom: Callable[[APIResource], RequestScope]
    simulated_nodes: Callable[[], SimulatedNodes | None]
    kubelet_client: Callable[[], KubeletClient]
    proxy: Callable[[], Proxy]
