"""URLs as Go reads and writes them, with its parser's errors.

Upstream: net/url/url.go
"""

import re
from typing import Final, NamedTuple
from urllib.parse import quote, unquote, unquote_to_bytes

from fakeapiserver.apimachinery.go.address import address_problem
from fakeapiserver.apimachinery.go.quote import go_quote

SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
ESCAPED: Final = re.compile(r"%(?![0-9a-fA-F]{2})")
_NOT_OF_USER: Final = re.compile(r"[^A-Za-z0-9\-._:~!$&'()*+,;=%@]")
# Only bytes beyond ASCII may be escaped, and the sign of escapes itself.
_NOT_OF_HOST: Final = re.compile(r"[^A-Za-z0-9\x80-\U0010ffff$\-_.+!*'(),&=;:%<>\"\[\]~]|%(?!25|[89a-fA-F][0-9a-fA-F])")
_PORT: Final = re.compile(r"(?::[0-9]*)?")


# What EscapedPath leaves as it is, beside letters and digits; and what a path may be written with by others.
PATH_SAFE: Final = "/$&+,:;=@-_.~"
_VALID_PATH: Final = re.compile(r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/\[\]]|%[0-9a-fA-F]{2})*")


class URL(NamedTuple):
    """The parts of a URL.

    `authority` is `user:password@host:port`, `path` is as written, and is all that follows the scheme if
    that isn't the beginning of a
    path.
    """

    scheme: str
    authority: str
    query: str
    fragment: str
    path: str = ""

    @property
    def is_absolute(self) -> bool:
        """Reports whether the URL has a path on its server."""
        return self.path.startswith("/")

    def text(self) -> str:
        """Returns the URL as Go writes it: characters that are invalid in a path are escaped."""
        path = self.path if _VALID_PATH.fullmatch(self.path) else escaped_path(unquote_to_bytes(self.path))
        scheme = f"{self.scheme}:" if self.scheme else ""
        authority = f"//{self.authority}" if self.authority else ""
        query = f"?{self.query}" if self.query else ""
        return f"{scheme}{authority}{path}{query}{f'#{self.fragment}' if self.fragment else ''}"


def escaped_path(path: str | bytes) -> str:
    """Escapes a path (upstream: URL.EscapedPath)."""
    return quote(path, safe=PATH_SAFE)


def parse(text: str) -> URL:
    """ValueError in url.Parse's words."""
    if problem := url_problem(text):
        raise ValueError(problem)
    rest, _, fragment = text.partition("#")
    match = SCHEME.match(rest)
    rest, _, query = rest[match.end() if match else 0 :].partition("?")
    is_path = not rest.startswith("//") or (not match and rest.startswith("///"))
    authority = "" if is_path else rest[2:].partition("/")[0]
    path = rest if is_path else rest[2 + len(authority) :]
    return URL(match.group(1).lower() if match else "", authority, query, fragment, path)


def path_unescape(text: str) -> str:
    """Unescapes a text; returns it unchanged if an escape is invalid. Bytes that aren't UTF-8 become U+FFFD."""
    return text if ESCAPED.search(text) else unquote(text)


def url_problem(text: str) -> str:
    """Returns the error of url.Parse, or ""."""
    text, _, fragment = text.partition("#")
    return _problem(text, request=False) or (
        f"parse {go_quote(text)}: {bad}" if (bad := _escape_problem(fragment)) else ""
    )


def request_uri_problem(text: str) -> str:
    """Returns the error of url.ParseRequestURI, or ""."""
    return _problem(text, request=True)


def _problem(text: str, *, request: bool) -> str:
    begin = f"parse {go_quote(text)}: "
    if any(c < " " or c == "\x7f" for c in text):
        return f"{begin}net/url: invalid control character in URL"
    if not text:
        return f"{begin}empty url" if request else ""
    if text == "*":
        return ""
    match = SCHEME.match(text)
    if text[0] == ":":
        return f"{begin}missing protocol scheme"
    rest = (text[match.end() :] if match else text).partition("?")[0]
    if not rest.startswith("/"):
        return "" if match else begin + problem if (problem := _relative_problem(rest, request)) else ""
    if rest.startswith("//") and (match or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        if request and not match:
            authority, slash, path = "", "", rest
        if problem := _authority_problem(match.group(1).lower() if match else "", authority):
            return begin + problem
        rest = slash + path
    return begin + problem if (problem := _escape_problem(rest)) else ""


def _relative_problem(text: str, request: bool) -> str:
    if request:
        return "invalid URI for request"
    return "first path segment in URL cannot contain colon" if ":" in text.partition("/")[0] else _escape_problem(text)


def _escape_problem(text: str) -> str:
    match = ESCAPED.search(text)
    return f"invalid URL escape {go_quote(text[match.start() : match.start() + 3])}" if match else ""


def _authority_problem(scheme: str, authority: str) -> str:
    user, at, host = authority.rpartition("@")
    if problem := _literal_problem(host) if "[" in host else _host_problem(scheme, host):
        return problem
    if at and _NOT_OF_USER.search(user):
        return "net/url: invalid userinfo"
    return _escape_problem(user)


def _literal_problem(host: str) -> str:
    """Returns the error in an address in brackets, with or without a port."""
    if not host.startswith("[") or host.rindex("[") > 0:
        return "invalid IP-literal"
    address, bracket, port = host[1:].rpartition("]")
    if not bracket:
        return "missing ']' in host"
    if not _PORT.fullmatch(port):
        return f"invalid port {go_quote(port)} after host"
    address, mark, zone = address.partition("%25")
    if problem := _name_problem(address) or _escape_problem(zone):
        return problem
    shown = unquote(address) + ("%" + unquote(zone) if mark else "")
    if problem := address_problem(shown):
        return f"invalid host: ParseAddr({go_quote(shown)}): {problem}"
    return "" if ":" in shown else "invalid IP-literal"


def _host_problem(scheme: str, host: str) -> str:
    if ":" in host:
        # Only web addresses are held to one colon.
        port = host[host.index(":") if scheme in ("http", "https") else host.rindex(":") :]
        if not _PORT.fullmatch(port):
            return f"invalid port {go_quote(port)} after host"
    return _name_problem(host)


def _name_problem(host: str) -> str:
    """Returns the error in a host's name, which may have hardly any escapes."""
    match = _NOT_OF_HOST.search(host)
    if match is None:
        return ""
    if match.group() == "%":
        return f"invalid URL escape {go_quote(host[match.start() : match.start() + 3])}"
    return f"invalid character {go_quote(match.group())} in host name"
