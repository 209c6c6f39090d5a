"""Tests what a manager runs: the order in which it starts and stops, what needs the leadership, and how the manager ends."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from fakeapiserver import Cluster
from fakeapiserver.client import kubeconfig
from fakeapiserver.client.dynamic import DynamicClient
from fakeapiserver.client.errors import StatusError
from fakeapiserver.client.leaderelection import LEASES
from fakeapiserver.client.rest import RESTClient
from fakeapiserver.client.rest_mapper import NoMatchError
from fakeapiserver.client.wait import poll_until
from fakeapiserver.clock import SystemClock
from fakeapiserver.controller_runtime import (
    CacheOptions,
    ControllerOptions,
    Manager,
    ManagerOptions,
    ReconcilerFunc,
    Request,
    controller_managed_by,
    gvk,
    source,
)
from fakeapiserver.controller_runtime import manager as manager_module
from fakeapiserver.controller_runtime.event import Event
from fakeapiserver.controller_runtime.handler import EventHandler, Queue

CONFIG_MAP, NAMESPACE = gvk("v1", "ConfigMap"), gvk("v1", "Namespace")
LEASE = {"leader_election": True, "leader_election_id": "operator", "retry_period": 0.05}


class Run:
    """A runnable that records when it begins and ends, with a configurable task in between."""

    def __init__(self, name: str, notes: list[str], *, leads: bool | None = None) -> None:
        self.name = name
        self.notes = notes
        self.failure: Exception | None = None
        self.may_end = asyncio.Event()
        self.may_end.set()
        if leads is not None:
            self.need_leader_election = leads

    async def run(self) -> None:
        self.notes.append(f"+{self.name}")
        if self.failure is not None:
            raise self.failure
        try:
            await asyncio.Event().wait()
        finally:
            await self.may_end.wait()
            self.notes.append(f"-{self.name}")


def managed(cluster: Cluster, **options: Any) -> Manager:
    cache = CacheOptions(namespaces=["default"])
    return Manager(kubeconfig.load(cluster.kubeconfig), ManagerOptions(cache=cache, **options))


@asynccontextmanager
async def running(manager: Manager) -> AsyncIterator["asyncio.Task[None]"]:
    task = asyncio.ensure_future(manager.run())
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await task


def config_map(**metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default", **metadata}}


class HeldUp:
    """The time of a process that seconds are taken from, as if it had been stopped."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def time(self) -> float:
        return time.monotonic() + self.seconds


class Slow:
    """A source that takes its time."""

    def __str__(self) -> str:
        return "slow source"

    async def start(self, queue: Queue) -> None:
        """Begins, and goes on."""

    async def wait_for_sync(self) -> None:
        await asyncio.Event().wait()

    def stop(self) -> None:
        """Does nothing."""


async def seen(notes: list[str], *wanted: str) -> None:
    async def is_there() -> bool:
        return set(wanted) <= set(notes)

    await poll_until(is_there, interval=0.01, timeout=60)


async def lease(cluster: Cluster, **spec: Any) -> dict[str, Any]:
    """Changes the Lease, or creates one with another holder, and returns it."""
    async with RESTClient(kubeconfig.load(cluster.kubeconfig)) as rest:
        leases = DynamicClient(rest).resource(LEASES, "default")
        try:
            found = await leases.get("operator")
        except StatusError:
            held = {"holderIdentity": "another", "leaseDurationSeconds": 600}
            metadata = {"name": "operator", "namespace": "default"}
            api_version = "coordination.k8s.io/v1"
            return await leases.create({"apiVersion": api_version, "kind": "Lease", "metadata": metadata, "spec": held})
        return await leases.patch("operator", {"spec": spec}) if spec else found


def test_what_needs_no_leadership_begins_and_ends_first(fake_cluster: Cluster) -> None:
    async def scenario() -> None:
        notes: list[str] = []
        manager = managed(fake_cluster)
        for run in (Run("leads", notes), Run("others", notes, leads=False), Run("leads too", notes, leads=True)):
            manager.add(run)
        async with running(manager) as task:
            await seen(notes, "+leads too")
            assert manager.elected.is_set()
            late = Run("late", notes)
            manager.add(late)
            await seen(notes, "+late")
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert notes[:3] == ["+others", "+leads", "+leads too"]
        assert notes[4] == "-others"
        assert sorted(notes[5:]) == ["-late", "-leads", "-leads too"]
        with pytest.raises(RuntimeError, match="can't accept new runnable as stop procedure is already engaged"):
            manager.add(late)
        with pytest.raises(RuntimeError, match="manager already started"):
            await manager.run()

    asyncio.run(scenario())


