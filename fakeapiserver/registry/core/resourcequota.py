"""Resource quotas.

Upstream: pkg/registry/core/resourcequota/strategy.go.
"""

from dataclasses import dataclass
from typing import Final

from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.core.resource_list import quantity, round_up_resources
from fakeapiserver.registry.core.table_cells import age
from fakeapiserver.registry.generic.strategy import Cells, Strategy

_KNOWN: Final = ("cpu", "memory", "storage", "ephemeral-storage")


@dataclass(kw_only=True)
class ResourceQuotaStrategy(Strategy):
    def default(self, obj: Object, version: str) -> None:
        round_up_resources(obj.get("spec"), ("hard",))
        round_up_resources(obj.get("status"), ("hard", "used"))

    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {}

    def warnings_on_create(self, obj: Object) -> list[str]:
        """Requests that may be larger than limits make no sense."""
        hard: dict[str, str] = (obj.get("spec") or {}).get("hard") or {}
        found = []
        for name in _KNOWN:
            asked, limited = f"requests.{name}", f"limits.{name}"
            if asked not in hard and name in _KNOWN[:2]:
                asked = name
            if asked in hard and limited in hard and quantity(hard[asked]) > quantity(hard[limited]):
                text = f"ResourceQuota {asked} ({hard[asked]}) should be less than {limited} ({hard[limited]})"
                found.append(text)
        return found

    def table_row(self, obj: Object, now: float) -> Cells:
        status = obj.get("status") or {}
        hard, used = status.get("hard") or {}, status.get("used") or {}
        shown = {name: f"{name}: {used.get(name, '0')}/{hard[name]}" for name in sorted(hard)}
        requests = ", ".join(text for name, text in shown.items() if not name.startswith("limits."))
        limits = ", ".join(text for name, text in shown.items() if name.startswith("limits."))
        return [metadata(obj).get("name", ""), requests, limits, age(obj, now)]
