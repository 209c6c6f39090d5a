"""The controller manager's frame: which controllers run, how a test holds and steps them, and when everything is at rest."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from fakeapiserver import Cluster
from fakeapiserver.apimachinery.gvk import GroupVersionResource
from fakeapiserver.client import kubeconfig
from fakeapiserver.client.dynamic import DynamicClient
from fakeapiserver.client.errors import StatusError
from fakeapiserver.client.rest import RESTClient
from fakeapiserver.client.wait import poll_until
from fakeapiserver.clock import AdjustableClock
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import ENDPOINTS
from fakeapiserver.controller_manager import manager as manager_module
from fakeapiserver.controller_manager.clients import SimpleClientBuilder
from fakeapiserver.controller_manager.descriptor import AVAILABLE, DESCRIPTORS, canonical, selected
from fakeapiserver.controller_manager.manager import ControllerManager, NotSettled
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.reconcile import Request, Result
from fakeapiserver.controllers import serviceaccount
from fakeapiserver.controllers.serviceaccount import ServiceAccountsController
from fakeapiserver.server.in_process import InProcessClients

NAMESPACES = GroupVersionResource("", "v1", "namespaces")
ACCOUNTS = GroupVersionResource("", "v1", "serviceaccounts")
Scenario = Callable[[ControllerManager, DynamicClient], Awaitable[None]]


def run(scenario: Scenario, **options: tuple[str, ...]) -> None:
    async def main() -> None:
        async with Cluster(**options) as cluster, RESTClient(kubeconfig.load(cluster.kubeconfig)) as rest:
            manager = cluster._server.controllers
            assert manager is not None
            await manager.settle()
            await scenario(manager, DynamicClient(rest))

    asyncio.run(main())


async def accounts(client: DynamicClient, namespace: str) -> list[str]:
    found = await client.resource(ACCOUNTS, namespace).list()
    return [account["metadata"]["name"] for account in found["items"]]


@pytest.mark.parametrize(
    ("flag", "missing"),
    [
        (("*",), {name for name, found in AVAILABLE.items() if found.disabled_by_default}),
        (("*", "-serviceaccount-controller"), {"serviceaccount-controller"}),
        (("*", "-serviceaccount"), {"serviceaccount-controller"}),  # by its alias
    ],
)
def test_an_asterisk_is_all_that_are_on_by_default(flag: tuple[str, ...], missing: set[str]) -> None:
    names = {found.name for found in selected(flag)}
    assert not names & missing
    assert names | missing | {name for name, found in AVAILABLE.items() if found.disabled_by_default} == set(AVAILABLE)


@pytest.mark.parametrize("flag", [(), ("none",), ("-serviceaccount-controller",)])
def test_nothing_runs_that_was_not_asked_for(flag: tuple[str, ...]) -> None:
    assert selected(flag) == []


def test_an_unknown_controller_is_rejected_by_its_name() -> None:
    with pytest.raises(ValueError, match='"deploymnt" is not in the list of known controllers'):
        canonical("deploymnt")


def test_every_controller_is_here_or_says_why_not() -> None:
    assert all(bool(found.module) != bool(found.left_out) for found in DESCRIPTORS.values())


def test_what_follows_from_a_write_is_there_when_the_cluster_has_settled() -> None:
    async def scenario(manager: ControllerManager, client: DynamicClient) -> None:
        await client.resource(NAMESPACES).create({"metadata": {"name": "shop"}})
        await manager.settle()
        assert await accounts(client, "shop") == ["default"]
        assert manager.moving() == []

    run(scenario, controllers=("serviceaccount-controller",))


@pytest.mark.parametrize("passes", [0.5, 1.5, 2.0])
def test_a_clock_that_stands_still_goes_on_to_what_comes_soon_only(passes: float) -> None:
    async def scenario(manager: ControllerManager, client: DynamicClient) -> None:
        assert isinstance(manager.clock, AdjustableClock)
        manager.clock.stop()
        before = manager.clock.now()
        next(manager._queues()).add_after(Request("", "default"), passes)
        await manager.settle()
        assert manager.clock.now() - before == pytest.approx(passes if passes < 2 else 0)

    run(scenario, controllers=("serviceaccount-controller",))


def test_a_clock_that_stands_still_goes_on_only_when_everything_has_reached_everybody() -> None:
    """A retry may find out what depends on a change that is on its way."""

    async def scenario(manager: ControllerManager, client: DynamicClient) -> None:
        assert isinstance(manager.clock, AdjustableClock)
        manager.clock.stop()
        before, looks = manager.clock.now(), iter([1, 1, 1])
        when_asked: list[float] = []

        def in_flight() -> int:
            when_asked.append(manager.clock.now())
            return next(looks, 0)

        manager._in_flight = in_flight
        next(manager._queues()).add_after(Request("", "default"), 1.0)
        await manager.settle()
        assert when_asked[:5] == [before] * 5  # on its way, and twice nothing is
        assert manager.clock.now() == pytest.approx(before + 1)

    run(scenario, controllers=("serviceaccount-controller",))


def test_who_tries_again_for_ever_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    async def again(*_: object) -> Result:
        return Result(requeue_after=1.0)

    async def scenario(manager: ControllerManager, client: DynamicClient) -> None:
        assert isinstance(manager.clock, AdjustableClock)
        monkeypatch.setattr(ServiceAccountsController, "reconcile", again)
        manager.clock.stop()
        next(manager._queues()).add(Request("", "default"))
        with pytest.raises(NotSettled, match=r"still moving after 0\.2 s: .*serviceaccount-controller"):
            await manager.settle(timeout=0.2)

    run(scenario, controllers=("serviceaccount-controller",))


def test_who_has_not_been_started_yet_is_waited_for() -> None:
    async def scenario(manager: ControllerManager, client: DynamicClient) -> None:
        late = ControllerManager(manager._clients, controllers=("serviceaccount", "ttl"), start_interval=0.05)
        running = asyncio.ensure_future(late.run())
        await asyncio.sleep(0)
        assert "ttl-controller hasn't been started yet" in late.moving()
        await late.settle()
        assert late.started == ["serviceaccount-controller", "ttl-controller"]
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    run(scenario, controllers=("serviceaccount-controller",))


def test_waiting_for_an_unreadable_resource_reports_why() -> None:
    async def scenario(manager: ControllerManager, client: DynamicClient) -> None:
        informers = manager._shared.informers
        informers.for_resource(GroupVersionResource("authentication.k8s.io", "v1", "tokenreviews"))
        informers.start()
        why = r"^still moving after 0.5 s: .*tokenreviews.authentication.k8s.io can't be read: the server does not allow this method"

        async def has_been_refused() -> bool:
            return any("can't be read" in what for what in manager.moving())

        await poll_until(has_been_refused, interval=0.01, timeout=60)
        with pytest.raises(TimeoutError, match=why):
            await manager.settle(timeout=0.5)

    run(scenario, controllers=("serviceaccount-controller",))


WIDGETS = GroupVersionResource("example.com", "v1", "widgets")
DEFINITIONS = GroupVersionResource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
WIDGET_DEFINITION = {
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}


def test_what_is_not_served_is_not_waited_for_and_found_by_the_clock_when_it_is() -> None:
    async def scenario(manager: ControllerManager, client: DynamicClient) -> None:
        assert isinstance(manager.clock, AdjustableClock)
        manager.clock.stop()
        informers = manager._shared.informers
        informer = informers.for_resource(WIDGETS)
        informers.start()
        await manager.settle()
        assert informer.unserved
        await client.resource(DEFINITIONS).create(WIDGET_DEFINITION)
        await manager.settle()
        assert not informer.has_synced
        await manager.clock.advance(60, manager.settle)
        assert informer.has_synced

    run(scenario, controllers=("serviceaccount-controller",))


@pytest.mark.parametrize("kept", [False, True])
def test_what_is_gone_is_forgotten_and_what_comes_back_is_found_at_once(kept: bool) -> None:
    """By the garbage collector, which looks at discovery when definitions change; `kept`: another controller reads it whole."""

    async def scenario(manager: ControllerManager, client: DynamicClient) -> None:
        assert isinstance(manager.clock, AdjustableClock)
        manager.clock.stop()
        if kept:
            manager._shared.informers.for_resource(WIDGETS)
            manager._shared.informers.start()
        for _ in range(2):
            await client.resource(DEFINITIONS).create(WIDGET_DEFINITION)
            await manager.clock.advance(1, manager.settle)
            found = {informer.name: informer for informer in manager.informers}
            assert found["widgets.example.com"].has_synced
            assert found["widgets.example.com"].idle
            await client.resource(DEFINITIONS).delete("widgets.example.com")
            await manager.clock.advance(3, manager.settle)
            names = [informer.name for informer in manager.informers]
            assert ("widgets.example.com" in names) is kept

    run(scenario, controllers=("garbage-collector-controller",))


def test_a_controller_in_mode_step_does_nothing_until_it_is_stepped() -> None:
    async def scenario(manager: ControllerManager, client: DynamicClient) -> None:
        await client.resource(NAMESPACES).create({"metadata": {"name": "shop"}})
        await manager.settle()
        assert await accounts(client, "shop") == []
        assert await manager.step("serviceaccount-controller") > 0
        assert await accounts(client, "shop") == ["default"]
        await client.resource(ACCOUNTS, "shop").delete("default")
        await manager.settle()
        assert await accounts(client, "shop") == []

    run(scenario, controllers=("serviceaccount-controller",), step_controllers=("serviceaccount-controller",))


def test_a_controller_is_switched_off_and_on_while_it_runs() -> None:
    async def scenario(manager: ControllerManager, client: DynamicClient) -> None:
        await manager.set_mode("serviceaccount", "off")
        await client.resource(NAMESPACES).create({"metadata": {"name": "shop"}})
        await manager.settle()
        assert await accounts(client, "shop") == []
        assert manager.modes["serviceaccount-controller"] == "off"
        await manager.set_mode("serviceaccount", "run")
        await manager.settle()
        assert await accounts(client, "shop") == ["default"]

    run(scenario, controllers=("serviceaccount-controller",))


def test_a_controller_that_is_switched_off_before_it_was_started_is_not_started() -> None:
    async def main() -> None:
        async with Cluster(controllers=("none",)) as cluster, RESTClient(kubeconfig.load(cluster.kubeconfig)) as rest:
            names = ("serviceaccount-controller", "ttl-controller", "namespace-controller")
            clients = SimpleClientBuilder(kubeconfig.load(cluster.kubeconfig))
            manager = ControllerManager(clients, controllers=names, start_interval=0.05)
            running = asyncio.ensure_future(manager.run())
            await manager.set_mode("serviceaccount", "off")
            await manager.set_mode("namespace", "step")
            await manager.step("namespace", timeout=20)  # answers, though its turn to start has not come
            while len(manager.started) < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            await client_of(rest).resource(NAMESPACES).create({"metadata": {"name": "shop"}})
            await manager.settle()
            assert set(manager.started) == {*names} - {"serviceaccount-controller"}
            assert await accounts(client_of(rest), "shop") == []
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(main())


def client_of(rest: RESTClient) -> DynamicClient:
    return DynamicClient(rest)


def test_a_controller_that_has_failed_is_created_again_when_it_is_switched_on() -> None:
    async def scenario(manager: ControllerManager, client: DynamicClient) -> None:
        for task in manager._running["serviceaccount-controller"].tasks:
            task.cancel()
        manager.failures["serviceaccount-controller"] = "the test says so"
        await manager.set_mode("serviceaccount", "run")
        assert manager.failures == {}
        await client.resource(NAMESPACES).create({"metadata": {"name": "shop"}})
        await manager.settle()
        assert await accounts(client, "shop") == ["default"]

    run(scenario, controllers=("serviceaccount-controller",))


def test_modes_that_are_set_at_the_same_time_leave_one_controller_in_the_last_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[str] = []
    new = serviceaccount.new

    def counted(context: ControllerContext) -> Sequence[Controller]:
        made.append(context.name)
        return new(context)

    monkeypatch.setattr(serviceaccount, "new", counted)

    async def scenario(manager: ControllerManager, client: DynamicClient) -> None:
        made.clear()
        await asyncio.gather(*(manager.set_mode("serviceaccount", mode) for mode in ("off", "run", "step", "run")))
        assert len(made) <= 1
        assert manager.mode("serviceaccount") == "run"
        await client.resource(NAMESPACES).create({"metadata": {"name": "shop"}})
        await manager.settle()
        assert await accounts(client, "shop") == ["default"]

    run(scenario, controllers=("serviceaccount-controller",))


def test_who_is_set_to_run_while_it_is_stepped_goes_on_running() -> None:
    async def scenario(manager: ControllerManager, client: DynamicClient) -> None:
        stepping = asyncio.ensure_future(manager.step("serviceaccount"))
        await asyncio.sleep(0)
        await manager.set_mode("serviceaccount", "run")
        await stepping
        await client.resource(NAMESPACES).create({"metadata": {"name": "shop"}})
        await manager.settle()
        assert await accounts(client, "shop") == ["default"]

    run(scenario, controllers=("serviceaccount-controller",), step_controllers=("serviceaccount-controller",))


def test_what_never_ends_is_given_up_when_its_controller_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    async def forever(*_: object) -> None:
        await asyncio.Event().wait()

    async def scenario(manager: ControllerManager, client: DynamicClient) -> None:
        monkeypatch.setattr(ServiceAccountsController, "reconcile", forever)
        monkeypatch.setattr(manager_module, "_GRACE", 0.0)
        await client.resource(NAMESPACES).create({"metadata": {"name": "shop"}})
        while not any("works on shop" in what for what in manager.moving()):  # noqa: ASYNC110
            await asyncio.sleep(0.001)

    run(scenario, controllers=("serviceaccount-controller",))


def test_only_what_is_in_mode_step_is_stepped() -> None:
    async def scenario(manager: ControllerManager, client: DynamicClient) -> None:
        with pytest.raises(ValueError, match="only a controller in mode step is stepped"):
            await manager.step("serviceaccount-controller")

    run(scenario, controllers=("serviceaccount-controller",))


def test_what_is_written_before_a_controller_starts_is_treated_as_if_it_had_been_there() -> None:
    """Endpoints without a service are deleted as left over only if they existed before the server was ready."""

    async def scenario() -> None:
        async with Cluster() as cluster:  # the server is ready, and this coroutine goes on before any controller starts
            api, manager = cluster._server.api, cluster._server.controllers
            assert api is not None
            assert manager is not None
            clients = InProcessClients(api.application, cluster.url, cluster._server.clock)
            endpoints = DynamicClient(clients.client("endpoint-controller")).resource(ENDPOINTS, "default")
            assert "endpoints-controller" not in manager.started
            await endpoints.create({"metadata": {"name": "mine"}, "subsets": []})
            await manager.settle()
            assert "endpoints-controller" in manager.started
            assert (await endpoints.get("mine"))["metadata"]["name"] == "mine"
            await manager.set_mode("endpoints-controller", "off")
            await manager.set_mode("endpoints-controller", "run")
            await manager.settle()
            with pytest.raises(StatusError, match='endpoints "mine" not found'):
                await endpoints.get("mine")
            clients.close()

    asyncio.run(scenario())
