"""`fakeapiserver controller-manager`: the bundled controllers against any API server, with kube-controller-manager's flags.

Upstream: cmd/kube-controller-manager/app/{controllermanager.go,options}.
"""

import asyncio
import ipaddress
import logging
import os
import socket
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field
from msgspec.structs import fields, replace

from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apis.feature_gates import FeatureGates
from fakeapiserver.apis.recorded import NEWEST, read_table
from fakeapiserver.auth.service_account_keys import ServiceAccountKeys
from fakeapiserver.cli.arguments import (
    UsageError,
    read_boolean,
    read_duration,
    read_integer,
    read_list,
    read_number,
    split_flag,
)
from fakeapiserver.cli.checks import check_file
from fakeapiserver.cli.complain import complain, refuse
from fakeapiserver.cli.connection import load_config
from fakeapiserver.cli.controller_manager import serving
from fakeapiserver.cli.flags import read_feature_gates
from fakeapiserver.cli.serve import configure_logging, run_loop
from fakeapiserver.cli.stop_signals import StopSignals
from fakeapiserver.client.config import RESTConfig
from fakeapiserver.client.dynamic import DynamicClient
from fakeapiserver.client.errors import StatusError, TransportError
from fakeapiserver.client.leaderelection import LeaderElector, LeaseLock
from fakeapiserver.client.rest import RESTClient
from fakeapiserver.component_helpers.cluster_signing import authorities
from fakeapiserver.component_helpers.configuration import KubeControllerManagerConfiguration
from fakeapiserver.component_helpers.controller_context import Signing
from fakeapiserver.controller_manager.clients import ClientBuilder, ServiceAccountClientBuilder, SimpleClientBuilder
from fakeapiserver.controller_manager.descriptor import QUEUE_NAMES, selected
from fakeapiserver.controller_manager.manager import ControllerManager
from fakeapiserver.controller_runtime.metrics import Metrics

if TYPE_CHECKING:
    pass

log = logging.getLogger(__name__)


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise UsageError(f"failed to parse IP: {text!r}") from None


_READERS: Final[Mapping[object, Callable[[str], object]]] = {
    bool: read_boolean,
    int: read_integer,
    float: read_number,
    str: str,
    Path | None: Path,
    tuple[str, ...]: read_list,
    FeatureGates: lambda text: FeatureGates(NEWEST, read_feature_gates(text)),
}
_SETTINGS: Final = {setting.name.replace("_", "-"): setting for setting in fields(KubeControllerManagerConfiguration)}


class Options(Struct):
    """The command line. Times in seconds; `warnings` are lines for standard error, `given` what was said, by flag."""

    configuration: KubeControllerManagerConfiguration = field(default_factory=KubeControllerManagerConfiguration)
    kubeconfig: str = ""
    master: str = ""
    controllers: tuple[str, ...] = ()
    controller_start_interval: float = 0.0
    kube_api_qps: float = 20.0
    kube_api_burst: int = 30
    leader_elect: bool = True
    leader_elect_lease_duration: float = 15.0
    leader_elect_renew_deadline: float = 10.0
    leader_elect_retry_period: float = 2.0
    leader_elect_resource_lock: str = "leases"
    leader_elect_resource_name: str = "kube-controller-manager"
    leader_elect_resource_namespace: str = "kube-system"
    bind_address: str = "0.0.0.0"
    secure_port: int = 10257
    tls_cert_file: Path | None = None
    tls_private_key_file: Path | None = None
    client_ca_file: Path | None = None
    authentication_kubeconfig: str = ""
    authentication_skip_lookup: bool = False
    authentication_tolerate_lookup_failure: bool = False
    authorization_kubeconfig: str = ""
    authorization_always_allow_paths: tuple[str, ...] = ("/healthz", "/readyz", "/livez")
    authorization_webhook_cache_authorized_ttl: float = 10.0
    authorization_webhook_cache_unauthorized_ttl: float = 10.0
    requestheader_client_ca_file: Path | None = None
    requestheader_allowed_names: tuple[str, ...] = ()
    requestheader_username_headers: tuple[str, ...] = ("x-remote-user",)
    requestheader_uid_headers: tuple[str, ...] = ()
    requestheader_group_headers: tuple[str, ...] = ("x-remote-group",)
    requestheader_extra_headers_prefix: tuple[str, ...] = ("x-remote-extra-",)
    v: int = 0
    version: str = ""
    help: bool = False
    warnings: list[str] = field(default_factory=list)
    given: dict[str, str] = field(default_factory=dict)


