"""Random requests through pods/proxy, services/proxy and nodes/proxy of a real server and another one: prints each kind of difference once.

    python -m conformance.compare.proxies --oracle URL --oracle-token T --server URL --token T [--port N] [--seed N] [--count N]

Both servers are fresh and without controllers; both lead to one backend on this machine (players/proxied_backend.py, at `--port` and
the port after it), which needs an address that isn't loopback's. What the client gets is compared, and what the backend was asked.
"""

import gzip
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from conformance.compare.http import exchange
from conformance.exchange import Client, comparing
from conformance.players.proxied_backend import Backend, reachable_address, said

Request = dict[str, Any]

_CORE: Final = "/api/v1/namespaces/default"
_METHODS: Final = ("GET",) * 6 + ("POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE")
_PATHS: Final = (
    *(
        "",
        "/",
        "/a",
        "/a/",
        "/a//b",
        "/a/../b",
        "/a/./b/",
        "/%41%2Fb",
        "/a%20b",
        "/ü",
        "/a;b=c",
        "/a:b@c",
        "/..",
        "/%zz",
    ),
    *("//", "/a%3Fb", "/~x/$y&z+,=", "/proxy/", "/%2e%2e/x"),
)
_QUERIES: Final = (
    "",
    "",
    "",
    "?a=b",
    "?b=1&a=2",
    "?q=1;2&x=%zz",
    "?",
    "?path=/x",
    "?x=a+b%20c",
    "?dryRun=",
    "?timeout=1s",
)
_HEADERS: Final = (
    *(
        "X-Forwarded-For: 192.0.2.9",
        "X-Forwarded-Host: h",
        "X-Forwarded-Proto: p",
        "X-Forwarded-Uri: /u",
        "X-Remote-User: admin",
    ),
    *(
        "X-Remote-Extra-A: b",
        "Impersonate-Extra-X: y",
        "Te: trailers",
        "Te: gzip",
        "User-Agent: me",
        "Accept-Encoding: br",
        "Keep-Alive: 5",
    ),
    *(
        "Accept-Encoding: gzip",
        "Range: bytes=0-1",
        "Proxy-Authorization: x",
        "Cookie: a=b",
        "X-A: 1",
        "X-A: 2",
        "Accept: text/html",
    ),
    *(
        "If-None-Match: x",
        "Origin: http://other",
        "Content-Type: text/plain",
        "Trailer: X-T",
        "Proxy-Connection: x",
        "X-B;Y: 1",
    ),
)
_PAGE: Final = b"""<!DOCTYPE html><HTML manifest=/m><a HREF=/x?a=b&amp;c>t</a><a href='//other/x'>o</a><IMG src="/p q" alt="1 & 2"/>
<script src=/s.js>if (a<b) "<a href=/z>"</script><!-- <a href="/c"> --><form action="http://{host}/f/"><input formaction=rel disabled>
<a href=":::">bad</a><a href="mailto:a@b">m</a><textarea><a href=/t></textarea><video poster=/v src=/w></video>&copy;<a b/c href=/y/>"""


class Generator:
    """Makes requests out of one random source. `address`, `port`: the backend's."""

    def __init__(self, seed: int, address: str, port: int) -> None:
        self._random = random.Random(seed)
        self._host = f"{address}:{port}"
        ports = (f"{port}", f"{port}", "1", "99999", "")
        names = [f"{scheme}p:{number}" for scheme in ("", "http:") for number in ports if number or not scheme]
        self._targets = [
            f"{_CORE}/pods/{name}" for name in ("p", "p", *names, f"https:p:{port + 1}", "none", "local", "ftp:p:1")
        ]
        self._targets += [
            f"{_CORE}/services/{name}"
            for name in ("s:http", "s:80", "https:s:tls", "https:s:443", "s", "s:81", "none", "plain")
        ]
        self._targets += [
            f"/api/v1/nodes/{name}" for name in ("n", f"n:{port}", f"https:n:{port + 1}", "none", "local", "n:99999")
        ]
        self._answers = list(self._scripts())

    def request(self) -> tuple[list[str], str]:
        """(lines of the head but for the credentials, body)."""
        pick, chance = self._random.choice, self._random.random
        path = f"/{said(pick(self._answers))}" if chance() < 0.5 else pick(_PATHS)
        method = pick(_METHODS)
        lines = [f"{method} {pick(self._targets)}/proxy{path}{pick(_QUERIES)} HTTP/1.1", "Host: api.example:1"]
        lines += self._random.sample(_HEADERS, pick((0, 0, 1, 2, 4)))
        if chance() < 0.1:
            return [*lines, "Connection: Upgrade", "Upgrade: some"], ""
        body = pick(("", "", "said", "x" * 100)) if method in ("POST", "PUT", "PATCH", "DELETE") else ""
        lines += [f"Content-Length: {len(body)}"] if body or chance() < 0.2 else []
        return [*lines, "Connection: close"], body

    def _scripts(self) -> Iterator[bytes]:
        page = _PAGE.replace(b"{host}", self._host.encode())
        packed = gzip.compress(b'<a href="/x">packed</a>', mtime=0)
        for kind in (b"text/html", b"text/html; charset=utf-8", b"text/plain"):
            yield _answer(
                b"200 OK", page, b"Content-Type: " + kind, b"Access-Control-Allow-Origin: *", b"X-A: 1", b"X-A: 2"
            )
            yield _answer(b"200 OK", packed, b"Content-Type: " + kind, b"Content-Encoding: gzip")
            yield _answer(b"200 OK", packed, b"Content-Type: " + kind, b"Content-Encoding: br")
        for where in (
            b"/a",
            b"a",
            b"http://" + self._host.encode() + b"/q/",
            b"http://api.example:1/q",
            b"//other/q",
            b":::",
            b"/a b%2F?x=1#f",
        ):
            yield _answer(b"302 Found", b"", b"Location: " + where)
            yield _answer(b"201 Created", b"made", b"Location: " + where, b"Content-Type: text/html")
        yield _answer(
            b"200 OK", b"hi", b"Connection: X-B", b"X-B: 1", b"Keep-Alive: x", b"Cache-Control: max-age=5", b"Server: s"
        )
        yield _answer(b"404 Not Found", b'{"kind":"Status"}')
        yield _answer(b"500 Internal Server Error", b"<html>no type")
        yield b"HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
        yield b"HTTP/1.1 204 No Content\r\n\r\n"
        yield b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n"
        yield b"HTTP/1.0 200 OK\r\nContent-Type: text/x\r\n\r\nuntil the end"
        yield b"garbage\r\n\r\n"
        yield b""


