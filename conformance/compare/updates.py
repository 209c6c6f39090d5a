"""Random writes to stored objects of every kind, beside a real server: what updates reset, keep, count or refuse.

    python -m conformance.compare.updates --oracle URL --oracle-token T --server URL --token T
        [--kind PART] [--steps N] [--seed N] [--quiet]

Both servers should be fresh, without controllers, and have `--disable-admission-plugins=ServiceAccount`. Each object of
minimal_objects.json, rich_objects.json and on_request_objects.json is created and then written `--steps` times
(conformance/random/updates.py): PUT, patches of every type, server-side apply and DELETE, of the object and of subresources that hold it.
Each write's whole answer is compared, and what a GET shows after it: generation, owners, and whether there is a new revision. A walk that
has found a difference begins again with a new object. Addresses, ports and identities that a server chooses are compared by the order in
which they turn up.
Prints the first of each way in which answers differ, and a table. Of refusals with several causes the order is compared as well
(conformance/compare/ordering.py).
"""

import copy
import http.client
import json
import random
import re
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from conformance.compare.customresources import comparable
from conformance.compare.kinds import Share
from conformance.compare.ordering import comparable_in_order, disorder
from conformance.exchange import Answer, Client, comparing, difference, message_of
from conformance.free_values import FREE_KEYS, plain
from conformance.random.objects import Types
from conformance.random.updates import RICH, Request, Updates, json_patch, known_values
from conformance.random.writes import OBJECTS

_FREE: Final = FREE_KEYS - {"clusterIP", "clusterIPs", "nodePort"}
_CHOSEN: Final = re.compile(
    r"(?P<uid>[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12})"
    r"|\b(?P<ip>10\.0\.0\.\d{1,3})\b(?!/)|\b(?P<ip6>fd00:[0-9a-f:]+)|(?<![\w.-])(?P<port>3[0-2]\d{3})(?![\w.-])"
)
# A part of the real server writes flow schemas' status again whenever it gets to it; bindings are never stored.
_LEFT_OUT: Final = ("example.com", "/flowschemas", "/bindings")
# What a part of the server writes as well, soon.
_RESTLESS: Final = ("prioritylevelconfigurations", "apiservices", "servicecidrs", "customresourcedefinitions")
# Stands for the status of no answer at all.
_DROPPED: Final = 0
_GO_REVISION: Final = re.compile(r"(resourceVersion:)\d+")
_FORMS: Final = {
    "uid": "00000000-0000-4000-8000-{:012}",
    "ip": "10.0.0.{}",
    "ip6": "fd00::{}",
    "port": "3{:04}",
}  # fmt: skip


