"""Answers to ConversionReviews: objects of a kind in another of its versions.

Upstream: sigs.k8s.io/controller-runtime/pkg/conversion, sigs.k8s.io/controller-runtime/pkg/webhook/conversion.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, TypeVar, overload

import msgspec

from fakeapiserver.apimachinery.gvk import GroupKind, GroupVersion
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.controller_runtime.cache import copied
from fakeapiserver.controller_runtime.http_server import Receive, Scope, Send, read_body, respond
from fakeapiserver.controller_runtime.scheme import from_object, gvk_for, to_object
from fakeapiserver.controller_runtime.webhook.server import WebhookServer, metrics_of

__all__ = ["PATH", "ConversionWebhook", "Convert", "Spokes", "register_conversion"]

log = logging.getLogger(__name__)

H = TypeVar("H")
S = TypeVar("S")
# Makes of an object in one version the same object in another; apiVersion and kind are taken care of.
Convert = Callable[[Object], Object]
PATH: Final = "/convert"
_CHANGEABLE: Final = ("labels", "annotations")
_MAX_BODY: Final = 512 * 1024 * 1024


class Spokes(Generic[H]):
    """Converts the versions of a kind (spokes) from and to one of them, the hub.

    A version is a typed kind, whose objects the conversions take and make, or a name such as "v1" where they are plain dicts.

    spokes = Spokes(v1.CronJob)
    spokes.add(v2.CronJob, to_hub=v2_to_v1, from_hub=v1_to_v2)
    """

    @overload
    def __init__(self: "Spokes[Object]", hub: str) -> None: ...
    @overload
    def __init__(self, hub: type[H]) -> None: ...

    def __init__(self, hub: Any) -> None:
        self._hub_type = hub
        self.hub = _version(hub)
        self._to_hub: dict[str, Convert] = {}
        self._from_hub: dict[str, Convert] = {}

    @overload
    def add(self, version: str, *, to_hub: Callable[[Object], H], from_hub: Callable[[H], Object]) -> None: ...
    @overload
    def add(self, version: type[S], *, to_hub: Callable[[S], H], from_hub: Callable[[H], S]) -> None: ...

    def add(self, version: Any, *, to_hub: Callable[[Any], H], from_hub: Callable[[H], Any]) -> None:
        """A version and its ways to and from the hub. They may raise: ValueError with a sentence for who asked. ValueError: the
        version is the hub."""
        name = _version(version)
        if name == self.hub:
            raise ValueError(f"{name} is the hub: it needs no conversion")
        self._to_hub[name] = _on_dicts(version, to_hub)
        self._from_hub[name] = _on_dicts(self._hub_type, from_hub)

    def convert(self, obj: Object, version: str) -> Object:
        """The object in another version, whose apiVersion may still be the old one's. ValueError: there is no way."""
        current = GroupVersion.parse(obj["apiVersion"]).version
        converted = obj
        if current != self.hub:
            converted = self._known(self._to_hub, current)(converted)
        return converted if version == self.hub else self._known(self._from_hub, version)(converted)

    @staticmethod
    def _known(ways: Mapping[str, Convert], version: str) -> Convert:
        if version not in ways:
            raise ValueError(f"{version} is neither the hub nor a spoke")
        return ways[version]


def _version(version: Any) -> str:
    return version if isinstance(version, str) else gvk_for(version).version


def _on_dicts(source: Any, way: Callable[[Any], Any]) -> Convert:
    """The same conversion, from dicts and to dicts."""
    if isinstance(source, str):
        return lambda obj: to_object(way(obj))
    return lambda obj: to_object(way(from_object(obj, source)))


class ConversionWebhook:
    """Any number of kinds behind one path: `server.register("/convert", webhook)`; or `register_conversion`."""

    def __init__(self) -> None:
        self._kinds: dict[GroupKind, Spokes[Any]] = {}

    def register(self, kind: GroupKind, spokes: Spokes[Any]) -> None:
        """ValueError: the kind has its conversions already."""
        if kind in self._kinds:
            raise ValueError(f"{kind} has its conversions already")
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
            message = str(error)
            if not isinstance(error, ValueError):
                if (metrics := metrics_of(scope)) is not None:
                    metrics.conversion_panics.inc()
                message = "internal error occurred during conversion"
            log.error("failed to convert: %s", error, exc_info=not isinstance(error, ValueError))
            response |= {"convertedObjects": [], "result": {"status": "Failure", "message": message}}
        answer = {"apiVersion": review.get("apiVersion"), "kind": "ConversionReview", "response": response}
        await respond(send, 200, msgspec.json.encode(answer) + b"\n", "application/json")

    def _converted(self, obj: Object, api_version: str) -> Object:
        group_version = GroupVersion.parse(api_version)
        kind = GroupKind(group_version.group, obj["kind"])
        if kind not in self._kinds:
            raise ValueError(f"no conversion is known for {kind}")
        if obj["apiVersion"] == api_version:
            return obj
        converted = self._kinds[kind].convert(copied(obj), group_version.version)
        metadata = _metadata(obj["metadata"], converted.get("metadata") or {})
        return {**converted, "apiVersion": api_version, "kind": obj["kind"], "metadata": metadata}


def _metadata(old: Object, new: Object) -> Object:
    """Labels and annotations are all that a conversion may change (k8s.io/apiextensions-apiserver/pkg/apiserver/conversion); one that
    doesn't carry the metadata over changes nothing."""
    if new.get("name") != old.get("name"):
        return old
    kept = {key: value for key, value in old.items() if key not in _CHANGEABLE}
    return {**kept, **{key: new[key] for key in _CHANGEABLE if new.get(key)}}


def register_conversion(server: WebhookServer, kind: GroupKind, spokes: Spokes[Any]) -> None:
    """Has a webhook server answer for a kind at `/convert`, which all kinds share. ValueError: the kind has its conversions already,
    or something else has that path."""
    webhook = server.handler(PATH)
    if webhook is None:
        webhook = ConversionWebhook()
        server.register(PATH, webhook)
    if not isinstance(webhook, ConversionWebhook):
        raise ValueError(f"{PATH} is not a conversion webhook's")
    webhook.register(kind, spokes)
