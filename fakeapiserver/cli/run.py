"""`fakeapiserver run -- CMD`: a cluster for the time of one command."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Sequence

from fakeapiserver.cli.complain import complain, refuse
from fakeapiserver.cli.flags import Parsed
from fakeapiserver.cli.serve import check_kubeconfig, own_etcd, read_flags, run_loop
from fakeapiserver.cli.stop_signals import StopSignals, started
from fakeapiserver.cluster import AsyncCluster


def main(arguments: Sequence[str]) -> int:
    """The command's own exit status (128 + N when signal N ended it); 1 when the server can't start, 2 for wrong usage, 128 + N
    for a signal while the server starts or stops."""
    parsed = read_flags(arguments, "run")
    if isinstance(parsed, int):
        return parsed
    if parsed.background or parsed.stop_with_stdin or "name" in parsed.given:
        return complain("run has no --background, --name and --stop-with-stdin: it ends with its command; use serve", 2)
    if not parsed.command:
        return complain("run needs a command: fakeapiserver run [FLAG ...] -- COMMAND [ARGUMENT ...]", 2)
    try:
        check_kubeconfig(parsed)
        with own_etcd(parsed.config):
            return run_loop(_run(parsed))
    except ValueError as error:
        return refuse(error, "run")
    except OSError as error:
        return complain(str(error), 1)


async def _run(parsed: Parsed) -> int:
    stop = StopSignals()
    cluster = AsyncCluster.from_config(parsed.config)
    status = 0
    try:
        if await started(cluster.start(), stop):
            if parsed.write_kubeconfig is not None:
                await cluster.write_kubeconfig(parsed.write_kubeconfig)
            name = json.dumps(parsed.config.context_name)
            print(f"fakeapiserver: {cluster.url} serves the command as context {name}", file=sys.stderr, flush=True)
            variables = {"KUBECONFIG": cluster.kubeconfig, **_webhooks(parsed, cluster)}
            status = await _run_command(parsed.command, variables, stop)
    finally:
        await cluster.stop()
    return stop.status() or status


def _webhooks(parsed: Parsed, cluster: AsyncCluster) -> dict[str, str]:
    """Returns the environment variables with the address and certificate of the command's webhook server."""
    if not (parsed.config.webhooks or parsed.config.crds):
        return {}
    configured = cluster.webhooks
    return {
        "WEBHOOK_HOST": configured.host,
        "WEBHOOK_PORT": str(configured.port),
        "WEBHOOK_CERT_DIR": configured.cert_dir,
    }


async def _run_command(command: list[str], variables: dict[str, str], stop: StopSignals) -> int:
    """`variables` are set in the command's environment. The signals that arrive meanwhile are the command's."""
    try:
        child = subprocess.Popen(command, env={**os.environ, **variables})  # noqa: ASYNC220 - returns when it is executed
    except FileNotFoundError:
        return complain(f"there is no command {command[0]!r}", 127)
    except PermissionError:
        return complain(f"{command[0]!r} can't be executed", 126)
    stop.pass_on = child.send_signal
    try:
        status = await asyncio.to_thread(child.wait)
    finally:
        stop.pass_on = None
    return status if status >= 0 else 128 - status
