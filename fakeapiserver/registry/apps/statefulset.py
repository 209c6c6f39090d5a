"""Stateful sets.

Upstream: pkg/registry/apps/statefulset/strategy.go, pkg/apis/apps/v1/defaults.go, pkg/apis/apps/validation/validation.go.
"""

from typing import Any, Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apis.internal_form import template_claim_form
from fakeapiserver.apis.quantity_fields import CLAIM, IN_STATEFUL_SET, QuantityFields, same
from fakeapiserver.registry.apps.deployment import go_strategy
from fakeapiserver.registry.apps.int_or_percent import at_most_all_errors, int_or_percent_errors, number_of
from fakeapiserver.registry.apps.template_validation import SPEC, endless_pod_errors, mismatch_errors, selector_errors
from fakeapiserver.registry.core.field_formats import name_errors, non_negative_errors
from fakeapiserver.registry.core.pod.options import PodOptions, WithPods
from fakeapiserver.registry.core.pod.template import default_claim_spec, default_pod_template
from fakeapiserver.registry.core.pod.validation import pod_template_errors
from fakeapiserver.registry.core.pod.warnings import (
    claim_warnings,
    pod_template_warnings,
    updated_template_warnings,
)
from fakeapiserver.registry.core.volume.persistentvolumeclaim import claim_spec_errors
from fakeapiserver.registry.core.workload_status_validation import collision_errors, count_errors, replica_errors
from fakeapiserver.registry.generic.label_selector import (
    IMMUTABLE,
    immutable_errors,
    immutable_selector_errors,
    parsed,
    shown_selector,
)
from fakeapiserver.registry.generic.strategy import Cells
from fakeapiserver.registry.generic.table_cells import age, container_cells

