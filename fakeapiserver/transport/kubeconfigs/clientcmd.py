"""Kubeconfig files as clientcmd has them: decoded, merged, checked, and what becomes of them.

Upstream: k8s.io/client-go/tools/clientcmd/{loader,merge,client_config,merged_client_builder}.go, its api/v1 (types, defaults),
k8s.io/client-go/rest/{config,url_utils}.go.
"""

import os
import posixpath
import unicodedata
from base64 import b64decode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar, cast
from urllib.parse import urlsplit

from msgspec import Struct, field

from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.go.url import url_problem
from fakeapiserver.apimachinery.serializer import type_meta
from fakeapiserver.apimachinery.serializer.component_config import ConfigKind
from fakeapiserver.transport import ca_bundle
from fakeapiserver.transport.files import read_file
from fakeapiserver.transport.kubeconfigs.types import AuthInfo, Cluster, Context, ExecPlugin
from fakeapiserver.transport.kubeconfigs.validation import WITHOUT_SERVER, aggregated, cluster_problems, user_problems
from fakeapiserver.transport.rest_config import ExecConfig, ImpersonationConfig, InteractiveMode, RESTConfig

T = TypeVar("T")
SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_EMPTY: Final = "no configuration has been provided, try setting KUBERNETES_MASTER environment variable"
_CLUSTER_EXTENSION: Final = "client.authentication.k8s.io/exec"
# Plugins of these versions need not declare whether they are interactive.
_BETA_PLUGINS: Final = ("client.authentication.k8s.io/v1beta1", "client.authentication.k8s.io/v1alpha1")
_KIND: Final = ConfigKind(
    "Config",
    ("v1",),
    {
        "Config": {
            "clusters": "[]NamedCluster",
            "users": "[]NamedAuthInfo",
            "contexts": "[]NamedContext",
            "current-context": "string",
            "preferences": "Preferences",
            "extensions": "[]NamedExtension",
        },
        "Preferences": {"colors": "bool", "extensions": "[]NamedExtension"},
        "NamedCluster": {"name": "string", "cluster": "Cluster"},
        "NamedAuthInfo": {"name": "string", "user": "AuthInfo"},
        "NamedContext": {"name": "string", "context": "Context"},
        "NamedExtension": {"name": "string", "extension": "Raw"},
        "Context": {**dict.fromkeys(("cluster", "user", "namespace"), "string"), "extensions": "[]NamedExtension"},
        "Cluster": {
            **dict.fromkeys(("server", "tls-server-name", "certificate-authority", "proxy-url"), "string"),
            **dict.fromkeys(("insecure-skip-tls-verify", "disable-compression"), "bool"),
            "certificate-authority-data": "Bytes",
            "extensions": "[]NamedExtension",
        },
        "AuthInfo": {
            **dict.fromkeys(
                ("client-certificate", "client-key", "token", "tokenFile", "username", "password"), "string"
            ),
            **dict.fromkeys(("client-certificate-data", "client-key-data"), "Bytes"),
            **dict.fromkeys(("as", "as-uid"), "string"),
            "as-groups": "[]string",
            "as-user-extra": "map[string][]string",
            "auth-provider": "AuthProviderConfig",
            "exec": "ExecConfig",
            "extensions": "[]NamedExtension",
        },
        "AuthProviderConfig": {"name": "string", "config": "map[string]string"},
        "ExecConfig": {
            **dict.fromkeys(("command", "apiVersion", "installHint"), "string"),
            "args": "[]string",
            "env": "[]ExecEnvVar",
            "provideClusterInfo": "bool",
            "interactiveMode": "ExecInteractiveMode",
        },
        "ExecInteractiveMode": "string",
        "ExecEnvVar": {"name": "string", "value": "string"},
    },
)


class EmptyConfigError(ValueError):
    """Raised if nothing is configured; a pod then uses its service account."""


class Kubeconfig(Struct, frozen=True):
    """Clusters, users and contexts by name. Paths are whole; `…-data` is base64, as it stands in files."""

    clusters: Mapping[str, Cluster] = field(default_factory=dict)
    users: Mapping[str, AuthInfo] = field(default_factory=dict)
    contexts: Mapping[str, Context] = field(default_factory=dict)
    current_context: str = ""


