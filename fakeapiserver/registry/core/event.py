"""Events, as the legacy group shows them.

Upstream: pkg/registry/core/event/strategy.go, pkg/apis/core/validation/events.go, pkg/printers/internalversion/printers.go.
"""

from dataclasses import dataclass
from typing import Final

from fakeapiserver.apimachinery.meta import Object, metadata
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


@dataclass(kw_only=True)
class EventStrategy(Strategy):
    def fields_of(self, obj: Object) -> dict[str, str]:
        found = super().fields_of(obj)
        found["source"] = found["source"] or found["reportingComponent"]
        return found

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
