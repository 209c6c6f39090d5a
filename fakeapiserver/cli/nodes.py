"""`fakeapiserver nodes`: simulated nodes and a scheduler for any API server.

Their kubelets register nodes, renew leases and let pods live; what containers do is scripted over HTTP, by the paths that
`serve --nodes` has too: /fakeapiserver/nodes and /fakeapiserver/scripts. The port is on loopback and asks for no
credentials; it refuses web pages of other servers.
"""

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, cast

from msgspec import Struct

from fakeapiserver.cli.arguments import (
    UsageError,
    address,
    count,
    level,
    port,
    read_boolean,
    read_into,
    text,
)
from fakeapiserver.cli.complain import complain, refuse
from fakeapiserver.cli.connection import load_config
from fakeapiserver.cli.serve import configure_logging, run_loop
from fakeapiserver.cli.stop_signals import StopSignals
from fakeapiserver.client.config import RESTConfig
from fakeapiserver.clock import SystemClock
from fakeapiserver.controller_manager.clients import SimpleClientBuilder
from fakeapiserver.controller_manager.manager import ControllerManager, Extra
from fakeapiserver.controller_runtime.http_server import HTTPServer
from fakeapiserver.nodes import kubelet
from fakeapiserver.nodes.node import MAX_NODES
from fakeapiserver.nodes.scheduler import controller as scheduler_module
from fakeapiserver.nodes.simulation import Simulation
from fakeapiserver.server.app import Application
from fakeapiserver.server.control import nodes as control_nodes
from fakeapiserver.server.control.own_pages import OwnPages
from fakeapiserver.server.http.serving import Server
from fakeapiserver.server.http.tls_context import server_context
from fakeapiserver.server.simulated_nodes import kubelet_server
from fakeapiserver.transport import certificates

if TYPE_CHECKING:
    from fakeapiserver.controller_runtime.http_server import Application as ASGIApplication
    from fakeapiserver.server.http.serving import Server

FLAGS: Final[Mapping[str, Callable[[str], object]]] = {
    "kubeconfig": text("kubeconfig"),
    "nodes": count("nodes", MAX_NODES),
    "scheduler": read_boolean,
    "control-port": port("control-port"),
    "kubelet-port": port("kubelet-port"),
    "kubelet-address": address("kubelet-address"),
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
    dual_stack: bool = False
    v: int = 0


def parse(arguments: Sequence[str]) -> Options:
    """Raises UsageError for a flag that doesn't exist, or an invalid value."""
    options = Options()
    if others := read_into(options, arguments, FLAGS):
        raise UsageError(f"unexpected argument {others[0]!r}")
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
    kubelets = await _serve_kubelets(options, simulation) if options.kubelet_port else None
    tasks = [asyncio.create_task(manager.run()), asyncio.create_task(_told(stop))]
    if options.control_port:
        tasks.append(_serve(options.control_port, simulation))
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
        return 0
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if kubelets is not None:
            await kubelets.stop()


async def _told(stop: asyncio.Event) -> None:
    await stop.wait()


async def _serve_kubelets(options: Options, simulation: Simulation) -> "Server":
    """Serves all kubelets with a self-signed certificate, which API servers accept unless --kubelet-certificate-authority is set.

    Raises OSError if the port is in use.
    """
    address = options.kubelet_address
    pair = certificates.issue_server(
        certificates.create_authority("fakeapiserver-kubelets"), [address, "localhost"], "kubelet"
    )
    server = Server(
        Application(kubelet_server.KubeletServer(simulation, SystemClock()).handle),
        host=address,
        port=options.kubelet_port,
        tls=server_context(pair.certificate, pair.key, requests_certificates=False),
    )
    await server.start()
    simulation.endpoint = (address, server.port)
    return server


def _serve(port: int, simulation: Simulation) -> "asyncio.Task[None]":
    """Serves the control on loopback. Raises OSError if the port is in use."""
    server = HTTPServer(
        "control", cast("ASGIApplication", OwnPages(control_nodes.nodes_control(simulation))), f"127.0.0.1:{port}"
    )
    server.bind()
    print(f"http://127.0.0.1:{port}/fakeapiserver/docs lists what can be scripted.", file=sys.stderr, flush=True)
    return asyncio.create_task(server.run())
