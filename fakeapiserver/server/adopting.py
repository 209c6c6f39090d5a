"""Takes objects of another cluster over into the storage of this server, as they were.

Status, uid, times, managed fields and, where they have one, resourceVersion stay. Admission and controllers don't touch them on the way.
Objects without a uid are manifests: they are created as if a client had sent them.

What would make this server call a stranger's machine is left out: webhooks, aggregated API servers and conversion webhooks.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from msgspec import Struct

from fakeapiserver.admission.interfaces import Writer
from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.gvk import GroupResource, GroupVersion, GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apis.resource_table import ResourceTable
from fakeapiserver.apis.scheme import APIResource
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.registry.generic.store import Store
from fakeapiserver.state.found import Found, Gathered, LoadReport, Untaken, title
from fakeapiserver.storage.interface import StoredObject
from fakeapiserver.storage.memory import MemoryStorage
from fakeapiserver.storage.versioner import stamp

_DEFINITION: Final = "CustomResourceDefinition"
_NAMESPACE: Final = "Namespace"
_MAX_REVISION: Final = 2**63 - 1
_MAX_DIGITS: Final = 19
_WEBHOOKS: Final = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
# Of `cluster-resources/pods/shop.json#3`.
_PARTS: Final = re.compile(r"[/#.]")


class Adopting(Protocol):
    """The part of an API server that takes objects over."""

    scopes: RequestScopes
    storage: MemoryStorage
    table: ResourceTable

    @property
    def writer(self) -> Writer: ...

    async def serve_definitions(self) -> None:
        """Serves the custom resources that stored definitions make."""

    async def adopted(self, objects: Sequence[StoredObject], revision: int) -> None:
        """Stores objects as they are. Open watches end."""


class _Adoption:
    """The adoption of one source: the results so far."""

    def __init__(self, api: Adopting, source: Gathered) -> None:
        self.api = api
        self.taken: Counter[str] = Counter()
        self.untaken = [*source.untaken]
        self.namespaces: list[str] = []
        self.changed: list[str] = []
        # Of the newest object with a resourceVersion; those without one come after it.
        self.newest = max(api.storage.revision, source.revision)

    def refuse(self, found: Found, reason: str) -> None:
        self.untaken.append(Untaken(found.where, title(found.obj), reason))


async def adopt(api: Adopting, source: Gathered) -> LoadReport:
    """Takes over what can be taken. An object replaces the one of the same name that is there; of several in the source, the newest
    counts."""
    adoption = _Adoption(api, source)
    typed = [_with_type(api.table, found) for found in source.objects]
    definitions = [found for found in typed if found.obj["kind"] == _DEFINITION]
    await _take(adoption, definitions)
    await api.serve_definitions()
    await _take(adoption, [found for found in typed if found.obj["kind"] != _DEFINITION])
    return LoadReport(source.name, dict(adoption.taken), adoption.untaken, adoption.namespaces, adoption.changed)


async def _take(adoption: _Adoption, founds: Sequence[Found]) -> None:
    """Stores those that have a uid, and then creates the others."""
    states, manifests = _divided(founds)
    placed: list[_Placed] = []
    for found in states:
        try:
            placed.append(await _place(adoption, found))
        except ValueError as error:
            adoption.refuse(found, str(error))
    await _make_namespaces(adoption, placed, manifests)
    stored: dict[str, StoredObject] = {}
    for each in placed:
        new = _stored(adoption, each)
        before = stored.get(new.key)
        adoption.taken[each.resource] += before is None
        if before is None or before.mod_revision < new.mod_revision:
            stored[new.key] = new
    if stored:
        await adoption.api.adopted([*stored.values()], adoption.newest)
    for found in sorted(manifests, key=lambda found: found.obj["kind"] != _NAMESPACE):
        await _create(adoption, found)


def _divided(founds: Sequence[Found]) -> tuple[list[Found], list[Found]]:
    """Returns those that have been in a cluster, and those that have not."""
    states = [found for found in founds if found.obj["metadata"].get("uid")]
    return states, [found for found in founds if not found.obj["metadata"].get("uid")]


class _Placed(Struct):
    """An object in the version that storage takes, and where it is stored. `revision` is 0 if it has none."""

    resource: str
    store: Store
    obj: Object
    revision: int


async def _place(adoption: _Adoption, found: Found) -> _Placed:
    """Raises ValueError with the reason for which the object can't be stored."""
    row, scope, store = _scope_of(adoption.api, found.obj)
    obj = _harmless(adoption, found)
    revision = _revision(obj["metadata"].pop("resourceVersion", None) or "")
    scope.kind.decode(obj)
    scope.kind.default(obj)
    converted = await store.versions.settled(lambda: store.versions.to_storage(obj), 0)
    adoption.newest = max(adoption.newest, revision)
    return _Placed(str(row.gvr.group_resource), store, converted, revision)


