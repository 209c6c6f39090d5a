"""The list of controllers (upstream: cmd/kube-controller-manager/app/controller_descriptor.go, names/controller_names.go)."""

from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol, cast

from msgspec import Struct

if TYPE_CHECKING:
    from fakeapiserver.component_helpers.controller_context import ControllerContext
    from fakeapiserver.controller_runtime.controller import Controller


class Constructor(Protocol):
    """The function `new` of a module in fakeapiserver.controllers."""

    def __call__(self, context: "ControllerContext") -> "Sequence[Controller]":
        """The queues and workers it consists of; none where the configuration leaves it nothing to do."""


class ControllerDescriptor(Struct, frozen=True):
    """A controller that the manager can start.

    account: its service account in kube-system; "": it uses the manager's own identity.
    module: of fakeapiserver.controllers; imported when the controller starts. Empty: it is not built, and `left_out` says why.
    alias: its former name, for --controllers.
    gates: the feature gates without which it has nothing to do (upstream: requiredFeatureGates).
    """

    name: str
    account: str
    module: str = ""
    alias: str = ""
    disabled_by_default: bool = False
    left_out: str = ""
    gates: Sequence[str] = ()

    def new(self, context: "ControllerContext") -> "Sequence[Controller]":
        """Makes it; nothing runs yet. Returns no queues while one of its feature gates is off."""
        if not all(map(context.configuration.feature_gates.enabled, self.gates)):
            return ()
        constructor = cast("Constructor", import_module(f"fakeapiserver.controllers.{self.module}").new)
        return constructor(context)


_CLOUD: Final = "belongs to a cloud provider, and kube-controller-manager 1.37 doesn't have it"
_GATED: Final = "its feature gate is off by default, and what it acts on isn't served then"

