"""Access to a server: its authenticators and authorizers, and the log of the accesses that it has allowed."""

from collections.abc import Callable, Collection, Coroutine, Sequence
from typing import Any

from msgspec import Struct, structs

from fakeapiserver.auth.authorizers.rbac import RBAC
from fakeapiserver.auth.interfaces import Authorizer, RuleAuthorizer
from fakeapiserver.controller_manager.descriptor import selected, users
from fakeapiserver.endpoints.services import TokenIssuer
from fakeapiserver.server.filters.access_log import CLUSTER_USER, AccessLog, is_a_right_of_its_own
from fakeapiserver.server.http.client_authorities import ClientAuthorities
from fakeapiserver.server.loopback import Loopback
from fakeapiserver.server.metrics import Metrics
from fakeapiserver.server.options.authentication import Authentication, authentication, token_issuer
from fakeapiserver.server.options.authorization import authorization
from fakeapiserver.server.options.config import Config
from fakeapiserver.server.proxies.front_proxy import FrontProxy


class Access(Struct, frozen=True, kw_only=True):
    """`authorizer` decides; with a log, what is asked beside a request's own permission is recorded as well.

    issuer: signs service account tokens.
    background: runs while the server does.
    """

    rbac: RBAC
    authorizer: RuleAuthorizer
    log: AccessLog | None
    issuer: TokenIssuer
    authentication: Authentication
    background: Sequence[Callable[[], Coroutine[Any, Any, None]]]

    @property
    def of_requests(self) -> Authorizer:
        """For the handler chain."""
        return self.log or self.authorizer

    @property
    def of_handlers(self) -> Authorizer:
        """For what handlers ask about the request that they serve."""
        return self.log.beside(lambda _: True) if self.log is not None else self.authorizer

    @property
    def of_admission(self) -> Authorizer:
        """For admission plugins, which also ask what isn't a permission of the request."""
        return self.log.beside(is_a_right_of_its_own) if self.log is not None else self.authorizer


def new_access(
    config: Config,
    loopback: Loopback,
    metrics: Metrics,
    client_authorities: ClientAuthorities,
    front_proxy: FrontProxy,
    admin_token: str,
) -> Access:
    """Raises ValueError and OSError in upstream's words for flags and files that can't be used."""
    scheme, clock, rbac = loopback.scopes.table.scheme, loopback.scopes.clock, RBAC(loopback.objects)
    authorizers = authorization(config, scheme, rbac, loopback.objects, clock, metrics.instruments)
    issuer = structs.replace(token_issuer(config), chance=loopback.scopes.chance)
    authenticators = authentication(
        config,
        loopback,
        token=admin_token,
        client_authorities=client_authorities,
        keys=issuer.keys,
        request_headers=front_proxy.headers,
        instruments=metrics.instruments,
    )
    return Access(
        rbac=rbac,
        authorizer=authorizers.authorizer,
        log=AccessLog(authorizers.authorizer, _bundled(config)) if config.records_access else None,
        issuer=issuer,
        authentication=authenticators,
        background=(*authenticators.background, *authorizers.background),
    )


def _bundled(config: Config) -> Collection[str]:
    """Returns the users whose requests come from the cluster's own components."""
    stands_in = config.nodes or config.local_storage or config.cloud_storage or config.load_balancers
    if not (stands_in or selected(config.controllers)):
        return frozenset((CLUSTER_USER,))
    return {CLUSTER_USER, *users(config.nodes)}
