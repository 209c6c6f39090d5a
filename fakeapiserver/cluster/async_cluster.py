"""`AsyncCluster`: an API server in the running event loop. Everything that waits is a coroutine.

async with AsyncCluster() as cluster:
    await cluster.settle()
"""

import asyncio
import os
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

from fakeapiserver.apimachinery.duration import parse_duration
from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.cluster import arguments, clients, eventually, operators, reset, settling
from fakeapiserver.cluster.access import AsyncAccess
from fakeapiserver.cluster.clock import AsyncClusterClock
from fakeapiserver.cluster.controllers import AsyncControllers
from fakeapiserver.cluster.eventually import T
from fakeapiserver.cluster.faults import AsyncBadCertificate, AsyncFault, AsyncFaults, AsyncOutage
from fakeapiserver.cluster.metrics import AsyncMetrics
from fakeapiserver.cluster.nodes import AsyncNodes
from fakeapiserver.cluster.options import ClusterOptions, Configured
from fakeapiserver.cluster.page import AsyncPage
from fakeapiserver.cluster.processes.operator_process import OperatorProcesses
from fakeapiserver.cluster.requests import AsyncRequests
from fakeapiserver.cluster.reset import Mark
from fakeapiserver.cluster.verbs import AsyncVerbs
from fakeapiserver.cluster.webhooks import AsyncWebhooks
from fakeapiserver.server import exported, forks
from fakeapiserver.server import origin as origins
from fakeapiserver.server.apiserver import APIServer
from fakeapiserver.server.local import LocalServer
from fakeapiserver.server.origin import Origin
from fakeapiserver.state import diff as diffs
from fakeapiserver.state import file, manifests
from fakeapiserver.state.changes import ObjectChange, decoded
from fakeapiserver.storage.mvcc import Snapshot
from fakeapiserver.transport.kubeconfigs import kubeconfig, temporary_folder

if TYPE_CHECKING:
    from fakeapiserver.cluster.operators import AsyncOperator, Setup
    from fakeapiserver.cluster.settling import Operators
    from fakeapiserver.controller_runtime.manager import ManagerOptions
    from fakeapiserver.state.diff import Diff
    from fakeapiserver.state.found import LoadReport

_NOT_RUNNING = "this cluster is not running: use it inside `with Cluster() as cluster:`"


