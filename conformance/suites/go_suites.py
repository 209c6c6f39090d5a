"""Go modules' own test suites: fetched with the ordinary go command, run, and their results read."""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_COLORS: Final = re.compile(r"\x1b\[[0-9;]*m")
_SPECS: Final = re.compile(r"(\d+) Passed \| (\d+) Failed \| (\d+) Pending \| (\d+) Skipped")


@dataclass(frozen=True, slots=True)
class Module:
    """A published module at a version."""

    path: str
    version: str

    def fetch(self, folder: Path) -> Path:
        """The module's sources in a folder of its own, fetched when they aren't there. OSError or CalledProcessError."""
        sources = folder / f"{self.path.rpartition('/')[2]}-{self.version}"
        if not sources.is_dir():
            found = subprocess.run(
                ["go", "mod", "download", "-json", f"{self.path}@{self.version}"],
                check=True,
                stdout=subprocess.PIPE,
                cwd="/",
            )
            copied = sources.with_suffix(".new")
            shutil.rmtree(copied, ignore_errors=True)
            shutil.copytree(json.loads(found.stdout)["Dir"], copied, copy_function=shutil.copyfile)
            for path in [copied, *copied.rglob("*")]:
                # Go keeps modules without the right to write, and without knowing which files are programs.
                path.chmod(0o755 if path.is_dir() or path.suffix == ".sh" else 0o644)
            subprocess.run(["go", "mod", "download"], check=True, cwd=copied)
            copied.rename(sources)
        return sources

    def test(self, words: Sequence[str], sources: Path, environment: Mapping[str, str]) -> dict[str, "Suite"]:
        """Runs `go test` with these words: package -> its result, whatever fails. OSError without Go."""
        command = ["go", "test", "-json", "-count=1", "-p=1", "-timeout=20m", *words]
        environment = {**os.environ, **environment}
        with subprocess.Popen(command, cwd=sources, env=environment, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            return read(process.stdout, self.path)


@dataclass(slots=True)
class Suite:
    """The result of a package in specs, and in tests where they aren't Ginkgo's. `failures` are names."""

    passed: int = 0
    failed: int = 0
    pending: int = 0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)
    _tests: dict[str, str] = field(default_factory=dict)
    _ginkgo: set[str] = field(default_factory=set)

    def add(self, event: Mapping[str, object]) -> None:
        """Adds an event of `go test -json`."""
        action, test = str(event["Action"]), str(event.get("Test", ""))
        if action == "output":
            self._read(_COLORS.sub("", str(event["Output"])), test)
        elif action in ("pass", "fail", "skip"):
            if test:
                self._tests[test] = action
            else:
                self.seconds = float(str(event.get("Elapsed", 0)))
                self._finish(action)

    def _read(self, line: str, test: str) -> None:
        if line.startswith("Running Suite: "):
            self._ginkgo.add(test)
        elif counts := _SPECS.search(line):
            passed, failed, pending, skipped = map(int, counts.groups())
            self.passed, self.failed = self.passed + passed, self.failed + failed
            self.pending += pending + skipped
        elif line.startswith("  [FAIL] "):
            self.failures.append(line.removeprefix("  [FAIL] ").strip())

    def _finish(self, action: str) -> None:
        """Tests that aren't Ginkgo's count when they hold no others; a package that fails without any doesn't build."""
        parents = {name.rpartition("/")[0] for name in self._tests}
        for name, result in self._tests.items():
            if name in parents or name in self._ginkgo:
                continue
            self.passed += result == "pass"
            self.pending += result == "skip"
            if result == "fail":
                self.failed += 1
                self.failures.append(name)
        if action == "fail" and not self.failed:
            self.failed = 1
            self.failures.append("the package as a whole")


def read(lines: Iterable[str], module: str) -> dict[str, Suite]:
    """Package of a module -> its result, from the output of `go test -json`. Packages without tests are left out."""
    suites: dict[str, Suite] = {}
    for line in lines:
        if not line.startswith("{"):
            print(line, end="", file=sys.stderr)
            continue
        event = json.loads(line)
        package = event.get("Package", "").removeprefix(f"{module}/")
        if package:
            suites.setdefault(package, Suite()).add(event)
    return {name: suite for name, suite in sorted(suites.items()) if suite.passed or suite.failed or suite.pending}


def table(suites: Mapping[str, Suite]) -> str:
    rows = [f"| {name} | {s.passed} | {s.failed} | {s.pending} | {s.seconds:.0f} |" for name, s in suites.items()]
    passed, failed, pending = (sum(getattr(s, key) for s in suites.values()) for key in ("passed", "failed", "pending"))
    seconds = sum(s.seconds for s in suites.values())
    rows.append(f"| **all** | {passed} | {failed} | {pending} | {seconds:.0f} |")
    return "\n".join(["| suite | passed | failed | not run | seconds |", "|---|---|---|---|---|", *rows])


def cache() -> Path:
    """Returns the default folder for the sources of modules."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fakeapiserver"


def arguments(description: str | None) -> argparse.ArgumentParser:
    """Returns a parser with the options that all commands for modules' suites share."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--assets", type=Path, help="folder with kube-apiserver, etcd and kubectl (default: this server's)"
    )
    parser.add_argument(
        "--sources", type=Path, default=cache(), help="folder to keep the module's sources in (%(default)s)"
    )
    parser.add_argument("--minimum", type=float, default=0.0, help="exit with 1 below this percentage")
    parser.add_argument("--output", choices=("text", "json"), default="text")
    return parser


def has_go(program: str) -> bool:
    """Reports whether Go is installed, and prints an error if it isn't."""
    if shutil.which("go") is None:
        print(f"{program}: Go is not installed", file=sys.stderr)
        return False
    return True


def report(suites: Mapping[str, Suite], output: str, minimum: float) -> int:
    """Prints the results; the exit status."""
    if output == "json":
        print(json.dumps({name: _facts(suite) for name, suite in suites.items()}, indent=1))
    else:
        for name, suite in suites.items():
            for failure in suite.failures:
                print(f"{name}: {failure}")
        print(table(suites))
    passed, failed = sum(s.passed for s in suites.values()), sum(s.failed for s in suites.values())
    return 0 if 100 * passed >= minimum * (passed + failed) else 1


def _facts(suite: Suite) -> dict[str, object]:
    return {name: getattr(suite, name) for name in ("passed", "failed", "pending", "seconds", "failures")}