_DESCRIPTORS: Final = (
    # The first, so that others' tokens are there; so it can't have one itself.
    ControllerDescriptor("serviceaccount-token-controller", "", "serviceaccount_token", alias="serviceaccount-token"),
    ControllerDescriptor("endpoints-controller", "endpoint-controller", "endpoint", alias="endpoint"),
    ControllerDescriptor(
        "endpointslice-controller", "endpointslice-controller", "endpointslice", alias="endpointslice"
    ),
    ControllerDescriptor(
        "endpointslice-mirroring-controller",
        "endpointslicemirroring-controller",
        "endpointslicemirroring",
        alias="endpointslicemirroring",
    ),
    ControllerDescriptor(
        "replicationcontroller-controller",
        "replication-controller",
        "replicationcontroller",
        alias="replicationcontroller",
    ),
    ControllerDescriptor("pod-garbage-collector-controller", "pod-garbage-collector", "podgc", alias="podgc"),
    ControllerDescriptor(
        "resourcequota-controller", "resourcequota-controller", "resourcequota", alias="resourcequota"
    ),
    ControllerDescriptor("namespace-controller", "namespace-controller", "namespace", alias="namespace"),
    ControllerDescriptor(
        "serviceaccount-controller", "service-account-controller", "serviceaccount", alias="serviceaccount"
    ),
    ControllerDescriptor(
        "garbage-collector-controller", "generic-garbage-collector", "garbage_collector", alias="garbagecollector"
    ),
    ControllerDescriptor("daemonset-controller", "daemon-set-controller", "daemonset", alias="daemonset"),
    ControllerDescriptor("job-controller", "job-controller", "job", alias="job"),
    ControllerDescriptor("podgroup-protection-controller", "podgroup-protection-controller", left_out=_GATED),
    ControllerDescriptor("deployment-controller", "deployment-controller", "deployment", alias="deployment"),
    ControllerDescriptor("replicaset-controller", "replicaset-controller", "replicaset", alias="replicaset"),
    ControllerDescriptor(
        "horizontal-pod-autoscaler-controller",
        "horizontal-pod-autoscaler",
        "horizontal_pod_autoscaler",
        alias="horizontalpodautoscaling",
    ),
    ControllerDescriptor("disruption-controller", "disruption-controller", "disruption", alias="disruption"),
    ControllerDescriptor("statefulset-controller", "statefulset-controller", "statefulset", alias="statefulset"),
    ControllerDescriptor("cronjob-controller", "cronjob-controller", "cronjob", alias="cronjob"),
    ControllerDescriptor(
        "certificatesigningrequest-signing-controller",
        "certificate-controller",
        "certificatesigningrequest_signing",
        alias="csrsigning",
    ),
    ControllerDescriptor(
        "certificatesigningrequest-approving-controller",
        "certificate-controller",
        "certificatesigningrequest_approving",
        alias="csrapproving",
    ),
    ControllerDescriptor(
        "certificatesigningrequest-cleaner-controller",
        "certificate-controller",
        "certificatesigningrequest_cleaner",
        alias="csrcleaner",
    ),
    ControllerDescriptor(
        "podcertificaterequest-cleaner-controller",
        "podcertificaterequestcleaner",
        "podcertificaterequest_cleaner",
        gates=("PodCertificateRequest",),
    ),
    ControllerDescriptor("ttl-controller", "ttl-controller", "ttl", alias="ttl"),
    ControllerDescriptor(
        "bootstrap-signer-controller",
        "bootstrap-signer",
        "bootstrap_signer",
        alias="bootstrapsigner",
        disabled_by_default=True,
    ),
    ControllerDescriptor(
        "token-cleaner-controller", "token-cleaner", "token_cleaner", alias="tokencleaner", disabled_by_default=True
    ),
    ControllerDescriptor("node-ipam-controller", "node-controller", "node_ipam", alias="nodeipam"),
    ControllerDescriptor("node-lifecycle-controller", "node-controller", "node_lifecycle", alias="nodelifecycle"),
    ControllerDescriptor("service-lb-controller", "service-controller", alias="service", left_out=_CLOUD),
    ControllerDescriptor("node-route-controller", "route-controller", alias="route", left_out=_CLOUD),
    ControllerDescriptor(
        "cloud-node-lifecycle-controller", "cloud-controller", alias="cloud-node-lifecycle", left_out=_CLOUD
    ),
    ControllerDescriptor(
        "persistentvolume-binder-controller",
        "persistent-volume-binder",
        "persistentvolume_binder",
        alias="persistentvolume-binder",
    ),
    ControllerDescriptor(
        "persistentvolume-attach-detach-controller",
        "attachdetach-controller",
        "attach_detach",
        alias="attachdetach",
    ),
    ControllerDescriptor(
        "persistentvolume-expander-controller",
        "expand-controller",
        "persistentvolume_expander",
        alias="persistentvolume-expander",
    ),
    ControllerDescriptor(
        "clusterrole-aggregation-controller",
        "clusterrole-aggregation-controller",
        "clusterrole_aggregation",
        alias="clusterrole-aggregation",
    ),
    ControllerDescriptor(
        "persistentvolumeclaim-protection-controller",
        "pvc-protection-controller",
        "persistentvolumeclaim_protection",
        alias="pvc-protection",
    ),
    ControllerDescriptor(
        "persistentvolume-protection-controller",
        "pv-protection-controller",
        "persistentvolume_protection",
        alias="pv-protection",
    ),
    ControllerDescriptor(
        "volumeattributesclass-protection-controller",
        "volumeattributesclass-protection-controller",
        "volumeattributesclass_protection",
    ),
    ControllerDescriptor(
        "ttl-after-finished-controller",
        "ttl-after-finished-controller",
        "ttl_after_finished",
        alias="ttl-after-finished",
    ),
    ControllerDescriptor(
        "root-ca-certificate-publisher-controller",
        "root-ca-cert-publisher",
        "root_ca_certificate_publisher",
        alias="root-ca-cert-publisher",
    ),
    ControllerDescriptor(
        "kube-apiserver-serving-clustertrustbundle-publisher-controller",
        "kube-apiserver-serving-clustertrustbundle-publisher",
        "clustertrustbundle_publisher",
        gates=("ClusterTrustBundle",),
    ),
    ControllerDescriptor(
        "ephemeral-volume-controller", "ephemeral-volume-controller", "ephemeral_volume", alias="ephemeral-volume"
    ),
    ControllerDescriptor(
        "storageversion-garbage-collector-controller",
        "storage-version-garbage-collector",
        alias="storage-version-gc",
        left_out=_GATED,
    ),
    ControllerDescriptor(
        "resourceclaim-controller",
        "resource-claim-controller",
        "resourceclaim",
        alias="resource-claim-controller",
    ),
    ControllerDescriptor(
        "resourcepoolstatusrequest-controller", "resourcepoolstatusrequest-controller", left_out=_GATED
    ),
    ControllerDescriptor(
        "device-taint-eviction-controller", "device-taint-eviction-controller", "device_taint_eviction"
    ),
    ControllerDescriptor(
        "legacy-serviceaccount-token-cleaner-controller",
        "legacy-service-account-token-cleaner",
        "legacy_serviceaccount_token_cleaner",
        alias="legacy-service-account-token-cleaner",
    ),
    ControllerDescriptor(
        "validatingadmissionpolicy-status-controller",
        "validatingadmissionpolicy-status-controller",
        left_out="runs within the API server (server/upkeep/policy_status.py) where --controllers names it",
    ),
    ControllerDescriptor("taint-eviction-controller", "node-controller", "taint_eviction"),
    ControllerDescriptor("service-cidr-controller", "service-cidrs-controller", "servicecidr"),
    ControllerDescriptor(
        "storage-version-migrator-controller",
        "storage-version-migrator-controller",
        "storage_version_migrator",
        alias="svm",
        gates=("StorageVersionMigrator",),
    ),
    ControllerDescriptor(
        "selinux-warning-controller", "selinux-warning-controller", "selinux_warning", disabled_by_default=True
    ),
)
# What kube-controller-manager's metrics call the work queues of controllers (`workqueue_depth{name="deployment"}`).
QUEUE_NAMES: Final[Mapping[str, str]] = {
    "bootstrap-signer-controller": "bootstrap_signer_queue",
    "certificatesigningrequest-approving-controller": "certificate",
    "kube-apiserver-serving-clustertrustbundle-publisher-controller": "ca_cert_publisher_cluster_trust_bundles",
    "clusterrole-aggregation-controller": "ClusterRoleAggregator",
    "cronjob-controller": "cronjob",
    "daemonset-controller": "daemonset",
    "deployment-controller": "deployment",
    "disruption-controller": "disruption",
    "disruption-controller-stale-pods": "stale_pod_disruption",
    "endpoints-controller": "endpoint",
    "endpointslice-controller": "endpoint_slice",
    "endpointslice-mirroring-controller": "endpoint_slice_mirroring",
    "ephemeral-volume-controller": "ephemeral_volume",
    "garbage-collector-controller-attempt-to-delete": "garbage_collector_attempt_to_delete",
    "garbage-collector-controller-attempt-to-orphan": "garbage_collector_attempt_to_orphan",
    "horizontal-pod-autoscaler-controller": "horizontalpodautoscaler",
    "job-controller": "job",
    "job-controller-orphan-pods": "job_orphan_pod",
    "namespace-controller": "namespace",
    "node-lifecycle-pods": "node_lifecycle_controller_pods",
    "node-lifecycle-taints": "node_lifecycle_controller",
    "persistentvolume-binder-controller-claims": "claims",
    "persistentvolume-binder-controller-volumes": "volumes",
    "persistentvolume-expander-controller": "volume_expand",
    "persistentvolume-protection-controller": "pvprotection",
    "persistentvolumeclaim-protection-controller": "pvcprotection",
    "pod-garbage-collector-controller": "orphaned_pods_nodes",
    "replicaset-controller": "replicaset",
    "replicationcontroller-controller": "replicationmanager",
    "resourceclaim-controller": "resource_claim",
    "resourcequota-controller": "resourcequota_primary",
    "root-ca-certificate-publisher-controller": "root_ca_cert_publisher",
    "selinux-warning-controller": "selinux_warning",
    "service-cidr-controller": "ipaddresses",
    "serviceaccount-controller": "serviceaccount",
    "serviceaccount-token-controller": "serviceaccount_tokens_service",
    "statefulset-controller": "statefulset",
    "taint-eviction-controller": "noexec_taint_pod",
    "token-cleaner-controller": "token_cleaner",
    "ttl-after-finished-controller": "ttl_jobs_to_delete",
    "ttl-controller": "ttlcontroller",
    "volumeattributesclass-protection-controller": "vacprotection",
}
DESCRIPTORS: Final[Mapping[str, ControllerDescriptor]] = {found.name: found for found in _DESCRIPTORS}
# Those that are here.
AVAILABLE: Final[Mapping[str, ControllerDescriptor]] = {found.name: found for found in _DESCRIPTORS if found.module}
_ALIASES: Final = {found.alias: found.name for found in _DESCRIPTORS if found.alias}


