"""The fakeapiserver command: `serve`, `run -- CMD`, `envtest-assets`, `init` and its like.

Each subcommand is imported when it is called.
"""

import gc
import sys
from collections.abc import Sequence

USAGE = """\
usage: fakeapiserver serve [kube-apiserver's flags] [--write-kubeconfig FILE]
       fakeapiserver run [the same flags] -- COMMAND [ARGUMENT ...]
       fakeapiserver controller-manager --kubeconfig FILE [kube-controller-manager's flags]
       fakeapiserver nodes --kubeconfig FILE [--nodes N] [--scheduler=false] [--control-port N]
       fakeapiserver envtest-assets [DIR] [--output json] [--detached]
       fakeapiserver init --domain DOMAIN --repo NAME
       fakeapiserver create api|webhook --group GROUP --version VERSION --kind KIND
       fakeapiserver manifests [--check]
       fakeapiserver --version

serve   starts an API server on this machine and prints how to reach it; Ctrl-C ends it
run     starts one, runs COMMAND with KUBECONFIG set, stops it, and exits as COMMAND did
controller-manager  runs the bundled controllers against any API server
nodes   simulates nodes and a scheduler for any API server
envtest-assets  writes kube-apiserver, etcd and kubectl for Go's envtest, and prints the KUBEBUILDER_ASSETS to set
init, create, manifests  begin an operator in Python, add kinds, controllers and webhooks to it, and keep its manifests

Without flags: loopback, a free port, a certificate authority of its own, RBAC.
`fakeapiserver serve --help` lists the flags.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """0: done; 1: could not start, or lost; 2: the command line is wrong."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in ("-h", "--help", "help"):
        print(USAGE, end="")
        return 0 if words else 2
    command, *rest = words
    if command == "serve":
        # Nothing that starting allocates is garbage; serve.py turns collection on again when the server is ready.
        gc.disable()
        from fakeapiserver.cli import serve

        return serve.main(rest)
    if command == "run":
        from fakeapiserver.cli import run

        return run.main(rest)
    if command == "controller-manager":
        from fakeapiserver.cli import controller_manager

        return controller_manager.main(rest)
    if command == "nodes":
        from fakeapiserver.cli import nodes

        return nodes.main(rest)
    if command == "envtest-assets":
        from fakeapiserver.cli import envtest_assets

        return envtest_assets.main(rest)
    if command in ("init", "create", "manifests"):
        from fakeapiserver.cli import scaffold

        return scaffold.main(command, rest)
    if command == "--version":
        from fakeapiserver import __version__

        print(f"fakeapiserver {__version__} (Kubernetes v1.36.3)")
        return 0
    print(f"fakeapiserver: there is no command {command!r}; see fakeapiserver --help", file=sys.stderr)
    return 2
