"""Records the facts of a Kubernetes version, with the programs in `conformance/record`, into the version's folder.

Needs the release's kube-apiserver, kube-controller-manager and etcd in one folder, and its sources in Go's module cache, where building the
programs has put them.
"""

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from conformance.bench.clients.__main__ import write_kubeconfig
from conformance.bench.servers import TOKEN, Reference, end, free_port, wait_ready
from conformance.record.gates import asked_for

ROOT: Final = Path(__file__).parents[2]
VERSIONS: Final = ROOT / "fakeapiserver/apis/versions"
# Newer servers refuse a loopback address here.
ADDRESS: Final = "--advertise-address=192.0.2.10"
EVERYTHING: Final = ("--runtime-config=api/all=true", "--feature-gates=AllAlpha=true,AllBeta=true")
# The seconds after which a server that is ready has made its first objects.
_SETTLING: Final = 15.0
_SCHEMA_RECORDERS: Final = ROOT / "tests/apimachinery/schema"

Progress = Callable[[str], None]


class RecordingError(Exception):
    """A recorder has failed; the message says which, and its last words."""


@dataclass(frozen=True)
class Release:
    """A release such as `1.37.2` or `1.38.0-alpha.1`: the folder of its programs, and Go's module cache with its sources."""

    name: str
    assets: Path
    modules: Path

    @property
    def minor(self) -> str:
        """`1.37`."""
        return ".".join(self.name.split(".")[:2])

    @property
    def folder(self) -> Path:
        """The folder of the version's tables."""
        return VERSIONS / f"v{self.minor}"

    @property
    def is_preview(self) -> bool:
        """Reports whether it is an alpha, a beta or a release candidate."""
        return "-" in self.name

    def module(self, name: str) -> Path:
        """The sources of a module, e.g. `api`. Raises RecordingError if the cache lacks them."""
        version = self.name if name == "kubernetes" else "0." + self.name.partition(".")[2]
        folder = self.modules / f"k8s.io/{name}@v{version}"
        if not folder.is_dir():
            raise RecordingError(
                f"{folder} is missing: build the programs first, or name Go's module cache with --modules"
            )
        return folder


def release_in(assets: Path, modules: Path) -> Release:
    """The release whose programs are in the folder. Raises RecordingError if there is no kube-apiserver."""
    try:
        done = subprocess.run([assets / "kube-apiserver", "--version"], check=True, capture_output=True, text=True)
    except OSError as error:
        raise RecordingError(f"{assets} has no kube-apiserver that runs: {error}") from error
    return Release(done.stdout.split()[-1].removeprefix("v"), assets, modules)


def record_facts(release: Release, progress: Progress) -> None:
    """Writes all tables of the release's version, and adds to the tables that all versions share. Takes some minutes."""
    out = release.folder
    out.mkdir(parents=True, exist_ok=True)
    with running(release, ()) as default, running(release, EVERYTHING) as everything:
        progress("waiting for the servers' first objects")
        time.sleep(_SETTLING)
        at_default, at_everything = _at(default), _at(everything)
        _run(progress, "types", "--server", default, "--all", everything, "--token", TOKEN, "--out", out)
        _run(progress, "kinds", *at_default, "--out", out)
        _run(progress, "storage_versions", *at_everything, "--out", out)
        with TemporaryDirectory() as folder:
            columns = Path(folder) / "column_fields.json"
            _run(progress, "column_fields", *at_everything, "--out", columns)
            _merge_column_fields(json.loads(columns.read_text()))
        with manager(release, default) as url:
            _run(progress, "flags", "--assets", release.assets, "--manager", url, "--token", TOKEN, "--out", out)
    _record_sources(release, progress)
    sources = [release.module(name) for name in ("kubernetes", "apiserver", "apiextensions-apiserver")]
    gates = [word for gate in asked_for(sources) for word in ("--gate", gate)]
    _run(progress, "gates", "--assets", release.assets, *gates, "--out", out, "--modules", *sources)
    _run(progress, "emulations", "--assets", release.assets, "--out", out)


def _record_sources(release: Release, progress: Progress) -> None:
    """Records what is read from Go's sources."""
    out = release.folder
    modules = [release.module(name) for name in ("api", "apimachinery", "apiextensions-apiserver", "kube-aggregator")]
    _run(progress, "protobuf", "--modules", *modules, "--out", out)
    kubernetes, api = release.module("kubernetes"), release.module("api")
    _run(progress, "internal_types", "--kubernetes", kubernetes, "--api", api, out / "internal_types.json")
    _run(progress, "declared_rules", "--kubernetes", kubernetes, "--out", out)
    staging = "v0." + release.name.partition(".")[2]
    schemas = out / "schemas.json"
    progress("go_types")
    (out / "go_types.json").write_text(_output("record_go_types.py", schemas, release.modules, staging))
    progress("field_order")
    orders = json.loads(_output("record_field_order.py", schemas, release.modules, staging))
    _merge_field_orders(orders)