def test_only_the_leader_runs_what_needs_the_leadership(fake_cluster: Cluster) -> None:
    async def scenario() -> None:
        notes: list[str] = []
        manager = managed(fake_cluster, **LEASE)
        await lease(fake_cluster)

        async def reconcile(request: Request) -> None:
            notes.append("reconcile")

        def watch(name: str, **options: Any) -> None:
            def note(event: Event, queue: Queue) -> None:
                if f"{name} sees" not in notes:
                    notes.append(f"{name} sees")

            handler: EventHandler = note
            builder = controller_managed_by(manager).named(name).watches(CONFIG_MAP, handler)
            builder.with_options(ControllerOptions(**options)).complete(ReconcilerFunc(reconcile))

        watch("cold")
        watch("warm", enable_warmup=True)
        watch("free", need_leader_election=False)
        manager.add(Run("leads", notes))
        manager.add(Run("others", notes, leads=False))
        await manager.client.create(config_map())
        async with running(manager):
            await seen(notes, "+others", "warm sees", "free sees")
            assert not {"+leads", "cold sees"} & set(notes)
            assert not manager.elected.is_set()
            await lease(fake_cluster, holderIdentity="")
            await seen(notes, "+leads", "cold sees")

    asyncio.run(scenario())


def test_who_loses_the_leadership_ends_at_once(fake_cluster: Cluster) -> None:
    """In the middle of a reconcile, whatever time there would be for a graceful end."""

    async def scenario() -> None:
        notes: list[str] = []
        manager = managed(fake_cluster, **LEASE, graceful_shutdown_timeout=-1.0)
        begun = asyncio.Event()

        async def reconcile(request: Request) -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                notes.append("broken off")

        controller_managed_by(manager).for_(CONFIG_MAP).complete(ReconcilerFunc(reconcile))
        manager.add(Run("leads", notes))
        await manager.client.create(config_map())
        async with running(manager) as task:
            await begun.wait()
            await lease(fake_cluster, holderIdentity="another")
            with pytest.raises(RuntimeError, match=r"^leader election lost$"):
                await task
        assert sorted(notes) == ["+leads", "-leads", "broken off"]
        assert (await lease(fake_cluster))["spec"]["holderIdentity"] == "another"

    asyncio.run(scenario())


