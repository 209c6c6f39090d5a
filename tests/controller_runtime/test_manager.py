"""Managers with controllers against a server: what runs when, what is tried again, how it ends."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from fakeapiserver import Cluster
from fakeapiserver.client import kubeconfig
from fakeapiserver.client.errors import StatusError
from fakeapiserver.client.wait import poll_until
from fakeapiserver.controller_runtime import (
    CacheOptions,
    Client,
    ControllerOptions,
    Manager,
    ManagerOptions,
    ReconcilerFunc,
    Request,
    Result,
    TerminalError,
    controller_managed_by,
    gvk,
)
from fakeapiserver.controller_runtime.controllerutil import (
    OperationResult,
    create_or_patch,
    create_or_update,
    set_controller_reference,
)
from fakeapiserver.controller_runtime.finalizer import Finalizers

# reconciles are counted: no controller writes
pytestmark = pytest.mark.fake_cluster(controllers=())

CONFIG_MAP, SECRET = gvk("v1", "ConfigMap"), gvk("v1", "Secret")
NOTHING = ReconcilerFunc(lambda request: asyncio.sleep(0))


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "labels": {"mine": "yes"}},
        "data": data,
    }


@asynccontextmanager
async def running(manager: Manager) -> AsyncIterator[None]:
    """The manager runs, until the block ends; its failure is the block's."""
    task = asyncio.ensure_future(manager.run())
    elected = asyncio.ensure_future(manager.elected.wait())
    await asyncio.wait((task, elected), return_when=asyncio.FIRST_COMPLETED)
    elected.cancel()
    try:
        if task.done():
            await task
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def managed(cluster: Cluster, **options: Any) -> Manager:
    return Manager(kubeconfig.load(cluster.kubeconfig), ManagerOptions(field_owner="tests", **options))


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


def only_mine(name: str) -> bool:
    return not name.startswith("kube-")


def test_a_controller_brings_back_what_it_owns(fake_cluster: Cluster) -> None:
    async def scenario() -> None:
        manager = managed(fake_cluster)
        seen: asyncio.Queue[str] = asyncio.Queue()

        async def reconcile(request: Request) -> None:
            owner = await manager.client.find(CONFIG_MAP, request.name, request.namespace)
            if owner is not None and only_mine(request.name):
                secret = {
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "metadata": {"name": request.name, "namespace": "default"},
                }
                set_controller_reference(owner, secret)
                await manager.client.apply(secret, force=True)
                seen.put_nowait(request.name)

        controller_managed_by(manager).for_(CONFIG_MAP).owns(SECRET).complete(ReconcilerFunc(reconcile))
        async with running(manager):
            await manager.client.create(config_map("a"))
            assert await seen.get() == "a"
            made = await manager.api_reader.get(SECRET, "a", "default")
            assert made["metadata"]["managedFields"][0]["manager"] == "tests"
            await manager.client.delete(made)
            while await manager.client.find(SECRET, "a", "default") == made:
                await seen.get()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("outcomes", "results"),
    [
        ([Result()], {"success": 1}),
        ([Result(requeue_after=0.01), None], {"requeue_after": 1, "success": 1}),
        ([Result(requeue=True), None], {"requeue": 1, "success": 1}),
        ([ValueError("no"), KeyError("a mistake"), None], {"error": 2, "success": 1}),
        ([TerminalError("never")], {"error": 1}),
        ([caused(ValueError("so"), TerminalError("never"))], {"error": 1}),
        ([ExceptionGroup("both", [ValueError("so"), TerminalError("never")])], {"error": 1}),
        ([asyncio.CancelledError("of something it waited for"), None], {"error": 1, "success": 1}),
    ],
)
def test_what_a_reconciler_answers_decides_what_is_next(
    fake_cluster: Cluster, outcomes: list[Any], results: dict[str, int]
) -> None:
    async def scenario() -> None:
        left, done = list(outcomes), asyncio.Event()

        async def reconcile(request: Request) -> Result | None:
            if not only_mine(request.name):
                return None
            outcome = left.pop(0)
            if not left:
                done.set()
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome  # type: ignore[no-any-return]

        mine = CacheOptions(namespaces=["default"])
        manager = managed(fake_cluster, cache=mine)
        controller_managed_by(manager).for_(CONFIG_MAP).named("test").complete(ReconcilerFunc(reconcile))
        async with running(manager):
            await manager.client.create(config_map("a"))
            await done.wait()
        registry = manager.metrics.registry
        found = {
            name: registry.get_sample_value(
                "controller_runtime_reconcile_total", {"controller": "test", "result": name}
            )
            for name in ("success", "error", "requeue", "requeue_after")
        }
        assert {name: count for name, count in found.items() if count} == results

    asyncio.run(scenario())


