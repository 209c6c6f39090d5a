"""The credentials that a client adds to each request.

Upstream: k8s.io/client-go/transport/{round_trippers,token_source,transport}.go, k8s.io/client-go/plugin/pkg/client/auth/exec/exec.go.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import quote

from msgspec import Struct

from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.client.config import ImpersonationConfig, RESTConfig
from fakeapiserver.clock import Clock
from fakeapiserver.transport.files import Reread, read_file
from fakeapiserver.transport.key_pair import KeyPair

# Upstream: a minute, less ten seconds of leeway.
_TOKEN_FILE_SECONDS: Final = 50.0
# Letters that stand as they are in a header's name.
_NAME_LETTERS: Final = "!#$&'*+-.^_`|~"


class Credential(Struct, frozen=True):
    """The value of an Authorization header, empty for none, and a client certificate."""

    authorization: str = ""
    certificate: KeyPair | None = None


class CredentialSource(Protocol):
    """A source of credentials, which may change while a client runs."""

    async def current(self) -> Credential:
        """Returns the valid credentials. Raises OSError, ValueError with a sentence."""

    def rejected(self, credential: Credential) -> None:
        """The server answered 401 to it."""


Certificate = Reread[KeyPair | None]


def client_certificate(config: RESTConfig, clock: Clock) -> Certificate:
    """The certificate of a config; where it stands in files, as they are. ValueError, OSError for what can't be used."""
    in_files = not (config.cert_data or config.key_data)
    paths = [path for path in (config.cert_file, config.key_file) if path is not None] if in_files else []
    return Reread(paths, config.certificate, clock)


class FixedCredential:
    """A token, a name and password, a certificate, or nothing."""

    def __init__(self, authorization: str, certificate: Certificate) -> None:
        self._authorization = authorization
        self._certificate = certificate

    async def current(self) -> Credential:
        return Credential(self._authorization, self._certificate.current())

    def rejected(self, credential: Credential) -> None:
        """There is no other."""


class TokenFile:
    """A bearer token that something else renews. What was read last stays good while the file can't be read."""

    def __init__(self, path: Path, fallback: str, certificate: Certificate, clock: Clock) -> None:
        self._path = path
        self._certificate = certificate
        self._clock = clock
        self._token = fallback
        self._expiry: float | None = None

    async def current(self) -> Credential:
        if self._expiry is None or self._clock.monotonic() >= self._expiry:
            try:
                self._token = self._read()
            except OSError:
                if not self._token:
                    raise
            self._expiry = self._clock.monotonic() + _TOKEN_FILE_SECONDS
        return Credential(f"Bearer {self._token}", self._certificate.current())

    def rejected(self, credential: Credential) -> None:
        """The file is read again before the next request."""
        self._expiry = None

    def _read(self) -> str:
        shown = go_quote(str(self._path))
        try:
            text = read_file(self._path).decode("utf-8", "replace").strip()
        except OSError as error:
            raise OSError(f"failed to read token file {shown}: {error}") from None
        if not text:
            raise OSError(f"read empty token from file {shown}")
        return text


def source_of(
    config: RESTConfig, clock: Clock, plugin: Callable[[RESTConfig, Clock], CredentialSource]
) -> CredentialSource:
    """The source that `config` asks for; `plugin` makes one of its exec_provider, which is asked where there is nothing else.
    ValueError, OSError for a plugin or a certificate that can't be used."""
    asked = plugin(config, clock) if config.exec_provider is not None else None
    certificate = client_certificate(config, clock)
    authorization = config.authorization()
    if config.token_file is not None and not authorization.startswith("Basic "):
        return TokenFile(config.token_file, config.token, certificate, clock)
    if asked is not None and not authorization and not config.has_certificate:
        return asked
    return FixedCredential(authorization, certificate)


def impersonation_headers(impersonate: ImpersonationConfig) -> list[tuple[str, str]]:
    """The Impersonate- headers; keys of `extra` are percent-encoded, as header names hold less than they may. ValueError."""
    rest = impersonate.uid or impersonate.groups or impersonate.extra
    if not impersonate.user_name:
        if rest:
            raise ValueError("impersonating uid, groups or extra needs a user name too")
        return []
    headers = [("Impersonate-User", impersonate.user_name)]
    if impersonate.uid:
        headers.append(("Impersonate-Uid", impersonate.uid))
    headers += [("Impersonate-Group", group) for group in impersonate.groups]
    for key, values in impersonate.extra.items():
        headers += [(f"Impersonate-Extra-{quote(key, safe=_NAME_LETTERS)}", value) for value in values]
    return headers
