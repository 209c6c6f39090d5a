"""Pods: they start as Pending, most of their spec can't change, and deleting them takes a grace period.

Upstream: pkg/registry/core/pod/strategy.go, pkg/apis/core/v1/{defaults.go,conversion.go}.
"""

from collections.abc import Mapping
from typing import Any, Final

from fakeapiserver.apimachinery import names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import FieldPath, Object, annotations, metadata
from fakeapiserver.apis.quantity_fields import IN_POD, QuantityFields
from fakeapiserver.registry.core.pod import qos as pod_qos
from fakeapiserver.registry.core.pod.apparmor_annotations import add_apparmor_annotations
from fakeapiserver.registry.core.pod.faultless import Faultless
from fakeapiserver.registry.core.pod.mirror_pod import mirror_update_errors
from fakeapiserver.registry.core.pod.options import PodOptions, WithPods
from fakeapiserver.registry.core.pod.printer import pod_conditions, pod_row
from fakeapiserver.registry.core.pod.status_validation import status_update_errors
from fakeapiserver.registry.core.pod.template import (
    default_http_protocols,
    default_pod_spec,
    drop_init_container_annotations,
)
from fakeapiserver.registry.core.pod.validation import (
    annotation_change_errors,
    pod_errors,
    pod_subresource_errors,
    pod_update_errors,
)
from fakeapiserver.registry.core.pod.warnings import deprecated_profiles, pod_warnings
from fakeapiserver.registry.core.resource_list import round_up_resources
from fakeapiserver.registry.generic.strategy import Cells, copy_field, keep_metadata
from fakeapiserver.registry.generic.strategy_facts import MetaCheck

FIELDS: Final = {
    "spec.nodeName": "spec.nodeName",
    "spec.restartPolicy": "spec.restartPolicy",
    "spec.schedulerName": "spec.schedulerName",
    "spec.serviceAccountName": "spec.serviceAccountName",
    "status.phase": "status.phase",
    "status.podIP": "status.podIP",
    "status.nominatedNodeName": "status.nominatedNodeName",
}
_ENDED: Final = ("Failed", "Succeeded")
# Subresources whose writes send whole pods.
_WHOLE: Final = ("ephemeralcontainers", "resize")
_STATUS_RESOURCES: Final = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
_warned: Final = Faultless(lambda pod, _: pod_warnings(pod))


