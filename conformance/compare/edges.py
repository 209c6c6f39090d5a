"""Random requests to what surrounds resources, sent to a real server and to another one: prints each kind of difference once.

    python -m conformance.compare.edges --oracle URL --oracle-token T --server URL --token T [--seed N] [--count N]

Health, discovery, OpenAPI, status pages and their negotiation; conditional requests, ranges and compression; options of watches
and pages, and their tokens; deadlines; headers that servers answer to. Nothing is written but the objects that are read.
"""

import gzip
import http.client
import json
import random
import re
import ssl
import sys
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urlsplit

from conformance import cbor, wire
from conformance.exchange import Client, comparing
from conformance.free_values import plain

Request = dict[str, Any]

_PREFIX: Final = "de"
_MAPS: Final = "/api/v1/namespaces/default/configmaps"
_SECRETS: Final = "/api/v1/namespaces/default/secrets"
# Chosen by each server alone.
_FREE: Final = ("date", "audit-id", "content-length", "process-start-time-unix", "transfer-encoding", "connection")
_PRESENT: Final = (
    *("etag", "last-modified", "expires", "x-kubernetes-pf-flowschema-uid", "x-kubernetes-pf-prioritylevel-uid"),
    "content-range",
)


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_HEALTH: Final = _words(
    "/healthz /livez /readyz /healthz/ /livez/ping /readyz/ping /healthz/log /livez/etcd /readyz/etcd"
)
_CHECKS: Final = _words(
    "ping log etcd etcd-readiness informer-sync poststarthook/start-kube-apiserver-admission-initializer shutdown nope "
    "poststarthook/rbac/bootstrap-roles poststarthook/crd-informer-synced autoregister-completion"
)
_PAGES: Final = _words(
    "/version /version/ /metrics /metrics/slis /metrics/x /debug /debug/ /debug/pprof /debug/pprof/ /debug/pprof/cmdline "
    "/debug/pprof/nope /debug/flags /debug/flags/v /debug/api_priority_and_fairness/dump_priority_levels "
    "/debug/api_priority_and_fairness/dump_queues /debug/api_priority_and_fairness/nope /statusz /flagz /configz /logs "
    "/logs/ /swagger.json /swaggerapi /ui /favicon.ico /robots.txt /index.html / /readyz/nope /statusz/ /flagz/x "
    "/openid/v1/jwks /.well-known/openid-configuration /.well-known /apis/metrics.k8s.io/v1beta1 /api/v1/proxy /validate"
)
_DOCUMENTS: Final = _words(
    "/api /apis /api/ /apis/ /api/v1 /apis/apps /apis/apps/ /apis/apps/v1 /apis/apiregistration.k8s.io "
    "/apis/apiregistration.k8s.io/v1 /apis/apiextensions.k8s.io/v1 /apis/nope /apis/apps/v2 /api/v2 /openapi/v3 "
    "/openapi/v3/ /openapi/v3/api/v1 /openapi/v3/apis/apps/v1 /openapi/v3/version /openapi/v3/nope /openapi/v2 /openapi"
)
_TYPES: Final = _words(
    "application/json application/yaml application/vnd.kubernetes.protobuf */* application/* text/* text/plain text/html "
    "application/cbor application/xml application/com.github.proto-openapi.spec.v2@v1.0+protobuf "
    "application/com.github.proto-openapi.spec.v3.v1.0+protobuf application/com.github.proto-openapi.spec.v3@v1.0+protobuf"
)
_PARAMETERS: Final = (
    *("", "", "", ";q=0.5", ";q=0", ";charset=utf-8", ";as=Table;v=v1;g=meta.k8s.io", ";as=Table;v=v2;g=meta.k8s.io"),
    ";as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    *(f";g=apidiscovery.k8s.io;v={v};as=APIGroupDiscoveryList" for v in ("v2", "v2beta1", "v1")),
    *(f";v={v};g=config.k8s.io;as={kind}" for v in ("v1alpha1", "v1beta1", "v1") for kind in ("Statusz", "Flagz")),
    *(";stream=watch", ";profile=nopeer", ";pretty=1", ";profile=local-only", ";as=APIGroupDiscoveryList", ";v=v2"),
    ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer",
    ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=x",
)
_CODINGS: Final = (
    "gzip",
    "identity",
    "gzip;q=0",
    "gzip;q=0.5",
    "*",
    "deflate, gzip",
    "GZIP",
    " gzip ",
    "br",
    "gzip,x",
    "",
)
_HEADERS: Final = (
    *("Origin: http://x", "Origin: null", "Access-Control-Request-Method: GET", "Audit-Id: abc", "Audit-Id: a b\u00e4"),
    *("Audit-Id: " + "a" * 300, "X-Request-Id: 1", "Cache-Control: no-cache", "Range: bytes=0-9", "Range: bytes=-5"),
    *("Range: bytes=5-", "Range: bytes=99999999-", "Range: x", "Range: bytes=0-1,3-4", "If-None-Match: *"),
    *("If-Modified-Since: Sat, 21 Nov 2037 10:26:49 GMT", "If-Modified-Since: x", "If-Match: *", 'If-Match: "x"'),
    *("If-Unmodified-Since: Sat, 21 Nov 2009 10:26:49 GMT", 'If-Range: "x"', "Content-Type: text/plain", "Expect: x"),
    *("User-Agent: curl/8", "User-Agent: Mozilla/5.0 x", "User-Agent: ", "Impersonate-User: jane", "Upgrade: foo"),
    *("X-Remote-User: admin", "Accept-Language: de", "Impersonate-User: system:kube-scheduler", "Warning: 299 - x"),
)
_METHODS: Final = ("GET",) * 12 + (
    "HEAD",
    "HEAD",
    "OPTIONS",
    "POST",
    "PUT",
    "DELETE",
    "PATCH",
    "TRACE",
    "FOO",
    "CONNECT",
)
_COLLECTIONS: Final = (
    *(_MAPS, _SECRETS, "/api/v1/configmaps", "/api/v1/namespaces", "/api/v1/pods", "/apis/apps/v1/deployments"),
    *("/apis/rbac.authorization.k8s.io/v1/clusterroles", "/api/v1/namespaces/default/services", "/api/v1/namespaces/nope/pods"),
    *("/api/v1/watch/namespaces/default/configmaps", "/api/v1/watch/configmaps", f"/api/v1/watch/namespaces/default/configmaps/{_PREFIX}1"),
    *(f"{_MAPS}/{_PREFIX}1", "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas", "/api/v1/nodes", "/api/v1/events"),
)  # fmt: skip
_LIST_OPTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "watch": ("1", "true", "0", "false", "x", ""),
    "limit": ("1", "2", "0", "-1", "x", "9223372036854775808", "1.5", ""),
    "resourceVersion": ("0", "1", "x", "-1", "99999999999", "18446744073709551616", "", "00", "1.0"),
    "resourceVersionMatch": ("Exact", "NotOlderThan", "x", "", "exact"),
    "sendInitialEvents": ("true", "false", "x", "", "1", "0"),
    "allowWatchBookmarks": ("true", "false", "x", ""),
    "timeoutSeconds": ("1", "0", "x", "-1", "1.5", ""),
    "timeout": ("1s", "x", "-1s", "0", "0s", "1h", "1", "100000h", "", "1m0.5s"),
    "labelSelector": (
        *("a=1", "a", "!a", "a in (1,2)", "a notin (1)", "a==1,app=de", "a=1,", ",", "a in", "a in ()", "a>1", "a<x"),
        *(
            "a=b c",
            "a!=1",
            "x/y=3",
            "a in (1,,2)",
            "!",
            "=",
            "a=(",
            "a in (1",
            "a exists",
            "a>1,a<3",
            "  a = 1 ",
            "é=1",
        ),
    ),
    "fieldSelector": (
        *(
            f"metadata.name={_PREFIX}1",
            f"metadata.name!={_PREFIX}1",
            "metadata.namespace=default",
            "x=y",
            "metadata.name",
        ),
        *(
            "metadata.name==",
            "status.phase=Active",
            ",",
            "metadata.name=a,metadata.name=b",
            "type=Opaque",
            "metadata.uid=1",
        ),
        *("=x", "metadata.name=a\\,b", "metadata.name=a\\x", "!metadata.name=x"),
    ),
    "continue": ("x", "e30", "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ", "", "%25"),
    "includeObject": ("None", "Object", "Metadata", "x", ""),
    "pretty": ("1", "true", "0", "x", ""),
    "dryRun": ("All", "x"),
    "shardSelector": ("x", ""),
}
_OFTEN: Final = (
    "watch",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "allowWatchBookmarks",
    "limit",
)