class Overrides(Struct, frozen=True):
    """Names that override the files: of a context, cluster and user, and a namespace. Empty: no override."""

    context: str = ""
    cluster: str = ""
    user: str = ""
    namespace: str = ""


def load(paths: Sequence[str], overrides: Overrides = Overrides(), pod: Path = SERVICE_ACCOUNT) -> RESTConfig:
    """Returns the configuration of the existing files at `paths`, merged, the first one first; if they are empty, the
    pod's service account.

        Raises ValueError with clientcmd's sentence, OSError for unreadable files.
    """
    return _deferred(_read_all(paths), overrides, pod)


def load_file(
    path: str | os.PathLike[str], overrides: Overrides = Overrides(), pod: Path = SERVICE_ACCOUNT
) -> RESTConfig:
    """The same of one file, which must be there."""
    return _deferred(read(path), overrides, pod)


def read(path: str | os.PathLike[str]) -> Kubeconfig:
    """Reads one file. Raises ValueError with clientcmd's sentence, OSError."""
    if not os.path.exists(path):
        raise OSError(f"stat {os.fspath(path)}: no such file or directory")
    return _read(os.fspath(path))


def _read_all(paths: Sequence[str]) -> Kubeconfig:
    configs, problems = [], []
    for path in dict.fromkeys(filter(os.path.exists, paths)):
        try:
            configs.append(_read(path))
        except (OSError, ValueError) as error:
            problems.append(error)
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise ValueError(aggregated([str(error) for error in problems]))
    return merge(configs)


def _read(path: str) -> Kubeconfig:
    try:
        return decode(read_file(Path(path)), os.path.dirname(os.path.abspath(path)))
    except (OSError, ValueError) as error:
        raise type(error)(f'error loading config file "{path}": {error}') from None


def decode(data: bytes, folder: str) -> Kubeconfig:
    """A file's content, relative paths meant from `folder`. One without kind and apiVersion is taken for a Config. ValueError in the
    words of Go's decoders."""
    document = type_meta.read(data)
    return of_document(_sorted(document.content), folder, document.kind, document.version)


def _sorted(value: Any) -> Any:
    """Sorts the keys: Go converts YAML to JSON with its keys in order, and reports the first error there."""
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def of_document(document: Mapping[str, Any], folder: str, kind: str = "", version: str = "") -> Kubeconfig:
    """The same of a document that is decoded already."""
    config = _KIND.read({**document, "kind": kind or "Config", "apiVersion": version or "v1"}, is_strict=False)
    clusters = _by_name(config, "clusters", "cluster", "NamedCluster", "Cluster")
    users = _by_name(config, "users", "user", "NamedAuthInfo", "AuthInfo")
    contexts = _by_name(config, "contexts", "context", "NamedContext", "Context")
    return Kubeconfig(
        {name: _cluster_from(cast("Cluster", row), folder) for name, row in clusters.items()},
        {name: _user_from(cast("AuthInfo", row), folder) for name, row in users.items()},
        cast("Mapping[str, Context]", contexts),
        config.get("current-context") or "",
    )


def _by_name(config: Mapping[str, Any], plural: str, singular: str, item: str, value: str) -> dict[str, dict[str, Any]]:
    by_name: dict[str, dict[str, Any]] = {}
    for row in config.get(plural) or ():
        name = row.get("name") or ""
        if name in by_name:
            raise ValueError(
                f'error converting *[]{item} into *map[string]*api.{value}: duplicate name "{name}" in list'
            )
        by_name[name] = row.get(singular) or {}
    return by_name


def _cluster_from(cluster: Cluster, folder: str) -> Cluster:
    if file := cluster.get("certificate-authority"):
        cluster["certificate-authority"] = _whole(file, folder)
    return cluster


def _user_from(user: AuthInfo, folder: str) -> AuthInfo:
    for name in ("client-certificate", "client-key", "tokenFile"):
        if file := user.get(name):
            user[name] = _whole(cast("str", file), folder)
    if plugin := user.get("exec"):
        if "/" in (plugin.get("command") or ""):  # others are looked for in $PATH
            plugin["command"] = _whole(plugin["command"], folder)
        if not plugin.get("interactiveMode") and plugin.get("apiVersion") in _BETA_PLUGINS:
            plugin["interactiveMode"] = "IfAvailable"
    return user


