"""The command: its flags, and what it runs. The kubelets register nodes, renew leases and let pods live; serving.py has its ports."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from fakeapiserver.cli.arguments import (
    UsageError,
    address,
    count,
    level,
    path,
    port,
    read_boolean,
    read_into,
    text,
)
from fakeapiserver.cli.complain import complain, refuse
from fakeapiserver.cli.connection import load_config
from fakeapiserver.cli.nodes.serving import Ports
from fakeapiserver.cli.serve import configure_logging, run_loop
from fakeapiserver.cli.stop_signals import StopSignals
from fakeapiserver.client.config import RESTConfig
from fakeapiserver.controller_manager.clients import SimpleClientBuilder
from fakeapiserver.controller_manager.manager import ControllerManager, Extra
from fakeapiserver.nodes import kubelet
from fakeapiserver.nodes.node import MAX_NODES
from fakeapiserver.nodes.scheduler import controller as scheduler_module
from fakeapiserver.nodes.simulation import Simulation
from fakeapiserver.transport import certificates
from fakeapiserver.transport.key_pair import KeyPair

FLAGS: Final[Mapping[str, Callable[[str], object]]] = {
    "kubeconfig": text("kubeconfig"),
    "nodes": count("nodes", MAX_NODES),
    "scheduler": read_boolean,
    "control-port": port("control-port"),
    "kubelet-port": port("kubelet-port"),
    "kubelet-address": address("kubelet-address"),
    "client-ca-file": path("client-ca-file"),
    "tls-cert-file": path("tls-cert-file"),
    "tls-private-key-file": path("tls-private-key-file"),
    "dual-stack": read_boolean,
    "v": level,
}


class Options(Struct):
    """The command line."""

    kubeconfig: str = ""
    nodes: int = 3
    scheduler: bool = True
    control_port: int = 0
    kubelet_port: int = 0
    kubelet_address: str = "127.0.0.1"
    client_ca_file: Path | None = None
    tls_cert_file: Path | None = None
    tls_private_key_file: Path | None = None
    dual_stack: bool = False
    v: int = 0


def parse(arguments: Sequence[str]) -> Options:
    """Raises UsageError for a flag that doesn't exist, or an invalid value."""
    options = Options()
    if others := read_into(options, arguments, FLAGS):
        raise UsageError(f"unexpected argument {others[0]!r}")
    if (options.tls_cert_file is None) != (options.tls_private_key_file is None):
        raise UsageError("--tls-cert-file and --tls-private-key-file must be given together")
    return options


def main(arguments: Sequence[str]) -> int:
    """0 after a signal; 1 when it can't start; 2 for a wrong command line."""
    try:
        options = parse(arguments)
        config = load_config(options.kubeconfig)
    except ValueError as error:
        return refuse(error, "nodes")
    configure_logging(options.v)
    try:
        return run_loop(_run(options, Simulation(options.nodes, dual_stack=options.dual_stack), config))
    except (OSError, ValueError) as error:
        return complain(str(error), 1)


async def _run(options: Options, simulation: Simulation, config: RESTConfig) -> int:
    stop = StopSignals()
    extra = {"kubelet": Extra(kubelet.USER, lambda context: kubelet.new(context, simulation))}
    if options.scheduler:
        extra["kube-scheduler"] = Extra(scheduler_module.USER, scheduler_module.new)
    # every kubelet of a real cluster has a limit of its own
    manager = ControllerManager(SimpleClientBuilder(config.with_(qps=-1)), controllers=("none",), extra=extra)
    ports = Ports(config, simulation, options.client_ca_file)
    tasks: list[asyncio.Task[None]] = []
    try:
        if options.kubelet_port or options.control_port:
            await ports.open(
                options.kubelet_address, options.kubelet_port, options.control_port, _serving_pair(options)
            )
        tasks = [asyncio.create_task(manager.run()), asyncio.create_task(_told(stop))]
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
        return 0
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await ports.close()


async def _told(stop: asyncio.Event) -> None:
    await stop.wait()


def _serving_pair(options: Options) -> KeyPair | None:
    if options.tls_cert_file is None or options.tls_private_key_file is None:
        return None
    return certificates.load_pair(options.tls_cert_file, options.tls_private_key_file)
