"""`Cluster`: an API server in this process, in a thread of its own or in the running event loop.

with Cluster() as cluster:
    subprocess.run(["kubectl", "get", "namespaces"], env={**os.environ, "KUBECONFIG": cluster.kubeconfig})

async with Cluster() as cluster: ...       # in the running event loop, no thread
"""

import asyncio
import os
import tempfile
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeVar

from fakeapiserver.apis.recorded import NEWEST
from fakeapiserver.clock import AdjustableClock
from fakeapiserver.server.access_log import AccessLog, Denied, write
from fakeapiserver.server.apiserver import APIServer
from fakeapiserver.server.config import Config
from fakeapiserver.server.local import LocalServer
from fakeapiserver.server.manifests import Sources
from fakeapiserver.storage.mvcc import Snapshot
from fakeapiserver.transport import kubeconfig

if TYPE_CHECKING:
    from fakeapiserver.controller_manager.manager import ControllerManager, Mode
    from fakeapiserver.nodes.simulation import Simulation
    from fakeapiserver.server.local_webhooks import LocalWebhooks
    from fakeapiserver.server.metrics_apis.apis import MetricsAPIs
    from fakeapiserver.server.metrics_apis.values import Amount

T = TypeVar("T")
_START_TIMEOUT: Final = 30.0