class Side:
    """A server in a walk: the object as it was last read, and the values that the server has chosen so far."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._chosen: dict[str, dict[str, int]] = {kind: {} for kind in _FORMS}
        self.current: dict[str, Any] | None = None

    def send(self, request: Request) -> Answer:
        """Bodies are written without spaces: upstream compares raw JSON by its bytes."""
        body = {"text": json.dumps(request["body"], separators=(",", ":"))} if "body" in request else {}
        try:
            return self._client.send({key: value for key, value in request.items() if key != "body"} | body, [])
        except http.client.RemoteDisconnected:
            return {"status": _DROPPED}

    def read(self, path: str) -> Answer:
        """Reads the stored object. `moved` reports whether its revision has changed, as far as the servers can be compared."""
        answer = self.send({"method": "GET", "path": path})
        before, self.current = self.current, answer["body"] if answer["status"] == 200 else None
        owners = ((self.current or {}).get("metadata") or {}).get("managedFields") or ()
        # With several owners, whether a write that changes nothing moves the object depends on which second it is in.
        return {**answer, "moved": len(owners) > 1 or _revision(before) != _revision(self.current)}

    def shown(self, answer: Answer) -> Answer:
        """The answer with what the server has chosen numbered as it turned up."""

        def number(match: re.Match[str]) -> str:
            kind = str(match.lastgroup)
            seen = self._chosen[kind]
            return _FORMS[kind].format(seen.setdefault(match[0], len(seen) + 1))

        text = _GO_REVISION.sub(r"\1REVISION", json.dumps(comparable(answer), sort_keys=True))
        found: Answer = json.loads(_CHOSEN.sub(number, text))
        return {**found, "body": {**found["body"], "items": _ordered(found)}} if _is_list(found) else found


class Comparison:
    def __init__(self, oracle: Client, server: Client, seed: int, steps: int, *, quiet: bool) -> None:
        self._clients = (oracle, server)
        self._types = Types(oracle)
        self._known = known_values(self._types)
        self._seed, self._steps, self._quiet = seed, steps, quiet
        self._pool = ThreadPoolExecutor(2)
        self._told: set[str] = set()
        self.scores: dict[str, Share] = {}
        # The share of rejected writes with several equal causes that are in upstream's order.
        self.order = Share()
        # Writes that the real server took.
        self.accepted = 0

    def serves(self, collection: str) -> bool:
        """Reports whether the real server has it: older versions lack some."""
        return self._types.knows(collection)

    def kind(self, collection: str) -> None:
        self.scores[collection] = Share()
        minimal = OBJECTS.get(collection)
        for number, obj in enumerate([*([minimal] if minimal is not None else []), *RICH.get(collection, ())]):
            self._live(collection, obj, number)

    def _live(self, collection: str, obj: Mapping[str, Any], number: int) -> None:
        """Performs the steps' writes to an object, which is created again whenever it is gone."""
        sides = [Side(client) for client in self._clients]
        named = _named(obj, f"u{number}")
        path = f"{collection}/{named['metadata']['name']}"
        self._clear(sides, path)
        for step in range(self._steps):
            seed = f"{self._seed} {collection} {number} {step}"
            requests = []
            for side in sides:
                updates = Updates(random.Random(seed), collection, self._types, self._known)
                current = side.current
                requests.append(updates.creation(named) if current is None else updates.request(current))
            if not self._step(collection, sides, requests, path):
                self._clear(sides, path)
                sides = [Side(client) for client in self._clients]
        self._clear(sides, path)

    def _step(self, collection: str, sides: list[Side], requests: list[Request], path: str) -> bool:
        """Reports whether both servers return equal answers and store equal objects afterwards."""
        share, before = self.scores[collection], sides[0].current
        answers = list(self._pool.map(lambda at: at[0].send(at[1]), zip(sides, requests, strict=True)))
        if answers[0]["status"] == _DROPPED:
            return False  # it has panicked
        score = self._compare(sides, answers)
        share.count(not score)
        if not score and answers[0]["status"] >= 400 and comparable_in_order(*answers):
            if order := disorder(answers[0], answers[1], lambda: sides[0].send(requests[0])):
                self._tell(collection, requests[0], before, order)
            self.order.count(not order)
        self.accepted += answers[0]["status"] < 300
        if score:
            self._tell(collection, requests[0], before, score)
        if "dryRun=All" in requests[0]["path"] and not score and sides[0].current is None:
            return True
        read = self._compare(sides, list(self._pool.map(lambda side: side.read(path), sides)))
        for _ in range(20 if collection.endswith(_RESTLESS) else 0):
            if not read:
                break
            time.sleep(0.1)
            read = self._compare(sides, list(self._pool.map(lambda side: {**side.read(path), "moved": True}, sides)))
        share.count(not read)
        if read and not score:
            self._tell(collection, requests[0], before, f"read back: {read}")
        return not read

    def _compare(self, sides: list[Side], answers: list[Answer]) -> str:
        expected, got = (side.shown(answer) for side, answer in zip(sides, answers, strict=True))
        found = difference(expected, got, free=_FREE)
        if found and expected["status"] != got["status"]:
            found += f"\n    {expected['status']} != {got['status']}: {message_of(expected)} != {message_of(got)}"
        elif found and (missing := sorted(_causes(expected) - _causes(got))) + (
            more := sorted(_causes(got) - _causes(expected))
        ):
            if len(missing) == len(more):
                return "; ".join(_apart(str(one), str(other)) for one, other in zip(missing, more, strict=True))
            found = f"missing {missing}, too many {more}"
        return found

    def _clear(self, sides: list[Side], path: str) -> None:
        """Deletes the object entirely, even if it waits for its finalizers."""
        for side in sides:
            for request in _endings(path):
                side.send(request)
                if side.read(path)["status"] == 404:
                    break

    def _tell(self, collection: str, request: Request, before: Answer | None, found: str) -> None:
        key = collection + re.sub(r"\d+|\[\w+\]|\"[^\"]*\"", "N", found)[:140]
        if key not in self._told and not self._quiet:
            print(f"{request['method']} {request['path']} {request.get('type', '')} {found[:1500]}", flush=True)
            body = request.get("body")
            if request["method"] == "PUT" and before is not None:
                body = list(json_patch(before, body, ""))
            print(f"    sent {json.dumps(body)[:2500]}", flush=True)
        self._told.add(key)