def test_a_mistake_ends_the_manager_where_that_is_wanted(fake_cluster: Cluster) -> None:
    async def scenario() -> None:
        manager = managed(fake_cluster)

        async def reconcile(request: Request) -> None:
            raise KeyError("a mistake")

        options = ControllerOptions(recover_panic=False)
        controller_managed_by(manager).for_(CONFIG_MAP).with_options(options).complete(ReconcilerFunc(reconcile))
        await manager.client.create(config_map("a"))
        with pytest.raises(KeyError, match="a mistake"):
            await manager.run()

    asyncio.run(scenario())


def test_several_requests_at_once_but_never_one_twice(fake_cluster: Cluster) -> None:
    async def scenario() -> None:
        manager = managed(fake_cluster, cache=CacheOptions(namespaces=["default"]))
        working: set[str] = set()
        most, both = 0, asyncio.Event()

        async def reconcile(request: Request) -> None:
            nonlocal most
            assert request.name not in working
            working.add(request.name)
            most = max(most, len(working))
            if len(working) == 2:
                both.set()
            await both.wait()
            working.remove(request.name)

        options = ControllerOptions(max_concurrent_reconciles=2)
        controller_managed_by(manager).for_(CONFIG_MAP).with_options(options).complete(ReconcilerFunc(reconcile))
        async with running(manager):
            for name in "abcd":
                await manager.client.create(config_map(name))
                await manager.client.patch(config_map(name), {"data": {"x": "y"}})
            await both.wait()
        assert most == 2
        assert not working

    asyncio.run(scenario())


def test_work_that_goes_on_may_end_when_the_manager_stops(fake_cluster: Cluster) -> None:
    async def scenario() -> None:
        manager = managed(fake_cluster, cache=CacheOptions(namespaces=["default"]))
        begun, end = asyncio.Event(), asyncio.Event()
        ended: list[str] = []

        async def reconcile(request: Request) -> None:
            begun.set()
            await end.wait()
            ended.append((await manager.client.get(CONFIG_MAP, request.name, request.namespace))["metadata"]["name"])

        controller_managed_by(manager).for_(CONFIG_MAP).complete(ReconcilerFunc(reconcile))
        task = asyncio.ensure_future(manager.run())
        await manager.client.create(config_map("a"))
        await begun.wait()
        task.cancel()
        await asyncio.sleep(0.05)
        assert not task.done()
        end.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended == ["a"]

    asyncio.run(scenario())


def test_a_runnable_that_does_not_stop_in_time_is_reported(fake_cluster: Cluster) -> None:
    async def scenario() -> None:
        manager = managed(fake_cluster, graceful_shutdown_timeout=0.1, cache=CacheOptions(namespaces=["default"]))
        begun = asyncio.Event()

        async def reconcile(request: Request) -> None:
            begun.set()
            await asyncio.sleep(3600)

        controller_managed_by(manager).for_(CONFIG_MAP).complete(ReconcilerFunc(reconcile))
        task = asyncio.ensure_future(manager.run())
        await manager.client.create(config_map("a"))
        await begun.wait()
        task.cancel()
        with pytest.raises(
            TimeoutError, match=r"failed waiting for all runnables to end within grace period of 0\.1 s"
        ):
            await task

    asyncio.run(scenario())


def test_reads_come_from_the_cache_by_labels_and_indexes(fake_cluster: Cluster) -> None:
    async def scenario() -> None:
        manager = managed(fake_cluster)
        manager.index_field(CONFIG_MAP, "data.team", lambda obj: [(obj.get("data") or {}).get("team", "")])
        async with running(manager):
            for name, team in (("a", "red"), ("b", "blue"), ("c", "red")):
                await manager.client.create(config_map(name, team=team))
            mine = manager.client.with_options(namespace="default")

            async def has_come() -> bool:
                return len(await mine.list(CONFIG_MAP, labels={"mine": "yes"})) == 3

            await poll_until(has_come, interval=0.01, timeout=60)
            red = await mine.list(CONFIG_MAP, fields={"data.team": "red"})
            assert [obj["metadata"]["name"] for obj in red] == ["a", "c"]
            assert "managedFields" not in red[0]["metadata"]
            red[0]["data"]["team"] = "changed"
            assert (await mine.get(CONFIG_MAP, "a"))["data"] == {"team": "red"}
            with pytest.raises(ValueError, match="Index with name x does not exist"):
                await mine.list(CONFIG_MAP, fields={"x": "y"})

    asyncio.run(scenario())


