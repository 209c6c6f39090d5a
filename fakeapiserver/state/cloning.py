"""Reads the objects of a live cluster, which is never written to: the client can send GET and nothing else."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

from msgspec import Struct

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client import pager
from fakeapiserver.client.config import RESTConfig
from fakeapiserver.client.discovery import APIResource, DiscoveryClient, preferred_resources
from fakeapiserver.client.dynamic import DynamicClient, ResourceClient
from fakeapiserver.client.errors import StatusError, is_not_found
from fakeapiserver.client.rest import RESTClient
from fakeapiserver.client.round_tripper import Answer, HTTPRoundTripper, RoundTripper
from fakeapiserver.state.found import Found, Gathered, Untaken
from fakeapiserver.transport.key_pair import KeyPair

_DEFINITIONS: Final = "customresourcedefinitions.apiextensions.k8s.io"
_NAMESPACES: Final = "namespaces"
# An annotation of kubectl that repeats the whole object.
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
# The same objects are in events of the group "".
_LEFT_OUT: Final = ("events.events.k8s.io",)

Show = Callable[[str, int], None]


class Wanted(Struct, frozen=True):
    """The objects to read: those in `namespaces` with their definitions and namespaces, or everything if `namespaces` is empty.

    `cluster_scoped`: also all objects outside of namespaces. `secrets`: also the values of Secrets.
    """

    namespaces: Sequence[str] = ()
    cluster_scoped: bool = False
    secrets: bool = False


class ReadOnlyRoundTripper:
    """A RoundTripper that sends GET only."""

    def __init__(self, inner: RoundTripper) -> None:
        self._inner = inner

    async def round_trip(
        self, method: str, target: str, headers: Sequence[tuple[str, str]], body: bytes, certificate: KeyPair | None
    ) -> Answer:
        """Sends the request if it is a GET. Raises PermissionError for a request that may write."""
        if method != "GET" or body:
            raise PermissionError(f"{method} {target} was not sent: a cluster that is cloned is only read")
        return await self._inner.round_trip(method, target, headers, body, certificate)

    def close(self) -> None:
        self._inner.close()


async def clone(config: RESTConfig, name: str, wanted: Wanted, show: Show = lambda resource, objects: None) -> Gathered:
    """The objects of the cluster that `config` leads to. A resource that can't be listed, as one that the user may not see, is listed with
    the server's reason. `show` is called with each resource and the number of objects so far.

    Raises StatusError, TransportError, OSError, ValueError if the cluster can't be asked at all, LookupError for namespaces that aren't
    there."""
    async with RESTClient(config, ReadOnlyRoundTripper(HTTPRoundTripper(config))) as rest:
        reading = _Reading(rest, name, wanted, show)
        await reading.read()
    return Gathered(name, reading.objects, reading.untaken)


class _Reading:
    """The state of one clone."""

    def __init__(self, rest: RESTClient, name: str, wanted: Wanted, show: Show) -> None:
        self._rest = rest
        self._client = DynamicClient(rest)
        self._name = name
        self._wanted = wanted
        self._show = show
        self.objects: list[Found] = []
        self.untaken: list[Untaken] = []

    async def read(self) -> None:
        groups = await DiscoveryClient(self._rest).groups()
        served = {str(each.gvr.group_resource): each for each in preferred_resources(groups, ("create", "get", "list"))}
        every = {
            resource.gvr: resource for group in groups for listed in group.versions.values() for resource in listed
        }
        await self._read_namespaces(served.pop(_NAMESPACES))
        definitions = await self._all_of(served.pop(_DEFINITIONS)) if _DEFINITIONS in served else []
        stored = dict(_stored_versions(definitions))
        kept = set(definitions and [definition["metadata"]["name"] for definition in definitions])
        for name, resource in served.items():
            if name in _LEFT_OUT or not (resource.namespaced or self._reads_cluster):
                continue
            # custom resources are asked for in the version in which they are stored, where it is served
            gvr = resource.gvr._replace(version=stored.get(name, resource.gvr.version))
            found = [obj async for obj in self._in_namespaces(every.get(gvr, resource))]
            self._add(name, found)
            if not found:
                kept.discard(name)
        self._add(
            _DEFINITIONS, [each for each in definitions if self._reads_cluster or each["metadata"]["name"] in kept]
        )

    @property
    def _reads_cluster(self) -> bool:
        return self._wanted.cluster_scoped or not self._wanted.namespaces

    async def _read_namespaces(self, resource: APIResource) -> None:
        client = self._client.resource(resource.gvr)
        if not self._wanted.namespaces:
            self._add(_NAMESPACES, await self._all_of(resource))
            return
        for name in self._wanted.namespaces:
            try:
                self._add(_NAMESPACES, [await client.get(name)])
            except StatusError as error:
                if is_not_found(error):
                    raise LookupError(f"there is no namespace {name} in {self._name}") from None
                self._refused(f"{_NAMESPACES}/{name}", error)

    async def _in_namespaces(self, resource: APIResource) -> AsyncIterator[Object]:
        client = self._client.resource(resource.gvr)
        names = self._wanted.namespaces if resource.namespaced else ()
        for each in [client.namespaced(name) for name in names] or [client]:
            for obj in await self._listed(each):
                yield obj

    async def _all_of(self, resource: APIResource) -> list[Object]:
        return await self._listed(self._client.resource(resource.gvr))

    async def _listed(self, client: ResourceClient) -> list[Object]:
        """All objects, a page at a time; none if the server refuses, which is noted."""
        resource = str(client.gvr.group_resource)
        self._show(resource, len(self.objects))
        try:
            objects = [*pager.items(await pager.whole(client))]
        except StatusError as error:
            self._refused(f"{resource} in {client.namespace}" if client.namespace else resource, error)
            return []
        return objects

    def _refused(self, where: str, error: StatusError) -> None:
        self.untaken.append(Untaken(where, "", str(error)))

    def _add(self, resource: str, objects: Sequence[Object]) -> None:
        for obj in objects:
            if obj["kind"] == "Secret" and not self._wanted.secrets:
                _without_values(obj)
            self.objects.append(Found(f"{resource} of {self._name}", obj))


def _stored_versions(definitions: Sequence[Object]) -> list[tuple[str, str]]:
    """The resource of each definition, and the version in which its objects are stored."""
    return [
        (definition["metadata"]["name"], version["name"])
        for definition in definitions
        for version in definition["spec"]["versions"]
        if version["storage"] and version["served"]
    ]


def _without_values(secret: Object) -> None:
    """Empties the values of a Secret, in place; the names of its keys stay."""
    if secret.get("data"):
        secret["data"] = dict.fromkeys(secret["data"], "")
    secret["metadata"].get("annotations", {}).pop(_LAST_APPLIED, None)
