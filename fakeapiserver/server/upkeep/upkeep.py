"""Maintains a server's own objects: it stores the objects of a fresh cluster, and keeps them in order.

Upstream: pkg/controlplane/instance.go (InstallAPIs, PostStartHooks).
"""

import asyncio
from collections.abc import Callable, Iterator

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.clock import AdjustableClock, SystemClock, Timers
from fakeapiserver.controller_manager.descriptor import named
from fakeapiserver.registry.core.service.ports import NodePorts
from fakeapiserver.server.background_task import Run
from fakeapiserver.server.filters.flowcontrol.schema_status import FlowSchemaStatus
from fakeapiserver.server.loopback import Loopback
from fakeapiserver.server.options.config import POLICY_STATUS, Config
from fakeapiserver.server.proxies.front_proxy import ClusterAuthenticationTrust
from fakeapiserver.server.upkeep import bootstrap, storage_versions
from fakeapiserver.server.upkeep.bootstrap_upkeep import BootstrapUpkeep
from fakeapiserver.server.upkeep.event_expiry import EventExpiry
from fakeapiserver.server.upkeep.identity import IDENTITY, IdentityLease
from fakeapiserver.server.upkeep.ip_repair import ServiceIPRepair
from fakeapiserver.server.upkeep.policy_status import PolicyStatus
from fakeapiserver.server.upkeep.port_repair import NodePortRepair
from fakeapiserver.storage.memory import MemoryStorage

# Runs until it is cancelled.


class Upkeep:
    """`store` runs once, before the server is ready; `background` lists what runs while it is.

    address: returns the server's host and port.
    """

    def __init__(
        self,
        config: Config,
        storage: MemoryStorage,
        loopback: Loopback,
        trust: ClusterAuthenticationTrust,
        address: Callable[[], str],
        node_ports: NodePorts,
    ) -> None:
        scopes, clock = loopback.scopes, loopback.scopes.clock
        self._config = config
        self._clock = clock
        self._storage = storage
        self._scopes = scopes
        self._trust = trust
        self._features = scopes.table.scheme.features
        self._identity = IdentityLease(scopes, address) if self._features.enabled(IDENTITY) else None
        timers: Timers = clock if isinstance(clock, AdjustableClock) else SystemClock()
        self._bootstrap = BootstrapUpkeep(scopes, self._bootstrap_objects, timers)
        self._node_ports = node_ports
        self._port_repair = (
            NodePortRepair(scopes, node_ports, loopback.writer, timers) if node_ports.is_shared else None
        )
        self._events = EventExpiry(scopes, timers, config.etcd.event_ttl)
        self._ip_repair = ServiceIPRepair(scopes, loopback.objects, loopback.writer, timers)

    def check_flags(self) -> None:
        """Logs a warning for a flag that has no effect, because the state with which the server starts says something else."""
        if "service-cluster-ip-range" in self._config.given:
            self._bootstrap.warn_of_another_range()

    async def store(self) -> None:
        """Stores the objects of a fresh server."""
        await self.restored()
        await bootstrap.store_objects(self._scopes, self._clock.now(), self._config)
        if self._config.kubernetes_service_node_port:
            await self._node_ports.hold([self._config.kubernetes_service_node_port])
        if self._has_authorities:
            await self._trust.sync()
        if self._identity is not None:
            await self._identity.create()
            if self._features.enabled(storage_versions.GATE):
                await storage_versions.publish(self._scopes, self._identity.name)

    async def restored(self) -> None:
        """Brings what servers share beside objects up to date with the objects."""
        if self._port_repair is not None:
            await self._port_repair.repair()

    @property
    def background(self) -> list[Run]:
        return [
            *([self._identity.run] if self._identity is not None else []),
            *([self._trust.run] if self._has_authorities else []),
            *([self._compact] if self._config.etcd_compaction_interval and not self._config.etcd.servers else []),
            *([self._events.run] if not self._config.etcd.servers else []),
            self._bootstrap.run,
            self._ip_repair.run,
            *([self._port_repair.run] if self._port_repair is not None else []),
            *([FlowSchemaStatus(self._scopes).run] if self._config.enable_priority_and_fairness else []),
            *self._controllers(),
        ]

    async def publish_authorities(self) -> None:
        """Publishes the server's own authorities when the first aggregated server appears. Runs until cancelled."""
        if not self._has_authorities:
            await self._trust.sync()
            await self._trust.run()

    @property
    def _has_authorities(self) -> bool:
        """Reports whether flags name certificate authorities, which upstream publishes for aggregated servers from the start."""
        return bool(self._config.client_ca_file or self._config.requestheader_client_ca_file)

    def _bootstrap_objects(self) -> Iterator[Object]:
        return bootstrap.wanted(self._scopes.table.scheme, self._config)

    def _controllers(self) -> Iterator[Run]:
        """Yields the one controller of kube-controller-manager that runs in the API server."""
        if any(controller.name == POLICY_STATUS for controller in named(self._config.controllers)):
            yield PolicyStatus(self._scopes).run

    async def _compact(self) -> None:
        """Forgets the history before the previous interval, once an interval (upstream: storage/etcd3/compact.go)."""
        previous = 0
        while True:
            await asyncio.sleep(self._config.etcd_compaction_interval)
            await self._storage.compact(
                min(previous, self._storage.revision)
            )  # restoring a snapshot may have lowered it
            previous = self._storage.revision
