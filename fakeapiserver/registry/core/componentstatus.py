"""Component statuses as rows (upstream: pkg/printers/internalversion/printers.go, printComponentStatus)."""

from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.generic.strategy import Cells, Strategy


class ComponentStatusStrategy(Strategy):
    def table_row(self, obj: Object, now: float) -> Cells:
        condition_of = next(
            (condition for condition in obj.get("conditions") or () if condition["type"] == "Healthy"), None
        )
        name = metadata(obj).get("name", "")
        if condition_of is None:
            return [name, "Unknown", "", ""]
        healthy = "Healthy" if condition_of["status"] == "True" else "Unhealthy"
        return [name, healthy, condition_of.get("message", ""), condition_of.get("error", "")]
