"""`fakeapiserver serve`: an API server in the foreground, until SIGINT or SIGTERM."""

import asyncio
import json
import logging
import os
import shlex
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from fakeapiserver.cli import background, version
from fakeapiserver.cli.arguments import UsageError
from fakeapiserver.cli.checks import check
from fakeapiserver.cli.complain import complain, refuse
from fakeapiserver.cli.flags import Parsed, parse
from fakeapiserver.cli.stop_signals import StopSignals, started
from fakeapiserver.cluster.processes import etcd_process
from fakeapiserver.server.local import LocalServer
from fakeapiserver.server.options.config import Config
from fakeapiserver.storage.garbage import SetAside
from fakeapiserver.transport.files import write_file
from fakeapiserver.transport.kubeconfigs.kubeconfig_file import KubeconfigFile
from fakeapiserver.transport.kubeconfigs.temporary_folder import TemporaryFolder

_WEBHOOKS: Final = "Webhooks are called at https://{}:{}; serve them with the certificate in {}."


def main(arguments: Sequence[str]) -> int:
    """0 after a signal, 1 when it can't start, 2 for a wrong command line, 128 + N for signal N while it starts or stops."""
    parsed = read_flags(arguments, "serve")
    if isinstance(parsed, int):
        return parsed
    if parsed.command:
        return complain("serve runs no command; use: fakeapiserver run -- " + " ".join(parsed.command), 2)
    try:
        check_kubeconfig(parsed)
        if parsed.background and parsed.stop_with_stdin:
            return complain("--background has no standard input: leave --stop-with-stdin away", 2)
        if parsed.background:
            return _serve_in_background(arguments, parsed)
        if "name" in parsed.given:
            return complain("--name is for a server in the background: add --background", 2)
        with own_etcd(parsed.config):
            return run_loop(_serve(parsed))
    except ValueError as error:
        return refuse(error, "serve")
    except OSError as error:
        return complain(str(error), 1)


def read_flags(arguments: Sequence[str], command: str) -> Parsed | int:
    """The parsed flags with their warnings printed, or an exit status."""
    try:
        parsed = parse(arguments)
        check(parsed)
    except UsageError as error:
        return refuse(error, command)
    if parsed.given.get("version", "false") != "false":
        print(version.text())
        return 0
    for warning in parsed.warnings:
        print(f"fakeapiserver: warning: {warning}", file=sys.stderr)
    configure_logging(parsed.verbosity)
    return parsed


def check_kubeconfig(parsed: Parsed) -> None:
    """Raises OSError or ValueError before anything is started if --write-kubeconfig names what the context can't be added to."""
    if parsed.write_kubeconfig is not None:
        KubeconfigFile(parsed.write_kubeconfig).check(parsed.config.context_name)


@contextmanager
def own_etcd(config: Config) -> Iterator[None]:
    """Starts an etcd if the configuration asks for one, and names it there. Its data goes with it, so it doesn't wait for the disk.

    Raises OSError if there is no etcd or it doesn't start, and ValueError if the configuration names another one."""
    options = config.etcd
    if not (options.starts or options.binary):
        yield
        return
    if options.servers:
        raise ValueError("--etcd starts an etcd of its own: leave --etcd-servers away")
    if config.data_dir is not None:
        raise ValueError("--etcd keeps the state in etcd: leave --data-dir away, or --etcd")
    with etcd_process.EtcdProcess(etcd_process.find_etcd(options.binary), fsync=False) as etcd:
        options.servers = (etcd.url,)
        yield


def configure_logging(verbosity: int) -> None:
    level = logging.DEBUG if verbosity >= 4 else logging.INFO if verbosity >= 1 else logging.WARNING
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s %(message)s")


def _serve_in_background(arguments: Sequence[str], parsed: Parsed) -> int:
    server = background.Server(parsed.given.get("name", background.DEFAULT_NAME))
    status = server.start(background.foreground(arguments))
    facts = server.facts()
    if status or facts is None:
        return status
    if parsed.output == "json":
        print(json.dumps(facts))
    else:
        if parsed.config.webhooks:
            webhooks = facts["webhooks"]
            print(_WEBHOOKS.format(webhooks["host"], webhooks["port"], webhooks["certDir"]))
        print(
            f"{facts['url']} is ready as context {json.dumps(facts['context'])}; fakeapiserver stop --name={server.name} ends it. "
            f"For kubectl and every other client:\n\nexport KUBECONFIG={shlex.quote(facts['kubeconfig'])}"
        )
    return 0


async def _serve(parsed: Parsed) -> int:
    stop = StopSignals()
    if parsed.stop_with_stdin:
        _stop_with_stdin(stop)
    with TemporaryFolder() as folder:

        def announce(server: LocalServer) -> None:
            kubeconfig = parsed.write_kubeconfig or Path(folder.name) / "kubeconfig"
            server.add_to_kubeconfig(kubeconfig)
            _announce(parsed, server, kubeconfig.absolute(), Path(folder.name))

        was_ready = await serve(parsed.config, announce, stop)
    if not was_ready and not stop.status():
        return complain("standard input ended before the server was ready: --stop-with-stdin needs an open one", 1)
    return stop.status(1 if was_ready else 0)


def _stop_with_stdin(stop: asyncio.Event) -> None:
    """Sets the event at the end of standard input. A thread reads it: event loops can't wait for every kind of file."""
    loop = asyncio.get_running_loop()

    def read() -> None:
        with suppress(OSError, RuntimeError):  # it was closed; the loop has ended
            while os.read(0, 65536):
                pass
            loop.call_soon_threadsafe(stop.set)

    threading.Thread(target=read, daemon=True, name="stop-with-stdin").start()


async def serve(config: Config, on_ready: Callable[[LocalServer], None], stop: asyncio.Event) -> bool:
    """Runs a server until `stop` is set. Returns whether it was ready by then. Raises OSError or ValueError when it can't start."""
    server = LocalServer(config)
    was_ready = False
    try:
        if await started(server.start(), stop):
            on_ready(server)
            was_ready = True
            with SetAside():
                await stop.wait()
    finally:
        await server.stop()
    return was_ready


def _announce(parsed: Parsed, server: LocalServer, kubeconfig: Path, folder: Path) -> None:
    """Prints how clients reach the server. Programs find a token and the authority in files in the folder, as pods do."""
    if server.load_report is not None:
        print(server.load_report, file=sys.stderr, flush=True)
    webhooks, context = server.webhooks, parsed.config.context_name
    if parsed.output == "json":
        token, authority = folder / "token", folder / "ca.crt"
        write_file(token, server.admin_token.encode(), 0o600)
        write_file(authority, server.ca, 0o600)
        facts: dict[str, object] = {
            "url": server.url,
            "kubeconfig": str(kubeconfig),
            "context": context,
            "tokenFile": str(token),
            "caFile": str(authority),
        }
        if webhooks is not None:
            facts["webhooks"] = {"host": webhooks.host, "port": webhooks.port, "certDir": webhooks.cert_dir}
        print(json.dumps(facts), flush=True)
        return
    if server.page is not None:
        print(f"What happens in it is at {server.page.new_link()}", flush=True)
    if webhooks is not None and parsed.config.webhooks:
        print(_WEBHOOKS.format(webhooks.host, webhooks.port, webhooks.cert_dir), flush=True)
    print(
        f"{server.url} is ready as context {json.dumps(context)}. For kubectl and every other client:\n\n"
        f"export KUBECONFIG={shlex.quote(str(kubeconfig))}",
        flush=True,
    )


def run_loop(work: Coroutine[None, None, int]) -> int:
    """On uvloop where it is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)
