"""Kubeconfig files and the service account of a pod, as a RESTConfig.

Upstream: k8s.io/client-go/tools/clientcmd, k8s.io/client-go/rest/config.go (InClusterConfig).
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fakeapiserver.transport.kubeconfigs import clientcmd
from fakeapiserver.transport.kubeconfigs.clientcmd import Overrides, in_cluster
from fakeapiserver.transport.rest_config import RESTConfig

__all__ = ["from_config", "in_cluster", "load"]


def load(
    path: str | os.PathLike[str] | None = None,
    *,
    context: str = "",
    namespace: str = "",
    user: str = "",
    cluster: str = "",
) -> RESTConfig:
    """Returns the configuration that kubectl would use.

    It is read from the file at `path`, or the merged files of $KUBECONFIG, or ~/.kube/config; if these are empty, from the pod's
    service account.

    `context`, `namespace`, `user` and `cluster` override the files. Raises ValueError with one sentence in clientcmd's words, OSError for a
    file that can't be read.
    """
    overrides = Overrides(context, cluster, user, namespace)
    if path is not None:
        return clientcmd.load_file(path, overrides)
    named = os.environ.get("KUBECONFIG")
    paths = named.split(os.pathsep) if named else [str(Path("~/.kube/config").expanduser())]
    return clientcmd.load(paths, overrides)


def from_config(
    config: Mapping[str, Any],
    *,
    context: str = "",
    namespace: str = "",
    user: str = "",
    cluster: str = "",
    folder: str | os.PathLike[str] = ".",
) -> RESTConfig:
    """The same of a kubeconfig that is decoded already, whose relative paths are meant from `folder`. ValueError, OSError."""
    kubeconfig = clientcmd.of_document(config, os.path.abspath(folder))
    return clientcmd.rest_config(kubeconfig, Overrides(context, cluster, user, namespace))
