"""Random graphs of owners and random deletions in them, at two servers whose garbage collectors run.

    python -m conformance.compare.controllers.garbage --oracle URL --oracle-token T --server URL --token T
        [--seed N] [--rounds N] [--graphs N] [--steps N]

The real server needs a kube-controller-manager with `--controllers=garbage-collector-controller,namespace-controller` (and a high
`--kube-api-qps`) beside it, ours `--controllers=` the same. In each round `--graphs` graphs are made, each of custom resources and
of built-in kinds in two namespaces and in none; references may lie about everything. After each step (deletions with every policy,
changes of references and finalizers) both must have the same objects, with the same references, finalizers and events. In the end
all namespaces are deleted, and must have said the same before they went.
The custom resources' group is `garbage.example.com`, names begin with `dg`.
"""

import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from conformance.exchange import Client, comparing
from conformance.free_values import plain

Object = dict[str, Any]
_GROUP: Final = "garbage.example.com"
_NEVER: Final = "00000000-0000-0000-0000-00000000000"
_QUIET: Final = 2.5  # seconds
_PATIENCE: Final = 60.0
_KNOWN: Final = 35.0  # the real garbage collector looks for new kinds every half minute


@dataclass(frozen=True)
class Kind:
    """A kind's API path and the fields that its objects need."""

    api_version: str
    kind: str
    resource: str
    namespaced: bool = True

    def path(self, namespace: str) -> str:
        prefix = f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"
        return f"{prefix}/namespaces/{namespace}/{self.resource}" if self.namespaced else f"{prefix}/{self.resource}"


KINDS: Final = (
    Kind("v1", "ConfigMap", "configmaps"),
    Kind("v1", "Secret", "secrets"),
    Kind("rbac.authorization.k8s.io/v1", "Role", "roles"),
    Kind("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", namespaced=False),
    Kind(f"{_GROUP}/v1", "Widget", "widgets"),
    Kind(f"{_GROUP}/v1", "Cluster", "clusters", namespaced=False),
)
_NONSENSE: Final = Kind(f"{_GROUP}/v1", "Nonsense", "nonsenses")


@dataclass
class Server:
    """A server of the comparison, with the UIDs that it assigned."""

    client: Client
    uids: dict[str, str] = field(default_factory=dict)

    def ask(self, method: str, path: str, body: object = None, content_type: str = "application/json") -> Object:
        request: Object = {"method": method, "path": path, "type": content_type}
        if body is not None:
            request["body"] = body
        answer = self.client.send(request, [])
        return {**(answer.get("body") or {}), "code": answer["status"]}


@dataclass(frozen=True)
class Item:
    """An object of a graph, by a name that is its own in the whole round."""

    name: str
    kind: Kind
    namespace: str

    @property
    def path(self) -> str:
        return f"{self.kind.path(self.namespace)}/{self.name}"


