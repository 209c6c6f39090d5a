"""What a client adds to each request to say who it is.

Upstream: k8s.io/client-go/transport/{round_trippers,token_source}.go, k8s.io/client-go/plugin/pkg/client/auth/exec/exec.go.
"""

from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import quote

from fakeapiserver.client.config import ImpersonationConfig, RESTConfig
from fakeapiserver.clock import Clock
from fakeapiserver.transport.certificates import KeyPair

_TOKEN_FILE_SECONDS: Final = 60.0
# Letters that stand as they are in a header's name.
_NAME_LETTERS: Final = "!#$&'*+-.^_`|~"


@dataclass(frozen=True, slots=True)
class Credential:
    """The value of an Authorization header, empty for none, and a client certificate."""

    authorization: str = ""
    certificate: KeyPair | None = None


class CredentialSource(Protocol):
    """Where credentials come from; they may change while a client runs."""

    async def current(self) -> Credential:
        """What is good now. OSError, ValueError with a sentence."""

    def rejected(self, credential: Credential) -> None:
        """The server answered 401 to it."""


class FixedCredential:
    """A token, a name and password, a certificate, or nothing."""

    def __init__(self, credential: Credential) -> None:
        self._credential = credential

    async def current(self) -> Credential:
        return self._credential

    def rejected(self, credential: Credential) -> None:
        """There is no other."""


class TokenFile:
    """A bearer token that something else renews. What was read last stays good while the file can't be read."""

    def __init__(self, path: Path, fallback: str, certificate: KeyPair | None, clock: Clock) -> None:
        self._path = path
        self._certificate = certificate
        self._clock = clock
        self._token = fallback
        self._expiry: float | None = None

    async def current(self) -> Credential:
        if self._expiry is None or self._clock.monotonic() >= self._expiry:
            try:
                text = self._path.read_text().strip()
                if not text:
                    raise OSError(f"read empty token from file {self._path}")
                self._token = text
            except OSError:
                if not self._token:
                    raise
            self._expiry = self._clock.monotonic() + _TOKEN_FILE_SECONDS
        return Credential(f"Bearer {self._token}", self._certificate)

    def rejected(self, credential: Credential) -> None:
        """The file is read again before the next request."""
        self._expiry = None


def source_of(
    config: RESTConfig, clock: Clock, plugin: Callable[[RESTConfig, Clock], CredentialSource]
) -> CredentialSource:
    """The source that `config` asks for; `plugin` makes one of its exec_provider."""
    certificate = KeyPair(config.cert_data, config.key_data) if config.cert_data else None
    if config.exec_provider is not None and not (config.token or config.username):
        return plugin(config, clock)
    if config.token_file is not None:
        return TokenFile(config.token_file, config.token, certificate, clock)
    if config.token:
        return FixedCredential(Credential(f"Bearer {config.token}", certificate))
    if config.username:
        pair = f"{config.username}:{config.password}".encode()
        return FixedCredential(Credential(f"Basic {b64encode(pair).decode()}", certificate))
    return FixedCredential(Credential("", certificate))


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


__all__ = ["Credential", "CredentialSource", "FixedCredential", "TokenFile", "impersonation_headers", "source_of"]
