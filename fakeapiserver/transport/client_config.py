"""Where a kubeconfig file leads, and as whom: how kube-apiserver is told of webhooks that decide who may do what.

Upstream: k8s.io/client-go/tools/clientcmd, k8s.io/apiserver/pkg/util/webhook/webhook.go (LoadKubeconfig, WithExponentialBackoff).
"""

import asyncio
import random
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from fakeapiserver.apimachinery.field import go_quote
from fakeapiserver.apimachinery.go_url import url_problem
from fakeapiserver.apimachinery.serializer.component_config import ConfigKind, not_registered
from fakeapiserver.apis.scheme import known_kinds
from fakeapiserver.transport import proxy
from fakeapiserver.transport.certificates import check_bundle
from fakeapiserver.transport.files import read_file
from fakeapiserver.transport.webhook import Endpoint, Identity, WebhookClient, WebhookError, check_pair

_EMPTY: Final = "no configuration has been provided, try setting KUBERNETES_MASTER environment variable"
_WITHOUT_SERVER: Final = "cluster has no server defined"
_STEPS: Final = 5
_FIRST_PAUSE: Final = 0.5  # seconds
_FACTOR: Final = 1.5
_JITTER: Final = 0.2
_USER_AGENT: Final = "Go-http-client/1.1"


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
            "extensions": "Raw",
        },
        "Preferences": {"colors": "bool", "extensions": "Raw"},
        "NamedCluster": {"name": "string", "cluster": "Cluster"},
        "NamedAuthInfo": {"name": "string", "user": "AuthInfo"},
        "NamedContext": {"name": "string", "context": "Context"},
        "Context": {**dict.fromkeys(("cluster", "user", "namespace"), "string"), "extensions": "Raw"},
        "Cluster": {
            **dict.fromkeys(("server", "tls-server-name", "certificate-authority", "proxy-url"), "string"),
            **dict.fromkeys(("insecure-skip-tls-verify", "disable-compression"), "bool"),
            "certificate-authority-data": "Bytes",
            "extensions": "Raw",
        },
        "AuthInfo": {
            **dict.fromkeys(
                ("client-certificate", "client-key", "token", "tokenFile", "username", "password"), "string"
            ),
            **dict.fromkeys(("client-certificate-data", "client-key-data"), "Bytes"),
            **dict.fromkeys(("as", "as-uid"), "string"),
            "as-groups": "[]string",
            "as-user-extra": "Raw",
            "auth-provider": "AuthProviderConfig",
            "exec": "ExecConfig",
            "extensions": "Raw",
        },
        "AuthProviderConfig": {"name": "string", "config": "Raw"},
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


def load_kubeconfig(path: Path) -> Endpoint:
    """The current context's server. ValueError with clientcmd's sentence, OSError for files that can't be read. What an exec
    plugin gives isn't in it, and what stands in a token file only as it is now (`has_changing_credentials`)."""
    config = read_config(path)
    if not config.get("clusters") and not config.get("current-context"):
        raise ValueError(f"invalid configuration: {_EMPTY}")
    name = config.get("current-context") or ""
    context = _named(config, "contexts", "context", name)
    cluster_name, user_name = ((context or {}).get(key) or "" for key in ("cluster", "user"))
    cluster = _named(config, "clusters", "cluster", cluster_name)
    user = _named(config, "users", "user", user_name) or {}
    folder = path.parent
    problems = [f"context was not found for specified context: {name}"] if name and context is None else []
    problems += _user_problems(user, user_name, folder)
    problems += _cluster_problems(cluster, cluster_name, folder)
    if problems:
        only_without = problems == [_WITHOUT_SERVER]
        why = _EMPTY if only_without else problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
        raise ValueError(f"invalid configuration: {why}")
    return _endpoint(cluster or {}, user, folder)


def read_config(path: Path) -> Mapping[str, Any]:
    """The document, whatever is in it. ValueError with clientcmd's sentence, OSError."""
    if not path.exists():
        raise OSError(f"stat {path}: no such file or directory")
    return _decoded(path)


