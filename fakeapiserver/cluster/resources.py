"""The objects of a cluster, as its verbs read and write them: in the server's own event loop, without sockets."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from fakeapiserver.apimachinery.gvk import GroupVersion, GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.client import wait
from fakeapiserver.client.config import RESTConfig
from fakeapiserver.client.discovery import DiscoveryClient, MemoryCache
from fakeapiserver.client.dynamic import DynamicClient, ResourceClient
from fakeapiserver.client.rest import RESTClient
from fakeapiserver.client.rest_mapper import NoMatchError, RESTMapper, RESTMapping
from fakeapiserver.server.filters.access_log import CLUSTER_USER
from fakeapiserver.server.in_process import InProcessRoundTripper
from fakeapiserver.server.local import LocalServer
from fakeapiserver.server.projects import manifests

DEFAULT_NAMESPACE: Final = "default"
_DEFINITION: Final = "CustomResourceDefinition"
# These are applied before everything else, in this order.
_FIRST: Final = ("Namespace", _DEFINITION)
_ESTABLISHED_SECONDS: Final = 30.0


class Reference(Struct, frozen=True):
    """An object's resource, its namespace ("" if it is cluster-scoped) and its name."""

    mapping: RESTMapping
    client: ResourceClient
    name: str

    def __str__(self) -> str:
        """`deployments.apps "web" in namespace "default"`"""
        namespace = f' in namespace "{self.client.namespace}"' if self.client.namespace else ""
        return f'{self.mapping.gvr.group_resource} "{self.name}"{namespace}'


class Resources:
    """Clients of every resource that `server` serves, for a user who may do everything."""

    def __init__(self, server: LocalServer) -> None:
        assert server.api is not None
        user = UserInfo(CLUSTER_USER, groups=("system:masters", "system:authenticated"))
        transport = InProcessRoundTripper(server.api.application, user, lambda _: None)
        self._rest = RESTClient(RESTConfig(server.url, user_agent="fakeapiserver-cluster"), transport)
        self._dynamic = DynamicClient(self._rest)
        self._mapper = RESTMapper(MemoryCache(DiscoveryClient(self._rest)))

    def close(self) -> None:
        """Ends the requests that are still going on."""
        self._rest.close()

    async def reference(self, resource: str | Mapping[str, Any], name: str, namespace: str | None) -> Reference:
        """`resource` is an object, `deploy/web`, or a resource's name in any form that kubectl takes, with the object's name beside
        it. LookupError for an unknown resource, ValueError without a name."""
        if isinstance(resource, Mapping):
            mapping = await self._mapping_of(resource)
            metadata = resource["metadata"]
            return self._named(mapping, name or metadata["name"], namespace or metadata.get("namespace"))
        kind, slash, own_name = resource.partition("/")
        if slash and name and name != own_name:
            raise ValueError(f'name: "{resource}" names an object already, but the name "{name}" is given, too')
        if not (own_name or name):
            raise ValueError(
                f'name: which object of "{resource}"? give its name, as in ("{kind}", "web") or "{kind}/web"'
            )
        return self._named(await self.mapping(kind), own_name or name, namespace)

    async def mapping(self, resource: str) -> RESTMapping:
        """The resource that `pods`, `po`, `deployment.apps` or `widgets.example.com` means. LookupError."""
        try:
            return await self._mapper.mapping_for(resource)
        except NoMatchError as error:
            raise NoMatchError(
                f"{error}; `kubectl api-resources` lists what this cluster serves, and Cluster(crds=…) adds definitions"
            ) from None

    def client(self, mapping: RESTMapping, namespace: str | None) -> ResourceClient:
        """Returns the client for a namespace; None is the namespace `default`, "" is all."""
        place = DEFAULT_NAMESPACE if namespace is None else namespace
        return self._dynamic.resource(mapping.gvr, place if mapping.namespaced else "")

    async def apply(
        self, obj: Mapping[str, Any], field_manager: str, namespace: str | None, *, force: bool = False
    ) -> Object:
        """Server-side apply. LookupError for an unknown kind, ValueError for an object without kind or name."""
        mapping = await self._mapping_of(obj)
        metadata = obj["metadata"]
        client = self.client(mapping, metadata.get("namespace") or namespace)
        sent = {**obj, "metadata": {key: value for key, value in metadata.items() if key != "managedFields"}}
        applied = await client.apply(sent, field_manager=field_manager, force=force, field_validation="Strict")
        if mapping.gvk.kind == _DEFINITION:
            is_established = wait.has_condition("Established")
            await wait.until(client, is_established, name=metadata["name"], timeout=_ESTABLISHED_SECONDS)
        return applied

    async def _mapping_of(self, obj: Mapping[str, Any]) -> RESTMapping:
        version, kind = obj.get("apiVersion"), obj.get("kind")
        metadata = obj.get("metadata")
        title = manifests.title(dict(obj))
        if not (isinstance(version, str) and isinstance(kind, str) and version and kind):
            raise ValueError(f"an object must have apiVersion and kind, but {title} has {version!r} and {kind!r}")
        if not (isinstance(metadata, Mapping) and metadata.get("name")):
            raise ValueError(f"an object must have metadata.name, but this {kind} has none")
        try:
            return await self._mapper.mapping_of(GroupVersionKind(*GroupVersion.parse(version), kind))
        except NoMatchError as error:
            raise NoMatchError(f"{title}: {error}; apply its definition first, or name it in Cluster(crds=…)") from None

    def _named(self, mapping: RESTMapping, name: str, namespace: str | None) -> Reference:
        return Reference(mapping, self.client(mapping, namespace), name)

    async def events_of(self, obj: Object) -> Sequence[Object]:
        """The events about an object, the oldest first."""
        events = self._dynamic.resource((await self.mapping("events.v1.")).gvr)
        listed = await events.list(field_selector=f"involvedObject.uid={obj['metadata']['uid']}")
        return sorted(listed["items"], key=lambda event: event.get("lastTimestamp") or event.get("eventTime") or "")


def in_order(objects: Sequence[Object]) -> Sequence[Object]:
    """Namespaces and definitions first, the rest as it comes."""
    return sorted(objects, key=lambda obj: _FIRST.index(obj["kind"]) if obj.get("kind") in _FIRST else len(_FIRST))
