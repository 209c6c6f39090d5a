"""Constraints between the devices of a claim."""

from typing import Protocol

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.nodes.scheduler.pools import (
    Device,
)

# (kind, value) of an attribute: the kind is string, int, bool or version.
Attribute = tuple[str, object]


class Constraint(Protocol):
    """A constraint of one claim, with the devices chosen so far."""

    def admits(self, request: str, subrequest: str, device: Device) -> bool: ...

    def add(self, request: str, subrequest: str, device: Device) -> None: ...

    def remove(self, request: str, subrequest: str, device: Device) -> None: ...


class _Concerns:
    """Decides which requests a constraint concerns: all if it names none."""

    def __init__(self, row: Object, attribute: str) -> None:
        self._requests = frozenset(row.get("requests") or ())
        self._attribute = attribute

    def _is_about(self, request: str, subrequest: str) -> bool:
        names = {request, f"{request}/{subrequest}"} if subrequest else {request}
        return not self._requests or not self._requests.isdisjoint(names)


class Match(_Concerns):
    """All devices have the attribute with the same value."""

    def __init__(self, row: Object) -> None:
        super().__init__(row, row["matchAttribute"])
        self._values: list[Attribute] = []

    def admits(self, request: str, subrequest: str, device: Device) -> bool:
        if not self._is_about(request, subrequest):
            return True
        value = attribute_of(device, self._attribute)
        return value is not None and (not self._values or value == self._values[0])

    def add(self, request: str, subrequest: str, device: Device) -> None:
        value = attribute_of(device, self._attribute)
        if self._is_about(request, subrequest) and value is not None:
            self._values.append(value)

    def remove(self, request: str, subrequest: str, device: Device) -> None:
        if self._is_about(request, subrequest):
            self._values.pop()


class Distinct(_Concerns):
    """All requests have the attribute with different values. Of a request's devices upstream remembers the last."""

    def __init__(self, row: Object) -> None:
        super().__init__(row, row["distinctAttribute"])
        self._values: dict[str, Attribute] = {}

    def admits(self, request: str, subrequest: str, device: Device) -> bool:
        if not self._is_about(request, subrequest):
            return True
        value = attribute_of(device, self._attribute)
        return value is not None and value not in self._values.values()

    def add(self, request: str, subrequest: str, device: Device) -> None:
        value = attribute_of(device, self._attribute)
        if self._is_about(request, subrequest) and value is not None:
            self._values[request] = value

    def remove(self, request: str, subrequest: str, device: Device) -> None:
        if self._is_about(request, subrequest):
            self._values.pop(request, None)


def attribute_of(device: Device, name: str) -> Attribute | None:
    """By its full name; that of a driver's own attribute may be left out."""
    known = device.spec.get("attributes") or {}
    domain, _, identifier = name.partition("/")
    row = known.get(name)
    if row is None and domain == device.id.driver:
        row = known.get(identifier)
    return next(((kind, value) for kind, value in (row or {}).items() if value is not None), None)
