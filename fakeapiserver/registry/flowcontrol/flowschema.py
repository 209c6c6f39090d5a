"""Flow schemas.

Upstream: pkg/registry/flowcontrol/flowschema/strategy.go, pkg/apis/flowcontrol/v1/defaults.go.
"""

from fakeapiserver.apimachinery.field import ErrorList
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.flowcontrol.flow_control import FlowControlStrategy
from fakeapiserver.registry.flowcontrol.flowcontrol_validation import flow_schema_errors
from fakeapiserver.registry.generic.strategy import Cells
from fakeapiserver.registry.generic.table_cells import NONE, age


class FlowSchemaStrategy(FlowControlStrategy, kw_only=True):
    def default(self, obj: Object, version: str) -> None:
        if not obj["spec"].get("matchingPrecedence"):
            obj["spec"]["matchingPrecedence"] = 1000

    def validate(self, obj: Object) -> ErrorList:
        return flow_schema_errors(obj)

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return flow_schema_errors(obj)

    def table_row(self, obj: Object, now: float) -> Cells:
        spec = obj.get("spec") or {}
        conditions = (obj.get("status") or {}).get("conditions") or ()
        method = spec.get("distinguisherMethod")
        return [
            metadata(obj).get("name", ""),
            (spec.get("priorityLevelConfiguration") or {}).get("name", ""),
            spec.get("matchingPrecedence", 0),
            NONE if method is None else method.get("type", ""),
            age(obj, now),
            next((c.get("status", "") for c in conditions if c.get("type") == "Dangling"), "?"),
        ]

    def table_order(self, objects: list[Object]) -> list[Object]:
        """The order in which requests are matched: by precedence, then by name."""
        return sorted(objects, key=lambda obj: (obj["spec"].get("matchingPrecedence", 0), metadata(obj)["name"]))