class Cluster:
    """A private API server with ports, certificates and storage of its own.

    `port` 0 takes a free one. `authorization_mode` as --authorization-mode. `controllers` as --controllers of
    kube-controller-manager: `*` (by default), names, `-name`; () is none. `step_controllers` are those of them that wait for
    `cluster.controllers.step(name)`. `nodes`: so many simulated nodes, with a scheduler. `stages`: KWOK's Stage objects (files,
    folders or objects) that script them. `local_storage`: a default storage class whose
    volumes are made when a pod with them gets its node. `load_balancers`: services of type LoadBalancer get addresses. `metrics`: the
    metrics APIs that are served, of resource, custom, external, or `*` for all (`cluster.metrics`).
    `kubernetes_version` is a minor version from v1.33 to v1.36, the newest by default. `feature_gates` and `runtime_config` as
    --feature-gates and --runtime-config: `{"GenericWorkload": True}`, `{"api/all": "true"}`.
    `crds` and `webhooks` are files, folders or objects (one or several) whose definitions and webhook configurations are there from
    the start; a webhook that names a Service is asked on this machine, at `cluster.webhooks` (`webhook_port` 0: a free port).
    Raises OSError or ValueError with one sentence that says what to do.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        authorization_mode: Sequence[str] = ("Node", "RBAC"),
        controllers: Sequence[str] = ("*",),
        step_controllers: Sequence[str] = (),
        nodes: int = 0,
        stages: Sources = (),
        local_storage: bool = False,
        load_balancers: bool = False,
        metrics: Sequence[str] = (),
        kubernetes_version: str = NEWEST,
        feature_gates: Mapping[str, bool] | None = None,
        runtime_config: Mapping[str, str] | None = None,
        crds: Sources = (),
        webhooks: Sources = (),
        webhook_port: int = 0,
    ) -> None:
        self._config = Config(
            secure_port=port,
            authorization_mode=tuple(authorization_mode),
            controllers=tuple(controllers),
            step_controllers=tuple(step_controllers),
            nodes=nodes,
            stages=stages,
            local_storage=local_storage,
            load_balancers=load_balancers,
            metrics=tuple(metrics),
            kubernetes_version=kubernetes_version,
            feature_gates=feature_gates or {},
            runtime_config=runtime_config or {},
            records_access=True,
            crds=crds,
            webhooks=webhooks,
            webhook_port=webhook_port,
        )
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._server: LocalServer | None = None
        self._thread: _LoopThread | None = None

    @classmethod
    def from_config(cls, config: Config) -> Self:
        """A cluster with everything that `fakeapiserver serve` has flags for."""
        cluster = cls()
        cluster._config = config
        return cluster

    def write_kubeconfig(self, path: Path) -> None:
        """Another copy of the admin's kubeconfig, mode 0600."""
        self._running.write_kubeconfig(path)

    # ------------------------------------------------- what clients connect with

    @property
    def url(self) -> str:
        """`https://127.0.0.1:PORT`."""
        return self._running.url

    @property
    def kubeconfig(self) -> str:
        """Path of a kubeconfig (mode 0600) for the cluster's admin; gone when the cluster stops."""
        return str(Path(self._require_folder()) / "kubeconfig")

    @property
    def ca(self) -> bytes:
        """The certificate authority clients must trust, as PEM."""
        return self._running.ca

    @property
    def token(self) -> str:
        """A bearer token of a user in system:masters."""
        return self._running.admin_token

    @property
    def webhooks(self) -> "LocalWebhooks":
        """Where the webhook server is to listen, and with which certificate:

        manager = subprocess.Popen([..., f"--webhook-port={cluster.webhooks.port}", f"--webhook-cert-path={cluster.webhooks.cert_dir}"])
        cluster.webhooks.wait()
        """
        found = self._running.webhooks
        if found is None:
            raise ValueError(
                'this cluster has no webhooks: name their manifests, as in Cluster(webhooks="config/webhook/")'
            )
        return found

    def user(self, name: str, groups: Sequence[str] = ()) -> str:
        """Path of a kubeconfig (mode 0600) for a user with a client certificate of this cluster's authority.

        The user may do what RBAC lets it: `cluster.user("jane", groups=["dev"])` needs a (Cluster)RoleBinding for User jane or
        Group dev, `groups=["system:masters"]` may do everything."""
        return self._written(self._running.user_kubeconfig(name, groups))

    def service_account(self, name: str, *, lifetime: float = 3600.0) -> str:
        """Path of a kubeconfig (mode 0600) with a token of the service account `namespace/name`, good for `lifetime` seconds, as
        `kubectl create token` makes it. ValueError: there is no such account."""
        namespace, _, account = name.partition("/")
        if self._thread is None:  # in the loop already
            token = self._api.service_account_token(namespace, account, int(lifetime))
        else:
            token = self._call(lambda: self._service_account_token(namespace, account, int(lifetime)))
        return self._written(self._running.token_kubeconfig(token, name, namespace))

    def _written(self, config: dict[str, Any]) -> str:
        path = Path(tempfile.mkdtemp(dir=self._require_folder())) / "kubeconfig"
        kubeconfig.write(path, config)
        return str(path)

    async def _service_account_token(self, namespace: str, name: str, lifetime: int) -> str:
        return self._api.service_account_token(namespace, name, lifetime)

    @property
    def rbac(self) -> "Access":
        """What clients were allowed and refused, and the roles they would have needed."""
        if self._api.access_log is None:
            raise ValueError("this cluster doesn't keep what it allowed: only one made by Cluster() does")
        return Access(self._api.access_log, self._call)

    # ------------------------------------------------------- what no real server can

    def snapshot(self) -> Snapshot:
        """Everything stored, now; microseconds, since stored objects never change."""
        return self._call(self._snapshot)

    def restore(self, snapshot: Snapshot) -> None:
        """Brings a state back, of this cluster or of another. Revisions go on rising, and every open watch ends: its client
        lists anew, as after any lost connection."""
        self._call(lambda: self._api.restore(snapshot))

    def lose_watches(self) -> int:
        """Ends every open watch, and tells how many there were."""
        return self._call(self._lose_watches)

    @property
    def clock(self) -> "ClusterClock":
        """Its time: `clock.advance("30m")`, `clock.stop()`, `clock.start()`, `clock.now()`."""
        return ClusterClock(self._running, self._call)

    @property
    def controllers(self) -> "Controllers":
        """kube-controller-manager's, as far as they run: `controllers["deployment-controller"]` is run, step or off."""
        return Controllers(self._manager, self._call)

    @property
    def nodes(self) -> "Nodes":
        """The simulated nodes: `nodes.script(selector="app=web", runs_for=3, exit_codes=(1,))`, `nodes.stop("node-1")`."""
        simulation = self._running.simulation
        if simulation is None:
            raise ValueError("this cluster has no simulated nodes: make it with Cluster(nodes=3)")
        return Nodes(simulation, self._call)

    @property
    def metrics(self) -> "Metrics":
        """What pods and nodes use, and other metrics: `metrics.pod("web-0", cpu="250m")`, `metrics.external("queue", 30)`."""
        return Metrics(self._api.metrics_apis, self._call)

    def settle(self, timeout: float = 30.0) -> None:
        """Until every bundled controller and every watch of theirs is at rest. NotSettled (a TimeoutError) tells what keeps
        moving after `timeout` seconds. Does nothing where no controllers run."""
        manager = self._running.controllers
        if manager is not None:
            self._call(lambda: manager.settle(timeout), timeout + 5)

    @property
    def _manager(self) -> "ControllerManager":
        found = self._running.controllers
        if found is None:
            raise ValueError('this cluster runs no controllers: make it with Cluster(controllers=["*"])')
        return found

    async def _snapshot(self) -> Snapshot:
        return self._api.snapshot()

    async def _lose_watches(self) -> int:
        return self._api.storage.lose_watches()

    def _call(self, work: Callable[[], Coroutine[Any, Any, T]], timeout: float = _START_TIMEOUT) -> T:
        if self._running and self._thread is None:
            raise ValueError(
                "inside `async with Cluster()` use cluster.server.api, whose methods belong to your event loop"
            )
        assert self._thread is not None
        return self._thread.call(work, timeout)

    # ----------------------------------------------------------- start and stop

    def start(self) -> Self:
        """Starts in a thread of its own; returns when requests are answered."""
        self._thread = _LoopThread()
        try:
            self._thread.call(self._start)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Ends watches, closes sockets, removes files. Calling it again does nothing."""
        if self._thread is not None:
            self._thread.call(self._stop)
            self._thread.stop()
            self._thread = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self._stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stop()

    async def _start(self) -> None:
        if self._server is not None:
            raise ValueError("this cluster is running already: make another Cluster() for a second one")
        self._folder = tempfile.TemporaryDirectory(prefix="fakeapiserver-")
        self._server = LocalServer(self._config)
        await self._server.start()
        self._server.write_kubeconfig(Path(self.kubeconfig))

    async def _stop(self) -> None:
        if self._server is not None:
            await self._server.stop()
            self._server = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    @property
    def server(self) -> LocalServer:
        """What runs, for tests of this package; its methods belong to its own event loop."""
        return self._running

    @property
    def _api(self) -> APIServer:
        api = self._running.api
        assert api is not None
        return api

    @property
    def _running(self) -> LocalServer:
        if self._server is None:
            raise ValueError("this cluster is not running: use it inside `with Cluster() as cluster:`")
        return self._server

    def _require_folder(self) -> str:
        if self._folder is None:
            raise ValueError("this cluster is not running: use it inside `with Cluster() as cluster:`")
        return self._folder.name


class Access:
    """`cluster.rbac`: the roles a test's traffic needed, and what was refused."""

    def __init__(self, log: AccessLog, call: Callable[[Callable[[], Coroutine[Any, Any, Any]]], Any]) -> None:
        self._log = log
        self._call = call

    def used(
        self, user: str = "", *, name: str = "used", names: bool = False, path: str | os.PathLike[str] | None = None
    ) -> list[dict[str, Any]]:
        """The least that would have allowed what was asked and allowed so far, as a ClusterRole and a Role for each
        namespace, all called `name`: run a controller as admin in a test, and ship what comes out. What everybody may do
        anyway (discovery, health, asking about oneself) is left out.

        `user`: only this user's requests, by default everybody's. `names`: only the objects that were asked for by name.
        `path`: also written there, as YAML.
        """
        found: list[dict[str, Any]] = self._call(lambda: self._log.used(user, name, names=names))
        if path is not None:
            write(Path(path), found)
        return found

    @property
    def denied(self) -> list[Denied]:
        """What was refused, oldest first; `str()` of each is the sentence that the client read.

        assert not cluster.rbac.denied, "\\n".join(map(str, cluster.rbac.denied))
        """
        return self._log.denied()

    def forget(self) -> None:
        """Begins anew: what was asked before counts no more."""
        self._log.forget()


