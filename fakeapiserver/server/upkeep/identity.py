"""The Lease that says that this API server lives, renewed every ten seconds; those of servers that died are collected.

Upstream: k8s.io/apiserver/pkg/server/config.go (APIServerID), pkg/controlplane/apiserver/server.go,
k8s.io/component-helpers/apimachinery/lease, pkg/controlplane/controller/apiserverleasegc.
"""

import asyncio
import base64
import hashlib
import logging
import socket
from collections.abc import Callable, Iterator
from typing import Any, Final

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.timestamp import rfc3339, rfc3339_micro, seconds_of
from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.clock import AdjustableClock
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.registry.generic.deletion import Deletion
from fakeapiserver.registry.generic.write_request import WriteRequest
from fakeapiserver.server.upkeep.bootstrap import store_object
from fakeapiserver.storage.interface import KeyExists

log = logging.getLogger(__name__)

# The gate.
IDENTITY: Final = "APIServerIdentity"

_LEASES: Final = GroupResource("coordination.k8s.io", "leases")
_NAMESPACE: Final = "kube-system"
_COMPONENT: Final = "kube-apiserver"
_IDENTITY: Final = "apiserver.kubernetes.io/identity"
_HOSTNAME: Final = "kubernetes.io/hostname"
_PEER_ADDRESS: Final = "kubernetes.io/peer-advertise-address"
_DURATION: Final = 3600
_RENEW_INTERVAL: Final = 10.0
_COLLECT_INTERVAL: Final = 3600.0
# Seconds by which a clock may be ahead before the log mentions it.
_MAX_SKEW: Final = 5.0
_USER: Final = UserInfo("system:apiserver", groups=("system:masters",))
_OWNED: Final = {
    "f:metadata": {
        "f:annotations": {".": {}, f"f:{_PEER_ADDRESS}": {}},
        "f:labels": {".": {}, f"f:{_IDENTITY}": {}, f"f:{_HOSTNAME}": {}},
    },
    "f:spec": {"f:holderIdentity": {}, "f:leaseDurationSeconds": {}, "f:renewTime": {}},
}


def api_server_id(hostname: str) -> str:
    """The same after a restart on the same machine: `apiserver-` and a hash.

    >>> api_server_id("vm")
    'apiserver-wlv32tlttr4jl3gtroqexyxapa'
    """
    told = b"".join(len(part).to_bytes(2, "big") + part for part in (hostname.encode(), _COMPONENT.encode()))
    return "apiserver-" + base64.b32encode(hashlib.sha256(told).digest()[:16]).decode().rstrip("=").lower()


class IdentityLease:
    """The server's Lease. `address` returns the current host:port of this server; `name` is the server's ID."""

    def __init__(self, scopes: RequestScopes, address: Callable[[], str]) -> None:
        self._scopes = scopes
        self._address = address
        self._hostname = socket.gethostname()
        self.name = api_server_id(self._hostname)
        self._holder = f"{self.name}_{scopes.chance.uid('identity')}"
        self._ahead: set[str] = set()  # the servers whose clocks the log has mentioned

    async def create(self) -> None:
        """Straight into storage, as a server that starts has it."""
        now = self._scopes.clock.now()
        entry: Object = {
            "manager": _COMPONENT,
            "operation": "Update",
            "apiVersion": "coordination.k8s.io/v1",
            "time": "",
            "fieldsType": "FieldsV1",
            "fieldsV1": _OWNED,
        }
        lease = self._lease({"metadata": {"name": self.name, "namespace": _NAMESPACE}}, now)
        lease["metadata"]["managedFields"] = [entry]
        try:
            await store_object(self._scope(), lease, rfc3339(now))
        except KeyExists:  # of an earlier server of this machine
            await self.renew()

    async def run(self) -> None:
        """Renews and collects until cancelled; not while the clock stands still, when real time must change nothing."""
        clock = self._scopes.clock
        collect_at = clock.monotonic() + _COLLECT_INTERVAL
        while True:
            self.compare_clocks()
            await asyncio.sleep(_RENEW_INTERVAL)
            if isinstance(clock, AdjustableClock) and clock.stopped:
                continue
            await self.renew()
            if clock.monotonic() >= collect_at:
                collect_at = clock.monotonic() + _COLLECT_INTERVAL
                await self.collect()

    async def renew(self) -> None:
        """Renews the Lease, and creates it again if it was removed."""
        scope = self._scope()
        assert scope.store is not None

        def renewed(current: Object | None) -> Object:
            lease = current or {
                "kind": scope.gvk.kind,
                "apiVersion": str(scope.gvk.group_version),
                "metadata": {"name": self.name, "namespace": _NAMESPACE},
            }
            return self._lease(lease, self._scopes.clock.now())

        request = WriteRequest(scope.kind, _USER, _COMPONENT, _NAMESPACE, self.name)
        try:
            await scope.store.write(request, renewed, create=True)
        except StatusError as error:
            log.warning("the lease of this server could not be renewed: %s", error)

    async def collect(self) -> None:
        """Removes the leases of servers that have not renewed theirs in time."""
        store = self._scope().store
        assert store is not None
        for lease in self._leases():
            if _is_expired(lease.get("spec") or {}, self._scopes.clock.now()):
                await store.deleter.remove(_NAMESPACE, metadata(lease)["name"], Deletion())

    def compare_clocks(self) -> None:
        """Logs once for each server on the same etcd whose clock is ahead: it has renewed its lease in this one's future."""
        now = self._scopes.clock.now()
        for lease in self._leases():
            name, renewed = metadata(lease)["name"], seconds_of((lease.get("spec") or {}).get("renewTime") or "")
            if renewed is not None and renewed > now + _MAX_SKEW and name not in self._ahead:
                self._ahead.add(name)
                host = (metadata(lease).get("labels") or {}).get(_HOSTNAME, "")
                log.warning(
                    "the clock of %s on %s is %.0f s ahead of this server's: set both by NTP, or leases, tokens and certificates end"
                    " too early or too late",
                    *(name, host, renewed - now),
                )

    def _leases(self) -> Iterator[Object]:
        """Yields the leases of all API servers."""
        store = self._scope().store
        assert store is not None
        for item in store.storage.list_now(store.collection(_NAMESPACE)).items:
            lease = store.decode(item.value)
            if (metadata(lease).get("labels") or {}).get(_IDENTITY) == _COMPONENT:
                yield lease

    def _scope(self) -> RequestScope:
        scope = self._scopes.lookup(_LEASES.group, "v1", _LEASES.resource)
        assert scope is not None
        return scope

    def _lease(self, lease: Object, now: float) -> dict[str, Any]:
        meta = metadata(lease)
        labels = {**(meta.get("labels") or {}), _IDENTITY: _COMPONENT, _HOSTNAME: self._hostname}
        annotations = {**(meta.get("annotations") or {}), _PEER_ADDRESS: self._address()}
        spec = {
            **(lease.get("spec") or {}),
            "holderIdentity": self._holder,
            "leaseDurationSeconds": _DURATION,
            "renewTime": rfc3339_micro(now),
        }
        return {**lease, "metadata": {**meta, "labels": labels, "annotations": annotations}, "spec": spec}


def _is_expired(spec: Object, now: float) -> bool:
    renewed, duration = seconds_of(spec.get("renewTime") or ""), spec.get("leaseDurationSeconds")
    return renewed is None or duration is None or renewed + duration < now
