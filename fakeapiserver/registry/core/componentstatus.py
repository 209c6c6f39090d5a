"""Component statuses as rows (upstream: pkg/printers/internalversion/printers.go, printComponentStatus)."""

from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.generic.strategy import Cells, Strategy


class ComponentStatusStrategy(Strategy):
    def table_row(self, obj: Object, now: float) -> Cells:
        found = next((condition for condition in obj.get("conditions") or () if condition["type"] == "Healthy"), None)
        name = metadata(obj).get("name", "")
        if found is None:
            return [name, "Unknown", "", ""]
        healthy = "Healthy" if found["status"] == "True" else "Unhealthy"
        return [name, healthy, found.get("message", ""), found.get("error", "")]
