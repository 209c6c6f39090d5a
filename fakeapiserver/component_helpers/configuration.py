"""kube-controller-manager's settings, by its flags' names (upstream: k8s.io/kube-controller-manager/config/v1alpha1)."""

from pathlib import Path
from typing import Final

from msgspec import Struct

from fakeapiserver.apis.feature_gates import DEFAULT_GATES, FeatureGates

# Upstream's constant: other API servers have to notice that the namespace takes nothing more.
NAMESPACE_DELETION_GRACE: Final = 5.0


class KubeControllerManagerConfiguration(Struct, frozen=True):
    """Upstream's defaults. Periods in seconds.

    feature_gates: of the manager's version, which also decides what changed without a gate.
    """

    feature_gates: FeatureGates = DEFAULT_GATES
    use_service_account_credentials: bool = False
    concurrent_cron_job_syncs: int = 5
    concurrent_daemonset_syncs: int = 2
    concurrent_deployment_syncs: int = 5
    concurrent_disruption_syncs: int = 1
    concurrent_endpoint_syncs: int = 5
    concurrent_ephemeralvolume_syncs: int = 5
    concurrent_gc_syncs: int = 20
    concurrent_horizontal_pod_autoscaler_syncs: int = 5
    concurrent_job_syncs: int = 5
    concurrent_namespace_syncs: int = 10
    concurrent_rc_syncs: int = 5
    concurrent_replicaset_syncs: int = 5
    concurrent_resource_quota_syncs: int = 5
    concurrent_resourceclaim_syncs: int = 50
    concurrent_device_taint_eviction_syncs: int = 8
    concurrent_service_endpoint_syncs: int = 5
    concurrent_serviceaccount_token_syncs: int = 5
    concurrent_statefulset_syncs: int = 5
    concurrent_ttl_after_finished_syncs: int = 5
    concurrent_validating_admission_policy_status_syncs: int = 5
    mirroring_concurrent_service_endpoint_syncs: int = 5
    namespace_sync_period: float = 300.0
    namespace_deletion_grace: float = NAMESPACE_DELETION_GRACE
    resource_quota_sync_period: float = 300.0
    endpoint_updates_batch_period: float = 0.0
    endpointslice_updates_batch_period: float = 0.0
    mirroring_endpointslice_updates_batch_period: float = 0.0
    max_endpoints_per_slice: int = 100
    mirroring_max_endpoints_per_subset: int = 1000
    enable_garbage_collector: bool = True
    terminated_pod_gc_threshold: int = 12500
    pvclaimbinder_sync_period: float = 15.0
    enable_dynamic_provisioning: bool = True
    horizontal_pod_autoscaler_sync_period: float = 15.0
    horizontal_pod_autoscaler_downscale_stabilization: float = 300.0
    horizontal_pod_autoscaler_cpu_initialization_period: float = 300.0
    horizontal_pod_autoscaler_initial_readiness_delay: float = 30.0
    horizontal_pod_autoscaler_tolerance: float = 0.1
    legacy_service_account_token_clean_up_period: float = 31_536_000.0
    allocate_node_cidrs: bool = False
    cluster_cidr: str = ""
    service_cluster_ip_range: str = ""
    node_cidr_mask_size: int = 0
    node_cidr_mask_size_ipv4: int = 0
    node_cidr_mask_size_ipv6: int = 0
    cidr_allocator_type: str = "RangeAllocator"
    node_monitor_period: float = 5.0
    node_monitor_grace_period: float = 50.0
    node_startup_grace_period: float = 60.0
    node_eviction_rate: float = 0.1
    secondary_node_eviction_rate: float = 0.01
    large_cluster_size_threshold: int = 50
    unhealthy_zone_threshold: float = 0.55
    attach_detach_reconcile_sync_period: float = 60.0
    disable_attach_detach_reconcile_sync: bool = False
    disable_force_detach_on_timeout: bool = False
    root_ca_file: Path | None = None
    service_account_private_key_file: Path | None = None
    cluster_signing_cert_file: Path | None = None
    cluster_signing_key_file: Path | None = None
    cluster_signing_duration: float = 31_536_000.0
    cluster_signing_kube_apiserver_client_cert_file: Path | None = None
    cluster_signing_kube_apiserver_client_key_file: Path | None = None
    cluster_signing_kubelet_client_cert_file: Path | None = None
    cluster_signing_kubelet_client_key_file: Path | None = None
    cluster_signing_kubelet_serving_cert_file: Path | None = None
    cluster_signing_kubelet_serving_key_file: Path | None = None
    cluster_signing_legacy_unknown_cert_file: Path | None = None
    cluster_signing_legacy_unknown_key_file: Path | None = None
