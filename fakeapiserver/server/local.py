"""An API server with everything a client on this machine needs: HTTPS, a CA, an admin's credentials, a kubeconfig.

Used by Cluster and by `fakeapiserver serve`.
"""

import asyncio
import errno
import logging
import secrets
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.chance import Chance
from fakeapiserver.clock import AdjustableClock, SystemClock, Timers
from fakeapiserver.component_helpers import controller_context
from fakeapiserver.component_helpers.cluster_signing import SIGNERS
from fakeapiserver.component_helpers.configuration import (
    NAMESPACE_DELETION_GRACE,
    KubeControllerManagerConfiguration,
)
from fakeapiserver.controller_manager import manager
from fakeapiserver.controller_manager.descriptor import selected
from fakeapiserver.nodes.stages import sources
from fakeapiserver.server import adopting, data_directory, forks, in_process, page_port
from fakeapiserver.server import origin as origins
from fakeapiserver.server.apiserver import APIServer
from fakeapiserver.server.etcd import backend as etcd_backend
from fakeapiserver.server.etcd import leadership
from fakeapiserver.server.http.edge_state import Limits
from fakeapiserver.server.http.serving import Server
from fakeapiserver.server.options import authentication, read_only
from fakeapiserver.server.options.config import Config
from fakeapiserver.server.outage import Outage
from fakeapiserver.server.own_certificates import BadCertificate, Certificates, bad_serving, own_certificates
from fakeapiserver.server.projects import local_webhooks, manifests
from fakeapiserver.server.simulated_nodes import components, node_readiness
from fakeapiserver.server.upkeep import bootstrap, first_objects, occasions
from fakeapiserver.transport import certificates
from fakeapiserver.transport.key_pair import KeyPair
from fakeapiserver.transport.kubeconfigs import kubeconfig, kubeconfig_file

log = logging.getLogger(__name__)

if TYPE_CHECKING:
    from fakeapiserver.component_helpers.controller_context import Signing
    from fakeapiserver.controller_manager.manager import ControllerManager, Extra
    from fakeapiserver.nodes.simulation import Simulation
    from fakeapiserver.server.data_directory import DataDirectory
    from fakeapiserver.server.projects.local_webhooks import LocalWebhooks
    from fakeapiserver.state.found import LoadReport

_NODE_LIFECYCLE: Final = "node-lifecycle-controller"
# The controllers that bind claims and let them be deleted.
_STORAGE: Final = (
    "persistentvolume-binder-controller",
    "persistentvolume-protection-controller",
    "persistentvolumeclaim-protection-controller",
)
_STOP_GRACE: Final = 2.0
# Neither node ports nor ports that the machine gives to clients.
_SEEDED_PORTS: Final = range(20000, 30000)
_TRIED_PORTS: Final = 20


