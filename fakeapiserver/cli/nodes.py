"""`fakeapiserver nodes`: simulated nodes and a scheduler for any API server.

Their kubelets register nodes, renew leases and let pods live; what containers do is scripted over HTTP, by the paths that
`serve --nodes` has too: /fakeapiserver/nodes and /fakeapiserver/scripts. Whoever reaches the port may: it is on loopback.
"""

import asyncio
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, cast

from msgspec import Struct

from fakeapiserver.cli.complain import complain
from fakeapiserver.cli.flags import UsageError, read_boolean, read_integer, split_flag
from fakeapiserver.cli.serve import configure_logging, run_loop, stop_on_signals
from fakeapiserver.client import kubeconfig
from fakeapiserver.client.config import RESTConfig
from fakeapiserver.controller_manager.clients import SimpleClientBuilder
from fakeapiserver.controller_manager.manager import ControllerManager, Extra
from fakeapiserver.controller_runtime.http_server import HTTPServer
from fakeapiserver.nodes.simulation import Simulation

if TYPE_CHECKING:
    from fakeapiserver.controller_runtime.http_server import Application
    from fakeapiserver.server.serving import Server

USAGE: Final = """\
usage: fakeapiserver nodes --kubeconfig FILE [FLAG ...]

  --kubeconfig FILE  whom to ask; who it is must be allowed to write nodes, leases and pods
  --nodes N          how many nodes are simulated: node-1, node-2 ... (3); 0: the scheduler alone
  --scheduler        bind pods to nodes (true); false where a kube-scheduler runs
  --kubelet-port N   answer for all kubelets there, over TLS, so that kubectl logs, exec, attach and port-forward work; 0: nowhere (0)
  --kubelet-address A  the address to do so at, which nodes tell; nodes/proxy needs one that isn't loopback (127.0.0.1)
  --dual-stack       nodes and pods have an address of each IP family (false)
  --control-port N   serve /fakeapiserver/nodes and /fakeapiserver/scripts there, without TLS; 0: nowhere (0)
  --v N              how much is logged (0)

Nodes are ready once a controller manager runs: its node-lifecycle-controller takes the taint away that new nodes have.
"""
_TYPES: Final = {
    "kubeconfig": "string",
    "nodes": "int",
    "scheduler": "bool",
    "control-port": "int",
    "kubelet-port": "int",
    "kubelet-address": "string",
    "dual-stack": "bool",
    "v": "Level",
    "help": "bool",
}


class Options(Struct):
    """The command line."""

    simulation: Simulation
    kubeconfig: str = ""
    scheduler: bool = True
    control_port: int = 0
    kubelet_port: int = 0
    kubelet_address: str = "127.0.0.1"
    dual_stack: bool = False
    v: int = 0
    help: bool = False


def parse(arguments: Sequence[str]) -> Options:
    """UsageError for a flag there isn't, or a value that can't be."""
    options, words, nodes = Options(Simulation(1)), [*arguments], 3
    while words:
        name, value = split_flag(words.pop(0), words, _TYPES)
        try:
            match name:
                case "kubeconfig" | "kubelet-address":
                    setattr(options, name.replace("-", "_"), value)
                case "nodes":
                    nodes = read_integer(value)
                case "scheduler" | "help" | "dual-stack":
                    setattr(options, name.replace("-", "_"), read_boolean(value))
                case _:
                    setattr(options, name.replace("-", "_"), read_integer(value))
        except UsageError as error:
            raise UsageError(f'invalid argument "{value}" for "--{name}" flag: {error}') from None
    try:
        options.simulation = Simulation(nodes, dual_stack=options.dual_stack)
    except ValueError as error:
        raise UsageError(f"--nodes: {error}") from None
    return options


def main(arguments: Sequence[str]) -> int:
    """0 after a signal; 1 when it can't start; 2 for a wrong command line."""
    try:
        options = parse(arguments)
    except UsageError as error:
        return complain(f"{error} (see fakeapiserver nodes --help)", 2)
    if options.help:
        print(USAGE, end="")
        return 0
    configure_logging(options.v)
    try:
        config = kubeconfig.load(options.kubeconfig or None)
        return run_loop(_run(options, config))
    except (OSError, ValueError) as error:
        return complain(str(error), 1)


async def _run(options: Options, config: RESTConfig) -> int:
    from fakeapiserver.nodes import kubelet, scheduler

    stop, simulation = stop_on_signals(), options.simulation
    extra = {"kubelet": Extra(kubelet.USER, lambda context: kubelet.new(context, simulation))}
    if options.scheduler:
        extra["kube-scheduler"] = Extra(scheduler.USER, scheduler.new)
    # every kubelet of a real cluster has a limit of its own
    manager = ControllerManager(SimpleClientBuilder(config.with_(qps=-1)), controllers=("none",), extra=extra)
    kubelets = await _serve_kubelets(options) if options.kubelet_port else None
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


async def _serve_kubelets(options: Options) -> "Server":
    """With a certificate of their own making: an API server doesn't ask, unless it is told whom to believe. OSError."""
    from fakeapiserver.clock import SystemClock
    from fakeapiserver.server.app import Application
    from fakeapiserver.server.kubelet_server import KubeletServer
    from fakeapiserver.server.serving import Server, plain_context
    from fakeapiserver.transport.certificates import create_authority, issue_server

    address = options.kubelet_address
    pair = issue_server(create_authority("fakeapiserver-kubelets"), [address, "localhost"], "kubelet")
    server = Server(
        Application(KubeletServer(options.simulation, SystemClock()).handle),
        host=address,
        port=options.kubelet_port,
        ssl_context=plain_context(pair.certificate, pair.key),
    )
    await server.start()
    options.simulation.endpoint = (address, server.port)
    return server


def _serve(port: int, simulation: Simulation) -> "asyncio.Task[None]":
    """OSError where the port is somebody else's."""
    from fakeapiserver.server.control_controllers import nodes_control

    server = HTTPServer("control", cast("Application", nodes_control(simulation)), f"127.0.0.1:{port}")
    server.bind()
    print(f"http://127.0.0.1:{port}/fakeapiserver/docs tells what can be scripted.", file=sys.stderr, flush=True)
    return asyncio.create_task(server.run())
