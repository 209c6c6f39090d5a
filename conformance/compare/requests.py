"""Random requests, valid and invalid, sent to a real server and to another one: prints each kind of difference once.

    python -m conformance.compare.requests --oracle URL --oracle-token T --server URL --token T [--seed N] [--count N]
    python -m conformance.compare.requests … --reads | --queries | --writes | --cbor [--seed N] [--count N]
    python -m conformance.compare.requests … --histories N [--every-kind] [--broken SHARE] [--seed N] [--only N]

Both servers should be fresh; the same seed sends the same requests. Objects named f1 to f3 in the namespace `default` are used.
With --reads they are gets, lists and watches between small writes (conformance/random/reads.py), with --queries
reads of every kind in every form (conformance/random/queries.py), with --writes creates, updates and
deletions of every kind (conformance/random/writes.py), with --cbor bodies in CBOR (conformance/random/cbor.py; both servers need
`--feature-gates=CBORServingAndStorage=true`). With --histories, that many objects of many kinds each see a sequence of writes by
several managers (conformance/compare/ownership.py); each history can be run alone by its number. With --every-kind the objects are of all
kinds and have fields from all of their schema (conformance/random/objects.py), the given share of the values being odd.
"""

import json
import random
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from conformance.compare import ownership
from conformance.exchange import Answer, Client, comparing, difference
from conformance.random import cbor as random_cbor
from conformance.random import objects as random_objects
from conformance.random import queries as random_queries
from conformance.random import reads as random_reads
from conformance.random import writes
from conformance.random.subjects import SUBJECTS, Subject
from conformance.random.thing_definitions import served

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


class Report:
    """Prints each kind of difference once, and counts them."""

    def __init__(self) -> None:
        self._kinds: dict[str, int] = {}
        self._requests = 0

    def add(self, label: str, request: Request, found: str) -> None:
        self._requests += 1
        # Where upstream answers 500 to bad input, the other server says that it is bad.
        if not found or "500 != 400" in found or "columnDefinitions:" in found:
            return
        kind = re.sub(r"\d+", "N", found[:70])
        self._kinds[kind] = self._kinds.get(kind, 0) + 1
        if self._kinds[kind] == 1:
            body = json.dumps(request.get("body", request.get("changes", request.get("cbor"))))[:600]
            print(f"{label} {request['method']} {request['path']} {body}\n    {found[:900]}", flush=True)

    def judge(self, label: str, request: Request, expected: Answer, got: Answer) -> None:
        """Adds two answers; those that only a kind's own validation sets apart begin with `validation:`."""
        found = "" if left_to_chance(expected, got) else _outcome(expected, got) or difference(expected, got)
        details = (expected.get("body") or {}).get("details") or {}
        judged = expected["status"] == 422 and details.get("kind") and got["status"] in (200, 201, 409, 422)
        if found and judged:
            causes = (f"{cause.get('field', '')} {cause['message']}" for cause in details["causes"])
            found = f"validation: {details['kind']} {next(causes, '')} | {found}"
        self.add(label, request, found)

    def summary(self) -> str:
        return f"{self._requests} requests, {sum(self._kinds.values())} differ in {len(self._kinds)} ways"


def left_to_chance(expected: Answer, got: Answer) -> bool:
    """Reports whether a difference is random upstream or intended.

    Upstream iterates over a map in random order and stops at its first unknown field, and sends 500 for some requests that get a 400 here.
    """
    if (expected["status"], got["status"]) == (500, 400):
        return True
    texts = [
        set((answer.get("body") or {}).get("message", "").replace("errors:", "").split("\n"))
        for answer in (expected, got)
    ]
    stopped = all(any("field not declared in schema" in line for line in lines) for lines in texts)
    return stopped and expected["status"] == got["status"] == 500


def _outcome(expected: Answer, got: Answer) -> str:
    """Returns the statuses and messages of two answers if their statuses differ, or ""."""
    if expected["status"] == got["status"]:
        return ""
    said = ((answer.get("body") or {}).get("message", "no message") for answer in (expected, got))
    return " != ".join(f"{answer['status']} {text}" for answer, text in zip((expected, got), said, strict=True))


def run_requests(oracle: Client, server: Client, seed: int, count: int, report: Report) -> None:
    for request in cleanup():
        oracle.send(request, [])
        server.send(request, [])
    generator = Generator(seed)
    for number in range(count):
        request = generator.request()
        report.judge(str(number), request, oracle.send(request, []), server.send(request, []))


