"""The requests of the Go program in bench/loader."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

from conformance.bench.servers import TOKEN, Server
from conformance.bench.table import Row

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


def load_of(server: Server, program: Path) -> Load:
    """Returns a function that runs the program once against a server: `load(mode, n, objects=…, FLAG=…)`.

    The function returns what the program prints, and raises SystemExit with the program's message if it fails.
    """

    def load(mode: str, count: int, *, existing: int = 1, **flags: object) -> dict[str, float]:
        words = {"mode": mode, "n": count, "objects": existing, **flags}
        command = [
            *(str(program), f"-url={server.url}", f"-token={TOKEN}"),
            *(f"-{name}={value}" for name, value in words.items()),
        ]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{server.name}: {mode} failed: {done.stderr.strip()}")
        found: dict[str, float] = json.loads(done.stdout)
        return found

    return load


def requests(load: Load, note: Callable[[str, float], None]) -> None:
    """Sends 1,000 requests of each kind one by one, then creates 4,000 objects and gets 8,000 with 16 clients."""
    load("create", 300, prefix="warm")
    for mode in ("create", "get", "patch", "apply"):
        found = load(mode, 1000, prefix="single", existing=1000)
        note(f"{mode}_p50", found["p50_ms"])
        note(f"{mode}_p99", found["p99_ms"])
    note("creates", load("create", 4000, clients=16, prefix="many")["per_second"])
    note("gets", load("get", 8000, clients=16, prefix="many", existing=4000)["per_second"])
