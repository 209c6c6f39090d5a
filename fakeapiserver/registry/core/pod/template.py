"""The defaults of pods and of everything that makes pods from a template.

Upstream: pkg/apis/core/v1/{defaults.go,zz_generated.defaults.go,conversion.go}. What a schema says of itself (`protocol: TCP`)
has been filled in before.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.meta import FieldPath, Object
from fakeapiserver.registry.core.pod.image_name import pull_policy
from fakeapiserver.registry.core.resource_list import round_up_resources

CONTAINER_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE_DEFAULTS: Final = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_SPEC_DEFAULTS: Final = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
}
# Feature gate -> what of a PodSpec belongs to it (pkg/api/pod/util.go, DropDisabledPodFields).
_PROJECTED: Final = ("volumes", "*", "projected", "sources", "*")
_FILES: Final = ("secret", "configMap", "downwardAPI")
_GATED: Final[Mapping[str, Sequence[FieldPath]]] = {
    "AtomicWriteVolumeUserFields": [
        *(("volumes", "*", source, "defaultUser") for source in (*_FILES, "projected")),
        *(("volumes", "*", source, "items", "*", "user") for source in _FILES),
        *((*_PROJECTED, source, "items", "*", "user") for source in _FILES),
        *((*_PROJECTED, source, "user") for source in ("serviceAccountToken", "clusterTrustBundle", "podCertificate")),
    ],
    "ClusterTrustBundleProjection": [("volumes", "*", "projected", "sources", "*", "clusterTrustBundle")],
    "ContainerRestartRules": [
        ("initContainers", "*", "restartPolicy!Always"),
        *((containers, "*", "restartPolicy") for containers in CONTAINER_LISTS[1:]),
        *((containers, "*", "restartPolicyRules") for containers in CONTAINER_LISTS),
    ],
    "ContainerStopSignals": [(containers, "*", "lifecycle?", "stopSignal") for containers in CONTAINER_LISTS],
    "DynamicResourceAllocation": [
        ("resourceClaims",),
        *((containers, "*", "resources", "claims") for containers in CONTAINER_LISTS),
    ],
    "EmptyDirVolumeMode": [("volumes", "*", "emptyDir", "mode")],
    "EnvFiles": [(containers, "*", "env", "*", "valueFrom", "fileKeyRef") for containers in CONTAINER_LISTS],
    "EvictionRequestAPI": [("evictionResponders",)],
    "GRPCContainerProbeTLS": [
        (containers, "*", probe, "grpc", "mode") for containers in CONTAINER_LISTS for probe in _PROBES
    ],
    "H2CContainerProbe": [
        *((containers, "*", probe, "httpGet", "protocol") for containers in CONTAINER_LISTS for probe in _PROBES),
        *(
            (containers, "*", "lifecycle", hook, "httpGet", "protocol")
            for containers in CONTAINER_LISTS
            for hook in ("preStop", "postStart")
        ),
    ],
    "GenericWorkload": [("schedulingGroup",), ("workloadRef",)],  # as 1.36 and 1.35 have it
    "HostnameOverride": [("hostnameOverride",)],
    "InPlacePodVerticalScaling": [(containers, "*", "resizePolicy") for containers in CONTAINER_LISTS],
    "ImageVolume": [("volumes?", "*~image")],
    "MatchLabelKeysInPodTopologySpread": [("topologySpreadConstraints", "*", "matchLabelKeys")],
    "PodCertificateRequest": [("volumes", "*", "projected", "sources", "*", "podCertificate")],
    "PodLevelResources": [("resources",)],
    "PodLifecycleSleepAction": [
        (containers, "*", "lifecycle?", hook, "sleep")
        for containers in CONTAINER_LISTS
        for hook in ("preStop?", "postStart?")
    ],
    "ProcMountType": [(containers, "*", "securityContext", "procMount=Default") for containers in CONTAINER_LISTS],
    "SupplementalGroupsPolicy": [("securityContext", "supplementalGroupsPolicy")],
    "UserNamespacesSupport": [("hostUsers",)],
    "VolumeBindMountOptions": [
        (containers, "*", "volumeMounts", "*", "bindMountOptions") for containers in CONTAINER_LISTS
    ],
}
# Feature gate -> what of a PodStatus belongs to it (dropDisabledPodStatusFields).
_STATUS_LISTS: Final = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
_DEVICES: Final = "allocatedResourcesStatus"
_GATED_STATUS: Final[Mapping[str, Sequence[FieldPath]]] = {
    "CSIVolumeHealth": [("status", "volumeHealth")],
    "DRAExtendedResource": [("status", "extendedResourceClaimStatus")],
    "DynamicResourceAllocation": [("status", "resourceClaimStatuses")],
    "DRANodeAllocatableResources": [("status", "nodeAllocatableResourceClaimStatuses")],
    "ImageVolumeWithDigest": [("status", rows, "*", "volumeMounts", "*", "volumeStatus") for rows in _STATUS_LISTS],
    "InPlacePodLevelResourcesVerticalScaling": [("status", "resources"), ("status", "allocatedResources")],
    "InPlacePodVerticalScaling": [
        ("status", rows, "*", name) for rows in _STATUS_LISTS for name in ("resources", "allocatedResources")
    ],
    "PodObservedGenerationTracking": [
        ("status", "observedGeneration"),
        ("status", "conditions", "*", "observedGeneration"),
    ],
    "ResourceHealthStatus": [("status", rows, "*", _DEVICES) for rows in _STATUS_LISTS],
    "ResourceHealthStatusMessage": [
        ("status", rows, "*", _DEVICES, "*", "resources", "*", "message") for rows in _STATUS_LISTS
    ],
    "SupplementalGroupsPolicy": [("status", rows, "*", "user") for rows in _STATUS_LISTS],
}
_MODE_0644: Final = 0o644
# Annotations of clients from before initContainers was a field.
_INIT_CONTAINER_ANNOTATIONS: Final = tuple(
    f"pod.{stage}.kubernetes.io/init-container{kind}" for stage in ("beta", "alpha") for kind in ("s", "-statuses")
)


def gated_pod_fields(*spec: str) -> dict[str, Sequence[FieldPath]]:
    """Feature gate -> paths of the fields that it stands for; `spec` is the PodSpec's own."""
    return {gate: [(*spec, *path) for path in paths] for gate, paths in _GATED.items()}