class PodStrategy(WithPods, kw_only=True):
    pod_spec_path: FieldPath = ("spec",)
    quantity_fields: QuantityFields = IN_POD
    spec_is_decoded_alone: bool = True

    def default(self, obj: Object, version: str) -> None:
        spec = obj.setdefault("spec", {})
        drop_init_container_annotations(obj)
        for name in ("containers", "initContainers"):
            for container in spec.get(name) or ():
                _default_requests(container)
        if self.pod_options.pod_level_resources and not self._completes_resources:
            pod_qos.default_pod_resources(spec)
        spec.setdefault("enableServiceLinks", True)
        if spec.get("hostNetwork"):
            _default_host_ports(spec)
        default_pod_spec(spec, image_volumes=self.pod_options.image_volumes)
        if self.pod_options.http_protocols:
            default_http_protocols(spec)
        if spec["terminationGracePeriodSeconds"] < 0:
            spec["terminationGracePeriodSeconds"] = 1
        _default_status(obj.get("status") or {})

    @property
    def _completes_resources(self) -> bool:
        """Reports whether pod-level resources are completed when a pod is created, as from 1.37 on, and not with other defaults."""
        return self.pod_options.pod_level_resources and self.features.enabled("PodLevelResourcesFixDefaulting")

    def prepare_for_create(self, obj: Object) -> None:
        if self._completes_resources:
            pod_qos.complete_pod_resources(obj["spec"])
        # Until 1.36 upstream keeps a class that the client has sent, as if it had been computed before.
        sent = None if self.features.at_least("v1.37") else (obj.get("status") or {}).get("qosClass")
        quality = sent or pod_qos.qos_class(obj["spec"], self.pod_options)
        obj["status"] = {"phase": "Pending", "qosClass": quality}
        if obj["spec"].get("schedulingGates"):
            obj["status"]["conditions"] = [_gated(metadata(obj).get("creationTimestamp"))]
        _merge_label_keys(obj, self.pod_options)
        if not self.features.at_least("v1.34"):
            add_apparmor_annotations(obj)
        for _, container, profile in deprecated_profiles(obj):
            if profile is not None:
                container["securityContext"] = {**(container.get("securityContext") or {}), "appArmorProfile": profile}

    def warnings_before_create(self, obj: Object) -> list[str]:
        path = Path("metadata.annotations")
        text = 'deprecated since v1.30; use the "appArmorProfile" field instead'
        return [f"{path.key(key)}: {text}" for key, _, _ in deprecated_profiles(obj)]

    def reset_paths(self, subresource: str) -> tuple[str, ...]:
        """A write to these two subresources that lacks the status gives up its ownership, although the status stays."""
        return () if subresource in _WHOLE else super().reset_paths(subresource)

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        super().prepare_for_status_update(obj, old)
        copy_field("deletionTimestamp", metadata(old), metadata(obj))
        copy_field("ownerReferences", metadata(old), metadata(obj))
        status, old_status = obj.setdefault("status", {}), old.get("status") or {}
        if "qosClass" in old_status:
            status.setdefault("qosClass", old_status["qosClass"])
        _keep_observed_generation(status, old_status)

    def prepare_for_subresource_update(self, subresource: str, obj: Object, old: Object) -> None:
        """Each of the two subresources keeps everything but its own fields."""
        if subresource == "ephemeralcontainers":
            added = obj["spec"].get("ephemeralContainers")
            obj["spec"] = dict(old["spec"])
            _set_or_drop(obj["spec"], "ephemeralContainers", added)
        elif subresource == "resize":
            if _containers_differ(obj["spec"], old["spec"]):
                return  # for validation to refuse
            obj["spec"] = _resized(obj["spec"], old["spec"], self.pod_options)
            resources = obj["spec"].get("resources") or old["spec"].get("resources")
            if self._completes_resources and resources:
                obj["spec"]["resources"] = dict(resources)
                pod_qos.complete_pod_resources(obj["spec"])
        else:
            return
        _set_or_drop(obj, "status", old.get("status"))
        keep_metadata(obj, old)

    def warnings_on_create(self, obj: Object) -> list[str]:
        warnings = _warned.faults(obj, self.pod_options)
        problems = names.is_dns1123_label(str(metadata(obj).get("name", "")))
        if not problems:
            return warnings
        text = "this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended"
        return [f"metadata.name: {text}: [{' '.join(problems)}]", *warnings]

    def validate(self, obj: Object) -> ErrorList:
        return pod_errors(obj, self.pod_options)

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return pod_update_errors(obj, old, self.pod_options)

    def meta_checks(self, subresource: str) -> tuple[MetaCheck, ...]:
        return self.status_meta_checks if subresource == "status" else self.update_meta_checks

    def validate_subresource_update(self, subresource: str, obj: Object, old: Object) -> ErrorList:
        return pod_subresource_errors(obj, old, subresource, self.pod_options)

    def validate_status_update(self, obj: Object, old: Object) -> ErrorList:
        status, before = obj.get("status") or {}, old.get("status") or {}
        options = self.pod_options.beside(old)
        errors = mirror_update_errors(obj, old)
        if annotations(obj) != annotations(old):
            errors += annotation_change_errors(obj, old, options)
        return errors + status_update_errors(status, before, obj["spec"], options)

    def grace_period(self, obj: Object, wanted: int | None) -> int:
        """Seconds; 0 for a pod that has no node or has ended, since there is nothing to wait for."""
        spec = obj.get("spec") or {}
        if not spec.get("nodeName") or (obj.get("status") or {}).get("phase") in _ENDED:
            return 0
        period = int(spec.get("terminationGracePeriodSeconds", 0)) if wanted is None else wanted
        return 1 if period < 0 else period

    def fields_of(self, obj: Object) -> dict[str, str]:
        fields = super().fields_of(obj)
        fields["spec.hostNetwork"] = "true" if (obj.get("spec") or {}).get("hostNetwork") else "false"
        return fields

    def field_labels(self, namespaced: bool) -> Mapping[str, str]:
        """spec.host is the name that clients before v1 use; a selector may name status.podIPs, but no pod matches it."""
        more = {"spec.host": "spec.nodeName", "spec.hostNetwork": "spec.hostNetwork", "status.podIPs": "status.podIPs"}
        return {**super().field_labels(namespaced), **more}

    def table_row(self, obj: Object, now: float) -> Cells:
        return pod_row(obj, now, tells_errors=self.features.at_least("v1.35"))

    def table_conditions(self, obj: Object) -> list[Object]:
        return pod_conditions(obj)