def _decoded(path: Path) -> Mapping[str, Any]:
    """As Go's types have it. One without kind and apiVersion is taken for a Config. ValueError, OSError."""
    from fakeapiserver.apimachinery.serializer import type_meta

    try:
        found = type_meta.read(read_file(path))
        kind, version = found.kind or "Config", found.version or "v1"
        config = _KIND.read({**found.content, "kind": kind, "apiVersion": version}, is_strict=False)
        for rows, go_names in _LISTS.items():
            _check_names(config.get(rows) or (), *go_names)
    except (OSError, ValueError) as error:
        raise type(error)(f'error loading config file "{path}": {error}') from None
    return config


# list -> the Go types of its items, and of what they become
_LISTS: Final = {
    "clusters": ("NamedCluster", "Cluster"),
    "users": ("NamedAuthInfo", "AuthInfo"),
    "contexts": ("NamedContext", "Context"),
}


def _check_names(rows: Sequence[Mapping[str, Any]], item: str, value: str) -> None:
    seen: set[str] = set()
    for row in rows:
        name = row.get("name") or ""
        if name in seen:
            raise ValueError(
                f'error converting *[]{item} into *map[string]*api.{value}: duplicate name "{name}" in list'
            )
        seen.add(name)


def _user_problems(user: Mapping[str, Any], name: str, folder: Path) -> Iterator[str]:
    """Upstream: validateAuthInfo in tools/clientcmd/validation.go."""
    basic = user.get("username") or user.get("password")
    methods = [*(["token"] if user.get("token") else []), *(["basicAuth"] if basic else [])]
    certificate, key = ((user.get(what), user.get(f"{what}-data")) for what in ("client-certificate", "client-key"))
    if any(certificate):
        if all(certificate):
            yield f"client-cert-data and client-cert are both specified for {name}. client-cert-data will override."
        if all(key):
            yield f"client-key-data and client-key are both specified for {name}; client-key-data will override"
        if not any(key):
            must = f"client-key-data or client-key must be specified for {name}"
            yield f"{must} to use the clientCert authentication method."
        for what, file in (("client-cert", certificate[0]), ("client-key", key[0])):
            if file and (why := _unreadable(folder / file)):
                yield f"unable to read {what} {folder / file} for {name} due to {why}"
    if (plugin := user.get("exec")) is not None:
        yield from _plugin_problems(plugin, name)
        if user.get("auth-provider") is not None:
            yield f"authProvider cannot be provided in combination with an exec plugin for {name}"
    if len(methods) > 1:
        yield f"more than one authentication method found for {name}; found [{' '.join(methods)}], only one is allowed"
    if problem := _impersonation_problem(user, name):
        yield problem


def _impersonation_problem(user: Mapping[str, Any], name: str) -> str:
    without = not user.get("as") and any(user.get(key) for key in ("as-uid", "as-groups", "as-user-extra"))
    return f"requesting uid, groups or user-extra for {name} without impersonating a user" if without else ""


def _plugin_problems(plugin: Mapping[str, Any], name: str) -> Iterator[str]:
    for field in ("command", "apiVersion"):
        if not plugin.get(field):
            yield f"{field} must be specified for {name} to use exec authentication plugin"
    for variable in plugin.get("env") or ():
        if not variable.get("name"):
            yield f"env variable name must be specified for {name} to use exec authentication plugin"
    mode = plugin.get("interactiveMode") or ""
    if not mode:
        yield f"interactiveMode must be specified for {name} to use exec authentication plugin"
    elif mode not in ("Never", "IfAvailable", "Always"):
        yield f"invalid interactiveMode for {name}: {go_quote(mode)}"


def _cluster_problems(cluster: Mapping[str, Any] | None, name: str, folder: Path) -> Iterator[str]:
    """Upstream: validateClusterInfo."""
    if cluster is None:
        yield _WITHOUT_SERVER
        return
    if not cluster.get("server"):
        yield f"no server found for cluster {go_quote(name)}" if name else "default cluster has no server defined"
    if url := cluster.get("proxy-url"):
        try:
            proxy.check(url)
        except ValueError:
            yield f"invalid 'proxy-url' {go_quote(url)} for cluster {go_quote(name)}: {_proxy_problem(url)}"
    file = cluster.get("certificate-authority")
    if file and cluster.get("certificate-authority-data"):
        both = f"certificate-authority-data and certificate-authority are both specified for {name}"
        yield f"{both}. certificate-authority-data will override."
    if file and (why := _unreadable(folder / file)):
        yield f"unable to read certificate-authority {folder / file} for {name} due to {why}"


