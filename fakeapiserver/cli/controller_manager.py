"""`fakeapiserver controller-manager`: the bundled controllers against any API server, with kube-controller-manager's flags.

Upstream: cmd/kube-controller-manager/app/{controllermanager.go,options}. Health and metrics are served to whoever reaches the port,
which is therefore on loopback unless --bind-address says otherwise.
"""

import asyncio
import socket
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct, field
from msgspec.structs import fields, replace

from fakeapiserver.apis.scheme import read_table
from fakeapiserver.cli.complain import complain
from fakeapiserver.cli.flags import (
    UsageError,
    read_boolean,
    read_duration,
    read_feature_gates,
    read_integer,
    read_list,
    read_number,
    split_flag,
)
from fakeapiserver.cli.serve import configure_logging, run_loop, stop_on_signals
from fakeapiserver.client import kubeconfig
from fakeapiserver.client.config import RESTConfig
from fakeapiserver.client.dynamic import DynamicClient
from fakeapiserver.client.leaderelection import LeaderElector, LeaseLock
from fakeapiserver.client.rest import RESTClient
from fakeapiserver.component_helpers.cluster_signing import authorities
from fakeapiserver.component_helpers.configuration import KubeControllerManagerConfiguration
from fakeapiserver.component_helpers.controller_context import Signing
from fakeapiserver.controller_manager.clients import ClientBuilder, ServiceAccountClientBuilder, SimpleClientBuilder
from fakeapiserver.controller_manager.descriptor import QUEUE_NAMES, selected
from fakeapiserver.controller_manager.manager import ControllerManager
from fakeapiserver.controller_manager.serving import healthz_and_metrics
from fakeapiserver.controller_runtime.http_server import HTTPServer
from fakeapiserver.controller_runtime.metrics import Metrics

_READERS: Final[Mapping[object, Callable[[str], object]]] = {
    bool: read_boolean,
    int: read_integer,
    float: read_number,
    str: str,
    Path | None: Path,
    Mapping[str, bool]: read_feature_gates,
}
_SETTINGS: Final = {setting.name.replace("_", "-"): setting for setting in fields(KubeControllerManagerConfiguration)}


class Options(Struct):
    """The command line. Times in seconds; `warnings` are lines for standard error."""

    configuration: KubeControllerManagerConfiguration = field(default_factory=KubeControllerManagerConfiguration)
    kubeconfig: str = ""
    master: str = ""
    controllers: tuple[str, ...] = ()
    kube_api_qps: float = 20.0
    kube_api_burst: int = 30
    leader_elect: bool = True
    leader_elect_lease_duration: float = 15.0
    leader_elect_renew_deadline: float = 10.0
    leader_elect_retry_period: float = 2.0
    leader_elect_resource_name: str = "kube-controller-manager"
    leader_elect_resource_namespace: str = "kube-system"
    bind_address: str = "127.0.0.1"
    secure_port: int = 10257
    v: int = 0
    help: bool = False
    warnings: list[str] = field(default_factory=list)


_OPTIONS: Final = {option.name.replace("_", "-"): option for option in fields(Options)}


def parse(arguments: Sequence[str]) -> Options:
    """UsageError for a flag that kube-controller-manager doesn't have, or a value that can't be read."""
    types: dict[str, str] = {**read_table("v1.36", "controller_manager_flags.json")["flags"], "v": "Level"}
    options, words, settings = Options(), [*arguments], dict[str, object]()
    while words:
        name, value = split_flag(words.pop(0), words, types)
        if name in _SETTINGS:
            settings[_SETTINGS[name].name] = _read(name, value, _SETTINGS[name].type, types[name])
        elif name == "controllers":
            options.controllers += read_list(value)
        elif name in _OPTIONS and name != "warnings":
            setattr(options, _OPTIONS[name].name, _read(name, value, _OPTIONS[name].type, types[name]))
        else:
            options.warnings.append(f"--{name} is kube-controller-manager's, but has no effect here")
    options.controllers = options.controllers or ("*",)
    try:
        selected(options.controllers)
    except ValueError as error:
        raise UsageError(f"--controllers: {error}") from None
    options.configuration = replace(options.configuration, **settings)
    return options


def _read(name: str, text: str, kind: object, flag_type: str) -> object:
    reader = read_duration if flag_type == "duration" else _READERS[kind]
    try:
        return reader(text)
    except UsageError as error:
        raise UsageError(f'invalid argument "{text}" for "--{name}" flag: {error}') from None


