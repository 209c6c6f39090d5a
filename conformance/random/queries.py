"""Random reads that write nothing, out of one seed; for `conformance.compare.requests --queries`.

Every kind is read in every form: selectors made of the grammar's pieces, options valid and not, Accept headers made of clauses,
odd paths, methods that reads don't have, discovery and its documents. `setup` makes an object of each kind first.
"""

import base64
import json
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar
from urllib.parse import quote

from conformance.random.writes import OBJECTS

Request = dict[str, Any]
T = TypeVar("T")

_NAME: Final = "qr"
_CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_CUSTOM: Final = "/apis/qr.example.com/v1/namespaces/default/gadgets"
# Kinds that a real server changes behind the client's back, or whose names have a form.
_LEFT_OUT: Final = (
    "/servicecidrs",
    "/ipaddresses",
    "/namespaces",
    "/leases",
    "/flowschemas",
    "/prioritylevel",
    "q.example.com",
)
_FIELDS: Final = (
    *(
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "metadata",
        "status.phase",
        "spec.nodeName",
        "type",
        "reason",
    ),
    *(
        "spec.unschedulable",
        "involvedObject.name",
        "regarding.name",
        "spec.color",
        "spec.size",
        "spec.on",
        "spec.type",
        "",
    ),
    *("status.podIP", "spec.host", "status.replicas", "spec.clusterIP", "spec.signerName", "status.successful", "note"),
    *("spec.schedulerName", "spec.restartPolicy", "spec.serviceAccountName", "spec.hostNetwork", "spec.driver", "x y"),
)
_LABELS: Final = ("a", "b", "app", "x/y", "e.com/a-b", "-a", "in", "notin", "a b", "A.b/c", "x/y/z", "", "é", "a" * 64)
_VALUES: Final = (
    "1",
    "2",
    _NAME,
    "red",
    "-",
    "",
    "a.b",
    "x/y",
    "default",
    "true",
    "é",
    "v" * 64,
    "3",
    "007",
    "1e3",
    "+1",
)
_ESCAPED: Final = ("a\\,b", "a\\=b", "a\\\\", "a\\x", "a\\")
_META: Final = "meta.k8s.io"
_QUALITIES: Final = ("", "", "", ";q=0.5", ";q=0", ";q=1", ";q=x", ";q=1.001", ";Q=0.1", ";q=0.5;x=y")
_TYPES: Final = (
    *(
        "application/json",
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
        "*/*",
        "application/*",
        "text/html",
    ),
    *(
        "application/xml",
        "application/cbor",
        "text/*",
        "json",
        "",
        "application/json ",
        "APPLICATION/JSON",
        "application/",
    ),
)
_KINDS: Final = (
    "Table",
    "PartialObjectMetadata",
    "PartialObjectMetadataList",
    "Pod",
    "table",
    "",
    "APIGroupDiscoveryList",
)
_PARAMETERS: Final = (
    ";charset=utf-8",
    ";stream=watch",
    ";pretty=1",
    ";pretty=0",
    ";sv=v1",
    ";sv=v2",
    "; x",
    ";=;",
    ';a="b"',
)
_DOCUMENTS: Final = (
    *(
        "/api",
        "/apis",
        "/api/v1",
        "/apis/apps",
        "/apis/apps/v1",
        "/version",
        "/openapi/v2",
        "/openapi/v3",
        "/apis/nope",
    ),
    *("/openapi/v3/api/v1", "/openapi/v3/apis/batch/v1", "/healthz", "/livez", "/readyz", "/readyz?verbose", "/api/v2"),
    *(
        "/healthz/ping",
        "/readyz/ping",
        "/livez/nope",
        "/readyz?exclude=ping",
        "/livez?verbose&exclude=log",
        "/",
        "/apis/",
    ),
    *(
        "/livez/poststarthook/crd-informer-synced",
        "/readyz/shutdown",
        "/readyz/informer-sync",
        "/healthz/etcd",
        "/api/",
    ),
    *(
        "/.well-known/openid-configuration",
        "/openid/v1/jwks",
        "/logs",
        "/metrics/",
        "/swagger.json",
        "/openapi/v3/nope",
    ),
    *(
        "/apis/qr.example.com",
        "/apis/qr.example.com/v1",
        "/apis/qr.example.com/v2",
        "/apis/events.k8s.io/v1",
        "/version/",
    ),
    *(
        "/openapi/v3/apis/qr.example.com/v1",
        "/apis/apps/v1/",
        "/api/v1/nope",
        "/apis/apps/v1/nope",
        "/readyz?exclude=x",
    ),
)
_METHODS: Final = (
    "GET",
    "GET",
    "GET",
    "GET",
    "GET",
    "HEAD",
    "OPTIONS",
    "POST",
    "PUT",
    "DELETE",
    "PATCH",
    "TRACE",
    "FOO",
    "get",
)


