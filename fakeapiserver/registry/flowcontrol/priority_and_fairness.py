"""Flow schemas and priority levels.

Upstream: pkg/registry/flowcontrol/{flowschema,prioritylevelconfiguration}/strategy.go,
pkg/apis/flowcontrol/v1/defaults.go.
"""

from typing import Final

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import Error, ErrorList
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.flowcontrol.flowcontrol_validation import (
    ENABLEMENTS,
    RESPONSES,
    conditions_errors,
    flow_schema_errors,
    priority_level_errors,
)
from fakeapiserver.registry.generic.strategy import Cells, Strategy, copy_field
from fakeapiserver.registry.generic.table_cells import NONE, age

_TYPES: Final = {"spec.type": ENABLEMENTS, "spec.limited.limitResponse.type": RESPONSES}
_QUEUING = {"handSize": 8, "queues": 64, "queueLengthLimit": 50}


class _FlowControlStrategy(Strategy, kw_only=True):
    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {}

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        """All of metadata stays as it is stored, but for its owners."""
        super().prepare_for_status_update(obj, old)
        found = metadata(obj)
        obj["metadata"] = dict(metadata(old))
        copy_field("managedFields", found, obj["metadata"])

    def validate_status_update(self, obj: Object, old: Object) -> ErrorList:
        return conditions_errors(obj)


class FlowSchemaStrategy(_FlowControlStrategy, kw_only=True):
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
        """As requests are matched: by precedence, then by name."""
        return sorted(objects, key=lambda obj: (obj["spec"].get("matchingPrecedence", 0), metadata(obj)["name"]))


class PriorityLevelConfigurationStrategy(_FlowControlStrategy, kw_only=True):
    def default(self, obj: Object, version: str) -> None:
        spec = obj["spec"]
        for name, shares in (("exempt", 0), ("limited", 30)):
            if (level := spec.get(name)) is not None:
                if level.get("nominalConcurrencyShares") is None:
                    level["nominalConcurrencyShares"] = shares
                level.setdefault("lendablePercent", 0)
        queuing = ((spec.get("limited") or {}).get("limitResponse") or {}).get("queuing")
        if queuing is not None:
            queuing.update({name: queuing.get(name) or value for name, value in _QUEUING.items()})

    def validate(self, obj: Object) -> ErrorList:
        errors = priority_level_errors(obj)
        return errors if self.features.at_least("v1.36") else [_without_type(error) for error in errors]

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return self.validate(obj)

    def table_row(self, obj: Object, now: float) -> Cells:
        spec = obj.get("spec") or {}
        limited = spec.get("limited") or {}
        queuing = (limited.get("limitResponse") or {}).get("queuing") or {}
        return [
            metadata(obj).get("name", ""),
            spec.get("type", ""),
            limited.get("nominalConcurrencyShares", NONE),
            *(queuing.get(name, NONE) for name in ("queues", "handSize", "queueLengthLimit")),
            age(obj, now),
        ]


def _without_type(error: Error) -> Error:
    """Until 1.35 a type that isn't given is an unknown one."""
    choices = _TYPES.get(error.field) if error.reason == "FieldValueRequired" else None
    return error if choices is None else field.not_supported_text(error.field, "", choices)