def main(arguments: Sequence[str]) -> int:
    """0 after a signal; 1 when it can't start, or leads no more; 2 for a wrong command line."""
    try:
        options = parse(arguments)
    except UsageError as error:
        return complain(f"{error} (see fakeapiserver controller-manager --help)", 2)
    if options.help:
        print(help_text(), end="")
        return 0
    for warning in options.warnings:
        print(f"fakeapiserver: warning: {warning}", file=sys.stderr)
    configure_logging(options.v)
    try:
        return run_loop(_run(options, _config(options)))
    except (OSError, ValueError) as error:
        return complain(str(error), 1)


def help_text() -> str:
    heeded = "\n".join(f"  --{name}" for name in sorted({*_SETTINGS, *_OPTIONS} - {"warnings"}))
    names = "\n".join(f"  {found.name}" for found in selected(("*",)))
    return (
        "usage: fakeapiserver controller-manager --kubeconfig FILE [FLAG ...]\n\n"
        f"flags that are heeded, with kube-controller-manager's meaning:\n{heeded}\n\n"
        f"controllers that run by default:\n{names}\n\n"
        "Every other flag of kube-controller-manager is accepted with one warning line; unknown ones are refused.\n"
    )


def _config(options: Options) -> RESTConfig:
    config = kubeconfig.load(options.kubeconfig or None)
    changes: dict[str, object] = {"qps": options.kube_api_qps, "burst": options.kube_api_burst}
    return config.with_(**changes, **({"host": options.master} if options.master else {}))


async def _run(options: Options, config: RESTConfig) -> int:
    stop, metrics = stop_on_signals(), Metrics(QUEUE_NAMES)
    manager = ControllerManager(
        _clients(options, config, metrics),
        metrics=metrics,
        controllers=options.controllers,
        configuration=options.configuration,
        root_ca=options.configuration.root_ca_file.read_bytes() if options.configuration.root_ca_file else b"",
        signing=_signing(options.configuration),
    )
    server = await _serve(options, manager)
    working = asyncio.ensure_future(_lead(options, config, manager) if options.leader_elect else manager.run())
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
            return complain("leaderelection lost", 1)
        return 0
    finally:
        tasks = [task for task in (working, stopping, server) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _signing(configuration: KubeControllerManagerConfiguration) -> Signing:
    """OSError; ValueError for files without a usable key."""
    path, sign_token = configuration.service_account_private_key_file, None
    if path is not None:
        from fakeapiserver.auth.service_account_keys import ServiceAccountKeys

        keys = ServiceAccountKeys(path)
        keys.load()
        sign_token = keys.sign
    return Signing(sign_token, authorities(configuration))


def _clients(options: Options, config: RESTConfig, metrics: Metrics) -> ClientBuilder:
    if options.configuration.use_service_account_credentials:
        return ServiceAccountClientBuilder(config, metrics=metrics.count_request)
    return SimpleClientBuilder(config, metrics=metrics.count_request)


async def _serve(options: Options, manager: ControllerManager) -> "asyncio.Task[None] | None":
    if not options.secure_port:
        return None
    from fakeapiserver.server.serving import plain_context
    from fakeapiserver.transport.certificates import create_authority, issue_server

    pair = issue_server(create_authority("fakeapiserver-controller-manager"), [options.bind_address, "localhost"])
    server = HTTPServer(
        "controller manager",
        healthz_and_metrics(manager),
        f"{options.bind_address}:{options.secure_port}",
        plain_context(pair.certificate, pair.key),
    )
    server.bind()
    return asyncio.create_task(server.run())


async def _lead(options: Options, config: RESTConfig, manager: ControllerManager) -> None:
    """Returns when somebody else leads."""
    leads = manager.metrics.leader.labels(options.leader_elect_resource_name)
    leads.set(0)

    async def lead() -> None:
        leads.set(1)
        await manager.run()

    async with RESTClient(config, metrics=manager.metrics.count_request) as rest:
        lock = LeaseLock(
            DynamicClient(rest),
            options.leader_elect_resource_namespace,
            options.leader_elect_resource_name,
            f"{socket.gethostname()}_{uuid.uuid4()}",
        )
        elector = LeaderElector(
            lock,
            on_started_leading=lead,
            lease_duration=options.leader_elect_lease_duration,
            renew_deadline=options.leader_elect_renew_deadline,
            retry_period=options.leader_elect_retry_period,
        )
        await elector.run()