def test_nothing_is_begun_once_the_lease_is_over(fake_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever delayed the process: work that was ready before runs next in the event loop, before the timer that ends the lease."""

    async def scenario() -> None:
        begun: list[Request] = []
        held_up = HeldUp()
        monkeypatch.setattr(SystemClock, "monotonic", lambda _: held_up.time())
        monkeypatch.setattr(asyncio.get_running_loop(), "time", held_up.time)
        manager = managed(fake_cluster, **LEASE, lease_duration=15.0, renew_deadline=10.0)

        async def reconcile(request: Request) -> None:
            begun.append(request)
            held_up.seconds += 11

        for name in ("one", "another", "third"):
            await manager.client.create(config_map(name=name))
        controller_managed_by(manager).for_(CONFIG_MAP).complete(ReconcilerFunc(reconcile))
        async with running(manager) as task:
            with pytest.raises(RuntimeError, match=r"^leader election lost$"):
                await task
        assert len(begun) == 1

    asyncio.run(scenario())


def test_the_lease_is_given_back_when_nothing_runs_any_more(fake_cluster: Cluster) -> None:
    async def scenario() -> None:
        notes: list[str] = []
        manager = managed(
            fake_cluster,
            **LEASE,
            leader_election_release_on_cancel=True,
            leader_election_labels={"by": "test"},
        )
        slow = Run("leads", notes)
        slow.may_end.clear()
        manager.add(slow)
        async with running(manager) as task:
            await seen(notes, "+leads")
            task.cancel()
            await asyncio.sleep(0.1)
            found = await lease(fake_cluster)
            assert (bool(found["spec"]["holderIdentity"]), notes) == (True, ["+leads"])
            slow.may_end.set()
            await asyncio.gather(task, return_exceptions=True)
        found = await lease(fake_cluster)
        assert (found["spec"]["holderIdentity"], notes) == ("", ["+leads", "-leads"])
        assert found["metadata"]["labels"] == {"by": "test"}

    asyncio.run(scenario())


def test_leaders_are_named_in_events(fake_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manager_module, "_LAST_SECONDS", 60.0)  # on a busy machine writing them takes time

    async def scenario() -> None:
        manager = managed(fake_cluster, **LEASE)
        async with running(manager):
            await manager.elected.wait()
        async with RESTClient(kubeconfig.load(fake_cluster.kubeconfig)) as rest:
            found = (await rest.request("GET", "/api/v1/namespaces/default/events")).json()["items"]
        holder = (await lease(fake_cluster))["spec"]["holderIdentity"]
        assert {(row["involvedObject"]["kind"], row["reason"], row["message"]) for row in found} == {
            ("Lease", "LeaderElection", f"{holder} became leader"),
            ("Lease", "LeaderElection", f"{holder} stopped leading"),
        }

    asyncio.run(scenario())


def test_a_runnable_that_fails_ends_the_manager(fake_cluster: Cluster) -> None:
    async def scenario() -> None:
        notes: list[str] = []
        manager = managed(fake_cluster)
        manager.add(Run("others", notes, leads=False))
        failing = Run("failing", notes)
        failing.failure = ValueError("it failed")
        manager.add(failing)
        with pytest.raises(ValueError, match=r"^it failed$"):
            await manager.run()
        assert notes == ["+others", "+failing", "-others"]

    asyncio.run(scenario())


def test_caches_that_do_not_come_in_time_end_the_manager(fake_cluster: Cluster) -> None:
    async def scenario() -> None:
        manager = managed(fake_cluster)
        options = ControllerOptions(cache_sync_timeout=0.2)
        nothing = ReconcilerFunc(lambda request: asyncio.sleep(0))
        builder = controller_managed_by(manager).named("test").watches_raw_source(Slow())
        builder.with_options(options).complete(nothing)
        with pytest.raises(TimeoutError) as caught:
            await manager.run()
        assert str(caught.value) == (
            "failed to wait for test caches to sync slow source: timed out waiting for cache to be synced for slow source"
        )

    asyncio.run(scenario())


@pytest.mark.fake_cluster(controllers=())  # the owner does not exist: the garbage collector would delete what it owns
def test_owners_without_a_namespace_are_asked_for_without_one(fake_cluster: Cluster) -> None:
    async def scenario() -> None:
        manager = managed(fake_cluster)
        asked: asyncio.Queue[Request] = asyncio.Queue()

        async def reconcile(request: Request) -> None:
            asked.put_nowait(request)

        controller_managed_by(manager).for_(NAMESPACE).owns(CONFIG_MAP).complete(ReconcilerFunc(reconcile))
        owner = await manager.api_reader.get(NAMESPACE, "default")
        reference = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "name": "owner",
            "uid": owner["metadata"]["uid"],
            "controller": True,
        }
        async with running(manager):
            await manager.elected.wait()
            await manager.client.create(config_map(ownerReferences=[reference]))
            async with asyncio.timeout(60):
                while (request := await asked.get()).name != "owner":
                    pass
        assert request == Request("", "owner")

    asyncio.run(scenario())


def test_a_kind_may_come_after_its_controller(fake_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "_RETRY_SECONDS", 0.05)
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "widgets", "kind": "Widget"},
            "scope": "Namespaced",
            "versions": [version],
        },
    }

    async def scenario() -> None:
        manager = managed(fake_cluster)
        widget, asked = gvk("example.com/v1", "Widget"), asyncio.Event()

        async def reconcile(request: Request) -> None:
            asked.set()

        controller_managed_by(manager).for_(widget).complete(ReconcilerFunc(reconcile))
        async with running(manager) as task:
            await manager.elected.wait()
            await asyncio.sleep(0.2)
            assert not task.done()
            await manager.client.create(definition)
            made = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a", "namespace": "default"}}

            async def is_served() -> bool:
                with suppress(StatusError, NoMatchError):
                    await manager.client.create(made)
                    return True
                return False

            await poll_until(is_served, interval=0.05, timeout=60)
            async with asyncio.timeout(60):
                await asked.wait()

    asyncio.run(scenario())
