"""`Cluster`: an API server in a thread of this process.

with Cluster() as cluster:
    subprocess.run(["kubectl", "get", "namespaces"], env={**os.environ, "KUBECONFIG": cluster.kubeconfig})

async with Cluster() as cluster: ...       # an AsyncCluster: in the running event loop, no thread
"""

import os
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

from fakeapiserver.cluster import clients, eventually, operators
from fakeapiserver.cluster.access import Access
from fakeapiserver.cluster.async_cluster import AsyncCluster
from fakeapiserver.cluster.clock import ClusterClock
from fakeapiserver.cluster.controllers import Controllers
from fakeapiserver.cluster.eventually import T
from fakeapiserver.cluster.faces import Blocking, blocking
from fakeapiserver.cluster.faults import BadCertificate, Fault, Faults, Outage
from fakeapiserver.cluster.loop_thread import START_TIMEOUT, LoopThread
from fakeapiserver.cluster.metrics import Metrics
from fakeapiserver.cluster.nodes import Nodes
from fakeapiserver.cluster.options import ClusterOptions
from fakeapiserver.cluster.page import Page
from fakeapiserver.cluster.processes.operator_process import OperatorProcess, Place
from fakeapiserver.cluster.requests import Requests
from fakeapiserver.cluster.webhooks import Webhooks
from fakeapiserver.server.local import LocalServer
from fakeapiserver.server.options.config import Config

if TYPE_CHECKING:
    from fakeapiserver.cluster.operators import Operator, Setup
    from fakeapiserver.controller_runtime.manager import ManagerOptions
    from fakeapiserver.state.found import LoadReport


