"""Clients and default configurations that exist already, e.g. because a module calls `load_kube_config()` when it is imported.

Those that lead to one of the user's clusters are redirected. Clients of a server on this machine that no kubeconfig of the user names,
such as a mock of the test suite, are left alone.
"""

import gc
import json
import os
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

_OFFICIAL: Final = ("kubernetes", "kubernetes.aio", "kubernetes_asyncio")
_LOOPBACK: Final = frozenset(("localhost", "127.0.0.1", "::1"))

# The servers that the user's kubeconfigs name, and those that configurations were redirected to.
_servers: Final[set[str]] = set()


# ------------------------------------------------------------------ default configurations


def defaults() -> dict[str, Any]:
    """The default configuration of each imported official library; None if nothing was loaded."""
    return {name: configuration._default for name, configuration in _configurations().items()}


def set_defaults(known: Mapping[str, Any]) -> None:
    """Sets them to a result of `defaults()`. Libraries that were imported since then get none."""
    for name, configuration in _configurations().items():
        configuration._default = known.get(name)


def redirect_defaults(kubeconfig: str) -> None:
    """Redirects the default configurations that are set to the cluster of a kubeconfig, which is JSON. Configurations that a test loads
    from it are redirected the next time, too."""
    _servers.add(json.loads(Path(kubeconfig).read_text(encoding="utf-8"))["clusters"][0]["cluster"]["server"])
    for name, configuration in _configurations().items():
        if configuration._default is not None and _leads_away(configuration._default.host):
            configuration._default = _load(name, kubeconfig)


def _configurations() -> dict[str, Any]:
    """The class Configuration of each imported official library."""
    modules = {name: sys.modules.get(f"{name}.client.configuration") for name in _OFFICIAL}
    return {name: vars(module)["Configuration"] for name, module in modules.items() if module is not None}


def _load(library: str, kubeconfig: str) -> Any:
    configuration = _configurations()[library]()
    loaded = import_module(f"{library}.config").load_kube_config(kubeconfig, client_configuration=configuration)
    if isinstance(loaded, Coroutine):
        _finish(loaded)
    _servers.add(configuration.host)
    return configuration


def _finish(work: Coroutine[Any, Any, Any]) -> None:
    """Runs a coroutine that waits for nothing, whether or not an event loop runs in this thread."""
    try:
        work.send(None)
    except StopIteration:
        return
    work.close()
    raise RuntimeError("a kubeconfig with certificates only was not loaded at once")


# ------------------------------------------------------------------ clients


class _Client:
    """A client of the user, what it is made of, and what replaces that for another kubeconfig."""

    def __init__(self, client: Any, replacement: Callable[[Any, str], Mapping[str, Any]]) -> None:
        self._client = client
        self._own = dict(vars(client))
        self._replacement = replacement

    def lead_to(self, kubeconfig: str | None) -> None:
        new = self._own if kubeconfig is None else self._replacement(self._client, kubeconfig)
        vars(self._client).update(new)


class LoadedClients:
    """The clients that existed when the guard began."""

    def __init__(self) -> None:
        self._clients: list[_Client] = []
        # Where they lead at the moment; None: where the user pointed them.
        self.kubeconfig: str | None = None

    def find(self) -> None:
        """Finds all clients in this process that lead to a cluster of the user."""
        if not any(name in sys.modules for name in (*_OFFICIAL, "kr8s", "lightkube")):
            return
        _servers.update(_servers_of_the_user())
        # configurations come first: clients take their connections from them
        self._clients = sorted(_found(), key=lambda client: client._replacement is not _other_configuration)

    def lead_to(self, kubeconfig: str | None) -> None:
        """Redirects them to the cluster of a kubeconfig, or with None to where they led at first."""
        if (kr8s := sys.modules.get("kr8s._api")) is not None:
            kr8s.Api._instances.clear()  # kr8s.api() returns any client that exists
        if kubeconfig != self.kubeconfig:
            self.kubeconfig = kubeconfig
            for client in self._clients:
                client.lead_to(kubeconfig)


def _found() -> Iterator[_Client]:
    configurations = set(_configurations().values())
    clients = {getattr(sys.modules.get(f"{name}.client.api_client"), "ApiClient", None) for name in _OFFICIAL[:1]}
    kr8s = getattr(sys.modules.get("kr8s._api"), "Api", None)
    lightkube = getattr(sys.modules.get("lightkube.core.generic_client"), "GenericClient", None)
    for candidate in gc.get_objects():
        kind = type(candidate)
        if kind in configurations and _leads_away(candidate.host):
            yield _Client(candidate, _other_configuration)
        elif kind in clients and _leads_away(candidate.configuration.host):
            yield _Client(candidate, lambda api, _: {"rest_client": type(api.rest_client)(api.configuration)})
        elif kr8s is not None and issubclass(kind, kr8s) and _leads_away(candidate.auth.server):
            yield _Client(candidate, _other_authentication)
        elif lightkube is not None and issubclass(kind, lightkube) and _leads_away(str(candidate._client.base_url)):
            yield _Client(candidate, _other_connection)


def _other_configuration(configuration: Any, kubeconfig: str) -> Mapping[str, Any]:
    library = type(configuration).__module__.removesuffix(".client.configuration")
    loaded: Mapping[str, Any] = vars(_load(library, kubeconfig))
    return loaded


def _other_authentication(api: Any, kubeconfig: str) -> Mapping[str, Any]:
    """kr8s reads kubeconfigs in an event loop only: the client doesn't work until it is awaited again."""
    return {"auth": type(api.auth)(kubeconfig=kubeconfig), "_session": None}


def _other_connection(client: Any, kubeconfig: str) -> Mapping[str, Any]:
    lightkube = sys.modules["lightkube.config.kubeconfig"]
    parameters = sys.modules["lightkube.config.client_adapter"].ConnectionParams()
    config = lightkube.KubeConfig.from_file(kubeconfig).get()
    return {"config": config, "_client": client.AdapterClient(config, parameters)}


# ------------------------------------------------------------------ whose servers


def _leads_away(server: str) -> bool:
    return bool(server) and (server.rstrip("/") in _servers or urlsplit(server).hostname not in _LOOPBACK)


def _servers_of_the_user() -> Iterator[str]:
    """The servers in the kubeconfigs that KUBECONFIG names, in the default one, and of the pod."""
    import yaml

    for path in [*os.environ.get("KUBECONFIG", "").split(os.pathsep), "~/.kube/config"]:
        try:
            config = yaml.safe_load(Path(path).expanduser().read_text(encoding="utf-8"))
            yield from (entry["cluster"]["server"].rstrip("/") for entry in config["clusters"])
        except (OSError, ValueError, TypeError, LookupError, AttributeError, yaml.YAMLError):
            continue  # none there, or no kubeconfig
    yield f"https://{os.environ.get('KUBERNETES_SERVICE_HOST')}:{os.environ.get('KUBERNETES_SERVICE_PORT')}"


loaded_clients: Final = LoadedClients()
