"""The manual's entries for the flags of `fakeapiserver nodes`."""

from collections.abc import Mapping
from typing import Final

from fakeapiserver.cli.manual.entry import Flag

TOPICS: Final[Mapping[str, Mapping[str, Flag]]] = {
    "Connection": {
        "kubeconfig": Flag("The kubeconfig of the API server; required.", "", "FILE", "--kubeconfig=kubeconfig")
    },
    "Nodes": {
        "nodes": Flag(
            "How many nodes are simulated: node-1, node-2, ...; 0 runs the scheduler alone.",
            "3",
            "N",
            "--nodes=5",
        ),
        "scheduler": Flag("Binds pods to nodes; false where a kube-scheduler runs.", "true"),
        "dual-stack": Flag("Gives nodes and pods an address of each IP family.", "false"),
    },
    "Serving": {
        "kubelet-port": Flag(
            "Answers kubectl logs, exec, attach and port-forward at this port; 0 doesn't. Clients have the rights to nodes "
            "that a real kubelet asks the API server about: the kubeconfig's user must be a system:auth-delegator.",
            "0",
            "PORT",
        ),
        "kubelet-address": Flag(
            "The address of the kubelets; nodes/proxy needs one that isn't loopback.",
            "127.0.0.1",
            "ADDRESS",
        ),
        "control-port": Flag(
            "Serves /fakeapiserver/nodes and /fakeapiserver/scripts at this port, with TLS, for clients that the API "
            "server authorizes for these paths; 0 doesn't.",
            "0",
            "PORT",
        ),
        "client-ca-file": Flag(
            "Accepts client certificates of these authorities.", "the kubeconfig's authority", "FILE"
        ),
        "tls-cert-file": Flag("The certificate of both ports.", "a new one", "FILE"),
        "tls-private-key-file": Flag("The key of --tls-cert-file.", "", "FILE"),
    },
    "Misc": {
        "v": Flag("How much is logged: 0 warnings, 1 information, 4 everything.", "0", "LEVEL"),
    },
}
