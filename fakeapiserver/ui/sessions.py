"""Log-in to the page: one-time links, sessions in cookies, and the token that requests which change something need."""

import hashlib
import hmac
import secrets
import time
from typing import Final

# Seconds until an unused link expires, and the most links and sessions that exist at a time: the oldest ones go first.
_LINK_LIFETIME: Final = 3600.0
_MOST: Final = 64


class Sessions:
    """The links and sessions of one server. They live as long as its process."""

    def __init__(self) -> None:
        self._links: dict[bytes, float] = {}
        # The digest of a session's secret -> its token against forged requests.
        self._sessions: dict[bytes, str] = {}

    def new_code(self) -> str:
        """Returns the code of a new link, which logs in once, within an hour."""
        code = secrets.token_urlsafe(24)
        _keep_newest(self._links)
        self._links[_digest(code)] = time.monotonic() + _LINK_LIFETIME
        return code

    def log_in(self, code: str) -> str | None:
        """Returns the secret of a new session, or None if the code is unknown, used or expired."""
        expires = self._links.pop(_digest(code), 0.0)
        if time.monotonic() >= expires:
            return None
        secret = secrets.token_urlsafe(32)
        _keep_newest(self._sessions)
        self._sessions[_digest(secret)] = secrets.token_urlsafe(24)
        return secret

    def token(self, secret: str) -> str | None:
        """Returns the token of a session, or None if there is no such session."""
        return self._sessions.get(_digest(secret))

    def is_token(self, secret: str, token: str) -> bool:
        """Reports whether `token` is that of the session."""
        expected = self.token(secret)
        return expected is not None and hmac.compare_digest(expected.encode(), token.encode("utf-8", "replace"))


def _digest(text: str) -> bytes:
    """Secrets are looked up by their digests, so that the time of a look-up says nothing about them."""
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()


def _keep_newest(entries: dict[bytes, float] | dict[bytes, str]) -> None:
    while len(entries) >= _MOST:
        del entries[next(iter(entries))]