def _is_list(answer: Answer) -> bool:
    return isinstance(answer.get("body"), dict) and isinstance(answer["body"].get("items"), list)


def _ordered(answer: Answer) -> list[Any]:
    """A list's items with their owners in one order, which is else that of the seconds they wrote in."""
    items: list[Any] = copy.deepcopy(answer["body"]["items"])
    for item in items:
        owners = item["metadata"].get("managedFields") or []
        owners.sort(
            key=lambda row: [str(row.get(key)) for key in ("operation", "manager", "apiVersion", "subresource")]
        )
    return items


def _endings(path: str) -> Iterator[Request]:
    free = {"metadata": {"finalizers": None}}
    yield {"method": "PATCH", "path": path, "type": "application/merge-patch+json", "body": free}
    yield {"method": "DELETE", "path": f"{path}?gracePeriodSeconds=0&propagationPolicy=Background"}
    yield {"method": "PATCH", "path": path, "type": "application/merge-patch+json", "body": free}
    if path.startswith("/api/v1/namespaces/") and path.count("/") == 4:
        name = path.rpartition("/")[2]
        yield {"method": "PUT", "path": f"{path}/finalize", "body": {"metadata": {"name": name}, "spec": {}}}
        yield {"method": "DELETE", "path": path}


def _named(obj: Mapping[str, Any], name: str) -> dict[str, Any]:
    """With a name, where it has none of its own."""
    made: dict[str, Any] = copy.deepcopy(dict(obj))
    made["metadata"] = {"name": name, **made.get("metadata", {})}
    return made


def _revision(obj: Mapping[str, Any] | None) -> str:
    return "" if obj is None else str(obj["metadata"]["resourceVersion"])


def _causes(answer: Answer) -> set[tuple[str, str]]:
    body = answer.get("body")
    details = (body.get("details") or {}) if isinstance(body, dict) else {}
    causes = (details.get("causes") or ()) if isinstance(details, dict) else ()
    return {(row.get("field", ""), plain(row.get("message", ""))) for row in causes}


def _apart(one: str, other: str) -> str:
    """Returns the part where two long texts begin to differ."""
    at = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    start = max(at - 80, 0)
    return f"{one[:60]} … {one[start : at + 200]} != {other[start : at + 200]}"


def main() -> int:
    parser = comparing(__doc__, steps=40)
    parser.add_argument("--kind", default="", help="only collections whose path has this in it")
    parser.add_argument("--quiet", action="store_true", help="the table only")
    arguments = parser.parse_args()
    comparison = Comparison(
        Client(arguments.oracle, arguments.oracle_token),
        Client(arguments.server, arguments.token),
        arguments.seed,
        arguments.steps,
        quiet=arguments.quiet,
    )
    for collection in {**RICH, **OBJECTS}:
        left_out = any(name in collection for name in _LEFT_OUT)
        if arguments.kind in collection and not left_out and comparison.serves(collection):
            comparison.kind(collection)
            print(f"{collection}: {comparison.scores[collection]}", flush=True)
    equal = sum(share.equal for share in comparison.scores.values())
    of = sum(share.of for share in comparison.scores.values())
    print(
        f"{equal} of {of} answers are equal ({100 * equal / max(of, 1):.2f} %); {comparison.accepted} writes were taken; "
        f"{comparison.order} errors with several causes have them in the same order"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
