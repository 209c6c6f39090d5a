"""The result of an allocation: its configuration, its nodes, its score."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from msgspec import Struct, field

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.quantity import Quantity, parse
from fakeapiserver.nodes.scheduler.device_constraints import Constraint
from fakeapiserver.nodes.scheduler.pools import (
    Device,
)

_MAX_CHOICES: Final = 8


class DeviceRequest(Struct, eq=False):
    """A request, or one that may be chosen in its place. `devices`: those that "all" means; None: `count` of any."""

    request: str
    subrequest: str
    spec: Object
    device_class: Object
    count: int = 0
    devices: Sequence[Device] | None = None

    @property
    def name(self) -> str:
        return f"{self.request}/{self.subrequest}" if self.subrequest else self.request

    @property
    def is_admin(self) -> bool:
        return not self.subrequest and bool(self.spec.get("adminAccess"))

    @property
    def capacity(self) -> Mapping[str, Any]:
        requests: Mapping[str, Any] = (self.spec.get("capacity") or {}).get("requests") or {}
        return requests


class AllocatedDevice(Struct, eq=False):
    """A device that a claim gets. `consumed`: None unless it is shared."""

    want: DeviceRequest
    device: Device
    consumed: Mapping[str, Quantity] | None


class Part(Struct, eq=False):
    """A claim: the alternatives for each of its requests; `chosen` are the taken ones."""

    claim: Object
    requests: list[list[DeviceRequest]] = field(default_factory=list)
    constraints: list[Constraint] = field(default_factory=list)
    chosen: dict[int, int] = field(default_factory=dict)
    given: list[AllocatedDevice] = field(default_factory=list)


def consumed_by(requested: Any, row: Object) -> Quantity:
    """Returns how much of a capacity a request consumes."""
    policy = row.get("requestPolicy") or {}
    if requested is None:
        return parse(str(policy.get("default") or row["value"]))
    quantity, valid = parse(str(requested)), policy.get("validRange") or {}
    if valid.get("min") is not None:
        least = parse(str(valid["min"]))
        if quantity < least:
            return least
        if valid.get("step") is None:
            return quantity
        step = parse(str(valid["step"])).value
        steps = -(-(quantity.value - least.value) // step)
        return Quantity(Fraction(least.value + steps * step), "BinarySI")
    values = [parse(str(text)) for text in policy.get("validValues") or ()]
    return next((value for value in values if quantity <= value), quantity)


def is_valid(amount: Fraction, policy: Object | None) -> bool:
    if policy is None or (policy.get("default") is not None and amount == parse(str(policy["default"])).amount):
        return True
    valid = policy.get("validRange")
    if valid is not None:
        if valid.get("max") is not None and amount > parse(str(valid["max"])).amount:
            return False
        if valid.get("step") is None:
            return True
        least, step = parse(str(valid.get("min") or "0")).value, parse(str(valid["step"])).value
        return (-(-amount.numerator // amount.denominator) - least) % step == 0
    values = policy.get("validValues") or ()
    return not values or any(amount == parse(str(text)).amount for text in values)


def config_of(part: Part, *, joins: bool) -> list[Object]:
    """Returns the configuration for drivers: of the classes, each once, then of the claim.

    joins: as from 1.37 on, a claim's configuration of several requests is there once, and one of all requests doesn't name them.
    """
    config_rows: list[Object] = []
    of_class: dict[str, list[Object]] = {}
    chosen = [wants[part.chosen.get(i, 0)] for i, wants in enumerate(part.requests)]
    for want in chosen:
        name = want.device_class["metadata"]["name"]
        if name in of_class:
            for row in of_class[name]:
                row["requests"].append(want.name)
            continue
        rows = want.device_class["spec"].get("config") or ()
        of_class[name] = [{**row, "source": "FromClass", "requests": [want.name]} for row in rows]
        config_rows += of_class[name]
    for row in (part.claim["spec"].get("devices") or {}).get("config") or ():
        named = row.get("requests") or ()
        times = sum(want.request in named or want.name in named for want in chosen) if named else 1
        config_rows += [{**row, "source": "FromClaim"}] * (min(times, 1) if joins else times)
    if joins:
        for row in config_rows:
            if all(want.request in row.get("requests", ()) or want.name in row.get("requests", ()) for want in chosen):
                row.pop("requests", None)
    return config_rows


def node_selector(given: Sequence[AllocatedDevice], node: Object) -> Object | None:
    """Returns the selector of the nodes that reach all devices, or None for all nodes."""
    fields: list[Object] = []
    expressions: list[Object] = []
    for device in (row.device for row in given):
        spec = device.slice["spec"]
        holder = device.spec if spec.get("perDeviceNodeSelection") else spec
        if holder.get("nodeName") is not None or device.spec.get("bindsToNode"):
            name = {"key": "metadata.name", "operator": "In", "values": [node["metadata"]["name"]]}
            return {"nodeSelectorTerms": [{"matchFields": [name]}]}
        for term in (holder.get("nodeSelector") or {}).get("nodeSelectorTerms") or ():
            _add(fields, term.get("matchFields") or ())
            _add(expressions, term.get("matchExpressions") or ())
    if not fields and not expressions:
        return None
    parts = {"matchExpressions": expressions, "matchFields": fields}
    return {"nodeSelectorTerms": [{name: rows for name, rows in parts.items() if rows}]}


def _add(known: list[Object], rows: Sequence[Object]) -> None:
    for row in rows:
        if not any(_requirement(row) == _requirement(other) for other in known):
            known.append(row)


def _requirement(row: Object) -> tuple[str, str, frozenset[str]]:
    return row["key"], row["operator"], frozenset(row.get("values") or ())


def score(claim: Object, allocation: Object) -> int:
    """More, the earlier of its choices a claim gets."""
    given = {row["request"] for row in allocation["devices"]["results"]}
    return sum(
        _MAX_CHOICES - i
        for request in (claim["spec"].get("devices") or {}).get("requests") or ()
        for i, choice in enumerate(request.get("firstAvailable") or ())
        if f"{request['name']}/{choice['name']}" in given
    )