class ClusterClock:
    """`cluster.clock`: the time by which the server and its controllers go."""

    def __init__(self, server: LocalServer, call: "Call") -> None:
        self._server = server
        self._call = call

    def now(self) -> float:
        """Seconds since the Unix epoch."""
        return self._clock.now()

    def advance(self, time: float | str, timeout: float = 300.0) -> None:
        """Moves on, by seconds or by a duration such as "30m": whatever is due meanwhile happens at its time, and the controllers
        come to rest before the next. NotSettled when they don't, ValueError for what is no duration."""
        from fakeapiserver.apimachinery.duration import parse_duration

        seconds = parse_duration(time) if isinstance(time, str) else time
        api = self._server.api
        assert api is not None
        self._call(lambda: api.advance(seconds), timeout)

    def stop(self) -> None:
        """Time stands still, and moves by `advance` alone."""
        self._call(lambda: _called(self._clock.stop))

    def start(self) -> None:
        """Time goes on."""
        self._call(lambda: _called(self._clock.start))

    @property
    def _clock(self) -> AdjustableClock:
        clock = self._server.clock
        if not isinstance(clock, AdjustableClock):
            raise ValueError("this cluster's clock can't be turned")
        return clock


class Controllers(Mapping[str, "Mode"]):
    """`cluster.controllers`: what each controller does; `cluster.controllers["job-controller"] = "step"` changes it."""

    def __init__(self, manager: "ControllerManager", call: "Call") -> None:
        self._manager = manager
        self._call = call

    def __getitem__(self, name: str) -> "Mode":
        return self._manager.mode(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._manager.modes)

    def __len__(self) -> int:
        return len(self._manager.modes)

    def __setitem__(self, name: str, mode: "Mode") -> None:
        """ValueError for a controller or a mode there isn't."""
        self._call(lambda: self._manager.set_mode(name, mode))

    def step(self, name: str, timeout: float = 30.0) -> int:
        """Lets a controller in mode `step` do what there is to do now; how many requests that were. ValueError for one in another
        mode, NotSettled."""
        return self._call(lambda: self._manager.step(name, timeout), timeout + 5)

    @property
    def failures(self) -> Mapping[str, str]:
        """What ended controllers that should run."""
        return self._manager.failures


