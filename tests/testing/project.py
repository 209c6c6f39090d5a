"""A project of a user, whose tests run in a process of their own."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

# Plugins of this project's own tests that no user's test here needs: hypothesis alone takes half of a process's start.
_UNNEEDED: Final = ("-p", "no:hypothesispytest", "-p", "no:pytest_cov", "-p", "no:timeout")


class Project:
    """A folder with a test suite, and a home whose kubeconfig names the decoy."""

    def __init__(self, folder: Path, kubeconfig: str = "") -> None:
        self.folder = folder / "project"
        self.folder.mkdir()
        self.home = folder / "home"
        (self.home / ".kube").mkdir(parents=True)
        (self.home / ".kube/config").write_text(kubeconfig)
        (self.folder / "pytest.ini").write_text("[pytest]\n")
        named = ("KUBE", "HELM", "PYTEST", "PYKUBE", "COV")
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(named)} | {"HOME": str(self.home)}

    def write(self, **files: str) -> None:
        for name, text in files.items():
            (self.folder / f"{name}.py").write_text(text)

    def pytest(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *_UNNEEDED, "-rs", *arguments]
        return subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=290, check=False
        )

    def has(self, module: str) -> bool:
        """Reports whether the tests can import a module."""
        return importlib.util.find_spec(module) is not None
