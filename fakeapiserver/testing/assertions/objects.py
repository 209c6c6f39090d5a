"""The stored object that a test means, and what is known about it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from msgspec import Struct

from fakeapiserver.apimachinery.gvk import GroupVersion, GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apis.scheme import APIResource
from fakeapiserver.cluster import AsyncCluster, Cluster, describing
from fakeapiserver.evidence.query import WRITES
from fakeapiserver.evidence.requests import RequestList
from fakeapiserver.server.apiserver import APIServer

T = TypeVar("T")
AnyCluster = Cluster | AsyncCluster
# An object of any client, or a name such as `deploy/web`.
Named = Any

_DEFAULT: Final = "default"
_MOST_LINES: Final = 30
_MOST_WRITES: Final = 5


class Reference(Struct, frozen=True):
    """The resource, namespace and name of an object. `uid` is empty if it isn't known."""

    row: APIResource
    namespace: str
    name: str
    uid: str = ""

    def __str__(self) -> str:
        """`deployments.apps default/web`"""
        return f"{self.row.gvr.group_resource} {self.namespace}{'/' * bool(self.namespace)}{self.name}"


class Found(Struct, frozen=True):
    """A stored object in the version in which it was named, its events, the oldest first, and the last writes of clients."""

    reference: Reference
    object: Object
    events: Sequence[Object]
    writes: RequestList

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield "The object:"
        shown = self.object
        if self.reference.row.gvk.kind == "Secret":
            shown = {**shown, "data": dict.fromkeys(shown.get("data") or {}, "(secret)")}
        yield from describing.object_lines(shown, _MOST_LINES)
        yield describing.last_writer(self.object)
        if self.writes:
            yield "The last writes of clients:"
            yield from (f"  {line}" for line in str(self.writes[-_MOST_WRITES:]).splitlines())
        yield from describing.event_lines(self.events)


def in_cluster(cluster: AnyCluster, work: Callable[[APIServer], T]) -> T:
    """Calls `work` where the cluster runs. Raises ValueError for anything but a running cluster."""
    if isinstance(cluster, AsyncCluster):
        return work(cluster._api)
    if not isinstance(cluster, Cluster):
        raise ValueError(f"the first argument must be a Cluster or an AsyncCluster, not {cluster!r}")

    async def called() -> T:
        return work(cluster._core._api)

    return cluster._run(called)


def find(cluster: AnyCluster, named: Named, namespace: str | None = None) -> Found:
    """Returns the stored object. Raises AssertionError if it does not exist, LookupError for an unknown resource, and ValueError for
    something that names no object."""
    return in_cluster(cluster, lambda api: _find(api, named, namespace))


def refer(cluster: AnyCluster, named: Named, namespace: str | None = None) -> Reference:
    """Returns the reference to the object, which needn't exist. Raises LookupError and ValueError like `find`."""
    return in_cluster(cluster, lambda api: _reference(api, named, namespace))


def _find(api: APIServer, named: Named, namespace: str | None) -> Found:
    reference = _reference(api, named, namespace)
    scope = api.scopes.lookup(*reference.row.gvr)
    if scope is None or scope.store is None:
        raise LookupError(f"{reference.row.gvr.group_resource} are not stored")
    stored = api.storage.get_now(scope.store.key(reference.namespace, reference.name))
    if stored is None:
        names = [
            item.key.rpartition("/")[2]
            for item in api.storage.list_now(scope.store.collection(reference.namespace)).items
        ]
        others = f"The others are: {', '.join(names[:10])}" if names else "There are no others"
        raise AssertionError(f"{reference} doesn't exist. {others}.")
    if reference.uid and stored.index.uid and stored.index.uid != reference.uid:
        raise AssertionError(
            f"{reference} was deleted and created again: its uid is {stored.index.uid}, not {reference.uid}."
        )
    obj = {
        "apiVersion": str(reference.row.gvk.group_version),
        "kind": reference.row.gvk.kind,
        **scope.decode(stored.value),
    }
    return Found(reference, obj, events_about(api, obj["metadata"].get("uid", "")), _writes(api, reference))


