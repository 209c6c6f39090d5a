"""`fakeapiserver serve`: an API server in the foreground, until SIGINT or SIGTERM."""

import asyncio
import gc
import json
import logging
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path

from fakeapiserver.cli.complain import complain
from fakeapiserver.cli.flags import Parsed, UsageError, help_text, parse
from fakeapiserver.server.config import Config
from fakeapiserver.server.local import LocalServer


def main(arguments: Sequence[str]) -> int:
    """0 after a signal, 1 when it can't start, 2 for a wrong command line."""
    parsed = read_flags(arguments, "serve")
    if isinstance(parsed, int):
        return parsed
    if parsed.command:
        return complain("serve runs no command; use: fakeapiserver run -- " + " ".join(parsed.command), 2)
    try:
        return run_loop(_serve(parsed))
    except (OSError, ValueError) as error:
        return complain(str(error), 1)


def read_flags(arguments: Sequence[str], command: str) -> Parsed | int:
    """The parsed flags with their warnings printed, or an exit status."""
    try:
        parsed = parse(arguments)
    except UsageError as error:
        return complain(f"{error} (see fakeapiserver {command} --help)", 2)
    if parsed.help:
        print(help_text(), end="")
        return 0
    for warning in parsed.warnings:
        print(f"fakeapiserver: warning: {warning}", file=sys.stderr)
    configure_logging(parsed.verbosity)
    return parsed


def configure_logging(verbosity: int) -> None:
    level = logging.DEBUG if verbosity >= 4 else logging.INFO if verbosity >= 1 else logging.WARNING
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s %(message)s")


async def _serve(parsed: Parsed) -> int:
    folder = None
    if parsed.write_kubeconfig is None:
        folder = tempfile.mkdtemp(prefix="fakeapiserver-")
        parsed.write_kubeconfig = Path(folder) / "kubeconfig"
    kubeconfig = parsed.write_kubeconfig

    def announce(server: LocalServer) -> None:
        server.write_kubeconfig(kubeconfig)
        _announce(parsed, server)

    try:
        return await serve(parsed.config, announce, stop_on_signals())
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def stop_on_signals() -> asyncio.Event:
    """Set by SIGINT and SIGTERM."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


async def serve(config: Config, on_ready: Callable[[LocalServer], None], stop: asyncio.Event) -> int:
    """Runs a server until `stop` is set; 0. OSError and ValueError when it can't start."""
    server = LocalServer(config)
    try:
        await server.start()
        on_ready(server)
        gc.freeze()
        gc.enable()
        await stop.wait()
    finally:
        await server.stop()
    return 0


def _announce(parsed: Parsed, server: LocalServer) -> None:
    webhooks = server.webhooks
    if parsed.output == "json":
        facts: dict[str, object] = {"url": server.url, "kubeconfig": str(parsed.write_kubeconfig)}
        if webhooks is not None:
            facts["webhooks"] = {"host": webhooks.host, "port": webhooks.port, "certDir": webhooks.cert_dir}
        print(json.dumps(facts), flush=True)
        return
    if webhooks is not None and parsed.config.webhooks:
        print(
            f"Webhooks are asked at {webhooks.url}; serve them with the certificate in {webhooks.cert_dir}.", flush=True
        )
    print(
        f"{server.url} is ready. For kubectl and every other client:\n\nexport KUBECONFIG={parsed.write_kubeconfig}",
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