class Graph:
    """Random objects and the requests for both servers. References use names, since UIDs differ."""

    def __init__(self, random: Random, name: str) -> None:
        self.random = random
        self.namespaces = (f"{name}-a", f"{name}-b")
        self.items: list[Item] = []
        for number in range(random.randint(3, 12)):
            kind = random.choice(KINDS)
            self.items.append(Item(f"{name}-{number}", kind, random.choice(self.namespaces) if kind.namespaced else ""))
        self.owners = {item.name: self._owners(item, self.items[:number]) for number, item in enumerate(self.items)}
        self.finalizers = {
            item.name: [each for each in ("example.com/hold",) if random.random() < 0.15] for item in self.items
        }

    def _owners(self, item: Item, before: Sequence[Item]) -> list[Object]:
        """`uid` is an item's name, or one that nothing has."""
        random = self.random
        found: dict[str, Object] = {}
        near = [other for other in before if other.namespace in ("", item.namespace)]
        for _ in range(random.choice((0, 1, 1, 1, 2, 3))):
            owners = before if random.random() < 0.1 else near
            if not owners:
                continue
            owner = random.choice(owners)
            reference = {"apiVersion": owner.kind.api_version, "kind": owner.kind.kind, "name": owner.name}
            uid = owner.name
            if random.random() < 0.15:
                lie = random.choice(("name", "kind", "version", "uid", "nonsense"))
                other = random.choice(KINDS)
                if lie == "name":
                    reference["name"] = random.choice(before).name
                elif lie == "kind":
                    reference |= {"apiVersion": other.api_version, "kind": other.kind}
                elif lie == "version":
                    reference["apiVersion"] = "example.com/v9"
                elif lie == "uid":
                    uid = _NEVER + str(random.randint(1, 9))
                else:
                    reference |= {"apiVersion": _NONSENSE.api_version, "kind": _NONSENSE.kind}
            blocks = random.choice((None, False, True, True))
            found[uid] = {**reference, "uid": uid, **({} if blocks is None else {"blockOwnerDeletion": blocks})}
        return [*found.values()]

    def created(self, item: Item) -> Object:
        return {
            "apiVersion": item.kind.api_version,
            "kind": item.kind.kind,
            "metadata": {
                "name": item.name,
                "ownerReferences": self.owners[item.name],
                "finalizers": self.finalizers[item.name],
            },
        }

    def step(self) -> tuple[str, str, object]:
        """(method, path, body) of one change."""
        random = self.random
        item = random.choice(self.items)
        draw = random.random()
        if draw < 0.15:
            references = self._owners(item, [other for other in self.items if other is not item])
            return "PATCH", item.path, {"metadata": {"ownerReferences": references}}
        if draw < 0.3:
            return "PATCH", item.path, {"metadata": {"finalizers": None}}
        policy = random.choice(("Background", "Foreground", "Foreground", "Orphan"))
        return "DELETE", item.path, {"propagationPolicy": policy}


