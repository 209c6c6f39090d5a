"""Makes what handlers and stores use beside the scopes: admission, guards, allocations, reviews."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from fakeapiserver.admission.interfaces import Initializer
from fakeapiserver.apis.scheme import APIResource
from fakeapiserver.endpoints.reviews.token_reviews import reviews
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.endpoints.services import KubeletClient, Services, SimulatedNodes
from fakeapiserver.registry.core.service.ports import NodePorts
from fakeapiserver.registry.generic.read_only import ReadOnlyAdmission
from fakeapiserver.server.access import Access
from fakeapiserver.server.loopback import Loopback
from fakeapiserver.server.options.admission_and_guards import admission, allocations, guards
from fakeapiserver.server.options.config import Config
from fakeapiserver.server.proxies.clients import resource_proxy

if TYPE_CHECKING:
    from fakeapiserver.transport.webhook import WebhookConnections


class NodeClients(NamedTuple):
    """Return the nodes that this process simulates, if any, and the client for kubelets of other processes."""

    simulated: Callable[[], SimulatedNodes | None]
    kubelets: Callable[[], KubeletClient]


def new_services(
    config: Config,
    loopback: Loopback,
    access: Access,
    connections: "WebhookConnections",
    make_custom: Callable[[APIResource], RequestScope],
    nodes: NodeClients,
    node_ports: NodePorts,
) -> Services:
    """Raises ValueError for unknown admission plugins and configurations that can't be used."""
    features, clock = loopback.scopes.table.scheme.features, loopback.scopes.clock
    objects, versions = loopback.objects, loopback.versions
    authentication = access.authentication
    plugins_need = Initializer(
        objects,
        versions,
        writer=loopback.writer,
        clock=clock,
        authorizer=access.of_admission,
        features=features,
        instruments=loopback.scopes.instruments,
        connections=connections,
        catch_up=loopback.scopes.storage.catch_up if node_ports.is_shared else None,
        chance=loopback.scopes.chance,
        records_steps=config.is_recorded,
    )
    chain = admission(config, plugins_need)
    return Services(
        admission=chain,
        admission_of_stores=ReadOnlyAdmission(chain) if config.read_only else chain,
        authorizer=access.of_handlers,
        guard_for=guards(access.authorizer, access.rbac, objects, versions, features, access.log),
        allocations=allocations(config, loopback, node_ports),
        virtual=reviews(
            authentication.authenticator,
            authentication.tokens,
            access.authorizer,
            clock,
            access.issuer.audiences,
            features.version,
        ),
        token_issuer=access.issuer,
        make_custom=make_custom,
        simulated_nodes=nodes.simulated,
        kubelet_client=nodes.kubelets,
        proxy=resource_proxy,
    )
