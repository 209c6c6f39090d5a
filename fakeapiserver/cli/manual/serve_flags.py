"""The flags of `serve` and `run` that kube-apiserver doesn't have."""

from typing import Final

from fakeapiserver.apis.recorded import NEWEST
from fakeapiserver.cli.manual.entry import Flag

OWN: Final = {
    "Kubeconfig and output": {
        "write-kubeconfig": Flag(
            "The kubeconfig that gets the admin's context while the server runs.",
            "a new file",
            "FILE",
            "--write-kubeconfig=kubeconfig",
        ),
        "context-name": Flag(
            "The name of the context, the cluster and the user in the kubeconfig.",
            "fakeapiserver",
            "NAME",
            "--context-name=test",
        ),
        "background": Flag("Returns when the server is ready, which `fakeapiserver stop` ends.", "false"),
        "name": Flag(
            "The name of a server in the background, where there are several.", "default", "NAME", "--name=second"
        ),
        "stop-with-stdin": Flag(
            "Ends the server when its standard input is closed, as a pipe is when the program that started the server ends, also by a "
            "crash.",
            "false",
        ),
        "output": Flag(
            "Prints text, or one line of JSON, when the server is ready: url, kubeconfig, and the files with the token and the authority.",
            "text",
            "FORMAT",
            "--output=json",
            "outputs",
        ),
    },
    "Contents": {
        "crds": Flag(
            "A file or folder of CustomResourceDefinitions that exist from the start; may be repeated.",
            "none",
            "PATH",
            "--crds=config/crd/bases",
        ),
        "kubernetes-version": Flag(
            "Serves the resources, fields, defaults, gates and messages of this minor version.",
            NEWEST.removeprefix("v"),
            "VERSION",
            "--kubernetes-version=1.34",
            "kubernetes-versions",
        ),
        "metrics": Flag(
            "Serves metrics APIs with values that a test sets: resource, custom, external, or * for all.",
            "none",
            "LIST",
            "--metrics='*'",
            "metrics",
        ),
    },
    "Controllers and nodes": {
        "controllers": Flag(
            "The controllers of kube-controller-manager to run: * for all that are on by default, NAME, -NAME, or none.",
            "*",
            "LIST",
            "--controllers='*,-cronjob-controller'",
            "controllers",
        ),
        "step-controllers": Flag(
            "Controllers that act only when POST /fakeapiserver/controllers/NAME/step says so.",
            "none",
            "LIST",
            "--step-controllers=deployment-controller",
            "controllers",
        ),
        "nodes": Flag("Simulates this many nodes, with a scheduler and a kubelet each.", "0", "N", "--nodes=3"),
        "stages": Flag(
            "A file or folder of KWOK's Stages, which script nodes and pods; may be repeated.", "none", "PATH"
        ),
        "faults": Flag("A YAML file of faults, which clients meet from the start; may be repeated.", "none", "FILE"),
        "load": Flag(
            "Starts with a state that `fakeapiserver state save` has written, in its Kubernetes version; or with objects of another "
            "cluster: a file or folder of manifests, the output of `kubectl get -o yaml`, an archive, a support bundle.",
            "none",
            "PATH",
            "--load=state.json.gz",
        ),
        "kept-requests": Flag(
            "Keeps so many of the last requests of clients, for `fakeapiserver requests`.",
            "0",
            "N",
            "--kept-requests=1000",
        ),
        "kept-request-bytes": Flag(
            "Keeps at most about so many bytes of requests and their bodies.",
            "33554432",
            "N",
            "--kept-request-bytes=1048576",
        ),
        "data-dir": Flag(
            "The folder in which the state is kept, with the server's keys: the next server there goes on with it. "
            "Without one it is gone with the server. Flags "
            "aren't kept.",
            "none",
            "DIR",
            "--data-dir=.cluster",
        ),
        "etcd": Flag(
            "Starts an etcd on this machine for the time of the server, and keeps the state in it; it goes with the server.",
            "false",
        ),
        "etcd-binary": Flag(
            "The program for --etcd; by default what FAKEAPISERVER_ETCD names, or the `etcd` on the PATH.",
            "none",
            "FILE",
        ),
        "read-only": Flag(
            "Nothing is written to --etcd-servers or --data-dir: no objects of the server's own, no controllers; writes of clients get "
            "403.",
            "false",
        ),
        "sync": Flag(
            "What an answered write in --data-dir survives: `full` a loss of power, `normal` the end of the process (a loss of power may "
            "take the last writes), `off` the end of the process (a loss of power may damage the file).",
            "full",
            "full|normal|off",
            "--sync=normal",
        ),
        "seed": Flag(
            "The number that uids, generated names, addresses, ports and orders follow from; without one they are random.",
            "none",
            "N",
            "--seed=42",
        ),
        "stopped-at": Flag(
            "The time at which the clock stands still from the start; then only `fakeapiserver clock` moves it.",
            "none",
            "TIME",
            "--stopped-at=2026-01-01T00:00:00Z",
        ),
        "local-storage": Flag(
            "Adds a default StorageClass whose volumes are made where their first pod runs.", "false"
        ),
        "cloud-storage": Flag(
            "Binds the claims of every StorageClass, as CSI drivers do, and lets them grow.", "false"
        ),
        "ui": Flag(
            "Records what happens, serves the page that shows it, and prints a link that opens it.",
            "false",
        ),
        "ui-port": Flag("The page's port on loopback.", "a free port, which is printed", "PORT", "--ui-port=8090"),
        "load-balancers": Flag("Gives Services of type LoadBalancer an address.", "false"),
    },
    "Webhooks on this machine": {
        "webhooks": Flag(
            "A file or folder of webhook configurations; those that name a Service are called on this machine; may be repeated.",
            "none",
            "PATH",
            "--webhooks=config/webhook",
        ),
        "webhook-port": Flag("The port at which these webhooks are called.", "a free port, which is printed", "PORT"),
        "webhook-cert-dir": Flag(
            "The folder that gets tls.crt and tls.key for the webhook server.", "a new folder, which is printed", "DIR"
        ),
    },
}