def objects() -> list[Request]:
    """Returns the objects that are read: a few maps and secrets, and a response of more than 128 KiB."""
    made = []
    for number in range(4):
        meta = {"name": f"{_PREFIX}{number}", "labels": {"a": str(number), "app": _PREFIX, "x/y": "3"}}
        data = {"k": "v" * (140_000 if number == 3 else 1)}
        made.append({"method": "POST", "path": _MAPS, "body": {"metadata": meta, "data": data}})
        made.append({"method": "POST", "path": _SECRETS, "body": {"metadata": meta, "type": "Opaque"}})
    return made


class Generator:
    """Makes requests out of one random source."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def request(self) -> Request:
        pick = self._random.choice
        kind: Callable[[], Request] = pick(
            (self._health, self._page, self._document, *(self._collection,) * 4, self._token)
        )
        request = kind()
        request["headers"] = [*request.get("headers", ()), *self._headers()]
        return request

    def _headers(self) -> list[str]:
        headers = [self._random.choice(_HEADERS) for _ in range(self._random.choice((0, 0, 0, 1, 1, 2)))]
        if self._random.random() < 0.3:
            headers.append(f"Accept-Encoding: {self._random.choice(_CODINGS)}")
        return headers

    def _accept(self) -> list[str]:
        clauses = self._random.choice((0, 1, 1, 1, 2, 3))
        pick = self._random.choice
        text = pick((",", ", ")).join(pick(_TYPES) + pick(_PARAMETERS) for _ in range(clauses))
        return [f"Accept: {text}"] if clauses else []

    def _health(self) -> Request:
        pick = self._random.choice
        path = (
            pick(_HEALTH)
            if self._random.random() < 0.6
            else f"{pick(('/healthz', '/livez', '/readyz'))}/{pick(_CHECKS)}"
        )
        terms = [pick(("verbose", "verbose=0", f"exclude={quote(pick(_CHECKS))}", "exclude=", "x=1", "exclude=a,b"))
                 for _ in range(pick((0, 0, 1, 2, 3)))]  # fmt: skip
        headers = self._accept() if self._random.random() < 0.2 else []
        return {"method": pick(_METHODS), "path": path + ("?" + "&".join(terms) if terms else ""), "headers": headers}

    def _page(self) -> Request:
        return {"method": self._random.choice(_METHODS), "path": self._random.choice(_PAGES), "headers": self._accept()}

    def _document(self) -> Request:
        return {
            "method": self._random.choice(_METHODS),
            "path": self._random.choice(_DOCUMENTS),
            "headers": self._accept(),
        }

    def _collection(self) -> Request:
        pick = self._random.choice
        names = list(_LIST_OPTIONS)
        chosen = [pick(names) if self._random.random() < 0.5 else pick(_OFTEN) for _ in range(pick((0, 1, 2, 3, 4, 5)))]
        options = [f"{name}={quote(pick(_LIST_OPTIONS[name]))}" for name in dict.fromkeys(chosen)]
        options.append("timeoutSeconds=1")
        method = pick(("GET",) * 20 + ("HEAD", "OPTIONS", "FOO"))
        headers = self._accept() if self._random.random() < 0.5 else []
        return {"method": method, "path": f"{pick(_COLLECTIONS)}?{'&'.join(options)}", "headers": headers}

    def _token(self) -> Request:
        pick = self._random.choice
        token: Any = {
            "v": pick(("meta.k8s.io/v1",) * 6 + ("v1", "", 1)),
            "rv": pick((-1, -1, -1, 0, 99999999999, "x", -2, 1.5)),
            "start": pick(("de1\0", "default/de1\0", "configmaps/de1", "../x", "", "/x", "a/../b", "zz", 5)),
        }
        for name in list(token):
            if self._random.random() < 0.1:
                del token[name]
        if self._random.random() < 0.1:
            token = pick(([], "x", None, 1, {}))
        raw = json.dumps(token, separators=(",", ":")).encode()
        text = urlsafe_b64encode(raw).decode().rstrip("=" if self._random.random() < 0.9 else "")
        path = f"{pick((_MAPS, _SECRETS, '/api/v1/configmaps', '/api/v1/namespaces'))}?limit={pick((1, 2))}&continue={quote(text)}"
        if self._random.random() < 0.3:
            name = pick(("resourceVersion", "resourceVersionMatch", "labelSelector", "watch", "sendInitialEvents"))
            path += f"&{name}={quote(pick(_LIST_OPTIONS[name]))}&timeoutSeconds=1"
        return {"method": "GET", "path": path, "headers": []}


class Plain:
    """Sends exactly these headers, over one connection as long as it is kept."""

    def __init__(self, url: str, token: str) -> None:
        self._address, self._token = urlsplit(url).netloc, token
        self._connection: http.client.HTTPSConnection | None = None

    def send(self, request: Request) -> tuple[int, dict[str, list[str]], bytes]:
        for _ in range(2):
            if self._connection is None:
                context = ssl._create_unverified_context()
                self._connection = http.client.HTTPSConnection(self._address, context=context, timeout=20)
            try:
                return self._exchange(self._connection, request)
            except (http.client.HTTPException, OSError):
                self._connection.close()
                self._connection = None
        return 0, {}, b""

    def _exchange(
        self, connection: http.client.HTTPSConnection, request: Request
    ) -> tuple[int, dict[str, list[str]], bytes]:
        connection.putrequest(request["method"], request["path"], skip_accept_encoding=True)
        connection.putheader("Authorization", f"Bearer {self._token}")
        for line in request["headers"]:
            name, _, value = line.partition(": ")
            connection.putheader(name, value.encode("utf-8"))
        connection.endheaders()
        response = connection.getresponse()
        headers: dict[str, list[str]] = {}
        for name, value in response.getheaders():
            headers.setdefault(name.lower(), []).append(value)
        return response.status, headers, response.read()


def shown(answer: tuple[int, dict[str, list[str]], bytes], path: str) -> dict[str, Any]:
    """Returns the comparable part of a response: everything but values that each server chooses itself."""
    status, headers, body = answer
    told: dict[str, Any] = {name: value for name, value in headers.items() if name not in _FREE}
    told |= {name: "*" for name in _PRESENT if name in told}
    if headers.get("content-encoding") == ["gzip"] and body:
        body = gzip.decompress(body)
    return {"status": status, "headers": told, "body": _body(body, headers.get("content-type", [""])[0], path)}


def _body(body: bytes, kind: str, path: str) -> Any:
    if "proto" in kind:
        return _neutral(wire.plain(wire.decoded(body))) if kind == wire.MEDIA_TYPE and body else bool(body)
    if kind.startswith(cbor.MEDIA_TYPE):
        return bool(body)
    text = body.decode(errors="replace")
    if path.startswith(("/openapi", "/metrics")) and len(text) > 2000:
        return "long"
    try:
        return _neutral([json.loads(line) for line in text.splitlines()] if "watch" in path else json.loads(text))
    except ValueError:
        if "machine parseable" in text:
            return "a status page"  # its delimiters are chosen by chance
        return plain(text) if len(text) < 4000 else "long"


def _neutral(value: Any) -> Any:
    """Without revisions, times, ports and prose."""
    if isinstance(value, dict):
        return {
            key: "*" if key in ("resourceVersion", "continue", "uid", "serverAddress", "targetPort", "n", "kid", "alg", "keys")
            else _neutral(found) for key, found in value.items() if key not in ("description", "remainingItemCount")
        }  # fmt: skip
    if isinstance(value, list):
        return [_neutral(found) for found in value]
    return re.sub(r"current: \d+", "current: N", str(plain(value))) if isinstance(value, str) else value


def first_difference(expected: Any, got: Any, path: str = "") -> str:
    if isinstance(expected, dict) and isinstance(got, dict):
        for key in sorted(expected.keys() | got.keys()):
            if found := first_difference(expected.get(key), got.get(key), f"{path}.{key}"):
                return found
        return ""
    if isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        pairs = enumerate(zip(expected, got, strict=True))
        return next(filter(None, (first_difference(a, b, f"{path}[{i}]") for i, (a, b) in pairs)), "")
    return "" if expected == got else f"{path}: {str(expected)[:300]} != {str(got)[:300]}"


def main(arguments: Sequence[str] | None = None) -> int:
    options = comparing(__doc__, count=500).parse_args(arguments)
    sides = ((options.oracle, options.oracle_token), (options.server, options.token))
    for side in sides:
        client = Client(*side)
        for request in objects():
            client.send(request, [])
    oracle, server = (Plain(*side) for side in sides)
    generator = Generator(options.seed)
    kinds: Counter[str] = Counter()
    for number in range(options.count):
        request = generator.request()
        expected, got = (shown(client.send(request), request["path"]) for client in (oracle, server))
        if expected["status"] == 500 and got["status"] == 400:
            continue
        if found := first_difference(expected, got):
            kind = re.sub(r"\d+", "N", found[:90])
            kinds[kind] += 1
            if kinds[kind] == 1:
                print(f"{number} {request['method']} {request['path']} {request['headers']}")
                print(f"    {expected['status']} {got['status']} {found}")
    print(f"{options.count} requests, {kinds.total()} differ in {len(kinds)} ways")
    return 0


if __name__ == "__main__":
    sys.exit(main())
