"""Compares this server with the real one in a new version: runs the tools of `conformance/compare` and all scenarios against both."""

import http.client
import json
import ssl
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from conformance import recordings
from conformance.bench.servers import TOKEN, Ours, Reference
from conformance.exchange import HERE, Client, difference, run, scenarios
from conformance.new_version.facts import ADDRESS, EVERYTHING, ROOT, Progress, Release, switchable
from conformance.new_version.findings import Finding, finding, read_output
from conformance.players.credentials import started
from conformance.players.server_states import real_states

# The area whose requests bring the servers into other states.
_FAULTS: Final = "faults"
_COMMON: Final = (ADDRESS, "--allow-privileged")
# Ours authorizes nodes unless flags say otherwise, and so do the servers that areas are recorded from.
_MODES: Final = "--authorization-mode=Node,RBAC"
_KUBECTL: Final = "{kubectl}"


@dataclass(frozen=True)
class Tool:
    """A tool of `conformance/compare`, its arguments, and the area in areas.json whose flags the servers get."""

    name: str
    module: str
    arguments: tuple[str, ...] = ()
    area: str = ""
    flags: tuple[str, ...] = ()


TOOLS: Final = (
    Tool("kinds", "kinds", ("--variants=8",)),
    Tool("kinds on request", "kinds", ("--variants=4",), flags=EVERYTHING),
    Tool("gates on", "gates", ("--variants=4",), area="gates-on"),
    Tool("gates off", "gates", ("--variants=4",), area="gates-off"),
    Tool("updates", "updates", ("--steps=8",)),
    Tool("subresources", "subresources"),
    Tool("requests", "requests"),
    Tool("queries", "requests", ("--queries",)),
    Tool("edges", "edges"),
    Tool("printing", "printing", (f"--kubectl={_KUBECTL}", "--random=3")),
)


def names() -> list[str]:
    """The names of all comparisons."""
    return ["facts", *(tool.name for tool in TOOLS), *(f"area {area}" for area in _areas())]


def _areas() -> list[str]:
    areas = dict.fromkeys(area for area, _ in scenarios())
    return [area for area in areas if not area.startswith("v1.")]


def compare(release: Release, chosen: Sequence[str], seed: int, progress: Progress) -> Iterator[Finding]:
    """Yields the differences that the chosen comparisons find; all of them if none is chosen."""
    if not chosen or "facts" in chosen:
        yield from changed_facts(release)
    for tool in TOOLS:
        if not chosen or tool.name in chosen:
            progress(tool.name)
            yield from _run_tool(release, tool, seed)
    for area in _areas():
        if not chosen or f"area {area}" in chosen:
            progress(f"scenarios of the area {area}")
            yield from _compare_area(release, area, progress)


@contextmanager
def _both(release: Release, real_flags: Sequence[str], our_flags: Sequence[str]) -> Iterator[tuple[Reference, Ours]]:
    is_authorized_otherwise = any(flag.startswith("--authorization-") for flag in real_flags)
    modes = () if is_authorized_otherwise else (_MODES,)
    real = Reference(release.assets, flags=[*_COMMON, *modes, *real_flags])
    ours = Ours(flags=[f"--kubernetes-version={release.minor}", *_COMMON, *our_flags])
    try:
        real.start()
        ours.start()
        yield real, ours
    finally:
        ours.stop()
        real.stop()


def _run_tool(release: Release, tool: Tool, seed: int) -> Iterator[Finding]:
    areas: dict[str, list[str]] = json.loads((HERE / "areas.json").read_text())
    flags = [*switchable(release, areas.get(tool.area, [])), *tool.flags]
    try:
        with _both(release, flags, flags) as (real, ours):
            servers = ["--oracle", real.url, "--oracle-token", TOKEN, "--server", ours.url, "--token", TOKEN]
            given = [word.replace(_KUBECTL, str(release.assets / "kubectl")) for word in tool.arguments]
            command = [sys.executable, "-m", f"conformance.compare.{tool.module}", *servers, f"--seed={seed}", *given]
            done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)
    except RuntimeError as error:
        yield Finding(tool.name, f"serve {' '.join(flags)}"[:300], str(error), "fakeapiserver/apis/feature_gates.py")
        return
    yield from read_output(tool.name, done.stdout)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:]
        yield Finding(tool.name, f"conformance.compare.{tool.module}", f"it has failed: {last}", "conformance/compare")


def _compare_area(release: Release, area: str, progress: Progress) -> Iterator[Finding]:
    with started(area) as (real_flags, real_credentials), started(area) as (our_flags, our_credentials):
        try:
            with (
                _both(release, switchable(release, real_flags), switchable(release, our_flags)) as (real, ours),
                real_states(real) if area == _FAULTS else nullcontext() as states,
            ):
                oracle = Client(real.url, TOKEN, real_credentials, states=states)
                client = Client(ours.url, TOKEN, our_credentials)
                for _, path in scenarios([area]):
                    progress(f"  {area}/{path.stem}")
                    yield from _compare_scenario(path, oracle, client)
        except RuntimeError as error:
            yield Finding(area, "serve", str(error), "fakeapiserver/cli")


def _compare_scenario(path: Path, real: Client, ours: Client) -> Iterator[Finding]:
    requests = recordings.scenario(path.read_text())["requests"]
    name = f"{path.parent.name}/{path.stem}"
    try:
        with ThreadPoolExecutor(2) as pool:  # most of a scenario is waiting
            expected, got = pool.map(partial(run, path, patient=True), (real, ours))
    except (http.client.HTTPException, OSError, ssl.SSLError, ValueError, KeyError) as error:
        yield Finding(name, str(path.name), f"the scenario can't be played: {error!r}", "conformance/scenarios")
        return
    for i, (request, want, answer) in enumerate(zip(requests, expected, got, strict=True)):
        if found := difference(want, answer):
            yield finding(f"{name} request {i}", f"{request['method']} {request['path']}", found)


def changed_facts(release: Release) -> Iterator[Finding]:
    """Gates and flags that differ from the version before."""
    before = _version_before(release)
    if before is None:
        return
    for file, place in (
        ("feature_gates.json", "docs/feature-gates.md and where a rule asks for the gate"),
        ("flags.json", "fakeapiserver/cli/manual/kube_apiserver_flags.py"),
        ("controller_manager_flags.json", "fakeapiserver/cli/manual/controller_manager_flags.py"),
    ):
        if not (before / file).is_file():
            continue
        old, new = (_facts_of(json.loads((folder / file).read_text())) for folder in (before, release.folder))
        for name in sorted(old.keys() | new.keys()):
            if old.get(name) != new.get(name):
                yield Finding(file, name, f"{_said(old.get(name))} -> {_said(new.get(name))}", place)


def _facts_of(table: dict[str, Any]) -> dict[str, Any]:
    """Gates or flags by name."""
    return dict(table.get("flags", table))


def _said(value: Any) -> str:
    return "absent" if value is None else json.dumps(value)


def _version_before(release: Release) -> Path | None:
    older = [folder for folder in sorted(release.folder.parent.iterdir()) if folder.name < release.folder.name]
    return older[-1] if older else None
