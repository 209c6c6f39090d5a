"""Every built-in kind beside a real server: valid objects through their life, broken ones at their creation and as updates.

    python -m conformance.compare.kinds --oracle URL --oracle-token T --server URL --token T
        [--kind PART] [--variants N] [--faults N] [--empties] [--seed N] [--output text|json] [--quiet]

Both servers should be fresh, without controllers, and have `--disable-admission-plugins=ServiceAccount`. A kind's smallest object
(minimal_objects.json) and its rich ones (rich_objects.json; on_request_objects.json has both for kinds that are served on request) are
created, read, listed, printed, updated, patched, written in their status (by the rich one's own, if it has one) and deleted; of each rich
one `--variants` broken ones (random/broken_variants.py) are tried as new objects and half as many as updates, of the object and of its
status, all with dryRun, with `--faults` faults or more each; with `--empties` they have an empty list, map or text or null somewhere, and
nothing else broken. Kinds that aren't stored are only created, and kinds that the real server doesn't serve are skipped. Prints which rich
objects the real server refuses, the first of each way in which answers differ, and a table: for each collection the shares of equal answers
(valid), and of equal status and causes (broken), and, among answers with several causes that are equal but for their order, the share with
the same order (conformance/compare/ordering.py).
"""

import copy
import http.client
import json
import random
import re
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from conformance.compare.customresources import comparable
from conformance.compare.ordering import comparable_in_order, disorder
from conformance.exchange import Answer, Client, comparing, difference, message_of
from conformance.random.broken_variants import Examples, Variant, emptied, variants
from conformance.random.objects import Maker, Types
from conformance.random.writes import OBJECTS, RICH, objects_on_request

Request = dict[str, Any]

_TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"
# An address of a service or a node port, in a cell.
_CHOSEN_NUMBER: Final = re.compile(r"\b10\.0\.0\.\d+\b|(?<=:)3\d{4}(?=/)")
_WITH_STATUS: Final = frozenset(
    {
        "apiservices",
        "certificatesigningrequests",
        "compositepodgroups",
        "cronjobs",
        "customresourcedefinitions",
        "daemonsets",
        "deployments",
        "devicetaintrules",
        "evictionrequests",
        "evictions",
        "flowschemas",
        "horizontalpodautoscalers",
        "ingresses",
        "jobs",
        "namespaces",
        "nodes",
        "persistentvolumeclaims",
        "persistentvolumes",
        "podcertificaterequests",
        "poddisruptionbudgets",
        "podgroups",
        "pods",
        "prioritylevelconfigurations",
        "replicasets",
        "replicationcontrollers",
        "resourceclaims",
        "resourcepoolstatusrequests",
        "resourcequotas",
        "servicecidrs",
        "services",
        "statefulsets",
        "storageversionmigrations",
        "storageversions",
        "validatingadmissionpolicies",
        "volumeattachments",
    }
)
# What answers at once and isn't stored.
_UNSTORED: Final = frozenset(
    {
        "bindings",
        "localsubjectaccessreviews",
        "selfsubjectaccessreviews",
        "selfsubjectreviews",
        "selfsubjectrulesreviews",
        "subjectaccessreviews",
        "tokenreviews",
    }
)
# A controller of the server itself sets these conditions soon after creation, and removes definitions some time after their deletion.
_SETTLE: Final = {
    "apiservices": ("Available", "True False Unknown"),
    "customresourcedefinitions": ("Established", "True"),
}
_PATIENCE: Final = 10.0  # seconds
# Subresources that take the whole object.
_OF_WHOLE: Final[Mapping[str, tuple[str, ...]]] = {"pods": ("ephemeralcontainers", "resize")}
# What rich objects refer to.
_NEEDED: Final = (("/apis/node.k8s.io/v1/runtimeclasses", {"metadata": {"name": "needed"}, "handler": "h"}),)


@dataclass
class Share:
    equal: int = 0
    of: int = 0

    def count(self, equal: bool) -> None:
        self.equal += equal
        self.of += 1

    def __str__(self) -> str:
        return f"{self.equal}/{self.of}"


