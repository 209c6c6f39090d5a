"""Random creates, updates, status writes and deletions of every kind, for `conformance.compare.requests`.

An object is a kind's smallest valid one with some things changed: its metadata, a field's type, unknown fields, its own type.
What only its kind's validation could judge is left alone, so that differences are those of rules that all kinds share.
"""

import json
import random
from collections.abc import Callable, Iterator
from typing import Any, Final

from conformance.exchange import HERE

Request = dict[str, Any]

OBJECTS: Final[dict[str, dict[str, Any]]] = json.loads((HERE / "minimal_objects.json").read_text())
# Objects that use as many fields as they can.
RICH: Final[dict[str, list[dict[str, Any]]]] = json.loads((HERE / "rich_objects.json").read_text())
# Objects of kinds that are served on request. The first one is the smallest; a path stands for the same objects as there.
_ON_REQUEST: Final[dict[str, list[dict[str, Any]] | str]] = json.loads((HERE / "on_request_objects.json").read_text())
NAMES: Final = ("w1", "w2")
_CUSTOM: Final = "/apis/q.example.com/v1/namespaces/default/wrs"
# Kinds that something in a real server changes behind the client's back.
_RESTLESS: Final = ("/flowschemas", "/prioritylevelconfigurations", "/servicecidrs", "/namespaces")
_WITH_STATUS: Final = (
    *("nodes", "persistentvolumeclaims", "persistentvolumes", "pods", "replicationcontrollers", "resourcequotas"),
    *("daemonsets", "deployments", "replicasets", "statefulsets", "cronjobs", "ingresses", "poddisruptionbudgets"),
    *("horizontalpodautoscalers", "certificatesigningrequests", "volumeattachments", "resourceclaims", "wrs"),
)
_DEFINITION: Final[Request] = {
    "method": "POST",
    "path": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "body": {
        "metadata": {"name": "wrs.q.example.com"},
        "spec": {
            "group": "q.example.com",
            "scope": "Namespaced",
            "names": {"plural": "wrs", "kind": "Wr"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {
                                "spec": {"type": "object", "properties": {"a": {"type": "integer"}}},
                                "status": {"type": "object", "properties": {"b": {"type": "string"}}},
                            },
                        }
                    },
                }
            ],
        },
    },
}
_META: Final[tuple[tuple[str, tuple[Any, ...]], ...]] = (
    ("labels", ({"a": "b"}, {"a": "c"}, {}, None, {"a b": "x"}, {"a": "-"}, {"x/y/z": "1"}, {"a": 1}, "x")),
    ("annotations", ({"n": "1"}, {"n": "2"}, None, {"A/b c": "1"}, {"n": {}}, [])),
    (
        "finalizers",
        (["t.io/x"], ["t.io/x", "t.io/y"], [], None, ["bad"], ["a b"], ["orphan", "foregroundDeletion"], "x"),
    ),
    ("generateName", ("gen-", "Bad_-")),
    ("uid", ("u", "")),
    ("resourceVersion", ("1", "0", "")),
    ("generation", (7, -1, "x", None)),
    ("creationTimestamp", ("2020-01-01T00:00:00Z", None, "x", 5)),
    ("deletionTimestamp", ("2020-01-01T00:00:00Z", None, "")),
    ("deletionGracePeriodSeconds", (5, 0, None, "5")),
    ("selfLink", ("/x",)),
    ("namespace", ("default", "other", "", 5)),
    ("ownerReferences", ([], [{}], [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}] * 2, {}, None)),
    ("unknown", (1, {"a": 1})),
)
_QUERIES: Final = (
    *("dryRun=All", "fieldValidation=Strict", "fieldValidation=Ignore", "fieldManager=m", "dryRun=x"),
    *("fieldValidation=x", "fieldManager=a%01", "pretty=true"),
)
_DELETIONS: Final[tuple[Any, ...]] = (
    *(None, None, {}, {"propagationPolicy": "Foreground"}, {"propagationPolicy": "Orphan"}),
    *({"propagationPolicy": "Background"}, {"orphanDependents": True}, {"orphanDependents": False}),
    *({"gracePeriodSeconds": 0}, {"gracePeriodSeconds": 5}, {"gracePeriodSeconds": -1}, {"gracePeriodSeconds": "x"}),
    *({"preconditions": {"uid": "x"}}, {"preconditions": {"resourceVersion": "1"}}, {"dryRun": ["All"]}),
    *({"kind": "DeleteOptions", "apiVersion": "v1"}, {"kind": "Pod", "apiVersion": "v1"}, {"propagationPolicy": "x"}),
    *({"orphanDependents": True, "propagationPolicy": "Orphan"}, {"unknown": 1}, []),
)