def events_about(api: APIServer, uid: str) -> list[Object]:
    """The events about the object with this uid, the oldest first."""
    events = [event for event in api.objects.list("events") if event.get("involvedObject", {}).get("uid") == uid]
    return sorted(events, key=describing.time_of)


def _writes(api: APIServer, reference: Reference) -> RequestList:
    entries = api.request_log.entries if api.request_log is not None else []
    return RequestList(
        entry
        for entry in entries
        if entry.verb in WRITES
        and (entry.group, entry.resource) == (reference.row.gvr.group, reference.row.gvr.resource)
        and (entry.namespace, entry.name) == (reference.namespace, reference.name)
    )


def _reference(api: APIServer, named: Named, namespace: str | None) -> Reference:
    if isinstance(named, str):
        resource, slash, name = named.partition("/")
        if not (slash and name):
            raise ValueError(f'an object is named as "deploy/web" or given as an object of a client, not {named!r}')
        row = _row_called(api, resource)
        return Reference(row, (namespace or _DEFAULT) if row.namespaced else "", name)
    obj = as_dict(named)
    metadata = obj.get("metadata") or {}
    name, uid = metadata.get("name") or "", metadata.get("uid") or ""
    if not name:
        raise ValueError(f"this is no object with a name: {named!r}")
    row = _row_of(api, obj, type(named).__name__, uid)
    return Reference(row, (metadata.get("namespace") or namespace or _DEFAULT) if row.namespaced else "", name, uid)


def as_dict(obj: object) -> Mapping[str, Any]:
    """The object of any client as nested dicts, whose names may be those of Python. Raises ValueError for something else."""
    if isinstance(obj, Mapping):
        return obj
    for name in ("raw", "obj"):  # kr8s, pykube
        inner = getattr(obj, name, None)
        if isinstance(inner, Mapping):
            return inner
    for name in ("to_dict", "model_dump", "dict"):
        method = getattr(obj, name, None)
        if callable(method):
            result = method()
            if isinstance(result, Mapping):
                return result
    raise ValueError(f'an object is named as "deploy/web" or given as an object of a client, not {obj!r}')


def _row_of(api: APIServer, obj: Mapping[str, Any], class_name: str, uid: str) -> APIResource:
    """The resource of an object. The items of lists don't name their kind in some clients: then the uid finds it."""
    version, kind = obj.get("apiVersion") or obj.get("api_version"), obj.get("kind")
    if version and kind:
        row = api.table.for_kind(GroupVersionKind(*GroupVersion.parse(version), kind))
        if row is None:
            raise LookupError(f"this cluster serves no {kind} of {version}")
        return row
    if row := next((row for row in _preferred(api) if uid and _stores(api, row, uid)), None):
        return row
    if uid:
        raise AssertionError(
            f"no object with the uid {uid} exists ({class_name} {(obj.get('metadata') or {}).get('name')})"
        )
    raise ValueError(f"this {class_name} has neither apiVersion and kind nor a uid")


def _stores(api: APIServer, row: APIResource, uid: str) -> bool:
    scope = api.scopes.lookup(*row.gvr)
    if scope is None or scope.store is None:
        return False
    return any(item.index.uid == uid for item in api.storage.list_now(scope.store.prefix).items)


def _row_called(api: APIServer, resource: str) -> APIResource:
    plural, _, group = resource.lower().partition(".")
    for row in _preferred(api):
        if plural in (row.gvr.resource, row.singular, row.gvk.kind.lower(), *row.short_names) and group in (
            "",
            row.gvr.group,
        ):
            return row
    raise LookupError(f'this cluster serves no resource "{resource}"; `kubectl api-resources` lists what it serves')


def _preferred(api: APIServer) -> Iterator[APIResource]:
    """The resources that are stored, each in its preferred version."""
    seen = set()
    for group in api.table.groups():
        for view in group.versions:
            for row in view.resources:
                if "get" in row.verbs and row.gvr.group_resource not in seen:
                    seen.add(row.gvr.group_resource)
                    yield row