@contextmanager
def running(release: Release, flags: tuple[str, ...]) -> Iterator[str]:
    """The URL of a fresh real server with these flags."""
    server = Reference(release.assets, flags=[ADDRESS, *flags])
    try:
        server.start()
        yield server.url
    finally:
        server.stop()


@contextmanager
def manager(release: Release, server: str) -> Iterator[str]:
    """The URL of a kube-controller-manager of this server, started with kubeconfigs and a port only."""
    with TemporaryDirectory() as folder:
        config = write_kubeconfig(Path(folder), server)
        port = free_port()
        names = ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")
        command = [str(release.assets / "kube-controller-manager"), *(f"--{name}={config}" for name in names)]
        process = subprocess.Popen(
            [*command, f"--secure-port={port}"], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            url = f"https://127.0.0.1:{port}"
            wait_ready(url, process, path="/healthz")
            yield url
        finally:
            end([process])


def _at(url: str) -> tuple[str, ...]:
    return ("--server", url, "--token", TOKEN)


def _run(progress: Progress, recorder: str, *arguments: object) -> None:
    """Runs a recorder, and reports the last line that it prints. Raises RecordingError if it fails."""
    progress(recorder)
    command = [sys.executable, "-m", f"conformance.record.{recorder}", *map(str, arguments)]
    done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise RecordingError(f"conformance.record.{recorder} has failed:\n{done.stderr.strip()[-2000:]}")


def _output(recorder: str, *arguments: object) -> str:
    command = [sys.executable, str(_SCHEMA_RECORDERS / recorder), *map(str, arguments)]
    done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise RecordingError(f"{recorder} has failed:\n{done.stderr.strip()[-2000:]}")
    return done.stdout


def _merge_column_fields(recorded: dict[str, dict[str, str]]) -> None:
    """Adds the columns of the new version to those of the others."""
    path = VERSIONS.parent / "column_fields.json"
    known: dict[str, dict[str, str]] = json.loads(path.read_text())
    for table, columns in recorded.items():
        known[table] = {**columns, **known.get(table, {})}
    rows = ",\n".join(f"{json.dumps(table)}: {json.dumps(known[table])}" for table in sorted(known) if known[table])
    path.write_text(f"{{\n{rows}\n}}\n")


def _merge_field_orders(recorded: dict[str, list[str]]) -> None:
    """Replaces the orders by those of the new version; fields that only older versions have follow."""
    path = ROOT / "fakeapiserver/apimachinery/schema/field_order.json"
    known: dict[str, list[str]] = json.loads(path.read_text())
    for name, fields in recorded.items():
        known[name] = [*fields, *(key for key in known.get(name, ()) if key not in fields)]
    rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(known[name])}" for name in sorted(known))
    path.write_text(f"{{\n{rows}\n}}\n")


def switchable(release: Release, flags: list[str]) -> list[str]:
    """The flags without the gates that the version doesn't have or that can't be switched there. Gates that need one that is switched off
    are switched off with it."""
    gates: dict[str, Any] = json.loads((release.folder / "feature_gates.json").read_text())

    def kept(flag: str) -> str:
        switches = flag.removeprefix("--feature-gates=").split(",")
        switches = [switch for switch in switches if _can_switch(gates.get(switch.partition("=")[0]))]
        return ",".join([*switches, *(f"{gate}=false" for gate in _dependents(gates, switches))])

    return [
        f"--feature-gates={kept(flag)}" if flag.startswith("--feature-gates=") else flag
        for flag in flags
        if not flag.startswith("--kubernetes-version=")
    ]


def _dependents(gates: dict[str, Any], switches: list[str]) -> list[str]:
    """The gates that are on and need a gate that is switched off, or one that such a gate switches off."""
    named = {switch.partition("=")[0] for switch in switches}
    off = {switch.removesuffix("=false") for switch in switches if switch.endswith("=false")}
    dependents: list[str] = []
    while found := [
        name
        for name, gate in gates.items()
        if name not in named
        and gate.get("default")
        and not gate.get("locked")
        and off.intersection(gate.get("needs", ()))
    ]:
        dependents += found
        named.update(found)
        off.update(found)
    return dependents


def _can_switch(gate: dict[str, Any] | None) -> bool:
    return gate is not None and not gate.get("locked")


def module_cache() -> Path:
    """Go's module cache. Raises RecordingError without Go."""
    try:
        done = subprocess.run(["go", "env", "GOMODCACHE"], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise RecordingError("go is missing: name Go's module cache with --modules") from error
    return Path(re.sub(r"\s+$", "", done.stdout))
