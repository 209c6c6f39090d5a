"""The pages of `fakeapiserver help TOPIC`."""

from typing import Final

from fakeapiserver.cli.manual.entry import Topic

TOPICS: Final = {
    "kubeconfig": Topic(
        "how clients reach the server",
        "`serve` writes a kubeconfig of the user kubernetes-admin (group system:masters) and prints the `export KUBECONFIG=...` line for "
        "your shell. Without --write-kubeconfig it is a new file that goes with the server. `run -- COMMAND` sets KUBECONFIG for "
        "COMMAND alone.\n\n"
        "`nodes` and `controller-manager` connect only to the server of their own --kubeconfig (or --master): neither KUBECONFIG nor "
        "~/.kube/config nor a pod's service account is ever used.",
        "serve",
        ("Kubeconfig and output",),
    ),
    "authentication": Topic(
        "who a request is from",
        "The kubeconfig that `serve` writes has a client certificate. Next to such certificates the server accepts service account "
        "tokens (`kubectl create token`), static tokens, OpenID Connect, token webhooks, bootstrap tokens and a front proxy, each by "
        "kube-apiserver's flags. Requests without credentials are system:anonymous, which may read /healthz, /livez, /readyz and "
        "/version.",
        "serve",
        ("Authentication",),
    ),
    "authorization": Topic(
        "what a user may do",
        "By default the modes are Node and RBAC, with Kubernetes' default roles. `--authorization-mode=AlwaysAllow` switches all "
        "checks off. In Python, `cluster.rbac.used()` is the least set of rules that the requests needed, and `cluster.rbac.denied` "
        "are the requests that were refused; over HTTP both are below /fakeapiserver/.",
        "serve",
        ("Authorization",),
    ),
    "admission": Topic(
        "what checks and changes objects before they are stored",
        "The plugins that kube-apiserver runs by default run here in the same order. ServiceAccount is off while no controller makes "
        "service accounts (--controllers=none), as in envtest. Admission webhooks and policies work once their objects are written; "
        "see `fakeapiserver help webhooks`.",
        "serve",
        ("Admission",),
    ),
    "webhooks": Topic(
        "admission and conversion webhooks on this machine",
        "--webhooks reads a project's webhook configurations. Those that name a Service are called on this machine: the server prints "
        "the address and the folder with tls.crt and tls.key that your webhook server needs, and fills in caBundle. With `run`, the "
        "command finds them in WEBHOOK_HOST, WEBHOOK_PORT and WEBHOOK_CERT_DIR:\n\n"
        "    fakeapiserver run --crds config/crd/bases --webhooks config/webhook -- make test",
        "serve",
        ("Webhooks on this machine",),
    ),
    "controllers": Topic(
        "the controllers that run beside the server",
        "kube-controller-manager's controllers run beside the server: Deployments get pods, dependents of deleted owners are "
        "collected, namespaces end. --controllers chooses with kube-controller-manager's syntax: * for all that are on by default, "
        "NAME adds one, -NAME leaves one out, none runs none. `fakeapiserver controller-manager` runs them for any other server. "
        "--step-controllers names controllers that act only when a test says so.",
        "serve",
        ("Controllers and nodes",),
    ),
    "nodes": Topic(
        "simulated nodes and what their containers do",
        "--nodes=3 simulates three nodes with kubelets and a scheduler: pods are scheduled, run and end, Jobs complete, pods are "
        "evicted from lost nodes. Containers run no images. They follow simple commands (`sleep 5`, `sh -c 'exit 3'`), and tests "
        "script everything else: in Python with `cluster.nodes.script(...)`, over HTTP with POST /fakeapiserver/scripts. --stages "
        "takes KWOK's Stages. `fakeapiserver nodes` simulates nodes for any other server.",
        "serve",
        ("Controllers and nodes",),
    ),
    "time": Topic(
        "how tests turn the clock",
        "Leases, CronJobs, back-offs, grace periods, evictions and tokens follow one clock. In Python, `cluster.clock.advance('24h')` "
        "lets everything happen that is due, each at its time, and `cluster.clock.stop()` stops it. Over HTTP the same is below "
        "/fakeapiserver/clock:\n\n"
        '    echo \'{"advance": "24h"}\' | kubectl replace --raw /fakeapiserver/clock -f -\n\n'
        "/fakeapiserver/docs on the server lists all such paths.",
    ),
    "snapshots": Topic(
        "how tests go back to an earlier state",
        "In Python, `before = cluster.snapshot()` takes microseconds and `cluster.restore(before)` brings back every object, "
        "definition and allocation. The pytest fixture `fake_cluster` gives each test a fresh cluster. /fakeapiserver/docs on the "
        "server lists the paths for other languages.",
    ),
    "versions": Topic(
        "Kubernetes versions, feature gates and APIs that are off by default",
        "--kubernetes-version serves an older minor version: its resources, fields, defaults, gates, roles, OpenAPI and messages. "
        "--feature-gates and --runtime-config have upstream's names and defaults; docs/feature-gates.md lists all gates.",
        "serve",
        ("API enablement",),
    ),
    "envtest": Topic(
        "Go's suites with envtest",
        "`fakeapiserver envtest-assets` writes kube-apiserver, etcd and kubectl for envtest, and prints the line for your shell:\n\n"
        '    eval "$(fakeapiserver envtest-assets)"\n    go test ./...\n\n'
        "In a kubebuilder project, whose Makefile sets KUBEBUILDER_ASSETS itself:\n\n"
        '    make test -o envtest ENVTEST="$(fakeapiserver envtest-assets -p path)/setup-envtest"\n\n'
        "`fakeapiserver envtest-assets use 1.34` takes another version. `fakeapiserver help envtest-assets` has the flags.",
    ),
    "metrics": Topic(
        "kubectl top and autoscalers",
        "--metrics='*' serves metrics.k8s.io, custom.metrics.k8s.io and external.metrics.k8s.io with values that a test sets: in Python "
        "with `cluster.metrics.pod(...)`, over HTTP below /fakeapiserver/metrics.",
        "serve",
        ("Contents",),
    ),
    "audit": Topic(
        "which requests are logged",
        "A policy file says which requests are audited; events go to a file, to standard output or to a webhook, as in "
        "kube-apiserver:\n\n    fakeapiserver serve --audit-policy-file=policy.yaml --audit-log-path=-",
        "serve",
        ("Auditing",),
    ),
    "exit-codes": Topic(
        "what the command's exit status means",
        "0: done. 1: the command could not start or could not go on, for instance because a port is in use. 2: the command line is "
        "wrong; one line on standard error says what is wrong and what to do. `run -- COMMAND` exits as COMMAND did (128 + N after "
        "signal N, 127 if it doesn't exist, 126 if it can't be executed). `manifests --check` exits with 1 if files would change.",
    ),
}
