"""What Go's URL parser says of a text that is no URL.

Upstream: net/url/url.go
"""

import re
from typing import Final, NamedTuple
from urllib.parse import unquote

from fakeapiserver.apimachinery.field import go_quote
from fakeapiserver.apimachinery.go_address import address_problem

SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
ESCAPED: Final = re.compile(r"%(?![0-9a-fA-F]{2})")
_NOT_OF_USER: Final = re.compile(r"[^A-Za-z0-9\-._:~!$&'()*+,;=%@]")
# Only bytes beyond ASCII may be escaped, and the sign of escapes itself.
_NOT_OF_HOST: Final = re.compile(r"[^A-Za-z0-9\x80-\U0010ffff$\-_.+!*'(),&=;:%<>\"\[\]~]|%(?!25|[89a-fA-F][0-9a-fA-F])")
_PORT: Final = re.compile(r"(?::[0-9]*)?")


class URL(NamedTuple):
    """What a URL says. `authority` is `user:password@host:port`."""

    scheme: str
    authority: str
    query: str
    fragment: str


def parse(text: str) -> URL:
    """ValueError in url.Parse's words."""
    if problem := url_problem(text):
        raise ValueError(problem)
    rest, _, fragment = text.partition("#")
    found = SCHEME.match(rest)
    rest, _, query = rest[found.end() if found else 0 :].partition("?")
    is_path = not rest.startswith("//") or (not found and rest.startswith("///"))
    authority = "" if is_path else rest[2:].partition("/")[0]
    return URL(found.group(1).lower() if found else "", authority, query, fragment)


def path_unescape(text: str) -> str:
    """The text without its escapes; as it stands where one of them is none. Bytes that aren't UTF-8 are U+FFFD."""
    return text if ESCAPED.search(text) else unquote(text)


def url_problem(text: str) -> str:
    """url.Parse's words, empty for what it takes."""
    text, _, fragment = text.partition("#")
    return _problem(text, request=False) or (
        f"parse {go_quote(text)}: {bad}" if (bad := _escape_problem(fragment)) else ""
    )


def request_uri_problem(text: str) -> str:
    """url.ParseRequestURI's words, empty for what it takes."""
    return _problem(text, request=True)


def _problem(text: str, *, request: bool) -> str:
    begin = f"parse {go_quote(text)}: "
    if any(c < " " or c == "\x7f" for c in text):
        return f"{begin}net/url: invalid control character in URL"
    if not text:
        return f"{begin}empty url" if request else ""
    if text == "*":
        return ""
    found = SCHEME.match(text)
    if text[0] == ":":
        return f"{begin}missing protocol scheme"
    rest = (text[found.end() :] if found else text).partition("?")[0]
    if not rest.startswith("/"):
        return "" if found else begin + problem if (problem := _relative_problem(rest, request)) else ""
    if rest.startswith("//") and (found or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        if request and not found:
            authority, slash, path = "", "", rest
        if problem := _authority_problem(found.group(1).lower() if found else "", authority):
            return begin + problem
        rest = slash + path
    return begin + problem if (problem := _escape_problem(rest)) else ""


def _relative_problem(text: str, request: bool) -> str:
    if request:
        return "invalid URI for request"
    return "first path segment in URL cannot contain colon" if ":" in text.partition("/")[0] else _escape_problem(text)


def _escape_problem(text: str) -> str:
    found = ESCAPED.search(text)
    return f"invalid URL escape {go_quote(text[found.start() : found.start() + 3])}" if found else ""


def _authority_problem(scheme: str, authority: str) -> str:
    user, at, host = authority.rpartition("@")
    if problem := _literal_problem(host) if "[" in host else _host_problem(scheme, host):
        return problem
    if at and _NOT_OF_USER.search(user):
        return "net/url: invalid userinfo"
    return _escape_problem(user)


def _literal_problem(host: str) -> str:
    """Of an address in brackets, with a port or without."""
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
    """What may stand in a host's name: hardly any escapes."""
    found = _NOT_OF_HOST.search(host)
    if found is None:
        return ""
    if found.group() == "%":
        return f"invalid URL escape {go_quote(host[found.start() : found.start() + 3])}"
    return f"invalid character {go_quote(found.group())} in host name"
