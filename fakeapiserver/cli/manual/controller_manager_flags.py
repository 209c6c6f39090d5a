"""The flags of kube-controller-manager by its topics. Their meaning is upstream's, the sentences are this project's; defaults are
recorded in apis/versions/."""

from typing import Final

from fakeapiserver.cli.manual import shared
from fakeapiserver.cli.manual.entry import Flag


def _workers(noun: str) -> Flag:
    return Flag(f"How many {noun} are worked on at a time.")


def _signer(certificates: str) -> tuple[Flag, Flag]:
    """Returns the flags for the certificate and the key of a signer."""
    return (
        Flag(f"The authority that signs {certificates}, instead of --cluster-signing-cert-file.", "", "FILE"),
        Flag("The key of this authority.", "", "FILE"),
    )


_CLIENT: Final = _signer("client certificates for the API server")
_KUBELET_CLIENT: Final = _signer("kubelets' client certificates")
_KUBELET_SERVING: Final = _signer("kubelets' serving certificates")
_LEGACY: Final = _signer("certificates of kubernetes.io/legacy-unknown")
TOPICS: Final = {
    "Connection": {
        "kubeconfig": Flag("The kubeconfig of the API server; required.", "", "FILE", "--kubeconfig=kubeconfig"),
        "master": Flag(
            "The URL of the API server, instead of the kubeconfig's.", "", "URL", "--master=http://127.0.0.1:8001"
        ),
        "kube-api-qps": Flag("The requests per second.", "", "RATE", "--kube-api-qps=100"),
        "kube-api-burst": Flag("How many requests may go at once after a pause.", "", "N", "--kube-api-burst=200"),
        "kube-api-content-type": Flag("The encoding of requests."),
    },
    "Debugging": {
        "contention-profiling": Flag("Profiles waiting for locks."),
        "profiling": Flag("Serves profiles at /debug/pprof."),
    },
    "Leader migration": {
        "enable-leader-migration": Flag("Migrates controllers between managers without a pause."),
        "leader-migration-config": Flag("A LeaderMigrationConfiguration file.", "", "FILE"),
    },
    "Generic": {
        "controllers": Flag(
            "The controllers to run: * for all that are on by default, NAME, or -NAME.",
            "",
            "LIST",
            "--controllers='*,-cronjob-controller'",
            "controllers",
        ),
        "allocate-node-cidrs": Flag("Gives each node a range of addresses for its pods."),
        "allow-untagged-cloud": Flag("Lets a cloud provider run without a cluster's tag; deprecated."),
        "cidr-allocator-type": Flag("How these ranges are chosen."),
        "cloud-config": Flag("The configuration of the cloud provider.", "", "FILE"),
        "cloud-provider": Flag("The cloud provider."),
        "cluster-cidr": Flag("The addresses of pods.", "", "CIDR"),
        "cluster-name": Flag("The name of the cluster."),
        "configure-cloud-routes": Flag("Lets the cloud provider make routes between nodes."),
        "controller-shutdown-timeout": Flag("How long controllers may take to end."),
        "controller-start-interval": Flag("The time between the starts of two controllers."),
        "emulated-version": Flag("The version to emulate."),
        "external-cloud-volume-plugin": Flag("The volume plugin of an external cloud provider."),
        "feature-gates": Flag(
            "Turns feature gates on and off; may be repeated.", "", "GATE=BOOLEAN,...", "", "feature-gates"
        ),
        "leader-elect": Flag(
            "Acts only while it holds the lease of kube-controller-manager.", "", "", "--leader-elect=false"
        ),
        "leader-elect-lease-duration": Flag("How long another manager waits for a leader that is silent."),
        "leader-elect-renew-deadline": Flag("How long a leader tries to renew its lease before it gives up."),
        "leader-elect-resource-lock": Flag("The resource of the lock; only leases."),
        "leader-elect-resource-name": Flag("The name of the lock.", "", "NAME", "--leader-elect-resource-name=second"),
        "leader-elect-resource-namespace": Flag("The namespace of the lock."),
        "leader-elect-retry-period": Flag("The time between two tries to get or renew the lock."),
        "min-compatibility-version": Flag("The oldest version to be compatible with."),
        "min-resync-period": Flag("The least time after which controllers look at everything again."),
        "node-monitor-period": Flag("How often the heartbeats of nodes are checked."),
        "node-sync-period": Flag("How often the cloud's nodes are looked at; deprecated."),
        "route-reconciliation-period": Flag("How often the cloud's routes are looked at."),
        "use-service-account-credentials": Flag(
            "Gives each controller a service account of its own.", "", "", "--use-service-account-credentials"
        ),
    },
    "Secure serving": {
        "bind-address": Flag("The address of /healthz and /metrics.", "", "ADDRESS", "--bind-address=127.0.0.1"),
        "secure-port": Flag("The port of /healthz and /metrics; 0 for none.", "", "PORT", "--secure-port=0"),
        "cert-dir": Flag("The folder of its certificates.", "kept in memory", "DIR"),
        **shared.TLS,
    },
    "Authentication": {
        "authentication-kubeconfig": Flag("The API server that reviews tokens.", "none", "FILE"),
        "authentication-skip-lookup": Flag("Doesn't look up the cluster's authorities."),
        "authentication-token-webhook-cache-ttl": Flag("How long reviews of tokens are kept."),
        "authentication-tolerate-lookup-failure": Flag(
            "Starts without the cluster's authorities if they can't be read."
        ),
        "client-ca-file": Flag("Accepts client certificates of these authorities.", "", "FILE"),
        **shared.REQUEST_HEADER,
    },
    "Authorization": {
        "authorization-always-allow-paths": Flag("The paths that everyone may get.", "", "PATHS"),
        "authorization-kubeconfig": Flag("The API server that authorizes requests.", "none", "FILE"),
        "authorization-webhook-cache-authorized-ttl": Flag("How long its permissions are kept."),
        "authorization-webhook-cache-unauthorized-ttl": Flag("How long its refusals are kept."),
    },
    "Volumes": {
        "attach-detach-reconcile-sync-period": Flag("How often attached volumes are compared with nodes."),
        "disable-attach-detach-reconcile-sync": Flag("Leaves this comparison out."),
        "disable-force-detach-on-timeout": Flag("Never detaches a volume from a node that doesn't answer."),
        "concurrent-ephemeralvolume-syncs": _workers("ephemeral volumes"),
        "enable-dynamic-provisioning": Flag("Makes volumes for claims of a StorageClass."),
        "enable-hostpath-provisioner": Flag("Makes hostPath volumes; for tests."),
        "flex-volume-plugin-dir": Flag("The folder of FlexVolume plugins.", "", "DIR"),
        "pv-recycler-increment-timeout-nfs": Flag("The seconds that a recycler of NFS gets for each GiB."),
        "pv-recycler-minimum-timeout-hostpath": Flag("The least seconds for a recycler of hostPath."),
        "pv-recycler-minimum-timeout-nfs": Flag("The least seconds for a recycler of NFS."),
        "pv-recycler-pod-template-filepath-hostpath": Flag("The template of hostPath's recycler.", "", "FILE"),
        "pv-recycler-pod-template-filepath-nfs": Flag("The template of NFS's recycler.", "", "FILE"),
        "pv-recycler-timeout-increment-hostpath": Flag("The seconds that a recycler of hostPath gets for each GiB."),
        "pvclaimbinder-sync-period": Flag("How often volumes and claims are compared."),
    },
    "Certificates": {
        "cluster-signing-cert-file": Flag("The authority that signs CertificateSigningRequests.", "", "FILE"),
        "cluster-signing-key-file": Flag("The key of this authority.", "", "FILE"),
        "cluster-signing-duration": Flag("The longest life of a signed certificate."),
        "cluster-signing-kube-apiserver-client-cert-file": _CLIENT[0],
        "cluster-signing-kube-apiserver-client-key-file": _CLIENT[1],
        "cluster-signing-kubelet-client-cert-file": _KUBELET_CLIENT[0],
        "cluster-signing-kubelet-client-key-file": _KUBELET_CLIENT[1],
        "cluster-signing-kubelet-serving-cert-file": _KUBELET_SERVING[0],
        "cluster-signing-kubelet-serving-key-file": _KUBELET_SERVING[1],
        "cluster-signing-legacy-unknown-cert-file": _LEGACY[0],
        "cluster-signing-legacy-unknown-key-file": _LEGACY[1],
    },
    "Workloads": {
        "concurrent-cron-job-syncs": _workers("CronJobs"),
        "concurrent-daemonset-syncs": _workers("DaemonSets"),
        "concurrent-disruption-syncs": _workers("PodDisruptionBudgets"),
        "concurrent-deployment-syncs": _workers("Deployments"),
        "concurrent-device-taint-eviction-syncs": _workers("devices' taints"),
        "concurrent-job-syncs": _workers("Jobs"),
        "concurrent-rc-syncs": _workers("ReplicationControllers"),
        "concurrent-replicaset-syncs": _workers("ReplicaSets"),
        "concurrent-resourceclaim-syncs": _workers("ResourceClaims"),
        "concurrent-statefulset-syncs": _workers("StatefulSets"),
        "concurrent-ttl-after-finished-syncs": _workers("finished Jobs"),
        "concurrent-horizontal-pod-autoscaler-syncs": _workers("HorizontalPodAutoscalers"),
        "horizontal-pod-autoscaler-cpu-initialization-period": Flag("How long the CPU usage of a new pod is ignored."),
        "horizontal-pod-autoscaler-downscale-stabilization": Flag(
            "How long a lower number must hold before pods are deleted."
        ),
        "horizontal-pod-autoscaler-initial-readiness-delay": Flag(
            "How long a new pod's readiness may change without counting."
        ),
        "horizontal-pod-autoscaler-sync-period": Flag("How often autoscalers look at metrics."),
        "horizontal-pod-autoscaler-tolerance": Flag("The change of metrics that autoscalers ignore, as a share."),
        "terminated-pod-gc-threshold": Flag("How many ended pods are kept."),
    },
    "Services": {
        "concurrent-endpoint-syncs": _workers("Endpoints"),
        "endpoint-updates-batch-period": Flag("How long changes of pods are gathered before Endpoints are written."),
        "concurrent-service-endpoint-syncs": _workers("Services' EndpointSlices"),
        "endpointslice-updates-batch-period": Flag("How long changes of pods are gathered before slices are written."),
        "max-endpoints-per-slice": Flag("The most endpoints of a slice."),
        "mirroring-concurrent-service-endpoint-syncs": _workers("mirrored Endpoints"),
        "mirroring-endpointslice-updates-batch-period": Flag("How long changes of Endpoints are gathered."),
        "mirroring-max-endpoints-per-subset": Flag("The most mirrored endpoints of a subset."),
    },
    "Namespaces, garbage and quotas": {
        "concurrent-gc-syncs": _workers("objects for the garbage collector"),
        "enable-garbage-collector": Flag("Deletes the dependents of deleted owners."),
        "concurrent-namespace-syncs": _workers("namespaces"),
        "namespace-sync-period": Flag("How often all namespaces are looked at."),
        "concurrent-resource-quota-syncs": _workers("ResourceQuotas"),
        "resource-quota-sync-period": Flag("How often all quotas are computed again."),
        "concurrent-validating-admission-policy-status-syncs": _workers("ValidatingAdmissionPolicies"),
    },
    "Service accounts": {
        "concurrent-serviceaccount-token-syncs": _workers("service accounts' tokens"),
        "root-ca-file": Flag("The authority that tokens' Secrets and kube-root-ca.crt contain.", "", "FILE"),
        "service-account-private-key-file": Flag("The key that signs tokens in Secrets.", "", "FILE"),
        "legacy-service-account-token-clean-up-period": Flag("How long an unused token in a Secret is kept."),
    },
    "Nodes": {
        "node-cidr-mask-size": Flag("The size of each node's range of addresses; 0 is 24 for IPv4, 64 for IPv6."),
        "node-cidr-mask-size-ipv4": Flag("The size of each node's IPv4 range; 0 is 24."),
        "node-cidr-mask-size-ipv6": Flag("The size of each node's IPv6 range; 0 is 64."),
        "service-cluster-ip-range": Flag("The addresses of Services, which nodes don't get.", "", "CIDR"),
        "large-cluster-size-threshold": Flag("Up to this many nodes, no pods are evicted in an unhealthy zone."),
        "node-eviction-rate": Flag("The nodes per second whose pods are evicted in a healthy zone."),
        "node-monitor-grace-period": Flag(
            "How long a node may be silent before it is unhealthy.", "", "", "--node-monitor-grace-period=10s"
        ),
        "node-startup-grace-period": Flag("How long a new node may be silent."),
        "secondary-node-eviction-rate": Flag("The nodes per second whose pods are evicted in an unhealthy zone."),
        "unhealthy-zone-threshold": Flag("The share of silent nodes from which a zone is unhealthy."),
    },
    "Metrics": shared.METRICS,
    "Logs": shared.LOGS,
    "Global": shared.GLOBAL,
}
FIRST: Final = (
    "kubeconfig",
    "controllers",
    "leader-elect",
    "use-service-account-credentials",
    "kube-api-qps",
    "kube-api-burst",
    "secure-port",
    "bind-address",
    "node-monitor-grace-period",
    "v",
)
# Those that are accepted with a warning.
WITHOUT_EFFECT: Final = frozenset(
    [
        "allow-metric-labels",
        "allow-metric-labels-manifest",
        "allow-untagged-cloud",
        "authentication-token-webhook-cache-ttl",
        "cert-dir",
        "cloud-config",
        "cloud-provider",
        "cluster-name",
        "configure-cloud-routes",
        "contention-profiling",
        "controller-shutdown-timeout",
        "disable-http2-serving",
        "disabled-metrics",
        "emulated-version",
        "enable-hostpath-provisioner",
        "enable-leader-migration",
        "external-cloud-volume-plugin",
        "flex-volume-plugin-dir",
        "http2-max-streams-per-connection",
        "kube-api-content-type",
        "leader-migration-config",
        "log-flush-frequency",
        "log-json-info-buffer-size",
        "log-json-split-stream",
        "log-text-info-buffer-size",
        "log-text-split-stream",
        "logging-format",
        "min-compatibility-version",
        "min-resync-period",
        "node-sync-period",
        "permit-address-sharing",
        "permit-port-sharing",
        "profiling",
        "pv-recycler-increment-timeout-nfs",
        "pv-recycler-minimum-timeout-hostpath",
        "pv-recycler-minimum-timeout-nfs",
        "pv-recycler-pod-template-filepath-hostpath",
        "pv-recycler-pod-template-filepath-nfs",
        "pv-recycler-timeout-increment-hostpath",
        "route-reconciliation-period",
        "show-hidden-metrics-for-version",
        "tls-cipher-suites",
        "tls-curve-preferences",
        "tls-min-version",
        "tls-sni-cert-key",
        "vmodule",
    ]
)
