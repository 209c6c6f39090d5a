"""Events, as the legacy group shows them.

Upstream: pkg/registry/core/event/strategy.go, pkg/apis/core/validation/events.go, pkg/printers/internalversion/printers.go.
"""

from typing import Any, Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList
from fakeapiserver.apimachinery.go_space import trim_space
from fakeapiserver.apimachinery.gvk import GroupVersion
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apis.internal_form import internal_form
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


class EventStrategy(Strategy, kw_only=True):
    """Events of the legacy group, of which almost nothing is required."""

    component = "reportingComponent"
    cached: bool = False

    def in_version(self, version: GroupVersion) -> Strategy:
        return _STRICT if version.group else self

    def fields_of(self, obj: Object) -> dict[str, str]:
        fields = super().fields_of(obj)
        fields["source"] = fields["source"] or fields["reportingComponent"]
        return fields

    def validate(self, obj: Object) -> ErrorList:
        """The errors that events of both groups are checked for (legacyValidateEvent)."""
        errors = _namespace_errors(obj)
        return errors + _new_event_errors(obj, self.component) if obj.get("eventTime") else errors

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return []

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
            trim_space(obj.get("message", "")),
            first,
            count,
            metadata(obj).get("name", ""),
        ]


class StrictEventStrategy(EventStrategy, kw_only=True):
    """Events of events.k8s.io, which are complete, and of which only the series may change."""

    component = "reportingController"

    def validate_immutable(self, obj: Object, old: Object) -> ErrorList:
        """The errors that only this group checks for, in a new event (`old` is empty) or in an update."""
        return self._change_errors(obj, old) if old else self._creation_errors(obj)

    def _creation_errors(self, obj: Object) -> ErrorList:
        errors = _series_errors(obj.get("series"))
        if not obj.get("eventTime"):
            errors.append(field.required("eventTime"))
        if obj.get("type") not in ("Normal", "Warning"):
            errors.append(field.invalid("type", "", f"has invalid value: {obj.get('type', '')}"))
        unset = ("firstTimestamp", "lastTimestamp", "count", "source")
        return errors + [field.invalid(name, "", "needs to be unset") for name in unset if obj.get(name)]

    def _change_errors(self, obj: Object, old: Object) -> ErrorList:
        errors = _series_errors(obj.get("series")) if obj.get("series") != old.get("series") else []
        for name in _FIXED:
            now, then = obj.get(name), old.get(name)
            if (now != then) if name == "related" else (now or None) != (then or None):
                errors.append(field.invalid(_SHOWN_AS.get(name, name), _go_value(name, now), "field is immutable"))
        return errors


_STRICT: Final = StrictEventStrategy(
    create_checks=("spec", "create", "immutable"), update_meta_checks=("spec", "update", "immutable")
)
# In the order that upstream compares them in (reason twice).
_FIXED: Final = (
    "involvedObject",
    "reason",
    "message",
    "source",
    "firstTimestamp",
    "lastTimestamp",
    "count",
    "reason",
    "type",
    "eventTime",
    "action",
    "related",
    "reportingComponent",
    "reportingInstance",
)
_SHOWN_AS: Final = {"reportingComponent": "reportingController"}
_GO_NAMES: Final = {
    "source": ("Component", "Host"),
}
_ABSENT: Final = {"firstTimestamp": None, "lastTimestamp": None, "eventTime": None, "related": None, "count": 0}


def _go_value(name: str, value: Any) -> Any:
    """A field of Go's internal type as messages show it; its fields have no names for JSON."""
    if name == "involvedObject" or (name == "related" and value is not None):
        return internal_form(value or {}, "ObjectReference")
    if name in _GO_NAMES:
        return {key: (value or {}).get(key.lower(), "") for key in _GO_NAMES[name]}
    return _ABSENT.get(name, "") if value is None else value


def _series_errors(series: Object | None) -> ErrorList:
    if series is None:
        return []
    errors: ErrorList = []
    if series.get("count", 0) < 2:
        errors.append(field.invalid("series.count", "", "should be at least 2"))
    if not series.get("lastObservedTime"):
        errors.append(field.required("series.lastObservedTime"))
    return errors


def _namespace_errors(obj: Object) -> ErrorList:
    """The error for an event that isn't in the namespace of its object, or in default for a cluster-scoped object."""
    own, involved = metadata(obj).get("namespace", ""), (obj.get("involvedObject") or {}).get("namespace", "")
    if involved:
        fits = bool(obj.get("eventTime")) or own == involved
    else:
        fits = own in (("default", "kube-system") if obj.get("eventTime") else ("", "default"))
    return [] if fits else [field.invalid("involvedObject.namespace", involved, "does not match event.namespace")]


def _new_event_errors(obj: Object, component: str) -> ErrorList:
    controller = obj.get("reportingComponent", "")
    errors = [] if controller else [field.required(component)]
    errors += name_errors(controller, names.is_qualified_name, field.Path(component))
    for name, limit in _LIMITS.items():
        text = obj.get(name, "")
        if not text and name != "message":
            errors.append(field.required(name))
        if len(text.encode()) > limit:
            errors.append(field.invalid(name, "", f"can have at most {limit} characters"))
    return errors
