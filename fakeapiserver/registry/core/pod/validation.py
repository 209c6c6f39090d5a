"""The rules for pods and for templates of pods, and for changes of a pod.

Upstream: pkg/apis/core/validation/validation.go (ValidatePodSpec, ValidatePodUpdate).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fakeapiserver.admission.tolerations import toleration_errors
from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apis.quantity_fields import CONTAINER, POD_SPEC, same
from fakeapiserver.apis.spec_difference import difference
from fakeapiserver.registry.core.eviction_responders import eviction_responder_errors
from fakeapiserver.registry.core.field_formats import choice_errors, duplicate_errors, name_errors
from fakeapiserver.registry.core.pod.affinity_validation import (
    affinity_errors,
    narrowed_errors,
    spread_errors,
    with_node_affinity_of,
)
from fakeapiserver.registry.core.pod.claim_validation import resource_claim_errors
from fakeapiserver.registry.core.pod.container_validation import container_list_errors, image_space_errors
from fakeapiserver.registry.core.pod.env_validation import file_key_volume_errors
from fakeapiserver.registry.core.pod.faultless import Faultless
from fakeapiserver.registry.core.pod.mirror_pod import (
    is_mirror,
    mirror_errors,
    mirror_update_errors,
    subresource_errors,
)
from fakeapiserver.registry.core.pod.network_validation import (
    dns_config_errors,
    host_alias_errors,
    hostname_override_errors,
)
from fakeapiserver.registry.core.pod.options import DEFAULT_OPTIONS, PodOptions
from fakeapiserver.registry.core.pod.resource_requirements_validation import resource_errors
from fakeapiserver.registry.core.pod.resources_validation import pod_resource_errors, resize_errors
from fakeapiserver.registry.core.pod.security_validation import (
    annotation_errors,
    annotation_update_errors,
    annotations_and_fields_errors,
    host_errors,
    pod_security_context_errors,
    system_errors,
)
from fakeapiserver.registry.core.volume.validation import volume_errors

SPEC: Final = Path("spec")
_ANNOTATIONS: Final = Path("metadata.annotations")
_RESTART: Final = ("Always", "OnFailure", "Never")
_DNS: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_MAX_INT32: Final = 2**31 - 1
_PREEMPTION: Final = ("PreemptLowerPriority", "Never")
_UPDATABLE: Final = ",".join(
    (
        "`spec.containers[*].image`",
        "`spec.initContainers[*].image`",
        "`spec.activeDeadlineSeconds`",
        "`spec.tolerations` (only additions to existing tolerations)",
        "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
    )
)


def pod_errors(obj: Object, options: PodOptions = DEFAULT_OPTIONS) -> ErrorList:
    """The errors in a new pod."""
    return _new.faults(obj, options)


def _new_errors(obj: Object, options: PodOptions) -> ErrorList:
    spec = obj["spec"]
    errors = _whole_errors(obj, options)
    if spec.get("ephemeralContainers"):
        errors.append(field.forbidden(SPEC.child("ephemeralContainers"), "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        detail = "cannot be set until all schedulingGates have been cleared"
        errors.append(field.forbidden(SPEC.child("nodeName"), detail))
    return errors + annotations_and_fields_errors(metadata(obj).get("annotations") or {}, spec, SPEC)


def _whole_errors(obj: Object, options: PodOptions) -> ErrorList:
    """The rules for a pod that apply on create and on update (validatePodMetadataAndSpec)."""
    spec = obj["spec"]
    errors = mirror_errors(obj)
    errors += annotation_errors(metadata(obj).get("annotations") or {}, spec, _ANNOTATIONS, options)
    errors += pod_spec_errors(spec, SPEC, metadata(obj), options)
    return errors + _token_errors(spec) + _image_space_errors(spec)


_new: Final = Faultless(_new_errors)
_whole: Final = Faultless(_whole_errors)


def pod_template_errors(template: Object, path: Path, options: PodOptions = DEFAULT_OPTIONS) -> ErrorList:
    """The errors in a PodTemplateSpec at `path` (ValidatePodTemplateSpec)."""
    errors = names.validate_labels(metadata(template).get("labels") or {}, path.child("labels"))
    annotations = metadata(template).get("annotations") or {}
    errors += names.validate_annotations(annotations, path.child("annotations"))
    spec = template.get("spec") or {}
    errors += annotation_errors(annotations, spec, path.child("annotations"), options)
    errors += pod_spec_errors(spec, path.child("spec"), options=options)
    errors += annotations_and_fields_errors(annotations, spec, path.child("spec"))
    if spec.get("ephemeralContainers"):
        detail = "ephemeral containers not allowed in pod template"
        errors.append(field.forbidden(path.child("spec", "ephemeralContainers"), detail))
    return errors


def pod_spec_errors(
    spec: Object, path: Path, meta: Object | None = None, options: PodOptions = DEFAULT_OPTIONS
) -> ErrorList:
    """The errors in the PodSpec of a pod or template; `meta` is the metadata beside it."""
    volumes, errors = volume_errors(spec.get("volumes") or [], path.child("volumes"), meta)
    if claims := spec.get("resourceClaims"):
        errors += resource_claim_errors(claims, path.child("resourceClaims"), is_static=is_mirror({"metadata": meta}))
    errors += container_list_errors(spec, volumes, path, options)
    if options.pod_level_resources:
        errors += pod_resource_errors(spec, path)
    errors += _host_network_errors(spec, path)
    errors += choice_errors(spec.get("restartPolicy", ""), _RESTART, path.child("restartPolicy"))
    errors += choice_errors(spec.get("dnsPolicy", ""), _DNS, path.child("dnsPolicy"))
    if selector := spec.get("nodeSelector"):
        errors += names.validate_labels(selector, path.child("nodeSelector"))
    errors += pod_security_context_errors(spec, path, options)
    if affinity := spec.get("affinity"):
        errors += affinity_errors(affinity, path.child("affinity"))
    errors += dns_config_errors(spec, path.child("dnsConfig"))
    for i, gate in enumerate(spec.get("readinessGates") or ()):
        at = path.child("readinessGates").index(i).child("conditionType")
        errors += name_errors(gate.get("conditionType", ""), names.is_qualified_name, at)
    if gates := spec.get("schedulingGates"):
        errors += _gate_name_errors(gates, path.child("schedulingGates"))
    if constraints := spec.get("topologySpreadConstraints"):
        errors += spread_errors(constraints, path.child("topologySpreadConstraints"), options)
    errors += host_errors(spec, path, options) + hostname_override_errors(spec, path.child("hostnameOverride"))
    for name in ("serviceAccountName", "nodeName"):
        if spec.get(name):
            errors += name_errors(spec[name], names.is_dns1123_subdomain, path.child(name))
    seconds = spec.get("activeDeadlineSeconds")
    if seconds is not None and not 1 <= seconds <= _MAX_INT32:
        detail = f"must be between 1 and {_MAX_INT32}, inclusive"
        errors.append(field.invalid(path.child("activeDeadlineSeconds"), seconds, detail))
    for name in ("hostname", "subdomain"):
        if spec.get(name):
            errors += name_errors(spec[name], names.is_dns1123_label, path.child(name))
    if tolerations := spec.get("tolerations"):
        errors += toleration_errors(tolerations, path.child("tolerations"), comparing=options.comparing_tolerations)
    return errors + _rarely_set_errors(spec, path)


def _rarely_set_errors(spec: Object, path: Path) -> ErrorList:
    """The rules that come last upstream, for fields that few pods set."""
    errors = host_alias_errors(spec.get("hostAliases") or (), path.child("hostAliases"))
    if spec.get("priorityClassName"):
        errors += name_errors(spec["priorityClassName"], names.is_dns1123_subdomain, path.child("priorityClassName"))
    if "runtimeClassName" in spec:
        errors += name_errors(spec["runtimeClassName"], names.is_dns1123_subdomain, path.child("runtimeClassName"))
    if "preemptionPolicy" in spec:
        errors += choice_errors(spec["preemptionPolicy"], _PREEMPTION, path.child("preemptionPolicy"))
    if overhead := spec.get("overhead"):
        errors += resource_errors({"limits": overhead}, path.child("overhead"))
    errors += system_errors(spec, path)
    if (group := spec.get("schedulingGroup")) is not None:
        errors += _scheduling_group_errors(group, path.child("schedulingGroup").child("podGroupName"))
        if spec.get("evictionResponders"):
            errors.append(
                field.forbidden(path.child("schedulingGroup"), "may not be set when evictionResponders is set")
            )
    return errors + eviction_responder_errors(spec, path) + file_key_volume_errors(spec, path)


def _scheduling_group_errors(group: Object, path: Path) -> ErrorList:
    name = group.get("podGroupName")
    if name is None:
        return [field.invalid(path, None, "must specify one of: `podGroupName`")]
    return [field.invalid(path, name, problem) for problem in names.name_is_dns_subdomain(name, False)]


def _gate_name_errors(gates: Sequence[Object], path: Path) -> ErrorList:
    errors: ErrorList = []
    seen: set[str] = set()
    for i, gate in enumerate(gates):
        name = gate.get("name", "")
        errors += name_errors(name, names.is_qualified_name, path.index(i)) + duplicate_errors(
            name, seen, path.index(i)
        )
    return errors


def _host_network_errors(spec: Object, path: Path) -> ErrorList:
    """On the host's network, hostPort must equal containerPort. (Defaulting sets it in pods, but not in templates.)"""
    detail = "must match `containerPort` when `hostNetwork` is true"
    return [
        field.invalid(path.child("containers").index(i).child("ports").index(j).child("hostPort"), given, detail)
        for i, container in enumerate(spec.get("containers") or () if spec.get("hostNetwork") else ())
        for j, port in enumerate(container.get("ports") or ())
        if (given := port.get("hostPort")) and given != port.get("containerPort", 0)
    ]


