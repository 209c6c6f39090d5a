"""`fakeapiserver state check|compact|export DIR`: what can be done to a data directory that no server uses."""

import asyncio
import sys
from pathlib import Path
from typing import Final

import yaml

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.server import exported
from fakeapiserver.server.apiserver import APIServer
from fakeapiserver.server.options.config import Config
from fakeapiserver.state import file, manifests
from fakeapiserver.storage.file import inspection
from fakeapiserver.storage.file.database import NAME, Database
from fakeapiserver.storage.mvcc import MVCC

_SAVED: Final = (".json", ".gz")


def is_one(folder: Path) -> bool:
    """Reports whether the folder is a data directory."""
    return (folder / NAME).is_file()


def check(folder: Path) -> str:
    """Says how much is in the directory. Raises OSError, and ValueError with all that is wrong with it."""
    with Database(folder, must_exist=True) as database:
        found = inspection.check(database)
    if found.problems:
        listed = "\n".join(f"  {problem}" for problem in found.problems)
        raise ValueError(f"{folder} is damaged; {database.advice}:\n{listed}")
    return (
        f"nothing is wrong with {folder}: {found.objects} objects at revision {found.revision}, history from {found.compacted}, "
        f"{found.size} bytes"
    )


def compact(folder: Path) -> str:
    """Forgets the history, and gives the space back. Raises OSError, ValueError."""
    with Database(folder, must_exist=True) as database:
        before = inspection.check(database)
        if before.problems:
            raise ValueError(f"{folder} is damaged: see `fakeapiserver state check {folder}`")
        database.compact(before.revision)
        database.shrink()
        size = database.size
    return f"{folder} has {size} bytes now in place of {before.size}; its history begins at revision {before.revision}"


def export(folder: Path, target: Path | None, *, secrets: bool) -> str:
    """Writes what can be read: a saved state to a file that ends in .json or .json.gz, else manifests of the users' objects to a folder;
    without a target, returns these. Raises OSError, ValueError."""
    with Database(folder, must_exist=True) as database:
        version = database.facts.kubernetes_version
        seconds = database.seconds
        state, problems = inspection.contents(database)
    for problem in problems:
        print(f"fakeapiserver: not exported: {problem}", file=sys.stderr)
    if target is not None and target.suffix in _SAVED:
        file.write(target, file.encode(file.Saved(version, state, seconds)))
        return f"{target} is saved: fakeapiserver serve --load={target}"
    objects = asyncio.run(_objects(version, state, secrets=secrets))
    if target is None:
        return yaml.safe_dump_all(objects, sort_keys=False, allow_unicode=True).rstrip()
    paths = manifests.write(target, objects)
    return f"{len(paths)} manifests are in {target}: kubectl apply -R -f {target}"


async def _objects(version: str, state: MVCC, *, secrets: bool) -> list[Object]:
    """The manifests that a server with this state exports."""
    api = APIServer(Config(kubernetes_version=version), storage=state)
    await api.start()
    try:
        return [*exported.objects(api, secrets=secrets)]
    finally:
        await api.stop()
        await api.finish()
