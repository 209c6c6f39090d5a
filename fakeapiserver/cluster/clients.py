"""`cluster.client`: clients of other packages, made for one cluster."""

from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from typing import Any, Final

_NAMES: Final = ("kubernetes", "kubernetes_asyncio", "kr8s", "lightkube")


async def asynchronous(package: str, path: str) -> Any:
    """A client for the running event loop; of `kubernetes`, which has none, the blocking one."""
    return await _ASYNCHRONOUS[_checked(package)](path)


def synchronous(package: str, path: str, configuration: Any) -> Any:
    """A blocking client; of `kubernetes_asyncio`, which has none, one for the caller's event loop. `configuration` is what
    `configuration_of` has returned."""
    if _checked(package) == "kubernetes_asyncio":
        return _for_the_running_loop(configuration)
    return _SYNCHRONOUS[package](path)


async def configuration_of(package: str, path: str) -> Any:
    """Reads, in an event loop, the configuration that `synchronous` needs to create the client."""
    if _checked(package) != "kubernetes_asyncio":
        return None
    configuration = _module("kubernetes_asyncio.client").Configuration()
    await _module("kubernetes_asyncio.config").load_kube_config(
        config_file=path, client_configuration=configuration, persist_config=False
    )
    return configuration


def _for_the_running_loop(configuration: Any) -> Any:
    try:
        return _module("kubernetes_asyncio.client").ApiClient(configuration=configuration)
    except RuntimeError:  # no running event loop
        raise ValueError('client("kubernetes_asyncio") belongs to an event loop: call it inside a coroutine') from None


def _kubernetes(path: str) -> Any:
    return _module("kubernetes.config").new_client_from_config(config_file=path, persist_config=False)


async def _kubernetes_in_a_loop(path: str) -> Any:
    return _kubernetes(path)


async def _kubernetes_asyncio(path: str) -> Any:
    return _for_the_running_loop(await configuration_of("kubernetes_asyncio", path))


def _kr8s(path: str) -> Any:
    return _module("kr8s").api(kubeconfig=path)


async def _kr8s_in_a_loop(path: str) -> Any:
    return await _module("kr8s.asyncio").api(kubeconfig=path)


def _lightkube(path: str) -> Any:
    return _module("lightkube").Client(config=_lightkube_config(path), trust_env=False)


async def _lightkube_in_a_loop(path: str) -> Any:
    return _module("lightkube").AsyncClient(config=_lightkube_config(path), trust_env=False)


def _lightkube_config(path: str) -> Any:
    return _module("lightkube").KubeConfig.from_file(path).get()


_SYNCHRONOUS: Final[Mapping[str, Callable[[str], Any]]] = {
    "kubernetes": _kubernetes,
    "kr8s": _kr8s,
    "lightkube": _lightkube,
}
_ASYNCHRONOUS: Final[Mapping[str, Callable[[str], Awaitable[Any]]]] = {
    "kubernetes": _kubernetes_in_a_loop,
    "kubernetes_asyncio": _kubernetes_asyncio,
    "kr8s": _kr8s_in_a_loop,
    "lightkube": _lightkube_in_a_loop,
}


def _checked(package: str) -> str:
    """Returns the package's name as a module's, e.g. `kubernetes_asyncio` for pip's `kubernetes-asyncio`. Raises ValueError."""
    name = package.replace("-", "_") if isinstance(package, str) else package
    if name not in _NAMES:
        raise ValueError(f"client: {package!r} is not one of the known packages: {', '.join(_NAMES)}")
    return name


def _module(name: str) -> Any:
    package = name.partition(".")[0]
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise _missing(package) from None
    if (
        module.__file__ is None
    ):  # only a folder: lightkube-models, which this package depends on, brings `lightkube/models`
        raise _missing(package)
    return module


def _missing(package: str) -> ModuleNotFoundError:
    hint = f"pip install {package.replace('_', '-')}"
    return ModuleNotFoundError(f"the package {package} is not installed: {hint}", name=package)
