"""Other languages' package managers: their registries, and how new they are, isn't this project's matter."""

import re
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

# errors of npm, Maven, Cargo and Go if the network or a registry fails, and of Go if it is too old for a module
_ELSEWHERE = re.compile(
    r"ECONNRE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|ERR_SOCKET_TIMEOUT|code E5\d\d|Could not transfer artifact|"
    r"spurious network error|failed to download|failed to get successful HTTP response|dial tcp|i/o timeout|"
    r"TLS handshake timeout|unexpected EOF|connection reset|50[0234] (Bad|Internal|Service|Gateway)|requires go >="
)
_PAUSES = (2.0, 10.0)  # seconds, after the first try and the second


def fetched(command: Sequence[str], cwd: Path, env: dict[str, str] | None = None) -> None:
    """Runs what fetches and builds, up to three times; skips the test where it can't be had, and fails it where something else is
    wrong."""
    for pause in (*_PAUSES, 0.0):
        done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
        told = done.stdout + done.stderr
        if not done.returncode:
            return
        assert _ELSEWHERE.search(told), told[-3000:]
        time.sleep(pause)
    pytest.skip(f"{Path(command[0]).name} can't fetch it here: {told[-500:]}")