def gated_whole_pod() -> dict[str, Sequence[FieldPath]]:
    """The fields of `gated_pod_fields` for a whole pod, with those of its status."""
    spec = gated_pod_fields("spec")
    return {gate: [*spec.get(gate, ()), *_GATED_STATUS.get(gate, ())] for gate in {**spec, **_GATED_STATUS}}


def volume_names(spec: Object) -> set[str]:
    return {str(volume.get("name", "")) for volume in spec.get("volumes") or ()}


def drop_mounts(spec: Object, volumes: set[str]) -> None:
    """Removes the mounts of these volumes, in place."""
    for container in containers_of(spec):
        if mounts := container.get("volumeMounts"):
            kept = [mount for mount in mounts if mount.get("name") not in volumes]
            if kept:
                container["volumeMounts"] = kept
            else:
                del container["volumeMounts"]


def default_pod_template(template: Object, *, image_volumes: bool) -> None:
    """Sets the defaults of a PodTemplateSpec, in place; `image_volumes`: image volumes are enabled."""
    drop_init_container_annotations(template)
    default_pod_spec(template.setdefault("spec", {}), image_volumes=image_volumes)


def default_pod_spec(spec: Object, *, image_volumes: bool) -> None:
    """Sets the defaults of a PodSpec that pods and templates share, in place."""
    for key, value in _SPEC_DEFAULTS.items():
        spec.setdefault(key, value)
    spec.setdefault("securityContext", {})
    _mirror_service_account(spec)
    for volume in spec.get("volumes") or ():
        _default_volume(volume)
        if image_volumes and "image" in volume:
            _default_image_volume(volume["image"])
    for container in containers_of(spec):
        _default_container(container)
    round_up_resources(spec, ("overhead",))
    round_up_resources(spec.get("resources"))


def default_http_protocols(spec: Object) -> None:
    """Sets the protocol of HTTP requests of probes and hooks, in pods but not in templates."""
    for container in containers_of(spec):
        probes = [container.get(name) or {} for name in _PROBES]
        hooks = (container.get("lifecycle") or {}).values()
        for handler in (*probes, *(hook for hook in hooks if isinstance(hook, dict))):
            if get := handler.get("httpGet"):
                get.setdefault("protocol", "HTTP1")


