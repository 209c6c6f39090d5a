"""URLs (upstream: k8s.io/apiserver/pkg/cel/library/urls.go)."""

from functools import cached_property
from typing import ClassVar, Final
from urllib.parse import quote, unquote_to_bytes

from msgspec import Struct

from fakeapiserver.apimachinery.go.url import ESCAPED, SCHEME, request_uri_problem
from fakeapiserver.languages.cel.errors import CelError
from fakeapiserver.languages.cel.kubernetes.shared import Function
from fakeapiserver.languages.cel.types import Type, struct


class URL(Struct, frozen=True, dict=True):
    """Parts as Go's url.URL has them, `path` and `query` as written."""

    cel_type: ClassVar[Type] = struct("kubernetes.URL")
    scheme: str
    host: str
    path: str
    query: str
    text: str

    @cached_property
    def hostname(self) -> str:
        host = self.host
        if host.startswith("["):
            return host[1:].partition("]")[0]
        return host.rpartition(":")[0] if ":" in host else host

    @property
    def port(self) -> str:
        after = self.host.rpartition("]")[2] if self.host.startswith("[") else self.host
        return after.rpartition(":")[2] if ":" in after else ""


def _url(text: str) -> URL:
    if problem := request_uri_problem(text):
        raise CelError(f"URL parse error during conversion from string: {problem}")
    body = text.partition("#")[0]
    match = SCHEME.match(body)
    scheme, rest = (match.group(1).lower(), body[match.end() :]) if match else ("", body)
    rest, _, query = rest.partition("?")
    host = ""
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        host, rest = authority.rpartition("@")[2], slash + path
        host = unquote_to_bytes(host).decode(errors="replace")
    elif not rest.startswith("/") and scheme:
        rest = ""
    return URL(scheme, host, rest, query, text)


def _escaped_path(url: URL) -> str:
    return quote(url.path, safe="/%:@&=+$,;~!*'()[]-_.")


def _query(url: URL) -> dict[str, list[str]]:
    parameters: dict[str, list[str]] = {}
    for pair in url.query.split("&"):
        if not pair or ";" in pair or ESCAPED.search(pair):
            continue
        key, _, value = pair.replace("+", " ").partition("=")
        plain = [unquote_to_bytes(part).decode(errors="replace") for part in (key, value)]
        parameters.setdefault(plain[0], []).append(plain[1])
    return parameters


URLS: Final[dict[str, Function]] = {
    "string_to_url": _url,
    "is_url_string": lambda a: not request_uri_problem(a),
    "url_get_scheme": lambda a: a.scheme,
    "url_get_host": lambda a: a.host,
    "url_get_hostname": lambda a: a.hostname,
    "url_get_port": lambda a: a.port,
    "url_get_escaped_path": _escaped_path,
    "url_get_query": _query,
}
