"""Random sequences of writes by several managers to one object: apply, PUT, every patch, subresources.

What an object may hold is a small grammar per kind, so that managers meet on the same fields often. A sequence's requests are
made from one random source; only a PUT also needs what the server under test answered last (`complete`).
"""

import http.client
import json
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from conformance.exchange import Answer, Client, difference
from conformance.random.subjects import META, SUBJECTS, Subject
from conformance.random.thing_definitions import DEFINITIONS

Request = dict[str, Any]
DELETIONS: Final[tuple[Any, ...]] = (
    *({}, {"gracePeriodSeconds": 0}, {"dryRun": ["All"]}, {"propagationPolicy": "Foreground"}),
    *({"propagationPolicy": "Orphan"}, {"gracePeriodSeconds": 1000}, {"preconditions": {"uid": "x"}}),
)
MANAGERS: Final = ("a", "b", "kubectl")
# More than an object keeps entries for.
CROWD: Final = (*MANAGERS, *(f"m{i}" for i in range(12)))
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def setup() -> Iterator[Request]:
    """The custom resources that sequences need; a server that has them answers 409."""
    for definition in DEFINITIONS:
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        yield {"method": "POST", "path": path, "body": definition}


_OWNED: Final[tuple[Any, ...]] = (
    {"f:metadata": {"f:labels": {".": {}, "f:x": {}}, "f:annotations": {"f:x": {}}}},
    {
        "f:spec": {
            "f:replicas": {},
            "f:template": {"f:spec": {"f:containers": {'k:{"name":"c"}': {".": {}, "f:image": {}}}}},
        }
    },
    {"f:spec": {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}, 'k:{"port":80}': {".": {}}}}},
    {"f:spec": {"f:set": {'v:"a"': {}}, "f:multi": {'k:{"port":1,"protocol":"TCP"}': {".": {}, "f:port": {}}}}},
    {"f:data": {".": {}, "f:x": {}}, "f:rules": {}, "f:status": {"f:conditions": {'k:{"type":"A"}': {".": {}}}}},
    {"f:metadata": {"f:finalizers": {'v:"e.com/a"': {}}, "f:ownerReferences": {'k:{"uid":"u1"}': {}}}},
    {"f:unknown": {"f:a": {}}, "f:spec": {"i:0": {}, "f:list": {"i:1": {}}}},
    {},
)