def setup() -> Iterator[Request]:
    """Yields requests that create an object of each kind, and a custom kind with selectable fields and columns."""
    yield {"method": "POST", "path": _CRDS, "body": _definition()}
    for path, body in OBJECTS.items():
        if not any(part in path for part in _LEFT_OUT):
            labels = {"a": "1", "app": _NAME, "x/y": "3"}
            yield {"method": "POST", "path": path, "body": {**body, "metadata": {"name": _NAME, "labels": labels}}}


def custom_objects() -> Iterator[Request]:
    """Objects of the custom kind, once it is served."""
    for name, color, size in (("g1", "red", 1), ("g2", "blue", 2), ("g3", None, None)):
        spec = {"on": True} if color is None else {"color": color, "size": size}
        body = {"apiVersion": "qr.example.com/v1", "kind": "Gadget", "metadata": {"name": name}, "spec": spec}
        yield {"method": "POST", "path": _CUSTOM, "body": body}


def served() -> str:
    """Returns the path that can be read once the custom kind is served."""
    return _CUSTOM


def _definition() -> dict[str, Any]:
    properties = {"color": {"type": "string"}, "size": {"type": "integer"}, "on": {"type": "boolean"}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "selectableFields": [{"jsonPath": f".spec.{name}"} for name in properties],
        "additionalPrinterColumns": [
            {"name": "Color", "type": "string", "jsonPath": ".spec.color"},
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1},
            {"name": "Since", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": properties}},
            }
        },
    }
    names = {"plural": "gadgets", "kind": "Gadget"}
    spec = {"group": "qr.example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": "gadgets.qr.example.com"}, "spec": spec}