class Nodes:
    """`cluster.nodes`: what simulated nodes and their pods do."""

    def __init__(self, simulation: "Simulation", call: "Call") -> None:
        self._simulation = simulation
        self._call = call

    def script(
        self, *, namespace: str = "", name: str = "", selector: str = "", container: str = "", **behaviour: Any
    ) -> None:
        """Says what containers do, of pods in `namespace`, called `name`, with labels that `selector` selects, of containers called
        `container`; what isn't said is any. `behaviour`: fields of nodes.behaviour.ContainerBehaviour, such as runs_for (seconds),
        exit_codes, ready_after, pull_error, log, exec (a function, or a table), ports. A later script goes before an earlier one. TypeError
        for a field there isn't."""
        rule = {"namespace": namespace, "name": name, "selector": selector, "container": container, **behaviour}
        self._call(lambda: _called(lambda: self._simulation.script(**rule)))

    def clear_scripts(self) -> None:
        """Nothing is scripted any more."""
        self._call(lambda: _called(self._simulation.clear_scripts))

    def stop(self, name: str) -> None:
        """Pulls a node's plug: its lease isn't renewed, its pods stay as they are. ValueError for a node there isn't."""
        self._call(lambda: _called(lambda: self._simulation.set_running(name, False)))

    def start(self, name: str) -> None:
        """The node goes on. ValueError."""
        self._call(lambda: _called(lambda: self._simulation.set_running(name, True)))

    def press(self, name: str, resource: str, *, evicts: int | None = None) -> None:
        """The node runs low of `memory`, `ephemeral-storage` or `pids`: its condition tells, and every ten seconds a pod is evicted,
        until `evicts` are gone, or it is relieved. What pods use is scripted (`usage={"memory": "2Gi"}`). ValueError."""
        self._call(lambda: _called(lambda: self._simulation.press(name, resource, evicts)))

    def relieve(self, name: str) -> None:
        """The node has enough of everything; its conditions tell so five minutes later. ValueError."""
        self._call(lambda: _called(lambda: self._simulation.relieve(name)))

    def shut_down(self, name: str, *, grace: float = 30.0, critical_grace: float = 10.0) -> None:
        """The node isn't ready any more and ends its pods, critical ones last in the last `critical_grace` of `grace` seconds; then it is
        off until `start`. ValueError."""
        self._call(lambda: _called(lambda: self._simulation.shut_down(name, grace, critical_grace)))


