"""What Go's URL parser says of a text that is no URL.

Upstream: net/url/url.go
"""

import re
from typing import Final

from fakeapiserver.apimachinery.field import go_quote

SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
ESCAPED: Final = re.compile(r"%(?![0-9a-fA-F]{2})")
_HOST_CHARACTERS: Final = re.compile(r"[^A-Za-z0-9\x80-\U0010ffff$\-_.+!*'(),&=;:%<>\"\[\]@~]")


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
        if problem := _authority_problem(authority):
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


def _authority_problem(authority: str) -> str:
    user, at, host = authority.rpartition("@")
    if at and re.search(r"[^A-Za-z0-9\-._:~!$&'()*+,;=%@]", user):
        return "net/url: invalid userinfo"
    if host.startswith("["):
        inner, bracket, after = host.rpartition("]")
        if not bracket:
            return "missing ']' in host"
        if after and not re.fullmatch(r":\d*", after):
            return f"invalid port {go_quote(after)} after host"
        return _escape_problem(inner)
    if ":" in host:
        port = host[host.rindex(":") :]
        if not re.fullmatch(r":\d*", port):
            return f"invalid port {go_quote(port)} after host"
    if problem := _escape_problem(host):
        return problem
    bad = _HOST_CHARACTERS.search(host)
    return f"invalid character {go_quote(bad.group())} in host name" if bad else ""
