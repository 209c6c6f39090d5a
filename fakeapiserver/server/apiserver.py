"""Composes one API server from its parts: storage, tables, admission, auth, the handler chain, the application.

Upstream: cmd/kube-apiserver/app/server.go, pkg/controlplane/instance.go.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apis import scheme
from fakeapiserver.apis.resource_table import ResourceTable
from fakeapiserver.chance import Chance
from fakeapiserver.clock import AdjustableClock, Clock, SystemClock, Timers
from fakeapiserver.endpoints.negotiation.media_types import SUPPORTED, WITH_CBOR
from fakeapiserver.endpoints.request import ASGIApplication
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.endpoints.services import Services, SimulatedNodes
from fakeapiserver.endpoints.subresources import token_request
from fakeapiserver.evidence import request_log
from fakeapiserver.evidence.request_log import NoRequestLog, RequestLog, RequestLogging
from fakeapiserver.evidence.timeline import recorder, saved
from fakeapiserver.registry.core.service.ports import NodePorts
from fakeapiserver.server import background_task
from fakeapiserver.server.access import new_access
from fakeapiserver.server.aggregator.aggregator import Aggregator
from fakeapiserver.server.apiextensions.definitions import CustomResources
from fakeapiserver.server.app import Application
from fakeapiserver.server.chain import HandlerChain
from fakeapiserver.server.control import application
from fakeapiserver.server.filters.audit import options as audit
from fakeapiserver.server.filters.audit.counts import AuditCounts
from fakeapiserver.server.filters.audit.interface import NoAuditing
from fakeapiserver.server.filters.fault_injection import FaultInjection
from fakeapiserver.server.filters.flowcontrol.limits import Limiter, new_limiter
from fakeapiserver.server.http.client_authorities import ClientAuthorities
from fakeapiserver.server.loopback import Loopback
from fakeapiserver.server.metrics import Metrics
from fakeapiserver.server.metrics_apis.apis import MetricsAPIs
from fakeapiserver.server.options.config import CBOR_SERVING_AND_STORAGE, Config
from fakeapiserver.server.options.flags import flags
from fakeapiserver.server.pages.fixed_paths import FixedPaths
from fakeapiserver.server.pages.health import ETCD_CHECKS, INFORMER_SYNC, SHUTDOWN, HealthChecks
from fakeapiserver.server.proxies.clients import kubelet_client
from fakeapiserver.server.proxies.front_proxy import ClusterAuthenticationTrust, FrontProxy
from fakeapiserver.server.services import NodeClients, new_services
from fakeapiserver.server.upkeep import storage_versions
from fakeapiserver.server.upkeep.upkeep import Upkeep
from fakeapiserver.storage.interface import StoredObject
from fakeapiserver.storage.memory import MemoryStorage
from fakeapiserver.storage.mvcc import MVCC, Snapshot
from fakeapiserver.storage.read_only import ReadOnlyMemoryStorage
from fakeapiserver.transport.key_pair import KeyPair
from fakeapiserver.transport.webhook import WebhookConnections

if TYPE_CHECKING:
    from fakeapiserver.controller_manager.manager import ControllerManager
    from fakeapiserver.evidence.timeline.recorder import Recorder
    from fakeapiserver.nodes.simulation import Simulation
    from fakeapiserver.server.data_directory import DataDirectory
    from fakeapiserver.server.etcd.backend import EtcdBackend
    from fakeapiserver.server.forks import Forks
    from fakeapiserver.server.outage import Listener
    from fakeapiserver.server.page_port import PagePort


class APIServer:
    """An API server without its sockets: `application` is what a listener runs.

    Call order: construct (cheap, anywhere), then `await start()` in the event loop that serves it, and `await stop()`.
    """

    # What readyz waits for: what runs beside this server, if anything.
    starting = False
    shutting_down = False
    # The controllers and simulated nodes that run beside it, if any.
    controllers: "ControllerManager | None" = None
    simulation: "Simulation | None" = None
    # What serves it at a port, if that is this process's.
    listener: "Listener | None" = None
    # The page in a browser, if it is served.
    page: "PagePort | None" = None
    # The forks of it that run in this process, if it is served at a port.
    forks: "Forks | None" = None
    # What an earlier server with this state has recorded, if that is to be shown, too.
    earlier_recording = b""
    # What distinguishes it in its page, e.g. "state.json" or "Fork of …", if anything does.
    title = ""
    simulated_nodes: SimulatedNodes | None = None
    # Returns the certificate for kubelets of other processes, if no flag names one.
    kubelet_identity: Callable[[], KeyPair | None] = staticmethod(lambda: None)
    # Waits for the controllers and for whatever else runs by this server's clock; None: the controllers are all.
    rest: Callable[[], Awaitable[None]] | None = None

    def __init__(
        self,
        config: Config,
        *,
        clock: Clock | None = None,
        admin_token: str = "",
        client_ca: bytes = b"",
        front_proxy: FrontProxy | None = None,
        storage: MVCC | None = None,
        directory: "DataDirectory | None" = None,
        etcd: "EtcdBackend | None" = None,
    ) -> None:
        self.config = config
        self.clock = clock or SystemClock()
        self._is_fresh = storage is None
        self.chance = Chance(config.seed, 0 if storage is None else storage.revision)
        self._etcd = etcd
        self.storage = self._new_storage(storage, directory)
        self.started = self.clock.now()
        self.address = f"{config.bind_address}:{config.secure_port}"
        self._tasks: list[asyncio.Task[None]] = []
        served = scheme.serving(
            config.kubernetes_version, config.feature_gates, config.runtime_config, config.emulation
        )
        storage_versions.check(served)
        self.table = ResourceTable(served)
        self.media_types = WITH_CBOR if served.features.enabled(CBOR_SERVING_AND_STORAGE) else SUPPORTED
        self.metrics = Metrics(self.table, self._stored, self.started)
        self._health_checks = HealthChecks(served.features, self.metrics.health_checks)
        self.scopes = self._new_scopes()
        self.storage.count_clients(lambda: bool(self.scopes.watches_of_clients))
        self._loopback = loopback = Loopback(self.scopes)
        self.objects, self.versions, self.writer = loopback.objects, loopback.versions, loopback.writer
        self._to_webhooks = WebhookConnections()
        self.webhooks_moved = self._to_webhooks.moved
        self.client_authorities = ClientAuthorities(client_ca, config.client_ca_file)
        self._front_proxy = (front_proxy or FrontProxy()).heeding(served.features)
        self.access = new_access(
            config, loopback, self.metrics, self.client_authorities, self._front_proxy, admin_token
        )
        self.access_log = self.access.log
        self.custom_resources = CustomResources(self.scopes, self._to_webhooks)
        self.metrics_apis = MetricsAPIs(self.scopes, self.objects, self.custom_resources.registration, self.clock)
        self._upkeep = self._new_upkeep()
        self.aggregator = self._new_aggregator()
        self._auditor = audit.build(config.audit, self.clock, AuditCounts(self.metrics.instruments))
        self.faults = FaultInjection(
            self._timers,
            self.storage,
            self.scopes,
            config.request_timeout,
            self.chance,
            self._to_webhooks,
            self.aggregator.intercept_calls,
        )
        self._request_logging = self._new_request_logging()
        self.recorder = self._new_recorder() if config.is_recorded else None
        self.application = Application(self._new_chain())

    def _new_storage(self, state: MVCC | None, directory: "DataDirectory | None") -> MemoryStorage:
        if self._etcd is not None:
            return self._etcd.new_storage(self.chance, is_read_only=self.config.read_only)
        if self.config.read_only:
            return ReadOnlyMemoryStorage(state, self.chance)
        return (
            MemoryStorage(state, self.chance)
            if directory is None
            else directory.new_storage(self.clock, state, self.chance)
        )

    @cached_property
    def _node_ports(self) -> NodePorts:
        record = self._etcd.port_record if self._etcd is not None else None
        return NodePorts(self.config.service_node_port_range, self.chance, record)

    def _new_scopes(self) -> RequestScopes:
        return RequestScopes(
            table=self.table,
            storage=self.storage,
            clock=self.clock,
            make_services=self._new_services,
            min_request_timeout=self.config.min_request_timeout,
            media_types=self.media_types,
            instruments=self.metrics.instruments,
            chance=self.chance,
            is_read_only=self.config.read_only,
        )

    def _new_services(self) -> Services:
        return new_services(
            self.config,
            self._loopback,
            self.access,
            self._to_webhooks,
            self.custom_resources.served.scope_of,
            NodeClients(lambda: self.simulated_nodes, lambda: kubelet_client(self.config, self.kubelet_identity())),
            self._node_ports,
        )

    def _new_upkeep(self) -> Upkeep:
        trust = ClusterAuthenticationTrust(
            self.scopes, lambda: self.client_authorities.bundle, self._front_proxy.headers
        )
        return Upkeep(self.config, self.storage, self._loopback, trust, lambda: self.address, self._node_ports)

    def _new_aggregator(self) -> Aggregator:
        return Aggregator(
            self.config,
            self._loopback,
            front_proxy=self._front_proxy,
            own_address=self._own_address,
            metrics=self.metrics,
            publish_authorities=self._upkeep.publish_authorities,
            metrics_apis=self.metrics_apis,
        )

    def _new_request_logging(self) -> RequestLogging:
        config, printing = self.config, request_log.print_entry if self.config.prints_requests else None
        if not config.kept_requests and printing is None:
            return NoRequestLog()
        return RequestLog(self.clock, self.storage, config.kept_requests, config.kept_request_bytes, printing)

    def _new_recorder(self) -> "Recorder":
        made = recorder.Recorder(self, self._request_logging, self._auditor or NoAuditing())
        self.faults.on_change = made.faults_changed
        if isinstance(self.clock, AdjustableClock):
            self.clock.on_change = made.clock_changed
        return made

    def _new_chain(self) -> HandlerChain:
        fixed_paths = FixedPaths(
            self.table,
            self.metrics,
            self._health_checks,
            self,
            self._control,
            self.access.issuer,
            lambda: self.aggregator.api_services.priorities,
        )
        features = self.table.scheme.features
        return HandlerChain(
            self.access.authentication.authenticator,
            self.access.of_requests,
            self.scopes,
            fixed_paths,
            self.metrics,
            self.limiter,
            self.config.request_timeout,
            self.aggregator,
            self._auditor or NoAuditing() if self.recorder is None else self.recorder.requests,
            self._request_logging if self.recorder is None else self.recorder.requests,
            self.faults,
            features.enabled("APIResponseCompression"),
            self.media_types if features.at_least("v1.37") else SUPPORTED,
        )

    @cached_property
    def limiter(self) -> Limiter:
        """The limiter of requests."""
        return new_limiter(self.config, self.objects, self.clock, self.metrics.instruments)

    @property
    def request_log(self) -> RequestLog | None:
        """The log of clients' requests; None if it keeps none."""
        log = self._request_logging
        return log if isinstance(log, RequestLog) and self.config.kept_requests else None

    @property
    def _timers(self) -> Timers:
        return self.clock if isinstance(self.clock, AdjustableClock) else SystemClock()

    @property
    def shares_storage(self) -> bool:
        """Reports whether other servers may serve the same objects."""
        return self._etcd is not None

    @property
    def flags(self) -> dict[str, object]:
        """The flags that the server was started with, by kube-apiserver's names."""
        return flags(self.config)

    @property
    def failed_checks(self) -> Collection[str]:
        """The health checks that fail now."""
        return [
            *([] if self._etcd is None or self._etcd.is_healthy else ETCD_CHECKS),
            *([INFORMER_SYNC] if self.starting else []),
            *([SHUTDOWN] if self.shutting_down else []),
        ]

    def _own_address(self) -> tuple[str, int]:
        host, _, port = self.address.rpartition(":")
        return host.strip("[]"), int(port)

    @property
    def nodes(self) -> int:
        """The number of nodes that are simulated from the start."""
        return self.config.nodes

    def now(self) -> float:
        return self.clock.now()

    def _stored(self, resource: GroupResource) -> int:
        store = self.scopes.store_for(resource)
        return len(self.storage.list_now(store.prefix).items) if store is not None else 0

    def _control(self) -> ASGIApplication:
        return application.control(self)

    async def start(self) -> None:
        """Stores the objects of a fresh server, unless it has a state already, and starts the background tasks."""
        if self._etcd is not None:
            self.custom_resources.served.on_published = self._etcd.decode_again
        if self._etcd is not None and await self._etcd.open(self.scopes):
            await self.custom_resources.sync()
            self.scopes.load_allocations()
        if self._is_fresh and not self.config.read_only:
            await self._upkeep.store()
        else:
            self.scopes.load_allocations()
            await self.custom_resources.sync()
        self._upkeep.check_flags()
        if self.config.metrics:
            await self.metrics_apis.serve(self.config.metrics)
        writing = [self.custom_resources.registration.run, self.aggregator.run, *self._upkeep.background]
        background = [
            self.custom_resources.run,
            *self.access.background,
            *(self._auditor.background if self._auditor is not None else ()),
            *(writing if not self.config.read_only else ()),
            *(self._etcd.background(self.config) if self._etcd is not None else ()),
        ]
        if self.recorder is not None:
            if self.earlier_recording:
                saved.begin(self.recorder, self.storage, self.earlier_recording)
            else:
                self.recorder.begin(with_history=not self._is_fresh)
        self._tasks = [background_task.start(run, run.__qualname__) for run in background]
        # Upstream's server asks its own /readyz before it stores the service kubernetes, which the metrics count.
        self._health_checks.answer("/readyz", {})

    def sign_token(self, claims: Mapping[str, Any]) -> str:
        """A token with these claims, signed with this server's key. OSError and ValueError for an unusable key."""
        return self.access.issuer.keys.sign(claims)

    def service_account_token(self, namespace: str, name: str, lifetime: int, audiences: Sequence[str] = ()) -> str:
        """A token as a TokenRequest returns it, valid for `lifetime` seconds. ValueError: there is no such account."""
        account = self.objects.get("serviceaccounts", namespace, name)
        if account is None:
            raise ValueError(f"there is no service account {namespace}/{name}: create it first")
        private = {"namespace": namespace, "serviceaccount": {"name": name, "uid": account["metadata"]["uid"]}}
        wanted = audiences or self.access.issuer.audiences
        return self.access.issuer.keys.sign(
            token_request.token_claims(self.access.issuer, private, wanted, self.clock.now(), lifetime)
        )

    async def advance(self, seconds: float) -> None:
        """Moves the clock forward; after each moment at which something is due, the controllers come to rest. ValueError for negative
        seconds and for a clock that can't be turned; NotSettled."""
        if not isinstance(self.clock, AdjustableClock):
            raise ValueError("the clock of this server can't be turned")
        rest = self.rest or (self._turn if self.controllers is None else self.controllers.settle)
        await rest()  # what has begun belongs to the present time
        await self.clock.advance(seconds, rest)

    async def _turn(self) -> None:
        await asyncio.sleep(0)
        await self.storage.written()

    def recorded(self) -> bytes:
        """Returns what the server has recorded, as a part of a saved state; nothing if it records nothing."""
        return saved.lines(self.recorder) if self.recorder is not None else b""

    def snapshot(self) -> Snapshot:
        """The present state of everything stored. No copy is made, since objects never change."""
        return self.storage.snapshot()

    async def revert(self, snapshot: Snapshot) -> None:
        """Brings a state back by writes, which controllers see as events. The clients' open watches end before."""
        for watch in self.scopes.watches_of_clients:
            watch.end()
        await self.storage.revert(snapshot)
        await self._restored()

    async def restore(self, snapshot: Snapshot, least: int = 0) -> None:
        """Restores a state. Revisions go on rising, above `least`, and every open watch ends, so that clients list again."""
        await self.storage.restore(snapshot, least)
        await self._restored()

    async def serve_definitions(self) -> None:
        """Serves the custom resources of all stored definitions from now on, not when their event arrives."""
        await self.custom_resources.sync()

    async def adopted(self, objects: Sequence[StoredObject], revision: int) -> None:
        """Stores objects of another cluster as they are; `revision` is the newest one there. Every open watch ends."""
        await self.storage.adopt(objects, revision)
        self.scopes.load_allocations()
        await self._restored()

    async def _restored(self) -> None:
        self.scopes.restored()
        await self._upkeep.restored()
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
        """Called after the last request: finishes writes, flushes audit events and closes connections to webhooks."""
        await self.storage.finish()
        self._to_webhooks.close()
        if self._auditor is not None:
            await self._auditor.flush()