def containers_of(spec: Object) -> Iterator[Object]:
    """Init containers, containers and ephemeral containers."""
    for name in CONTAINER_LISTS:
        yield from spec.get(name) or ()


def drop_init_container_annotations(obj: Object) -> None:
    """Removes the annotations in which old versions kept init containers."""
    meta = obj.get("metadata") or {}
    annotations = meta.get("annotations")
    if not annotations or not any(key in annotations for key in _INIT_CONTAINER_ANNOTATIONS):
        return
    kept = {key: value for key, value in annotations.items() if key not in _INIT_CONTAINER_ANNOTATIONS}
    if kept:
        meta["annotations"] = kept
    else:
        del meta["annotations"]


def default_claim_spec(spec: Object) -> None:
    """Sets the defaults of a PersistentVolumeClaimSpec, in place."""
    spec.setdefault("volumeMode", "Filesystem")
    round_up_resources(spec.get("resources"))


def default_host_path(source: Object) -> None:
    source.setdefault("type", "")


def default_azure_disk(source: Object) -> None:
    source.setdefault("readOnly", False)


def _mirror_service_account(spec: Object) -> None:
    """serviceAccount is an old name of serviceAccountName, which wins."""
    if name := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = name


def _default_container(container: Object) -> None:
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    if "imagePullPolicy" not in container:
        container["imagePullPolicy"] = pull_policy(container.get("image", ""))
    for variable in container.get("env") or ():
        _default_env_source(variable.get("valueFrom") or {})
    round_up_resources(container.get("resources"))
    for name in _PROBES:
        if name in container:
            _default_probe(container[name])
    for handler in (container.get("lifecycle") or {}).values():
        _default_handler(handler)


def _default_env_source(source: Object) -> None:
    if "fieldRef" in source:
        _default_field_ref(source["fieldRef"])
    if "fileKeyRef" in source:
        source["fileKeyRef"].setdefault("optional", False)


def _default_field_ref(reference: Object) -> None:
    reference.setdefault("apiVersion", "v1")


def _default_probe(probe: Object) -> None:
    for key, value in _PROBE_DEFAULTS.items():
        probe.setdefault(key, value)
    _default_handler(probe)


def _default_handler(handler: Any) -> None:
    if not isinstance(handler, dict):
        return  # lifecycle.stopSignal
    if get := handler.get("httpGet"):
        get.setdefault("path", "/")
        get.setdefault("scheme", "HTTP")
    grpc = handler.get("grpc")
    if grpc is not None and grpc.get("service") is None:
        grpc["service"] = ""


def _default_volume(volume: Object) -> None:
    if len(volume) == 1 and "name" in volume:
        volume["emptyDir"] = {}
    for kind in volume:
        if kind in _VOLUME_DEFAULTS:
            _VOLUME_DEFAULTS[kind](volume[kind])


def _default_mode(source: Object) -> None:
    source.setdefault("defaultMode", _MODE_0644)


def _default_downward(source: Object) -> None:
    _default_mode(source)
    _default_downward_items(source)


def _default_downward_items(source: Object) -> None:
    for item in source.get("items") or ():
        if "fieldRef" in item:
            _default_field_ref(item["fieldRef"])


def _default_projected(source: Object) -> None:
    _default_mode(source)
    for projection in source.get("sources") or ():
        if "downwardAPI" in projection:
            _default_downward_items(projection["downwardAPI"])
        if "serviceAccountToken" in projection:
            projection["serviceAccountToken"].setdefault("expirationSeconds", 3600)


def _default_image_volume(source: Object) -> None:
    if "pullPolicy" not in source:
        source["pullPolicy"] = pull_policy(source.get("reference", ""))


def _default_ephemeral(source: Object) -> None:
    if "volumeClaimTemplate" in source:
        default_claim_spec(source["volumeClaimTemplate"].setdefault("spec", {}))


_VOLUME_DEFAULTS: Final[dict[str, Callable[[Object], None]]] = {
    "secret": _default_mode,
    "configMap": _default_mode,
    "downwardAPI": _default_downward,
    "projected": _default_projected,
    "hostPath": default_host_path,
    "azureDisk": default_azure_disk,
    "ephemeral": _default_ephemeral,
}
