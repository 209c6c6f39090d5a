"""Random reads and writes of an object by its subresource."""

import copy
import random
import re
from typing import Any, Final

Request = dict[str, Any]
Object = dict[str, Any]
QUERIES: Final = (
    *("", "", "", "", "?dryRun=All", "?fieldValidation=Strict", "?fieldValidation=Ignore", "?fieldManager=m"),
    *("?dryRun=x", "?fieldValidation=x", "?fieldManager=a%01", "?fieldManager=m&fieldValidation=Strict"),
)
PATCHES: Final = ("merge-patch+json", "strategic-merge-patch+json", "json-patch+json", "apply-patch+yaml")
CONDITIONS: Final[tuple[Any, ...]] = (
    {"type": "Ready", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2024-01-01T00:00:00Z"},
    {"type": "Ready", "status": "False"},
    {"type": "Available", "status": "Unknown", "lastTransitionTime": "2024-01-01T00:00:00Z", "reason": "a b"},
    {"type": "", "status": "x"},
    {"type": "Failed", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "x"},
    {},
    "x",
)
VALUES: Final[tuple[Any, ...]] = (0, 1, 2, -1, "x", "", None, True, [], {}, [1], {"a": 1}, "10", 1.5, 2**31, "1Gi")
NODE: Final = "sub-node"


class Source:
    """The random source of the requests, and how an object is read or written by its subresource."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.kinds: dict[str, str] = {}

    def _write(self, path: str, row: Object, change: Object, *, whole: Object | None = None) -> Request:
        """A change of an object by its subresource: reads, updates, patches of every type."""
        query = self._pick(*QUERIES)
        how = self._pick("get", "put", "put", *PATCHES)
        if how == "get":
            return {"method": "GET", "path": path}
        if how == "put":
            body = copy.deepcopy(whole) if whole is not None else {**copy.deepcopy(row), **change}
            if self._chance(0.15):
                body["metadata"]["resourceVersion"] = self._pick("1", "x", "0")
            if self._chance(0.1):
                body["metadata"]["uid"] = "x"
            if self._chance(0.1):
                body["metadata"]["labels"] = {"by": "sub"}
            return {"method": "PUT", "path": path + query, "body": body}
        if how == "json-patch+json":
            (key, value), *_ = change.items()
            operation = {"op": self._pick("add", "replace", "test", "remove"), "path": f"/{key}", "value": value}
            return patch(path + query, how, [operation])
        body = copy.deepcopy(change)
        if self._chance(0.15):
            body["metadata"] = self._pick(
                {"labels": {"by": "sub"}}, {"resourceVersion": "1"}, {"name": "other"}, {"finalizers": ["a.io/b"]}
            )
        if how == "apply-patch+yaml":
            group, version, kind = self._type(path, row)
            body = {"apiVersion": f"{group}/{version}" if group else version, "kind": kind, **body}
            if self._chance(0.1):
                body["apiVersion"] = "v2"
            query = self._pick(
                "?fieldManager=a",
                "?fieldManager=a",
                "?fieldManager=b",
                "?fieldManager=b&force=true",
                "",
                "?fieldManager=a&dryRun=All",
            )
        return patch(path + query, how, body)

    def _type(self, path: str, row: Object) -> tuple[str, str, str]:
        if path.endswith("/scale"):
            return "autoscaling", "v1", "Scale"
        parts = path.split("/")
        group, version = ("", parts[2]) if parts[1] == "api" else (parts[2], parts[3])
        return group, version, str(row.get("kind") or self.kinds.get(path.rpartition("/")[0].rpartition("/")[0], "Pod"))

    def _sized(self, name: str) -> Object:
        found = pod(name)
        if name == "two":
            found["spec"]["containers"].append({"name": "d", "image": "i"})
        if name in ("bound", "two"):
            found["spec"]["nodeName"] = NODE
        return found

    def _value(self, key: str) -> Any:
        if key == "conditions" and self._chance(0.8):
            return [copy.deepcopy(self._pick(*CONDITIONS)) for _ in range(self._random.randint(0, 2))]
        return copy.deepcopy(self._pick(*VALUES))

    def _spoiled(self, request: Request) -> Request:
        """Now and then with another method, another media type, an unknown field, a name that isn't there."""
        if self._chance(0.04):
            return {**request, "method": self._pick("POST", "PUT", "PATCH", "DELETE", "GET")}
        if self._chance(0.03):
            return {
                **request,
                "type": self._pick(
                    "application/json", "text/plain", "application/yaml", "application/merge-patch+json"
                ),
            }
        if self._chance(0.03) and isinstance(request.get("body"), dict):
            return {**request, "body": {**request["body"], "unknown": 1}}
        if self._chance(0.03) and "body" in request:
            return {
                **{key: value for key, value in request.items() if key != "body"},
                "text": self._pick("", "{", "[]", "null", '"x"', "{}"),
            }
        if self._chance(0.03) and isinstance(request.get("body"), dict):
            return {
                **request,
                "body": {
                    **request["body"],
                    "kind": self._pick("Pod", "Scale", "X"),
                    "apiVersion": self._pick("v1", "apps/v1", "a/b/c"),
                },
            }
        if self._chance(0.05):
            return {**request, "path": re.sub(r"/(s0|s1|p0|p1|two|bound|sa)/", "/none/", request["path"], count=1)}
        return request

    def _pick(self, *options: Any) -> Any:
        return self._random.choice(options)

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    # ---------------------------------------------------------------- ways to write


def pod(name: str) -> Object:
    requests = {"cpu": "100m", "memory": "64Mi"}
    container = {"name": "c", "image": "i", "resources": {"requests": requests, "limits": requests}}
    return {"metadata": {"name": name, "labels": {"app": name}}, "spec": {"containers": [container]}}


def patch(path: str, kind: str, body: Any) -> Request:
    return {"method": "PATCH", "path": path, "body": body, "type": f"application/{kind}"}
