"""`fakeapiserver run -- CMD`: a cluster for the time of one command."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence

from fakeapiserver.cli.complain import complain, refuse
from fakeapiserver.cli.serve import check_kubeconfig, read_flags
from fakeapiserver.cluster import Cluster
from fakeapiserver.server.config import Config


def main(arguments: Sequence[str]) -> int:
    """The command's own exit status (128 + N when signal N ended it); 1 when the server can't start, 2 for wrong usage."""
    parsed = read_flags(arguments, "run")
    if isinstance(parsed, int):
        return parsed
    if not parsed.command:
        return complain("run needs a command: fakeapiserver run [FLAG ...] -- COMMAND [ARGUMENT ...]", 2)
    try:
        check_kubeconfig(parsed)
        with Cluster.from_config(parsed.config) as cluster:
            if parsed.write_kubeconfig is not None:
                cluster.write_kubeconfig(parsed.write_kubeconfig)
            name = json.dumps(parsed.config.context_name)
            print(f"fakeapiserver: {cluster.url} serves the command as context {name}", file=sys.stderr, flush=True)
            return _run(parsed.command, {"KUBECONFIG": cluster.kubeconfig, **_webhooks(parsed.config, cluster)})
    except ValueError as error:
        return refuse(error, "run")
    except OSError as error:
        return complain(str(error), 1)


def _webhooks(config: Config, cluster: Cluster) -> dict[str, str]:
    """Where the command's webhook server is to listen, and with which certificate."""
    if not (config.webhooks or config.crds):
        return {}
    found = cluster.webhooks
    return {"WEBHOOK_HOST": found.host, "WEBHOOK_PORT": str(found.port), "WEBHOOK_CERT_DIR": found.cert_dir}


def _run(command: list[str], variables: dict[str, str]) -> int:
    """`variables` are set in the command's environment."""
    try:
        child = subprocess.Popen(command, env={**os.environ, **variables})
    except FileNotFoundError:
        return complain(f"there is no command {command[0]!r}", 127)
    except PermissionError:
        return complain(f"{command[0]!r} can't be executed", 126)
    previous = {
        number: signal.signal(number, lambda n, _: child.send_signal(n)) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        status = child.wait()
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    sys.stdout.flush()
    return status if status >= 0 else 128 - status
