"""Deployments.

Upstream: pkg/registry/apps/deployment/strategy.go, pkg/apis/apps/v1/defaults.go, pkg/apis/apps/validation/validation.go.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.go.strconv import parse_int
from fakeapiserver.apimachinery.meta import Object, annotations, metadata
from fakeapiserver.registry.apps.int_or_percent import at_most_all_errors, int_or_percent_errors, number_of
from fakeapiserver.registry.apps.template_validation import SPEC, replica_template_errors, selector_errors
from fakeapiserver.registry.core.field_formats import non_negative_errors
from fakeapiserver.registry.core.pod.options import PodOptions, WithPods
from fakeapiserver.registry.core.pod.template import default_pod_template
from fakeapiserver.registry.core.pod.warnings import pod_template_warnings, updated_template_warnings
from fakeapiserver.registry.core.workload_status_validation import collision_errors, count_errors, replica_errors
from fakeapiserver.registry.generic.label_selector import immutable_selector_errors, parsed
from fakeapiserver.registry.generic.strategy import Cells, copy_field
from fakeapiserver.registry.generic.table_cells import age, container_cells

if TYPE_CHECKING:
    from fakeapiserver.apimachinery.schema.decoders import Empties

_ROLLBACK_TO: Final = "deprecated.deployment.rollback.to"
_COUNTS = (
    *("observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas"),
    *("unavailableReplicas", "terminatingReplicas", "collisionCount"),
)
_NAME_ADVICE = (
    "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; "
    "a DNS label is recommended: [{}]"
)


class DeploymentStrategy(WithPods, kw_only=True):
    def convert_decoded(self, obj: Object, empties: "Empties") -> None:
        """Normalizes the annotation with the revision to roll back to, which was a field before apps/v1."""
        if (value := (metadata(obj).get("annotations") or {}).get(_ROLLBACK_TO)) is None:
            return
        other_annotations = {key: text for key, text in annotations(obj).items() if key != _ROLLBACK_TO}
        try:
            metadata(obj)["annotations"] = {
                **other_annotations,
                **({_ROLLBACK_TO: str(parse_int(value))} if value else {}),
            }
        except ValueError as error:
            raise ValueError(f"failed to parse annotation[{_ROLLBACK_TO}]={value} as int64: {error}") from None

    def default(self, obj: Object, version: str) -> None:
        spec = obj["spec"]
        default_pod_template(spec["template"], image_volumes=self.pod_options.image_volumes)
        spec.setdefault("replicas", 1)
        strategy = spec.setdefault("strategy", {})
        if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", "25%")
            rolling.setdefault("maxSurge", "25%")
        spec.setdefault("revisionHistoryLimit", 10)
        spec.setdefault("progressDeadlineSeconds", 600)

    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {}

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        """Labels stay as well, and the annotation that was a field of the spec."""
        super().prepare_for_status_update(obj, old)
        copy_field("labels", metadata(old), metadata(obj))
        if annotations(obj).get(_ROLLBACK_TO) != annotations(old).get(_ROLLBACK_TO):
            metadata(obj)["annotations"] = dict(annotations(obj))
            copy_field(_ROLLBACK_TO, annotations(old), metadata(obj)["annotations"])

    def raises_generation(self, obj: Object, old: Object) -> bool:
        """Annotations are copied to replica sets, so they count."""
        return super().raises_generation(obj, old) or annotations(obj) != annotations(old)

    def warnings_on_create(self, obj: Object) -> list[str]:
        return pod_name_warnings(obj) + pod_template_warnings(obj["spec"]["template"], SPEC.child("template"))

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        return updated_template_warnings(obj, old, obj["spec"]["template"], SPEC.child("template"))

    def judge(self, obj: Object, options: PodOptions) -> ErrorList:
        spec = obj["spec"]
        errors = non_negative_errors(spec["replicas"], SPEC.child("replicas"))
        errors += selector_errors(spec.get("selector"), "deployment")
        errors += replica_template_errors(spec, options)
        errors += _strategy_errors(spec["strategy"], SPEC.child("strategy"))
        for name in ("minReadySeconds", "revisionHistoryLimit"):
            errors += non_negative_errors(spec.get(name, 0), SPEC.child(name))
        errors += non_negative_errors(int(annotations(obj).get(_ROLLBACK_TO, 0)), SPEC.child("rollback", "version"))
        errors += non_negative_errors(spec["progressDeadlineSeconds"], SPEC.child("progressDeadlineSeconds"))
        deadline = spec["progressDeadlineSeconds"]
        if deadline <= spec.get("minReadySeconds", 0):
            path = SPEC.child("progressDeadlineSeconds")
            errors.append(field.invalid(path, deadline, "must be greater than minReadySeconds"))
        return errors

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        new, before = obj["spec"].get("selector"), old["spec"].get("selector")
        return self.judge(obj, self.pod_options.beside(old["spec"]["template"])) + immutable_selector_errors(
            new, before, SPEC.child("selector")
        )

    def validate_status_update(self, obj: Object, old: Object) -> ErrorList:
        status = obj.get("status") or {}
        errors = count_errors(status, _COUNTS)
        errors += replica_errors(status, ("updatedReplicas", "readyReplicas", "availableReplicas"))
        return errors + collision_errors(status, old.get("status") or {})

    def table_row(self, obj: Object, now: float) -> Cells:
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        selector = parsed(spec.get("selector"))
        return [
            metadata(obj).get("name", ""),
            f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
            status.get("updatedReplicas", 0),
            status.get("availableReplicas", 0),
            age(obj, now),
            *container_cells(spec.get("template")),
            "<invalid>" if selector is None else str(selector),
        ]


def pod_name_warnings(obj: Object) -> list[str]:
    """Warnings about names that become parts of the names of pods."""
    problems = names.is_dns1123_label(str(metadata(obj).get("name", "")))
    return [_NAME_ADVICE.format(" ".join(problems))] if problems else []


def go_strategy(strategy: Object, shown_rolling: Callable[[Object], Object]) -> Object:
    """An update strategy as messages show it: as Go's internal type, which has no names for JSON."""
    rolling: Object | None = strategy.get("rollingUpdate")
    return {"Type": strategy["type"], "RollingUpdate": None if rolling is None else shown_rolling(rolling)}


def shown_bounds(rolling: Object) -> Object:
    """A rolling update's bounds as messages show them."""
    return {"MaxUnavailable": rolling.get("maxUnavailable", 0), "MaxSurge": rolling.get("maxSurge", 0)}


def _strategy_errors(strategy: Object, path: Path) -> ErrorList:
    kind, rolling = strategy["type"], strategy.get("rollingUpdate")
    if kind == "Recreate":
        detail = "may not be specified when strategy `type` is 'Recreate'"
        return [field.forbidden(path.child("rollingUpdate"), detail)] if rolling is not None else []
    if kind != "RollingUpdate":
        return [field.not_supported(path, go_strategy(strategy, shown_bounds), ("Recreate", "RollingUpdate"))]
    return _rolling_errors(strategy["rollingUpdate"], path.child("rollingUpdate"))


def _rolling_errors(rolling: Object, path: Path) -> ErrorList:
    unavailable, surge = rolling["maxUnavailable"], rolling["maxSurge"]
    errors = int_or_percent_errors(unavailable, path.child("maxUnavailable"))
    errors += int_or_percent_errors(surge, path.child("maxSurge"))
    if number_of(unavailable) == 0 and number_of(surge) == 0:
        errors.append(field.invalid(path.child("maxUnavailable"), unavailable, "may not be 0 when `maxSurge` is 0"))
    return errors + at_most_all_errors(unavailable, path.child("maxUnavailable"))
