"""Builds the load generator."""

import os
import subprocess
from pathlib import Path


def build_loader(folder: Path) -> Path:
    """Builds bench/loader in `folder`. Needs Go on the PATH; the loader uses nothing but its standard library."""
    program = folder / "loader"
    source = Path(__file__).parent / "loader"
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"}
    subprocess.run(["go", "build", "-o", str(program), "."], cwd=source, check=True, env=environment)
    return program