def users(nodes: int) -> Collection[str]:
    """Returns the users in whose names controllers and so many simulated nodes send requests."""
    accounts = {f"system:serviceaccount:kube-system:{descriptor.account}" for descriptor in _DESCRIPTORS}
    simulated = {f"system:node:node-{number}" for number in range(1, nodes + 1)}
    provisioners = ("local-path-provisioner-service-account", "csi-provisioner")
    accounts |= {f"system:serviceaccount:kube-system:{account}" for account in provisioners}
    return {*accounts, *simulated, "system:kube-controller-manager", "system:kube-scheduler"}


def canonical(name: str) -> str:
    """Returns a controller's name, given the name or its alias. Raises ValueError for an unknown one."""
    name_of_alias = _ALIASES.get(name, name)
    if name_of_alias not in DESCRIPTORS:
        raise ValueError(f'"{name}" is not in the list of known controllers')
    return name_of_alias


def _is_known(name: str) -> bool:
    return _ALIASES.get(name, name) in DESCRIPTORS


def selected(controllers: Sequence[str]) -> Sequence[ControllerDescriptor]:
    """Returns the controllers that `--controllers` names and that are built, in the order in which they start.

    `*` is all that are on by default, `name` and `-name` add and remove one; `none`, or no word, selects no
    controller. Raises ValueError
    for an unknown name.
    """
    return [descriptor for descriptor in named(controllers) if descriptor.module]


def named(controllers: Sequence[str]) -> Sequence[ControllerDescriptor]:
    """Returns what `selected` does, with the controllers that are not built."""
    given = [name.removeprefix("-") for name in controllers if name not in ("*", "none")]
    unknown = [f'"{name}" is not in the list of known controllers' for name in given if not _is_known(name)]
    if unknown:
        raise ValueError(unknown[0] if len(unknown) == 1 else f"[{', '.join(unknown)}]")
    wanted = {canonical(name) for name in controllers if name not in ("*", "none") and not name.startswith("-")}
    unwanted = {canonical(name[1:]) for name in controllers if name.startswith("-")}
    everything = "*" in controllers
    return [
        descriptor
        for descriptor in _DESCRIPTORS
        if descriptor.name not in unwanted
        and (descriptor.name in wanted or (everything and not descriptor.disabled_by_default))
    ]
