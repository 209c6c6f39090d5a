"""Composes one API server from its parts: storage, tables, admission, auth, the handler chain, the application.

Upstream: cmd/kube-apiserver/app/server.go, pkg/controlplane/instance.go.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from fakeapiserver.admission.chain import Chain
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apis import scheme
from fakeapiserver.apis.resource_table import ResourceTable
from fakeapiserver.auth.authorizers.rbac import RBAC
from fakeapiserver.auth.interfaces import Authenticator, Authorizer
from fakeapiserver.clock import AdjustableClock, Clock, SystemClock, Timers
from fakeapiserver.controller_manager.descriptor import named, selected, users
from fakeapiserver.endpoints.negotiation.media_types import SUPPORTED, WITH_CBOR
from fakeapiserver.endpoints.request import ASGIApplication
from fakeapiserver.endpoints.reviews.token_reviews import reviews
from fakeapiserver.endpoints.scopes import ObjectGetter, RequestScopes, ServedVersions, TokenIssuer
from fakeapiserver.registry.core.service.allocation import ServiceAllocation
from fakeapiserver.registry.core.service.ips import family_of
from fakeapiserver.server.aggregator.aggregator import Aggregator
from fakeapiserver.server.apiextensions import CustomResources
from fakeapiserver.server.app import Application
from fakeapiserver.server.chain import HandlerChain
from fakeapiserver.server.filters.access_log import CLUSTER_USER, AccessLog, is_a_right_of_its_own
from fakeapiserver.server.filters.audit import options as audit
from fakeapiserver.server.filters.audit.interface import NoAuditing
from fakeapiserver.server.filters.flowcontrol.limits import Limiter, MaxInFlight, PriorityAndFairness
from fakeapiserver.server.filters.flowcontrol.schema_status import FlowSchemaStatus
from fakeapiserver.server.filters.request_log import NoRequestLog, RequestLog
from fakeapiserver.server.http.client_authorities import ClientAuthorities
from fakeapiserver.server.metrics import Metrics
from fakeapiserver.server.metrics_apis.apis import MetricsAPIs
from fakeapiserver.server.options import admission_and_guards as authn_authz
from fakeapiserver.server.options.authentication import api_audiences, authentication, service_account_keys
from fakeapiserver.server.options.authorization import authorization
from fakeapiserver.server.options.config import CBOR_SERVING_AND_STORAGE, POLICY_STATUS, Config
from fakeapiserver.server.pages.fixed_paths import FixedPaths
from fakeapiserver.server.pages.health import HealthChecks
from fakeapiserver.server.proxies.front_proxy import ClusterAuthenticationTrust, FrontProxy
from fakeapiserver.server.upkeep import bootstrap, storage_versions
from fakeapiserver.server.upkeep.bootstrap_upkeep import SERVICES, BootstrapUpkeep
from fakeapiserver.server.upkeep.identity import IDENTITY, IdentityLease
from fakeapiserver.server.upkeep.ip_repair import ServiceIPRepair
from fakeapiserver.server.upkeep.loopback_writer import LoopbackWriter
from fakeapiserver.server.upkeep.secret_labels import SecretLabeller
from fakeapiserver.storage.memory import MemoryStorage
from fakeapiserver.storage.mvcc import Snapshot
from fakeapiserver.transport.connections import IdleConnections

if TYPE_CHECKING:
    from fakeapiserver.controller_manager.manager import ControllerManager
    from fakeapiserver.endpoints.scopes import KubeletClient
    from fakeapiserver.nodes.simulation import Simulation
    from fakeapiserver.server.proxies.resource_proxy import ResourceProxy
    from fakeapiserver.transport.webhook import Idle

# Fields of the configuration that no flag of kube-apiserver stands for.
_NO_FLAGS: Final = frozenset(
    {
        "controllers",
        "crds",
        "given",
        "kubernetes-version",
        "load-balancers",
        "local-storage",
        "metrics",
        "nodes",
        "records-access",
        "step-controllers",
        "warnings",
        "webhook-cert-dir",
        "webhook-port",
        "webhooks",
    }
)


def _flags(options: Struct, prefix: str = "") -> Iterator[tuple[str, object]]:
    """Name and value of a flag for each field, also of nested options: `audit.log.path` is audit-log-path."""
    for field in options.__struct_fields__:
        name, value = f"{prefix}{field}".replace("_", "-"), getattr(options, field)
        if isinstance(value, Struct):
            yield from _flags(value, f"{name}-")
        else:
            yield name, value


def _bundled(config: Config) -> Collection[str]:
    """The users whose requests come from the cluster's own components."""
    if not (config.nodes or config.local_storage or config.load_balancers or selected(config.controllers)):
        return frozenset((CLUSTER_USER,))
    return {CLUSTER_USER, *users(config.nodes)}