class History:
    """The writes to one object, in order."""

    def __init__(self, rng: random.Random, name: str, subjects: Sequence[Subject] = SUBJECTS) -> None:
        self._rng, self._name = rng, name
        self._subject = rng.choice(subjects)
        self._managers = CROWD if rng.random() < 0.1 else MANAGERS

    def requests(self) -> Iterator[Request]:
        yield self._first()
        for _ in range(self._rng.randint(2, 9) if self._managers is MANAGERS else self._rng.randint(14, 24)):
            yield self._next()

    def cleanup(self) -> Iterator[Request]:
        path = self._subject.path(next(iter(self._subject.versions)), self._name)
        free = {"metadata": {"finalizers": None}}
        yield {"method": "PATCH", "path": path, "body": free, "type": "application/merge-patch+json"}
        yield {"method": "DELETE", "path": path + "?gracePeriodSeconds=0"}

    def _first(self) -> Request:
        if self._rng.random() < 0.5:
            return self._apply()
        version = self._version()
        path = self._subject.path(version, self._name).rpartition("/")[0]
        return {"method": "POST", "path": f"{path}?fieldManager={self._manager()}", "body": self._object(version)}

    def _next(self) -> Request:
        makers: dict[Callable[[], Request], int] = {
            self._apply: 40,
            self._put: 8,
            self._merge: 10,
            self._strategic: 12,
            self._json: 8,
            self._client_side: 4,
            self._reset: 3,
            self._upgrade: 3,
            self._status: 12 if self._subject.status else 0,
            self._scale: 8 if self._subject.scaled else 0,
            self._other: 6 if self._subject.others else 0,
            self._delete: 3,
            self._again: 2,
        }
        (maker,) = self._rng.choices(list(makers), list(makers.values()))
        return maker()

    def _manager(self) -> str:
        return self._rng.choice(self._managers)

    def _version(self) -> str:
        return self._rng.choice(tuple(self._subject.versions))

    def _object(self, version: str) -> Any:
        found = {
            "apiVersion": version,
            "kind": self._subject.kind,
            "metadata": {"name": self._name, **META(self._rng)},
            **self._subject.versions[version](self._rng),
        }
        return self._spoilt(found) if self._rng.random() < 0.08 else found

    def _spoilt(self, obj: Any) -> Any:
        """The object with one value somewhere replaced by a wrong one."""
        at = obj
        while True:
            keys = list(at) if isinstance(at, dict) else list(range(len(at)))
            if not keys:
                return obj
            key = self._rng.choice(keys)
            if key in ("apiVersion", "kind", "name"):
                return obj
            if isinstance(at[key], dict | list) and at[key] and self._rng.random() < 0.7:
                at = at[key]
                continue
            wrong: tuple[Any, ...] = (None, "x", 1, {}, [], {"unknown": 1}, True, ["x", "x"], 1.5)
            if isinstance(at, dict) and self._rng.random() < 0.2:
                at["unknown"] = self._rng.choice(wrong)
            else:
                at[key] = self._rng.choice(wrong)
            return obj

    def _query(self, **options: str) -> str:
        found = {"fieldManager": self._manager(), **options}
        if self._rng.random() < 0.06:
            found["dryRun"] = "All"
        if self._rng.random() < 0.1:
            found["fieldValidation"] = self._rng.choice(("Strict", "Ignore"))
        return "?" + "&".join(f"{key}={value}" for key, value in found.items())

    def _patch(self, path: str, body: Any, kind: str) -> Request:
        return {"method": "PATCH", "path": path, "body": body, "type": f"application/{kind}"}

    def _apply(self) -> Request:
        version = self._version()
        options = {"force": "true"} if self._rng.random() < 0.45 else {}
        path = self._subject.path(version, self._name) + self._query(**options)
        return self._patch(path, self._object(version), "apply-patch+yaml")

    def _put(self) -> Request:
        version = self._version()
        changes = self._object(version)
        return {
            "method": "PUT",
            "path": self._subject.path(version, self._name) + self._query(),
            "live": self._subject.path(version, self._name),
            "changes": changes if self._rng.random() < 0.5 else {"metadata": changes["metadata"]},
        }

    def _merge(self) -> Request:
        version = self._version()
        path = self._subject.path(version, self._name) + self._query()
        return self._patch(path, self._part(version), "merge-patch+json")

    def _strategic(self) -> Request:
        version = self._version()
        path = self._subject.path(version, self._name) + self._query()
        body = self._part(version)
        return self._patch(
            path, self._directed(body) if self._rng.random() < 0.5 else body, "strategic-merge-patch+json"
        )

    def _directed(self, value: Any) -> Any:
        """The patch with a directive here and there."""
        if isinstance(value, list):
            return self._directed_list([self._directed(item) for item in value])
        if not isinstance(value, dict):
            return value
        out: dict[str, Any] = {}
        for key, item in value.items():
            chance = self._rng.random()
            if isinstance(item, list) and chance < 0.12:
                out[f"$deleteFromPrimitiveList/{key}"] = item
            elif isinstance(item, list) and chance < 0.25:
                out[f"$setElementOrder/{key}"] = self._rng.sample(item, len(item))
                out[key] = item
            else:
                out[key] = self._directed(item)
        if self._rng.random() < 0.06:
            out["$patch"] = self._rng.choice(("replace", "merge", "delete", "x", 1))
        if self._rng.random() < 0.08:
            out["$retainKeys"] = list(value)
        return out

    def _directed_list(self, value: list[Any]) -> list[Any]:
        if value and isinstance(value[0], dict) and self._rng.random() < 0.15:
            value = [{**value[0], "$patch": "delete"}, *value[1:]]
        return [*value, {"$patch": "replace"}] if self._rng.random() < 0.06 else value

    def _part(self, version: str) -> Any:
        body = self._object(version)
        if self._rng.random() < 0.4:
            return {"metadata": body.get("metadata")}
        return {key: value for key, value in body.items() if key not in ("apiVersion", "kind")}

    def _json(self) -> Request:
        version = self._version()
        content = self._part(version)
        operations = [self._operation(content) for _ in range(self._rng.randint(1, 3))]
        path = self._subject.path(version, self._name) + self._query()
        return self._patch(path, operations, "json-patch+json")

    def _operation(self, content: Any) -> Any:
        kind = self._rng.choice(("add", "add", "add", "replace", "remove", "test", "copy", "move"))
        pointer, value = self._place(content)
        found = {"op": kind, "path": pointer}
        if kind in ("copy", "move"):
            return {**found, "from": self._place(content)[0]}
        return found if kind == "remove" else {**found, "value": value}

    def _place(self, content: Any) -> tuple[str, Any]:
        """A pointer into an object, and the value there."""
        pointer, value = "", content
        while isinstance(value, dict | list) and value and (not pointer or self._rng.random() < 0.75):
            key = self._rng.choice(list(value) if isinstance(value, dict) else range(len(value)))
            value = value[key]
            pointer += "/" + (
                self._rng.choice(("-", "-1", str(key))) if isinstance(key, int) else key.replace("/", "~1")
            )
        return pointer, value

    def _client_side(self) -> Request:
        """Makes the request of `kubectl apply` without --server-side: a merge patch that carries its own text."""
        version = self._version()
        body = self._object(version)
        text = json.dumps(body)
        if not isinstance(meta := body["metadata"], dict) or not isinstance(meta.get("annotations", {}), dict):
            return self._merge()
        meta["annotations"] = {**meta.get("annotations", {}), LAST_APPLIED: text}
        path = self._subject.path(version, self._name) + "?fieldManager=kubectl-client-side-apply"
        return self._patch(path, body, "merge-patch+json")

    def _upgrade(self) -> Request:
        """Makes the request with which `kubectl apply --server-side` takes over the entry of a client-side apply."""
        entries = [
            {
                "manager": self._rng.choice(("kubectl", "kubectl-client-side-apply", self._manager())),
                "operation": self._rng.choice(("Apply", "Update")),
                "apiVersion": self._version(),
                "fieldsType": "FieldsV1",
                "time": "2020-01-01T00:00:00Z",
                "fieldsV1": self._rng.choice(_OWNED),
                **({"subresource": "status"} if self._rng.random() < 0.2 else {}),
            }
            for _ in range(self._rng.randint(1, 3))
        ]
        path = self._subject.path(self._version(), self._name) + self._query()
        operations: list[Any] = [{"op": "replace", "path": "/metadata/managedFields", "value": entries}]
        if self._rng.random() < 0.3:
            operations.append({"op": "remove", "path": f"/metadata/managedFields/{self._rng.randint(0, 2)}"})
        if self._rng.random() < 0.3:
            operations += [self._operation(self._part(self._version()))]
        return self._patch(path, operations, "json-patch+json")

    def _reset(self) -> Request:
        entry: Any = {
            "manager": "m",
            "operation": self._rng.choice(("Apply", "Update")),
            "apiVersion": self._version(),
            "fieldsType": "FieldsV1",
            "fieldsV1": self._rng.choice(
                (
                    {"f:metadata": {"f:labels": {"f:x": {}}}},
                    {"f:spec": {"f:replicas": {}, "f:template": {}}, "f:data": {".": {}, "f:x": {}}},
                    {"f:spec": {"f:set": {'v:"a"': {}}, "f:map": {'k:{"name":"a"}': {".": {}, "f:value": {}}}}},
                    {"bad": {}},
                    {"f:metadata": 1},
                )
            ),
        }
        sent: Any = self._rng.choice(
            ([{}], [], [entry], [{**entry, "fieldsType": "V0"}], [{**entry, "operation": "x"}], None)
        )
        path = self._subject.path(self._version(), self._name) + self._query()
        return self._patch(path, {"metadata": {"managedFields": sent}}, "merge-patch+json")

    def _status(self) -> Request:
        version = self._version()
        assert self._subject.status is not None
        status = self._subject.status(self._rng)
        path = self._subject.path(version, self._name) + "/status"
        kind = self._rng.choice(("apply-patch+yaml", "merge-patch+json", "strategic-merge-patch+json"))
        body: Any = {"status": status}
        if self._rng.random() < 0.2:
            body = {"metadata": META(self._rng), **body}
        options = {}
        if kind == "apply-patch+yaml":
            body = {"apiVersion": version, "kind": self._subject.kind, **body}
            body["metadata"] = {**(body.get("metadata") or {}), "name": self._name}
            if self._rng.random() < 0.5:
                options = {"force": "true"}
        return self._patch(path + self._query(**options), body, kind)

    def _scale(self) -> Request:
        version = self._version()
        path = self._subject.path(version, self._name) + "/scale"
        replicas = self._rng.choice((1, 2, 3, 4, 0, -1, "x", None))
        body: Any = {"spec": {"replicas": replicas}}
        if self._rng.random() < 0.2:
            body = {"spec": {}}
        kind = self._rng.choice(("apply-patch+yaml", "merge-patch+json", "strategic-merge-patch+json", "put"))
        full = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": self._name}, **body}
        if kind == "put":
            full["metadata"]["namespace"] = "default"
            return {"method": "PUT", "path": path + self._query(), "body": full}
        options = {"force": "true"} if kind == "apply-patch+yaml" and self._rng.random() < 0.5 else {}
        return self._patch(path + self._query(**options), full if kind == "apply-patch+yaml" else body, kind)

    def _other(self) -> Request:
        """A write to a subresource that holds the object itself."""
        version = self._version()
        path = f"{self._subject.path(version, self._name)}/{self._rng.choice(self._subject.others)}"
        kind = self._rng.choice(("apply-patch+yaml", "merge-patch+json", "strategic-merge-patch+json", "put"))
        if kind == "put":
            live = self._subject.path(version, self._name)
            return {"method": "PUT", "path": path + self._query(), "live": live, "changes": self._object(version)}
        body = self._object(version) if kind == "apply-patch+yaml" else self._part(version)
        return self._patch(path + self._query(), body, kind)

    def _delete(self) -> Request:
        path = self._subject.path(self._version(), self._name)
        return {"method": "DELETE", "path": path, "body": self._rng.choice(DELETIONS)}

    def _again(self) -> Request:
        """Makes a creation, mostly of an object that exists already."""
        version = self._version()
        path = self._subject.path(version, self._name).rpartition("/")[0]
        return {"method": "POST", "path": path + self._query(), "body": self._object(version)}


