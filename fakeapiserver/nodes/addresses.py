"""Addresses for pods, out of their nodes' ranges."""

import ipaddress
from collections import deque
from collections.abc import Iterator


class _Range:
    def __init__(self, cidr: str) -> None:
        self._new: Iterator[ipaddress.IPv4Address | ipaddress.IPv6Address]
        self._new = iter(ipaddress.ip_network(cidr, strict=False).hosts())
        self._returned: deque[str] = deque()
        self._used: set[str] = set()

    def take(self, known: str) -> str:
        """Returns `known`, or a free address; "" if all are taken."""
        while not known:
            following = next(self._new, None)
            if following is None:
                known = self._returned.popleft() if self._returned else ""
                break
            known = str(following) if str(following) not in self._used else ""
        self._used.add(known)
        return known

    def give_back(self, address: str) -> None:
        self._used.discard(address)
        self._returned.append(address)


class Addresses:
    """An address is given again when its pod is gone, and no new ones are left."""

    def __init__(self) -> None:
        self._ranges: dict[str, _Range] = {}
        self._of_pod: dict[str, dict[str, str]] = {}

    def of(self, uid: str, cidr: str, known: str = "") -> str:
        """Returns the pod's address in a range; `known` is the one in its status.

        Raises ValueError for an invalid range.
        """
        mine = self._of_pod.setdefault(uid, {})
        if cidr not in mine:
            if cidr not in self._ranges:
                self._ranges[cidr] = _Range(cidr)
            mine[cidr] = self._ranges[cidr].take(known)
        return mine[cidr]

    def give_back(self, uid: str) -> None:
        """The pod is gone."""
        for cidr, address in self._of_pod.pop(uid, {}).items():
            self._ranges[cidr].give_back(address)