class Cluster(Blocking[AsyncCluster]):
    """A private API server with ports, certificates and storage of its own.

    - `port`: 0 takes a free one.
    - `authorization_mode`: as kube-apiserver's --authorization-mode.
    - `controllers`: as kube-controller-manager's --controllers: `*`, names, `-name`; () runs none.
    - `step_controllers`: those that do nothing until `cluster.controllers.step(name)`.
    - `nodes`: the number of simulated nodes; with at least one, a scheduler runs, too.
    - `stages`: KWOK's Stage objects, which script nodes and pods (files, folders or objects).
    - `local_storage`: a default storage class, whose volumes are made when a pod that uses them is scheduled.
    - `cloud_storage`: claims of every storage class get volumes and grow, as with the CSI drivers of a cloud.
    - `load_balancers`: services of type LoadBalancer get addresses.
    - `metrics`: the metrics APIs to serve: resource, custom, external, or `*` for all. See `cluster.metrics`.
    - `kubernetes_version`: a minor version such as v1.34; `fakeapiserver version -o json` lists them.
    - `feature_gates`, `runtime_config`: as the flags: `{"GenericWorkload": True}`, `{"api/all": "true"}`.
    - `crds`, `webhooks`: files, folders or objects (one or several) with definitions and webhook configurations that exist
      from the start. A webhook that names a Service is called on this machine, at `cluster.webhooks`.
    - `objects`: files, folders or objects of any kind, which are applied before the cluster is ready.
    - `webhook_port`: where your webhook server listens; 0 takes a free port.
    - `ui`: records what happens, for the page in a browser, to which `cluster.page.link()` leads (docs/ui.md).
    - `etcd_servers`: the endpoints of an etcd in which the state is, also together with other API servers (docs/etcd.md); it needs
      the extra `fakeapiserver[etcd]`. `etcd_cafile`, `etcd_certfile`, `etcd_keyfile`: PEM files for TLS. `etcd_prefix`: /registry.
      `storage_media_type`: `application/vnd.kubernetes.protobuf` or `application/json`.
    - `encryption_provider_config`: the file of an EncryptionConfiguration, for objects in `etcd_servers` and those that `load` reads.
    - `read_only`: nothing is written to `etcd_servers` or `data_dir`: no controllers run, and writes of clients get 403.
    - `data_dir`: a folder in which the state is kept, with its keys: the next cluster there goes on with it. By default it is gone with
      the cluster. `sync`: what a write in it survives: `full` (power loss), `normal` (the end of the process), `off`.
    - `seed`: a number from which uids, generated names, addresses, ports and orders follow; by default from chance.
    - `stopped_at`: the time at which the clock stands still from the start, e.g. 2026-01-01T00:00:00Z; by default it goes.
    - `kept_requests`, `kept_request_bytes`: how many requests of clients `cluster.requests` keeps (1,000; 0 keeps none), and in how
      many bytes (33,554,432).

    Raises OSError or ValueError with one sentence that says what to do.
    """

    def __init__(self, **options: Unpack[ClusterOptions]) -> None:
        super().__init__(AsyncCluster(**options), self._run)
        self._thread: LoopThread | None = None

    @classmethod
    def from_config(cls, config: Config) -> Self:
        """A cluster with any configuration that `fakeapiserver serve` has flags for."""
        cluster = cls()
        cluster._core = AsyncCluster.from_config(config)
        return cluster

    write_kubeconfig = blocking(AsyncCluster.write_kubeconfig)

    # ------------------------------------------------------ how clients connect

    @property
    def url(self) -> str:
        """`https://127.0.0.1:PORT`."""
        return self._core.url

    @property
    def kubeconfig(self) -> str:
        """The path of a kubeconfig (mode 0600) for the cluster's admin. It is removed when the cluster stops."""
        return self._core.kubeconfig

    @property
    def ca(self) -> bytes:
        """The certificate authority that clients must trust, as PEM."""
        return self._core.ca

    @property
    def token(self) -> str:
        """A bearer token of a user in system:masters."""
        return self._core.token

    @property
    def webhooks(self) -> Webhooks:
        """The port and certificate for your webhook server. Raises ValueError if the cluster was created without webhooks.

        manager = subprocess.Popen([..., f"--webhook-port={cluster.webhooks.port}",
        f"--webhook-cert-path={cluster.webhooks.cert_dir}"])
        cluster.webhooks.wait()
        """
        return Webhooks(self._core.webhooks, self._run)

    def user(self, name: str, groups: Sequence[str] | str = ()) -> str:
        """The path of a kubeconfig (mode 0600) for a user with a client certificate of this cluster's authority.

        The user may do what RBAC allows: `cluster.user("jane", groups=["dev"])` needs a (Cluster)RoleBinding for User jane or
        Group dev, `groups=["system:masters"]` may do everything."""
        return self._core.user(name, groups)

    def service_account(self, name: str, *, lifetime: float = 3600.0) -> str:
        """The path of a kubeconfig (mode 0600) with a token for the service account `name` (`namespace/name`), as
        `kubectl create token` makes it. It is valid for `lifetime` seconds. ValueError: there is no such account."""

        async def written() -> str:
            return self._core.service_account(name, lifetime=lifetime)

        return self._run(written)

    def user_token(self, name: str, groups: Sequence[str] | str = ()) -> str:
        """A bearer token for a user, who may do what RBAC allows, as for `user()`. It is valid as long as the cluster runs."""
        return self._core.user_token(name, groups)

    def client(self, package: str, *, user: str = "", groups: Sequence[str] | str = ()) -> Any:
        """A client of another package for this cluster: `kubernetes` (an ApiClient), `kr8s`, `lightkube`, or `kubernetes_asyncio`, an
        ApiClient for the event loop that is running. Close it as its package says.

        - `user`, `groups`: the client is that user's, as for `user()`; `namespace/name` is a service account. By default the admin's.

        ModuleNotFoundError with the command that installs the package; ValueError for an unknown package."""

        async def prepared() -> tuple[str, Any]:
            path = self._core._kubeconfig_of(user, groups)
            return path, await clients.configuration_of(package, path)

        return clients.synchronous(package, *self._run(prepared))

    @property
    def rbac(self) -> Access:
        """The roles that clients needed so far, and the requests that were refused."""
        return Access(self._core.rbac, self._run)

    # ---------------------------------------------- what kubectl's commands do

    apply = blocking(AsyncCluster.apply)
    patch = blocking(AsyncCluster.patch)
    get = blocking(AsyncCluster.get)
    list = blocking(AsyncCluster.list)
    delete = blocking(AsyncCluster.delete)
    wait = blocking(AsyncCluster.wait)

    # -------------------------------------------------- what no real server can do

    snapshot = blocking(AsyncCluster.snapshot)
    changes = blocking(AsyncCluster.changes)
    restore = blocking(AsyncCluster.restore)
    mark = blocking(AsyncCluster.mark)
    reset = blocking(AsyncCluster.reset)
    lose_watches = blocking(AsyncCluster.lose_watches)
    restart = blocking(AsyncCluster.restart)

    save = blocking(AsyncCluster.save)
    diff = blocking(AsyncCluster.diff)
    export = blocking(AsyncCluster.export)

    @classmethod
    def load(cls, path: str | os.PathLike[str], **options: Unpack[ClusterOptions]) -> Self:
        """A cluster that starts with a state that `save` has written: same uids, resourceVersions, times and history. To be started as any
        other: `with Cluster.load("state.json.gz", nodes=2) as cluster:`.

        - `path`: may also be of another cluster: a file or folder of manifests, what `kubectl get -o yaml` has printed, a support bundle, a
          must-gather, or another archive of such files, an etcd's snapshot. Objects keep their status, uid, resourceVersion and times;
          `load_report` has what could not be taken. Objects without a uid are created.
        - `options`: those of `Cluster`. `kubernetes_version` is by default that of the saved cluster.

        OSError; ValueError with one sentence for a path that is damaged, from a newer version, or holds no objects."""
        cluster = cls()
        cluster._core = AsyncCluster.load(path, **options)
        return cluster

    @property
    def load_report(self) -> "LoadReport | None":
        """The report about the objects of another cluster with which this one started. Its text has a line for each that was not taken;
        None for a cluster that was not loaded, or from a saved state."""
        return self._core.load_report

    def fork(self) -> "Cluster":
        """Another cluster, which runs already, from the present state: `with cluster.fork() as other:`.

        It has its own port, the same options, and everything stored under the same uids and resourceVersions, with the history: a watch
        from an older resourceVersion works there, too. Its certificates, keys and tokens are the same, so the credentials of a kubeconfig
        are valid at its url. The clock shows the same time, controllers have the same modes, nodes the same scripts and states; faults
        are not copied. Both clusters go on independently; stop each."""
        other = Cluster()
        other._core = self._run(self._core._prepare_fork)
        return other.start()

    settle = blocking(AsyncCluster.settle)

    def eventually(self, check: Callable[[], T | Awaitable[T]], timeout: float | str = 30.0) -> T:
        """Calls `check` until it holds, and returns what it returns: `cluster.eventually(lambda: cluster.get("cm/made"))`. It holds when it
        returns None or something true. It is called again after an AssertionError, a LookupError, and the error of any client for an
        object that doesn't exist, as soon as something is written, a client is answered, or time moves on.

        - `check`: a function, which runs in this thread.
        - `timeout`: seconds, or a duration such as "30s", on the cluster's clock. A clock that stands still is moved on from one due
          time to the next, unless a client outside of this process has a watch or a request open: then these are real seconds.

        Raises what the last call has raised when the time is up, any other error at once, and ValueError for an unreadable timeout."""
        seconds = eventually.seconds_of(timeout)
        changes = eventually.Changes(self._server, seconds, self._core.settle)
        self._run(changes.begin)
        try:
            while True:
                try:
                    return eventually.run(check)
                except eventually.Failed as failed:
                    if not self._run(changes.wait):
                        raise failed.after(seconds, changes) from None
        finally:
            self._run(changes.end)

    def operator(
        self,
        setup: "Setup",
        *,
        name: str = "operator",
        user: str = "",
        groups: Sequence[str] | str = (),
        options: "ManagerOptions | None" = None,
    ) -> "Operator":
        """An operator of `fakeapiserver.controller_runtime`, which runs in the cluster's thread and by its clock:
        `with cluster.operator(setup) as operator:`. `settle`, `eventually` and `clock.advance` wait for it, and its requests are in
        `cluster.requests`, although they need no connection. `operator.restart()` begins again with empty caches.

        - `setup`: adds the controllers to a Manager, as in a program that calls `setup(manager)` and `manager.run()`.
        - `name`: its user agent, and the field manager unless the options have another.
        - `user`, `groups`: its user; `namespace/name` is a service account. By default the admin.
        - `options`: those of the Manager."""
        core = self._core.operator(setup, name=name, user=user, groups=groups, options=options)
        return operators.Operator(core, self._run)

    def operator_process(
        self,
        command: str | Sequence[str],
        *,
        user: str = "",
        groups: Sequence[str] | str = ("system:masters",),
        ready: str = "",
        timeout: float = 30.0,
        **place: Unpack[Place],
    ) -> OperatorProcess:
        """An operator in any language, as a process of its own: `with cluster.operator_process("./bin/manager") as operator:`. The block
        begins when it has sent a request and serves the cluster's webhooks. At its end the operator is stopped; if this process is
        killed, the operator and its children are killed as well.

        - `command`: a text or a list of words. `{port}` and `{port:NAME}` are free ports, `{kubeconfig}` is a path that KUBECONFIG names as
          well, `{webhook-port}` and `{webhook-cert-dir}` are those of `cluster.webhooks`.
        - `user`, `groups`: its user, who may do everything by default; `namespace/name` is a service account.
        - `ready`: a URL with the same placeholders, such as `http://127.0.0.1:{port:health}/readyz`, which is waited for as well.
        - `timeout`: the seconds that a start may take. OperatorDoesNotStart, an OSError, has the last lines of the log.
        - `env`: variables of its environment, with the same placeholders. `folder`: where it runs."""
        core = self._core.operator_process(command, user=user, groups=groups, ready=ready, timeout=timeout, **place)
        return OperatorProcess(core, self._run)

    def outage(self, duration: float | str | None = None) -> Outage:
        """Closes the port and resets all connections: `with cluster.outage(): ...`. State, certificates, tokens and kubeconfigs stay
        valid. The bundled controllers go on, since they ask within the process.

        - `duration`: seconds, or a duration such as "10s", on the cluster's clock; None: until the outage is ended.

        Raises ValueError during another outage."""
        return Outage(self._run(lambda: self._core.outage(duration)), self._run)

    def bad_certificate(self, problem: Literal["expired", "unknown", "name"] = "expired") -> BadCertificate:
        """Resets all connections and serves a certificate that clients refuse: `with cluster.bad_certificate(): ...`.

        - `problem`: it has `expired`, is of an `unknown` authority, or is for another `name`.

        Raises ValueError for any other problem, and during an outage."""
        return BadCertificate(self._run(lambda: self._core.bad_certificate(problem)), self._run)

    def read_only(self) -> Fault:
        """Refuses all writes of clients, as a server whose etcd has no space left: `with cluster.read_only(): ...`."""
        return Fault(self._run(self._core.read_only), self._run)

    @property
    def page(self) -> Page:
        """The page in a browser: `page.link()`; as a file: `page.save("page.html")`."""
        return Page(self._core.page, self._run)

    @property
    def clock(self) -> ClusterClock:
        """The cluster's time: `clock.advance("30m")`, `clock.stop()`, `clock.start()`, `clock.now()`."""
        return ClusterClock(self._core.clock, self._run)

    @property
    def requests(self) -> Requests:
        """The last requests of clients: `requests["update leases"]`, `requests.wait_for("create pods")`."""
        return Requests(self._core.requests, self._run)

    @property
    def faults(self) -> Faults:
        """Faults for clients: `faults.add(verb="update", resource="leases", status=409, times=3)`."""
        return Faults(self._core.faults, self._run)

    @property
    def controllers(self) -> Controllers:
        """The mode of each of kube-controller-manager's controllers: `controllers["deployment-controller"]` is run, step or off.
        ValueError if the cluster runs no controllers."""
        return Controllers(self._core.controllers, self._run)

    @property
    def nodes(self) -> Nodes:
        """The simulated nodes: `nodes.script(selector="app=web", runs_for=3, exit_codes=(1,))`, `nodes.stop("node-1")`.
        ValueError if the cluster has no nodes."""
        return Nodes(self._core.nodes, self._run)

    @property
    def metrics(self) -> Metrics:
        """The values of the metrics APIs: `metrics.pod("web-0", cpu="250m")`, `metrics.external("queue", 30)`."""
        return Metrics(self._core.metrics, self._run)

    # ----------------------------------------------------------- start and stop

    def start(self) -> Self:
        """Starts the cluster in a thread of its own. Returns when it answers requests."""
        if self._thread is not None:
            raise ValueError("this cluster is running already: make another Cluster() for a second one")
        self._thread = LoopThread()
        try:
            self._thread.call(self._core.start, START_TIMEOUT)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Ends watches, closes sockets and removes files. A second call does nothing."""
        if self._thread is not None:
            self._thread.call(self._core.stop, START_TIMEOUT)
            self._thread.stop()
            self._thread = None

    def __enter__(self) -> Self:
        if self._core._is_fork and self._thread is not None:
            return self
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> AsyncCluster:
        return await self._core.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._core.stop()

    def _run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        if self._thread is None:
            _ = self._server  # raises unless it runs
            raise ValueError(
                "this cluster runs in your event loop: call what `async with Cluster() as cluster` returns, with await"
            )
        return self._thread.call(work)

    @property
    def _server(self) -> LocalServer:
        """The running server, for tests of this package. Its methods must be called in its event loop."""
        return self._core._server
