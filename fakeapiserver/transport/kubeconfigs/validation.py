"""Checks the users and clusters of a kubeconfig (upstream: k8s.io/client-go/tools/clientcmd/validation.go)."""

import os
from collections.abc import Iterator, Sequence
from typing import Final

from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.transport import proxy
from fakeapiserver.transport.kubeconfigs.types import AuthInfo, Cluster, ExecPlugin

WITHOUT_SERVER: Final = "cluster has no server defined"
_MODES: Final = ("Never", "IfAvailable", "Always")


def aggregated(problems: Sequence[str]) -> str:
    """Upstream: errors.NewAggregate."""
    messages = [*dict.fromkeys(problems)]
    return messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]"


def user_problems(user: AuthInfo, name: str) -> Iterator[str]:
    """Upstream: validateAuthInfo."""
    yield from _certificate_problems(user, name)
    if (plugin := user.get("exec")) is not None:
        if user.get("auth-provider") is not None:
            yield f"authProvider cannot be provided in combination with an exec plugin for {name}"
        yield from _plugin_problems(plugin, name)
    basic = user.get("username") or user.get("password")
    methods = [*(["token"] if user.get("token") else []), *(["basicAuth"] if basic else [])]
    if len(methods) > 1:
        yield f"more than one authentication method found for {name}; found [{' '.join(methods)}], only one is allowed"
    if not user.get("as") and (user.get("as-uid") or user.get("as-groups") or user.get("as-user-extra")):
        yield f"requesting uid, groups or user-extra for {name} without impersonating a user"


def _certificate_problems(user: AuthInfo, name: str) -> Iterator[str]:
    file, data = user.get("client-certificate"), user.get("client-certificate-data")
    key_file, key_data = user.get("client-key"), user.get("client-key-data")
    if not file and not data:
        return
    if file and data:
        yield f"client-cert-data and client-cert are both specified for {name}. client-cert-data will override."
    if key_file and key_data:
        yield f"client-key-data and client-key are both specified for {name}; client-key-data will override"
    if not key_file and not key_data:
        must = f"client-key-data or client-key must be specified for {name}"
        yield f"{must} to use the clientCert authentication method."
    for what, path in (("client-cert", file), ("client-key", key_file)):
        if path and (why := _unreadable(path)):
            yield f"unable to read {what} {path} for {name} due to {why}"


def _plugin_problems(plugin: ExecPlugin, name: str) -> Iterator[str]:
    needed = f"must be specified for {name} to use exec authentication plugin"
    if not plugin.get("command"):
        yield f"command {needed}"
    if not plugin.get("apiVersion"):
        yield f"apiVersion {needed}"
    for variable in plugin.get("env") or ():
        if not variable.get("name"):
            yield f"env variable name {needed}"
    mode = plugin.get("interactiveMode")
    if not mode:
        yield f"interactiveMode {needed}"
    elif mode not in _MODES:
        yield f"invalid interactiveMode for {name}: {go_quote(mode)}"


def cluster_problems(cluster: Cluster | None, name: str) -> Iterator[str]:
    """Upstream: validateClusterInfo."""
    if cluster is None:
        yield WITHOUT_SERVER
        return
    if not cluster.get("server"):
        yield f"no server found for cluster {go_quote(name)}" if name else "default cluster has no server defined"
    if url := cluster.get("proxy-url"):
        try:
            proxy.check(url)
        except ValueError as error:
            yield f"invalid 'proxy-url' {go_quote(url)} for cluster {go_quote(name)}: {error}"
    file = cluster.get("certificate-authority")
    if file and cluster.get("certificate-authority-data"):
        both = f"certificate-authority-data and certificate-authority are both specified for {name}"
        yield f"{both}. certificate-authority-data will override."
    if file and (why := _unreadable(file)):
        yield f"unable to read certificate-authority {file} for {name} due to {why}"


def _unreadable(path: str) -> str:
    try:
        os.close(os.open(path, os.O_RDONLY))  # a folder can be opened too
    except OSError as error:
        return f"open {path}: {(error.strerror or str(error)).lower()}"
    return ""
