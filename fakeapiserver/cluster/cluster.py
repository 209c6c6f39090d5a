"""`Cluster`: an API server in this process, in a thread of its own or in the running event loop.

with Cluster() as cluster:
    subprocess.run(["kubectl", "get", "namespaces"], env={**os.environ, "KUBECONFIG": cluster.kubeconfig})

async with Cluster() as cluster: ...       # in the running event loop, no thread
"""

import tempfile
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from fakeapiserver.apis.recorded import NEWEST
from fakeapiserver.cluster.access import Access
from fakeapiserver.cluster.clock import ClusterClock
from fakeapiserver.cluster.controllers import Controllers
from fakeapiserver.cluster.loop_thread import START_TIMEOUT, LoopThread, T
from fakeapiserver.cluster.metrics import Metrics
from fakeapiserver.cluster.nodes import Nodes
from fakeapiserver.server.apiserver import APIServer
from fakeapiserver.server.config import Config
from fakeapiserver.server.local import LocalServer
from fakeapiserver.server.manifests import Sources
from fakeapiserver.storage.mvcc import Snapshot
from fakeapiserver.transport import kubeconfig

if TYPE_CHECKING:
    from fakeapiserver.controller_manager.manager import ControllerManager
    from fakeapiserver.server.local_webhooks import LocalWebhooks


class Cluster:
    """A private API server with ports, certificates and storage of its own.

    - `port`: 0 takes a free one.
    - `authorization_mode`: as kube-apiserver's --authorization-mode.
    - `controllers`: as kube-controller-manager's --controllers: `*`, names, `-name`; () runs none.
    - `step_controllers`: those that do nothing until `cluster.controllers.step(name)`.
    - `nodes`: the number of simulated nodes; with at least one, a scheduler runs, too.
    - `stages`: KWOK's Stage objects, which script nodes and pods (files, folders or objects).
    - `local_storage`: a default storage class, whose volumes are made when a pod that uses them is scheduled.
    - `load_balancers`: services of type LoadBalancer get addresses.
    - `metrics`: the metrics APIs to serve: resource, custom, external, or `*` for all. See `cluster.metrics`.
    - `kubernetes_version`: a minor version, v1.33 to v1.36.
    - `feature_gates`, `runtime_config`: as the flags: `{"GenericWorkload": True}`, `{"api/all": "true"}`.
    - `crds`, `webhooks`: files, folders or objects (one or several) with definitions and webhook configurations that exist
      from the start. A webhook that names a Service is called on this machine, at `cluster.webhooks`.
    - `webhook_port`: where your webhook server listens; 0 takes a free port.

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
        self._thread: LoopThread | None = None

    @classmethod
    def from_config(cls, config: Config) -> Self:
        """A cluster with any configuration that `fakeapiserver serve` has flags for."""
        cluster = cls()
        cluster._config = config
        return cluster

    def write_kubeconfig(self, path: Path) -> None:
        """Writes another copy of the admin's kubeconfig, with mode 0600."""
        self._running.write_kubeconfig(path)

    # ------------------------------------------------------ how clients connect

    @property
    def url(self) -> str:
        """`https://127.0.0.1:PORT`."""
        return self._running.url

    @property
    def kubeconfig(self) -> str:
        """The path of a kubeconfig (mode 0600) for the cluster's admin. It is removed when the cluster stops."""
        return str(Path(self._require_folder()) / "kubeconfig")

    @property
    def ca(self) -> bytes:
        """The certificate authority that clients must trust, as PEM."""
        return self._running.ca

    @property
    def token(self) -> str:
        """A bearer token of a user in system:masters."""
        return self._running.admin_token

    @property
    def webhooks(self) -> "LocalWebhooks":
        """Where your webhook server has to listen, and with which certificate. ValueError: the cluster was made without webhooks.

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
        """The path of a kubeconfig (mode 0600) for a user with a client certificate of this cluster's authority.

        The user may do what RBAC allows: `cluster.user("jane", groups=["dev"])` needs a (Cluster)RoleBinding for User jane or
        Group dev, `groups=["system:masters"]` may do everything."""
        return self._written(self._running.user_kubeconfig(name, groups))

    def service_account(self, name: str, *, lifetime: float = 3600.0) -> str:
        """The path of a kubeconfig (mode 0600) with a token for the service account `name` (`namespace/name`), as
        `kubectl create token` makes it. It is valid for `lifetime` seconds. ValueError: there is no such account."""
        namespace, _, account = name.partition("/")
        if self._thread is None:  # `async with`: the caller is in the server's event loop already
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
    def rbac(self) -> Access:
        """The roles that clients needed so far, and the requests that were refused."""
        if self._api.access_log is None:
            raise ValueError("this cluster doesn't keep what it allowed: only one made by Cluster() does")
        return Access(self._api.access_log, self._call)

    # -------------------------------------------------- what no real server can do

    def snapshot(self) -> Snapshot:
        """The present state of everything stored. Takes microseconds, since stored objects never change."""
        return self._call(self._snapshot)

    def restore(self, snapshot: Snapshot) -> None:
        """Restores a state of this or another cluster. Revisions go on rising, and every open watch ends, so that clients list
        again, as after any lost connection."""
        self._call(lambda: self._api.restore(snapshot))

    def lose_watches(self) -> int:
        """Ends every open watch and returns their number."""
        return self._call(self._lose_watches)

    @property
    def clock(self) -> ClusterClock:
        """The cluster's time: `clock.advance("30m")`, `clock.stop()`, `clock.start()`, `clock.now()`."""
        return ClusterClock(self._running, self._call)

    @property
    def controllers(self) -> Controllers:
        """The mode of each of kube-controller-manager's controllers: `controllers["deployment-controller"]` is run, step or off."""
        return Controllers(self._manager, self._call)

    @property
    def nodes(self) -> Nodes:
        """The simulated nodes: `nodes.script(selector="app=web", runs_for=3, exit_codes=(1,))`, `nodes.stop("node-1")`."""
        simulation = self._running.simulation
        if simulation is None:
            raise ValueError("this cluster has no simulated nodes: make it with Cluster(nodes=3)")
        return Nodes(simulation, self._call)

    @property
    def metrics(self) -> Metrics:
        """The values of the metrics APIs: `metrics.pod("web-0", cpu="250m")`, `metrics.external("queue", 30)`."""
        return Metrics(self._api.metrics_apis, self._call)

    def settle(self, timeout: float = 30.0) -> None:
        """Waits until every bundled controller and all their watches are at rest. After `timeout` seconds it raises NotSettled (a
        TimeoutError), which names what is still moving. Returns at once if no controllers run."""
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

    def _call(self, work: Callable[[], Coroutine[Any, Any, T]], timeout: float = START_TIMEOUT) -> T:
        if self._running and self._thread is None:
            raise ValueError(
                "inside `async with Cluster()` use cluster.server.api, whose methods belong to your event loop"
            )
        assert self._thread is not None
        return self._thread.call(work, timeout)

    # ----------------------------------------------------------- start and stop

    def start(self) -> Self:
        """Starts the cluster in a thread of its own. Returns when it answers requests."""
        self._thread = LoopThread()
        try:
            self._thread.call(self._start)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Ends watches, closes sockets and removes files. A second call does nothing."""
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
        """The running server, for tests of this package. Its methods must be called in its event loop."""
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