class Generator:
    """Makes request after request; none depends on an earlier answer."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._collections = [path for path in OBJECTS if not any(part in path for part in _LEFT_OUT)] + [_CUSTOM] * 5

    def request(self) -> Request:
        makers = (self._list, self._get, self._watch, self._document, self._odd_path)
        return self._random.choices(makers, (50, 20, 8, 14, 8))[0]()

    def _pick(self, options: Sequence[T]) -> T:
        return self._random.choice(options)

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _sent(self, path: str, method: str = "GET") -> Request:
        return {"method": method, "path": path, "accept": self._accept() if self._chance(0.4) else "application/json"}

    def _list(self) -> Request:
        shares = {"labels": 0.4, "fields": 0.4, "limit": 0.15, "token": 0.15, "revision": 0.2, "match": 0.15}
        return self._sent(
            self._pick(self._collections) + self._query(include=0.2, pretty=0.1, other=0.2, initial=0.05, **shares)
        )

    def _get(self) -> Request:
        path, name = (
            self._pick(self._collections),
            self._pick((_NAME, _NAME, _NAME, "g1", "none", "a%2Fb", "%20", "A", "..")),
        )
        sub = self._pick(("", "", "", "", "/status", "/scale", "/nope", "/log", "/status/x", "/"))
        return self._sent(
            f"{path}/{name}{sub}{self._query(include=0.2, pretty=0.2, revision=0.2, match=0.1, other=0.2)}"
        )

    def _watch(self) -> Request:
        shares = {
            "labels": 0.3,
            "fields": 0.3,
            "limit": 0.05,
            "token": 0.05,
            "revision": 0.5,
            "match": 0.3,
            "initial": 0.4,
        }
        query = self._query(include=0.2, pretty=0.05, bookmarks=0.3, **shares)
        return self._sent(f"{self._pick(self._collections)}{query}{'&' if query else '?'}watch=1&timeoutSeconds=1")

    def _document(self) -> Request:
        method = self._pick(_METHODS)
        found = self._sent(self._pick(_DOCUMENTS), method)
        if self._chance(0.1):
            found["headers"] = {"If-None-Match": self._pick(("*", '"x"', ""))}
        return found

    def _odd_path(self) -> Request:
        path = self._pick(self._collections)
        changes: Sequence[Callable[[], str]] = (
            lambda: path.replace("/default", "/nope"),
            lambda: path.replace("/v1/", "/v9/", 1),
            lambda: path.replace("/namespaces/default", ""),
            lambda: path + "/",
            lambda: path.replace("/", "//", 1),
            lambda: path.replace("s", "S"),
            lambda: path + "/" + _NAME + "/status",
            lambda: path.replace("/v1/", "/v1/watch/", 1) + "/" + _NAME + "?timeoutSeconds=1",
            lambda: path.replace("/v1/", "/v1/proxy/", 1),
            lambda: path + "/x" * self._pick((2, 3, 5)),
        )
        path_of = self._pick(changes)
        return self._sent(path_of(), self._pick([method for method in _METHODS if method != "DELETE"]))

    def _query(self, **shares: float) -> str:
        makers: dict[str, Callable[[], str]] = {
            "revision": lambda: f"resourceVersion={self._pick(('0', '', '1', '-1', 'x', '99999999', '00'))}",
            "match": lambda: f"resourceVersionMatch={self._pick(('Exact', 'NotOlderThan', 'exact', ''))}",
            "include": lambda: f"includeObject={self._pick(('None', 'Object', 'Metadata', 'none', ''))}",
            "pretty": lambda: f"pretty={self._pick(('true', 'false', '0', 'T', ''))}",
            "limit": lambda: (
                f"limit={self._pick(('1', '2', '500', '0', '-5', 'x', '9223372036854775808', '1.0', '%2B1'))}"
            ),
            "labels": lambda: f"labelSelector={quote(self._labels())}",
            "fields": lambda: f"fieldSelector={quote(self._fields())}",
            "token": lambda: f"continue={self._token()}",
            "initial": lambda: f"sendInitialEvents={self._pick(('true', 'false', '', 'x'))}",
            "bookmarks": lambda: f"allowWatchBookmarks={self._pick(('true', 'false', '', 'x'))}",
            "other": lambda: self._pick(
                (
                    *(
                        "timeoutSeconds=x",
                        "timeoutSeconds=5",
                        "watch=false",
                        "watch=0",
                        "timeout=5s",
                        "timeout=x",
                        "timeout=-1s",
                    ),
                    *(
                        "timeout=0",
                        "nope=1",
                        "limit=1&limit=2",
                        "labelSelector=a&labelSelector=b",
                        "dryRun=All",
                        "%zz=1",
                        ";",
                    ),
                    *(
                        "fieldSelector=metadata.name%3Dqr;x",
                        "timeout=5",
                        "export=true",
                        "shardSelector=x",
                        "ignoreStoreReadError=x",
                    ),
                )
            ),
        }
        parts = [makers[name]() for name, share in shares.items() if self._chance(share)]
        self._random.shuffle(parts)
        return "?" + "&".join(parts) if parts else ""

    def _token(self) -> str:
        token: dict[str, Any] = {
            "v": "meta.k8s.io/v1",
            "rv": self._pick((-1, 0, 1, 99999999)),
            "start": self._pick(("a", "zz", "q\0", "/x")),
        }
        if self._chance(0.3):
            token[self._pick(("v", "rv", "start"))] = self._pick((None, "", "v2", 1.5, [], "../a"))
        text = json.dumps(token, separators=(",", ":"))
        if self._chance(0.2):
            text = text[: self._random.randrange(len(text))]
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=" if self._chance(0.9) else "")

    def _labels(self) -> str:
        return self._joined(self._label_term)

    def _fields(self) -> str:
        return self._joined(self._field_term)

    def _joined(self, term: Callable[[], str]) -> str:
        text = self._pick((",", ",", ",", ", ", ",,", " ")).join(term() for _ in range(self._pick((1, 1, 2, 3))))
        if text and self._chance(0.1):
            at = self._random.randrange(len(text))
            text = text[:at] + self._pick("=!,() \\<>in\t\n'\"~") + text[at + self._pick((0, 1)) :]
        return text

    def _label_term(self) -> str:
        key = self._pick(("a", "app", "b")) if self._chance(0.5) else self._pick(_LABELS)
        value = self._pick(_VALUES)
        form = self._pick(
            (
                "{k}",
                "!{k}",
                "{k}={v}",
                "{k}=={v}",
                "{k}!={v}",
                "{k} in ({v})",
                "{k} in ({v},{w})",
                "{k} notin ({v}, {w})",
                "{k}>{v}",
                "{k}<{v}",
                "{k} > {v}",
                " {k} = {v} ",
                "{k} in {v}",
                "{k} in ()",
                "! {k}",
                "{k} notin",
                "({k})",
            )
        )
        return str(form).format(k=key, v=value, w=self._pick(_VALUES))

    def _field_term(self) -> str:
        key = (
            self._pick(("metadata.name", "metadata.namespace", "spec.color"))
            if self._chance(0.6)
            else self._pick(_FIELDS)
        )
        operator = self._pick(("=", "==", "!=", "=", "===", "", ">", " = "))
        return f"{key}{operator}{self._pick((*_VALUES, *_ESCAPED))}"

    def _accept(self) -> str:
        return self._pick((",", ", ", " , ")).join(self._clause() for _ in range(self._pick((1, 1, 1, 2, 3))))

    def _clause(self) -> str:
        found = str(self._pick(_TYPES[:4] if self._chance(0.6) else _TYPES))
        if self._chance(0.5):
            group, version = (
                self._pick((_META, _META, _META, "apidiscovery.k8s.io", "")),
                self._pick(("v1", "v1", "v1beta1", "v2", "")),
            )
            found += f";as={self._pick(_KINDS[:3] if self._chance(0.7) else _KINDS)};v={version};g={group}"
        if self._chance(0.2):
            found += self._pick(_PARAMETERS)
        return found + self._pick(_QUALITIES)
