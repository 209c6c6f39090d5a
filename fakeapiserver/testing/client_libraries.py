"""The places outside of the environment where Python's client libraries keep the kubeconfig's path and the pod's service account.

`kubernetes` and `kubernetes_asyncio` read KUBECONFIG once, when they are imported; others have the paths as constants
of their modules
and functions. Nothing here imports a library: one that is imported later is adjusted then.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

HOME_KUBECONFIG: Final = "~/.kube/config"
SERVICE_ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
# A path that doesn't exist, whose name explains a client's error message.
HIDDEN_SERVICE_ACCOUNT: Final = "/no-cluster-outside-of-fake_cluster/serviceaccount"

# The constants with the kubeconfig's path: that of kubernetes and kubernetes_asyncio, which modules of the user may have copied, too, …
_COPIED: Final = "KUBE_CONFIG_DEFAULT_LOCATION"
_COPIED_FROM: Final = ("kubernetes.config", "kubernetes.aio.config", "kubernetes_asyncio.config")
# … and those of single modules.
_CONSTANTS: Final = (
    ("lightkube.config.kubeconfig", "DEFAULT_KUBECONFIG"),
    ("lightkube.core.generic_client", "DEFAULT_KUBECONFIG"),
)
# The constants, functions and classes with the path of the service account, by module. A class stands for its methods.
_SERVICE_ACCOUNTS: Final[Mapping[str, Sequence[str]]] = {
    "kopf._core.intents.piggybacking": ("has_service_account", "login_with_service_account"),
    "kr8s._auth": ("KubeAuth",),
    "kubernetes.aio.config.incluster_config": ("SERVICE_TOKEN_FILENAME", "SERVICE_CERT_FILENAME"),
    "kubernetes.config.incluster_config": ("SERVICE_TOKEN_FILENAME", "SERVICE_CERT_FILENAME"),
    "kubernetes_asyncio.config.incluster_config": ("SERVICE_TOKEN_FILENAME", "SERVICE_CERT_FILENAME"),
    "lightkube.config.kubeconfig": ("SERVICE_ACCOUNT", "KubeConfig"),
    "pykube.config": ("KubeConfig",),
}


# ------------------------------------------------------------------ the kubeconfig's path


def locations() -> dict[str, str]:
    """The kubeconfig's path in each imported module that has one, by `module:constant`."""
    return {f"{module}:{name}": namespace[name] for module, name, namespace in _locations()}


def set_locations(known: Mapping[str, str], otherwise: str) -> None:
    """Sets the path in each imported module: the one in `known`, which is a result of `locations()`, or `otherwise`."""
    for module, name, namespace in _locations():
        namespace[name] = known.get(f"{module}:{name}", otherwise)
    _importing.kubeconfig = otherwise


def _locations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    # a look at a thousand modules takes a tenth of a cluster's life
    modules = sys.modules.copy() if any(name in sys.modules for name in _COPIED_FROM) else {}
    for module_name, module in modules.items():
        namespace = getattr(module, "__dict__", {})
        if isinstance(namespace.get(_COPIED), str):
            yield module_name, _COPIED, namespace
    for module_name, name in _CONSTANTS:
        if module_name in sys.modules and name in vars(sys.modules[module_name]):
            yield module_name, name, vars(sys.modules[module_name])


# ------------------------------------------------------------------ the service account


def service_account_is_hidden() -> bool:
    return _importing.hides_service_account


def hide_service_account() -> None:
    """Makes libraries look for a pod's service account where none is; also those that are imported later."""
    _importing.hides_service_account = True
    if _importing not in sys.meta_path:
        sys.meta_path.insert(0, _importing)
    for module_name in _SERVICE_ACCOUNTS:
        _replace(module_name, SERVICE_ACCOUNT, HIDDEN_SERVICE_ACCOUNT)


def show_service_account() -> None:
    """Undoes `hide_service_account`."""
    _importing.hides_service_account = False
    if _importing in sys.meta_path:
        sys.meta_path.remove(_importing)
    for module_name in _SERVICE_ACCOUNTS:
        _replace(module_name, HIDDEN_SERVICE_ACCOUNT, SERVICE_ACCOUNT)


def _replace(module_name: str, old: str, new: str) -> None:
    """Replaces the path in a module's constants and functions, if the module is imported."""
    if (module := sys.modules.get(module_name)) is None:
        return
    for name in _SERVICE_ACCOUNTS[module_name]:
        value = vars(module).get(name)
        if isinstance(value, str):
            setattr(module, name, value.replace(old, new))
        for function in _functions(value):
            function.__code__ = _code(function.__code__, old, new)
            if function.__defaults__ is not None:
                function.__defaults__ = _values(function.__defaults__, old, new)


def _functions(value: object) -> Iterator[FunctionType]:
    members = vars(value).values() if isinstance(value, type) else (value,)
    for member in members:
        function = getattr(member, "__func__", member)  # a classmethod's function
        if isinstance(function, FunctionType):
            yield function


def _code(code: CodeType, old: str, new: str) -> CodeType:
    constants = _values(code.co_consts, old, new)
    return code if constants == code.co_consts else code.replace(co_consts=constants)


def _values(values: tuple[Any, ...], old: str, new: str) -> tuple[Any, ...]:
    return tuple(value.replace(old, new) if isinstance(value, str) else value for value in values)


# ------------------------------------------------------------------ libraries that are imported later


class _Importing(MetaPathFinder):
    """Adjusts modules with constants when they are imported."""

    kubeconfig = HOME_KUBECONFIG
    hides_service_account = False

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in _SERVICE_ACCOUNTS and not any(name == module for module, _ in _CONSTANTS):
            return None
        for finder in sys.meta_path:
            if finder is self or (spec := finder.find_spec(name, path, target)) is None:
                continue
            if spec.loader is not None:
                spec.loader = _AdjustingLoader(spec.loader)
            return spec
        return None


class _AdjustingLoader(Loader):
    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        for name in (name for owner, name in _CONSTANTS if owner == module.__name__):
            setattr(module, name, _importing.kubeconfig)
        if module.__name__ in _SERVICE_ACCOUNTS and _importing.hides_service_account:
            _replace(module.__name__, SERVICE_ACCOUNT, HIDDEN_SERVICE_ACCOUNT)


_importing: Final = _Importing()