class Metrics:
    """`cluster.metrics`: the values of the metrics APIs. Of what is said of the same thing, the last word counts, also of pods that
    come later. Amounts are quantities (`250m`, `64Mi`) or numbers. ValueError for what is none, and where the API isn't served."""

    def __init__(self, apis: "MetricsAPIs", call: "Call") -> None:
        self._apis = apis
        self._call = call

    def pod(
        self,
        name: str = "",
        *,
        namespace: str = "",
        selector: str = "",
        container: str = "",
        missing: bool = False,
        **usage: "Amount",
    ) -> None:
        """What a pod uses, `pod("web-0", cpu="250m", memory="64Mi")`, or each of those selected: in all its containers, or in
        `container`. `missing`: nothing is known of it. Of pods that nobody speaks of, it is next to nothing."""
        rule = {"namespace": namespace, "name": name, "selector": selector, "container": container}
        self._set("resource", lambda: self._apis.values.set_pod(**rule, usage=usage, missing=missing))

    def node(self, name: str = "", *, selector: str = "", missing: bool = False, **usage: "Amount") -> None:
        """What a node uses, or each of those selected. Else it is what their pods do, and a little."""
        values = self._apis.values
        self._set("resource", lambda: values.set_node(name=name, selector=selector, usage=usage, missing=missing))

    def custom(
        self,
        metric: str,
        value: "Amount | None",
        *,
        resource: str = "pods",
        name: str = "",
        namespace: str = "",
        selector: str = "",
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """A metric of pods, each of them, or of an object of another resource (`services`, `ingresses.networking.k8s.io`) that is
        named. `labels` tell series of the metric apart. None: they have it no more."""
        where = {"resource": resource, "name": name, "namespace": namespace, "selector": selector, "labels": labels}
        self._set("custom", lambda: self._apis.set_custom(metric, value, **where))

    def external(
        self, metric: str, value: "Amount | None", *, namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> None:
        """A series of a metric from elsewhere, as autoscalers of the namespace (by default of all) see it. None: it is there no
        more."""
        self._set("external", lambda: self._apis.set_external(metric, value, namespace=namespace, labels=labels))

    def clear(self) -> None:
        """Nothing was ever set."""
        self._call(lambda: _called(self._apis.clear))

    def serve(self, *names: str) -> None:
        """Serves these metrics APIs, and no others: resource, custom, external, `*` for all; without any, none."""
        self._call(lambda: self._apis.serve(names))

    def _set(self, api: str, work: Callable[[], None]) -> None:
        self._apis.require(api)
        self._call(lambda: _called(work))


class Call(Protocol):
    """Runs something in the cluster's event loop."""

    def __call__(self, work: Callable[[], Coroutine[Any, Any, T]], timeout: float = ...) -> T: ...


async def _called(function: Callable[[], None]) -> None:
    function()


class _LoopThread:
    """A thread with an event loop of its own, run from outside one call at a time."""

    def __init__(self) -> None:
        self._loop = _new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fakeapiserver", daemon=True)
        self._thread.start()

    def call(self, work: Callable[[], Coroutine[Any, Any, T]], timeout: float = _START_TIMEOUT) -> T:
        return asyncio.run_coroutine_threadsafe(work(), self._loop).result(timeout)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()


def _new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop's where it is installed (the extra `uvloop`): a third faster."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
