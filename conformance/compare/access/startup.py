"""Random flags and files of authentication and authorization, most of them wrong, given to the real kube-apiserver and to this one:
prints each difference in what they say before they exit once.

    python -m conformance.compare.access.startup --oracle PROGRAM --server PROGRAM [--port N] [--seed N] [--count N] [--topic NAME]

Both programs take kube-apiserver's flags; of the real one's there is no etcd, so it comes no further than its admission plugins.
`--show` prints what each case was.
"""

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Final
from urllib.request import urlopen

from conformance.players import credentials
from conformance.random import authorization_files as random_authorization_files
from conformance.random.authorization_files import Case
from conformance.random.startup.configurations import authentication_configurations
from conformance.random.startup.files import kubeconfigs, token_and_certificate_files
from conformance.random.startup.flags import oidc_flags, service_account_flags
from conformance.random.startup.values import ISSUER

_STARTED: Final = "started"
_PATIENCE: Final = 60.0  # seconds


class Programs:
    """Both kube-apiservers, each with its own folder for the files that it writes."""

    def __init__(self, folder: Path, oracle: str, server: str, port: int) -> None:
        self._folder, self._oracle, self._server, self._port = folder, oracle, server, port

    def compare(self, flags: Sequence[str]) -> tuple[str, str]:
        """Returns the last message of each server."""
        found: dict[str, str] = {}

        def oracle() -> None:
            found["oracle"] = self._run([self._oracle], flags, self._port, "manifest file is empty")

        def server() -> None:
            found["server"] = self._run(self._server.split(), flags, self._port + 1, "")

        threads = [threading.Thread(target=work) for work in (oracle, server)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found["oracle"], found["server"]

    def _run(self, command: Sequence[str], flags: Sequence[str], port: int, marker: str) -> str:
        certificates = self._folder / f"certs-{port}"
        base = [
            "--etcd-servers=http://127.0.0.1:1",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--cert-dir={certificates}",
            "--service-cluster-ip-range=10.0.0.0/24",
        ]
        process = subprocess.Popen(
            [*command, *base, *flags], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        )
        timer = threading.Timer(_PATIENCE, process.kill)
        timer.start()
        watcher = None if marker else threading.Thread(target=_wait_for, args=(port, process))
        if watcher is not None:
            watcher.start()
        lines: list[str] = []
        assert process.stderr is not None
        for line in process.stderr:
            lines.append(line)
            if marker and marker in line:
                process.kill()
                lines.append(_STARTED)
                break
        status = process.wait()
        timer.cancel()
        if watcher is not None:
            watcher.join()
            if status in (-15, 0):
                return _STARTED
        return _STARTED if lines and lines[-1] == _STARTED else _complaint("".join(lines))


def _wait_for(port: int, process: "subprocess.Popen[str]") -> None:
    """Ends the process when it serves."""
    import ssl

    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    while process.poll() is None:
        try:
            urlopen(f"https://127.0.0.1:{port}/version", context=context, timeout=2).close()
        except OSError as error:
            if getattr(error, "code", 0) == 0:
                time.sleep(0.05)
                continue
        process.terminate()
        process.wait()


def _complaint(text: str) -> str:
    """The error that a program ended with, without what is its own way of saying it."""
    if match := re.search(r'"command failed" err=<\n(.*?)\n >\n', text, re.DOTALL):
        return "\n".join(line.removeprefix("\t") for line in match[1].split("\n"))
    if match := re.search(r'"command failed" err="(.*)"\n', text):
        return str(json.loads(f'"{match[1]}"'))
    found = text.rpartition("\nError: ")[2] if "\nError: " in text else text.removeprefix("Error: ")
    if match := re.search(r"^F.*\] (.*)", text, re.MULTILINE):
        return match[1]
    return found.strip()[-2000:] or "nothing"


TOPICS: Final[Mapping[str, Callable[[random.Random, Path], Case]]] = {
    "configurations": authentication_configurations,
    "oidc": oidc_flags,
    "service-accounts": service_account_flags,
    "kubeconfigs": kubeconfigs,
    "files": token_and_certificate_files,
    "authorization": lambda rng, folder: random_authorization_files.configuration(rng),
    "policies": lambda rng, folder: random_authorization_files.policies(rng),
}


def _completed(flags: list[str], topic: str) -> list[str]:
    """With what every kube-apiserver must be given."""
    needed = (
        []
        if topic == "service-accounts"
        else [
            f"--service-account-issuer={ISSUER}",
            "--service-account-key-file={folder}/first.pub",
            "--service-account-signing-key-file={folder}/first.key",
        ]
    )
    said = any(flag.startswith(("--authorization-mode", "--authorization-config")) for flag in flags)
    mode = [] if said else ["--authorization-mode=RBAC"]
    return [*needed, *mode, *flags]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--server", required=True)
    parser.add_argument("--port", type=int, default=8201)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--topic", choices=list(TOPICS))
    parser.add_argument("--show", action="store_true")
    arguments = parser.parse_args()
    counts: Counter[str] = Counter()
    seen: set[str] = set()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        credentials.make(folder)
        programs = Programs(folder, arguments.oracle, arguments.server, arguments.port)
        for number in range(arguments.seed, arguments.seed + arguments.count):
            rng = random.Random(number)
            topic = arguments.topic or rng.choice(list(TOPICS))
            flags, files = TOPICS[topic](rng, folder)
            for file, text in deepcopy(files).items():
                (folder / file).write_text(text.replace("{folder}", name))
            placed = [flag.replace("{folder}", name) for flag in _completed(flags, topic)]
            oracle, server = (text.replace(name, "FOLDER") for text in programs.compare(placed))
            counts[f"{topic} {'equal' if oracle == server else 'different'}"] += 1
            counts["refused" if oracle != _STARTED else _STARTED] += 1
            kind = re.sub(r'"[^"]*"', '""', f"{oracle} | {server}")[:300]
            if oracle != server and kind not in seen:
                seen.add(kind)
                print(
                    f"--- seed {number} {topic}: {' '.join(flags)}\n  oracle: {oracle}\n  server: {server}", flush=True
                )
                if arguments.show:
                    print(
                        "\n".join(f"  {file}:\n{text}" for file, text in files.items() if "pem" not in file), flush=True
                    )
    print(json.dumps(counts, indent=1, sort_keys=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
