"""Kubernetes objects in files, as projects keep them: YAML of one or many documents, JSON, lists; folders of them.

Upstream: sigs.k8s.io/controller-runtime/pkg/envtest/{webhook,crd}.go.
"""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.serializer import type_meta

# A file, a folder, an object, or a text of YAML or JSON documents, which no path is: it has a line break. Or several of them.
Source = str | os.PathLike[str] | Mapping[str, Any]
Sources = Source | Sequence[Source]

# Files of folders that kustomize reads are no manifests.
_KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml", "kustomizeconfig.yaml")
_SUFFIXES: Final = (".json", ".yaml", ".yml")
_SEPARATOR: Final = re.compile(rb"^---.*$", re.MULTILINE)


def read(sources: Sources, *kinds: str) -> list[Object]:
    """Returns the objects of these kinds; of the same kind and name the last.

    Folders are not searched recursively, and other files in them are ignored. Raises OSError for missing files,
    ValueError for invalid ones.
    """
    return _last_of_each(obj for source in _several(sources) for obj in _of_kinds(source, kinds))


def required(sources: Sources, *kinds: str) -> list[Object]:
    """Returns what `read` returns. Raises ValueError as well for a file or folder without an object of these kinds."""
    objects: list[Object] = []
    for source in _several(sources):
        found = _of_kinds(source, kinds)
        if not found and not isinstance(source, Mapping):
            raise ValueError(f"there is no {' or '.join(kinds)} in {source}")
        objects += found
    return _last_of_each(objects)


def read_all(sources: Sources) -> Iterator[Object]:
    """The objects of every kind, in order; of a folder without manifests, those in its folders. Raises as `read` does."""
    return (obj for source in _several(sources) for obj in _objects(source, is_deep=True))


def title(obj: Object) -> str:
    """`CustomResourceDefinition widgets.example.com`"""
    return f"{obj.get('kind')} {(obj.get('metadata') or {}).get('name')}"


def _of_kinds(source: Source, kinds: Collection[str]) -> list[Object]:
    return [obj for obj in _objects(source, is_deep=False) if obj.get("kind") in kinds]


def _last_of_each(objects: Iterable[Object]) -> list[Object]:
    return list({title(obj): obj for obj in objects}.values())


def _several(sources: Sources) -> Sequence[Source]:
    return [sources] if isinstance(sources, str | os.PathLike | Mapping) else sources


def _objects(source: Source, is_deep: bool) -> Iterator[Object]:
    if isinstance(source, Mapping):
        yield from _items(dict(source))
        return
    if isinstance(source, str) and "\n" in source:
        yield from _documents(source.encode(), "the text")
        return
    for file in _files(Path(source), is_deep):
        for obj in _documents(file.read_bytes(), str(file)):
            if is_deep and not (obj.get("apiVersion") and obj.get("kind")):
                raise ValueError(f"{file}: an object must have apiVersion and kind")
            yield obj


def _documents(data: bytes, title: str) -> Iterator[Object]:
    for text in _SEPARATOR.split(data):
        try:
            content = type_meta.read(text).content
        except ValueError as error:
            raise ValueError(f"{title}: {error}") from None
        if content:
            yield from _items(content)


def _exported(path: Path) -> list[Path]:
    """The manifests in the folders of a folder without manifests, as `export` writes them."""
    return sorted(file for file in path.glob("*/*") if file.suffix in _SUFFIXES)


def _files(path: Path, is_deep: bool) -> list[Path]:
    if not path.exists():
        raise FileNotFoundError(f"there is no file or folder {path}")
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix in _SUFFIXES and file.name not in _KUSTOMIZATIONS)
        return files or (_exported(path) if is_deep else [])
    return [path]


def _items(obj: Object) -> Iterator[Object]:
    if str(obj.get("kind", "")).endswith("List") and isinstance(obj.get("items"), list):
        for item in obj["items"]:
            yield from _items(item)
    else:
        yield obj
