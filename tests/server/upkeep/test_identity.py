"""The Lease that a server keeps of itself, and those of others that it removes."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.timestamp import rfc3339_micro
from fakeapiserver.clock import AdjustableClock
from fakeapiserver.server.apiserver import APIServer
from fakeapiserver.server.options.config import Config
from fakeapiserver.server.upkeep.bootstrap import store_object
from fakeapiserver.server.upkeep.identity import IdentityLease, api_server_id

LEASES = GroupResource("coordination.k8s.io", "leases")


class StoppedClock:
    time = 1_800_000_000.25

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time


class Server:
    """A server that has just started, its clock, and its own lease."""

    def __init__(self) -> None:
        self.clock = StoppedClock()
        self.api = APIServer(Config(secure_port=6443), clock=self.clock)
        self.identity = IdentityLease(self.api.scopes, lambda: "10.1.2.3:6443")

    def leases(self) -> dict[str, dict[str, Any]]:
        return {lease["metadata"]["name"]: lease for lease in self.api.objects.list(str(LEASES), "kube-system")}

    def own(self) -> dict[str, Any]:
        (lease,) = self.leases().values()
        return lease

    async def put(self, name: str, labels: dict[str, str], spec: dict[str, Any]) -> None:
        scope = self.api.scopes.lookup("coordination.k8s.io", "v1", "leases")
        assert scope is not None
        meta = {"name": name, "namespace": "kube-system", "labels": labels}
        await store_object(scope, {"metadata": meta, "spec": spec}, "2026-01-01T00:00:00Z")


def with_server(act: Callable[[Server], Awaitable[None]]) -> None:
    async def main() -> None:
        server = Server()
        await server.api.start()
        await act(server)
        await server.api.stop()

    asyncio.run(main())


def test_a_fresh_server_has_one_lease_with_its_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "vm")

    async def act(server: Server) -> None:
        lease = server.own()
        assert lease["metadata"]["name"] == api_server_id("vm") == "apiserver-wlv32tlttr4jl3gtroqexyxapa"
        assert lease["metadata"]["labels"] == {
            "apiserver.kubernetes.io/identity": "kube-apiserver",
            "kubernetes.io/hostname": "vm",
        }
        assert lease["spec"]["holderIdentity"].startswith("apiserver-wlv32tlttr4jl3gtroqexyxapa_")
        assert lease["spec"]["leaseDurationSeconds"] == 3600
        assert lease["spec"]["renewTime"] == "2027-01-15T08:00:00.250000Z"

    with_server(act)


def test_a_renewal_changes_times_and_the_address_only() -> None:
    async def act(server: Server) -> None:
        before = server.own()
        server.clock.time += 10
        await server.identity.renew()
        after = server.own()
        assert after["spec"]["renewTime"] == "2027-01-15T08:00:10.250000Z"
        assert after["metadata"]["annotations"] == {"kubernetes.io/peer-advertise-address": "10.1.2.3:6443"}
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        (entry,) = after["metadata"]["managedFields"]
        assert entry == before["metadata"]["managedFields"][0] | {"time": "2027-01-15T08:00:10Z"}

    with_server(act)


def test_a_lease_that_was_deleted_comes_back() -> None:
    async def act(server: Server) -> None:
        name = server.own()["metadata"]["name"]
        await server.api.storage.delete(f"/registry/leases/kube-system/{name}")
        await server.identity.renew()
        assert server.own()["metadata"]["name"] == name

    with_server(act)


@pytest.mark.parametrize(
    ("age", "labels", "kept"),
    [
        (3599, {"apiserver.kubernetes.io/identity": "kube-apiserver"}, True),
        (3601, {"apiserver.kubernetes.io/identity": "kube-apiserver"}, False),
        (3601, {"apiserver.kubernetes.io/identity": "another"}, True),
        (3601, {}, True),
        (None, {"apiserver.kubernetes.io/identity": "kube-apiserver"}, False),
    ],
)
def test_leases_of_servers_that_are_gone_are_removed(age: int | None, labels: dict[str, str], kept: bool) -> None:
    async def act(server: Server) -> None:
        spec = {"leaseDurationSeconds": 3600}
        renewed = {} if age is None else {"renewTime": rfc3339_micro(server.clock.time - age)}
        await server.put("other", labels, spec | renewed)
        await server.identity.collect()
        assert ("other" in server.leases()) == kept
        assert len(server.leases()) == 1 + kept

    with_server(act)


@pytest.mark.parametrize(
    ("ahead", "messages"),
    [
        (4, []),
        (
            63,
            [
                "the clock of other on vm-2 is 63 s ahead of this server's: set both by NTP, or leases, tokens and certificates end"
                " too early or too late"
            ],
        ),
        (-500, []),
    ],
)
def test_a_clock_that_is_ahead_is_mentioned_once(
    ahead: int, messages: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    async def act(server: Server) -> None:
        labels = {"apiserver.kubernetes.io/identity": "kube-apiserver", "kubernetes.io/hostname": "vm-2"}
        await server.put("other", labels, {"renewTime": rfc3339_micro(server.clock.time + ahead)})
        server.identity.compare_clocks()
        server.identity.compare_clocks()

    with_server(act)
    assert [message for message in caplog.messages if "clock" in message] == messages


@pytest.mark.parametrize("stopped", [True, False])
def test_a_stopped_clock_stops_renewals(stopped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Real time must change nothing while the clock stands still, so that two runs with one seed are equal."""
    monkeypatch.setattr("fakeapiserver.server.upkeep.identity._RENEW_INTERVAL", 0.0)

    async def main() -> None:
        api = APIServer(Config(secure_port=6443), clock=AdjustableClock(1_800_000_000.0 if stopped else None))
        await api.start()
        identity = IdentityLease(api.scopes, lambda: "10.1.2.3:6443")
        before = api.storage.revision
        running = asyncio.ensure_future(identity.run())
        for _ in range(20):
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert (api.storage.revision == before) is stopped
        await api.stop()

    asyncio.run(main())