# Upstream's, but not in its help.
_HIDDEN: Final = {"allow-untagged-cloud": "bool", "node-sync-period": "duration"}
_FILES: Final = (
    "authentication-kubeconfig",
    "authorization-kubeconfig",
    "client-ca-file",
    "requestheader-client-ca-file",
    "root-ca-file",
    "service-account-private-key-file",
    "tls-cert-file",
    "tls-private-key-file",
)
_NO_FLAGS: Final = ("configuration", "warnings", "given")
_OPTIONS: Final = {option.name.replace("_", "-"): option for option in fields(Options) if option.name not in _NO_FLAGS}


def _table() -> dict[str, Any]:
    """Returns the recorded flags, and their types by name."""
    table = read_table(NEWEST, "controller_manager_flags.json")
    return {**table, "flags": {**table["flags"], **_HIDDEN, "v": "Level"}}


def flag_types() -> dict[str, str]:
    types: dict[str, str] = _table()["flags"]
    return types


def parse(arguments: Sequence[str]) -> Options:
    """UsageError for a flag that kube-controller-manager doesn't have, or a value that can't be read."""
    types = flag_types()
    options, words, settings = Options(), [*arguments], dict[str, object]()
    while words:
        word = words.pop(0)
        if not word.startswith("-") or word == "--":
            rest = [word, *words] if word != "--" else words
            raise UsageError(
                f'"kube-controller-manager" does not take any arguments, got [{" ".join(map(go_quote, rest))}]'
            )
        name, value = split_flag(word, words, types)
        options.given[name] = (
            f"{options.given[name]},{value}" if name in options.given and name == "controllers" else value
        )
        if name in _SETTINGS:
            settings[_SETTINGS[name].name] = _read(name, value, _SETTINGS[name].type, types[name])
        elif name == "controllers":
            options.controllers += read_list(value)
        elif name in _OPTIONS:
            setattr(options, _OPTIONS[name].name, _read(name, value, _OPTIONS[name].type, types[name]))
        else:
            _check_unheeded(name, value, types[name])
            options.warnings.append(f"--{name} is kube-controller-manager's, but has no effect here")
    options.controllers = options.controllers or ("*",)
    options.configuration = replace(options.configuration, **settings)
    _check(options)
    return options


def _check_unheeded(name: str, value: str, flag_type: str) -> None:
    """Refuses values that can't be read."""
    kind = {"bool": bool, "int": int, "int32": int, "float": float, "float32": float}.get(flag_type, str)
    _read(name, value, kind, flag_type)


def _check(options: Options) -> None:
    """UsageError for what doesn't go together."""
    try:
        selected(options.controllers)
    except ValueError as error:
        raise UsageError(f"--controllers: {error}") from None
    if options.leader_elect and options.leader_elect_resource_lock != "leases":
        given = go_quote(options.leader_elect_resource_lock)
        raise UsageError(f'resourceLock: Invalid value: {given}: resourceLock value must be "leases"')
    if (options.tls_cert_file is None) != (options.tls_private_key_file is None):
        raise UsageError("--tls-cert-file and --tls-private-key-file belong together: give both or none")
    if not 0 <= options.secure_port <= 65535:
        raise UsageError(
            f"--secure-port {options.secure_port} must be between 0 and 65535, inclusive. 0 for turning off secure port."
        )


def _read(name: str, text: str, kind: object, flag_type: str) -> object:
    reader = {"duration": read_duration, "ip": _address}.get(flag_type) or _READERS[kind]
    try:
        return reader(text)
    except UsageError as error:
        raise UsageError(f'invalid argument "{text}" for "--{name}" flag: {error}') from None


