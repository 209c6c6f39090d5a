"""The differences of two states, object by object and field by field."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

from fakeapiserver.apimachinery.depth import Walk, flattened
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.serializer.json import decode_plainly, encode_plainly
from fakeapiserver.storage.interface import StoredObject
from fakeapiserver.storage.keys import ROOT, resource_of
from fakeapiserver.storage.mvcc import Snapshot

# Keys of etcd that aren't called as their resource.
_RESOURCES: Final = {"minions": "nodes", "services/specs": "services", "services/endpoints": "endpoints"}
# Set by the server for each object, or for each write.
_NOISE: Final = frozenset(("managedFields", "resourceVersion", "uid", "generation", "observedGeneration"))
# Members whose names users choose.
_OPAQUE: Final = frozenset(("data", "binaryData", "stringData", "labels", "annotations", "matchLabels"))
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
# The members that identify an item of a list, whichever all items have first.
_IDENTITIES: Final = ("name", "type", "key", "ip", "containerPort", "port", "uid")
_PLAIN: Final = re.compile(r"[A-Za-z0-9(_/.<-](?!.*(: | #))[^\n\r\t]*[^:\s]|[A-Za-z0-9]")
_SECRET: Final = "(secret)"


class _Absent:
    """The value of a field that isn't there."""

    def __repr__(self) -> str:
        return "(absent)"


ABSENT: Final = _Absent()


class Field(Struct, frozen=True):
    """A field with two values, e.g. at the path `spec.containers[name=web].image`. `ABSENT` is the value of a field that isn't there."""

    path: str
    old: Any
    new: Any

    def __str__(self) -> str:
        return f"{self.path}: {_text(self.old)} -> {_text(self.new)}"


class Entry(Struct, frozen=True):
    """An object that exists in one state only, or differs in `fields`. `resource` is e.g. `pods` or `widgets.example.com`; `object` is the
    newest state, without the type."""

    resource: str
    namespace: str
    name: str
    object: Object
    fields: tuple[Field, ...] = ()

    def __str__(self) -> str:
        return f"{self.resource} {self.namespace}/{self.name}" if self.namespace else f"{self.resource} {self.name}"


class Diff(Struct, frozen=True):
    """Is true if there is a difference. Its text is YAML. Values of Secrets are not shown."""

    added: list[Entry] = field(default_factory=list)
    removed: list[Entry] = field(default_factory=list)
    changed: list[Entry] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)

    def __str__(self) -> str:
        lines: list[str] = []
        for title, entries in (("added", self.added), ("removed", self.removed)):
            if entries:
                lines += [f"{title}:", *(f"- {entry}" for entry in entries)]
        if self.changed:
            lines.append("changed:")
        for entry in self.changed:
            lines.append(f"  {entry}:")
            for each in entry.fields:
                lines.append(f"    {_plain(each.path)}: {_plain(f'{_text(each.old)} -> {_text(each.new)}')}")
        return "\n".join(lines) or "{}"


def diff(old: Snapshot, new: Snapshot, *, noise: bool = False) -> Diff:
    """Returns the differences between two states, in the order of the objects' keys.

    - `noise`: also compares what the server sets at each write: managedFields, resourceVersion, uid, generation and times.
    """
    result = Diff()
    for name in sorted(old.buckets.keys() | new.buckets.keys()):
        before, after = old.buckets.get(name, {}), new.buckets.get(name, {})
        for key in sorted(before.keys() | after.keys()):
            was, now = before.get(key), after.get(key)
            if was is now or (was is not None and now is not None and was.value == now.value):
                continue
            if was is None and now is not None:
                result.added.append(_entry(now))
            elif now is None and was is not None:
                result.removed.append(_entry(was))
            elif was is not None and now is not None:
                entry = _compared(was, now, noise)
                if entry.fields:
                    result.changed.append(entry)
    return result


def fields(resource: str, old: Object, new: Object) -> list[Field]:
    """The differences of two objects of a resource, without what the server sets at each write. Values of Secrets are hidden."""
    found = [*flattened(_fields("", old, new, noise=False))]
    return [_masked(each) for each in found] if resource == "secrets" else found