def _whole(path: str, folder: str) -> str:
    return path if path.startswith("/") else os.path.normpath(os.path.join(folder, path))


def merge(configs: Sequence[Kubeconfig]) -> Kubeconfig:
    """Merges kubeconfigs: the first one that names something defines it."""
    return Kubeconfig(
        _first_wins([config.clusters for config in configs]),
        _first_wins([config.users for config in configs]),
        _first_wins([config.contexts for config in configs]),
        next((config.current_context for config in configs if config.current_context), ""),
    )


def _first_wins(maps: Sequence[Mapping[str, T]]) -> Mapping[str, T]:
    return {name: value for mapping in reversed(maps) for name, value in mapping.items()}


def _deferred(config: Kubeconfig, overrides: Overrides, pod: Path) -> RESTConfig:
    """Upstream: DeferredLoadingClientConfig."""
    try:
        rest = rest_config(config, overrides)
    except EmptyConfigError:
        if not _is_in_pod(pod):
            raise
        return in_cluster(pod, overrides.namespace)
    chosen = config.contexts.get(overrides.context or config.current_context) or {}
    if overrides.namespace or chosen.get("namespace") or not _is_in_pod(pod):
        return rest
    return rest.with_(namespace=_pod_namespace(pod))


def rest_config(config: Kubeconfig, overrides: Overrides = Overrides()) -> RESTConfig:
    """Returns the RESTConfig of the chosen context.

    Raises EmptyConfigError, ValueError with clientcmd's sentence, OSError for an unreadable token file. Without
    TLS no credentials are used.
    """
    context_name = overrides.context or config.current_context
    context = config.contexts.get(context_name) or {}
    user_name, cluster_name = (
        overrides.user or context.get("user") or "",
        overrides.cluster or context.get("cluster") or "",
    )
    # what was asked for by name must be there; what a context names needn't
    for kind, asked, known in (
        ("auth info", overrides.user, config.users),
        ("context", overrides.context, config.contexts),
        ("cluster", overrides.cluster, config.clusters),
    ):
        if asked and asked not in known:
            raise ValueError(f"{kind} {go_quote(asked)} does not exist")
    user, cluster = config.users.get(user_name) or {}, config.clusters.get(cluster_name)
    problems = []
    if context_name and context_name not in config.contexts:
        problems.append(f"context was not found for specified context: {context_name}")
    problems += [*user_problems(user, user_name), *cluster_problems(cluster, cluster_name)]
    if problems == [WITHOUT_SERVER]:
        raise EmptyConfigError(f"invalid configuration: {_EMPTY}")
    if problems:
        raise ValueError(f"invalid configuration: {aggregated(problems)}")
    assert cluster is not None
    return _rest_config(cluster, user, overrides.namespace or context.get("namespace") or "default")


def _rest_config(cluster: Cluster, user: AuthInfo, namespace: str) -> RESTConfig:
    config = RESTConfig(
        server_url(cluster.get("server") or ""),
        namespace=namespace,
        proxy_url=cluster.get("proxy-url") or "",
        disable_compression=cluster.get("disable-compression") or False,
        impersonate=_impersonation(user),
    )
    if config.is_plain:
        return config
    if (provider := user.get("auth-provider")) is not None:
        raise ValueError(f"no Auth Provider found for name {go_quote(provider.get('name') or '')}")
    return with_user(config, user, cluster).with_(
        ca_data=_bytes(cluster.get("certificate-authority-data")),
        ca_file=_path(cluster.get("certificate-authority")),
        insecure=cluster.get("insecure-skip-tls-verify") or False,
        server_name=cluster.get("tls-server-name") or "",
    )


def with_user(config: RESTConfig, user: AuthInfo, cluster: Cluster | None = None) -> RESTConfig:
    """Returns the configuration with a user's credentials. Raises OSError for an unreadable token file.

    Upstream: getUserIdentificationPartialConfig.
    """
    token_file = _path(user.get("tokenFile"))
    token = user.get("token") or (read_file(token_file).decode("utf-8", "replace").strip() if token_file else "")
    if token_file and not token:
        raise ValueError(f"read empty token from file {go_quote(str(token_file))}")
    has_certificate = bool(user.get("client-certificate") or user.get("client-certificate-data"))
    return config.with_(
        token=token,
        token_file=token_file,
        username=user.get("username") or "",
        password=user.get("password") or "",
        cert_data=_bytes(user.get("client-certificate-data")),
        cert_file=_path(user.get("client-certificate")),
        key_data=_bytes(user.get("client-key-data")) if has_certificate else b"",
        key_file=_path(user.get("client-key")) if has_certificate else None,
        exec_provider=_exec_config(user.get("exec"), cluster or {}),
    )


