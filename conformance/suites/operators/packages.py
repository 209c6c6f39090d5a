"""The operators' packages, `packages.json`, fetched by the registries' ordinary clients: their definitions, and samples of their kinds.

A package is read from the archive that its client keeps; a Go module's is there even where the module wants a newer Go.
"""

import fnmatch
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import yaml

Object = dict[str, Any]

_TABLE: Final = Path(__file__).parent / "packages.json"
_FENCED: Final = re.compile(rb"(?ms)^```ya?ml[^\n]*\n(.*?)^```")
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Package:
    """`module` is a Go module's path, a Maven artifact's `group:name` or a Python distribution's name, depending on `registry`.

    `definitions` are globs of files with CustomResourceDefinitions. Samples are searched in the whole package; `refused` maps samples that
    can't be created (`Kind name`) to the reason.
    """

    name: str
    module: str
    version: str
    definitions: tuple[str, ...]
    refused: Mapping[str, str] = field(default_factory=dict)
    registry: Literal["go", "maven", "pypi"] = "go"


@dataclass(slots=True)
class Operator:
    """The content of a package: its definitions by name, and objects of their kinds."""

    name: str
    definitions: dict[str, Object] = field(default_factory=dict)
    samples: list[Object] = field(default_factory=list)
    refused: Mapping[str, str] = field(default_factory=dict)

    def version_of(self, obj: Object) -> tuple[Object, Object] | None:
        """The spec and the version of the definition that serves an object's kind."""
        group, _, name = obj["apiVersion"].partition("/")
        for found in self.definitions.values():
            spec = found["spec"]
            version = next((v for v in spec["versions"] if v["name"] == name and v["served"]), None)
            if spec["group"] == group and spec["names"]["kind"] == obj["kind"] and version:
                return spec, version
        return None


def table(names: Iterable[str] = ()) -> list[Package]:
    """The packages, or those of these names. ValueError for a name that isn't among them."""
    rows = {row["name"]: row for row in json.loads(_TABLE.read_text())}
    wanted = list(names) or list(rows)
    if unknown := [name for name in wanted if name not in rows]:
        raise ValueError(f"no such operators: {', '.join(unknown)}; there are {', '.join(rows)}")
    return [Package(**{**rows[name], "definitions": tuple(rows[name]["definitions"])}) for name in wanted]


def fetch(package: Package) -> Path:
    """The package's archive in its client's cache. OSError when it can't be had."""
    return {"go": _fetch_module, "maven": _fetch_artifact, "pypi": _fetch_distribution}[package.registry](package)


def _fetch_module(package: Package) -> Path:
    done = _run("go", "mod", "download", "-json", f"{package.module}@{package.version}")
    return _archive(package, json.loads(done.stdout or "{}").get("Zip"), done)


def _fetch_artifact(package: Package) -> Path:
    artifact = f"{package.module}:{package.version}"
    done = _run("mvn", "--quiet", "--batch-mode", "dependency:get", "-Dtransitive=false", f"-Dartifact={artifact}")
    group, _, name = package.module.partition(":")
    folder = Path.home() / ".m2/repository" / group.replace(".", "/") / name / package.version
    return _archive(package, folder / f"{name}-{package.version}.jar", done)


def _fetch_distribution(package: Package) -> Path:
    folder = Path.home() / ".cache/conformance-operators" / package.name
    requirement = f"{package.module}=={package.version}"
    done = _run(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), requirement)
    return _archive(package, next(folder.glob("*.whl"), None), done)


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")


def _archive(package: Package, path: str | Path | None, done: subprocess.CompletedProcess[str]) -> Path:
    if path is None or not Path(path).is_file():
        why = done.stderr.strip() or done.stdout.strip()
        raise OSError(f"{package.module} {package.version} can't be fetched: {why}")
    return Path(path)


def read(package: Package, archive: Path, samples_of_a_kind: int) -> Operator:
    """The definitions, and the first so many samples of each kind, in the order of the package's files."""
    operator = Operator(package.name, refused=package.refused)
    with zipfile.ZipFile(archive) as files:
        root = f"{package.module}@{package.version}/" if package.registry == "go" else ""
        paths = [name.removeprefix(root) for name in files.namelist() if name.endswith((".yaml", ".yml", ".md"))]
        wanted = [path for path in paths if any(_matches(path, pattern) for pattern in package.definitions)]
        for path in sorted(wanted):
            for found in documents(files.read(root + path)):
                if found.get("kind") == "CustomResourceDefinition" and found["apiVersion"].endswith("/v1"):
                    operator.definitions.setdefault(found["metadata"]["name"], found)
        kinds = _kinds(operator.definitions.values())
        groups = [f"{group}/".encode() for group in {api_version.partition("/")[0] for api_version, _ in kinds}]
        counts: dict[tuple[str, str], int] = {}
        for path in sorted(paths, key=_likely) if samples_of_a_kind else ():
            text = files.read(root + path) if "/vendor/" not in path and path not in wanted else b""
            if not any(group in text for group in groups):
                continue
            for found in _objects(path, text):
                kind = (str(found.get("apiVersion")), str(found.get("kind")))
                if (
                    kind in kinds
                    and counts.get(kind, 0) < samples_of_a_kind
                    and isinstance(found.get("metadata"), dict)
                ):
                    counts[kind] = counts.get(kind, 0) + 1
                    operator.samples.append(found)
    return operator


def _matches(path: str, pattern: str) -> bool:
    """A glob in which `*` stays within a folder."""
    return path.count("/") == pattern.count("/") and fnmatch.fnmatchcase(path, pattern)


def _likely(path: str) -> tuple[bool, str]:
    """Returns a sort key: samples that a project shows to its users come before those of its tests."""
    return not any(word in path for word in ("sample", "example")), path


def _kinds(definitions: Iterable[Object]) -> set[tuple[str, str]]:
    return {
        (f"{found['spec']['group']}/{version['name']}", found["spec"]["names"]["kind"])
        for found in definitions
        for version in found["spec"]["versions"]
        if version["served"]
    }


def _objects(path: str, text: bytes) -> Iterator[Object]:
    """The objects of a file, of a text with examples in it too."""
    for part in _FENCED.findall(text) if path.endswith(".md") else (text,):
        yield from documents(part)


def documents(text: bytes) -> Iterator[Object]:
    """The objects of a YAML file, in JSON's terms; none of a file that isn't YAML (a template)."""
    try:
        found = list(yaml.load_all(text, _LOADER))
        plain = [json.loads(json.dumps(item, default=_instant)) for item in found if isinstance(item, dict)]
    except (yaml.YAMLError, ValueError, TypeError, RecursionError):
        return
    yield from plain


def _instant(value: Any) -> str:
    """A time as Kubernetes writes it: YAML has a type for them, JSON hasn't."""
    text: str = value.isoformat()
    return text.replace("+00:00", "Z")
