"""The scales of targets, read and written in the version that the server prefers."""

from collections.abc import Mapping
from typing import Any, Final

from fakeapiserver.apimachinery.gvk import GroupKind
from fakeapiserver.client.dynamic import DynamicClient
from fakeapiserver.client.errors import StatusError, TransportError, is_conflict
from fakeapiserver.client.rest_mapper import NoMatchError, RESTMapper
from fakeapiserver.component_helpers.scales import get_scale
from fakeapiserver.controllers.horizontal_pod_autoscaler.computed import (
    InvalidVersion,
    NoScale,
    Scale,
)

_TRIES: Final = 5


class Scales:
    def __init__(self, client: DynamicClient, mapper: RESTMapper) -> None:
        self._client = client
        self._mapper = mapper

    async def read(self, namespace: str, target: Mapping[str, Any]) -> Scale:
        """Reads the target's scale in the version that the server prefers. Raises NoScale."""
        version = target.get("apiVersion") or ""
        group = version.rpartition("/")[0]
        if "/" in group:
            raise InvalidVersion(f"unexpected GroupVersion string: {version}")
        try:
            mapping = await self._mapper.mapping(GroupKind(group, target["kind"]))
            return Scale(mapping.gvr, await get_scale(self._client, mapping.gvr, namespace, target["name"]))
        except (NoMatchError, StatusError, TransportError, TimeoutError, ValueError) as error:
            raise NoScale(str(error)) from error

    async def write(self, namespace: str, scale: Scale, desired: int) -> None:
        """Writes the scale, again after a conflict. Raises StatusError, TransportError, TimeoutError."""
        scales = self._client.resource(scale.resource, namespace)
        obj = scale.obj
        for left in reversed(range(_TRIES)):
            try:
                await scales.update({**obj, "spec": {**obj["spec"], "replicas": desired}}, "scale")
                return
            except StatusError as error:
                if not left or not is_conflict(error):
                    raise
            obj = await scales.get(obj["metadata"]["name"], "scale")
