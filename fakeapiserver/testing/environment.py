"""The cluster that clients of this process, and of its child processes, find by default.

with pointed_at(cluster.kubeconfig): ...   # kubectl, helm, client-go, kubernetes, kr8s … all find this cluster
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

from fakeapiserver.testing import client_libraries
from fakeapiserver.testing.loaded_clients import defaults, loaded_clients, redirect_defaults, set_defaults

# The environment variables by which clients find a cluster, or which take precedence over the kubeconfig.
_NAMES: Final = frozenset(
    (
        "KUBECONFIG",
        "KUBERNETES_MASTER",  # fabric8, older kubectl
        "KUBERC",  # kubectl's preferences, which may name a kubeconfig
        "KUBECACHEDIR",  # kubectl's copy of discovery, by host and port
        "KUBE_CONFIG_PATH",  # Terraform
        "KUBE_CONFIG_PATHS",
        "KUBE_HOST",
        "KUBE_TOKEN",
    )
)
_PREFIXES: Final = (
    "KUBERNETES_SERVICE_",  # a pod's API server
    "KUBERNETES_PORT",
    "PYKUBE_KUBERNETES_SERVICE_",
    "HELM_KUBE",  # HELM_KUBEAPISERVER, HELM_KUBETOKEN, HELM_KUBECONTEXT …
    "K8S_AUTH_",  # Ansible
)


class Environment:
    """The environment variables and the constants of imported libraries at one moment."""

    def __init__(self, variables: Mapping[str, str], locations: Mapping[str, str], *, in_cluster: bool) -> None:
        self._variables = variables
        self._locations = locations
        self._in_cluster = in_cluster
        self._defaults = defaults()
        self._clients_lead_to = loaded_clients.kubeconfig

    @classmethod
    def current(cls) -> Self:
        """The environment as it is now."""
        variables = {name: value for name, value in os.environ.items() if _names_a_cluster(name)}
        in_cluster = not client_libraries.service_account_is_hidden()
        return cls(variables, client_libraries.locations(), in_cluster=in_cluster)

    def restore(self) -> None:
        """Makes everything as it was. Libraries that were imported since then look where `KUBECONFIG` leads now."""
        for name in [name for name in os.environ if _names_a_cluster(name)]:
            del os.environ[name]
        os.environ.update(self._variables)
        client_libraries.set_locations(self._locations, os.environ.get("KUBECONFIG", client_libraries.HOME_KUBECONFIG))
        if self._in_cluster:
            client_libraries.show_service_account()
        else:
            client_libraries.hide_service_account()
        set_defaults(self._defaults)
        loaded_clients.lead_to(self._clients_lead_to)


def point_at(kubeconfig: str) -> None:
    """Makes every client that isn't given a kubeconfig use this one, whether its library is imported already or not."""
    for name in [name for name in os.environ if _names_a_cluster(name)]:
        del os.environ[name]
    os.environ["KUBECONFIG"] = kubeconfig
    os.environ["KUBERC"] = "off"
    os.environ["KUBECACHEDIR"] = str(Path(kubeconfig).with_name("kubectl-cache"))
    client_libraries.set_locations({}, kubeconfig)
    client_libraries.hide_service_account()
    redirect_defaults(kubeconfig)
    loaded_clients.lead_to(kubeconfig)


@contextmanager
def pointed_at(kubeconfig: str) -> Iterator[None]:
    """Points every client at `kubeconfig` as long as the block runs."""
    before = Environment.current()
    point_at(kubeconfig)
    try:
        yield
    finally:
        before.restore()


def _names_a_cluster(variable: str) -> bool:
    return variable in _NAMES or variable.startswith(_PREFIXES)
