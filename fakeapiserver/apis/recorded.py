"""The tables recorded of real servers, a folder for each Kubernetes minor version."""

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

VERSIONS: Final = Path(__file__).parent / "versions"
# The default, and the only place that names the newest version: its folder and this constant are all that a new version needs.
NEWEST: Final = "v1.37"


@cache
def known_versions() -> tuple[str, ...]:
    """`v1.33`, …, `v1.36`: those that there are tables of, the oldest first."""
    return tuple(sorted(path.name for path in VERSIONS.iterdir()))


@cache
def release_of(version: str = NEWEST) -> str:
    """The release that a minor version's tables are recorded from, such as v1.36.3."""
    release: str = read_table(version, "paths.json")["version"]["gitVersion"]
    return release


def preview_warnings(version: str) -> list[str]:
    """Returns a warning if a minor version's tables are recorded from an alpha, a beta or a release candidate, else []."""
    release = release_of(version).removeprefix("v")
    minor = version.removeprefix("v")
    return [f"{minor} is a preview, recorded from {release}: its release may differ"] if "-" in release else []


def minor_version(text: str) -> str:
    """`1.35`, `v1.35` or `1.35.4` -> `v1.35`. Raises ValueError if there are no tables of it."""
    minor = "v" + ".".join(text.removeprefix("v").split(".")[:2])
    if minor not in known_versions():
        raise ValueError(f"no recorded tables for Kubernetes {text}; there are: {', '.join(known_versions())}")
    return minor


def read_table(version: str, name: str) -> Any:
    """Returns a recorded file, parsed. Raises FileNotFoundError."""
    return json.loads((VERSIONS / version / name).read_bytes())


@cache
def read_shared_table(name: str) -> Any:
    """Returns a recorded file that is valid for all versions, parsed; callers must not change it.

    Raises FileNotFoundError.
    """
    return json.loads((VERSIONS.parent / name).read_bytes())