def _stored(adoption: _Adoption, placed: _Placed) -> StoredObject:
    if not placed.revision:
        placed.revision = adoption.newest = adoption.newest + 1
    meta = placed.obj["metadata"]
    encoded = placed.store.versions.encode(placed.obj)
    value = stamp(encoded.value, encoded.offset, placed.revision)
    key = placed.store.key(meta.get("namespace", ""), meta["name"])
    return StoredObject(key, value, placed.revision, placed.revision, placed.store.index(placed.obj), encoded.offset)


def _scope_of(api: Adopting, obj: Object) -> tuple[APIResource, RequestScope, Store]:
    """Returns the row, scope and store of objects of this kind. Raises ValueError."""
    kind, version = obj["kind"], obj["apiVersion"]
    if not (kind and version):
        raise ValueError(
            "it has no apiVersion and kind, and neither its file nor its folder is called after a resource"
        )
    if kind in _WEBHOOKS:
        raise ValueError("its webhooks belong to another cluster; apply it again once they can be called here")
    row = api.table.for_kind(GroupVersionKind(*GroupVersion.parse(version), kind))
    if row is None:
        raise ValueError(
            f"{version} {kind} is not served here; its CustomResourceDefinition is missing, or the version is of the past"
        )
    scope = api.scopes.lookup(*row.gvr) if "create" in row.verbs else None
    if scope is None or scope.store is None:
        raise ValueError(f"{version} {kind} is computed and never stored")
    if row.namespaced != bool(obj["metadata"].get("namespace")):
        raise ValueError("it has no namespace" if row.namespaced else "objects of this kind have no namespace")
    return row, scope, scope.store


def _is_namespaced(api: Adopting, obj: Object) -> bool:
    row = api.table.for_kind(GroupVersionKind(*GroupVersion.parse(obj["apiVersion"]), obj["kind"]))
    return row is not None and row.namespaced


def _harmless(adoption: _Adoption, found: Found) -> Object:
    """A copy of the object without what would call a stranger's machine. Raises ValueError if nothing is left."""
    obj = {**found.obj, "metadata": {**found.obj["metadata"]}}
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return obj
    if obj["kind"] == "APIService" and spec.get("service"):
        raise ValueError("its API server belongs to another cluster; apply it again once that can be called here")
    conversion = spec.get("conversion")
    if obj["kind"] == _DEFINITION and isinstance(conversion, dict) and conversion.get("strategy") == "Webhook":
        obj["spec"] = {**spec, "conversion": {"strategy": "None"}}
        adoption.changed.append(
            f"{title(obj)} has no conversion between its versions here, since the webhook belongs to another cluster"
        )
    return obj


def _revision(text: str) -> int:
    """Returns a resourceVersion as a number, or 0 for a text that etcd never gives. Raises ValueError for a number beyond int64."""
    if not (text.isascii() and text.isdigit()):
        return 0
    if len(text) > _MAX_DIGITS or int(text) > _MAX_REVISION:
        raise ValueError(f"there is no resourceVersion {text[:40]}")
    return int(text)


def _with_type(table: ResourceTable, found: Found) -> Found:
    """An object without a type gets that of the resource after which its file or folder is called, as in `storage-classes.json`."""
    if found.obj.get("kind"):
        return found
    by_name = {row.gvr.resource: row for row in reversed([*table]) if "list" in row.verbs}
    for part in reversed(_PARTS.split(found.where)):
        row = by_name.get(part.replace("-", ""))
        if row is not None:
            group_version, kind = str(row.gvk.group_version), row.gvk.kind
            return Found(found.where, {**found.obj, "apiVersion": group_version, "kind": kind})
    return Found(found.where, {**found.obj, "apiVersion": "", "kind": ""})


async def _make_namespaces(adoption: _Adoption, placed: Iterable[_Placed], manifests: Iterable[Found]) -> None:
    """Creates the namespaces that objects are in and that neither the source nor this server has."""
    api = adoption.api
    store = api.scopes.store_for(GroupResource("", "namespaces"))
    assert store is not None
    wanted = {each.obj["metadata"].get("namespace") for each in placed}
    wanted |= {found.obj["metadata"].get("namespace") for found in manifests}
    given = {each.obj["metadata"]["name"] for each in placed if each.store is store}
    given |= {found.obj["metadata"]["name"] for found in manifests if found.obj["kind"] == _NAMESPACE}
    for name in sorted(wanted - given - {None, ""}):
        if api.storage.get_now(store.key("", name)) is None:
            await api.writer.create("namespaces", {"metadata": {"name": name}})
            adoption.namespaces.append(name)


async def _create(adoption: _Adoption, found: Found) -> None:
    """Sends a manifest through the whole write path, or says why it can't be."""
    try:
        obj = _harmless(adoption, found)
        if not obj["metadata"].get("namespace") and _is_namespaced(adoption.api, obj):
            obj["metadata"]["namespace"] = "default"
        row, _, _ = _scope_of(adoption.api, obj)
        await adoption.api.writer.create(str(row.gvr.group_resource), obj)
    except (StatusError, ValueError) as error:
        adoption.refuse(found, str(error))
    else:
        adoption.taken[str(row.gvr.group_resource)] += 1