def _kubelet_client(config: Config) -> "KubeletClient":
    """The client for kubelets in other processes. OSError and ValueError for unusable files."""
    from fakeapiserver.server.proxies.kubelet_client import ADDRESS_TYPES, KubeletClient
    from fakeapiserver.transport.certificates import load_pair

    certificate, key = config.kubelet_client_certificate, config.kubelet_client_key
    authority = config.kubelet_certificate_authority
    return KubeletClient(
        load_pair(certificate, key) if certificate is not None and key is not None else None,
        authority.read_bytes() if authority is not None else b"",
        config.kubelet_preferred_address_types or ADDRESS_TYPES,
    )


def _proxy() -> "ResourceProxy":
    from fakeapiserver.server.proxies.resource_proxy import ResourceProxy
    from fakeapiserver.transport.round_trip import Transport

    return ResourceProxy(Transport())


async def _turn() -> None:
    await asyncio.sleep(0)


class APIServer:
    """An API server without its sockets: `application` is what a listener runs.

    Call order: construct (cheap, anywhere), then `await start()` in the event loop that serves it, and `await stop()`.
    """

    def __init__(
        self,
        config: Config,
        *,
        clock: Clock | None = None,
        admin_token: str = "",
        client_ca: bytes = b"",
        front_proxy: FrontProxy | None = None,
    ) -> None:
        self.config = config
        self.clock = clock or SystemClock()
        self.storage = MemoryStorage()
        served = scheme.serving(config.kubernetes_version, config.feature_gates, config.runtime_config)
        storage_versions.check(served)
        self.table = ResourceTable(served)
        features = self.table.scheme.features
        self.started = self.clock.now()
        self._front_proxy = (front_proxy or FrontProxy()).heeding(features)
        self.metrics = Metrics(self.table, self._stored, self.started)
        self._health_checks = HealthChecks(features, self.metrics.health_checks)
        self.address = f"{config.bind_address}:{config.secure_port}"
        self.shutting_down = False
        # The controllers and simulated nodes that run beside it, if any.
        self.controllers: ControllerManager | None = None
        self.simulation: Simulation | None = None
        self.media_types = WITH_CBOR if features.enabled(CBOR_SERVING_AND_STORAGE) else SUPPORTED
        self.scopes = RequestScopes(
            table=self.table,
            storage=self.storage,
            admission=Chain(()),
            clock=self.clock,
            min_request_timeout=config.min_request_timeout,
            media_types=self.media_types,
            instruments=self.metrics.instruments,
            make_kubelet_client=lambda: _kubelet_client(config),
            make_proxy=_proxy,
        )
        self.objects = ObjectGetter(self.scopes)
        rbac = RBAC(self.objects)
        self._authorization = authorization(
            config,
            self.table.scheme,
            rbac,
            self.objects,
            self.clock,
            self.metrics.authorization.decisions,
            self.metrics.instruments,
        )
        authorizer = self._authorization.authorizer
        log = self.access_log = AccessLog(authorizer, _bundled(config)) if config.records_access else None
        self.scopes.authorizer = log.beside(lambda _: True) if log is not None else authorizer
        self._to_webhooks: Idle = IdleConnections()
        self.versions, self.writer = ServedVersions(self.scopes), LoopbackWriter(self.scopes)
        families = [family_of(found.partition("/")[0]) for found in config.service_ranges]
        services = ServiceAllocation(families, self.objects, self.writer, config.service_node_port_range)
        self.scopes.allocations = {SERVICES: services}
        self.scopes.guard_for = authn_authz.guards(authorizer, rbac, self.objects, self.versions, features, log)
        chain = authn_authz.admission(
            config,
            features,
            self.objects,
            self.versions,
            self.writer,
            self.clock,
            log.beside(is_a_right_of_its_own) if log is not None else authorizer,
            self.metrics.instruments,
            self._to_webhooks,
        )
        self.scopes.admission, self.metrics.admission = chain, chain.timings
        self.custom_resources = CustomResources(self.scopes, self._to_webhooks)
        self._identity = IdentityLease(self.scopes, lambda: self.address) if features.enabled(IDENTITY) else None
        keys, audiences = service_account_keys(config), api_audiences(config)
        self._issuer = TokenIssuer(
            keys,
            config.service_account_issuer[0],
            audiences,
            config.service_account_extend_token_expiration,
            int(config.service_account_max_token_expiration),
            config.service_account_jwks_uri,
        )
        self.scopes.token_issuer = self._issuer
        self.metrics_apis = MetricsAPIs(self.scopes, self.objects, self.custom_resources.registration, self.clock)
        self.aggregator = Aggregator(
            self.scopes,
            self.objects,
            front_proxy=self._front_proxy,
            own=self._own_address,
            routes_to_endpoints=config.enable_aggregator_routing,
            rejects_redirects=config.aggregator_reject_forwarding_redirect,
            request_timeout=config.request_timeout,
            metrics=self.metrics,
            tell=self._tell_aggregated_servers,
            metrics_apis=self.metrics_apis,
        )
        self.client_authorities = ClientAuthorities(client_ca, config.client_ca_file)
        self._trust = ClusterAuthenticationTrust(
            self.scopes, lambda: self.client_authorities.bundle, self._front_proxy.headers
        )
        self._authentication = authentication(
            config,
            features,
            clock=self.clock,
            token=admin_token,
            client_authorities=self.client_authorities,
            keys=keys,
            objects=self.objects,
            label_secret=SecretLabeller(self.scopes).label,
            request_headers=self._front_proxy.headers,
            instruments=self.metrics.instruments,
        )
        authenticator = self._authentication.authenticator
        self.scopes.virtual = reviews(
            authenticator,
            self._authentication.tokens,
            authorizer,
            authorizer,
            self.clock,
            audiences,
            self.table.scheme.features.version,
        )
        self._auditor = audit.build(config.audit, self.clock, self.metrics.audit)
        self.request_log = RequestLog(self.clock) if config.records_requests else None
        self.application = Application(self._chain(authenticator, self.access_log or authorizer))
        self._tasks: list[asyncio.Task[None]] = []

    def _chain(self, authenticator: Authenticator, authorizer: Authorizer) -> HandlerChain:
        fixed_paths = FixedPaths(
            self.table,
            self.metrics,
            self._health_checks,
            self,
            self._control,
            self._issuer,
            lambda: self.aggregator.api_services.priorities,
        )
        return HandlerChain(
            authenticator,
            authorizer,
            self.scopes,
            fixed_paths,
            self.metrics,
            self._limiter(),
            self.config.request_timeout,
            self.aggregator,
            self._auditor or NoAuditing(),
            self.request_log or NoRequestLog(),
            self.table.scheme.features.enabled("APIResponseCompression"),
        )

    def _limiter(self) -> Limiter:
        reading, mutating = self.config.max_requests_inflight, self.config.max_mutating_requests_inflight
        if not self.config.enable_priority_and_fairness:
            return MaxInFlight(reading, mutating)
        max_wait = min(self.config.request_timeout / 4, 60.0)
        return PriorityAndFairness(self.objects, self.clock, reading + mutating, max_wait, self.metrics.instruments)

    @property
    def flags(self) -> dict[str, object]:
        """The flags that the server was started with, by kube-apiserver's names."""
        return {name: value for name, value in _flags(self.config) if name not in _NO_FLAGS}

    def _own_address(self) -> tuple[str, int]:
        host, _, port = self.address.rpartition(":")
        return host.strip("[]"), int(port)

    def now(self) -> float:
        return self.clock.now()

    def _stored(self, resource: GroupResource) -> int:
        store = self.scopes.store_for(resource)
        return len(self.storage.list_now(store.prefix).items) if store is not None else 0

    def _control(self) -> ASGIApplication:
        from fakeapiserver.server.control.application import control

        return control(self)

    async def start(self) -> None:
        """Stores the objects of a fresh server and starts the background tasks."""
        config = self.config
        await bootstrap.store_objects(self.scopes, self.clock.now(), config)
        if config.kubernetes_service_node_port:
            self.scopes.restored()  # which marks the port as allocated
        if self._has_authorities:
            await self._trust.sync()
        if self._identity is not None:
            await self._identity.create()
            if self.table.scheme.features.enabled(storage_versions.GATE):
                await storage_versions.publish(self.scopes, self._identity.name)
        if self.config.metrics:
            await self.metrics_apis.serve(self.config.metrics)
        background = [
            self.custom_resources.run,
            self.custom_resources.registration.run,
            self.aggregator.run,
            *([self._identity.run] if self._identity is not None else []),
            *([self._trust.run] if self._has_authorities else []),
            *([self._compact] if self.config.etcd_compaction_interval else []),
            *self._authentication.background,
            *self._authorization.background,
            *(self._auditor.background if self._auditor is not None else ()),
            BootstrapUpkeep(self.scopes, self._bootstrap_objects, self._timers).run,
            ServiceIPRepair(self.scopes, self.objects, self.writer, self._timers).run,
            *([FlowSchemaStatus(self.scopes).run] if config.enable_priority_and_fairness else []),
            *self._controllers(),
        ]
        self._tasks = [asyncio.create_task(run()) for run in background]
        # Upstream's server asks its own /readyz before it stores the service kubernetes, which the metrics count.
        self._health_checks.answer("/readyz", {})

    def _controllers(self) -> Iterator[Callable[[], Coroutine[None, None, None]]]:
        """The one controller of kube-controller-manager that runs in the API server."""
        if any(found.name == POLICY_STATUS for found in named(self.config.controllers)):
            from fakeapiserver.server.upkeep.policy_status import PolicyStatus

            yield PolicyStatus(self.scopes).run

    @property
    def _timers(self) -> Timers:
        return self.clock if isinstance(self.clock, AdjustableClock) else SystemClock()

    def _bootstrap_objects(self) -> Iterator[Object]:
        return bootstrap.wanted(self.table.scheme, self.config)

    @property
    def _has_authorities(self) -> bool:
        """Whether flags name certificate authorities, which upstream publishes for aggregated servers from the start."""
        return bool(self.config.client_ca_file or self.config.requestheader_client_ca_file)

    async def _compact(self) -> None:
        """Once an interval, forgets the history before the previous one. Runs until cancelled (upstream: storage/etcd3/compact.go)."""
        known = 0
        while True:
            await asyncio.sleep(self.config.etcd_compaction_interval)
            self.storage.compact(min(known, self.storage.revision))  # restoring a snapshot may have lowered it
            known = self.storage.revision

    async def _tell_aggregated_servers(self) -> None:
        """Publishes the server's own authorities when the first aggregated server appears. Runs until cancelled."""
        if not self._has_authorities:
            await self._trust.sync()
            await self._trust.run()

    def sign_token(self, claims: Mapping[str, Any]) -> str:
        """A token with these claims, signed with this server's key. OSError and ValueError for an unusable key."""
        return self._issuer.keys.sign(claims)

    def service_account_token(self, namespace: str, name: str, lifetime: int, audiences: Sequence[str] = ()) -> str:
        """A token as a TokenRequest returns it, valid for `lifetime` seconds. ValueError: there is no such account."""
        from fakeapiserver.endpoints.subresources.token_request import token_claims

        account = self.objects.get("serviceaccounts", namespace, name)
        if account is None:
            raise ValueError(f"there is no service account {namespace}/{name}: create it first")
        private = {"namespace": namespace, "serviceaccount": {"name": name, "uid": account["metadata"]["uid"]}}
        wanted = audiences or self._issuer.audiences
        return self._issuer.keys.sign(token_claims(self._issuer, private, wanted, self.clock.now(), lifetime))

    async def advance(self, seconds: float) -> None:
        """Moves the clock forward; after each moment at which something is due, the controllers come to rest. ValueError for negative
        seconds and for a clock that can't be turned; NotSettled."""
        if not isinstance(self.clock, AdjustableClock):
            raise ValueError("the clock of this server can't be turned")
        await self.clock.advance(seconds, _turn if self.controllers is None else self.controllers.settle)

    def snapshot(self) -> Snapshot:
        """The present state of everything stored. No copy is made, since objects never change."""
        return self.storage.snapshot()

    async def revert(self, snapshot: Snapshot) -> None:
        """Brings a state back by writes, which controllers see as events. The clients' open watches end before."""
        self.scopes.end_watches_of_clients()
        self.storage.revert(snapshot)
        await self._restored()

    async def restore(self, snapshot: Snapshot) -> None:
        """Restores a state. Revisions go on rising, and every open watch ends, so that clients list again."""
        self.storage.restore(snapshot)
        await self._restored()

    async def _restored(self) -> None:
        self.scopes.restored()
        await self.custom_resources.sync()
        await self.metrics_apis.serve(self.metrics_apis.served)

    async def stop(self) -> None:
        """Ends watches and background tasks."""
        self.shutting_down = True
        self.storage.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def finish(self) -> None:
        """Called after the last request: flushes audit events and closes connections to webhooks."""
        self._to_webhooks.close()
        if self._auditor is not None:
            await self._auditor.flush()