class LocalServer:
    """Call order: construct, `await start()` in the event loop that serves, `await stop()`. OSError and ValueError have one clear
    sentence for the user. `listens`: whether it opens a port; without one, its requests come through `api.application` only.
    `origin`: the state to start with; None starts a fresh cluster. `defers_controllers`: in a fresh cluster, most controllers start when
    there is work for them."""

    def __init__(
        self,
        config: Config,
        *,
        clock: Timers | None = None,
        listens: bool = True,
        origin: origins.Origin | None = None,
        defers_controllers: bool = False,
    ) -> None:
        if config.etcd.servers and (config.load is not None or config.data_dir is not None):
            raise ValueError("--etcd-servers says where the state is: leave --load and --data-dir out")
        if config.read_only:
            read_only.check(config)
        if config.load is not None and origin is None:
            given = "kubernetes-version" in config.given
            config, origin = origins.load(config.load, config, same_version=not given)
        self._directory: DataDirectory | None = None
        if (folder := config.data_dir) is not None:
            is_read = config.read_only
            config, origin = data_directory.read(folder, config) if is_read else self._open(folder, config, origin)
        self._etcd = etcd_backend.EtcdBackend(config.etcd) if config.etcd.servers else None
        self.config = config
        self.listens = listens
        self.origin = origin
        # In a fresh cluster in memory, controllers write only what is known before.
        self._is_plain = origin is None and first_objects.may_store(config)
        self._defers_controllers = defers_controllers and self._is_plain
        self.load_report: LoadReport | None = None  # what became of objects from elsewhere
        self.admin_token = (origin.admin_token if origin is not None else "") or secrets.token_urlsafe(24)
        self.clock = clock or (origin.clock.fork() if origin is not None else AdjustableClock(config.stopped_at))
        self._certificates: Certificates | None = None
        self._server: Server | None = None
        self.api: APIServer | None = None
        self.webhooks: LocalWebhooks | None = None
        self.controllers: ControllerManager | None = None
        self.simulation: Simulation | None = None
        self._stages: Sequence[Object] = ()
        self._controllers: asyncio.Task[None] | None = None
        self._outage: Outage | None = None
        self._kubeconfigs: list[kubeconfig_file.KubeconfigFile] = []

    def _open(
        self, folder: Path, config: Config, origin: origins.Origin | None
    ) -> tuple[Config, origins.Origin | None]:
        """Opens the data directory, whose state is the origin unless it is a new one."""
        directory = self._directory = data_directory.DataDirectory(folder, config.sync)
        if directory.is_fresh:
            return config, origin
        try:
            if origin is not None:
                raise ValueError(
                    f"the data directory {folder} has a state already: load another one into an empty directory"
                )
            return directory.origin(config)
        except BaseException:
            directory.close()
            raise

    @property
    def url(self) -> str:
        host = self.config.bind_address
        host = "127.0.0.1" if host == "0.0.0.0" else f"[{host}]" if ":" in host else host
        return f"https://{host}:{self.port}"

    @property
    def port(self) -> int:
        return self._server.port if self._server is not None else self.config.secure_port

    @property
    def ca(self) -> bytes:
        """Returns what clients must trust, as PEM: the server's own authority, or the serving certificate that flags name."""
        assert self._certificates is not None
        own = self.config.tls_cert_file is None
        return self._certificates.authority.certificate if own else self._certificates.serving.certificate

    @property
    def page(self) -> "page_port.PagePort | None":
        """The page in a browser; None if the server has none, or doesn't run."""
        return self.api.page if self.api is not None else None

    def fork(self) -> origins.Origin:
        """The state of this moment, for another server with the same credentials."""
        assert self.api is not None
        assert isinstance(self.clock, AdjustableClock)
        return origins.Origin(
            storage=self.api.storage.fork(),
            clock=self.clock.fork(),
            certificates=self._certificates,
            admin_token=self.admin_token,
            keys=self.api.access.issuer.keys,
            modes=dict(self.controllers.modes) if self.controllers is not None else {},
            nodes=self.simulation.fork() if self.simulation is not None else None,
            metrics=self.api.metrics_apis.served,
            webhooks=self.webhooks,
            recording=self.api.recorded(),
            title=f"Fork of {self.url} at revision {self.api.storage.revision}",
        )

    async def _start_fork(self) -> "LocalServer":
        other = LocalServer(forks.config_of(self.config), origin=self.fork())
        try:
            await other.start()
        except BaseException:
            await other.stop()
            raise
        return other

    async def start(self) -> None:
        authentication.check_options(self.config)
        self._stages = _stages(self.config)
        origin = self.origin
        certificates = self._certificates = (origin and origin.certificates) or own_certificates(
            self.config, origin.authority if origin is not None else None
        )
        api = self.api = APIServer(
            self.config,
            clock=self.clock,
            admin_token=self.admin_token,
            client_ca=certificates.authority.certificate,
            front_proxy=certificates.front_proxy,
            storage=origin.storage.fork() if origin is not None and origin.storage is not None else None,
            directory=self._directory,
            etcd=self._etcd,
        )
        api.kubelet_identity = certificates.kubelet_client
        if origin is not None and origin.keys is not None:
            api.access.issuer.keys.share(origin.keys)
        if origin is not None:
            api.earlier_recording, api.title = origin.recording, origin.title
        api.faults.add_files(self.config.faults)
        api.starting = True
        await (api.start() if self._etcd is None else self._etcd.started(api.start()))
        if origin is not None:
            await api.metrics_apis.serve(origin.metrics)
        if self._has_stand_ins and (origin is None or origin.storage is None):
            await bootstrap.store_all(api.scopes, components.objects(self.config), self.clock.now())
        if origin is not None and origin.gathered is not None:
            self.load_report = await adopting.adopt(api, origin.gathered)
        if self._directory is not None:
            keys = await asyncio.to_thread(origins.private_keys, certificates, self.admin_token, api.access.issuer.keys)
            await self._directory.begin(api.table.scheme.version, keys)
        if self.listens:
            await self._listen(api, certificates.serving)
        if self.config.webhooks or self.config.crds:
            await self._install(api)
        elif origin is not None and origin.webhooks is not None:
            webhooks = self.webhooks = local_webhooks.LocalWebhooks(
                port=self.config.webhook_port, origin=origin.webhooks
            )
            api.webhooks_moved[webhooks.host, webhooks.stored_port] = webhooks.port
        await self._run_controllers(api)
        api.starting = False

    async def _listen(self, api: APIServer, serving: KeyPair) -> None:
        """Opens the HTTPS port. OSError with the reason if it can't be opened."""
        context = api.client_authorities.context(serving)
        if self.config.ui:
            api.page = page_port.PagePort(api.application, self.config.ui_port)
        for port in _ports(self.config, api.chance):
            self._server = Server(
                api.application if api.page is None else api.page.application,
                host=self.config.bind_address,
                port=port,
                tls=context,
                limits=Limits(body_timeout=self.config.request_timeout + 30),
            )
            try:
                await self._server.start()
                break
            except OSError as error:
                if error.errno != errno.EADDRINUSE or port == self.config.secure_port:
                    raise OSError(_bind_problem(self.config, error)) from error
        if api.page is not None:
            await api.page.start()
        api.forks = forks.Forks(self._start_fork, lambda: api.storage.revision)
        api.address = self.url.removeprefix("https://")
        api.listener = self

    async def serve_bad_certificate(self, problem: BadCertificate) -> None:
        """Resets all connections, and serves new ones with a certificate that clients refuse. Raises ValueError for another problem than
        expired, unknown and name."""
        if problem not in get_args(BadCertificate):
            raise ValueError(f"a certificate is {', '.join(get_args(BadCertificate))}, not {problem!r}")
        assert self._certificates is not None
        await self._serve_with(bad_serving(self.config, self._certificates.authority, problem))

    async def serve_own_certificate(self) -> None:
        """Resets all connections, and serves new ones with the server's certificate."""
        assert self._certificates is not None
        await self._serve_with(self._certificates.serving)

    async def _serve_with(self, serving: KeyPair) -> None:
        if self._server is None or self.api is None:
            raise ValueError("this server has no port, and so no certificate")
        if self._outage is not None and not self._outage.over:
            raise ValueError("this server can't be reached: end the outage first")
        await self._server.restart(self.api.client_authorities.context(serving))

    async def _run_controllers(self, api: APIServer) -> None:
        """Starts the controllers, which synchronize while the server already answers requests."""
        if self.config.read_only:
            return
        if self._simulates:
            self.simulation = components.simulate(api, self.clock, self._stages)
            if self.origin is not None and self.origin.nodes is not None:
                self.simulation.take_over(self.origin.nodes)
        extra: Mapping[str, Extra] = {}
        if self._simulates or self._has_stand_ins:
            extra = components.local(self.config, self.simulation, self._stages)
        if not selected(self.config.controllers) and not extra:
            return

        if self._etcd is not None:
            await self._run_elected(api, extra)
            return
        self._new_manager(api, extra)
        await self._begin_controllers(api)
        self._controllers = asyncio.create_task(self._go_on())
        self._controllers.add_done_callback(_tell_failure)
        await self._wait_for_nodes(api)

    async def _run_elected(self, api: APIServer, extra: "Mapping[str, Extra]") -> None:
        """Starts the controllers while this server is the one of its etcd that runs them."""

        async def begin() -> None:
            self._new_manager(api, extra)
            await self._begin_controllers(api)

        def resign() -> None:
            self.controllers = api.controllers = None

        client = in_process.InProcessClients(api.application, self.url, SystemClock()).client("")
        election = leadership.Leadership(client, begin, self._go_on, resign)
        self._controllers = asyncio.create_task(election.run())
        await election.decided()
        if self.controllers is not None:
            await self._wait_for_nodes(api)

    def _new_manager(self, api: APIServer, extra: "Mapping[str, Extra]") -> None:
        clients = in_process.InProcessClients(api.application, self.url, self.clock)
        self.controllers = api.controllers = manager.ControllerManager(
            clients,
            controllers=self._wanted_controllers(),
            stepped=self.config.step_controllers,
            configuration=KubeControllerManagerConfiguration(
                feature_gates=api.table.scheme.features,
                # With simulated nodes people wait for namespaces, and no other API server has to notice anything.
                namespace_deletion_grace=0.0 if self._simulates else NAMESPACE_DELETION_GRACE,
            ),
            extra=extra,
            clock=self.clock,
            root_ca=self.ca,
            signing=self._signing(api),
            in_flight=lambda: clients.in_flight + api.storage.undelivered,
            revision=lambda: api.storage.revision,
            random=api.chance.source("controllers") if api.chance.seed is not None else None,
            observer=api.recorder.work if api.recorder is not None else None,
            occasion=partial(occasions.first, api.storage) if self._defers_controllers and not extra else None,
        )

    async def _begin_controllers(self, api: APIServer) -> None:
        assert self.controllers is not None
        for name, mode in self.origin.modes.items() if self.origin is not None else ():
            if self.controllers.mode(name) != mode:
                await self.controllers.set_mode(name, mode)
        if self._is_plain:
            running = [name for name in first_objects.WRITERS if self.controllers.mode(name) == "run"]
            await first_objects.store(api.scopes, running, self.ca)
        await self.controllers.begin(is_prepared=self._is_plain)

    async def _go_on(self) -> None:
        assert self.controllers is not None
        await self.controllers.run()

    async def _wait_for_nodes(self, api: APIServer) -> None:
        """Waits until simulated nodes are ready."""
        assert self.controllers is not None
        assert self._controllers is not None
        if self.simulation is not None and self.simulation.running and "Node" not in self.simulation.staged:
            untainted = self.controllers.mode(_NODE_LIFECYCLE) == "run"
            await node_readiness.wait_for_nodes(api, self.simulation.running, self._controllers, untainted=untainted)

    @property
    def _simulates(self) -> bool:
        """Reports whether nodes are simulated here, or stages drive objects."""
        return bool(self.config.nodes or self._stages)

    @property
    def _has_stand_ins(self) -> bool:
        """Reports whether something stands in for a cloud's storage or load balancers."""
        return self.config.local_storage or self.config.cloud_storage or self.config.load_balancers

    def _wanted_controllers(self) -> Sequence[str]:
        """The controllers to run. Simulated nodes need the one that removes their not-ready taint, local storage those of volumes."""
        wanted = self.config.controllers
        needed: tuple[str, ...] = (_NODE_LIFECYCLE,) if self._simulates else ()
        needed += _STORAGE if self.config.local_storage or self.config.cloud_storage else ()
        brought = [name for name in needed if not any(known.removeprefix("-") == name for known in wanted)]
        return [*(name for name in wanted if name != "none" or not brought), *brought]

    def _signing(self, api: APIServer) -> "Signing":
        """Returns what controllers sign with: the keys of the server's tokens, and its own authority."""
        assert self._certificates is not None
        return controller_context.Signing(api.sign_token, dict.fromkeys(SIGNERS, self._certificates.authority))

    async def _install(self, api: APIServer) -> None:
        config = self.config
        self.webhooks = local_webhooks.LocalWebhooks(config.webhook_cert_dir, config.webhook_port)
        await local_webhooks.install(self.webhooks, config.webhooks, config.crds, api.versions, api.writer)
        await api.serve_definitions()

    async def begin_outage(self, seconds: float | None) -> Outage:
        """Closes the port and resets all connections, for so many seconds of the clock, or until the outage is ended."""
        if self._server is None:
            raise ValueError("this server has no port that could be closed")
        if self._outage is not None and not self._outage.over:
            raise ValueError("this server can't be reached already: end that outage first")
        self._outage = Outage(self._server, self.clock)
        await self._outage.begin(seconds)
        return self._outage

    async def restart(self, *, compact: bool) -> None:
        """Resets all connections, and ends all watches. `compact`: forgets the history, so that clients can't resume them."""
        assert self.api is not None
        outage = await self.begin_outage(None)
        try:
            self.api.storage.lose_watches()
            if compact:
                await self.api.storage.compact(self.api.storage.revision)
        finally:
            await outage.end()

    async def stop(self) -> None:
        """Stops everything; watches end first, so that their requests finish by themselves. Raises OSError or ValueError if a
        kubeconfig can't be cleaned up."""
        try:
            while self._kubeconfigs:
                self._kubeconfigs.pop().remove()
        finally:
            await self._stop()

    async def _stop(self) -> None:
        if self.api is not None and self.api.forks is not None:
            await self.api.forks.close()
        if self._outage is not None:
            self._outage.cancel()
        if self._controllers is not None:
            self._controllers.cancel()
            await asyncio.gather(self._controllers, return_exceptions=True)
        if self.api is not None:
            await self.api.stop()
            if self.api.page is not None:
                await self.api.page.stop()
        if self._server is not None:
            await self._server.stop(_STOP_GRACE)
        if self.api is not None:
            await self.api.finish()
        if self._directory is not None:
            self._directory.close()
        if self.webhooks is not None:
            self.webhooks.close()
        await asyncio.sleep(0)

    def write_kubeconfig(self, path: Path) -> None:
        """Writes the admin's kubeconfig, with mode 0600, to a file of the server's own."""
        try:
            kubeconfig.write(path, self._admin_kubeconfig())
        except OSError as error:
            raise OSError(f"can't write the kubeconfig {path}: {error.strerror}") from error

    def add_to_kubeconfig(self, path: Path) -> None:
        """Adds the admin's context to a kubeconfig that others may use as well, until the server stops. Creates the file with mode 0600 if
        it doesn't exist.
        """
        file = kubeconfig_file.KubeconfigFile(path)
        file.add(self._admin_kubeconfig())
        self._kubeconfigs.append(file)

    def _admin_kubeconfig(self) -> dict[str, Any]:
        assert self._certificates is not None
        name = self.config.context_name
        return kubeconfig.render(self.url, authority=self.ca, client=self._certificates.admin, name=name, user=name)

    def user_kubeconfig(self, name: str, groups: Sequence[str]) -> dict[str, Any]:
        """A kubeconfig for a user with a client certificate: CN is the name, each O a group."""
        assert self._certificates is not None
        client = certificates.issue_client(self._certificates.authority, name, groups)
        return kubeconfig.render(self.url, authority=self.ca, client=client, user=name)

    def token_kubeconfig(self, token: str, user: str, namespace: str) -> dict[str, Any]:
        """A kubeconfig with a token, whose user is called `user` in it."""
        return kubeconfig.render(self.url, authority=self.ca, token=token, user=user, namespace=namespace)


def _stages(config: Config) -> Sequence[Object]:
    """The Stages of the configuration. OSError or ValueError for files or objects that can't be used."""
    if not config.stages:
        return ()

    stages = manifests.required(config.stages, "Stage")
    sources.check(stages)
    return stages


def _ports(config: Config, chance: Chance) -> Sequence[int]:
    """The ports to try, one after the other: the given one, or those that follow from the seed and at last any free one."""
    if config.secure_port or chance.seed is None:
        return [config.secure_port]
    return [*chance.source("port").sample(_SEEDED_PORTS, _TRIED_PORTS), 0]


def _tell_failure(controllers: "asyncio.Task[None]") -> None:
    """Logs the failure of the controllers, which nothing awaits while the server runs."""
    if not controllers.cancelled() and (error := controllers.exception()) is not None:
        log.error("the controllers can't go on: %s", error)


def _bind_problem(config: Config, error: OSError) -> str:
    place = f"{config.bind_address}:{config.secure_port}"
    if error.errno == errno.EADDRINUSE:
        return f"port {config.secure_port} is in use; choose another with --secure-port (port= of a Cluster), or 0 for a free one"
    return f"can't listen on {place}: {error.strerror or error}"
