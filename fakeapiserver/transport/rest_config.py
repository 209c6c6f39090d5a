"""The address of an API server, and the credentials for it (upstream: k8s.io/client-go/rest/config.go)."""

import dataclasses
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, Self
from urllib.parse import unquote, urlsplit

from msgspec import Struct, field

from fakeapiserver.transport import proxy
from fakeapiserver.transport.ca_bundle import MalformedCertificate, check_bundle
from fakeapiserver.transport.files import read_file
from fakeapiserver.transport.key_pair import KeyPair
from fakeapiserver.transport.webhook import check_pair

DEFAULT_USER_AGENT: Final = "fakeapiserver-client/0.1 (python)"
InteractiveMode = Literal["Never", "IfAvailable", "Always"]


class ImpersonationConfig(Struct, frozen=True):
    """A user to impersonate. Empty: none."""

    user_name: str = ""
    uid: str = ""
    groups: Sequence[str] = ()
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)


class ExecConfig(Struct, frozen=True):
    """A program that prints an ExecCredential (client.authentication.k8s.io). `env` is added to this process's own.

    interactive_mode: whether it may read this process's standard input: IfAvailable, when that is a terminal; Always:
    it is an error if that isn't one.
    install_hint: shown if the program does not exist.
    provide_cluster_info: it gets the server's data, with `cluster_extension` (any JSON) from the kubeconfig's cluster.
    """

    command: str
    api_version: str = "client.authentication.k8s.io/v1"
    args: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    install_hint: str = ""
    provide_cluster_info: bool = False
    cluster_extension: object = None
    interactive_mode: InteractiveMode = "Never"


@dataclasses.dataclass(frozen=True, slots=True)
class RESTConfig:
    """A client's configuration. `with_(…)` returns a copy with changes.

    host: the server's URL, a path in front of the API included.
    ca_data, ca_file: PEM of the authorities that may sign the server's certificate; by default those that this machine trusts.
    server_name: the name the server's certificate must have; empty: the host's.
    insecure: take any certificate.
    cert_data, cert_file and key_data, key_file: PEM of a client certificate and its key.
    token, token_file: a bearer token; the file is read again every minute, and takes precedence.
    namespace: of the kubeconfig's context or the pod; the default for requests.
    qps, burst: requests per second, and how many may come at once. 0: as many as there are (servers hold back by priority and
        fairness); client-go's own defaults are 5 and 10.
    timeout: seconds for one request that isn't a watch; None: no limit.
    proxy_url: of a proxy (http, https, socks5); empty: none.
    disable_compression: passed to exec plugins; this client never asks for compressed answers.

    Data takes precedence over a file. Files are read when a client is created, and again before requests if they changed. Raises
    ValueError with one sentence for contradictions.
    """

    host: str
    ca_data: bytes = b""
    server_name: str = ""
    insecure: bool = False
    cert_data: bytes = b""
    key_data: bytes = dataclasses.field(default=b"", repr=False)
    token: str = dataclasses.field(default="", repr=False)
    token_file: Path | None = None
    username: str = ""
    password: str = dataclasses.field(default="", repr=False)
    exec_provider: ExecConfig | None = None
    impersonate: ImpersonationConfig = ImpersonationConfig()
    namespace: str = "default"
    user_agent: str = DEFAULT_USER_AGENT
    qps: float = 0.0
    burst: int = 0
    timeout: float | None = None
    proxy_url: str = ""
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    disable_compression: bool = False

    def __post_init__(self) -> None:
        parts = urlsplit(self.host)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"host must be a URL such as https://127.0.0.1:6443, not {self.host!r}")
        if self.has_certificate != bool(self.key_data or self.key_file):
            raise ValueError("a client certificate needs its key, and a key its certificate")
        if self.token and self.username:
            raise ValueError("username/password or bearer token may be set, but not both")
        if self.proxy_url:
            proxy.check(self.proxy_url)

    @property
    def is_plain(self) -> bool:
        """Without TLS."""
        return self.host.startswith("http:")

    @property
    def has_authorities(self) -> bool:
        return bool(self.ca_data or self.ca_file)

    @property
    def has_certificate(self) -> bool:
        return bool(self.cert_data or self.cert_file)

    def with_(self, **changes: object) -> Self:
        """Another one with `changes`. TypeError for a field there isn't."""
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]

    def impersonating(self, user_name: str, groups: Sequence[str] = (), uid: str = "") -> Self:
        """The same, as another user (kubectl's --as)."""
        return dataclasses.replace(self, impersonate=ImpersonationConfig(user_name, uid, groups))

    def authorization(self) -> str:
        """The value of the header Authorization, empty for none. A name in the URL goes first, as in Go's client."""
        parts = urlsplit(self.host)
        if parts.username is not None:
            return _basic(unquote(parts.username), unquote(parts.password or ""))
        if self.token:
            return f"Bearer {self.token}"
        return _basic(self.username, self.password) if self.username else ""

    def authorities(self) -> bytes:
        """PEM of `ca_data` or what stands in `ca_file` now; empty for none. ValueError in the words of client-go's transport, OSError
        for a file that can't be read."""
        bundle = _content(self.ca_data, self.ca_file)
        if bundle:
            _check_authorities(bundle)
        return bundle

    def certificate(self) -> KeyPair | None:
        """Returns the current client certificate, or None.

        Raises ValueError in the words of Go's tls.X509KeyPair, OSError for an unreadable file.
        """
        if not self.has_certificate:
            return None
        pair = KeyPair(_content(self.cert_data, self.cert_file), _content(self.key_data, self.key_file))
        check_key_pair(pair)
        return pair

    def tls(self) -> tuple[bytes, KeyPair | None]:
        """The authorities and the certificate. ValueError, OSError."""
        if self.insecure and self.has_authorities:
            raise ValueError("specifying a root certificates file with the insecure flag is not allowed")
        return self.authorities(), self.certificate()


def _content(data: bytes, file: Path | None) -> bytes:
    return data or (read_file(file) if file is not None else b"")


def _basic(name: str, password: str) -> str:
    return f"Basic {b64encode(f'{name}:{password}'.encode()).decode()}"


def _check_authorities(bundle: bytes) -> None:
    if b"-----BEGIN " not in bundle:
        raise ValueError("unable to load root certificates: unable to parse bytes as PEM block")
    try:
        check_bundle("", bundle)
    except MalformedCertificate:
        why = "failed to parse certificate: x509: malformed certificate"
        raise ValueError(f"unable to load root certificates: {why}") from None
    except ValueError:
        raise ValueError("unable to load root certificates: no valid certificate authority data seen") from None


def check_key_pair(pair: KeyPair) -> None:
    """ValueError in the words of Go's tls.X509KeyPair for a certificate that can't be shown."""
    for name, pem in (("certificate", pair.certificate), ("key", pair.key)):
        if b"-----BEGIN " not in pem:
            raise ValueError(f"tls: failed to find any PEM data in {name} input")
    try:
        check_pair(pair.certificate, pair.key)
    except OSError:
        raise ValueError("tls: private key does not match public key") from None
