"""Random requests, valid and invalid, sent to a real server and to another one: prints each kind of difference once.

    python -m conformance.differential --oracle URL --oracle-token T --server URL --token T [--seed N] [--count N]

Both servers should be fresh; the same seed sends the same requests. Objects named f1 to f3 in the namespace `default` are used.
"""

import argparse
import json
import random
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from conformance.exchange import Client, difference

COLLECTIONS: Final[Mapping[str, str]] = {
    "ConfigMap": "/api/v1/namespaces/default/configmaps",
    "Deployment": "/apis/apps/v1/namespaces/default/deployments",
    "Pod": "/api/v1/namespaces/default/pods",
    "Secret": "/api/v1/namespaces/default/secrets",
    "Service": "/api/v1/namespaces/default/services",
}
NAMES: Final = ("f1", "f2", "f3")
_TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"
Request = dict[str, Any]


class Generator:
    """Makes requests out of one random source."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def request(self) -> Request:
        kind = self._pick(*COLLECTIONS)
        path, name = COLLECTIONS[kind], self._pick(*NAMES)
        query = self._pick(
            "", "", "", "?dryRun=All", "?fieldValidation=Strict", "?fieldValidation=Ignore", "?fieldManager=m"
        )
        makers: dict[str, Callable[[], Request]] = {
            "create": lambda: {"method": "POST", "path": path + query, "body": self._object(kind)},
            "update": lambda: {"method": "PUT", "path": f"{path}/{name}{query}", "body": self._object(kind, name)},
            "merge": lambda: self._patch(f"{path}/{name}{query}", "merge-patch+json", self._merge(kind)),
            "strategic": lambda: self._patch(
                f"{path}/{name}{query}", "strategic-merge-patch+json", self._strategic(kind)
            ),
            "json": lambda: self._patch(f"{path}/{name}{query}", "json-patch+json", [self._operation()]),
            "apply": lambda: self._apply(kind, path, name),
            "delete": lambda: {"method": "DELETE", "path": f"{path}/{name}{self._delete_query()}"},
            "read": lambda: {
                "method": "GET",
                "path": path + self._pick("", f"/{name}", "?labelSelector=a%3Dx"),
                "accept": self._accept(),
            },
            "deletecollection": lambda: {"method": "DELETE", "path": path},
        }
        weights = (30, 10, 10, 10, 5, 13, 12, 5, 2)
        (maker,) = self._random.choices(list(makers.values()), weights)
        return maker()

    def _pick(self, *options: Any) -> Any:
        return self._random.choice(options)

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _accept(self) -> str:
        return str(self._pick("application/json", _TABLE))

    def _delete_query(self) -> str:
        return str(
            self._pick(
                "", "?dryRun=All", "?propagationPolicy=Foreground", "?propagationPolicy=Orphan", "?gracePeriodSeconds=0"
            )
        )

    def _patch(self, path: str, kind: str, body: Any) -> Request:
        return {"method": "PATCH", "path": path, "body": body, "type": f"application/{kind}"}

    def _merge(self, kind: str) -> Any:
        return (
            self._object(kind)
            if self._chance(0.3)
            else {"metadata": {"labels": {self._pick("a", "b"): self._pick("x", None)}}}
        )

    def _strategic(self, kind: str) -> Any:
        if kind == "Deployment":
            return {"spec": {"template": self._template()}}
        return {"metadata": {"annotations": {self._pick("a", "b"): self._pick("x", None)}}}

    def _operation(self) -> Any:
        path = self._pick("/metadata/labels", "/metadata/labels/a", "/data/x", "/spec/replicas")
        return {
            "op": self._pick("add", "remove", "replace", "test"),
            "path": path,
            "value": self._pick({"a": "b"}, "x", 2),
        }

    def _apply(self, kind: str, path: str, name: str) -> Request:
        body = {"kind": kind, **self._object(kind, name), "apiVersion": "apps/v1" if kind == "Deployment" else "v1"}
        query = f"?fieldManager={self._pick('a', 'b')}{self._pick('', '&force=true')}"
        return self._patch(f"{path}/{name}{query}", "apply-patch+yaml", body)

    def _object(self, kind: str, name: str = "") -> dict[str, Any]:
        meta: dict[str, Any] = {"name": name or self._pick(*NAMES)}
        if self._chance(0.3):
            meta["labels"] = {self._pick("a", "b", "a b"): self._pick("x", "y", "-")}
        if self._chance(0.1):
            meta["annotations"] = {"n": self._pick("1", 1, None)}
        if self._chance(0.1):
            meta["finalizers"] = [self._pick("x.io/a", "bad")]
        found = {"metadata": meta, **self._content(kind)}
        if self._chance(0.1):
            found[self._pick("foo", "spec", "status")] = self._pick(1, {"x": 1}, None)
        if self._chance(0.1):
            found["kind"] = self._pick("ConfigMap", "Pod", "Foo")
        return found

    def _content(self, kind: str) -> dict[str, Any]:
        if kind == "ConfigMap":
            data = {self._pick("x", "y", "z"): self._pick("1", "2", 3, None, {"a": 1})}
            return {"data": data if self._chance(0.8) else self._pick("x", None, [])}
        if kind == "Secret":
            return {"stringData": {"a": "b"}, "type": self._pick("Opaque", "kubernetes.io/tls", "")}
        if kind == "Pod":
            return {"spec": self._template()["spec"]}
        if kind == "Service":
            ports = [{"port": self._pick(80, 81, 0, "x"), "name": self._pick("p", "", None)}]
            kinds = self._pick("ClusterIP", "ClusterIP", "ExternalName", "Foo")
            return {"spec": {"ports": ports, "selector": self._pick({"a": "b"}, None), "type": kinds}}
        selector = {"matchLabels": {"a": self._pick("b", "b", "c")}}
        replicas = self._pick(1, 2, -1, "3", None)
        return {"spec": {"replicas": replicas, "selector": selector, "template": self._template()}}

    def _template(self) -> dict[str, Any]:
        container: dict[str, Any] = {"name": self._pick("c", "d", "C"), "image": self._pick("i", "i:1", "")}
        if self._chance(0.5):
            container["env"] = [{"name": "E", "value": self._pick("1", "2")}]
        return {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}


def cleanup() -> Iterator[Request]:
    """Removes what an earlier run left."""
    for path in COLLECTIONS.values():
        for name in NAMES:
            free = {"metadata": {"finalizers": None}}
            yield {"method": "PATCH", "path": f"{path}/{name}", "body": free, "type": "application/merge-patch+json"}
            yield {"method": "DELETE", "path": f"{path}/{name}?gracePeriodSeconds=0"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--oracle", "--oracle-token", "--server", "--token"):
        parser.add_argument(name, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=500)
    arguments = parser.parse_args()
    oracle, server = Client(arguments.oracle, arguments.oracle_token), Client(arguments.server, arguments.token)
    for request in cleanup():
        oracle.send(request, [])
        server.send(request, [])
    generator = Generator(arguments.seed)
    kinds: dict[str, int] = {}
    for number in range(arguments.count):
        request = generator.request()
        found = difference(oracle.send(request, []), server.send(request, []))
        if found:
            kind = re.sub(r"\d+", "N", found[:70])
            kinds[kind] = kinds.get(kind, 0) + 1
            if kinds[kind] == 1:
                print(
                    f"{number} {request['method']} {request['path']} {json.dumps(request.get('body'))[:300]}\n    {found[:500]}"
                )
    print(f"{arguments.count} requests, {sum(kinds.values())} differ in {len(kinds)} ways")
    return 0


if __name__ == "__main__":
    sys.exit(main())
