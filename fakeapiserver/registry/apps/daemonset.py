"""Daemon sets.

Upstream: pkg/registry/apps/daemonset/strategy.go, pkg/apis/apps/v1/defaults.go, pkg/apis/apps/validation/validation.go.
"""

from typing import TYPE_CHECKING

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.go.strconv import parse_int
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apis.quantity_fields import POD_TEMPLATE, same
from fakeapiserver.registry.apps.deployment import go_strategy, shown_bounds
from fakeapiserver.registry.apps.int_or_percent import at_most_all_errors, int_or_percent_errors, number_of
from fakeapiserver.registry.apps.template_validation import SPEC, endless_pod_errors, mismatch_errors
from fakeapiserver.registry.core.field_formats import non_negative_errors
from fakeapiserver.registry.core.pod.options import PodOptions, WithPods
from fakeapiserver.registry.core.pod.template import default_pod_template
from fakeapiserver.registry.core.pod.validation import pod_template_errors
from fakeapiserver.registry.core.pod.warnings import pod_template_warnings
from fakeapiserver.registry.core.workload_status_validation import collision_errors, count_errors
from fakeapiserver.registry.generic.label_selector import (
    format_label_selector,
    immutable_selector_errors,
    is_empty,
    label_selector_errors,
    shown_selector,
)
from fakeapiserver.registry.generic.strategy import Cells
from fakeapiserver.registry.generic.table_cells import age, container_cells, format_labels

if TYPE_CHECKING:
    from fakeapiserver.apimachinery.schema.decoders import Empties

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
_COUNTS = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")
_MORE_COUNTS = (
    *("observedGeneration", "updatedNumberScheduled", "numberAvailable", "numberUnavailable"),
    "collisionCount",
)


class DaemonSetStrategy(WithPods, kw_only=True):
    def convert_decoded(self, obj: Object, empties: "Empties") -> None:
        if (value := (metadata(obj).get("annotations") or {}).get(TEMPLATE_GENERATION)) is not None:
            _set_template_generation(obj, parse_int(value))

    def default(self, obj: Object, version: str) -> None:
        spec = obj["spec"]
        default_pod_template(spec["template"], image_volumes=self.pod_options.image_volumes)
        # Upstream's conversion puts a zero there, so every writer of the object owns the annotation.
        _set_template_generation(obj, _template_generation(obj))
        strategy = spec.setdefault("updateStrategy", {})
        if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", 1)
            rolling.setdefault("maxSurge", 0)
        elif (rolling := strategy.get("rollingUpdate")) is not None:
            # Inside upstream both are plain numbers.
            rolling.setdefault("maxUnavailable", 0)
            rolling.setdefault("maxSurge", 0)
        spec.setdefault("revisionHistoryLimit", 10)

    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = dict.fromkeys(_COUNTS, 0)
        _set_template_generation(obj, max(_template_generation(obj), 1))

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        super().prepare_for_update(obj, old)
        changed = not same(obj["spec"]["template"], old["spec"]["template"], POD_TEMPLATE)
        _set_template_generation(obj, _template_generation(old) + changed)

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        super().prepare_for_status_update(obj, old)
        _set_template_generation(obj, _template_generation(old))

    def warnings_on_create(self, obj: Object) -> list[str]:
        return pod_template_warnings(obj["spec"]["template"], SPEC.child("template"))

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        return self.warnings_on_create(obj) if _template_generation(obj) != _template_generation(old) else []

    def judge(self, obj: Object, options: PodOptions) -> ErrorList:
        spec = obj["spec"]
        selector = spec.get("selector")
        errors = label_selector_errors(selector, SPEC.child("selector"))
        errors += mismatch_errors(spec, match_all=True)
        if selector is not None and is_empty(selector):
            errors.append(
                field.invalid(
                    SPEC.child("selector"), shown_selector(selector), "empty selector is invalid for daemonset"
                )
            )
        errors += pod_template_errors(spec["template"], SPEC.child("template"), options)
        errors += endless_pod_errors(spec, "DaemonSet")
        errors += non_negative_errors(spec.get("minReadySeconds", 0), SPEC.child("minReadySeconds"))
        errors += _strategy_errors(spec["updateStrategy"], SPEC.child("updateStrategy"))
        return errors + non_negative_errors(spec["revisionHistoryLimit"], SPEC.child("revisionHistoryLimit"))

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        new, before = obj["spec"].get("selector"), old["spec"].get("selector")
        return immutable_selector_errors(new, before, SPEC.child("selector")) + self.judge(
            obj, self.pod_options.beside(old["spec"]["template"])
        )

    def validate_status_update(self, obj: Object, old: Object) -> ErrorList:
        status = obj.get("status") or {}
        return count_errors(status, (*_COUNTS, *_MORE_COUNTS)) + collision_errors(status, old.get("status") or {})

    def table_row(self, obj: Object, now: float) -> Cells:
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        template = spec.get("template") or {}
        return [
            metadata(obj).get("name", ""),
            status.get("desiredNumberScheduled", 0),
            status.get("currentNumberScheduled", 0),
            status.get("numberReady", 0),
            status.get("updatedNumberScheduled", 0),
            status.get("numberAvailable", 0),
            format_labels((template.get("spec") or {}).get("nodeSelector")),
            age(obj, now),
            *container_cells(template),
            format_label_selector(spec.get("selector")),
        ]


def _template_generation(obj: Object) -> int:
    """The number of changes of the template: an annotation in apps/v1, a field before."""
    return int((metadata(obj).get("annotations") or {}).get(TEMPLATE_GENERATION, 0))


def _set_template_generation(obj: Object, value: int) -> None:
    meta = metadata(obj)
    meta["annotations"] = {**(meta.get("annotations") or {}), TEMPLATE_GENERATION: str(value)}


def _strategy_errors(strategy: Object, path: Path) -> ErrorList:
    if strategy["type"] == "OnDelete":
        return []
    if strategy["type"] != "RollingUpdate":
        return [field.not_supported(path, go_strategy(strategy, shown_bounds), ("RollingUpdate", "OnDelete"))]
    return _rolling_errors(strategy["rollingUpdate"], path.child("rollingUpdate"))


def _rolling_errors(rolling: Object, path: Path) -> ErrorList:
    errors: ErrorList = []
    for check in (int_or_percent_errors, at_most_all_errors):
        for name in ("maxUnavailable", "maxSurge"):
            errors += check(rolling[name], path.child(name))
    unavailable, surge = number_of(rolling["maxUnavailable"]) != 0, number_of(rolling["maxSurge"]) != 0
    if unavailable and surge:
        detail = "may not be set when maxUnavailable is non-zero"
        errors.append(field.invalid(path.child("maxSurge"), rolling["maxSurge"], detail))
    if not unavailable and not surge:
        errors.append(field.required(path.child("maxUnavailable"), "cannot be 0 when maxSurge is 0"))
    return errors
