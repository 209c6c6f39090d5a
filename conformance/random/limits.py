"""Random bodies and heads of requests at the limits of size, depth and number."""

import gzip
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

_LIMIT: Final = 3 << 20
NAMESPACE: Final = "limits"
_MAPS: Final = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
_DEPLOYMENTS: Final = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
_WIDGETS: Final = f"/apis/limits.example.com/v1/namespaces/{NAMESPACE}/widgets"
_JSON: Final = "application/json"
_YAML: Final = "application/yaml"
_PATCHES: Final = ("json-patch+json", "merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml")
HELD_SECONDS: Final = 1.0
_POD: Final = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
OBJECTS: Final[dict[str, dict[str, Any]]] = {
    _MAPS: {"metadata": {"name": "m"}, "data": {"k": "v"}},
    _DEPLOYMENTS: {"metadata": {"name": "m"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": _POD}},
    _WIDGETS: {
        "apiVersion": "limits.example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "m"},
        "spec": {"n": 1},
    },
}
_OPEN: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFINITION: Final = {
    "metadata": {"name": "widgets.limits.example.com"},
    "spec": {
        "group": "limits.example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": _OPEN}}],
    },
}
_NUMBERS: Final = (
    *("1", "-0", "0.0", "-0.0", "1.0", "1.5", "1e2", "1E400", "-1e400", "1e-400", "1e308", "01", "+1", ".5", "5.", "0x10", "0o7"),
    *("010", "1_000", ".inf", "-.INF", ".nan", "NaN", "Infinity", "1e", "--1", "9223372036854775807", "9223372036854775808"),
    *("-9223372036854775809", "18446744073709551616", "1" * 400, "1" * 5000, "0." + "1" * 5000, "1" * 300_000, "1e99999999"),
    *("2147483648", "4294967296", "0b11", "1:30", "2001-01-01", "~", "yes", "<<", "=", "!!int 3", "!!str 3"),
    *("!!binary eA==", "1e1000000000000"),
)  # fmt: skip
_TEXTS: Final = (
    *(b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\x00", b"\x01", b"\x7f", b"\xc2\x85", b"\xe2\x80\xa8"),
    *(b"\xef\xbb\xbf", b"\\ud800", b"\\udc00\\ud800", b"\\ud83d\\ude00", b"\\u0000", b"\\x41", b"\\", b"\\u12", b"\t", b"\n", b"\r"),
    *(b"\xf0\x9f\x98\x80", b"a" * 300_000, b"\\u0041" * 1000, b"\xff" * 1000, b"<&>"),
)  # fmt: skip
# Where a bomb is put: the path of a field, a key of the object, or all of the body.
_PLACES: Final = (
    *("x", "data", "spec", "metadata", "metadata.annotations", "metadata.labels", "metadata.name", "data.k", "kind", "", "KEY"),
    *("metadata.generation", "spec.replicas", "immutable", "spec.x", "binaryData.k", "metadata.finalizers", "preconditions"),
    "gracePeriodSeconds",
)  # fmt: skip
_WORDS: Final = (
    b"tru",
    b"nul",
    b"True",
    b"undefined",
    b"'a'",
    b"{a:1}",
    b"[1,]",
    b'{"a":1,}',
    b"",
    b"/**/1",
    b"{,}",
    b'{"a"}',
)
_ODD_YAML: Final = (
    *(b"!!map {}", b"!!set {a}", b"!foo x", b"!!python/object x", b"{1: 2}", b"{null: 1}", b"{true: 1}", b"{[a]: 1}", b"{1.5: 1}"),
    *(b"{a: 1, a: 2}", b"{1: 1, '1': 2}", b"|", b">-", b"@x", b"`x", b"%x", b"- a", b"a: b: c", b"# x", b"---", b"...", b"\tx"),
    *(b"&a", b"!!str", b"? a", b"{? a : b}", b"[a b, c]", b"'", b'"', b"{", b"]", b"!<x> y", b"!!omap [a: 1]", b"!!null ''"),
    *(b"!!float 1", b"!!bool x", b"!!timestamp 2001-01-01", b"0o17", b"1__0", b"+.inf", b"1e3", b"685_230.15", b"190:20:30"),
    *(b"null", b"Null"),
)  # fmt: skip
_DEPTHS: Final = (
    10,
    100,
    999,
    1000,
    1001,
    5000,
    9_990,
    9_996,
    9_997,
    9_998,
    9_999,
    10_000,
    10_001,
    10_002,
    20_000,
    100_000,
    1_000_000,
)
_COUNTS: Final = (2, 10, 1000, 10_000, 100_000)


@dataclass(frozen=True, slots=True)
class Request:
    """A request, and how it is sent: at once with its length, in chunks, slowly, or incompletely."""

    method: str
    path: str
    what: str
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    chunked: bool = False
    pieces: int = 1
    missing: int = 0

    def sent(self, token: str) -> Iterator[bytes]:
        lines = [f"{self.method} {self.path} HTTP/1.1", "Host: x", "User-Agent: conformance/1"]
        headers = {"Authorization": f"Bearer {token}", "Connection": "close", **self.headers}
        body = self.body
        if body is not None and self.chunked:
            headers["Transfer-Encoding"] = "chunked"
            size = max(1, len(body) // 3)
            parts = [body[at : at + size] for at in range(0, len(body), size)]
            body = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
        elif body is not None:
            headers["Content-Length"] = str(len(body))
        lines += [f"{name}: {value}" for name, value in headers.items()]
        yield "\r\n".join(lines).encode() + b"\r\n\r\n"
        if body:
            body = body[: len(body) - self.missing]
            size = -(-len(body) // self.pieces) or 1
            for at in range(0, len(body), size):
                yield body[at : at + size]

    def __str__(self) -> str:
        body = "" if self.body is None else f" {len(self.body)} bytes{' in chunks' * self.chunked} {self.body[:60]!r}"
        headers = {name: value[:60] for name, value in self.headers.items()}
        return f"{self.method} {self.path[:150]} {self.what} {headers}{body}"


class Generator:
    """Makes requests out of one random source."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def request(self) -> Request:
        makers: list[Callable[[], Request]] = (
            [self._bomb] * 10 + [self._sized] * 3 + [self._operations, self._head, self._broken]
        )
        return self._random.choice(makers)()

    def _pick(self, *options: Any) -> Any:
        return self._random.choice(options)

    def _place(self) -> tuple[str, str, str, dict[str, Any]]:
        """(method, path, media type, object that fits there)."""
        collection = self._pick(_MAPS, _MAPS, _DEPLOYMENTS, _WIDGETS)
        query = "?dryRun=All" + self._pick("", "", "&fieldValidation=Strict", "&fieldValidation=Ignore")
        method = self._pick("POST", "PUT", "PATCH", "PATCH", "DELETE")
        patch = self._pick(*_PATCHES)
        if patch.startswith("apply"):
            query += "&fieldManager=f&force=true"
        obj = json.loads(json.dumps(OBJECTS[collection]))
        if method == "POST":
            obj["metadata"]["name"] = "new"
            return method, collection + query, self._pick(_JSON, _YAML), obj
        if method == "PATCH":
            version = {_MAPS: "v1", _DEPLOYMENTS: "apps/v1", _WIDGETS: "limits.example.com/v1"}[collection]
            kind = {_MAPS: "ConfigMap", _DEPLOYMENTS: "Deployment", _WIDGETS: "Widget"}[collection]
            return (
                method,
                f"{collection}/m{query}",
                f"application/{patch}",
                {"apiVersion": version, "kind": kind, **obj},
            )
        if method == "DELETE":
            target = self._pick(f"{collection}/m?dryRun=All", f"{collection}?dryRun=All")
            return (
                method,
                target,
                self._pick(_JSON, _YAML),
                {"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"]},
            )
        return method, f"{collection}/m{query}", self._pick(_JSON, _YAML), obj

    def _bomb(self) -> Request:
        """An object with something in one of its fields that is too deep, too many or no value at all."""
        method, path, media_type, obj = self._place()
        block = "yaml" in media_type and self._random.random() < 0.6
        name, value = self._yaml_value() if block else self._json_value()
        at = self._pick(*_PLACES)
        if media_type.endswith("json-patch+json"):
            return Request(method, path, f"{name} in a patch", self._patch(value), {"Content-Type": media_type})
        if not at:
            return Request(method, path, f"{name} alone", value, {"Content-Type": media_type})
        if at == "KEY":
            text = (
                json.dumps({**obj, "HERE": 1})
                .encode()
                .replace(b'"HERE"', value if value[:1] == b'"' else b'"' + value[:2000] + b'"')
            )
            return Request(method, path, f"{name} as a key", text, {"Content-Type": media_type})
        *parents, last = at.split(".")
        inner = obj
        for parent in parents:
            if not isinstance(inner.get(parent), dict):
                inner[parent] = {}
            inner = inner[parent]
        inner[last] = "HERE"
        text = json.dumps(obj).encode().replace(b'"HERE"', value)
        if block:
            *anchors, last_line = value.split(b"\n")
            text = b"".join(line + b"\n" for line in anchors) + self._flow(obj, last_line)
        return Request(method, path, f"{name} in {at}", text, {"Content-Type": media_type})

    def _flow(self, obj: dict[str, Any], value: bytes) -> bytes:
        """A block map of flow values, so that anchors may stand in front."""
        return b"".join(f"{key}: {json.dumps(item)}\n".encode().replace(b'"HERE"', value) for key, item in obj.items())

    def _patch(self, value: bytes) -> bytes:
        kind = self._pick("add", "replace", "test", "remove", "copy", "move")
        path = self._pick("/data/k", "/metadata/labels", "/x", "/spec", "/metadata", "", "/data/a~1b", "/spec/n")
        whole = self._pick(b"", b"", b"[", b"{")
        text = b'{"op":"%b","path":"%b","from":"/data","value":%b}' % (kind.encode(), path.encode(), value)
        return b"%b[%b]" % (whole, text)

    def _json_value(self) -> tuple[str, bytes]:
        pick = self._pick
        depth, count = pick(*_DEPTHS), pick(*_COUNTS)
        makers: list[Callable[[], tuple[str, bytes]]] = [
            lambda: (f"{depth} lists", b"[" * depth + b"]" * depth),
            lambda: (f"{depth} maps", b'{"a":' * depth + b"1" + b"}" * depth),
            lambda: (f"{depth} open lists", b"[" * depth),
            lambda: (f"{depth} open maps", b'{"a":' * depth),
            lambda: ("a number", pick(*_NUMBERS).encode()),
            lambda: ("a number", pick(*_NUMBERS).encode()),
            lambda: ("a text", b'"' + pick(*_TEXTS) + b'"'),
            lambda: ("a text", b'"x' + pick(*_TEXTS) + b'y"'),
            lambda: (f"{count} equal keys", b"{" + b'"a":1,' * count + b'"a":2}'),
            lambda: (f"{count} equal keys of maps", b"{" + b'"a":{"b":1,"b":2},' * (count // 10) + b'"a":{}}'),
            lambda: (f"{count} keys", b"{" + b",".join(b'"k%d":"v"' % n for n in range(count)) + b"}"),
            lambda: (f"{count} items", b"[" + b"{}," * count + b"{}]"),
            lambda: (f"{count} equal items", b"[" + b'"a",' * count + b'"a"]'),
            lambda: (f"{count} nulls", b"[" + b"null," * count + b"null]"),
            lambda: (f"{count} blanks", b" \n\t" * count + b"1"),
            lambda: ("a word", pick(*_WORDS)),
            lambda: ("a value", pick(b"true", b"null", b"[]", b"{}", b'""', b"[null]", b'{"":1}', b"[{}]", b'{"a":null}')),
        ]  # fmt: skip
        return self._random.choice(makers)()

    def _yaml_value(self) -> tuple[str, bytes]:
        """The value is the last line; what stands in front defines what it refers to."""
        pick = self._pick
        depth, count = pick(10, 100, 1000, 5000, 9_990, 9_999, 10_001, 20_000), pick(*_COUNTS)
        levels, width = pick(2, 4, 5, 6, 7, 9, 20), pick(2, 9, 10)
        bomb = [b"a0: &a0 [" + b",".join([b"x"] * width) + b"]"]
        bomb += [b"a%d: &a%d [%b]" % (n, n, b",".join([b"*a%d" % (n - 1)] * width)) for n in range(1, levels)]
        merged = [b"a0: &a0 {k: v}"] + [
            b"a%d: &a%d {<<: [%b]}" % (n, n, b",".join([b"*a%d" % (n - 1)] * width)) for n in range(1, levels)
        ]
        makers: list[Callable[[], tuple[str, bytes]]] = [
            lambda: (f"{width}^{levels} aliases", b"\n".join([*bomb, b"*a%d" % (levels - 1)])),
            lambda: (f"{width}^{levels} aliases", b"\n".join([*bomb, b"*a%d" % (levels - 1)])),
            lambda: (f"{width}^{levels} merges", b"\n".join([*merged, b"{<<: *a%d, z: y}" % (levels - 1)])),
            lambda: ("an alias of itself", b"&a [*a]"),
            lambda: ("an unknown alias", b"*nope"),
            lambda: (f"{count} aliases of a text", b"a0: &a0 " + b"x" * pick(1, 100) + b"\n[" + b",".join([b"*a0"] * count) + b"]"),
            lambda: (f"{count} anchors", b"[" + b",".join(b"&a%d x" % n for n in range(count // 10)) + b"]"),
            lambda: (f"{depth} lists", b"[" * depth + b"]" * depth),
            lambda: (f"{depth} maps", b"{a: " * depth + b"1" + b"}" * depth),
            lambda: (f"{depth} block lists", b"- " * depth + b"x"),
            lambda: (f"{depth} keys of keys", b"? " * depth + b"x"),
            lambda: ("a number", pick(*_NUMBERS).encode()),
            lambda: ("a number", pick(*_NUMBERS).encode()),
            lambda: ("a text", pick(b'"%b"', b"'%b'", b"%b") % pick(*_TEXTS)),
            lambda: (f"{count} equal keys", b"{" + b"a: 1," * (count // 10) + b"a: 2}"),
            lambda: ("odd YAML", pick(*_ODD_YAML)),
        ]  # fmt: skip
        return self._random.choice(makers)()

    def _sized(self) -> Request:
        """A body around the limit: blanks, a long text, or nothing sensible."""
        method, path, media_type, obj = self._place()
        size = _LIMIT + self._pick(-1, 0, 0, 1, 1, 2, 1000, -1000, _LIMIT)
        how = self._pick("blanks", "a text", "junk", "blanks in front")
        document: Any = obj
        if media_type.endswith("json-patch+json"):
            document = [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]
        text = json.dumps(document).encode()
        if how == "blanks":
            body = text + b" " * (size - len(text))
        elif how == "blanks in front":
            body = b" " * (size - len(text)) + text
        elif how == "junk":
            body = b"x" * size
        else:
            opening = b'[{"op":"add","path":"/x","value":"' if isinstance(document, list) else text[:-1] + b',"x":"'
            closing = b'"}]' if isinstance(document, list) else b'"}'
            body = opening + b"a" * (size - len(opening) - len(closing)) + closing
        chunked = self._random.random() < 0.5
        return Request(method, path, f"{how}, {size - _LIMIT:+} bytes", body, {"Content-Type": media_type}, chunked)

    def _operations(self) -> Request:
        count = 10_000 + self._pick(-1, 0, 1, 1, 1000)
        collection = self._pick(_MAPS, _WIDGETS, _DEPLOYMENTS)
        operation = self._pick(
            {"op": "test", "path": "/metadata/name", "value": "m"},
            {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}},
            {"op": "replace", "path": "/metadata/name", "value": "m"},
            {"op": "add", "path": "/metadata/annotations", "value": {}},
            {"op": "copy", "from": "/metadata", "path": "/x"},
            {"op": "move", "from": "/metadata/name", "path": "/metadata/name"},
            {"op": "nope"},
            1,
        )
        body = json.dumps([operation] * count).encode()
        headers = {"Content-Type": "application/json-patch+json"}
        return Request("PATCH", f"{collection}/m?dryRun=All", f"{count} operations", body, headers)

    def _head(self) -> Request:
        pick = self._pick
        size = pick(
            1000, 8000, 65_536, 100_000, 500_000, 1_040_000, 1_048_576, 1_052_000, 1_053_000, 1_100_000, 3_000_000
        )
        if pick(True, False):
            path = pick(
                f"{_MAPS}/%s",
                f"{_MAPS}?labelSelector=%s",
                "/%s",
                f"{_MAPS}/m?x=%s",
                f"{_MAPS}?fieldSelector=%s",
                "/api/v1/%s",
            )
            return Request(
                "GET", path.replace("%s", pick("a", "a", "a/", "a,", "%61") * (size // 4)), f"a path of {size}"
            )
        count = pick(1, 1, 10, 1000, 10_000)
        name = pick("X-Long", "Accept", "Impersonate-Extra-A", "Audit-Id", "Cookie", "If-None-Match", "Range")
        headers = {f"{name}-{n}" if n else name: pick("a", "a,", "a/b,") * (size // count // 4) for n in range(count)}
        return Request("GET", f"{_MAPS}/m", f"{count} headers of {size} together", headers=headers)

    def _broken(self) -> Request:
        method, path, media_type, obj = self._place()
        body = json.dumps(obj).encode()
        pick = self._pick
        headers = {"Content-Type": media_type}
        if pick(True, False):
            coding = pick("gzip", "gzip", "deflate", "identity", "x", "br")
            packed = pick(
                body, gzip.compress(body, mtime=0), gzip.compress(bytes(_LIMIT * 4), mtime=0), b"\x1f\x8b\x00"
            )
            return Request(
                method, path, f"coding {coding}", packed, {**headers, "Content-Encoding": coding}, pick(True, False)
            )
        missing = pick(0, 0, 1, 5, len(body))
        return Request(method, path, f"{missing} missing", body, headers, pick(True, False), pick(1, 2, 5), missing)
