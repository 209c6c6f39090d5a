"""Where an API server is, and as whom it is asked (upstream: k8s.io/client-go/rest/config.go)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Self
from urllib.parse import urlsplit

from fakeapiserver.transport import proxy

DEFAULT_USER_AGENT: Final = "fakeapiserver-client/0.1 (python)"


@dataclass(frozen=True, slots=True)
class ImpersonationConfig:
    """Another user whom the server is to take the caller for. Empty: nobody."""

    user_name: str = ""
    uid: str = ""
    groups: Sequence[str] = ()
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExecConfig:
    """A program that prints an ExecCredential (client.authentication.k8s.io). `env` is added to this process's own."""

    command: str
    api_version: str = "client.authentication.k8s.io/v1"
    args: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    install_hint: str = ""
    provide_cluster_info: bool = False
    cluster_extension: object = None


@dataclass(frozen=True, slots=True)
class RESTConfig:
    """Everything a client needs to know. `with_(…)` makes another with some things changed.

    host: the server's URL, a path in front of the API included.
    ca_data: PEM of the authorities the server's certificate may be signed by; empty: those that this machine trusts.
    server_name: the name the server's certificate must have; empty: the host's.
    insecure: take any certificate.
    cert_data, key_data: PEM of a client certificate and its key.
    token, token_file: a bearer token; the file is read again every minute, and goes first.
    namespace: of the kubeconfig's context or the pod; where nothing else is said.
    qps, burst: requests per second, and how many may come at once. 0: as many as there are (servers hold back by priority and
        fairness); client-go's own defaults are 5 and 10.
    timeout: seconds for one request that isn't a watch; None: no limit.
    proxy_url: of a proxy (http, https, socks5); empty: none.
    """

    host: str
    ca_data: bytes = b""
    server_name: str = ""
    insecure: bool = False
    cert_data: bytes = b""
    key_data: bytes = field(default=b"", repr=False)
    token: str = field(default="", repr=False)
    token_file: Path | None = None
    username: str = ""
    password: str = field(default="", repr=False)
    exec_provider: ExecConfig | None = None
    impersonate: ImpersonationConfig = ImpersonationConfig()
    namespace: str = "default"
    user_agent: str = DEFAULT_USER_AGENT
    qps: float = 0.0
    burst: int = 0
    timeout: float | None = None
    proxy_url: str = ""

    def __post_init__(self) -> None:
        parts = urlsplit(self.host)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"host must be a URL such as https://127.0.0.1:6443, not {self.host!r}")
        if bool(self.cert_data) != bool(self.key_data):
            raise ValueError("a client certificate needs its key, and a key its certificate")
        if self.token and self.username:
            raise ValueError("username/password or bearer token may be set, but not both")
        if self.proxy_url:
            proxy.check(self.proxy_url)

    def with_(self, **changes: object) -> Self:
        """Another one with `changes`. TypeError for a field there isn't."""
        return replace(self, **changes)  # type: ignore[arg-type]

    def impersonating(self, user_name: str, groups: Sequence[str] = (), uid: str = "") -> Self:
        """The same, as another user (kubectl's --as)."""
        return replace(self, impersonate=ImpersonationConfig(user_name, uid, groups))