def _impersonation(user: AuthInfo) -> ImpersonationConfig:
    extra = {key: values or () for key, values in (user.get("as-user-extra") or {}).items()}
    return ImpersonationConfig(user.get("as") or "", user.get("as-uid") or "", user.get("as-groups") or (), extra)


def _exec_config(plugin: ExecPlugin | None, cluster: Cluster) -> ExecConfig | None:
    if plugin is None:
        return None
    extensions = {row.get("name"): row.get("extension") for row in cluster.get("extensions") or ()}
    return ExecConfig(
        command=plugin.get("command") or "",
        api_version=plugin.get("apiVersion") or "",
        args=tuple(plugin.get("args") or ()),
        env={row.get("name") or "": row.get("value") or "" for row in plugin.get("env") or ()},
        install_hint="".join(map(_shown, plugin.get("installHint") or "")),
        provide_cluster_info=plugin.get("provideClusterInfo") or False,
        cluster_extension=extensions.get(_CLUSTER_EXTENSION),
        interactive_mode=cast("InteractiveMode", plugin.get("interactiveMode") or "Never"),
    )


def _shown(letter: str) -> str:
    """Escapes letters that a terminal could take for a command."""
    harmless = unicodedata.category(letter)[0] in "LMNPSZ" or letter in "\t\n\v\f\r"
    return letter if harmless else f"U+{ord(letter):04X}"


def server_url(server: str) -> str:
    """`host:port` is without TLS. ValueError. Upstream: DefaultServerURL; a path's query and fragment count for nothing."""
    text, parts = server, urlsplit(server) if not url_problem(server) else None
    if parts is None or not parts.scheme or not parts.netloc:
        text = f"http://{server}"
        if problem := url_problem(text):
            raise ValueError(problem)
        parts = urlsplit(text)
        if parts.path not in ("", "/"):
            raise ValueError(f"host must be a URL or a host:port pair: {go_quote(server)}")
    if parts.scheme not in ("http", "https"):
        raise ValueError(f"unsupported protocol scheme {go_quote(parts.scheme)}")
    if not parts.hostname:
        raise ValueError("http: no Host in request URL")
    path = posixpath.normpath(parts.path).strip("/") if parts.path else ""
    return f"{parts.scheme}://{parts.netloc}{f'/{path}' if path else ''}"


def _bytes(text: str | None) -> bytes:
    return b64decode(text or "")


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None


def in_cluster(folder: Path = SERVICE_ACCOUNT, namespace: str = "") -> RESTConfig:
    """Returns the configuration of the pod's service account, whose token, authority and namespace are in `folder`.

    Raises ValueError outside of a pod, OSError without a token. An unusable authority is ignored, as upstream does.
    """
    host, port = (os.environ.get(f"KUBERNETES_SERVICE_{name}", "") for name in ("HOST", "PORT"))
    if not host or not port:
        raise ValueError(
            "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined"
        )
    token = read_file(folder / "token").decode("utf-8", "replace").strip()
    authority = folder / "ca.crt"
    return RESTConfig(
        host=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        ca_file=authority if _holds_certificates(authority) else None,
        token=token,
        token_file=folder / "token",
        namespace=namespace or _pod_namespace(folder),
    )


def _holds_certificates(path: Path) -> bool:
    try:
        ca_bundle.check_bundle("", read_file(path))
    except (OSError, ValueError):
        return False
    return True


def _is_in_pod(folder: Path) -> bool:
    """Upstream: inClusterClientConfig.Possible."""
    variables = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")
    token = folder / "token"
    return all(map(os.environ.get, variables)) and token.exists() and not token.is_dir()


def _pod_namespace(folder: Path) -> str:
    if name := os.environ.get("POD_NAMESPACE"):
        return name
    try:
        return (folder / "namespace").read_text(encoding="utf-8").strip() or "default"
    except (OSError, ValueError):
        return "default"
