"""Users in a front proxy's headers: accepted if the proxy's certificate is from the right authority and has an allowed name.

Upstream: k8s.io/apiserver/pkg/authentication/request/headerrequest/requestheader.go.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from fakeapiserver.apimachinery.errors import new_unauthorized
from fakeapiserver.apimachinery.go.url import path_unescape
from fakeapiserver.auth import client_certificates
from fakeapiserver.auth.interfaces import Credentials, UserInfo
from fakeapiserver.clock import Clock

if TYPE_CHECKING:
    from fakeapiserver.auth.client_certificates import CertificateVerifier

_CACHE_SIZE: Final = 256
# The gate: whether proxies may send uids, and aggregated servers get them.
REQUEST_HEADER_UID: Final = "RemoteRequestHeaderUID"
_KEEP_REFUSED: Final = 10.0  # seconds: a certificate may not be valid yet


class RequestHeaderConfig(Struct, frozen=True):
    """The --requestheader- flags. `client_ca` is PEM; no allowed name at all allows every one. The defaults are kubeadm's."""

    client_ca: bytes
    allowed_names: tuple[str, ...] = ("front-proxy-client",)
    username_headers: tuple[str, ...] = ("X-Remote-User",)
    uid_headers: tuple[str, ...] = ("X-Remote-Uid",)
    group_headers: tuple[str, ...] = ("X-Remote-Group",)
    extra_header_prefixes: tuple[str, ...] = ("X-Remote-Extra-",)

    @property
    def headers(self) -> tuple[bytes, ...]:
        """The headers that carry a user, in lower case."""
        return tuple(map(_lower, (*self.username_headers, *self.uid_headers, *self.group_headers)))

    @property
    def prefixes(self) -> tuple[bytes, ...]:
        """The same of prefixes."""
        return tuple(map(_lower, self.extra_header_prefixes))


class RequestHeader:
    """Raises StatusError 401 for a certificate that is no front proxy's; None where no user is named."""

    def __init__(self, config: RequestHeaderConfig, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._verifier: CertificateVerifier | None = None
        self._known: dict[tuple[bytes, tuple[bytes, ...]], tuple[float, bool]] = {}

    async def authenticate(self, credentials: Credentials) -> UserInfo | None:
        if not credentials.peer_certificate:
            return None
        self._check(credentials.peer_certificate, credentials.peer_chain)
        config, headers = self._config, credentials.headers
        name = _first(headers, config.username_headers)
        if not name:
            return None
        groups = tuple(value for header in config.group_headers for value in _values(headers, header) if value)
        extra: dict[str, tuple[str, ...]] = {}
        for prefix in config.prefixes:
            for header, value in headers:
                if header.startswith(prefix):
                    key = path_unescape(header[len(prefix) :].decode("latin-1"))
                    extra[key] = (*extra.get(key, ()), _text(value))
        return UserInfo(name, _first(headers, config.uid_headers), groups, extra)

    def _check(self, leaf: bytes, chain: tuple[bytes, ...]) -> None:
        """StatusError 401. Either outcome is remembered: every client that has a certificate is asked here first."""
        now, key = self._clock.now(), (leaf, chain)
        known = self._known.get(key)
        if known is None or known[0] < now:
            if len(self._known) >= _CACHE_SIZE:
                self._known.pop(next(iter(self._known)))
            known = self._known[key] = self._verify(leaf, chain, now)
        if not known[1]:
            raise new_unauthorized()

    def _verify(self, leaf: bytes, chain: tuple[bytes, ...], now: float) -> tuple[float, bool]:
        """Until when it holds (seconds since the epoch), and whether it is a front proxy's."""
        if self._verifier is None:
            self._verifier = client_certificates.CertificateVerifier(self._config.client_ca)
        try:
            certificate, expires = self._verifier.verify(leaf, chain, now)
        except ValueError:
            return now + _KEEP_REFUSED, False
        allowed = self._config.allowed_names
        return expires, not allowed or certificate.common_name in allowed


def _lower(header: str) -> bytes:
    return header.strip().lower().encode()


def _first(headers: Sequence[tuple[bytes, bytes]], wanted: Sequence[str]) -> str:
    """The first value of the first of these headers that has one."""
    return next((value for header in wanted for value in list(_values(headers, header))[:1] if value), "")


def _values(headers: Sequence[tuple[bytes, bytes]], header: str) -> Iterator[str]:
    wanted = _lower(header)
    return (_text(value) for name, value in headers if name == wanted)


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
