"""Static bearer tokens: those of `--token-auth-file`, and the server's own administrator.

Upstream: k8s.io/apiserver/pkg/authentication/token/tokenfile/tokenfile.go. The file is CSV: `token,user,uid,"group1,group2"`.
"""

import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path

from fakeapiserver.apimachinery import go_csv
from fakeapiserver.auth.interfaces import Response, UserInfo
from fakeapiserver.transport.files import read_file

MASTERS = "system:masters"


class StaticTokens:
    """Authenticates static tokens. They are looked up by hash, so the time reveals little about a near miss."""

    def __init__(self, tokens: Mapping[str, UserInfo]) -> None:
        self._tokens = dict(tokens)

    def new(self, user: UserInfo) -> str:
        """Returns a new token of a user."""
        token = secrets.token_urlsafe(24)
        self._tokens[token] = user
        return token

    async def authenticate_token(self, token: str, audiences: Sequence[str]) -> Response | None:
        user = self._tokens.get(token)
        return Response(user) if user is not None else None


def admin_token(token: str, name: str = "system:apiserver") -> StaticTokens:
    """The server's own administrator, made at start and never written to a file (upstream: the loopback client's token)."""
    return StaticTokens({token: UserInfo(name, groups=(MASTERS,))})


def load_token_file(path: Path) -> StaticTokens:
    """Reads a token file. Raises ValueError with the line of an error, OSError for an unreadable file."""
    return StaticTokens(parse_tokens(read_file(path).decode("utf-8", "surrogateescape"), str(path)))


def parse_tokens(text: str, name: str = "tokens") -> dict[str, UserInfo]:
    """Token -> user. Empty lines and lines with an empty token are skipped; of equal tokens the last counts, as upstream."""
    tokens: dict[str, UserInfo] = {}
    for line, record in go_csv.records(text):
        if len(record) < 3:
            raise ValueError(
                f"token file '{name}', line {line}: must have at least 3 columns (token, user name, user uid), "
                f"found {len(record)}"
            )
        if record[0]:
            groups = tuple(record[3].split(",")) if len(record) > 3 else ()
            tokens[record[0]] = UserInfo(record[1], record[2], groups)
    return tokens
