"""The server that `nodes` and `controller-manager` write to: only their own flags name it.

KUBECONFIG, ~/.kube/config and a pod's service account are never used: they may lead to a cluster that isn't meant for tests.
"""

from pathlib import Path

from fakeapiserver.cli.arguments import UsageError
from fakeapiserver.cli.checks import check_file
from fakeapiserver.client.config import RESTConfig
from fakeapiserver.transport.kubeconfigs import clientcmd


def load_config(path: str, *, master: str = "") -> RESTConfig:
    """The connection that a kubeconfig describes; `master`, a URL, replaces its server. Raises UsageError if neither is given, or
    the kubeconfig can't be read; ValueError with clientcmd's sentence if it is invalid."""
    if not path and not master:
        raise UsageError(
            "--kubeconfig is missing: name the kubeconfig of the server to connect to, e.g. --kubeconfig=kubeconfig "
            "(KUBECONFIG and ~/.kube/config are not used)"
        )
    if not path:
        return RESTConfig(master)
    check_file("kubeconfig", Path(path))
    try:
        config = clientcmd.rest_config(clientcmd.read(path))
    except ValueError as error:
        raise UsageError(f"--kubeconfig: {path!r} names no server to connect to: {error}") from None
    return config.with_(host=master) if master else config