def _token_errors(spec: Object) -> ErrorList:
    """A pod with a projected token must name its service account; a template needn't, since admission sets it in its pods."""
    if spec.get("serviceAccountName"):
        return []
    return [
        field.forbidden(
            SPEC.child("volumes").index(i).child("projected", "sources").index(j).child("serviceAccountToken"),
            "must not be specified when serviceAccountName is not set",
        )
        for i, volume in enumerate(spec.get("volumes") or ())
        for j, source in enumerate((volume.get("projected") or {}).get("sources") or ())
        if source.get("serviceAccountToken") is not None
    ]


def _image_space_errors(spec: Object) -> ErrorList:
    return [
        error
        for name in ("containers", "initContainers")
        for i, container in enumerate(spec.get(name) or ())
        for error in image_space_errors(container, SPEC.child(name).index(i))
    ]


# ------------------------------------------------------------------------------ updates


def pod_update_errors(obj: Object, old: Object, given: PodOptions = DEFAULT_OPTIONS) -> ErrorList:
    """The errors in an update of a pod: of its spec, only images, the deadline, tolerations and scheduling gates may change."""
    spec, before = obj["spec"], old["spec"]
    options = given.beside(old)
    errors = _whole.faults(obj, options) + mirror_update_errors(obj, old)
    errors += annotation_change_errors(obj, old, options)
    for name in ("containers", "initContainers"):
        now, then = spec.get(name) or [], before.get(name) or []
        if len(now) != len(then):
            return [*errors, field.forbidden(SPEC.child(name), "pod updates may not add or remove containers")]
        # Reported a second time, as upstream does.
        for i, container in enumerate(now):
            at = SPEC.child(name).index(i)
            errors += [] if container.get("image") else [field.required(at.child("image"))]
            errors += image_space_errors(container, at)
    deadline, final = _deadline_errors(spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds"))
    errors += deadline
    if final:
        return errors
    errors += _tolerations_update_errors(spec, before, options) + _gate_errors(spec, before)
    if same(spec, before, POD_SPEC):
        return errors
    if before.get("schedulingGates"):
        errors += narrowed_errors(spec, before, SPEC)
    munged = _with_what_may_change(spec, before)
    if not same(munged, before, POD_SPEC):
        refusal = f"pod updates may not change fields other than {_UPDATABLE}"
        detail = difference(refusal, before, munged, "PodSpec")
        errors.append(field.forbidden(SPEC, detail))
    return errors


def annotation_change_errors(obj: Object, old: Object, options: PodOptions) -> ErrorList:
    now, then = (metadata(owner).get("annotations") or {} for owner in (obj, old))
    # The rules for their form are reported a second time, as upstream does.
    return annotation_update_errors(now, then, _ANNOTATIONS) + annotation_errors(
        now, obj["spec"], _ANNOTATIONS, options
    )


def pod_subresource_errors(
    obj: Object, old: Object, subresource: str, given: PodOptions = DEFAULT_OPTIONS
) -> ErrorList:
    """The errors in an update through the subresources ephemeralcontainers and resize."""
    if errors := subresource_errors(old, subresource):
        return errors
    options = given.beside(old)
    if subresource == "ephemeralcontainers":
        return _ephemeral_containers_errors(obj, old, options)
    return resize_errors(obj, old, _whole_errors(obj, options), options) if subresource == "resize" else []


def _ephemeral_containers_errors(obj: Object, old: Object, options: PodOptions) -> ErrorList:
    """Ephemeral containers can only be added (ValidatePodEphemeralContainersUpdate)."""
    errors = _whole_errors(obj, options) + mirror_update_errors(obj, old)
    errors += annotation_change_errors(obj, old, options)
    path = SPEC.child("ephemeralContainers")
    known = {container["name"]: container for container in obj["spec"].get("ephemeralContainers") or ()}
    for container in old["spec"].get("ephemeralContainers") or ():
        start, now = f"existing ephemeral containers {go_quote(container['name'])}", known.get(container["name"])
        if now is None:
            errors.append(field.forbidden(path, f"{start} may not be removed\n"))
        elif not same(now, container, CONTAINER):
            detail = difference(f"{start} may not be changed", container, now, "EphemeralContainer")
            errors.append(field.forbidden(path, detail))
    return errors


def _deadline_errors(now: int | None, then: int | None) -> tuple[ErrorList, bool]:
    """The errors in a changed deadline, and whether upstream stops there."""
    path = SPEC.child("activeDeadlineSeconds")
    if now is None:
        detail = "must not update from a positive integer to nil value"
        return ([] if then is None else [field.invalid(path, None, detail)]), False
    if not 0 <= now <= _MAX_INT32:
        return [field.invalid(path, now, f"must be between 0 and {_MAX_INT32}, inclusive")], True
    if then is not None and now > then:
        return [field.invalid(path, now, "must be less than or equal to previous value")], True
    return [], False


def _tolerations_update_errors(spec: Object, before: Object, options: PodOptions) -> ErrorList:
    now = [_without_seconds(toleration) for toleration in spec.get("tolerations") or ()]
    if all(_without_seconds(toleration) in now for toleration in before.get("tolerations") or ()):
        return toleration_errors(
            spec.get("tolerations") or [], SPEC.child("tolerations"), comparing=options.comparing_tolerations
        )
    detail = "existing toleration can not be modified except its tolerationSeconds"
    return [field.forbidden(SPEC.child("tolerations"), detail)]


def _without_seconds(toleration: Mapping[str, Any]) -> Object:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _gate_errors(spec: Object, before: Object) -> ErrorList:
    """The errors in changed scheduling gates. Of several gates with one name, only the last is reported."""
    added = {gate.get("name", ""): i for i, gate in enumerate(spec.get("schedulingGates") or ())}
    for gate in before.get("schedulingGates") or ():
        added.pop(gate.get("name", ""), None)
    detail = "only deletion is allowed, but found new scheduling gate"
    path = SPEC.child("schedulingGates")
    return [field.forbidden(path.index(i).child("name"), f"{detail} '{name}'") for name, i in added.items()]


def _with_what_may_change(spec: Object, before: Object) -> Object:
    """The new spec with the old values of the fields that may change. What still differs must not change."""
    munged = dict(spec)
    for name in ("containers", "initContainers"):
        # Upstream builds these lists again, so that an empty list becomes an absent one.
        if now := munged.pop(name, None):
            pairs = zip(now, before[name], strict=True)
            munged[name] = [{**container, "image": old.get("image")} for container, old in pairs]
    names_kept = ["activeDeadlineSeconds", "schedulingGates", "tolerations"]
    if before.get("schedulingGates"):
        names_kept.append("nodeSelector")
        affinity = with_node_affinity_of(before, spec.get("affinity"))
        munged.pop("affinity", None)
        if affinity is not None:
            munged["affinity"] = affinity
    for name in names_kept:
        munged.pop(name, None)
        if name in before:
            munged[name] = before[name]
    return munged
