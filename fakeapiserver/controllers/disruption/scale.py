"""The numbers of pods that controllers want (upstream: pkg/controller/disruption/disruption.go, finders and getExpectedScale)."""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from msgspec import Struct

from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.gvk import GroupKind, GroupVersion, GroupVersionResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.errors import StatusError, is_not_found
from fakeapiserver.client.rest_mapper import NoMatchError
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import (
    DEPLOYMENTS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    controller_of,
    resolve_reference,
)
from fakeapiserver.component_helpers.scales import get_scale

_APPS: Final = ("apps", "extensions")


class ScaleUnknown(Exception):
    """The wanted number of pods can't be determined; the text says why."""


class Scale(NamedTuple):
    uid: str
    replicas: int


class Expected(Struct, frozen=True):
    """pods: of all controllers together. unmanaged: names of pods that have no controller."""

    pods: int
    unmanaged: list[str]


class ScaleFinder:
    """Looks into caches for the workloads that everybody uses, and asks the scale subresource of others."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._mapper = context.mapper
        self._discovery = context.discovery
        self._replication_controllers = context.informer(REPLICATION_CONTROLLERS)
        self._replica_sets = context.informer(REPLICA_SETS)
        self._deployments = context.informer(DEPLOYMENTS)
        self._stateful_sets = context.informer(STATEFUL_SETS)

    async def expected(self, pods: Iterable[Object]) -> Expected:
        """ScaleUnknown, StatusError."""
        scales: dict[str, int] = {}
        unmanaged: list[str] = []
        for pod in pods:
            reference = controller_of(pod)
            if reference is None:
                unmanaged.append(pod["metadata"]["name"])
            elif reference["uid"] not in scales:
                scale = await self._scale(reference, pod["metadata"]["namespace"])
                if scale is None:
                    raise ScaleUnknown(f"found no controllers for pod {go_quote(pod['metadata']['name'])}")
                scales[scale.uid] = scale.replicas
        return Expected(sum(scales.values()), unmanaged)

    async def _scale(self, reference: dict[str, Any], namespace: str) -> Scale | None:
        """Returns the scale of the controller that the reference names, or of the deployment that controls it."""
        group, kind = GroupVersion.parse(reference["apiVersion"]).group, reference["kind"]
        if kind == "ReplicationController" and group == "":
            controller = resolve_reference(self._replication_controllers.indexer, namespace, reference)
        elif kind == "ReplicaSet" and group in _APPS:
            controller = self._of_replica_set(namespace, reference)
        elif kind == "StatefulSet" and group == "apps":
            controller = resolve_reference(self._stateful_sets.indexer, namespace, reference)
        else:
            controller = None
        return _of(controller) if controller is not None else await self._by_subresource(reference, namespace)

    def _of_replica_set(self, namespace: str, reference: dict[str, Any]) -> Object | None:
        replica_set = resolve_reference(self._replica_sets.indexer, namespace, reference)
        if replica_set is None:
            return None
        owner = controller_of(replica_set)
        if owner is None or owner["kind"] != "Deployment":
            return replica_set
        if GroupVersion.parse(owner["apiVersion"]).group not in _APPS:
            return None
        return resolve_reference(self._deployments.indexer, namespace, owner)

    async def _by_subresource(self, reference: dict[str, Any], namespace: str) -> Scale | None:
        version, kind = GroupVersion.parse(reference["apiVersion"]), reference["kind"]
        try:
            mapping = await self._mapper.mapping(GroupKind(version.group, kind), version.version)
        except NoMatchError:
            raise ScaleUnknown(
                f"no matches for kind {go_quote(kind)} in version {go_quote(reference['apiVersion'])}"
            ) from None
        try:
            scale = await get_scale(self._client, mapping.gvr, namespace, reference["name"])
        except StatusError as error:
            if not is_not_found(error):
                raise
            if not await self._implements_scale(mapping.gvr):
                raise ScaleUnknown(f"{mapping.gvr.group_resource} does not implement the scale subresource") from None
            return None
        return _of(scale) if scale["metadata"].get("uid") == reference["uid"] else None

    async def _implements_scale(self, resource: GroupVersionResource) -> bool:
        return any(
            api_resource.gvr == resource and "scale" in api_resource.subresources
            for group in await self._discovery.groups()
            for resources in group.versions.values()
            for api_resource in resources
        )


def _of(obj: Object) -> Scale:
    return Scale(obj["metadata"]["uid"], obj["spec"].get("replicas", 0))
