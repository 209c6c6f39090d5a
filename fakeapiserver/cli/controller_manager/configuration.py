"""A controller manager's configuration, as /flagz and /configz show it.

Upstream: k8s.io/component-base/{configz,zpages/flagz}, cmd/kube-controller-manager/app/options. Defaults are recorded from the real
one (apis/versions/<version>/controller_manager_flags.json); a flag that has no effect here is shown as it was given.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from fakeapiserver.apimachinery.duration import format_duration, parse_duration
from fakeapiserver.cli.arguments import read_boolean, read_list

GROUP: Final = "kubecontrollermanager.config.k8s.io"
_GENERIC: Final = "Generic."
_CLIENT: Final = "Generic.ClientConnection."
_LEADER: Final = "Generic.LeaderElection."
_SHARED: Final = "KubeCloudShared."
_SIGNING: Final = "CSRSigningController."
_HPA: Final = "HPAController.HorizontalPodAutoscaler"
_RECYCLER: Final = "PersistentVolumeBinderController.VolumeConfiguration.PersistentVolumeRecyclerConfiguration."
# Where the configuration has a flag's value.
PLACES: Final[Mapping[str, str]] = {
    "allocate-node-cidrs": f"{_SHARED}AllocateNodeCIDRs",
    "allow-untagged-cloud": f"{_SHARED}AllowUntaggedCloud",
    "attach-detach-reconcile-sync-period": "AttachDetachController.ReconcilerSyncLoopPeriod",
    "cidr-allocator-type": f"{_SHARED}CIDRAllocatorType",
    "cloud-config": f"{_SHARED}CloudProvider.CloudConfigFile",
    "cloud-provider": f"{_SHARED}CloudProvider.Name",
    "cluster-cidr": f"{_SHARED}ClusterCIDR",
    "cluster-name": f"{_SHARED}ClusterName",
    "cluster-signing-cert-file": f"{_SIGNING}ClusterSigningCertFile",
    "cluster-signing-duration": f"{_SIGNING}ClusterSigningDuration",
    "cluster-signing-key-file": f"{_SIGNING}ClusterSigningKeyFile",
    "cluster-signing-kube-apiserver-client-cert-file": f"{_SIGNING}KubeAPIServerClientSignerConfiguration.CertFile",
    "cluster-signing-kube-apiserver-client-key-file": f"{_SIGNING}KubeAPIServerClientSignerConfiguration.KeyFile",
    "cluster-signing-kubelet-client-cert-file": f"{_SIGNING}KubeletClientSignerConfiguration.CertFile",
    "cluster-signing-kubelet-client-key-file": f"{_SIGNING}KubeletClientSignerConfiguration.KeyFile",
    "cluster-signing-kubelet-serving-cert-file": f"{_SIGNING}KubeletServingSignerConfiguration.CertFile",
    "cluster-signing-kubelet-serving-key-file": f"{_SIGNING}KubeletServingSignerConfiguration.KeyFile",
    "cluster-signing-legacy-unknown-cert-file": f"{_SIGNING}LegacyUnknownSignerConfiguration.CertFile",
    "cluster-signing-legacy-unknown-key-file": f"{_SIGNING}LegacyUnknownSignerConfiguration.KeyFile",
    "concurrent-cron-job-syncs": "CronJobController.ConcurrentCronJobSyncs",
    "concurrent-daemonset-syncs": "DaemonSetController.ConcurrentDaemonSetSyncs",
    "concurrent-deployment-syncs": "DeploymentController.ConcurrentDeploymentSyncs",
    "concurrent-device-taint-eviction-syncs": "DeviceTaintEvictionController.ConcurrentSyncs",
    "concurrent-disruption-syncs": "DisruptionController.ConcurrentDisruptionSyncs",
    "concurrent-endpoint-syncs": "EndpointController.ConcurrentEndpointSyncs",
    "concurrent-ephemeralvolume-syncs": "EphemeralVolumeController.ConcurrentEphemeralVolumeSyncs",
    "concurrent-gc-syncs": "GarbageCollectorController.ConcurrentGCSyncs",
    "concurrent-horizontal-pod-autoscaler-syncs": "HPAController.ConcurrentHorizontalPodAutoscalerSyncs",
    "concurrent-job-syncs": "JobController.ConcurrentJobSyncs",
    "concurrent-namespace-syncs": "NamespaceController.ConcurrentNamespaceSyncs",
    "concurrent-rc-syncs": "ReplicationController.ConcurrentRCSyncs",
    "concurrent-replicaset-syncs": "ReplicaSetController.ConcurrentRSSyncs",
    "concurrent-resource-quota-syncs": "ResourceQuotaController.ConcurrentResourceQuotaSyncs",
    "concurrent-resourceclaim-syncs": "ResourceClaimController.ConcurrentSyncs",
    "concurrent-service-endpoint-syncs": "EndpointSliceController.ConcurrentServiceEndpointSyncs",
    "concurrent-serviceaccount-token-syncs": "SAController.ConcurrentSATokenSyncs",
    "concurrent-statefulset-syncs": "StatefulSetController.ConcurrentStatefulSetSyncs",
    "concurrent-ttl-after-finished-syncs": "TTLAfterFinishedController.ConcurrentTTLSyncs",
    "concurrent-validating-admission-policy-status-syncs": "ValidatingAdmissionPolicyStatusController.ConcurrentPolicySyncs",
    "configure-cloud-routes": f"{_SHARED}ConfigureCloudRoutes",
    "contention-profiling": f"{_GENERIC}Debugging.enableContentionProfiling",
    "controller-start-interval": f"{_GENERIC}ControllerStartInterval",
    "controllers": f"{_GENERIC}Controllers",
    "disable-attach-detach-reconcile-sync": "AttachDetachController.DisableAttachDetachReconcilerSync",
    "disable-force-detach-on-timeout": "AttachDetachController.disableForceDetachOnTimeout",
    "enable-dynamic-provisioning": "PersistentVolumeBinderController.VolumeConfiguration.EnableDynamicProvisioning",
    "enable-garbage-collector": "GarbageCollectorController.EnableGarbageCollector",
    "enable-hostpath-provisioner": "PersistentVolumeBinderController.VolumeConfiguration.EnableHostPathProvisioning",
    "enable-leader-migration": f"{_GENERIC}LeaderMigrationEnabled",
    "endpoint-updates-batch-period": "EndpointController.EndpointUpdatesBatchPeriod",
    "endpointslice-updates-batch-period": "EndpointSliceController.EndpointUpdatesBatchPeriod",
    "external-cloud-volume-plugin": f"{_SHARED}ExternalCloudVolumePlugin",
    "flex-volume-plugin-dir": "PersistentVolumeBinderController.VolumeConfiguration.FlexVolumePluginDir",
    "horizontal-pod-autoscaler-cpu-initialization-period": f"{_HPA}CPUInitializationPeriod",
    "horizontal-pod-autoscaler-downscale-stabilization": f"{_HPA}DownscaleStabilizationWindow",
    "horizontal-pod-autoscaler-initial-readiness-delay": f"{_HPA}InitialReadinessDelay",
    "horizontal-pod-autoscaler-sync-period": f"{_HPA}SyncPeriod",
    "horizontal-pod-autoscaler-tolerance": f"{_HPA}Tolerance",
    "kube-api-burst": f"{_CLIENT}burst",
    "kube-api-content-type": f"{_CLIENT}contentType",
    "kube-api-qps": f"{_CLIENT}qps",
    "kubeconfig": f"{_CLIENT}kubeconfig",
    "large-cluster-size-threshold": "NodeLifecycleController.LargeClusterSizeThreshold",
    "leader-elect": f"{_LEADER}leaderElect",
    "leader-elect-lease-duration": f"{_LEADER}leaseDuration",
    "leader-elect-renew-deadline": f"{_LEADER}renewDeadline",
    "leader-elect-resource-lock": f"{_LEADER}resourceLock",
    "leader-elect-resource-name": f"{_LEADER}resourceName",
    "leader-elect-resource-namespace": f"{_LEADER}resourceNamespace",
    "leader-elect-retry-period": f"{_LEADER}retryPeriod",
    "legacy-service-account-token-clean-up-period": "LegacySATokenCleaner.CleanUpPeriod",
    "max-endpoints-per-slice": "EndpointSliceController.MaxEndpointsPerSlice",
    "min-resync-period": f"{_GENERIC}MinResyncPeriod",
    "mirroring-concurrent-service-endpoint-syncs": "EndpointSliceMirroringController.MirroringConcurrentServiceEndpointSyncs",
    "mirroring-endpointslice-updates-batch-period": "EndpointSliceMirroringController.MirroringEndpointUpdatesBatchPeriod",
    "mirroring-max-endpoints-per-subset": "EndpointSliceMirroringController.MirroringMaxEndpointsPerSubset",
    "namespace-sync-period": "NamespaceController.NamespaceSyncPeriod",
    "node-cidr-mask-size": "NodeIPAMController.NodeCIDRMaskSize",
    "node-cidr-mask-size-ipv4": "NodeIPAMController.NodeCIDRMaskSizeIPv4",
    "node-cidr-mask-size-ipv6": "NodeIPAMController.NodeCIDRMaskSizeIPv6",
    "node-eviction-rate": "NodeLifecycleController.NodeEvictionRate",
    "node-monitor-grace-period": "NodeLifecycleController.NodeMonitorGracePeriod",
    "node-monitor-period": "NodeLifecycleController.NodeMonitorPeriod",
    "node-startup-grace-period": "NodeLifecycleController.NodeStartupGracePeriod",
    "node-sync-period": f"{_SHARED}NodeSyncPeriod",
    "profiling": f"{_GENERIC}Debugging.enableProfiling",
    "pv-recycler-increment-timeout-nfs": f"{_RECYCLER}IncrementTimeoutNFS",
    "pv-recycler-minimum-timeout-hostpath": f"{_RECYCLER}MinimumTimeoutHostPath",
    "pv-recycler-minimum-timeout-nfs": f"{_RECYCLER}MinimumTimeoutNFS",
    "pv-recycler-pod-template-filepath-hostpath": f"{_RECYCLER}PodTemplateFilePathHostPath",
    "pv-recycler-pod-template-filepath-nfs": f"{_RECYCLER}PodTemplateFilePathNFS",
    "pv-recycler-timeout-increment-hostpath": f"{_RECYCLER}IncrementTimeoutHostPath",
    "pvclaimbinder-sync-period": "PersistentVolumeBinderController.PVClaimBinderSyncPeriod",
    "resource-quota-sync-period": "ResourceQuotaController.ResourceQuotaSyncPeriod",
    "root-ca-file": "SAController.RootCAFile",
    "route-reconciliation-period": f"{_SHARED}RouteReconciliationPeriod",
    "secondary-node-eviction-rate": "NodeLifecycleController.SecondaryNodeEvictionRate",
    "service-account-private-key-file": "SAController.ServiceAccountKeyFile",
    "service-cluster-ip-range": "NodeIPAMController.ServiceCIDR",
    "terminated-pod-gc-threshold": "PodGCController.TerminatedPodGCThreshold",
    "unhealthy-zone-threshold": "NodeLifecycleController.UnhealthyZoneThreshold",
    "use-service-account-credentials": f"{_SHARED}UseServiceAccountCredentials",
}


def flag_texts(table: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, str]:
    """Every flag's value by its name. `table` is the recorded one, `given` what the command line says, which can be read."""
    types: Mapping[str, str] = table["flags"]
    return {**table["defaults"], **{name: _text(types.get(name, ""), value) for name, value in given.items()}}


def configuration(table: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, Any]:
    """A KubeControllerManagerConfiguration."""
    copied: dict[str, Any] = json.loads(json.dumps(table["configuration"]))
    types: Mapping[str, str] = table["flags"]
    for name, value in given.items():
        if name in PLACES:
            *path, last = PLACES[name].split(".")
            at = copied
            for step in path:
                at = at[step]
            at[last] = _value(types.get(name, ""), value)
    return copied


def _value(flag_type: str, text: str) -> object:
    if flag_type == "bool":
        return read_boolean(text)
    if flag_type in ("int", "int32"):
        return int(text)
    if flag_type.startswith("float"):
        number = float(text)
        return int(number) if number.is_integer() else number
    return [*read_list(text)] if flag_type == "strings" else _text(flag_type, text)


def _text(flag_type: str, text: str) -> str:
    """Returns a value as Go's flag shows it."""
    if flag_type == "duration":
        return format_duration(parse_duration(text))
    if flag_type == "bool":
        return "true" if read_boolean(text) else "false"
    if flag_type == "strings":
        return f"[{','.join(read_list(text))}]"
    if flag_type.startswith("float"):
        return f"{float(text):g}"
    return str(int(text)) if flag_type in ("int", "int32") else text