class Round:
    """Some graphs at both servers."""

    def __init__(self, servers: Sequence[Server], random: Random, graphs: int) -> None:
        self._servers = servers
        self._pool = ThreadPoolExecutor(2)
        prefix = f"dg{uuid.UUID(int=random.getrandbits(128)).hex[:6]}"
        self._graphs = [Graph(random, f"{prefix}-{number}") for number in range(graphs)]
        self._prefix = prefix

    def run(self, steps: int) -> Iterator[str]:
        """Yields the differences after each step."""
        for graph in self._graphs:
            for namespace in graph.namespaces:
                self._both("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        for graph in self._graphs:
            for item in graph.items:
                self._both("POST", item.kind.path(item.namespace), graph.created(item), item.name)
        yield from self._compared("the creation")
        for number in range(steps):
            made = [graph.step() for graph in self._graphs]
            for method, path, body in made:
                self._both(method, path, body)
            yield from self._compared(f"step {number}", made)
        for graph in self._graphs:
            for namespace in graph.namespaces:
                self._both("DELETE", f"/api/v1/namespaces/{namespace}")
        start = time.monotonic()
        while time.monotonic() - start < _PATIENCE and any(map(self._untouched, self._servers)):
            time.sleep(1.0)
        yield from self._compared("the end")
        for server in self._servers:
            self._clean(server)

    def _both(self, method: str, path: str, body: object = None, created: str = "") -> None:
        def ask(server: Server) -> int:
            sent = _with_uids(body, server.uids)
            answer = server.ask(
                method, path, sent, "application/merge-patch+json" if method == "PATCH" else "application/json"
            )
            if created and answer["code"] == 201:
                server.uids[created] = answer["metadata"]["uid"]
            return int(answer["code"])

        want, got = self._pool.map(ask, self._servers)
        if want != got and {want, got} != {200, 404}:  # a deletion may be over by now
            print(f"{method} {path}: {want} != {got}", file=sys.stderr)

    def _compared(self, when: str, made: Sequence[tuple[str, str, object]] = ()) -> Iterator[str]:
        want, got = self._pool.map(self._settled, self._servers)
        for number, graph in enumerate(self._graphs):
            names = {item.name for item in graph.items} | set(graph.namespaces)
            left = {key: value for key, value in want.items() if key in names}
            right = {key: value for key, value in got.items() if key in names}
            yield (
                ""
                if left == right
                else "\n".join(
                    (
                        f"graph {graph.namespaces[0]} after {when} {made[number] if made else ''}",
                        *(
                            f"    {key}: {left.get(key)} != {right.get(key)}"
                            for key in sorted(left.keys() | right.keys())
                            if left.get(key) != right.get(key)
                        ),
                    )
                )
            )

    def _settled(self, server: Server) -> dict[str, Any]:
        """The objects of all graphs, when nothing has changed for a while."""
        before, since, start = self._state(server), time.monotonic(), time.monotonic()
        while time.monotonic() - since < _QUIET and time.monotonic() - start < _PATIENCE:
            time.sleep(0.3)
            now = self._state(server)
            if now != before:
                before, since = now, time.monotonic()
        return before

    def _untouched(self, server: Server) -> bool:
        """A namespace that its controller has still to look at."""
        return any(found == ["Terminating", []] for found in self._state(server).values())

    def _state(self, server: Server) -> dict[str, Any]:
        names = {uid: name for name, uid in server.uids.items()}
        found: dict[str, Any] = {}
        for kind in KINDS:
            prefix = f"/apis/{kind.api_version}" if "/" in kind.api_version else f"/api/{kind.api_version}"
            for obj in server.ask("GET", f"{prefix}/{kind.resource}")["items"]:
                if obj["metadata"]["name"].startswith(self._prefix):
                    found[obj["metadata"]["name"]] = _shown(obj, names)
        for namespace in server.ask("GET", "/api/v1/namespaces")["items"]:
            name = namespace["metadata"]["name"]
            if name.startswith(self._prefix):
                conditions = namespace["status"].get("conditions") or ()
                found[name] = [
                    namespace["status"]["phase"],
                    sorted((each["type"], each["status"], each["reason"], each["message"]) for each in conditions),
                ]
        for event in server.ask("GET", "/api/v1/events")["items"]:
            about = event["involvedObject"]
            if about["name"].startswith(self._prefix) and about["name"] in found:
                message = event["message"]
                for uid, name in names.items():
                    message = message.replace(uid, name)
                told = f"{event['type']} {event['reason']}: {plain(message)} ({event['source']['component']})"
                events = found[about["name"]].setdefault("events", [])
                if told not in events:
                    events.append(told)
                    events.sort()
        return found

    def _clean(self, server: Server) -> None:
        for graph in self._graphs:
            for item in graph.items:
                server.ask("PATCH", item.path, {"metadata": {"finalizers": None}}, "application/merge-patch+json")
                server.ask("DELETE", item.path)


def _shown(obj: Mapping[str, Any], names: Mapping[str, str]) -> Object:
    metadata = obj["metadata"]
    owners = [
        {**owner, "uid": names.get(owner["uid"], owner["uid"])} for owner in metadata.get("ownerReferences") or ()
    ]
    return {
        "owners": owners,
        "finalizers": metadata.get("finalizers") or [],
        "deleted": "deletionTimestamp" in metadata,
    }


def _with_uids(value: Any, uids: Mapping[str, str]) -> Any:
    """Replaces names by UIDs. The name of an object that wasn't created becomes a UID that no object has."""
    if isinstance(value, dict):
        return {
            key: uids.get(item, item if item.startswith(_NEVER) else f"{_NEVER}0")
            if key == "uid"
            else _with_uids(item, uids)
            for key, item in value.items()
        }
    return [_with_uids(item, uids) for item in value] if isinstance(value, list) else value


def define(servers: Sequence[Server]) -> None:
    """The custom resources, known to everybody when it returns."""
    new = False
    for kind in (each for each in KINDS if each.api_version.startswith(_GROUP)):
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        spec = {
            "group": _GROUP,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "names": {"plural": kind.resource, "kind": kind.kind},
            "versions": [version],
        }
        body = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{kind.resource}.{_GROUP}"},
            "spec": spec,
        }
        for server in servers:
            answer = server.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body)
            new = new or (answer["code"] == 201 and server is servers[0])
    if new:
        time.sleep(_KNOWN)


def main() -> int:
    options = comparing(__doc__, rounds=1, graphs=20, steps=6).parse_args()
    servers = (
        Server(Client(options.oracle, options.oracle_token)),
        Server(Client(options.server, options.token)),
    )
    define(servers)
    equal = total = 0
    for number in range(options.rounds):
        seed = options.seed + number
        for found in Round(servers, Random(seed), options.graphs).run(options.steps):
            total += 1
            equal += not found
            if found:
                print(f"seed {seed}: {found}", flush=True)
        print(f"seed {seed}: {equal} of {total} states equal so far", file=sys.stderr, flush=True)
    return 0 if equal == total else 1


if __name__ == "__main__":
    sys.exit(main())
