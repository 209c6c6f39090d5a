"""Dynamic resource allocation: claims, their templates, classes and slices of devices.

Upstream: pkg/registry/resource/*/strategy.go, pkg/apis/resource/v1/defaults.go.
"""

from dataclasses import dataclass

from fakeapiserver.apimachinery.meta import Object, is_terminating, metadata
from fakeapiserver.registry.core.table_cells import age
from fakeapiserver.registry.generic.strategy import Cells, Strategy


@dataclass(kw_only=True)
class DeviceClassStrategy(Strategy):
    def table_row(self, obj: Object, now: float) -> Cells:
        return [metadata(obj).get("name", ""), age(obj, now)]


@dataclass(kw_only=True)
class ResourceClaimStrategy(Strategy):
    def default(self, obj: Object, version: str) -> None:
        _default_requests(obj["spec"])

    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {}

    def table_row(self, obj: Object, now: float) -> Cells:
        return [metadata(obj).get("name", ""), _state(obj), age(obj, now)]


@dataclass(kw_only=True)
class ResourceClaimTemplateStrategy(DeviceClassStrategy):
    def default(self, obj: Object, version: str) -> None:
        _default_requests(obj["spec"].get("spec") or {})


@dataclass(kw_only=True)
class ResourceSliceStrategy(Strategy):
    def table_row(self, obj: Object, now: float) -> Cells:
        spec = obj.get("spec") or {}
        pool = (spec.get("pool") or {}).get("name", "")
        node = spec.get("nodeName", "")
        return [metadata(obj).get("name", ""), node, spec.get("driver", ""), pool, age(obj, now)]


def _default_requests(spec: Object) -> None:
    for request in (spec.get("devices") or {}).get("requests") or ():
        for choice in (request.get("exactly"), *(request.get("firstAvailable") or ())):
            if choice is not None and choice.setdefault("allocationMode", "ExactCount") == "ExactCount":
                choice.setdefault("count", 1)


def _state(obj: Object) -> str:
    status = obj.get("status") or {}
    states = ["deleted"] if is_terminating(obj) else []
    if status.get("allocation") is not None:
        states.append("allocated")
        if status.get("reservedFor"):
            states.append("reserved")
    elif not states:
        states.append("pending")
    return ",".join(states)