def test_create_or_update_and_patch_write_what_changed(fake_cluster: Cluster) -> None:
    async def scenario() -> None:
        manager = managed(fake_cluster)
        client = Client(manager.dynamic, manager.mapper)
        found = []
        for value in ("1", "1", "2"):

            def mutate(obj: dict[str, Any], value: str = value) -> None:
                obj["data"] = {"x": value}

            for work in (create_or_update, create_or_patch):
                name = work.__name__.replace("_", "-")
                found.append((await work(client, config_map(name), mutate))[1])
        created, none, updated = OperationResult.CREATED, OperationResult.NONE, OperationResult.UPDATED
        assert found == [created, created, none, none, updated, updated]
        manager.rest.close()

    asyncio.run(scenario())


def test_an_object_goes_when_its_finalizers_have_done_their_work(fake_cluster: Cluster) -> None:
    async def scenario() -> None:
        manager = managed(fake_cluster)
        client, reader = manager.client, manager.api_reader
        cleaned: list[str] = []

        async def clean(obj: dict[str, Any]) -> None:
            cleaned.append(obj["metadata"]["name"])
            if len(cleaned) == 1:
                raise ValueError("not yet")

        finalizers = Finalizers()
        finalizers.register("example.com/clean", clean)
        obj = await client.create(config_map("a"))
        assert (await finalizers.finalize(client, obj)).updated
        await client.delete(obj)
        obj = await reader.get(CONFIG_MAP, "a", "default")
        with pytest.raises(ExceptionGroup, match=r'finalizer "example.com/clean" failed: not yet'):
            await finalizers.finalize(client, obj)
        assert (await finalizers.finalize(client, obj)).gone
        with pytest.raises(StatusError, match='configmaps "a" not found'):
            await reader.get(CONFIG_MAP, "a", "default")
        manager.rest.close()

    asyncio.run(scenario())


def test_of_two_managers_one_reconciles(fake_cluster: Cluster) -> None:
    async def scenario() -> None:
        told: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

        def candidate(name: str) -> Manager:
            manager = managed(
                fake_cluster,
                cache=CacheOptions(namespaces=["default"]),
                leader_election=True,
                leader_election_id="operator",
                leader_election_release_on_cancel=True,
                retry_period=0.05,
            )

            async def reconcile(request: Request) -> None:
                told.put_nowait((name, request.name))

            controller_managed_by(manager).for_(CONFIG_MAP).named(name).complete(ReconcilerFunc(reconcile))
            return manager

        first, second = candidate("first"), candidate("second")
        async with running(first):
            waiting = asyncio.ensure_future(second.run())
            await first.client.create(config_map("a"))
            assert await told.get() == ("first", "a")
        await second.elected.wait()
        assert await told.get() == ("second", "a")
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda b: b.for_(CONFIG_MAP).complete(None), "must provide a non-nil Reconciler"),
        (
            lambda b: b.named("x").complete(NOTHING),
            "there are no watches configured, controller will never get triggered",
        ),
        (lambda b: b.for_(CONFIG_MAP).for_(SECRET), r"For\(...\) should only be called once"),
        (lambda b: b.owns(SECRET).named("x").complete(NOTHING), r"Owns\(\) can only be used together with For\(\)"),
        (lambda b: b.watches(SECRET, None).complete(NOTHING), r"one of For\(\) or Named\(\) must be called"),
        (lambda b: b.for_(int), "int is of no kind: decorate it with @kind"),
    ],
)
def test_an_invalid_controller_is_reported(fake_cluster: Cluster, build: Callable[[Any], None], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(controller_managed_by(managed(fake_cluster)))


def test_controllers_of_a_manager_have_names_of_their_own(fake_cluster: Cluster) -> None:
    manager = managed(fake_cluster)
    controller_managed_by(manager).for_(CONFIG_MAP).complete(NOTHING)
    with pytest.raises(ValueError, match="controller with name configmap already exists"):
        controller_managed_by(manager).for_(CONFIG_MAP).complete(NOTHING)
    options = ControllerOptions(skip_name_validation=True)
    controller_managed_by(manager).for_(CONFIG_MAP).with_options(options).complete(NOTHING)