def objects_on_request() -> dict[str, list[dict[str, Any]]]:
    """Collections that are served on request -> their objects, the smallest one first."""
    return {collection: _objects_of(collection) for collection in _ON_REQUEST}


def _objects_of(collection: str) -> list[dict[str, Any]]:
    found = _ON_REQUEST.get(collection)
    if isinstance(found, str):
        return _objects_of(found)
    return found or [OBJECTS[collection], *RICH[collection]]


class Generator:
    """Makes requests out of one random source."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._paths = [path for path in OBJECTS if not path.endswith(_RESTLESS)]

    def request(self) -> Request:
        path, name = self._pick(*self._paths), self._pick(*NAMES)
        if path.endswith("ipaddresses"):
            name = f"10.7.0.{name[1]}"
        at = f"{path}/{name}"
        makers: dict[str, Callable[[], Request]] = {
            "create": lambda: self._write("POST", path, path, name),
            "update": lambda: self._write("PUT", at, path, name),
            "status": lambda: self._write("PUT", f"{at}/status", path, name),
            "free": lambda: self._patch(at, {"metadata": {"finalizers": None}}),
            "patch": lambda: self._patch(at, {"metadata": self._meta(name)}),
            "delete": lambda: self._delete(at),
            "deletecollection": lambda: self._delete(path + self._pick("", "?labelSelector=a%3Db", "?limit=1")),
            "get": lambda: {"method": "GET", "path": at},
        }
        weights = [30, 25, 8 if path.endswith(_WITH_STATUS) else 0, 8, 8, 15, 3, 3]
        (maker,) = self._random.choices(list(makers.values()), weights)
        return maker()

    def _pick(self, *options: Any) -> Any:
        return self._random.choice(options)

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _query(self) -> str:
        return f"?{self._pick(*_QUERIES)}" if self._chance(0.3) else ""

    def _write(self, method: str, at: str, path: str, name: str) -> Request:
        return {"method": method, "path": at + self._query(), "body": self._object(path, name)}

    def _patch(self, at: str, body: Any) -> Request:
        return {"method": "PATCH", "path": at + self._query(), "body": body, "type": "application/merge-patch+json"}

    def _delete(self, at: str) -> Request:
        body = self._pick(*_DELETIONS)
        return {"method": "DELETE", "path": at} | ({} if body is None else {"body": body})

    def _object(self, path: str, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(json.dumps(OBJECTS[path]))
        found["metadata"] = self._meta(name)
        if path == _CUSTOM:
            found |= {"kind": "Wr", "apiVersion": "q.example.com/v1"}
        if self._chance(0.06):
            found["kind"] = self._pick("ConfigMap", "Pod", "Nope", "", 5)
        if self._chance(0.06):
            found["apiVersion"] = self._pick("v1", "apps/v1", "nope/v1", "", "a/b/c", 5)
        if self._chance(0.06):
            found[self._pick("unknown", "Spec", "status")] = self._pick({}, 1, "x", None)
        if self._chance(0.05):
            found[self._pick(*found)] = self._pick("x", 5, True, [], ["x"])
        return found

    def _meta(self, name: str) -> Any:
        if self._chance(0.02):
            return self._pick(None, "x", 5, [], {})
        meta: dict[str, Any] = {
            "name": name if self._chance(0.95) else self._pick("w1", "Bad_", "a%b", "a" * 300, "", 5)
        }
        for field, values in _META:
            if self._chance(0.08):
                meta[field] = self._pick(*values)
        return meta


def prepare() -> Iterator[Request]:
    """The custom resource's definition, and nothing left of an earlier run."""
    yield _DEFINITION
    for path in OBJECTS:
        for name in (*NAMES, "10.7.0.1", "10.7.0.2"):
            yield {"method": "DELETE", "path": f"{path}/{name}?gracePeriodSeconds=0&propagationPolicy=Background"}
            free = {"metadata": {"finalizers": None}}
            yield {"method": "PATCH", "path": f"{path}/{name}", "body": free, "type": "application/merge-patch+json"}
