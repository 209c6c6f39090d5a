"""Events, as the legacy group shows them.

Upstream: pkg/registry/core/event/strategy.go, pkg/apis/core/validation/events.go, pkg/printers/internalversion/printers.go.
"""

from dataclasses import dataclass
from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.core.field_formats import name_errors
from fakeapiserver.registry.generic.printing import translate_timestamp_since
from fakeapiserver.registry.generic.strategy import Cells, Strategy

_REFERENCE: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
FIELDS: Final = {
    **{f"involvedObject.{name}": f"involvedObject.{name}" for name in _REFERENCE},
    "reason": "reason",
    "reportingComponent": "reportingComponent",
    "source": "source.component",
    "type": "type",
}
# Field -> its greatest length.
_LIMITS: Final = {"reportingInstance": 128, "action": 128, "reason": 128, "message": 1024}


@dataclass(kw_only=True)
class EventStrategy(Strategy):
    def fields_of(self, obj: Object) -> dict[str, str]:
        found = super().fields_of(obj)
        found["source"] = found["source"] or found["reportingComponent"]
        return found

    def validate(self, obj: Object) -> ErrorList:
        """What events of both groups must say (legacyValidateEvent)."""
        found = _namespace_errors(obj)
        return found + _new_event_errors(obj) if obj.get("eventTime") else found

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return self.validate(obj)

    def table_row(self, obj: Object, now: float) -> Cells:
        involved, source, series = obj.get("involvedObject") or {}, obj.get("source") or {}, obj.get("series")
        first = translate_timestamp_since(obj.get("firstTimestamp") or obj.get("eventTime"), now)
        last = translate_timestamp_since(obj["lastTimestamp"], now) if obj.get("lastTimestamp") else first
        count = obj.get("count") or 1
        if series is not None:
            last = translate_timestamp_since(series.get("lastObservedTime"), now)
            count = series.get("count", 0)
        kind, name = involved.get("kind", "").lower(), involved.get("name", "")
        component = source.get("component") or obj.get("reportingComponent", "")
        host = source.get("host") or obj.get("reportingInstance", "")
        return [
            last,
            obj.get("type", ""),
            obj.get("reason", ""),
            f"{kind}/{name}" if name else kind,
            involved.get("fieldPath", ""),
            f"{component}, {host}" if host else component,
            obj.get("message", "").strip(),
            first,
            count,
            metadata(obj).get("name", ""),
        ]


def _namespace_errors(obj: Object) -> ErrorList:
    """An event is where its object is; one about a cluster's object is in default."""
    own, involved = metadata(obj).get("namespace", ""), (obj.get("involvedObject") or {}).get("namespace", "")
    if involved:
        fits = bool(obj.get("eventTime")) or own == involved
    else:
        fits = own in (("default", "kube-system") if obj.get("eventTime") else ("", "default"))
    return [] if fits else [field.invalid("involvedObject.namespace", involved, "does not match event.namespace")]


def _new_event_errors(obj: Object) -> ErrorList:
    controller = obj.get("reportingComponent", "")
    errors = [] if controller else [field.required("reportingComponent")]
    errors += name_errors(controller, names.is_qualified_name, field.Path("reportingComponent"))
    for name, limit in _LIMITS.items():
        text = obj.get(name, "")
        if not text and name != "message":
            errors.append(field.required(name))
        if len(text.encode()) > limit:
            errors.append(field.invalid(name, "", f"can have at most {limit} characters"))
    return errors