def run_writes(oracle: Client, server: Client, seed: int, count: int, report: Report) -> None:
    for request in writes.prepare():
        oracle.send(request, [])
        server.send(request, [])
    time.sleep(2)
    generator = writes.Generator(seed)
    for number in range(count):
        request = generator.request()
        report.judge(str(number), request, oracle.send(request, []), server.send(request, []))


def run_cbor(oracle: Client, server: Client, seed: int, count: int, report: Report) -> None:
    generator = random_cbor.Generator(seed, oracle)
    for number in range(count):
        request = generator.request()
        report.judge(str(number), request, oracle.send(request, []), server.send(request, []))


def run_histories(
    oracle: Client,
    server: Client,
    seed: int,
    numbers: Iterable[int],
    report: Report,
    subjects: Sequence[Subject] = SUBJECTS,
) -> None:
    for request in ownership.setup():
        oracle.send(request, [])
        server.send(request, [])
    for path in served():
        for client in (oracle, server):
            while client.send({"method": "GET", "path": path}, [])["status"] != 200:
                time.sleep(0.1)
    for number in numbers:
        history = ownership.History(random.Random(f"{seed}/{number}"), f"h{seed}-{number}", subjects)
        revisions: dict[str, str] = {}
        for step, request in enumerate(history.requests()):
            expected, got = (ownership.send(client, request, revisions) for client in (oracle, server))
            if not expected["status"]:
                break
            report.judge(f"{number}[{step}]", request, expected, got)
            if not ownership.alike(expected, got):
                break  # the two objects differ now, and so will all that follows
        for request in history.cleanup():
            oracle.send(request, [])
            server.send(request, [])


def run_reads(oracle: Client, server: Client, seed: int, count: int, report: Report) -> None:
    for request in random_reads.setup():
        oracle.send(request, [])
        server.send(request, [])
    generator = random_reads.Generator(seed)
    expected: list[Answer] = []
    got: list[Answer] = []
    for number in range(count):
        request = generator.request(number)
        expected.append(oracle.send(request, expected))
        got.append(server.send(request, got))
        report.add(str(number), request, difference(expected[-1], got[-1]))


def run_queries(oracle: Client, server: Client, seed: int, count: int, report: Report) -> None:
    for request in random_queries.setup():
        oracle.send(request, [])
        server.send(request, [])
    for client in (oracle, server):
        while client.send({"method": "GET", "path": random_queries.served()}, [])["status"] != 200:
            time.sleep(0.1)
        for request in random_queries.custom_objects():
            client.send(request, [])
    generator = random_queries.Generator(seed)
    with ThreadPoolExecutor() as pool:
        for number in range(count):
            request = generator.request()
            expected, got = pool.map(lambda client, request=request: client.send(request, []), (oracle, server))
            report.add(str(number), request, difference(expected, got))


def main() -> int:
    parser = comparing(__doc__, count=500)
    parser.add_argument("--reads", action="store_true")
    parser.add_argument("--queries", action="store_true")
    parser.add_argument("--writes", action="store_true")
    parser.add_argument("--cbor", action="store_true")
    parser.add_argument("--histories", type=int, default=0)
    parser.add_argument("--only", type=int)
    parser.add_argument("--every-kind", action="store_true")
    parser.add_argument("--broken", type=float, default=0.01)
    arguments = parser.parse_args()
    oracle, server = Client(arguments.oracle, arguments.oracle_token), Client(arguments.server, arguments.token)
    report = Report()
    if arguments.histories:
        numbers = range(arguments.histories) if arguments.only is None else (arguments.only,)
        subjects: Sequence[Subject] = SUBJECTS
        if arguments.every_kind:
            subjects = tuple(random_objects.Types(oracle, arguments.broken).subjects())
        run_histories(oracle, server, arguments.seed, numbers, report, subjects)
    elif arguments.reads:
        run_reads(oracle, server, arguments.seed, arguments.count, report)
    elif arguments.cbor:
        run_cbor(oracle, server, arguments.seed, arguments.count, report)
    elif arguments.queries:
        run_queries(oracle, server, arguments.seed, arguments.count, report)
    elif arguments.writes:
        run_writes(oracle, server, arguments.seed, arguments.count, report)
    else:
        run_requests(oracle, server, arguments.seed, arguments.count, report)
    print(report.summary())
    return 0


if __name__ == "__main__":
    sys.exit(main())
