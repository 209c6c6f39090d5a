"""Warnings about ports and paths of a pod that overlap, in time that grows with the pod and with the warnings.

Upstream: pkg/api/pod/warnings.go compares each with each.
"""

from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import islice
from operator import itemgetter
from typing import Any, Final

from fakeapiserver.apimachinery.field import Path
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.meta import Object

# An answer has no room for more warnings: all together have at most so many characters (endpoints/respond.py).
_ENOUGH: Final = 4096

# A path in a volume, and a text for its source.
Mapped = tuple[str, str]


class _Groups:
    """Numbered entries in groups that overlap."""

    def __init__(self) -> None:
        self._groups: dict[tuple[Any, ...], list[tuple[int, Any]]] = {}
        self._count = 0

    def of(self, keys: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        """Yields the entries of several groups, which have no entry in common, in the order in which they were added."""
        yield from map(itemgetter(1), merge(*(self._groups.get(key, ()) for key in keys), key=itemgetter(0)))

    def add(self, keys: Iterable[tuple[Any, ...]], entry: Any) -> None:
        for key in keys:
            self._groups.setdefault(key, []).append((self._count, entry))
        self._count += 1


def port_warnings(placed: Iterable[tuple[Object, Path]]) -> Iterator[str]:
    """Warns of the ports of all containers, each with its place."""
    overlaps = _PortOverlaps()
    named: dict[str, Path] = {}
    of_names = []
    for port, at in placed:
        if port.get("hostIP") and not port.get("hostPort"):
            yield f"{at}: hostIP set without hostPort: {_shown_port(port)}"
        yield from overlaps.of(port, at)
        name = port.get("name")
        if name in named:
            first = named[name]
            text = f"services and probes that select ports by name will use {first}"
            of_names.append(f"{at}: duplicate port name {go_quote(name)} with {first}, {text}")
        elif name:
            named[name] = at
    yield from of_names


class _PortOverlaps:
    """The ports so far."""

    def __init__(self) -> None:
        self._groups = _Groups()
        self._left = _ENOUGH

    def of(self, port: Object, at: Path) -> Iterator[str]:
        """Warns of each port before this one that it overlaps with, in their order."""
        same = (port.get("containerPort"), port.get("protocol"))
        host_port, host_ip = port.get("hostPort") or 0, port.get("hostIP") or ""
        if not host_port:
            keys: tuple[tuple[Any, ...], ...] = (same,)
        elif not host_ip:
            keys = ((*same, 0), (*same, host_port))
        else:
            keys = ((*same, 0), (*same, host_port, host_ip), (*same, host_port, ""))
        for other, other_at in islice(self._groups.of(keys), self._left):
            if text := _overlap(port, other):
                self._left -= 1
                yield f"{at}: {text} port definition with {other_at}"
        self._groups.add((same, (*same, host_port), (*same, host_port, host_ip)), (port, at))


def _shown_port(port: Object) -> str:
    """The port as Go prints the struct."""
    values = (port.get("name", ""), port.get("hostPort", 0), port.get("containerPort", 0))
    name, host_port, container_port = values
    numbers = f"HostPort:{host_port} ContainerPort:{container_port}"
    return f"{{Name:{name} {numbers} Protocol:{port.get('protocol', '')} HostIP:{port.get('hostIP', '')}}}"


def _overlap(port: Object, other: Object) -> str:
    same_host_port = port.get("hostPort") == other.get("hostPort")
    if same_host_port and port.get("hostIP") == other.get("hostIP"):
        return "duplicate"
    if not port.get("hostPort") or not other.get("hostPort"):
        return "overlapping"
    return "dangerously ambiguous" if same_host_port and bool(port.get("hostIP")) != bool(other.get("hostIP")) else ""


class PathOverlaps:
    """The paths of a volume so far."""

    def __init__(self) -> None:
        self._groups = _Groups()
        self._left = _ENOUGH

    def of(self, paths: Iterable[Mapped]) -> Iterator[str]:
        """Names each path before these that is the same, above or below, in their order; the paths are added."""
        for path, source in paths:
            mine = (path.rstrip("/"), source)
            if mine[0]:
                yield from self._overlapping(mine)

    def _overlapping(self, mine: Mapped) -> Iterator[str]:
        above = _folders(mine[0])
        keys = [("at", folder) for folder in above[:-1]] + [("below", above[-1])]
        for other in islice(self._groups.of(keys), self._left):
            self._left -= 1
            yield f"{_place(mine)} with {_place(other)}"
        self._groups.add([("at", above[-1]), *(("below", folder) for folder in above)], mine)


def _folders(path: str) -> list[int]:
    """Returns numbers for the path's folders and the path itself, which are equal for equal texts."""
    numbers, number = [], 0
    for step in path.split("/"):
        number = hash((number, step))
        numbers.append(number)
    return numbers


def _place(mapped: Mapped) -> str:
    return f"{go_quote(mapped[0])} ({mapped[1]})" if mapped[1] else go_quote(mapped[0])
