"""The requests of the Go program in bench/loader."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

from conformance.bench.servers import TOKEN, Server
from conformance.bench.table import Note, Row

Load = Callable[..., dict[str, float]]

REQUESTS: Final = (
    *(
        Row(f"{mode}_{quantile}", f"{title}, {quantile}", "ms")
        for mode, title in (("create", "create"), ("get", "get"), ("patch", "merge patch"), ("apply", "apply"))
        for quantile in ("p50", "p99")
    ),
    Row("creates", "creates with 16 clients", "/s", more=True),
    Row("gets", "gets with 16 clients", "/s", more=True),
)
"""The rows of `requests`."""


def run_loader(program: Path, urls: str, mode: str, count: int, **flags: object) -> dict[str, float]:
    """Runs the program once, and returns what it prints. `urls`: the servers, separated by commas. Raises RuntimeError if it fails."""
    words = {"url": urls, "token": TOKEN, "mode": mode, "n": count, **flags}
    command = [str(program), *(f"-{name}={value}" for name, value in words.items())]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{mode} failed: {done.stderr.strip()}")
    printed: dict[str, float] = json.loads(done.stdout)
    return printed


def load_of(program: Path, *servers: Server) -> Load:
    """Returns `run_loader` for these servers, over which requests are spread: `load(mode, n, FLAG=…)`. A failure ends the command."""
    urls = ",".join(server.url for server in servers)

    def load(mode: str, count: int, **flags: object) -> dict[str, float]:
        try:
            return run_loader(program, urls, mode, count, **flags)
        except RuntimeError as error:
            raise SystemExit(f"{servers[0].name}: {error}") from None

    return load


def requests(load: Load, note: Note) -> None:
    """Sends 1,000 requests of each kind one by one, then creates 4,000 objects and gets 8,000 with 16 clients."""
    load("create", 300, prefix="warm")
    for mode in ("create", "get", "patch", "apply"):
        found = load(mode, 1000, prefix="single", objects=1000)
        note(f"{mode}_p50", found["p50_ms"])
        note(f"{mode}_p99", found["p99_ms"])
    note("creates", load("create", 4000, clients=16, prefix="many")["per_second"])
    note("gets", load("get", 8000, clients=16, prefix="many", objects=4000)["per_second"])
