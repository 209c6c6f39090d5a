"""Answers to ConversionReviews: objects of a kind in another of its versions (upstream: controller-runtime/pkg/webhook/conversion)."""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from fakeapiserver.apimachinery.gvk import GroupKind, GroupVersion
from fakeapiserver.client.cache.indexer import Object
from fakeapiserver.controller_runtime.cache import copied
from fakeapiserver.controller_runtime.http_server import Receive, Scope, Send, read_body, respond

log = logging.getLogger(__name__)

# Makes of an object in one version the same object in another; apiVersion, kind and metadata are taken care of.
Convert = Callable[[Object], Object]
_MAX_BODY: Final = 512 * 1024 * 1024


class Spokes:
    """How a kind's versions (spokes) come from and to one of them, the hub."""

    def __init__(self, hub: str) -> None:
        self.hub = hub
        self._to_hub: dict[str, Convert] = {}
        self._from_hub: dict[str, Convert] = {}

    def add(self, version: str, *, to_hub: Convert, from_hub: Convert) -> None:
        """A version and its ways to and from the hub."""
        self._to_hub[version] = to_hub
        self._from_hub[version] = from_hub

    def convert(self, obj: Object, version: str) -> Object:
        """ValueError: there is no way."""
        current = GroupVersion.parse(obj["apiVersion"]).version
        found = obj
        if current != self.hub:
            found = self._known(self._to_hub, current)(found)
        return found if version == self.hub else self._known(self._from_hub, version)(found)

    @staticmethod
    def _known(ways: Mapping[str, Convert], version: str) -> Convert:
        if version not in ways:
            raise ValueError(f"{version} is neither the hub nor a spoke")
        return ways[version]


class ConversionWebhook:
    """`server.register("/convert", webhook)`."""

    def __init__(self) -> None:
        self._kinds: dict[GroupKind, Spokes] = {}

    def register(self, kind: GroupKind, spokes: Spokes) -> None:
        self._kinds[kind] = spokes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI application."""
        try:
            review = msgspec.json.decode(await read_body(receive, _MAX_BODY))
            request = review["request"]
        except (ValueError, KeyError, TypeError, msgspec.DecodeError) as error:
            await respond(send, 400, f"failed to read conversion request: {error}\n".encode())
            return
        response: Object = {"uid": request.get("uid", ""), "convertedObjects": [], "result": {"status": "Success"}}
        try:
            wanted = request["desiredAPIVersion"]
            response["convertedObjects"] = [self._converted(obj, wanted) for obj in request["objects"]]
        except Exception as error:
            log.error("failed to convert: %s", error)
            response |= {"convertedObjects": [], "result": {"status": "Failure", "message": str(error)}}
        answer = {"apiVersion": review.get("apiVersion"), "kind": "ConversionReview", "response": response}
        await respond(send, 200, msgspec.json.encode(answer) + b"\n", "application/json")

    def _converted(self, obj: Object, api_version: str) -> Object:
        group_version = GroupVersion.parse(api_version)
        kind = GroupKind(group_version.group, obj["kind"])
        if kind not in self._kinds:
            raise ValueError(f"no conversion is known for {kind}")
        if obj["apiVersion"] == api_version:
            return obj
        found: Mapping[str, Any] = self._kinds[kind].convert(copied(obj), group_version.version)
        return {**found, "apiVersion": api_version, "kind": obj["kind"], "metadata": obj["metadata"]}