def _set_or_drop(target: Object, name: str, value: object) -> None:
    """Sets a field, or removes it if the value is None."""
    if value is None:
        target.pop(name, None)
    else:
        target[name] = value


def _containers_differ(spec: Object, before: Object) -> bool:
    return any(len(spec.get(name) or ()) != len(before.get(name) or ()) for name in ("containers", "initContainers"))


def _resized(spec: Object, before: Object, options: PodOptions) -> Object:
    """The old spec with the new resources. A list of containers whose names differ stays as it was sent; validation refuses it."""
    resized = dict(before)
    for name in ("containers", "initContainers"):
        now, then = spec.get(name) or [], before.get(name) or []
        same = all(a.get("name") == b.get("name") for a, b in zip(then, now, strict=True))
        if then:
            resized[name] = [_with_resources(*pair) for pair in zip(then, now, strict=True)] if same else now
    if options.pod_level_resize:
        _set_or_drop(resized, "resources", spec.get("resources"))
    if options.volume_resize:
        _set_or_drop(resized, "volumes", spec.get("volumes"))
    return resized


def _with_resources(container: Object, new: Object) -> Object:
    merged = dict(container)
    for name in ("resources", "resizePolicy"):
        _set_or_drop(merged, name, new.get(name))
    return merged


def _default_requests(container: Object) -> None:
    """Requests default to the limits, in pods but not in templates."""
    resources = container.get("resources") or {}
    if limits := resources.get("limits"):
        resources["requests"] = {**limits, **(resources.get("requests") or {})}


def _default_host_ports(spec: Object) -> None:
    for name in ("containers", "initContainers"):
        for container in spec.get(name) or ():
            for port in container.get("ports") or ():
                if port.get("containerPort"):
                    port.setdefault("hostPort", port["containerPort"])


def _default_status(status: Object) -> None:
    """podIP equals the first of podIPs; if both are set, podIP wins."""
    ip, addresses = status.get("podIP"), status.get("podIPs")
    if ip and (not addresses or addresses[0].get("ip") != ip):
        status["podIPs"] = [{"ip": ip}]
    elif addresses and not ip:
        status["podIP"] = addresses[0].get("ip", "")
    for name in _STATUS_RESOURCES:
        for container in status.get(name) or ():
            round_up_resources(container.get("resources"))
            round_up_resources(container, ("allocatedResources",))


def _gated(now: str | None) -> Object:
    return {
        "type": "PodScheduled",
        "status": "False",
        "lastProbeTime": None,
        "lastTransitionTime": now,
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
    }


def _keep_observed_generation(status: Object, old: Object) -> None:
    """A client that doesn't know observedGeneration doesn't clear it."""
    if "observedGeneration" in old:
        status.setdefault("observedGeneration", old["observedGeneration"])
    known: dict[str, list[int]] = {}
    for condition in old.get("conditions") or ():
        known.setdefault(condition.get("type", ""), []).append(condition.get("observedGeneration", 0))
    for condition in status.get("conditions") or ():
        generations = known.get(condition.get("type", ""))
        generation = generations.pop(0) if generations else 0
        if generation:
            condition.setdefault("observedGeneration", generation)


def _merge_label_keys(obj: Object, options: PodOptions) -> None:
    """Adds an expression to the selector for each of matchLabelKeys and mismatchLabelKeys, with the value of the pod's own label."""
    labels = metadata(obj).get("labels") or {}
    affinity: Object = obj["spec"].get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        terms: Object = affinity.get(kind) or {}
        for weighted in terms.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            _merge_keys(weighted.get("podAffinityTerm") or {}, labels)
        for term in terms.get("requiredDuringSchedulingIgnoredDuringExecution") or ():
            _merge_keys(term, labels)
    if not (options.spread_label_keys and options.merged_label_keys):
        return
    for constraint in obj["spec"].get("topologySpreadConstraints") or ():
        _merge_keys(constraint, labels)


def _merge_keys(term: Object, labels: dict[str, str]) -> None:
    selector: dict[str, Any] | None = term.get("labelSelector")
    if selector is None:
        return
    for name, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
        for key in term.get(name) or ():
            if key in labels:
                expression = {"key": key, "operator": operator, "values": [labels[key]]}
                selector["matchExpressions"] = [*selector.get("matchExpressions", ()), expression]
