"""Serves the metrics APIs: their APIServices, their discovery, and the handlers of their paths."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from fakeapiserver.apimachinery.errors import new_generic_method_not_allowed
from fakeapiserver.apimachinery.gvk import GroupVersion
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.apis.resource_table import RemoteVersion
from fakeapiserver.apis.scheme import Priority
from fakeapiserver.clock import Clock
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.negotiation.media_types import negotiate_document
from fakeapiserver.endpoints.object_getter import ObjectGetter
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.server.aggregator import discovery
from fakeapiserver.server.metrics_apis import groups
from fakeapiserver.server.metrics_apis.values import Amount, Values
from fakeapiserver.server.upkeep.autoregister import AutoRegistration

if TYPE_CHECKING:
    from fakeapiserver.server.metrics_apis.groups import MetricsGroup

# By the names under which they are switched on.
VERSIONS: Final[Mapping[str, Sequence[GroupVersion]]] = {
    "resource": (GroupVersion("metrics.k8s.io", "v1beta1"),),
    "custom": (GroupVersion("custom.metrics.k8s.io", "v1beta2"), GroupVersion("custom.metrics.k8s.io", "v1beta1")),
    "external": (GroupVersion("external.metrics.k8s.io", "v1beta1"),),
}
# What metrics-server and adapters are registered with.
_PRIORITY: Final = Priority(100, 100)
_PREFERRED: Final = Priority(100, 200)
# What the APIServices are wanted by; no definition is called so.
_OWNER: Final = "(metrics)"


def named(names: Iterable[str]) -> Collection[str]:
    """`*` is all. ValueError for a name that none has."""
    versions: list[str] = []
    for name in names:
        if name != "*" and name not in VERSIONS:
            raise ValueError(f"metrics are {', '.join(VERSIONS)} or *, not {name!r}")
        versions += VERSIONS if name == "*" else [name]
    return [name for name in VERSIONS if name in versions]


class MetricsAPIs:
    """`values`: what a test has set. Nothing is served until `serve` says so."""

    def __init__(
        self, scopes: RequestScopes, objects: ObjectGetter, registration: AutoRegistration, clock: Clock
    ) -> None:
        self.values = Values()
        self._scopes = scopes
        self._objects = objects
        self._registration = registration
        self._clock = clock
        self._groups: dict[str, tuple[GroupVersion, MetricsGroup]] = {}
        self._published: Mapping[GroupVersion, RemoteVersion] = {}
        self.served: Collection[str] = ()

    async def serve(self, names: Iterable[str]) -> None:
        """Serves exactly these APIs from now on. Raises ValueError for an unknown API."""
        self.served = named(names)
        versions = [version for name in self.served for version in VERSIONS[name]]
        self._groups = {f"/apis/{version}": (version, self._made(version)) for version in versions}
        for version in (version for group_versions in VERSIONS.values() for version in group_versions):
            wanted = version in versions
            self._scopes.table.set_priority(version, _priority(version) if wanted else None)
        self._publish()
        await self._registration.announce(_OWNER, versions)

    def set_custom(self, metric: str, value: Amount | None, **where: Any) -> None:
        """See Values. ValueError also where no custom metrics are served."""
        self.require("custom")
        self.values.set_custom(metric, value, **where)
        self._publish()

    def set_external(self, metric: str, value: Amount | None, **where: Any) -> None:
        """See Values. ValueError also where no external metrics are served."""
        self.require("external")
        self.values.set_external(metric, value, **where)
        self._publish()

    def clear(self) -> None:
        """Removes all values that were set."""
        self.values.clear()
        self._publish()

    def require(self, name: str) -> None:
        """ValueError where the API isn't served."""
        if name not in self.served:
            raise ValueError(
                f"no {name} metrics are served here: switch them on with metrics=({name!r},), or '*' for all"
            )

    def _publish(self) -> None:
        """Publishes the served resources in discovery, custom and external metrics among them."""
        documents = {version: self._document(version, group) for version, group in self._groups.values()}
        if documents != self._published:
            self._published = documents
            self._scopes.table.set_remote(documents, _OWNER)

    def _document(self, version: GroupVersion, group: "MetricsGroup") -> RemoteVersion:
        resources = discovery.resources_of(group.resources())
        listed = {"resources": resources} if resources else {}
        return RemoteVersion(_priority(version), {"version": version.version, **listed, "freshness": "Current"})

    def _made(self, version: GroupVersion) -> "MetricsGroup":
        if version in VERSIONS["resource"]:
            return groups.ResourceMetrics(self.values, self._objects, self._clock, version)
        if version in VERSIONS["custom"]:
            return groups.CustomMetrics(self.values, self._objects, self._clock, version, self._scopes.table)
        return groups.ExternalMetrics(self.values, self._clock, version)

    # ------------------------------------------------------------------------------ answering

    def answers(self, path: str) -> bool:
        """Reports whether the path is one of theirs."""
        return bool(self._groups) and _prefix(path) in self._groups

    async def answer(self, request: Request) -> Response:
        """StatusError."""
        version, group = self._groups[_prefix(request.path)]
        if request.method != "GET" or request.info.verb == "watch":
            raise new_generic_method_not_allowed()
        if request.info.resource_request:
            return group.answer(request)
        listed = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": str(version)}
        body = json.encode({**listed, "resources": group.resources()})
        return respond.raw(request, body, negotiate_document(request.header(b"accept")))


def _prefix(path: str) -> str:
    """`/apis/GROUP/VERSION` of a path."""
    return "/".join(path.split("/", 4)[:4])


def _priority(version: GroupVersion) -> Priority:
    return _PREFERRED if version.version == "v1beta2" else _PRIORITY
