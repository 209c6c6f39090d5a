"""Leases for objects that expire, shared so that etcd doesn't have one for each Event.

Upstream: k8s.io/apiserver/pkg/storage/etcd3/lease_manager.go.
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from fakeapiserver.storage.etcd.client import Client

# A lease is given to the objects of so many seconds, and of 5 % of their time at most.
_REUSE: Final = 60
_REUSE_SHARE: Final = 0.05
_MOST_OBJECTS: Final = 1000


class _Lease(Struct):
    """`until`: the time until which it may be given to further objects."""

    id: int
    until: float
    objects: int


class Leases:
    """The newest lease of each duration. `now` returns the time in seconds."""

    def __init__(self, client: Client, now: Callable[[], float]) -> None:
        self._client = client
        self._now = now
        self._leases: dict[int, _Lease] = {}

    async def lease(self, seconds: int) -> int:
        """A lease that lasts at least so many seconds from now. Raises EtcdError."""
        known = self._leases.get(seconds)
        if known is not None and self._now() < known.until and known.objects < _MOST_OBJECTS:
            known.objects += 1
            return known.id
        reuse = min(int(seconds * _REUSE_SHARE), _REUSE)
        until = self._now() + reuse
        granted = await self._client.grant(seconds + reuse)
        self._leases[seconds] = _Lease(granted.id, until, 1)
        return granted.id
