"""Priority levels.

Upstream: pkg/registry/flowcontrol/prioritylevelconfiguration/strategy.go, pkg/apis/flowcontrol/v1/defaults.go.
"""

from typing import Final

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import Error, ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.flowcontrol.flow_control import FlowControlStrategy
from fakeapiserver.registry.flowcontrol.flowcontrol_validation import ENABLEMENTS, RESPONSES, priority_level_errors
from fakeapiserver.registry.generic.strategy import Cells
from fakeapiserver.registry.generic.table_cells import NONE, age

_TYPES: Final = {"spec.type": ENABLEMENTS, "spec.limited.limitResponse.type": RESPONSES}
_OF_OTHER_TYPE: Final = "must be nil if the type is another one"
_QUEUING: Final = {"handSize": 8, "queues": 64, "queueLengthLimit": 50}


def _errors_of_unknown_types(spec: Object) -> ErrorList:
    """The declared rules look at the members of all types, whatever the type is."""
    limited, path = spec.get("limited"), Path("spec.limited")
    errors: ErrorList = []
    if spec.get("type") not in ENABLEMENTS:
        members = [name for name in ("exempt", "limited") if spec.get(name) is not None]
        errors += [field.forbidden(Path("spec").child(name), _OF_OTHER_TYPE) for name in members]
    if limited is None:
        return errors
    response, at = limited.get("limitResponse") or {}, path.child("limitResponse")
    # The rules for the type Limited are among the others.
    of_limited, queuing, kind = spec.get("type") == "Limited", response.get("queuing"), response.get("type")
    if queuing is not None and (kind not in RESPONSES or (kind != "Queue" and not of_limited)):
        errors.append(field.forbidden(at.child("queuing"), _OF_OTHER_TYPE))
    if queuing is None and kind == "Queue" and not of_limited:
        errors.append(field.required(at.child("queuing")))
    if not kind and not of_limited:
        errors.append(field.required(at.child("type")))
    return errors


class PriorityLevelConfigurationStrategy(FlowControlStrategy, kw_only=True):
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
        if self.features.at_least("v1.37"):
            errors += _errors_of_unknown_types(obj["spec"])
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
    """Up to 1.35 a missing type is reported as an unsupported one."""
    choices = _TYPES.get(error.field) if error.reason == "FieldValueRequired" else None
    return error if choices is None else field.not_supported_text(error.field, "", choices)
