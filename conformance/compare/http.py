"""Odd HTTP requests on raw sockets, sent to a real server and to another one: prints each kind of difference once.

    python -m conformance.compare.http --oracle URL --oracle-token T --server URL --token T [--seed N] [--count N]

Methods, paths, queries, headers, bodies and versions as no client sends them. Writes ask for a dry run; both servers may contain any
objects, since only the objects' kind is compared.
"""

import json
import random
import re
import socket
import ssl
import sys
from collections import Counter
from typing import Final
from urllib.parse import urlsplit

from conformance.exchange import comparing


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_SEGMENTS: Final = (
    *_words(
        "api apis v1 apps namespaces default configmaps pods deployments nodes x .. . %2e%2e %2F a%2Fb %00 %zz % %41 ä "
        "%c3%a4 %ff a+b a;b a=b ~ * @ watch proxy status scale log exec %20 healthz version openapi v3 v2 livez readyz "
        "ping foo secrets %252e a:b ' \" < | \\ ^ ` { # nope.example.com v1beta1 bindings subjectaccessreviews"
    ),
    "",
    "x" * 300,
)
_PATHS: Final = _words(
    "/ /api /apis /apis/apps /apis/apps/v1 /api/v1 /version /healthz /readyz /openapi/v3 /foo /api/v1/nodes "
    "/api/v1/pods /api/v1/namespaces/default /api/v1/namespaces/default/configmaps "
    "/api/v1/namespaces/default/configmaps/x /api/v1/namespaces/default/pods/x/log "
    "/apis/apps/v1/namespaces/default/deployments/x/scale /api/v1/namespaces/nope/secrets"
)
_TARGETS: Final = _words(
    "//api/v1 /api/ /apis/ /apis/apps/ /version/ /healthz/ http://x/version http://x /./version /../version "
    "/api/../version ?x foo"
)
_QUERIES: Final = _words(
    "pretty=true pretty= x=1 limit=1 limit=x limit=-1 timeout=1s timeout=x watch=0 labelSelector=a%3Db "
    "labelSelector=, fieldSelector=x fieldSelector=metadata.name%3Dx resourceVersion=0 resourceVersion=-1 continue=x "
    "%zz=1 a=%zz a;b=1 = dryRun=x fieldManager=a fieldValidation=Foo resourceVersionMatch=Exact limit=1&limit=x "
    "gracePeriodSeconds=x timeoutSeconds=x verbose"
)
_METHODS: Final = (
    "GET " * 8 + "HEAD POST PUT PATCH DELETE POST PUT PATCH DELETE OPTIONS TRACE FOO get PROPFIND X-Y"
).split()
_HEADERS: Final = (
    *(f"Accept: {kind}" for kind in ("*/*", "application/yaml", "text/html", "application/json;as=Foo", ";;;", "application/*")),
    *(f"Content-Type: application/{kind}" for kind in ("json", "yaml", "merge-patch+json", "apply-patch+yaml", "json-patch+json")),
    *(f"Content-Length: {length}" for length in ("0", "5", "-1", "+2", "2, 2")),
    *(f"Transfer-Encoding: {coding}" for coding in ("chunked", "gzip", "identity")),
    *(f"Connection: {word}" for word in ("upgrade", "Keep-Alive")),
    *(f"Upgrade: {protocol}" for protocol in ("h2c", "SPDY/3.1")),
    *("Expect: 100-continue", "Expect: x", "Host: y", "X Y: 1", "X : 1", "X\x01: 1", "X: \x01", "X: \xff\xfe", "X:1"),
    *("Authorization: Basic x", "Authorization: Bearer", "Impersonate-User: jane", "Impersonate-Group: g", "Audit-Id: me"),
    *("Content-Type: text/plain", "Content-Type: ", "Range: bytes=0-3", "If-None-Match: *", "X-Remote-User: admin"),
)  # fmt: skip
_BODIES: Final = (
    *("", "{}", "[]", "null", "x", '{"metadata":{"name":"x"}}', '{"a":1', "\xff\xfe", "---\n", "a: b"),
    *("5\r\nhello\r\n0\r\n\r\n", "0\r\n\r\n", "zz\r\n", '{"kind":"DeleteOptions","apiVersion":"v1","dryRun":["All"]}'),
)  # fmt: skip
_COMPARED: Final = (
    "content-type",
    "cache-control",
    "connection",
    "allow",
    "location",
    "retry-after",
    "x-content-type-options",
)