def _proxy_problem(url: str) -> str:
    """Upstream: parseProxyURL."""
    if url_problem(url):
        return f"could not parse: {url}"
    scheme = url.partition(":")[0].lower() if ":" in url else ""
    return f"unsupported scheme {go_quote(scheme)}, must be http, https, or socks5"


def _unreadable(path: Path) -> str:
    try:
        path.open("rb").close()
    except IsADirectoryError:
        return ""  # it can be opened, says Go
    except OSError as error:
        return f"open {path}: {(error.strerror or str(error)).lower()}"
    return ""


def _named(config: Mapping[str, Any], plural: str, singular: str, name: str) -> Mapping[str, Any] | None:
    return next((row.get(singular) or {} for row in config.get(plural) or () if row.get("name") == name), None)


def _endpoint(cluster: Mapping[str, Any], user: Mapping[str, Any], folder: Path) -> Endpoint:
    server = str(cluster["server"])
    bad = f"host must be a URL or a host:port pair: {go_quote(server)}"
    url = server if "://" in server else f"https://{server}"
    if url_problem(url) or not (parts := urlsplit(url)).hostname:
        raise ValueError(bad)
    plain = parts.scheme == "http"
    changing = not plain and bool(user.get("exec") or user.get("tokenFile"))
    if user.get("auth-provider"):
        raise ValueError(f"no Auth Provider found for name {go_quote(user['auth-provider'].get('name') or '')}")
    authorities = _content(cluster, "certificate-authority", folder)
    insecure = bool(cluster.get("insecure-skip-tls-verify"))
    if authorities and insecure:
        raise ValueError("specifying a root certificates file with the insecure flag is not allowed")
    if authorities and not plain:
        _check_authorities(authorities)
    # upstream tells nobody who it is without TLS
    identity = Identity(user_agent=_USER_AGENT) if plain else identity_of(user, folder)
    if parts.username is not None and not identity.authorization:
        identity = replace(identity, authorization=_basic(parts.username, parts.password or ""))
    return Endpoint(
        # whose password no error is to tell
        url=f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}",
        host=parts.hostname,
        port=parts.port or (80 if plain else 443),
        ca_bundle=authorities,
        identity=identity,
        server_name=cluster.get("tls-server-name") or "",
        insecure=insecure,
        plain=plain,
        proxy=cluster.get("proxy-url") or "",
        has_changing_credentials=changing,
    )


def identity_of(user: Mapping[str, Any], folder: Path) -> Identity:
    """What a user of a kubeconfig in `folder` shows, but for exec plugins. OSError, ValueError for files that can't be read."""
    token = user.get("token") or ""
    if file := user.get("tokenFile"):
        token = read_file(folder / file).decode().strip()
        if not token:
            raise ValueError(f"read empty token from file {go_quote(str(folder / file))}")
    authorization = f"Bearer {token}" if token else ""
    if user.get("username"):
        authorization = _basic(user["username"], user.get("password") or "")
    certificate, key = (_content(user, name, folder) for name in ("client-certificate", "client-key"))
    if certificate:
        _check_pair(certificate, key)
    return Identity(certificate, key, authorization, _USER_AGENT)


def _basic(name: str, password: str) -> str:
    return f"Basic {b64encode(f'{name}:{password}'.encode()).decode()}"


def _check_authorities(bundle: bytes) -> None:
    """ValueError in the words of client-go's transport."""
    if b"-----BEGIN " not in bundle:
        raise ValueError("unable to load root certificates: unable to parse bytes as PEM block")
    try:
        check_bundle("", bundle)
    except ValueError as error:
        malformed = "malformed" in str(error)
        why = (
            "failed to parse certificate: x509: malformed certificate"
            if malformed
            else "no valid certificate authority data seen"
        )
        raise ValueError(f"unable to load root certificates: {why}") from None


