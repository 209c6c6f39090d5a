"""Static bearer tokens: those of `--token-auth-file`, and the server's own administrator.

Upstream: k8s.io/apiserver/pkg/authentication/token/tokenfile/tokenfile.go. The file is CSV: `token,user,uid,"group1,group2"`.
"""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from fakeapiserver.auth.interfaces import Response, UserInfo

MASTERS = "system:masters"


class StaticTokens:
    """Tokens known in advance. A dict finds them by hash, so how long a look-up takes tells little about a near miss."""

    def __init__(self, tokens: Mapping[str, UserInfo]) -> None:
        self._tokens = dict(tokens)

    async def authenticate_token(self, token: str, audiences: Sequence[str]) -> Response | None:
        user = self._tokens.get(token)
        return Response(user) if user is not None else None


def admin_token(token: str, name: str = "system:apiserver") -> StaticTokens:
    """The server's own administrator, made at start and never written to a file (upstream: the loopback client's token)."""
    return StaticTokens({token: UserInfo(name, groups=(MASTERS,))})


def load_token_file(path: str | Path) -> StaticTokens:
    """Reads a token file; ValueError names the file and the line of what is wrong, OSError when it cannot be read."""
    with open(path, newline="", encoding="utf-8") as file:
        return StaticTokens(parse_tokens(file.read(), str(path)))


def parse_tokens(text: str, name: str = "tokens") -> dict[str, UserInfo]:
    """Token -> user. Empty lines and lines with an empty token are skipped; of equal tokens the last counts, as upstream."""
    tokens: dict[str, UserInfo] = {}
    reader = csv.reader(text.splitlines(keepends=True), strict=True)
    try:
        for row in reader:
            if row:
                _add(tokens, row, f"token file '{name}', line {reader.line_num}")
    except csv.Error as error:
        raise ValueError(f"token file '{name}', line {reader.line_num}: {error}") from error
    return tokens


def _add(tokens: dict[str, UserInfo], row: list[str], place: str) -> None:
    if len(row) < 3:
        raise ValueError(f"{place}: must have at least 3 columns (token, user name, user uid), found {len(row)}")
    if row[0]:
        groups = tuple(row[3].split(",")) if len(row) > 3 else ()
        tokens[row[0]] = UserInfo(row[1], row[2], groups)
