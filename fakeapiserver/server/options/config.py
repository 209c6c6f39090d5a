"""A server's configuration. Its fields have the names of kube-apiserver's flags.

Upstream: cmd/kube-apiserver/app/options.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from fakeapiserver.apis.emulation import Emulation, emulation
from fakeapiserver.apis.feature_gates import FeatureGates, feature_gates
from fakeapiserver.apis.recorded import NEWEST, minor_version
from fakeapiserver.server.filters.audit.options import AuditOptions
from fakeapiserver.server.projects.manifests import Sources

DEFAULT_ISSUER: Final = "https://kubernetes.default.svc.cluster.local"
# The feature gates that have an effect here (upstream: k8s.io/apiserver/pkg/features, pkg/features).
CBOR_SERVING_AND_STORAGE: Final = "CBORServingAndStorage"
# The one controller of kube-controller-manager that runs in the API server, if --controllers includes it.
POLICY_STATUS: Final = "validatingadmissionpolicy-status-controller"
FEATURE_GATES: Final = (
    "APIResponseCompression",
    "APIServerIdentity",
    "AllAlpha",
    "AllBeta",
    "AllowInsecureKubeletCertificateSigningRequests",
    "AllowParsingUserUIDFromCertAuth",
    "AllowUnsafeMalformedObjectDeletion",
    "AtomicWriteVolumeUserFields",
    "AuthorizePodWebsocketUpgradeCreatePermission",
    CBOR_SERVING_AND_STORAGE,
    "CRDObservedGenerationTracking",
    "CSIVolumeHealth",
    "ClearingNominatedNodeNameAfterBinding",
    "ClusterTrustBundle",
    "ClusterTrustBundleProjection",
    "ComponentFlagz",
    "ComponentStatusz",
    "CompositePodGroup",
    "ConstrainedImpersonation",
    "ContainerRestartRules",
    "ContainerStopSignals",
    "CoordinatedLeaderElection",
    "CrossNamespaceVolumeDataSource",
    "DRAConsumableCapacity",
    "DRADerivedAttributes",
    "DRADeviceBindingConditions",
    "DRADeviceCompatibilityGroups",
    "DRAFractionalCapacityRange",
    "DRAListTypeAttributes",
    "DRANodeAllocatableResources",
    "DRAOptionalNodeOperations",
    "DRAPartitionableDevices",
    "DRAPartitionableDevicesType",
    "DRAResourceClaimGranularStatusAuthorization",
    "DRAResourcePoolStatus",
    "DRAWorkloadResourceClaims",
    "DeploymentReplicaSetTerminatingReplicas",
    "EmptyDirVolumeMode",
    "EnvFiles",
    "EvictionRequestAPI",
    "GRPCContainerProbeTLS",
    "GenericWorkload",
    "H2CContainerProbe",
    "HPAGeneration",
    "HPAScaleToZero",
    "ImageVolumeWithDigest",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingMemoryBackedVolumes",
    "InPlacePodVerticalScalingSchedulerPreemption",
    "KubeletServiceAccountTokenForCredentialProviders",
    "ManifestBasedAdmissionControlConfig",
    "MatchLabelKeysInPodTopologySpread",
    "MatchLabelKeysInPodTopologySpreadSelectorMerge",
    "MaxUnavailableStatefulSet",
    "MutablePVNodeAffinity",
    "MutablePodResourcesForSuspendedJobs",
    "MutableSchedulingDirectivesForSuspendedJobs",
    "MutatingAdmissionPolicy",
    "OpenAPIEnums",
    "PodCertificateRequest",
    "PodDeletionCost",
    "PodGroupPreemptionPolicy",
    "PodLevelResources",
    "PodLogsQuerySplitStreams",
    "PodTopologyLabelsAdmission",
    "RemoteRequestHeaderUID",
    "ResourceHealthStatus",
    "ResourceHealthStatusMessage",
    "RestartAllContainersOnContainerExits",
    "SELinuxMount",
    "ServiceAccountNodeAudienceRestriction",
    "ServiceCIDRStatusFieldWiping",
    "ShardedListAndWatch",
    "StorageVersionAPI",
    "StorageVersionHash",
    "StorageVersionMigrator",
    "StrictIPCIDRValidation",
    "TaintTolerationComparisonOperators",
    "TokenRequestServiceAccountUIDValidation",
    "TopologyAwareWorkloadScheduling",
    "UnknownVersionInteroperabilityProxy",
    "UserNamespacesHostNetworkSupport",
    "VolumeBindMountOptions",
    "VolumeLimitScaling",
    "WatchList",
    "WatchListCompression",
    "WorkloadWithJob",
)
# Those that change something in older versions only: in the newest they are locked, or gone.
OLDER_FEATURE_GATES: Final = (
    "CSIServiceAccountTokenSecrets",
    "DRAAdminAccess",
    "DRADeviceTaintRules",
    "DRADeviceTaints",
    "DRAExtendedResource",
    "DRAPrioritizedList",
    "DRAResourceClaimDeviceStatus",
    "DynamicResourceAllocation",
    "HPAConfigurableTolerance",
    "HostnameOverride",
    "ImageVolume",
    "InPlacePodVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    "JobManagedBy",
    "JobPodReplacementPolicy",
    "MutableCSINodeAllocatableCount",
    "NodeDeclaredFeatures",
    "PodLifecycleSleepAction",
    "PodObservedGenerationTracking",
    "PreferSameTrafficDistribution",
    "ProcMountType",
    "RecoverVolumeExpansionFailure",
    "RelaxedServiceNameValidation",
    "SELinuxMountReadWriteOncePod",
    "SupplementalGroupsPolicy",
    "UserNamespacesSupport",
    "VolumeAttributesClass",
    "WatchCacheInitializationPostStartHook",
    "WorkloadAwarePreemption",
)


# What an answered write in a data directory survives: a loss of power, the end of the process, or that without the file being sound
# after a loss of power.
SYNCS: Final = ("full", "normal", "off")


# How built-in kinds can be written to an etcd.
MEDIA_TYPES: Final = ("application/vnd.kubernetes.protobuf", "application/json")


class EtcdOptions(Struct, kw_only=True):
    """The etcd in which objects are stored, by upstream's names; without `servers` they are in memory. `event_ttl`: seconds.

    `starts`: a command starts one of its own for its time, with `binary`, or what it finds, and names it in `servers`."""

    starts: bool = False
    binary: str = ""
    servers: tuple[str, ...] = ()
    prefix: str = "/registry"
    cafile: str = ""
    certfile: str = ""
    keyfile: str = ""
    media_type: str = MEDIA_TYPES[0]
    event_ttl: float = 3600.0
    encryption_config: Path | None = None
    reloads_encryption: bool = False


class Config(Struct, kw_only=True):
    """All fields have defaults that work: loopback, a free port, a CA made at start."""

    bind_address: str = "127.0.0.1"
    external_hostname: str = ""
    # Seconds. History is forgotten after one to two such intervals, as when etcd is compacted; 0: only when it is too large.
    etcd_compaction_interval: float = 0.0
    advertise_address: str = ""  # where clients in the cluster reach the server; none by default
    secure_port: int = 0
    cert_dir: Path | None = None
    tls_cert_file: Path | None = None
    tls_private_key_file: Path | None = None
    client_ca_file: Path | None = None
    token_auth_file: Path | None = None
    # Without a certificate and a CA, the server makes a front proxy of its own, with kubeadm's names.
    proxy_client_cert_file: Path | None = None
    proxy_client_key_file: Path | None = None
    requestheader_client_ca_file: Path | None = None
    requestheader_allowed_names: tuple[str, ...] = ()
    requestheader_username_headers: tuple[str, ...] = ()
    requestheader_uid_headers: tuple[str, ...] = ()
    requestheader_group_headers: tuple[str, ...] = ()
    requestheader_extra_headers_prefix: tuple[str, ...] = ()
    kubelet_client_certificate: Path | None = None
    kubelet_client_key: Path | None = None
    kubelet_certificate_authority: Path | None = None
    kubelet_preferred_address_types: tuple[str, ...] = ()
    enable_aggregator_routing: bool = False
    aggregator_reject_forwarding_redirect: bool = True
    anonymous_auth: bool = True
    enable_bootstrap_token_auth: bool = False
    authentication_config: Path | None = None
    authentication_token_webhook_config_file: Path | None = None
    authentication_token_webhook_version: str = "v1beta1"
    authentication_token_webhook_cache_ttl: float = 120.0  # seconds
    oidc_issuer_url: str = ""
    oidc_client_id: str = ""
    oidc_ca_file: Path | None = None
    oidc_username_claim: str = "sub"
    oidc_username_prefix: str = ""
    oidc_groups_claim: str = ""
    oidc_groups_prefix: str = ""
    oidc_required_claim: Mapping[str, str] = field(default_factory=dict)
    oidc_signing_algs: tuple[str, ...] = ("RS256",)
    authorization_mode: tuple[str, ...] = ("Node", "RBAC")
    authorization_config: Path | None = None
    authorization_policy_file: Path | None = None
    authorization_webhook_config_file: Path | None = None
    authorization_webhook_version: str = "v1beta1"
    authorization_webhook_cache_authorized_ttl: float = 300.0  # seconds
    authorization_webhook_cache_unauthorized_ttl: float = 30.0  # seconds
    service_cluster_ip_range: str = "10.0.0.0/24"
    service_node_port_range: range = range(30000, 32768)
    kubernetes_service_node_port: int = 0  # 0: the service `kubernetes` has none
    service_account_issuer: tuple[str, ...] = (DEFAULT_ISSUER,)  # the first signs, all are known
    service_account_key_file: tuple[Path, ...] = ()
    service_account_signing_key_file: Path | None = None
    service_account_extend_token_expiration: bool = True
    service_account_jwks_uri: str = ""
    service_account_lookup: bool = True
    service_account_max_token_expiration: float = 0.0  # seconds; 0: as long as is asked for
    api_audiences: tuple[str, ...] = ()
    # The older flag: these plugins and no others.
    admission_control: tuple[str, ...] = ()
    admission_control_config_file: Path | None = None
    enable_admission_plugins: tuple[str, ...] = ()
    # None: ServiceAccount is disabled if no controller makes the accounts that it requires, as in envtest.
    disable_admission_plugins: tuple[str, ...] | None = None
    controllers: tuple[str, ...] = ("*",)
    step_controllers: tuple[str, ...] = ()
    nodes: int = 0
    local_storage: bool = False  # a default storage class, and who makes its volumes
    cloud_storage: bool = False  # claims of every storage class get volumes
    ui: bool = False  # the page in a browser, and the recording that it shows
    ui_port: int = 0  # its port on loopback; 0 takes a free one
    records: bool = False  # the recording without the page
    load_balancers: bool = False  # services of that type get addresses
    metrics: tuple[str, ...] = ()  # which metrics APIs are served from the start: resource, custom, external, * for all
    stages: Sources = ()  # KWOK's Stage objects, which say what becomes of nodes and pods
    seed: int | None = None  # uids, names, addresses and orders follow from it; None: from chance
    stopped_at: float | None = None  # seconds since the epoch at which the clock stands from the start; None: it goes
    load: Path | None = None  # a saved state to start with
    etcd: EtcdOptions = field(default_factory=EtcdOptions)
    read_only: bool = False  # nothing is written to the etcd or the data directory, and clients' writes are refused
    data_dir: Path | None = None  # where the state is kept; None: in memory only
    sync: str = "full"  # one of SYNCS
    faults: tuple[Path, ...] = ()  # YAML files of faults, which exist from the start
    enable_priority_and_fairness: bool = True
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    max_requests_inflight: int = 400
    max_mutating_requests_inflight: int = 200
    request_timeout: float = 60.0  # seconds
    min_request_timeout: int = 1800  # seconds; what a watch lives at least
    audit: AuditOptions = field(default_factory=AuditOptions)  # --audit-*
    kubernetes_version: str = NEWEST  # or an older minor version: 1.35, v1.35
    emulated_version: str = ""  # kube=1.35 or 1.35; "" for that version itself
    min_compatibility_version: str = ""
    runtime_config: Mapping[str, str] = field(default_factory=dict)  # {"api/all": "true", "batch/v1": "false"}
    kept_requests: int = 0  # so many of the last requests of clients are kept (evidence/request_log.py)
    kept_request_bytes: int = 32 << 20  # and at most about so many bytes of them
    prints_requests: bool = False  # each request of a client is a line of the log
    records_access: bool = False  # allowed and denied requests are recorded (server/filters/access_log.py)
    crds: Sources = ()  # CustomResourceDefinitions, and webhook configurations, to install before the server is ready
    webhooks: Sources = ()
    webhook_port: int = 0  # where their server is asked; 0 takes a free one
    webhook_cert_dir: Path | None = None  # where its certificate goes; None: a folder for as long as the server lives
    context_name: str = "fakeapiserver"  # of the context, cluster and user in kubeconfigs
    given: frozenset[str] = frozenset()  # the flags that were set: some contradict each other whatever they say

    @property
    def emulation(self) -> Emulation:
        """The version that is emulated. Raises ValueError in upstream's words."""
        return emulation(self.kubernetes_version, self.emulated_version, self.min_compatibility_version)

    @property
    def features(self) -> FeatureGates:
        """The feature gates. Raises ValueError in upstream's words."""
        return feature_gates(minor_version(self.kubernetes_version), self.feature_gates, self.emulation)

    @property
    def is_recorded(self) -> bool:
        """Reports whether everything that happens is recorded (evidence/timeline)."""
        return self.ui or self.records

    @property
    def service_ranges(self) -> tuple[str, ...]:
        """The parts of service_cluster_ip_range; by default, addresses come from the first."""
        return tuple(filter(None, self.service_cluster_ip_range.split(",")))
