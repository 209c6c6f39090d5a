"""Flow schemas and priority levels.

Upstream: pkg/registry/flowcontrol/{flowschema,prioritylevelconfiguration}/strategy.go,
pkg/apis/flowcontrol/v1/defaults.go, pkg/apis/flowcontrol/validation/validation.go.
"""

from collections.abc import Mapping
from functools import cache
from typing import Final

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apis import bootstrap
from fakeapiserver.apis.internal_form import internal_form
from fakeapiserver.registry.core.field_formats import choice_errors
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import NONE, age

_EXEMPT: Final = "exempt"
_MANDATORY: Final = (_EXEMPT, "catch-all")
_QUEUING = {"handSize": 8, "queues": 64, "queueLengthLimit": 50}


class FlowSchemaStrategy(Strategy, kw_only=True):
    def default(self, obj: Object, version: str) -> None:
        if not obj["spec"].get("matchingPrecedence"):
            obj["spec"]["matchingPrecedence"] = 1000

    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {}

    def validate(self, obj: Object) -> ErrorList:
        errors: ErrorList = []
        if not (obj["spec"].get("priorityLevelConfiguration") or {}).get("name"):
            path = Path("spec").child("priorityLevelConfiguration", "name")
            errors.append(field.required(path, "must reference a priority level"))
        return errors + _mandatory_errors(obj, "FlowSchema")

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return self.validate(obj)

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


class PriorityLevelConfigurationStrategy(Strategy, kw_only=True):
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

    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {}

    def validate(self, obj: Object) -> ErrorList:
        return self._errors(obj) + _mandatory_errors(obj, "PriorityLevelConfiguration")

    def _errors(self, obj: Object) -> ErrorList:
        spec, path = obj["spec"], Path("spec")
        errors = choice_errors(spec.get("type", ""), ("Exempt", "Limited"), path.child("type"))
        if errors or spec["type"] != "Limited":
            return errors
        limited = spec.get("limited")
        if limited is None:
            return [field.required(path.child("limited"), "must not be empty when type is Limited")]
        kind = (limited.get("limitResponse") or {}).get("type", "")
        return choice_errors(kind, ("Queue", "Reject"), path.child("limited", "limitResponse", "type"))

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


def _mandatory_errors(obj: Object, kind: str) -> ErrorList:
    """What a server can't do without stays as it is; the share of the level `exempt` is the operator's."""
    name = str(metadata(obj).get("name", ""))
    if name not in _MANDATORY:
        return []
    spec, fixed, but = obj["spec"], _fixed_spec(kind, name), ""
    if (kind, name) == ("PriorityLevelConfiguration", _EXEMPT):
        spec, but = {**spec, "exempt": fixed["exempt"]}, " except the 'spec.exempt' field"
    if spec == fixed:
        return []
    shown = internal_form(obj["spec"], f"{kind}Spec")
    return [field.invalid("spec", shown, f"spec of '{name}'{but} must equal the fixed value")]


@cache
def _fixed_spec(kind: str, name: str) -> Mapping[str, object]:
    found = (obj for obj in bootstrap.objects() if obj["kind"] == kind and metadata(obj)["name"] == name)
    spec: Mapping[str, object] = next(found)["spec"]
    return spec