class Generator:
    """Makes requests out of one random source."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def request(self) -> tuple[list[str], str]:
        """(lines of the head but for the credentials, body)."""
        pick, chance = self._random.choice, self._random.random
        method, target = pick(_METHODS), self._target()
        if method in ("POST", "PUT", "PATCH", "DELETE"):
            target += ("&" if "?" in target else "?") + "dryRun=All"
        version = pick(("1.1",) * 12 + ("1.0",) * 3 + ("1.2", "2.0", "0.9"))
        body = pick(_BODIES) if chance() < 0.6 else None
        lines = [f"{method} {target} HTTP/{version}", *self._hosts()]
        lines += [pick(_HEADERS) for _ in range(pick((0, 0, 1, 1, 2, 3)))]
        if body is not None and not any(line.startswith(("Content-Length", "Transfer-Encoding")) for line in lines):
            lines.append(f"Content-Length: {len(body)}")
        return [*lines, "Connection: close"], body or ""

    def _hosts(self) -> list[str]:
        host = self._random.choice(("x",) * 12 + ("x:1", "[::1]", "a b", "", None))
        return [] if host is None else [f"Host: {host}"]

    def _target(self) -> str:
        pick, chance = self._random.choice, self._random.random()
        if chance < 0.35:
            path = pick(_PATHS)
        elif chance < 0.55:
            path = "/" + "/".join(pick(_SEGMENTS) for _ in range(self._random.randint(1, 6)))
        elif chance < 0.9:
            parts = pick(_PATHS).split("/")
            parts[self._random.randrange(len(parts))] = pick(_SEGMENTS)
            path = "/".join(parts)
        else:
            path = pick(_TARGETS)
        if self._random.random() < 0.35:
            path += "?" + "&".join(pick(_QUERIES) for _ in range(self._random.randint(1, 3)))
        return path + (
            "&timeoutSeconds=1" if "watch" in path and "?" in path else "?timeoutSeconds=1" if "watch" in path else ""
        )


def exchange(url: str, token: str, lines: list[str], body: str) -> bytes:
    """Everything that comes back until the server closes, or for five seconds."""
    parts = urlsplit(url)
    context = ssl._create_unverified_context()
    head = "\r\n".join([lines[0], f"Authorization: Bearer {token}", *lines[1:]])
    answer = b""
    with context.wrap_socket(
        socket.create_connection((parts.hostname or "", parts.port or 443), timeout=5)
    ) as connection:
        try:
            connection.sendall(head.encode() + b"\r\n\r\n" + body.encode("latin-1"))
            while piece := connection.recv(65536):
                answer += piece
        except OSError:
            pass
    return answer


def shown(answer: bytes, method: str) -> list[str]:
    """Returns the comparable part of a response: the status line, some headers, and from the body the Status, the kind or the text."""
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    headers = dict(sorted((name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)))
    facts = [status, *(f"{name}: {headers.get(name)}" for name in _COMPARED)]
    if (
        method != "HEAD"
        and "protobuf" not in headers.get("content-type", "")
        and headers.get("transfer-encoding") is None
    ):
        facts.append(_body(body.decode(errors="replace")))
    return facts


def _body(text: str) -> str:
    try:
        found = json.loads(text)
    except ValueError:
        kind = re.search(r"^kind: (\w+)$", text, re.MULTILINE)
        return kind[1] if kind and kind[1] != "Status" else text.rstrip("\n")[:300]
    if not isinstance(found, dict):
        return str(found)
    return json.dumps(found, sort_keys=True) if found.get("status") == "Failure" else str(found.get("kind"))


def main() -> int:
    arguments = comparing(__doc__, count=500).parse_args()
    generator = Generator(arguments.seed)
    kinds: Counter[str] = Counter()
    for number in range(arguments.count):
        lines, body = generator.request()
        method = lines[0].partition(" ")[0]
        expected = shown(exchange(arguments.oracle, arguments.oracle_token, lines, body), method)
        got = shown(exchange(arguments.server, arguments.token, lines, body), method)
        found = next((f"{left} | {right}" for left, right in zip(expected, got, strict=False) if left != right), "")
        if found:
            kind = re.sub(r"\d+", "N", found[:80])
            kinds[kind] += 1
            if kinds[kind] == 1:
                print(f"{number} {lines} {body!r}\n    {found[:500]}")
    print(f"{arguments.count} requests, {kinds.total()} differ in {len(kinds)} ways")
    return 0


if __name__ == "__main__":
    sys.exit(main())
