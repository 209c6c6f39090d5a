"""The flags of kube-apiserver by its topics. Their meaning is upstream's, the sentences are this project's."""

from typing import Final

from fakeapiserver.apis.recorded import NEWEST
from fakeapiserver.cli.manual import shared
from fakeapiserver.cli.manual.audit_flags import AUDITING
from fakeapiserver.cli.manual.entry import Flag

_VERSION: Final = f"kube={NEWEST.removeprefix('v')}"
TOPICS: Final = {
    "Secure serving": {
        "bind-address": Flag("The address to listen on.", "127.0.0.1", "ADDRESS", "--bind-address=0.0.0.0"),
        "secure-port": Flag("The port for HTTPS; 0 takes a free one.", "0", "PORT", "--secure-port=6443"),
        "cert-dir": Flag("The folder for the server's authority and certificates.", "kept in memory", "DIR"),
        **shared.TLS,
    },
    "Authentication": {
        "anonymous-auth": Flag("Lets requests without credentials in as system:anonymous.", "true"),
        "api-audiences": Flag("The audiences that tokens may be for.", "the issuer", "LIST"),
        "authentication-config": Flag("An AuthenticationConfiguration file.", "", "FILE"),
        "authentication-token-webhook-cache-ttl": Flag("How long answers of the token webhook are kept.", "2m"),
        "authentication-token-webhook-config-file": Flag(
            "A kubeconfig of the webhook that reviews tokens.", "", "FILE"
        ),
        "authentication-token-webhook-version": Flag("The version of TokenReview that it gets.", "v1beta1", "VERSION"),
        "client-ca-file": Flag(
            "Accepts client certificates of these authorities, next to the server's own.", "", "FILE"
        ),
        "enable-bootstrap-token-auth": Flag("Accepts bootstrap tokens, Secrets in kube-system.", "false"),
        "oidc-ca-file": Flag("The authority of the OpenID provider.", "the system's", "FILE"),
        "oidc-client-id": Flag("The client that ID tokens are for.", "", "ID"),
        "oidc-groups-claim": Flag("The claim with the user's groups.", "", "CLAIM"),
        "oidc-groups-prefix": Flag("What is put in front of each group.", "", "PREFIX"),
        "oidc-issuer-url": Flag("Accepts ID tokens of this OpenID provider.", "", "URL"),
        "oidc-required-claim": Flag("A claim that an ID token must have; may be repeated.", "", "CLAIM=VALUE"),
        "oidc-signing-algs": Flag("The algorithms that ID tokens may be signed with.", "RS256", "LIST"),
        "oidc-username-claim": Flag("The claim with the user's name.", "sub", "CLAIM"),
        "oidc-username-prefix": Flag("What is put in front of the name; - for nothing.", "", "PREFIX"),
        **shared.REQUEST_HEADER,
        "service-account-extend-token-expiration": Flag("Gives the tokens of pods a year, for old clients.", "true"),
        "service-account-issuer": Flag("The issuer of service account tokens; may be repeated.", "", "URL"),
        "service-account-jwks-uri": Flag("Where the discovery document says the keys are.", "", "URL"),
        "service-account-key-file": Flag("A key that verifies service account tokens; may be repeated.", "", "FILE"),
        "service-account-lookup": Flag("Refuses tokens of deleted service accounts and Secrets.", "true"),
        "service-account-max-token-expiration": Flag("The longest life of a requested token.", "no limit"),
        "token-auth-file": Flag(
            "A CSV file of static tokens: token,user,uid,groups.", "", "FILE", "--token-auth-file=tokens.csv"
        ),
    },
    "Authorization": {
        "authorization-mode": Flag(
            "The authorizers, in order: AlwaysAllow, AlwaysDeny, ABAC, Webhook, RBAC and Node.",
            "Node,RBAC",
            "LIST",
            "--authorization-mode=AlwaysAllow",
            "authorization-modes",
        ),
        "authorization-config": Flag("An AuthorizationConfiguration file, instead of the other flags.", "", "FILE"),
        "authorization-policy-file": Flag("The policies of ABAC, one line of JSON each.", "", "FILE"),
        "authorization-webhook-cache-authorized-ttl": Flag("How long the webhook's permissions are kept.", "5m"),
        "authorization-webhook-cache-unauthorized-ttl": Flag("How long the webhook's refusals are kept.", "30s"),
        "authorization-webhook-config-file": Flag("A kubeconfig of the webhook that authorizes.", "", "FILE"),
        "authorization-webhook-version": Flag("The version of SubjectAccessReview that it gets.", "v1beta1", "VERSION"),
    },
    "Admission": {
        "enable-admission-plugins": Flag(
            "Plugins to run next to the default ones.",
            "none",
            "LIST",
            "--enable-admission-plugins=AlwaysPullImages",
            "admission-plugins",
        ),
        "disable-admission-plugins": Flag(
            "Plugins that don't run.",
            "none",
            "LIST",
            "--disable-admission-plugins=ServiceAccount",
            "admission-plugins",
        ),
        "admission-control": Flag(
            "The plugins that run, and no others; deprecated.", "", "LIST", "", "admission-plugins"
        ),
        "admission-control-config-file": Flag("An AdmissionConfiguration file.", "", "FILE"),
        "default-not-ready-toleration-seconds": Flag(
            "How long pods tolerate a node that is not ready.", "300", "SECONDS"
        ),
        "default-unreachable-toleration-seconds": Flag("How long pods tolerate an unreachable node.", "300", "SECONDS"),
    },
    "API enablement": {
        "runtime-config": Flag(
            "Turns groups and versions on and off.", "", "KEY=BOOLEAN,...", "--runtime-config=api/all=true"
        ),
        "feature-gates": Flag(
            "Turns feature gates on and off; may be repeated.",
            "",
            "GATE=BOOLEAN,...",
            "--feature-gates=AllAlpha=true",
            "feature-gates",
        ),
        "emulated-version": Flag(
            "The older version whose feature gates and resources are served; --kubernetes-version=1.35 serves that version itself.",
            "none is emulated",
            "VERSION",
            "--emulated-version=1.35",
        ),
        "emulation-forward-compatible": Flag("Serves newer versions of beta APIs while emulating.", "false"),
        "min-compatibility-version": Flag(
            "The oldest version to be compatible with.", "the minor version before", "VERSION"
        ),
        "runtime-config-emulation-forward-compatible": Flag(
            "Lets --runtime-config name newer APIs while emulating.", "false"
        ),
    },
    "Requests": {
        "cors-allowed-origins": Flag("Regular expressions of origins that browsers may call from.", "", "LIST"),
        "external-hostname": Flag(
            "A name or address of this server that its certificate is issued for, too.", "", "HOST"
        ),
        "goaway-chance": Flag("The share of HTTP/2 requests whose connection is closed.", "0", "SHARE"),
        "max-mutating-requests-inflight": Flag(
            "The most writes at a time; adds to the limit of priority and fairness.", "200"
        ),
        "max-requests-inflight": Flag("The most reads at a time; adds to the limit of priority and fairness.", "400"),
        "min-request-timeout": Flag("The least seconds that a watch lasts.", "1800", "SECONDS"),
        "request-timeout": Flag("The longest time for a request that isn't a watch.", "1m"),
        "strict-transport-security-directives": Flag("The directives of the HSTS header.", "", "LIST"),
        "enable-priority-and-fairness": Flag("Queues requests by FlowSchemas and PriorityLevelConfigurations.", "true"),
    },
    "Services": {
        "advertise-address": Flag("The address of the Service kubernetes in the cluster.", "none", "ADDRESS"),
        "service-cluster-ip-range": Flag(
            "The addresses of Services; one or two CIDRs.",
            "10.0.0.0/24",
            "CIDR[,CIDR]",
            "--service-cluster-ip-range=10.1.0.0/16",
        ),
        "service-node-port-range": Flag("The node ports of Services.", "30000-32767", "PORT-PORT"),
        "kubernetes-service-node-port": Flag("The node port of the Service kubernetes; 0 for none.", "0", "PORT"),
        "endpoint-reconciler-type": Flag("How several API servers share the Service kubernetes.", "lease", "TYPE"),
    },
    "Kubelets and aggregated servers": {
        "kubelet-certificate-authority": Flag(
            "The authority of the kubelets' certificates.", "none is checked", "FILE"
        ),
        "kubelet-client-certificate": Flag("The certificate to show to kubelets.", "", "FILE"),
        "kubelet-client-key": Flag("The key of --kubelet-client-certificate.", "", "FILE"),
        "kubelet-preferred-address-types": Flag(
            "The types of node addresses to try, in order.",
            "Hostname,InternalDNS,InternalIP,ExternalDNS,ExternalIP",
            "LIST",
        ),
        "kubelet-timeout": Flag("The longest time for a request to a kubelet.", "5s"),
        "proxy-client-cert-file": Flag(
            "The certificate to show to aggregated servers and webhooks.", "a new one", "FILE"
        ),
        "proxy-client-key-file": Flag("The key of --proxy-client-cert-file.", "a new one", "FILE"),
        "enable-aggregator-routing": Flag(
            "Calls aggregated servers at their endpoints, not at the Service's address.", "false"
        ),
        "aggregator-reject-forwarding-redirect": Flag("Answers 502 to an aggregated server's redirect.", "true"),
    },
    "Auditing": AUDITING,
    "Storage": {
        "delete-collection-workers": Flag("The workers of a deletecollection.", "1"),
        "enable-garbage-collector": Flag("Lets deletes wait for dependents.", "true"),
        "encryption-provider-config": Flag("The file that says what is encrypted in etcd.", "", "FILE"),
        "encryption-provider-config-automatic-reload": Flag("Reads this file again when it changes.", "false"),
        "etcd-compaction-interval": Flag("How long history is kept: 0 keeps it until it is large.", "0"),
        "etcd-cafile": Flag("The authority of etcd's certificate.", "", "FILE"),
        "etcd-certfile": Flag("The certificate to show to etcd.", "", "FILE"),
        "etcd-keyfile": Flag("The key of --etcd-certfile.", "", "FILE"),
        "etcd-count-metric-poll-period": Flag("How often objects are counted for metrics.", "1m"),
        "etcd-db-metric-poll-interval": Flag("How often the size of the database is measured.", "30s"),
        "etcd-healthcheck-timeout": Flag("The longest time for etcd's health check.", "2s"),
        "etcd-readycheck-timeout": Flag("The longest time for etcd's readiness check.", "2s"),
        "etcd-prefix": Flag("What all keys in etcd begin with.", "/registry", "PREFIX"),
        "etcd-servers": Flag("The etcd servers that objects are stored in; by default they are in memory.", "", "URLS"),
        "etcd-servers-overrides": Flag("Other etcd servers for single resources.", "", "GROUP/RESOURCE#URLS"),
        "lease-reuse-duration-seconds": Flag("How long a lease of etcd is shared.", "60", "SECONDS"),
        "storage-backend": Flag("The kind of storage.", "etcd3", "NAME"),
        "storage-initialization-timeout": Flag("The longest time until storage is ready.", "1m"),
        "storage-media-type": Flag("The encoding in etcd.", "application/vnd.kubernetes.protobuf", "TYPE"),
        "watch-cache": Flag("Answers lists and watches from memory.", "true"),
        "watch-cache-sizes": Flag("The sizes of caches, by resource.", "", "RESOURCE#SIZE,..."),
        "event-ttl": Flag("How long Events are kept.", "1h"),
    },
    "Several servers": {
        "coordinated-leadership-lease-duration": Flag("How long a coordinated leader's lease is valid.", "15s"),
        "coordinated-leadership-renew-deadline": Flag("How long such a leader tries to renew it.", "10s"),
        "coordinated-leadership-retry-period": Flag("The time between two tries.", "2s"),
        "peer-advertise-ip": Flag("The address at which other API servers reach this one.", "", "ADDRESS"),
        "peer-advertise-port": Flag("The port at which they do.", "", "PORT"),
        "peer-ca-file": Flag("The authority of other API servers' certificates.", "", "FILE"),
    },
    "Start and end": {
        "livez-grace-period": Flag("How long /livez is healthy while the server starts.", "0s"),
        "shutdown-delay-duration": Flag("How long the server goes on after a signal.", "0s"),
        "shutdown-send-retry-after": Flag("Answers 429 with Retry-After during this time.", "false"),
        "shutdown-watch-termination-grace-period": Flag("How long watches may take to end.", "0s"),
    },
    "Debugging": {
        "contention-profiling": Flag("Profiles waiting for locks.", "false"),
        "debug-socket-path": Flag("Serves profiles on this Unix socket.", "", "PATH"),
        "profiling": Flag("Serves profiles at /debug/pprof.", "true"),
        "enable-logs-handler": Flag("Serves /logs.", "false"),
        "tracing-config-file": Flag("A TracingConfiguration file.", "", "FILE"),
    },
    "Metrics": shared.METRICS,
    "Logs": shared.LOGS,
    "Misc": {
        "allow-privileged": Flag("Allows privileged containers; this server always does.", "true"),
        "max-connection-bytes-per-sec": Flag("Limits the speed of streams, in bytes per second.", "0"),
        "service-account-signing-key-file": Flag("The key that signs service account tokens.", "a new one", "FILE"),
        "service-account-signing-endpoint": Flag(
            "The socket of a program that signs service account tokens.", "", "PATH"
        ),
        "egress-selector-config-file": Flag("An EgressSelectorConfiguration file.", "", "FILE"),
    },
    "Global": shared.GLOBAL,
}
# Those that are accepted with a warning.
WITHOUT_EFFECT: Final = frozenset(
    [
        "allow-metric-labels",
        "allow-metric-labels-manifest",
        "allow-privileged",
        "contention-profiling",
        "coordinated-leadership-lease-duration",
        "coordinated-leadership-renew-deadline",
        "coordinated-leadership-retry-period",
        "cors-allowed-origins",
        "debug-socket-path",
        "default-not-ready-toleration-seconds",
        "default-unreachable-toleration-seconds",
        "delete-collection-workers",
        "disable-http2-serving",
        "disabled-metrics",
        "egress-selector-config-file",
        "emulation-forward-compatible",
        "enable-garbage-collector",
        "enable-logs-handler",
        "endpoint-reconciler-type",
        "etcd-count-metric-poll-period",
        "etcd-db-metric-poll-interval",
        "etcd-healthcheck-timeout",
        "etcd-readycheck-timeout",
        "etcd-servers-overrides",
        "goaway-chance",
        "http2-max-streams-per-connection",
        "kubelet-timeout",
        "lease-reuse-duration-seconds",
        "livez-grace-period",
        "log-flush-frequency",
        "log-json-info-buffer-size",
        "log-json-split-stream",
        "log-text-info-buffer-size",
        "log-text-split-stream",
        "logging-format",
        "max-connection-bytes-per-sec",
        "peer-advertise-ip",
        "peer-advertise-port",
        "peer-ca-file",
        "permit-address-sharing",
        "permit-port-sharing",
        "profiling",
        "runtime-config-emulation-forward-compatible",
        "service-account-signing-endpoint",
        "show-hidden-metrics-for-version",
        "shutdown-delay-duration",
        "shutdown-send-retry-after",
        "shutdown-watch-termination-grace-period",
        "storage-backend",
        "storage-initialization-timeout",
        "strict-transport-security-directives",
        "tls-cipher-suites",
        "tls-curve-preferences",
        "tls-min-version",
        "tls-sni-cert-key",
        "tracing-config-file",
        "vmodule",
        "watch-cache",
        "watch-cache-sizes",
    ]
)