def _check_pair(certificate: bytes, key: bytes) -> None:
    """ValueError in the words of Go's tls.X509KeyPair."""
    for name, pem in (("certificate", certificate), ("key", key)):
        if b"-----BEGIN " not in pem:
            raise ValueError(f"tls: failed to find any PEM data in {name} input")
    try:
        check_pair(certificate, key)
    except OSError:
        raise ValueError("tls: private key does not match public key") from None


def _content(section: Mapping[str, Any], name: str, folder: Path) -> bytes:
    """What stands in the file, or in it itself (`NAME-data`), which goes first."""
    if data := section.get(f"{name}-data"):
        return b64decode(data)
    return read_file(folder / section[name]) if section.get(name) else b""


class Credentials(Protocol):
    """Who a call is made as, where that changes while the server runs: exec plugins, and files with tokens."""

    async def current(self) -> Identity:
        """OSError, ValueError with a sentence."""

    def rejected(self) -> None:
        """The last one was answered 401."""


class Remote:
    """Posts one kind of review to a kubeconfig's server, again and again where the failure may pass."""

    def __init__(
        self,
        endpoint: Endpoint,
        timeout: float,
        sleep: Callable[[float], Any] = asyncio.sleep,
        credentials: Credentials | None = None,
        first_pause: float = _FIRST_PAUSE,
    ) -> None:
        """`timeout` and `first_pause`, the wait before the second try, are seconds."""
        self._endpoint = endpoint
        self._first_pause = first_pause
        self._credentials = credentials
        self._timeout = timeout
        self._sleep = sleep
        self._client = WebhookClient(_no_service)

    async def post(self, review: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer's object, of the same type. ValueError with client-go's text for whatever goes wrong."""
        from fakeapiserver.apimachinery.serializer import json

        body, pause = json.encode(review) + b"\n", self._first_pause
        for step in range(1, _STEPS + 1):
            try:
                answer = await self._client.post(await self._as_now(), body, self._timeout)
                return checked(answer, review)
            except WebhookError as error:
                if error.status == 401 and self._credentials is not None:
                    self._credentials.rejected()
                if step == _STEPS or not error.is_transient:
                    late = str(error).endswith("context deadline exceeded")
                    # the client's own time limit is named, unlike a request's
                    told = " (Client.Timeout exceeded while awaiting headers)" if late else ""
                    raise ValueError(f"{error}{told}") from error
                wait = pause if error.retry_after is None else max(pause, error.retry_after)
            await self._sleep(wait * (1 + random.random() * _JITTER))
            pause *= _FACTOR
        raise AssertionError("unreachable: the last step answers or raises")

    async def _as_now(self) -> Endpoint:
        """ValueError without credentials."""
        if self._credentials is None:
            return self._endpoint
        try:
            return replace(self._endpoint, identity=await self._credentials.current())
        except (OSError, ValueError) as error:
            raise ValueError(f'Post "{self._endpoint.url}": {error}') from error


def checked(answer: bytes, review: Mapping[str, Any]) -> Mapping[str, Any]:
    """The answer's object; one that names no type is taken for the wanted one. ValueError."""
    from fakeapiserver.apimachinery.serializer import type_meta

    found = type_meta.read(answer)
    wanted = (review["apiVersion"], review["kind"])
    version, kind = found.version or wanted[0], found.kind or wanted[1]
    if (version, kind) == wanted:
        return found.content
    if not _is_known(version, kind, wanted):
        raise ValueError(not_registered(version, kind))
    names = [f"{api_version.rpartition('/')[2]}.{name}" for api_version, name in ((version, kind), wanted)]
    raise ValueError(f"converting ({names[0]}) to ({names[1]}): unknown conversion")


def _is_known(version: str, kind: str, wanted: tuple[str, str]) -> bool:
    """client-go knows reviews in v1beta1 as well, which is served no longer."""
    group = wanted[0].partition("/")[0]
    is_review = kind == wanted[1] and version in (f"{group}/v1", f"{group}/v1beta1")
    return is_review or kind in known_kinds().get(version, ())


def _no_service(namespace: str, name: str, port: int) -> tuple[str, int]:
    raise LookupError(f"a kubeconfig names no Service, but {namespace}/{name}:{port} was asked for")