def _compared(was: StoredObject, now: StoredObject, noise: bool) -> Entry:
    entry = _entry(now)
    old, new = decode_plainly(was.value), decode_plainly(now.value)
    fields = [*flattened(_fields("", old, new, noise))]
    if entry.resource == "secrets":
        fields = [_masked(each) for each in fields]
    return Entry(entry.resource, entry.namespace, entry.name, entry.object, tuple(fields))


def _entry(stored: StoredObject) -> Entry:
    resource = resource_of(stored.key)
    obj = decode_plainly(stored.value)
    title = title_of(resource)
    meta = obj["metadata"]
    if title == "secrets":
        obj = {name: dict.fromkeys(value, _SECRET) if name == "data" else value for name, value in obj.items()}
        obj["metadata"] = (
            {**meta, "annotations": dict.fromkeys(meta["annotations"], _SECRET)} if "annotations" in meta else meta
        )
    name = stored.key.removeprefix(f"{ROOT}/{resource}/").rpartition("/")[2]
    return Entry(title, meta.get("namespace", ""), name, obj)


def title_of(resource: str) -> str:
    """The name by which people call a resource of the storage: `pods`, `services`, `widgets.example.com`."""
    group, slash, plural = resource.partition("/")
    return _RESOURCES.get(resource) or (f"{plural}.{group}" if slash else resource)


def _masked(each: Field) -> Field:
    """A difference of a Secret, whose values and annotations (kubectl's has all values) are not shown."""
    if not each.path.startswith(("data", "metadata.annotations")):
        return each
    hidden = [value if value is ABSENT else _SECRET for value in (each.old, each.new)]
    return Field(each.path, hidden[0], "(another secret)" if hidden == [_SECRET, _SECRET] else hidden[1])


def _fields(path: str, old: Any, new: Any, noise: bool) -> Walk[Field]:
    if type(old) is type(new) and _surely_equal(old, new):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        is_opaque = path.rpartition(".")[2] in _OPAQUE
        for name in [*old, *(name for name in new if name not in old)]:
            was, now = old.get(name, ABSENT), new.get(name, ABSENT)
            if noise or is_opaque or not _is_noise(name, was, now):
                yield _fields(_joined(path, name), was, now, noise)
    elif isinstance(old, list) and isinstance(new, list) and (identity := _identity(old, new)):
        before, after = ({item[identity]: item for item in items} for items in (old, new))
        for value in dict.fromkeys((*before, *after)):
            place = f"{path}[{identity}={value}]"
            yield _fields(place, before.get(value, ABSENT), after.get(value, ABSENT), noise)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (was, now) in enumerate(zip(old, new, strict=True)):
            yield _fields(f"{path}[{number}]", was, now, noise)
    else:
        yield Field(path, old, new)


def _surely_equal(old: Any, new: Any) -> bool:
    """False also where that is too deep to be seen at once: the levels below are compared one by one then."""
    try:
        return bool(old == new)
    except RecursionError:
        return False


def _is_noise(name: str, old: Any, new: Any) -> bool:
    if name in _NOISE:
        return True
    values = [value for value in (old, new) if value is not ABSENT]
    both = len(values) == 2 or name != "deletionTimestamp"
    return both and all(value is None or (isinstance(value, str) and _TIME.fullmatch(value)) for value in values)


def _identity(old: list[Any], new: list[Any]) -> str:
    """The member that distinguishes the items of both lists, or ""."""
    for name in _IDENTITIES:
        if all(_distinguishes(name, items) for items in (old, new)):
            return name
    return ""


def _distinguishes(name: str, items: list[Any]) -> bool:
    values = [item.get(name) for item in items if isinstance(item, Mapping)]
    return len(values) == len(items) == len(set(map(str, values))) and all(isinstance(v, str | int) for v in values)


def _joined(path: str, name: str) -> str:
    part = f"[{json.dumps(name)}]" if "." in name or "/" in name else name
    return part if not path else f"{path}{part}" if part is not name else f"{path}.{part}"


def _text(value: Any) -> str:
    if isinstance(value, str) and value and "\n" not in value:
        return value
    if value is ABSENT:
        return repr(value)
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return encode_plainly(value).decode()


def _plain(text: str) -> str:
    """A scalar of YAML, in quotes where it needs them."""
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)
