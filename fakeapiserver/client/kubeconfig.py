"""Kubeconfig files and the service account of a pod, as a RESTConfig.

Upstream: k8s.io/client-go/tools/clientcmd (loader.go, client_config.go), k8s.io/client-go/rest/config.go (InClusterConfig).
"""

import binascii
import os
from base64 import b64decode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from fakeapiserver.client.config import ExecConfig, ImpersonationConfig, RESTConfig

_HOME: Final = Path("~/.kube/config")
_SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_EMPTY: Final = "invalid configuration: no configuration has been provided"
# What holds a path, by the list it stands in: relative ones are meant from their own file.
_PATHS: Final = {
    "clusters": ("cluster", ("certificate-authority",)),
    "users": ("user", ("client-certificate", "client-key", "tokenFile")),
}
Config = Mapping[str, Any]


def load(
    path: str | os.PathLike[str] | None = None,
    *,
    context: str = "",
    namespace: str = "",
    user: str = "",
    cluster: str = "",
) -> RESTConfig:
    """What kubectl would use: the file at `path`, or those of $KUBECONFIG merged, or the pod's service account, or ~/.kube/config.

    `context`, `namespace`, `user` and `cluster` go before what the file says. ValueError with one sentence that says what is
    wrong, OSError for a file that can't be read.
    """
    overrides = {"context": context, "namespace": namespace, "user": user, "cluster": cluster}
    if path is not None:
        return from_config(merge([_read(Path(path))]), **overrides)
    if files := os.environ.get("KUBECONFIG"):
        paths = [Path(name).expanduser() for name in files.split(os.pathsep) if name]
        return from_config(merge([_read(name) for name in paths if name.exists()]), **overrides)
    if os.environ.get("KUBERNETES_SERVICE_HOST") and not any(overrides.values()):
        return in_cluster()
    home = _HOME.expanduser()
    if not home.exists():
        raise ValueError(f"{_EMPTY}: set KUBECONFIG, or write {_HOME}, or run in a pod")
    return from_config(merge([_read(home)]), **overrides)


def in_cluster(folder: Path = _SERVICE_ACCOUNT) -> RESTConfig:
    """As the service account of the pod this runs in. ValueError outside of one."""
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST", ""), os.environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise ValueError(
            "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined"
        )
    token_file = folder / "token"
    namespace = folder / "namespace"
    return RESTConfig(
        host=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        ca_data=(folder / "ca.crt").read_bytes(),
        token=token_file.read_text().strip(),
        token_file=token_file,
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
    )


def merge(configs: Sequence[Config]) -> Config:
    """One config of several: who names something first has it."""
    merged: dict[str, Any] = {"clusters": [], "users": [], "contexts": []}
    for config in configs:
        merged.setdefault("current-context", "")
        merged["current-context"] = merged["current-context"] or config.get("current-context") or ""
        for name in ("clusters", "users", "contexts"):
            known = {row["name"] for row in merged[name]}
            merged[name] += [row for row in config.get(name) or () if row.get("name") not in known]
    return merged


def from_config(
    config: Config, *, context: str = "", namespace: str = "", user: str = "", cluster: str = ""
) -> RESTConfig:
    """The RESTConfig of a decoded kubeconfig whose paths are whole. ValueError."""
    chosen = context or config.get("current-context") or ""
    found = _named(config, "contexts", "context", chosen)
    if chosen and found is None:
        raise ValueError(f'invalid configuration: context "{chosen}" does not exist')
    if not chosen and not cluster:
        raise ValueError(f"{_EMPTY}: it names no current-context, so name a context")
    found = found or {}
    where = _required(config, "clusters", "cluster", cluster or found.get("cluster", ""), chosen)
    if not where.get("server"):
        raise ValueError(f"invalid configuration: no server found for cluster {cluster or found.get('cluster')!r}")
    name = user or found.get("user", "")
    who = _required(config, "users", "user", name, chosen) if name else {}
    token_file = Path(who["tokenFile"]) if who.get("tokenFile") else None
    return RESTConfig(
        host=str(where["server"]).rstrip("/"),
        ca_data=_content(where, "certificate-authority"),
        server_name=where.get("tls-server-name") or "",
        insecure=bool(where.get("insecure-skip-tls-verify")),
        cert_data=_content(who, "client-certificate"),
        key_data=_content(who, "client-key"),
        token=who.get("token") or "",
        token_file=token_file,
        username=who.get("username") or "",
        password=who.get("password") or "",
        exec_provider=_exec_config(who.get("exec"), name, where),
        impersonate=ImpersonationConfig(
            who.get("as") or "", who.get("as-uid") or "", who.get("as-groups") or (), who.get("as-user-extra") or {}
        ),
        namespace=namespace or found.get("namespace") or "default",
        proxy_url=where.get("proxy-url") or "",
    )


def _read(path: Path) -> Config:
    from fakeapiserver.apimachinery.serializer import type_meta

    try:
        config = type_meta.read(path.read_bytes()).content
    except ValueError as error:
        raise ValueError(f'error loading config file "{path}": {error}') from None
    for rows, (section, names) in _PATHS.items():
        for row in config.get(rows) or ():
            holder = row.get(section) or {}
            for name in names:
                if holder.get(name):
                    holder[name] = str(path.parent / holder[name])
    for row in config.get("users") or ():
        plugin = (row.get("user") or {}).get("exec") or {}
        if "/" in (plugin.get("command") or ""):
            plugin["command"] = str(path.parent / plugin["command"])
    return config


def _named(config: Config, plural: str, singular: str, name: str) -> Config | None:
    return next((row.get(singular) or {} for row in config.get(plural) or () if row.get("name") == name), None)


def _required(config: Config, plural: str, singular: str, name: str, context: str) -> Config:
    found = _named(config, plural, singular, name)
    if found is None:
        raise ValueError(f'invalid configuration: {singular} "{name}" was not found for context "{context}"')
    return found


def _content(section: Config, name: str) -> bytes:
    """What stands in the file, or in `NAME-data`, which goes first."""
    if data := section.get(f"{name}-data"):
        try:
            return b64decode(data, validate=True)
        except binascii.Error as error:
            raise ValueError(f"invalid configuration: {name}-data is no base64: {error}") from None
    return Path(section[name]).read_bytes() if section.get(name) else b""


def _exec_config(plugin: Config | None, user: str, cluster: Config) -> ExecConfig | None:
    if not plugin:
        return None
    if not plugin.get("command"):
        raise ValueError(
            f"invalid configuration: command must be specified for {user} to use exec authentication plugin"
        )
    if not plugin.get("apiVersion"):
        raise ValueError(
            f"invalid configuration: apiVersion must be specified for {user} to use exec authentication plugin"
        )
    extensions = {row.get("name"): row.get("extension") for row in cluster.get("extensions") or ()}
    return ExecConfig(
        command=plugin["command"],
        api_version=plugin["apiVersion"],
        args=tuple(plugin.get("args") or ()),
        env={row["name"]: row.get("value", "") for row in plugin.get("env") or ()},
        install_hint=plugin.get("installHint") or "",
        provide_cluster_info=bool(plugin.get("provideClusterInfo")),
        cluster_extension=extensions.get("client.authentication.k8s.io/exec"),
    )