class AsyncCluster(AsyncVerbs, OperatorProcesses, Configured):
    """A private API server in the running event loop, with the options of `Cluster`.

    It has `Cluster`'s members under the same names; those that act on the server or wait are coroutines. A client that blocks the event
    loop would wait for a server that can't answer meanwhile: use an asynchronous client, or `asyncio.to_thread`.
    """

    _folder: temporary_folder.TemporaryFolder | None = None
    _local: LocalServer | None = None
    _origin: Origin | None = None  # the state to start with; None: that of a fresh cluster
    _is_fork = False

    def __init__(self, **options: Unpack[ClusterOptions]) -> None:
        super().__init__(**options)
        # Those that run, in the order of their starts.
        self._operators: list[AsyncOperator] = []

    async def write_kubeconfig(self, path: str | os.PathLike[str]) -> None:
        """Adds the admin's context `fakeapiserver` to the kubeconfig at `path` and makes it the current one; `path` is made, with mode
        0600, if it doesn't exist. When the cluster stops, the context goes and the rest of the file is as it was. Raises OSError or
        ValueError if `path` is something else than a kubeconfig, which is left as it is."""
        self._server.add_to_kubeconfig(Path(path))

    # ------------------------------------------------------ how clients connect

    @property
    def url(self) -> str:
        """`https://127.0.0.1:PORT`."""
        return self._server.url

    @property
    def kubeconfig(self) -> str:
        """The path of a kubeconfig (mode 0600) for the cluster's admin. It is removed when the cluster stops."""
        return str(Path(self._require_folder()) / "kubeconfig")

    @property
    def ca(self) -> bytes:
        """The certificate authority that clients must trust, as PEM."""
        return self._server.ca

    @property
    def token(self) -> str:
        """A bearer token of a user in system:masters."""
        return self._server.admin_token

    @property
    def webhooks(self) -> AsyncWebhooks:
        """The port and certificate for your webhook server. Raises ValueError if the cluster was created without webhooks.

        manager = subprocess.Popen([..., f"--webhook-port={cluster.webhooks.port}",
        f"--webhook-cert-path={cluster.webhooks.cert_dir}"])
        cluster.webhooks.wait()
        """
        local = self._server.webhooks
        if local is None:
            raise ValueError(
                'this cluster has no webhooks: name their manifests, as in Cluster(webhooks="config/webhook/")'
            )
        return AsyncWebhooks(local)

    def user(self, name: str, groups: Sequence[str] | str = ()) -> str:
        """The path of a kubeconfig (mode 0600) for a user with a client certificate of this cluster's authority.

        The user may do what RBAC allows: `cluster.user("jane", groups=["dev"])` needs a (Cluster)RoleBinding for User jane or
        Group dev, `groups=["system:masters"]` may do everything."""
        if not isinstance(name, str) or not name:
            raise ValueError(f"name must be a user's name, not {name!r}")
        return self._written(self._server.user_kubeconfig(name, arguments.as_names("groups", groups)))

    def service_account(self, name: str, *, lifetime: float = 3600.0) -> str:
        """The path of a kubeconfig (mode 0600) with a token for the service account `name` (`namespace/name`), as
        `kubectl create token` makes it. It is valid for `lifetime` seconds. ValueError: there is no such account."""
        namespace, _, account = name.partition("/") if isinstance(name, str) else ("", "", "")
        if not (namespace and account):
            raise ValueError(f"name must be namespace/name of a service account, not {name!r}")
        token = self._api.service_account_token(namespace, account, int(lifetime))
        return self._written(self._server.token_kubeconfig(token, name, namespace))

    async def client(self, package: str, *, user: str = "", groups: Sequence[str] | str = ()) -> Any:
        """A client of another package for this cluster: `kubernetes_asyncio` (an ApiClient), `kr8s`, `lightkube`, or `kubernetes`, an
        ApiClient whose calls block and therefore belong into `asyncio.to_thread`. Close it as its package says.

        - `user`, `groups`: the client is that user's, as for `user()`; `namespace/name` is a service account. By default the admin's.

        ModuleNotFoundError with the command that installs the package; ValueError for an unknown package."""
        return await clients.asynchronous(package, self._kubeconfig_of(user, groups))

    def _kubeconfig_of(self, user: str, groups: Sequence[str] | str) -> str:
        if "/" in user:
            return self.service_account(user)
        return self.user(user, groups) if user else self.kubeconfig

    def _written(self, config: dict[str, Any]) -> str:
        path = Path(tempfile.mkdtemp(dir=self._require_folder())) / "kubeconfig"
        kubeconfig.write(path, config)
        return str(path)

    @property
    def rbac(self) -> AsyncAccess:
        """The roles that clients needed so far, and the requests that were refused."""
        if self._api.access_log is None:
            raise ValueError("this cluster doesn't keep what it allowed: only one made by Cluster() does")
        return AsyncAccess(self._api.access_log)

    # -------------------------------------------------- what no real server can do

    async def snapshot(self) -> Snapshot:
        """The present state of everything stored. Takes microseconds, since stored objects never change."""
        return self._api.snapshot()

    async def restore(self, snapshot: Snapshot) -> None:
        """Restores a state of this or another cluster. Revisions go on rising, and every open watch ends, so that clients list
        again, as after any lost connection."""
        await self._api.restore(snapshot)

    async def changes(self, after: int = 0) -> list[ObjectChange]:
        """The writes after a revision, in order, each with the object before and after it. 0: all that the history still has.

        Raises Compacted if the history after `after` is forgotten, by age (100,000 writes) or by `restart(compact=True)`."""
        storage = self._api.storage
        return [*decoded(storage.changes_after(after or storage.compacted))]

    async def mark(self) -> Mark:
        """The present state of everything that a test can change, for `reset`. Waits until the controllers are at rest."""
        return await reset.mark(self._server)

    async def reset(self, to: Mark) -> None:
        """Makes the cluster as it was at `to`: what `restore` restores, and also the clock, controllers' modes, nodes, scripts, metrics
        and the record of requests. Takes some milliseconds."""
        await reset.reset(self._server, to)

    async def fork(self) -> "AsyncCluster":
        """Another cluster, which runs already, from the present state: `async with await cluster.fork() as other:`.

        It has its own port, the same options, and everything stored under the same uids and resourceVersions, with the history: a watch
        from an older resourceVersion works there, too. Its certificates, keys and tokens are the same, so the credentials of a kubeconfig
        are valid at its url. The clock shows the same time, controllers have the same modes, nodes the same scripts and states; faults
        are not copied. Both clusters go on independently; stop each."""
        return await (await self._prepare_fork()).start()

    async def save(self, path: str | os.PathLike[str], *, keys: bool = False) -> None:
        """Writes the present state with its history to a file, for `Cluster.load` and `serve --load`; compressed if the name ends in .gz.

        The file has mode 0600, since it contains the values of Secrets. An existing file is replaced as a whole. Raises OSError.

        - `keys`: save the private keys of the cluster's authority and of its tokens, too, so that credentials of this cluster are
          valid for the loaded one."""
        data = await self._saved(keys=keys)
        await asyncio.to_thread(file.write, path, data)

    async def diff(self, since: Snapshot, *, noise: bool = False) -> "Diff":
        """The differences between an earlier snapshot and the present state: true if there are any. Its text is YAML; `added`, `removed`
        and `changed` are lists of objects.

        - `noise`: also compare managedFields, resourceVersion, uid, generation and times."""
        return diffs.diff(since, self._api.snapshot(), noise=noise)

    async def export(self, folder: str | os.PathLike[str], *, secrets: bool = False) -> list[Path]:
        """Writes a manifest for each object, without status and what the server sets: `folder/NAMESPACE/KIND-NAME.yaml`, and in `_cluster`
        those without a namespace. Returns the paths. `Cluster(objects=folder)` and `kubectl apply -R -f folder` take them.

        Objects of a fresh cluster, and those that controllers make from others, are left out.

        - `secrets`: also write the values of Secrets, which are empty otherwise. OSError."""
        objects = [*exported.objects(self._api, secrets=secrets)]
        return await asyncio.to_thread(manifests.write, Path(folder), objects)

    async def _saved(self, *, keys: bool) -> bytes:
        """The bytes of a file with the present state."""
        version = self._api.table.scheme.version
        state = await asyncio.to_thread(origins.saved, self._server.fork(), version, keys=keys)
        return await asyncio.to_thread(file.encode, state)

    @classmethod
    def load(cls, path: str | os.PathLike[str], **options: Unpack[ClusterOptions]) -> Self:
        """A cluster that starts with a state that `save` has written: same uids, resourceVersions, times and history. To be started as any
        other: `with Cluster.load("state.json.gz", nodes=2) as cluster:`.

        - `path`: may also be of another cluster: a file or folder of manifests, what `kubectl get -o yaml` has printed, a support bundle, a
          must-gather, or another archive of such files, an etcd's snapshot. Objects keep their status, uid, resourceVersion and times;
          `load_report` has what could not be taken. Objects without a uid are created.
        - `options`: those of `Cluster`. `kubernetes_version` is by default that of the saved cluster.

        OSError; ValueError with one sentence for a path that is damaged, from a newer version, or holds no objects."""
        cluster = cls(**options)
        same_version = "kubernetes_version" not in options
        cluster._config, cluster._origin = origins.load(path, cluster._config, same_version=same_version)
        return cluster

    @property
    def load_report(self) -> "LoadReport | None":
        """The report about the objects of another cluster with which this one started. Its text has a line for each that was not taken;
        None for a cluster that was not loaded, or from a saved state."""
        return self._server.load_report

    async def _prepare_fork(self) -> "AsyncCluster":
        """A cluster with the present state, to be started in any event loop."""
        other = AsyncCluster.from_config(forks.config_of(self._config))
        other._origin, other._is_fork = self._server.fork(), True
        return other

    async def outage(self, duration: float | str | None = None) -> AsyncOutage:
        """Closes the port and resets all connections: `async with await cluster.outage(): ...`. State, certificates, tokens and
        kubeconfigs stay valid. The bundled controllers go on, since they ask within the process.

        - `duration`: seconds, or a duration such as "10s", on the cluster's clock; None: until the outage is ended.

        Raises ValueError during another outage."""
        seconds = parse_duration(duration) if isinstance(duration, str) else duration
        return AsyncOutage(await self._server.begin_outage(seconds))

    async def restart(self, *, compact: bool = False) -> None:
        """Restarts the API server as clients see it: connections are reset, watches end, and the url and all credentials stay the same.

        - `compact`: forget the history, so that clients can't resume their watches and list again."""
        await self._server.restart(compact=compact)

    async def bad_certificate(self, problem: Literal["expired", "unknown", "name"] = "expired") -> AsyncBadCertificate:
        """Resets all connections and serves a certificate that clients refuse: `async with await cluster.bad_certificate(): ...`.

        - `problem`: it has `expired`, is of an `unknown` authority, or is for another `name`.

        Raises ValueError for any other problem, and during an outage."""
        await self._server.serve_bad_certificate(problem)
        return AsyncBadCertificate(self._server)

    async def read_only(self) -> AsyncFault:
        """Refuses all writes of clients, as a server whose etcd has no space left: `async with await cluster.read_only(): ...`."""
        return await self.faults.add(verb="write", status=500)

    async def lose_watches(self) -> int:
        """Ends every open watch and returns their number."""
        return self._api.storage.lose_watches()

    @property
    def page(self) -> AsyncPage:
        """The page in a browser: `page.link()`; as a file: `await page.save("page.html")`."""
        return AsyncPage(self._server)

    @property
    def clock(self) -> AsyncClusterClock:
        """The cluster's time: `clock.advance("30m")`, `clock.stop()`, `clock.start()`, `clock.now()`."""
        return AsyncClusterClock(self._api)

    @property
    def requests(self) -> AsyncRequests:
        """The last requests of clients: `requests["update leases"]`, `await requests.wait_for("create pods")`."""
        if self._api.request_log is None:
            raise ValueError("this cluster doesn't keep its requests: start it with kept_requests=1000")
        return AsyncRequests(self._api.request_log)

    @property
    def faults(self) -> AsyncFaults:
        """Faults for clients: `await faults.add(verb="update", resource="leases", status=409, times=3)`."""
        return AsyncFaults(self._api.faults)

    @property
    def controllers(self) -> AsyncControllers:
        """The mode of each of kube-controller-manager's controllers: `controllers["deployment-controller"]` is run, step or off.
        ValueError if the cluster runs no controllers."""
        manager = self._server.controllers
        if manager is None:
            raise ValueError('this cluster runs no controllers: make it with Cluster(controllers=["*"])')
        return AsyncControllers(manager)

    @property
    def nodes(self) -> AsyncNodes:
        """The simulated nodes: `nodes.script(selector="app=web", runs_for=3, exit_codes=(1,))`, `nodes.stop("node-1")`.
        ValueError if the cluster has no nodes."""
        simulation = self._server.simulation
        if simulation is None:
            raise ValueError("this cluster has no simulated nodes: make it with Cluster(nodes=3)")
        return AsyncNodes(simulation)

    @property
    def metrics(self) -> AsyncMetrics:
        """The values of the metrics APIs: `metrics.pod("web-0", cpu="250m")`, `metrics.external("queue", 30)`."""
        return AsyncMetrics(self._api.metrics_apis)

    async def settle(self, timeout: float = 30.0, *, with_: "Operators | None" = None, quiet: float = 0.25) -> None:
        """Waits until every bundled controller and all their watches are at rest. After `timeout` seconds it raises NotSettled (a
        TimeoutError), which names what is still moving. Returns at once if no controllers run.

        - `with_`: the operator under test has to be at rest, too: the pattern of a user agent, user or connection (`"my-operator*"`), a
          `Manager` of `fakeapiserver.controller_runtime`, or a list of these. It is at rest when it has been seen, has no request in
          flight, has been sent all events, and has sent no request for a while; a Manager's queues must be empty. Requests for leases
          don't count.
        - `quiet`: that while, in real seconds.

        Raises ValueError for another `with_`."""
        await settling.settle(self._server, self._operators, timeout, with_, quiet)

    def operator(
        self,
        setup: "Setup",
        *,
        name: str = "operator",
        user: str = "",
        groups: Sequence[str] | str = (),
        options: "ManagerOptions | None" = None,
    ) -> "AsyncOperator":
        """An operator of `fakeapiserver.controller_runtime`, which runs in the cluster's event loop and by its clock:
        `async with cluster.operator(setup) as operator:`. `settle`, `eventually` and `clock.advance` wait for it, and its requests are in
        `cluster.requests`, although they need no connection. `operator.restart()` begins again with empty caches.

        - `setup`: adds the controllers to a Manager, as in a program that calls `setup(manager)` and `manager.run()`.
        - `name`: its user agent, and the field manager unless the options have another.
        - `user`, `groups`: its user; `namespace/name` is a service account. By default the admin.
        - `options`: those of the Manager."""
        info = operators.user_info(user, arguments.as_names("groups", groups))
        return operators.AsyncOperator(self._server, setup, name, info, options, self._operator_changed)

    def _operator_changed(self, operator: "AsyncOperator", is_running: bool) -> None:
        """Lets everything that waits for the controllers wait for the operator as well."""
        (self._operators.append if is_running else self._operators.remove)(operator)
        self._api.rest = self.settle if self._operators else None

    async def eventually(self, check: Callable[[], T | Awaitable[T]], timeout: float | str = 30.0) -> T:
        """Calls `check` until it holds, and returns what it returns: `await cluster.eventually(lambda: "web" in names())`. It holds when it
        returns None or something true. It is called again after an AssertionError, a LookupError, and the error of any client for an
        object that doesn't exist, as soon as something is written, a client is answered, or time moves on.

        - `check`: a function or coroutine function.
        - `timeout`: seconds, or a duration such as "30s", on the cluster's clock. A clock that stands still is moved on from one due
          time to the next, unless a client outside of this process has a watch or a request open: then these are real seconds.

        Raises what the last call has raised when the time is up, any other error at once, and ValueError for an unreadable timeout."""
        return await eventually.until_it_holds(check, self._server, timeout, self.settle)

    # ----------------------------------------------------------- start and stop

    async def start(self) -> Self:
        """Starts the cluster. Returns when it answers requests. OSError or ValueError, with one sentence that says what to do."""
        if self._local is not None:
            raise ValueError("this cluster is running already: make another Cluster() for a second one")
        try:
            self._local = self._new_server()
            await self._local.start()
            if self._local.listens:
                self._folder = temporary_folder.TemporaryFolder()
                self._local.write_kubeconfig(Path(self.kubeconfig))
            if self._objects:
                await self._apply_objects()
        except BaseException:
            await self.stop()
            raise
        return self

    async def _apply_objects(self) -> None:
        """ValueError, with the server's refusal."""
        try:
            await self.apply(self._objects)
        except (StatusError, LookupError, ValueError) as error:
            raise ValueError(f"objects: {error}") from None

    async def stop(self) -> None:
        """Ends watches, closes sockets and removes files. A second call does nothing."""
        for operator in [*self._operators]:
            await operator.stop()
        self._close_resources()
        if self._local is not None:
            await self._local.stop()
            self._local = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _new_server(self) -> LocalServer:
        return LocalServer(self._config, origin=self._origin, defers_controllers=True)

    async def __aenter__(self) -> Self:
        if self._is_fork and self._local is not None:
            return self
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stop()

    # ------------------------------------------------- for tests of this package

    @property
    def _server(self) -> LocalServer:
        """The running server. Its methods must be called in its event loop."""
        if self._local is None:
            raise ValueError(_NOT_RUNNING)
        return self._local

    @property
    def _api(self) -> APIServer:
        api = self._server.api
        assert api is not None
        return api

    def _require_folder(self) -> str:
        if self._folder is None:
            raise ValueError(_NOT_RUNNING)
        return self._folder.name