def send(client: Client, request: Request, revisions: dict[str, str]) -> Answer:
    """Sends a request of a history and returns the answer in a form in which two servers' answers can be compared.

    `revisions`: each server's last resourceVersion of the object; the answer's `changed` is true if it has changed.
    """
    if "live" in request:
        live = client.send({"method": "GET", "path": request["live"]}, [])["body"]
        body = merged(live if live.get("kind") != "Status" else {}, request["changes"])
        request = {"method": "PUT", "path": request["path"], "body": body}
    try:
        answer = client.send(request, [])
    except (http.client.HTTPException, ConnectionError):
        return {"status": 0}  # a panic: Go's server drops the connection
    revision = (answer.get("body") or {}).get("metadata", {}).get("resourceVersion")
    if revision:
        answer["changed"] = revision != revisions.get(client.url)
        revisions[client.url] = revision
    return answer


def merged(target: Any, patch: Any) -> Any:
    """RFC 7386, but nulls are kept out of the way."""
    if not isinstance(patch, dict) or not isinstance(target, dict):
        return patch
    out = dict(target)
    for key, value in patch.items():
        out[key] = merged(target.get(key), value)
    return out


def alike(expected: Answer, got: Answer) -> bool:
    """Reports whether both servers can hold the same object after these answers."""
    return expected["status"] == got["status"] and (
        expected["status"] >= 400 or not difference({"body": expected["body"]}, {"body": got["body"]})
    )
