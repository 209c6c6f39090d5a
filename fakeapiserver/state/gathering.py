"""Finds the objects in documents that other programs have written: manifests, lists, support bundles and must-gathers.

No layout of folders is known here. A document is an object, a list of objects, or something else, which is left alone:

    kind: Pod          an object, if it has metadata.name
    kind: PodList      its items, which are Pods of the list's apiVersion where they don't say
    [ … ]              objects; the resource of those without a kind follows from the file's name, as in pods/shop.json
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from fakeapiserver.apimachinery.serializer import json, yaml
from fakeapiserver.state.archives import Document
from fakeapiserver.state.found import Found, Gathered, Untaken, title

_SEPARATOR: Final = re.compile(rb"^---.*$", re.MULTILINE)
_LIST: Final = "List"


def gather(name: str, documents: Iterable[Document]) -> Gathered:
    """The objects of a folder or archive. A document that can't be read is listed with the reason."""
    objects: list[Found] = []
    untaken: list[Untaken] = []
    for where, data in documents:
        try:
            found = [*in_document(where, data)]
        except ValueError as error:
            untaken.append(Untaken(where, "", str(error)))
            continue
        objects += fit(found, untaken)
    return Gathered(name, objects, untaken)


def fit(found: Iterable[Found], untaken: list[Untaken]) -> list[Found]:
    """The objects that can be stored; the others are added to `untaken`."""
    objects = []
    for each in found:
        reason = _unfit(each.obj)
        if reason:
            untaken.append(Untaken(each.where, title(each.obj), reason))
        else:
            objects.append(each)
    return objects


def in_document(where: str, data: bytes) -> Iterator[Found]:
    """The objects in a file of JSON, or of one or many YAML documents. Raises ValueError in the decoder's words."""
    values = [value for value in _values(data) if value is not None]
    for number, value in enumerate(values, 1):
        yield from _objects(where if len(values) == 1 else f"{where}#{number}", value)


def _values(data: bytes) -> Iterator[Any]:
    """The documents of a file. Raises ValueError."""
    if data.lstrip()[:1] in (b"{", b"["):
        try:
            yield json.decode(data)
            return
        except ValueError:
            if not _SEPARATOR.search(data):  # JSON may stand between the lines of YAML
                raise
    for text in _SEPARATOR.split(data):
        yield yaml.decode(text)


def _objects(where: str, value: Any, like: tuple[Any, Any] = (None, None)) -> Iterator[Found]:
    """The objects that a document or an item of a list is. `like`: the apiVersion and kind of an item that doesn't say."""
    if isinstance(value, list):
        for number, item in enumerate(value, 1):
            yield from _objects(f"{where}#{number}", item)
        return
    if not isinstance(value, dict):
        return
    version, kind = value.get("apiVersion"), value.get("kind")
    items = value.get("items")
    if isinstance(items, list) and (kind is None or str(kind).endswith(_LIST)):
        of_items = (None, None) if kind in (None, _LIST) else (version, str(kind).removesuffix(_LIST))
        for number, item in enumerate(items, 1):
            yield from _objects(f"{where}#{number}", item, of_items)
    elif kind or version or isinstance(value.get("metadata"), dict):
        yield Found(where, {**value, "apiVersion": version or like[0], "kind": kind or like[1]})


def _unfit(obj: dict[str, Any]) -> str:
    """The reason for which this can't be a stored object, "" if it can."""
    meta = obj.get("metadata")
    if not isinstance(meta, dict):
        return "it has no metadata"
    for member in ("name", "namespace", "uid", "resourceVersion"):
        if not isinstance(meta.get(member) or "", str):
            return f"metadata.{member} is not a text"
    name, namespace = meta.get("name") or "", meta.get("namespace") or ""
    if not name:
        return "it has no metadata.name"
    if any(part in (".", "..") or "/" in part or "%" in part for part in (name, namespace)):
        return "no object can have such a name"
    for member in ("apiVersion", "kind"):
        if not isinstance(obj.get(member) or "", str):
            return f"its {member} is not a text"
    return ""