def _answer(status: bytes, body: bytes, *headers: bytes) -> bytes:
    return b"\r\n".join([b"HTTP/1.1 " + status, *headers, b"Content-Length: %d" % len(body), b"", body])


def setup(address: str, port: int) -> Iterator[Request]:
    """Pods, services and nodes that lead to the backend, and some that don't."""
    endpoint = {"ip": address, "targetRef": {"kind": "Pod", "namespace": "default", "name": "p"}}
    container = {"name": "c", "image": "i", "ports": [{"containerPort": port}]}
    for name, ip in (("p", address), ("local", "127.0.0.1")):
        yield {
            "method": "POST",
            "path": f"{_CORE}/pods",
            "body": {"metadata": {"name": name}, "spec": {"containers": [container]}},
        }
        yield _status(f"{_CORE}/pods/{name}", {"podIP": ip, "podIPs": [{"ip": ip}]})
        yield {"method": "POST", "path": "/api/v1/nodes", "body": {"metadata": {"name": "n" if name == "p" else name}}}
        daemon = {"kubeletEndpoint": {"Port": port + 1}}
        yield _status(
            f"/api/v1/nodes/{'n' if name == 'p' else name}",
            {"addresses": [{"type": "InternalIP", "address": ip}], "daemonEndpoints": daemon},
        )
    named = [{"name": "http", "port": 80}, {"name": "tls", "port": 443}]
    led = [{"name": "http", "port": port}, {"name": "tls", "port": port + 1}]
    for name, ports, subset in (("s", named, led), ("plain", [{"port": 80}], [{"port": port}])):
        yield {
            "method": "POST",
            "path": f"{_CORE}/services",
            "body": {"metadata": {"name": name}, "spec": {"ports": ports}},
        }
        subsets = [{"addresses": [endpoint], "ports": subset}]
        yield {"method": "POST", "path": f"{_CORE}/endpoints", "body": {"metadata": {"name": name}, "subsets": subsets}}


def _status(path: str, status: Any) -> Request:
    return {
        "method": "PATCH",
        "path": f"{path}/status",
        "type": "application/merge-patch+json",
        "body": {"status": status},
    }


def shown(answer: bytes) -> str:
    """Returns the status, the body, and the headers, without those that every response has and those about framing."""
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    headers = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    told = sorted(
        f"{name}: {value}"
        for name, value in headers
        if not name.startswith(("x-kubernetes-", "audit-id", "date", "content-length", "transfer-"))
    )
    if ("transfer-encoding", "chunked") in headers:
        body = _unchunked(body)
    if ("content-encoding", "gzip") in headers and body.startswith(b"\x1f\x8b"):
        body = gzip.decompress(body)
    text = re.sub(r"read tcp \S+: read: connection reset by peer", "EOF", body.decode("latin-1"))
    return "\n".join([status[:12], *told, "", text.replace("\\u003e", ">").replace("\\u0026", "&").rstrip("\n")])


def _unchunked(body: bytes) -> bytes:
    found = b""
    while body:
        size, _, rest = body.partition(b"\r\n")
        length = int(size, 16) if re.fullmatch(rb"[0-9a-fA-F]+", size) else 0
        found, body = found + rest[:length], rest[length + 2 :] if length else b""
    return found


def main() -> int:
    parser = comparing(__doc__, count=500, port=18134)
    arguments = parser.parse_args()
    address = reachable_address()
    servers = ((arguments.oracle, arguments.oracle_token), (arguments.server, arguments.token))
    for url, token in servers:
        client = Client(url, token)
        for request in setup(address, arguments.port):
            client.send(request, [])
    generator = Generator(arguments.seed, address, arguments.port)
    kinds: Counter[str] = Counter()
    with Backend(arguments.port) as backend:
        for number in range(arguments.count):
            lines, body = generator.request()
            facts = []
            for side, (url, token) in enumerate(servers):
                case = f"{number}-{side}"
                answer = shown(exchange(url, token, [*lines, f"X-Case: {case}"], body)).replace(case, "CASE")
                asked = json.dumps(backend.received.get(case)).replace(case, "CASE")
                facts.append((answer, asked))
            found = next((pair for pair in zip(*facts, strict=True) if pair[0] != pair[1]), None)
            if found is not None:
                expected, got = (re.sub(r"\d+", "N", text)[:100] for text in found)
                kinds[f"{expected} {got}"] += 1
                if kinds[f"{expected} {got}"] == 1:
                    print(f"{number} {lines} {body!r:.50}\n--- {found[0][:900]}\n+++ {found[1][:900]}", flush=True)
    print(f"{arguments.count - kinds.total()} of {arguments.count} equal, {len(kinds)} ways to differ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
