"""The sources of a state, recognised by their content.

A file that `save` has written (`file.py`), manifests and lists, folders and archives of them (`gathering.py`), and an etcd's file
(`etcd/`).
"""

import os
from pathlib import Path
from typing import Final

from fakeapiserver.state import archives, file, gathering
from fakeapiserver.state.etcd import objects, snapshot
from fakeapiserver.state.found import Found, Gathered, Untaken
from fakeapiserver.storage.encryption.transformers import NO_ENCRYPTION, ResourceTransformers

# Enough to recognise a file of etcd, whose first page may be damaged.
_BEGIN: Final = 64 * 1024


def read(path: str | os.PathLike[str], encryption: ResourceTransformers = NO_ENCRYPTION) -> file.Saved | Gathered:
    """The state in a file or folder; `encryption` decrypts an etcd's values.

    Raises OSError, and ValueError with one sentence for what holds no objects."""
    place = Path(path)
    if place.is_dir():
        return _fruitful(gathering.gather(str(place), archives.in_folder(place)))
    if not place.is_file():
        raise FileNotFoundError(f"there is no file or folder {place}")
    with place.open("rb") as stream:
        begin = stream.read(_BEGIN)
    if snapshot.is_etcd_file(begin):
        return _of_etcd(place, str(place), encryption)
    return of_bytes(place.read_bytes(), str(place), encryption)


def of_bytes(data: bytes, name: str, encryption: ResourceTransformers = NO_ENCRYPTION) -> file.Saved | Gathered:
    """The state in a file's bytes. Raises ValueError with a sentence that begins with `name`."""
    if archives.is_archive(data):
        return _fruitful(gathering.gather(name, archives.in_archive(data, name)))
    content = archives.decompressed(data, name)
    if snapshot.is_etcd_file(content[:_BEGIN]):
        return _of_etcd(content, name, encryption)
    if file.is_saved(content):
        return file.decode(content, name)
    return _of_document(content, name)


def _of_etcd(source: Path | bytes, name: str, encryption: ResourceTransformers) -> Gathered:
    """Raises OSError, and ValueError with a sentence that begins with `name`."""
    found = objects.objects_of(source, name=name, encryption=encryption)
    untaken = [Untaken(key, "", reason) for key, reason in found.untaken]
    fit = gathering.fit((Found(key, obj) for key, obj in found.objects), untaken)
    return _fruitful(Gathered(name, fit, untaken, found.revision))


def _of_document(content: bytes, name: str) -> Gathered:
    try:
        content.decode()
    except UnicodeDecodeError:
        raise ValueError(
            f"{name} is no saved state, no YAML or JSON, no archive of such files and no file of etcd: nothing can be loaded from it"
        ) from None
    gathered = gathering.gather(name, [(name, content)])
    if gathered.untaken and not gathered.objects:
        raise ValueError(f"{name} can't be loaded: {gathered.untaken[0].reason}")
    return _fruitful(gathered)


def _fruitful(gathered: Gathered) -> Gathered:
    """Raises ValueError if there are no objects."""
    if gathered.objects:
        return gathered
    first = f"; of what was found, {gathered.untaken[0]}" if gathered.untaken else ""
    raise ValueError(f"{gathered.name} holds no Kubernetes objects{first}")