def main(arguments: Sequence[str]) -> int:
    """0 after a signal; 1 when it can't start, or leads no more; 2 for a wrong command line."""
    try:
        options = parse(arguments)
        if options.version not in ("", "false"):
            print(f"Kubernetes {_version()['gitVersion']}")
            return 0
        config = _config(options)
    except ValueError as error:
        return refuse(error, "controller-manager")
    for warning in options.warnings:
        print(f"fakeapiserver: warning: {warning}", file=sys.stderr)
    configure_logging(options.v)
    try:
        return run_loop(_run(options, config))
    except (OSError, ValueError, StatusError, TransportError) as error:
        return complain(str(error), 1)


def _config(options: Options) -> RESTConfig:
    """Raises UsageError without --kubeconfig and --master, and for files that can't be read."""
    config = load_config(options.kubeconfig, master=options.master)
    for flag in _FILES:
        if path := options.given.get(flag):
            check_file(flag, Path(path))
    return config.with_(qps=options.kube_api_qps, burst=options.kube_api_burst)


def _version() -> dict[str, str]:
    """Returns the API server's /version of the same version."""
    version: dict[str, str] = read_table(NEWEST, "paths.json")["version"]
    return version


async def _run(options: Options, config: RESTConfig) -> int:
    stop, metrics = StopSignals(), Metrics(QUEUE_NAMES)
    manager = ControllerManager(
        _clients(options, config, metrics),
        metrics=metrics,
        controllers=options.controllers,
        configuration=options.configuration,
        root_ca=options.configuration.root_ca_file.read_bytes() if options.configuration.root_ca_file else b"",
        signing=_signing(options.configuration),
        start_interval=options.controller_start_interval,
    )
    rest = RESTClient(config, metrics=metrics.count_request)
    elector = _elector(options, rest, manager, stop) if options.leader_elect else None
    server, background = await serving.serve_endpoints(options, manager, elector, _table(), _version())
    working = asyncio.ensure_future(elector.run() if elector is not None else manager.run())
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
            return complain("leaderelection lost", 1)
        return 0
    finally:
        tasks = [working, stopping, *background]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        rest.close()
        if server is not None:
            await server.stop()


def _signing(configuration: KubeControllerManagerConfiguration) -> Signing:
    """OSError; ValueError for files without a usable key."""
    path, sign_token = configuration.service_account_private_key_file, None
    if path is not None:
        keys = ServiceAccountKeys(path)
        keys.load()
        sign_token = keys.sign
    return Signing(sign_token, authorities(configuration))


def _clients(options: Options, config: RESTConfig, metrics: Metrics) -> ClientBuilder:
    if options.configuration.use_service_account_credentials:
        return ServiceAccountClientBuilder(config, metrics=metrics.count_request)
    return SimpleClientBuilder(config, metrics=metrics.count_request)


def _elector(options: Options, rest: RESTClient, manager: ControllerManager, stop: asyncio.Event) -> LeaderElector:
    """ValueError for durations that don't go together."""
    leads = manager.metrics.leader.labels(options.leader_elect_resource_name)
    leads.set(0)

    failures: list[Exception] = []

    async def lead() -> None:
        leads.set(1)
        try:
            await manager.run()
        except Exception as error:
            failures.append(error)  # which `run` of the elector raises
            raise

    def lost() -> None:
        """Ends the process at once, whatever is half done, because another leader may start soon."""
        if not stop.is_set() and not failures:
            complain("leaderelection lost", 1)
            with suppress(OSError):
                sys.stdout.flush()
            logging.shutdown()
            os._exit(1)

    lock = LeaseLock(
        DynamicClient(rest),
        options.leader_elect_resource_namespace,
        options.leader_elect_resource_name,
        f"{socket.gethostname()}_{uuid.uuid4()}",
    )
    return LeaderElector(
        lock,
        on_started_leading=lead,
        on_stopped_leading=lost,
        lease_duration=options.leader_elect_lease_duration,
        renew_deadline=options.leader_elect_renew_deadline,
        retry_period=options.leader_elect_retry_period,
    )
