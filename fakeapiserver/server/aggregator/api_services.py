"""The stored APIServices: the group versions, and those that other servers serve.

Upstream: k8s.io/kube-aggregator/pkg/apiserver/{apiserver.go,handler_proxy.go}, pkg/apis/apiregistration/v1/helper/helpers.go.
"""

import base64
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from fakeapiserver.apimachinery.gvk import GroupVersion
from fakeapiserver.apimachinery.meta import FrozenObject
from fakeapiserver.apimachinery.object_reader import ObjectReader
from fakeapiserver.apis.scheme import Priority

RESOURCE: Final = "apiservices.apiregistration.k8s.io"
AVAILABLE: Final = "Available"
# The one without a group: it stands for all of /api.
LEGACY: Final = GroupVersion("", "v1")
_HTTPS_PORT: Final = 443


class ServiceReference(Struct, frozen=True):
    """A Service reference (upstream: ServiceReference), the key of a server's data."""

    namespace: str
    name: str
    port: int

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}:{self.port}"

    @property
    def server_name(self) -> str:
        """The name that its certificate must have."""
        return f"{self.name}.{self.namespace}.svc"


class RemoteService(Struct, frozen=True):
    """An APIService that another server answers (upstream: proxyHandlingInfo)."""

    name: str
    gv: GroupVersion
    priority: Priority
    service: ServiceReference
    ca_bundle: bytes
    insecure: bool
    available: bool

    @property
    def path(self) -> str:
        """The path that it serves, with everything below."""
        return "/api" if self.gv == LEGACY else f"/apis/{self.gv}"


class APIServices:
    """A view of the stored APIServices that is never stale: it follows the changes since its last use."""

    def __init__(self, objects: ObjectReader) -> None:
        self._objects = objects
        self._generation = self._revision = -1
        self._priorities: dict[GroupVersion, Priority] = {}
        self._remote: dict[str, RemoteService] = {}
        self._available: dict[str, bool] = {}

    @property
    def generation(self) -> int:
        """A number that changes with the stored APIServices."""
        return self._objects.generation((RESOURCE,))

    @property
    def remote(self) -> Mapping[str, RemoteService]:
        """The APIServices of other servers, by name."""
        self._refresh()
        return self._remote

    @property
    def priorities(self) -> Mapping[GroupVersion, Priority]:
        """The priorities of all registered group versions."""
        self._refresh()
        return self._priorities

    @property
    def available(self) -> Mapping[str, bool]:
        """Whether it is, by name."""
        self._refresh()
        return self._available

    def for_path(self, path: str) -> RemoteService | None:
        """Returns the APIService whose server answers a request, or None for this server."""
        if self._generation != self.generation:
            self._refresh()
        if not self._remote:
            return None
        _, prefix, group, version = (*path.split("/", 4), "", "", "", "")[:4]
        if prefix == "apis":
            return self._remote.get(f"{version}.{group}") if group else None
        return self._remote.get("v1.") if prefix == "api" else None

    def _refresh(self) -> None:
        if self._generation == self.generation:
            return
        try:
            changes = [(old, new) for _, old, new in self._objects.changes((RESOURCE,), self._revision)]
            priorities, available, remote = dict(self._priorities), dict(self._available), dict(self._remote)
        except LookupError:
            changes = [(None, obj) for obj in self._objects.list(RESOURCE)]
            priorities, available, remote = {}, {}, {}
        for old, new in changes:
            if old is not None:
                priorities.pop(_group_version(old), None)
                available.pop(old["metadata"]["name"], None)
                remote.pop(old["metadata"]["name"], None)
            if new is not None:
                priorities[_group_version(new)] = _priority(new)
                available[new["metadata"]["name"]] = is_available(new)
                remote |= {service.name: service for service in _remote(new)}
        self._priorities, self._available, self._remote = priorities, available, dict(sorted(remote.items()))
        self._generation, self._revision = self.generation, self._objects.revision


def is_available(obj: FrozenObject) -> bool:
    """Reports whether its condition says so."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(condition.get("type") == AVAILABLE and condition.get("status") == "True" for condition in conditions)


def service_of(obj: FrozenObject) -> ServiceReference | None:
    """Returns the Service of an APIService, or None if this server serves it itself."""
    service = obj["spec"].get("service")
    if service is None:
        return None
    return ServiceReference(service["namespace"], service["name"], service.get("port") or _HTTPS_PORT)


def _remote(obj: FrozenObject) -> Iterator[RemoteService]:
    """Yields the remote service of an APIService; nothing if this server serves it itself."""
    spec, service = obj["spec"], service_of(obj)
    if service is not None:
        yield RemoteService(
            name=obj["metadata"]["name"],
            gv=_group_version(obj),
            priority=_priority(obj),
            service=service,
            ca_bundle=base64.b64decode(spec.get("caBundle") or ""),
            insecure=bool(spec.get("insecureSkipTLSVerify")),
            available=is_available(obj),
        )


def _group_version(obj: FrozenObject) -> GroupVersion:
    return GroupVersion(obj["spec"].get("group", ""), obj["spec"].get("version", ""))


def _priority(obj: FrozenObject) -> Priority:
    return Priority(obj["spec"]["groupPriorityMinimum"], obj["spec"]["versionPriority"])