_COUNTS: Final = ("replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
_ORDERS: Final = ("OrderedReady", "Parallel")
_RETENTIONS: Final = ("Retain", "Delete")
_MUTABLE: Final = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
_IMMUTABLE: Final = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
_NEGATIVE_LIMIT: Final = (
    "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
)


class StatefulSetStrategy(WithPods, kw_only=True):
    quantity_fields: QuantityFields = IN_STATEFUL_SET

    def default(self, obj: Object, version: str) -> None:
        spec = obj["spec"]
        default_pod_template(spec["template"], image_volumes=self.pod_options.image_volumes)
        spec.setdefault("podManagementPolicy", "OrderedReady")
        updating = spec.setdefault("updateStrategy", {})
        _default_update_strategy(updating)
        if (
            updating["type"] == "RollingUpdate"
            and "rollingUpdate" in updating
            and self.features.enabled("MaxUnavailableStatefulSet")
        ):
            updating["rollingUpdate"].setdefault("maxUnavailable", 1)
        retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
        for event in ("whenDeleted", "whenScaled"):
            if not retention.get(event):
                retention[event] = "Retain"
        spec.setdefault("replicas", 1)
        spec.setdefault("revisionHistoryLimit", 10)
        for claim in spec.get("volumeClaimTemplates") or ():
            claim |= {"kind": "PersistentVolumeClaim", "apiVersion": "v1"}  # whatever they say
            default_claim_spec(claim.setdefault("spec", {}))
            claim.setdefault("status", {}).setdefault("phase", "Pending")

    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {"replicas": 0, "availableReplicas": 0}

    def warnings_on_create(self, obj: Object) -> list[str]:
        warnings = pod_template_warnings(obj["spec"]["template"], SPEC.child("template"))
        return warnings + _own_warnings(obj["spec"], "")

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        warnings = updated_template_warnings(obj, old, obj["spec"]["template"], SPEC.child("template"))
        return warnings + _own_warnings(obj["spec"], "Spec")

    def validate(self, obj: Object) -> ErrorList:
        return _spec_errors(obj["spec"], self._options_beside(None), is_new=True)

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        errors = _spec_errors(obj["spec"], self._options_beside(old["spec"]["template"]))
        if self.features.at_least("v1.37"):
            return errors + _immutability_errors(obj["spec"], old["spec"])
        if not same(_immutable_part(obj["spec"]), _immutable_part(old["spec"]), {"volumeClaimTemplates": {"*": CLAIM}}):
            errors.append(field.forbidden(SPEC, _IMMUTABLE))
        return errors

    def _options_beside(self, template: Object | None) -> PodOptions | None:
        """The options for an update; None for 1.33, which doesn't validate the templates of pods and claims."""
        return self.pod_options.beside(template) if self.features.at_least("v1.34") else None

    def validate_status(self, obj: Object) -> ErrorList:
        status = obj.get("status") or {}
        errors = count_errors(status, (*_COUNTS, "observedGeneration", "collisionCount"))
        return errors + replica_errors(status, _COUNTS[1:], "status.readyReplicas")

    def validate_status_update(self, obj: Object, old: Object) -> ErrorList:
        return collision_errors(obj.get("status") or {}, old.get("status") or {})

    def table_row(self, obj: Object, now: float) -> Cells:
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
        return [metadata(obj).get("name", ""), ready, age(obj, now), *container_cells(spec.get("template"))]


def _immutability_errors(spec: Object, old: Object) -> ErrorList:
    errors = immutable_selector_errors(spec.get("selector"), old.get("selector"), SPEC.child("selector"))
    claims, before = (part.get("volumeClaimTemplates") for part in (spec, old))
    if not same(claims, before, {"*": CLAIM}):
        shown = None if claims is None else [template_claim_form(claim) for claim in claims]
        errors.append(field.invalid(SPEC.child("volumeClaimTemplates"), shown, IMMUTABLE))
    for name in ("serviceName", "podManagementPolicy"):
        errors += immutable_errors(spec.get(name, ""), old.get(name, ""), SPEC.child(name))
    return errors


def _own_warnings(spec: Object, part: str) -> list[str]:
    """Warnings about the set itself. `part` is the part of upstream's paths between a claim and its field."""
    warnings: list[str] = []
    for i, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        at = SPEC.child("volumeClaimTemplates").index(i)
        warnings += claim_warnings(claim.get("spec") or {}, at.child(part) if part else at)
    return [*warnings, _NEGATIVE_LIMIT] if spec.get("revisionHistoryLimit", 0) < 0 else warnings


def _default_update_strategy(strategy: Object) -> None:
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == "RollingUpdate" and "rollingUpdate" in strategy:
        strategy["rollingUpdate"].setdefault("partition", 0)


def _immutable_part(spec: Object) -> dict[str, Any]:
    return {key: value for key, value in spec.items() if key not in _MUTABLE}


def _spec_errors(spec: Object, options: PodOptions | None, *, is_new: bool = False) -> ErrorList:
    """The errors in a spec. Fields that can't change are checked if `is_new`, the specs of templates if there are `options` for them."""
    errors: ErrorList = []
    order = spec["podManagementPolicy"]
    if order not in _ORDERS:
        detail = "must be 'OrderedReady' or 'Parallel'"
        errors.append(field.invalid(SPEC.child("podManagementPolicy"), field.json_text(order), detail))
    errors += _strategy_errors(spec["updateStrategy"], SPEC.child("updateStrategy"))
    for event in ("whenDeleted", "whenScaled"):
        value = spec["persistentVolumeClaimRetentionPolicy"][event]
        if value not in _RETENTIONS:
            path = SPEC.child("persistentVolumeClaimRetentionPolicy", event)
            errors.append(field.not_supported(path, value, _RETENTIONS))
    for i, claim in enumerate(spec.get("volumeClaimTemplates") or () if is_new and options is not None else ()):
        errors += claim_spec_errors(claim["spec"], SPEC.child("volumeClaimTemplates").index(i).child("spec"))
    errors += non_negative_errors(spec["replicas"], SPEC.child("replicas"))
    errors += non_negative_errors(spec.get("minReadySeconds", 0), SPEC.child("minReadySeconds"))
    errors += non_negative_errors((spec.get("ordinals") or {}).get("start", 0), SPEC.child("ordinals.start"))
    if is_new and (name := spec.get("serviceName")):
        errors += name_errors(name, names.is_dns1123_label, SPEC.child("serviceName"))
    errors += selector_errors(spec.get("selector"), "statefulset")
    return errors + _template_errors(spec, options)


def _template_errors(spec: Object, options: PodOptions | None) -> ErrorList:
    if parsed(spec.get("selector")) is None:
        return [
            field.invalid(SPEC.child("selector"), shown_selector(spec["selector"]), ""),
            *endless_pod_errors(spec, "StatefulSet"),
        ]
    errors = mismatch_errors(spec)
    template = _with_claims(spec)
    path = SPEC.child("template")
    if options is not None:
        errors += pod_template_errors(template, path, options)
    errors += names.validate_labels(metadata(template).get("labels") or {}, path.child("labels"))
    errors += names.validate_annotations(metadata(template).get("annotations") or {}, path.child("annotations"))
    return errors + endless_pod_errors(spec, "StatefulSet")


def _with_claims(spec: Object) -> Object:
    """The template as its pods will be: volumes of the claim templates, and names given by the set."""
    template: Object = spec["template"]
    pod = {key: value for key, value in template["spec"].items() if key not in ("subdomain", "hostname")}
    claims = {metadata(claim).get("name", ""): claim for claim in spec.get("volumeClaimTemplates") or ()}
    if claims:
        own = [volume for volume in pod.get("volumes") or () if volume.get("name") not in claims]
        claim_volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
        pod["volumes"] = claim_volumes + own
    return {**template, "spec": pod}


def _shown_rolling(rolling: Object) -> Object:
    return {"Partition": rolling.get("partition", 0), "MaxUnavailable": rolling.get("maxUnavailable")}


def _strategy_errors(strategy: Object, path: Path) -> ErrorList:
    kind, rolling = strategy["type"], strategy.get("rollingUpdate")
    if kind not in ("RollingUpdate", "OnDelete"):
        return [field.invalid(path, go_strategy(strategy, _shown_rolling), "must be 'RollingUpdate' or 'OnDelete'")]
    if rolling is None:
        return []
    path = path.child("rollingUpdate")
    if kind == "OnDelete":
        return [field.invalid(path, _shown_rolling(rolling), "only allowed for updateStrategy 'RollingUpdate'")]
    errors = non_negative_errors(rolling.get("partition", 0), path.child("partition"))
    if (unavailable := rolling.get("maxUnavailable")) is not None:
        path = path.child("maxUnavailable")
        errors += int_or_percent_errors(unavailable, path)
        if number_of(unavailable) == 0:
            errors.append(field.invalid(path, unavailable, "cannot be 0"))
        errors += at_most_all_errors(unavailable, path)
    return errors
