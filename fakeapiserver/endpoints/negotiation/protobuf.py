"""Answers as protobuf: what is stored, encoded once for all who read or watch it, and everything else as it comes.

Upstream: k8s.io/apimachinery/pkg/runtime/serializer/protobuf, k8s.io/apiserver/pkg/storage/cacher (CachingObject).
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.serializer.protobuf import envelope
from fakeapiserver.apis.protobuf import encoder, message_finder

# How many bytes of messages are kept for each kind.
_KEPT: Final = 64 * 1024 * 1024
# Objects that a list encodes before others have their turn.
_CHUNK: Final = 100

Encode = Callable[[Object], bytes]


def encode(obj: Object) -> bytes:
    """Any object of a built-in kind, in its envelope."""
    api_version, kind = obj.get("apiVersion", ""), obj["kind"]
    return envelope(api_version, kind, [message_encoder(api_version, kind)(obj)])


def message_encoder(api_version: str, kind: str) -> Encode:
    """KeyError for a kind without a message."""
    name = message_finder()(api_version, kind)
    if name is None:
        raise KeyError(f"{api_version} {kind} has no protobuf message")
    return encoder().message(name)


class StoredForm:
    """Encodes one kind's stored objects. `restored` returns stored bytes in the served version."""

    def __init__(self, gvk: GroupVersionKind, list_kind: str, restored: Callable[[bytes], bytes]) -> None:
        self._api_version, self._kind, self._list_kind = str(gvk.group_version), gvk.kind, list_kind
        self._restored = restored
        self._encode = message_encoder(self._api_version, self._kind)
        # Messages by stored bytes, which hold their revision and know their hash.
        self._messages: dict[bytes, bytes] = {}
        self._size = 0

    def object(self, value: bytes) -> bytes:
        """Returns a stored object in its envelope."""
        return envelope(self._api_version, self._kind, [self._message(value)])

    async def list(self, values: Sequence[bytes], list_meta: Object) -> bytes:
        """Stored objects as the items of a list."""
        name = message_finder()(self._api_version, self._list_kind)
        assert name is not None
        item = encoder().repeated(name, "items")
        parts = [encoder().message(name)({"metadata": list_meta})]
        for start in range(0, len(values), _CHUNK):
            if start:
                await asyncio.sleep(0)
            parts += [item(self._message(value)) for value in values[start : start + _CHUNK]]
        return envelope(self._api_version, self._list_kind, parts)

    def _message(self, value: bytes) -> bytes:
        message = self._messages.get(value)
        if message is None:
            message = self._messages[value] = self._encode(msgspec.json.decode(self._restored(value)))
            self._size += len(message)
            while self._size > _KEPT:
                self._size -= len(self._messages.pop(next(iter(self._messages))))
        return message