@dataclass
class Score:
    """The score of a collection: equal answers for valid objects; equal status, equal causes and their equal order for broken ones."""

    valid: Share = field(default_factory=Share)
    status: Share = field(default_factory=Share)
    causes: Share = field(default_factory=Share)
    order: Share = field(default_factory=Share)

    def __str__(self) -> str:
        return f"valid {self.valid}, status {self.status}, causes {self.causes}, order {self.order}"


class Comparison:
    """`rich`, `small`: collection -> its objects, and its smallest one."""

    def __init__(
        self,
        oracle: Client,
        server: Client,
        seed: int,
        count: int,
        *,
        quiet: bool,
        faults: int = 1,
        empties: bool = False,
        rich: Mapping[str, list[dict[str, Any]]] = RICH,
        small: Mapping[str, dict[str, Any]] = OBJECTS,
    ) -> None:
        self._rich, self._small = rich, small
        self._clients = (oracle, server)
        self._types = Types(oracle)
        self._seed = seed
        self._count = count
        self._quiet, self._faults, self._empties = quiet, faults, empties
        self._told: set[str] = set()
        self._examples = self._gathered()
        for collection, obj in _NEEDED:
            self._send({"method": "POST", "path": collection, "body": obj})
        self.scores: dict[str, Score] = {}

    def serves(self, collection: str) -> bool:
        """Reports whether the real server has such a resource: older versions lack some."""
        answer = self._clients[0].send({"method": "GET", "path": f"{collection}?limit=1"}, [])
        return bool(answer["status"] != 404)

    def kind(self, collection: str) -> None:
        score = self.scores[collection] = Score()
        minimal = self._small.get(collection)
        for number, obj in enumerate([*([minimal] if minimal is not None else []), *self._rich.get(collection, ())]):
            named = _named(collection, obj, f"k{number}")
            for request in _life(collection, named):
                expected, got = self._send(request)
                found = difference(_printed(comparable(expected)), _printed(comparable(got)))
                score.valid.count(not found)
                if found:
                    self._tell(collection, request, f"valid: {found}", expected, got)
                if request["method"] == "POST" and expected["status"] != 201:
                    print(f"refused: {collection} {number}: {message_of(expected)}")
                elif _resource(collection) in _SETTLE and request["method"] in ("POST", "DELETE"):
                    at = f"{collection}/{named['metadata']['name']}"
                    self._await(at, *_SETTLE[_resource(collection)], gone=request["method"] == "DELETE")
        for number, obj in enumerate(self._rich.get(collection, ())):
            rng = random.Random(f"{self._seed} {collection} {number}")
            named = _named(collection, obj, f"b{number}")
            new = _new(named)
            for variant in self._variants(rng, collection, new, self._count):
                self._broken(score, collection, "POST", collection, variant)
            if _resource(collection) in _UNSTORED:
                continue
            at = f"{collection}/{named['metadata']['name']}"
            self._send({"method": "POST", "path": collection, "body": new})
            for variant in self._variants(rng, collection, new, self._count // 2):
                self._broken(score, collection, "PUT", at, variant)
            for subresource in _OF_WHOLE.get(_resource(collection), ()):
                for variant in self._variants(rng, collection, named, self._count // 2):
                    self._broken(score, collection, "PUT", f"{at}/{subresource}", variant)
            if "status" in named and _resource(collection) in _WITH_STATUS:
                told = {name: named[name] for name in ("metadata", "status")}
                for variant in self._variants(rng, collection, told, self._count // 2):
                    self._broken(score, collection, "PUT", f"{at}/status", variant)
            self._send({"method": "DELETE", "path": f"{at}?gracePeriodSeconds=0"})
        if _resource(collection) not in _UNSTORED:
            self._let_go(collection)

    def _variants(self, rng: random.Random, collection: str, obj: Mapping[str, Any], count: int) -> Iterator[Variant]:
        schema, schemas = self._types.schema(collection)
        if self._empties:
            made = list(emptied(obj, schema, schemas))
            return iter(rng.sample(made, min(count, len(made))))
        return variants(rng, obj, schema, schemas, count, self._examples, self._faults)

    def _await(self, path: str, kind: str, wanted: str, *, gone: bool) -> None:
        """Waits until both servers report the condition, or until both have no object there."""
        for client in self._clients:
            until = time.monotonic() + _PATIENCE
            while time.monotonic() < until:
                answer = client.send({"method": "GET", "path": path}, [])
                conditions = ((answer.get("body") or {}).get("status") or {}) if answer["status"] == 200 else {}
                told = {row["type"]: row["status"] for row in conditions.get("conditions") or ()}
                if answer["status"] == 404 or (not gone and told.get(kind, "none") in wanted):
                    break
                time.sleep(0.1)

    def _gathered(self) -> Examples:
        found = Examples()
        for collection, objects in RICH.items():
            if not self.serves(collection):
                continue
            schema, schemas = self._types.schema(collection)
            for obj in objects:
                found.gather(obj, schema, Maker(random.Random(0), schemas, broken=0))
        return found

    def _let_go(self, collection: str) -> None:
        """Removes the finalizers that admission adds: no controllers run here to do so, and the next run needs the names."""
        patch = {"metadata": {"finalizers": None}}
        for name in (
            f"{letter}{number}" for letter in "kb" for number in range(len(self._rich.get(collection, ())) + 1)
        ):
            path = f"{collection}/{name}"
            self._send({"method": "PATCH", "path": path, "type": "application/merge-patch+json", "body": patch})

    def _broken(self, score: Score, collection: str, method: str, path: str, variant: Variant) -> None:
        at = f"{path}?dryRun=All{'&' if variant.query else ''}{variant.query}"
        request = {"method": method, "path": at, **variant.request}
        try:
            expected, got = self._send(request)
        except http.client.RemoteDisconnected:
            return  # the real server has panicked
        same_status = expected["status"] == got["status"]
        score.status.count(same_status)
        found = difference(comparable(expected), comparable(got))
        if not found and comparable_in_order(expected, got):
            found = disorder(expected, got, lambda: self._clients[0].send(request, []))
            score.order.count(not found)
        if expected["status"] >= 400:
            score.causes.count(same_status and _told(expected) == _told(got))
            if not found:
                return
            if _told(expected) != _told(got):
                missing, more = _told(expected) - _told(got), _told(got) - _told(expected)
                found = f"missing {sorted(missing)}, too many {sorted(more)}"
        if found:
            self._tell(collection, request, f"{variant.what}: {found}", expected, got)

    def _send(self, request: Request) -> tuple[Answer, Answer]:
        expected, got = (client.send(request, []) for client in self._clients)
        return expected, got

    def _tell(self, collection: str, request: Request, found: str, expected: Answer, got: Answer) -> None:
        if expected["status"] != got["status"]:
            found += f"\n    {expected['status']} != {got['status']}: {message_of(expected)} != {message_of(got)}"
        key = collection + re.sub(r"\d+|\[\w+\]|\"[^\"]*\"", "N", found.split(": ", 1)[-1])[:140]
        if key not in self._told and not self._quiet:
            print(f"{request['method']} {request['path']} {found[:1200]}", flush=True)
        self._told.add(key)


def _named(collection: str, obj: Mapping[str, Any], name: str) -> dict[str, Any]:
    """With a name, where it has none of its own and can have one."""
    made: dict[str, Any] = copy.deepcopy(dict(obj))
    if _resource(collection) not in _UNSTORED:
        made["metadata"] = {"name": name, **made.get("metadata", {})}
    return made


def _life(collection: str, obj: dict[str, Any]) -> Iterator[Request]:
    yield {"method": "POST", "path": collection, "body": _new(obj)}
    if _resource(collection) in _UNSTORED:
        return
    path = f"{collection}/{obj['metadata']['name']}"
    yield {"method": "GET", "path": path}
    yield {"method": "GET", "path": path, "accept": _TABLE}
    yield {"method": "GET", "path": f"{collection}?fieldSelector=metadata.name={obj['metadata']['name']}"}
    updated = _new(obj)
    updated["metadata"].setdefault("labels", {})["updated"] = "yes"
    yield {"method": "PUT", "path": path, "body": updated}
    patch = {"metadata": {"annotations": {"patched": "yes"}, "labels": {"updated": None}}}
    yield {"method": "PATCH", "path": path, "type": "application/merge-patch+json", "body": patch}
    for subresource in _OF_WHOLE.get(_resource(collection), ()):
        yield {"method": "PUT", "path": f"{path}/{subresource}", "body": obj}
    if _resource(collection) in _WITH_STATUS:
        yield {"method": "GET", "path": f"{path}/status"}
        status = {"metadata": {"labels": {"by-status": "1"}}, "status": {"observedGeneration": 1}}
        yield {"method": "PATCH", "path": f"{path}/status", "type": "application/merge-patch+json", "body": status}
        if "status" in obj:
            yield {"method": "PUT", "path": f"{path}/status", "body": obj}
            yield {"method": "GET", "path": path, "accept": _TABLE}
    yield {"method": "DELETE", "path": f"{path}?gracePeriodSeconds=0"}
    yield {"method": "GET", "path": path}


def _new(obj: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the part of an object that can be created: without the containers that only a subresource adds."""
    made: dict[str, Any] = copy.deepcopy(dict(obj))
    if isinstance(made.get("spec"), dict):
        made["spec"].pop("ephemeralContainers", None)
    return made


def _resource(collection: str) -> str:
    return collection.rpartition("/")[2]


def _printed(answer: Answer) -> Answer:
    """A table's rows without addresses and ports that a server chose."""
    body = answer.get("body")
    if not isinstance(body, dict) or body.get("kind") != "Table":
        return answer
    rows = _CHOSEN_NUMBER.sub("CHOSEN", json.dumps(body.get("rows")))
    return {**answer, "body": {**body, "rows": json.loads(rows)}}


def _told(answer: Answer) -> frozenset[tuple[str, str, str]]:
    """A refusal's causes; its message where it has none."""
    body = answer.get("body")
    if not isinstance(body, dict):
        return frozenset()
    causes = (body.get("details") or {}).get("causes") or ()
    found = {(row.get("field", ""), row.get("reason", ""), row.get("message", "")) for row in causes}
    return frozenset(found or {("", str(body.get("reason")), str(body.get("message")))})


def main() -> int:
    parser = comparing(__doc__, variants=60, faults=1)
    parser.add_argument("--kind", default="", help="only collections whose path has this in it")
    parser.add_argument("--empties", action="store_true", help="break objects by what is empty alone")
    parser.add_argument("--output", choices=("text", "json"), default="text")
    parser.add_argument("--quiet", action="store_true", help="the table only")
    arguments = parser.parse_args()
    on_request = objects_on_request()
    rich = RICH | {collection: objects[1:] for collection, objects in on_request.items()}
    small = OBJECTS | {collection: objects[0] for collection, objects in on_request.items()}
    comparison = Comparison(
        Client(arguments.oracle, arguments.oracle_token),
        Client(arguments.server, arguments.token),
        arguments.seed,
        arguments.variants,
        quiet=arguments.quiet,
        faults=arguments.faults,
        empties=arguments.empties,
        rich=rich,
        small=small,
    )
    collections = [path for path in {**rich, **small} if arguments.kind in path and "example.com" not in path]
    for collection in filter(comparison.serves, collections):
        comparison.kind(collection)
        if arguments.output == "text":
            print(f"{collection}: {comparison.scores[collection]}", flush=True)
    if arguments.output == "json":
        rows = {
            path: {what: [share.equal, share.of] for what, share in vars(score).items()}
            for path, score in comparison.scores.items()
        }
        print(json.dumps(rows, indent=1))
        return 0
    summarize(comparison)
    return 0


def summarize(comparison: Comparison) -> None:
    scores = comparison.scores.values()
    for what in (row.name for row in fields(Score)):
        shares = [getattr(score, what) for score in scores]
        equal, of = sum(share.equal for share in shares), sum(share.of for share in shares)
        print(f"{what}: {equal} of {of} ({100 * equal / max(of, 1):.1f} %)")


if __name__ == "__main__":
    sys.exit(main())
