"""The features of pods that a server allows, for each kind that is a pod or has a pod template.

Upstream: pkg/api/pod/util.go (GetValidationOptionsFromPodSpecAndMeta).
"""

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from fakeapiserver.apimachinery.field import ErrorList
from fakeapiserver.apimachinery.meta import FieldPath, Object
from fakeapiserver.apis.feature_gates import FeatureGates
from fakeapiserver.apis.quantity_fields import IN_WORKLOAD, QuantityFields
from fakeapiserver.apis.recorded import NEWEST
from fakeapiserver.registry.core.pod.template import CONTAINER_LISTS, containers_of, drop_mounts, volume_names
from fakeapiserver.registry.generic.strategy import Strategy

# Option -> its feature gate.
GATES: Final = {
    "binding_clears_nomination": "ClearingNominatedNodeNameAfterBinding",
    "comparing_tolerations": "TaintTolerationComparisonOperators",
    "deletion_cost": "PodDeletionCost",
    "env_files": "EnvFiles",
    "host_network_users": "UserNamespacesHostNetworkSupport",
    "http_protocols": "H2CContainerProbe",
    "image_volumes": "ImageVolume",
    "init_resize": "InPlacePodVerticalScalingInitContainers",
    "merged_label_keys": "MatchLabelKeysInPodTopologySpreadSelectorMerge",
    "pod_level_resize": "InPlacePodLevelResourcesVerticalScaling",
    "pod_level_resources": "PodLevelResources",
    "restart_all": "RestartAllContainersOnContainerExits",
    "restart_rules": "ContainerRestartRules",
    "selinux_mount": "SELinuxMount",
    "spread_label_keys": "MatchLabelKeysInPodTopologySpread",
    "volume_digests": "ImageVolumeWithDigest",
    "volume_resize": "InPlacePodVerticalScalingMemoryBackedVolumes",
}


class PodOptions(Struct, frozen=True, kw_only=True):
    """The features in `GATES` that are on, by default those that upstream has on. `version` is the server's, for changes without
    a gate."""

    version: str = NEWEST

    binding_clears_nomination: bool = True
    comparing_tolerations: bool = False
    deletion_cost: bool = True
    env_files: bool = True
    host_network_users: bool = False
    http_protocols: bool = False
    image_volumes: bool = True
    init_resize: bool = True
    merged_label_keys: bool = True
    pod_level_resize: bool = True
    pod_level_resources: bool = True
    restart_all: bool = True
    restart_rules: bool = True
    selinux_mount: bool = False
    spread_label_keys: bool = True
    volume_digests: bool = False
    volume_resize: bool = False

    def beside(self, template: Object | None) -> "PodOptions":
        """The options for an update: what the old pod or template uses stays allowed."""
        before = (template or {}).get("spec") or {}
        used = {name: True for name, uses in _USED.items() if not getattr(self, name) and uses(before)}
        return replace(self, **used) if used else self


DEFAULT_OPTIONS: Final = PodOptions()


class WithPods(Strategy, kw_only=True):
    """A kind that is a pod or holds a template of pods."""

    pod_options: PodOptions = DEFAULT_OPTIONS
    # 1.33 has no such gate and refuses these fields.
    gated_since: Mapping[str | FieldPath, str] = field(default_factory=lambda: {"ContainerRestartRules": "v1.34"})
    # The path of the object's PodSpec.
    pod_spec_path: FieldPath = ("spec", "template", "spec")
    quantity_fields: QuantityFields = IN_WORKLOAD

    def __post_init__(self) -> None:
        self.pod_options = pod_options(self.features)

    def drop_disabled(self, obj: Object, old: Object | None) -> None:
        """Drops disabled fields, and with image volumes their mounts."""
        if self.pod_options.image_volumes:
            super().drop_disabled(obj, old)
            return
        spec = self._pod_spec(obj)
        before = volume_names(spec)
        super().drop_disabled(obj, old)
        if dropped := before - volume_names(spec):
            drop_mounts(spec, dropped)

    def _pod_spec(self, obj: Object) -> Object:
        part: Object = obj
        for name in self.pod_spec_path:
            part = part.get(name) or {}
        return part

    def validate(self, obj: Object) -> ErrorList:
        return self.judge(obj, self.pod_options)

    def judge(self, obj: Object, options: PodOptions) -> ErrorList:
        """The errors in new and in changed objects."""
        return []


def pod_options(features: FeatureGates) -> PodOptions:
    return PodOptions(version=features.version, **{name: features.enabled(gate) for name, gate in GATES.items()})


def _compares(spec: Object) -> bool:
    return any(toleration.get("operator") in ("Lt", "Gt") for toleration in spec.get("tolerations") or ())


def _has_env_files(spec: Object) -> bool:
    return any(
        "fileKeyRef" in (variable.get("valueFrom") or {})
        for container in containers_of(spec)
        for variable in container.get("env") or ()
    )


def _has_restart_rules(spec: Object) -> bool:
    return any("restartPolicy" in container for container in spec.get("containers") or ()) or any(
        container.get("restartPolicy", "Always") != "Always" or container.get("restartPolicyRules")
        for container in spec.get("initContainers") or ()
    )


def _restarts_all(spec: Object) -> bool:
    return any(
        rule.get("action") == "RestartAllContainers"
        for name in CONTAINER_LISTS[:2]
        for container in spec.get(name) or ()
        for rule in container.get("restartPolicyRules") or ()
    )


# Option -> whether a PodSpec uses what the option allows.
_USED: Final[Mapping[str, Callable[[Object], bool]]] = {
    "comparing_tolerations": _compares,
    "env_files": _has_env_files,
    "host_network_users": lambda spec: bool(spec.get("hostNetwork")) and spec.get("hostUsers") is False,
    "restart_all": _restarts_all,
    "restart_rules": _has_restart_rules,
    "selinux_mount": lambda spec: "seLinuxChangePolicy" in (spec.get("securityContext") or {}),
}
