"""Compares what kubectl prints for every kind, and the Tables behind it, with a real server.

    python -m conformance.compare.printing --oracle URL --oracle-token T --server URL --token T --kubectl PATH
        [--kind PART] [--random N] [--seed N] [--part create|text|tables|random …]

Both servers should be fresh, without controllers, and have `--disable-admission-plugins=ServiceAccount`. Every kind's smallest object, its
rich ones and the states that upstream's printers distinguish (printing_states.json) are created on both in the namespace `printing`. Then
`text`: kubectl's `get`, `get -o wide --show-labels`, `describe` of every kind, `get -A`, sorted events and `explain`; `tables`: raw Tables
of lists, single objects, watches and writes in both versions and all forms of includeObject; `random`: N random objects and N random
statuses of every kind as dry runs that answer with a Table.

A state is a merge patch of its kind's smallest object. Its `status` and `approval` are written to those subresources; `deleted` asks
for its deletion. `${-5d3h}` is a time that long before the start.

Values that servers choose and ages of less than a hundred minutes are hidden. A request whose answers differ is sent again before the
difference is reported: a second may have passed between the two servers.
"""

import argparse
import copy
import difflib
import itertools
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final

from conformance.compare.customresources import comparable
from conformance.exchange import HERE, Answer, Client, comparing, difference
from conformance.random.objects import Types
from conformance.random.tables import random_requests
from conformance.random.writes import OBJECTS

Request = dict[str, Any]
Object = dict[str, Any]

RICH: Final[dict[str, list[Object]]] = json.loads((HERE / "rich_objects.json").read_text())
STATES: Final[dict[str, dict[str, Object]]] = json.loads((HERE / "printing_states.json").read_text())
NAMESPACE: Final = "printing"
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_PARTS: Final = ("create", "text", "tables", "random")
_MERGE: Final = "application/merge-patch+json"
_TRIES: Final = 3
# What admission would hold against the others comes last, what the others need first.
_FIRST: Final = ("namespaces", "customresourcedefinitions")
_LAST: Final = ("limitranges", "resourcequotas", "priorityclasses", "flowschemas", "prioritylevelconfigurations")
_EXPLAINED: Final = ("pods", "pods.spec.containers", "deployments.status", "printeds.spec", "leases.spec")
_AGO: Final = re.compile(r"\$\{([+-])((?:\d+[dhms])+)\}")
_UNITS: Final = {"d": 86400, "h": 3600, "m": 60, "s": 1}
# Shorter than the servers may have run.
_YOUNG: Final = re.compile(r"(?<![\w=.-])(\d+s|\d\d?m(\d+s)?)(?![\w-])")
_DATE: Final = re.compile(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}")
_HIDDEN: Final = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"(?i)(resource ?version: +)\d+"), r"\1REVISION"),
    (re.compile(r"\b10\.(0|9|10)\.0\.\d+\b|\bfd10::\w+"), "CLUSTER-IP"),
    (re.compile(r"\bapiserver-[a-z0-9]{26}\b"), "apiserver-ID"),
    (re.compile(r"(?<!v)\b3[0-2]\d{3}\b"), "NODE-PORT"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "TIME"),
    (re.compile(r" {2,}"), "  "),
    (re.compile(r"(?m) +$"), ""),
)


class Printing:
    """Asks both servers, counts, and prints what differs; each kind of difference once."""

    def __init__(self, oracle: Client, server: Client, kubectl: str, cache: str, kind: str) -> None:
        self.clients = (oracle, server)
        self._kubectl, self._cache, self._kind = kubectl, cache, kind
        self._types = Types(oracle)
        self._started = datetime.now(UTC)
        self._pool = ThreadPoolExecutor(2)
        self._addresses = itertools.count(100)
        self._told: set[str] = set()
        self.asked: Counter[str] = Counter()
        self.equal: Counter[str] = Counter()

    # ---------------------------------------------------------------- asking

    def each(self, act: Callable[[Client], Any]) -> tuple[Any, Any]:
        expected, got = self._pool.map(act, self.clients)
        return expected, got

    def judge(self, part: str, request: Request, *, again: bool = True) -> tuple[Answer, Answer]:
        """Sends a request to both and compares whole answers. `again` if it may be repeated."""
        for attempt in range(_TRIES if again else 1):
            expected, got = self.each(lambda client: client.send(request, []))
            found = difference(*map(_without_free_cells, (expected, got))) or _exact_cells(expected, got)
            if not found:
                break
            time.sleep(0.3 * attempt)
        self._count(part, f"{request['method']} {request['path']}", found)
        return expected, got

    def _count(self, part: str, what: str, found: str) -> None:
        self.asked[part] += 1
        self.equal[part] += not found
        key = re.sub(r"\d+", "N", found)[:200]
        if found and key not in self._told:
            print(f"{part}: {what}: {found}", flush=True)
        self._told.add(key)

    # -------------------------------------------------------------- creating

    def create(self) -> None:
        self.judge(
            "create", {"method": "POST", "path": "/api/v1/namespaces", "body": {"metadata": {"name": NAMESPACE}}}
        )
        for collection in self.collections():
            for name, state in self._objects(collection):
                self._create(collection, name, state)
            if collection == DEFINITIONS:
                time.sleep(5.0)  # a definition is established, and its creations are held back

    def created(self) -> bool:
        """Reports whether an earlier run did it: every other part needs the objects."""
        request = {"method": "GET", "path": f"/api/v1/namespaces/{NAMESPACE}"}
        return all(answer["status"] == 200 for answer in self.each(lambda client: client.send(request, [])))

    def collections(self) -> list[str]:
        """Returns the collections of every kind that the real server serves and that has test objects, in the order of creation."""
        known = (path for path in {**OBJECTS, **RICH, **STATES} if "q.example.com" not in path and self._kind in path)
        found = [path for path in known if "example.com" in path or self._types.knows(path)]
        order = {name: place for place, name in enumerate((*_FIRST, "", *_LAST))}
        return sorted(found, key=lambda path: order.get(path.rpartition("/")[2], order[""]))

    def _objects(self, collection: str) -> Iterator[tuple[str, Object]]:
        minimal = OBJECTS.get(collection, {})
        if minimal and not collection.endswith(("ipaddresses", "apiservices")):
            yield "minimal", minimal
        for number, rich in enumerate(RICH.get(collection, ())):
            yield _name_of(rich, f"rich-{number}"), rich
        for name, state in STATES.get(collection, {}).items():
            yield name, merged(minimal, state)

    def _create(self, collection: str, name: str, state: Object) -> None:
        text = json.dumps(state).replace('"namespace": "default"', f'"namespace": "{NAMESPACE}"')
        body: Object = json.loads(_AGO.sub(self._time, text))
        beside = {key: body.pop(key, None) for key in ("status", "approval", "deleted")}
        body["metadata"] = {"name": name, **body.get("metadata", {})}
        at = placed(collection)
        path = f"{at}/{body['metadata']['name']}"
        if collection.endswith("/services") and body["spec"].get("type") != "ExternalName":
            # Addresses that servers choose would stand in another order in the list of all addresses.
            body["spec"].setdefault("clusterIP", f"10.0.0.{next(self._addresses)}")
        self.judge("create", {"method": "POST", "path": at, "body": body}, again=False)
        if found := beside["approval"]:
            self._patch(f"{path}/approval", {"status": found})
        if found := beside["status"]:
            self._patch(f"{path}/status", {"status": found})
        if beside["deleted"]:
            self.judge("create", {"method": "DELETE", "path": path}, again=False)

    def _patch(self, path: str, body: Object) -> None:
        self.judge("create", {"method": "PATCH", "path": path, "type": _MERGE, "body": body}, again=False)

    def _time(self, match: re.Match[str]) -> str:
        seconds = sum(int(count) * _UNITS[unit] for count, unit in re.findall(r"(\d+)([dhms])", match[2]))
        found = self._started + timedelta(seconds=seconds if match[1] == "+" else -seconds)
        return found.strftime("%Y-%m-%dT%H:%M:%S.000000Z")

    # ------------------------------------------------------------------ text

    def text(self) -> None:
        for collection in self.collections():
            resource = _resource(collection)
            where = ("-n", NAMESPACE) if "/namespaces/" in collection else ()
            self._print("get", resource, *where)
            self._print("get", "-o", "wide", "--show-labels", resource, *where)
            # kubectl goes through the amounts of limits and quotas in no order.
            unordered = collection.endswith(("/namespaces", "/limitranges", "/resourcequotas"))
            self._print("describe", resource, *where, narrow=sorted if unordered else list)
            if where:
                self._print("get", "-o", "wide", "-A", resource)
        if self._kind:
            return
        self._print("get", "all", "-n", NAMESPACE)
        self._print("get", "componentstatuses", narrow=sorted)  # in the order that they answer in
        for field in (".lastTimestamp", ".metadata.name", ".involvedObject.name"):
            self._print("get", "events", f"--sort-by={field}", "-n", NAMESPACE)
        self._print("events", "-n", NAMESPACE)
        self._print("get", "nodes,pods,services", "-n", NAMESPACE, "-L", "a,kubernetes.io/role")
        for fields in _EXPLAINED:
            self._print("explain", "--recursive", fields, narrow=_fields)

    def _print(self, *words: str, narrow: Callable[[list[str]], list[str]] = list) -> None:
        """Runs kubectl on both; `narrow` picks the lines that are compared."""
        for attempt in range(_TRIES):
            texts = self.each(lambda client: self._printed(client, words))
            expected, got = (narrow(text.splitlines()) for text in texts)
            if expected == got:
                break
            time.sleep(0.3 * attempt)
        lines = list(difflib.unified_diff(expected, got, "real", "ours", lineterm="", n=0))
        self._count("text", f"kubectl {' '.join(words)}", "\n  ".join(["", *lines[2:42]]) if lines else "")

    def _printed(self, client: Client, words: Sequence[str]) -> str:
        flags = (f"--server={client.url}", f"--token={client.token}", "--insecure-skip-tls-verify")
        cache = f"--cache-dir={self._cache}/{client.url.rpartition(':')[2]}"
        done = subprocess.run([self._kubectl, *flags, cache, *words], capture_output=True, text=True, check=False)
        return self._hidden(done.stdout + done.stderr)

    def _hidden(self, text: str) -> str:
        return hidden(_DATE.sub(self._recent, text))

    def _recent(self, match: re.Match[str]) -> str:
        return "RECENT" if parsedate_to_datetime(match[0]) > self._started - timedelta(hours=2) else match[0]

    # ---------------------------------------------------------------- tables

    def tables(self) -> None:
        for collection in self.collections():
            at = placed(collection)
            for form in FORMS:
                self.judge("tables", {"method": "GET", **asked(at, **form)})
            self.judge("tables", {"method": "GET", **asked(f"{at}?limit=2")})
            self.judge("tables", {"method": "GET", **asked(f"{at}?watch=1&timeoutSeconds=1", include="None")})
            for name, state in self._objects(collection):
                self._single(f"{at}/{_name_of(state, name)}")

    def _single(self, path: str) -> None:
        for form in FORMS[:3]:
            self.judge("tables", {"method": "GET", **asked(path, **form)})
        self.judge("tables", {"method": "GET", **asked(f"{path}/status", include="None")})
        self.judge("tables", {"method": "GET", **asked(f"{path}/scale", include="None")})
        patch = {"metadata": {"labels": {"printed": "yes"}}}
        dry = asked(f"{path}?dryRun=All", include="None")
        self.judge("tables", {"method": "PATCH", "type": _MERGE, "body": patch, **dry})
        self.judge("tables", {"method": "DELETE", **dry})

    # ---------------------------------------------------------------- random

    def random(self, seed: int, count: int) -> None:
        for collection in self.collections():
            taken, before = 0, self.equal["random"]
            objects = [(_name_of(state, name), state) for name, state in self._objects(collection)]
            for request in random_requests(self.clients[0], seed, collection, placed(collection), objects, count):
                taken += self._random({**request, **asked(request["path"], include="None")})
            print(f"{collection}: {taken} taken, {self.equal['random'] - before} equal", flush=True)

    def _random(self, request: Request) -> bool:
        """Reports whether the real server took it, so that the Tables were compared."""
        expected, got = self.each(lambda client: client.send(request, []))
        if expected["status"] < 300 and got["status"] < 300:
            self.judge("random", request)
            return True
        same = expected["status"] == got["status"]
        found = "" if same else f"{_message(expected)} != {_message(got)}"
        self._count("accepted", f"{request['method']} {request['path']}", found)
        return False


FORMS: Final[tuple[dict[str, str], ...]] = (
    {"include": "None"},
    {"include": "Metadata"},
    {"include": "Object", "version": "v1beta1"},
    {"include": "", "version": "v1beta1"},
    {"include": "Other"},
)


def _name_of(state: Object, otherwise: str) -> str:
    return str(state.get("metadata", {}).get("name", otherwise))


def asked(path: str, include: str = "", version: str = "v1") -> Request:
    """The path and the Accept header that ask for a Table."""
    path += f"{'&' if '?' in path else '?'}includeObject={include}" if include else ""
    return {"path": path, "accept": f"application/json;as=Table;v={version};g=meta.k8s.io"}


def _fields(lines: list[str]) -> list[str]:
    """The lines of fields and their types: prose isn't recorded."""
    return [line for line in lines if "\t<" in line or line.startswith(("KIND", "VERSION", "GROUP", "FIELD:"))]


def hidden(text: str) -> str:
    """Without what servers choose, and without young ages."""
    text = _YOUNG.sub("AGE", text)
    for pattern, shown in _HIDDEN:
        text = pattern.sub(shown, text)
    return text


def placed(collection: str) -> str:
    return re.sub("/namespaces/[^/]+/", f"/namespaces/{NAMESPACE}/", collection)


def merged(value: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, Mapping):
        return copy.deepcopy(patch)
    found = dict(value) if isinstance(value, Mapping) else {}
    for key, part in patch.items():
        if part is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), part)
    return found


def _without_free_cells(answer: Answer) -> Answer:
    """Returns an answer in the form that is compared, with the values that servers choose hidden in the cells, too."""
    answer = comparable(answer)
    events = [event.get("object") for event in answer.get("events") or ()]
    for table in (answer.get("body"), *events):
        for row in (isinstance(table, dict) and table.get("rows")) or ():
            row["cells"] = [hidden(cell) if isinstance(cell, str) else cell for cell in row["cells"]]
    return answer


def _exact_cells(expected: Answer, got: Answer) -> str:
    """Returns the first cells that differ though `difference` hides ages, except those of objects younger than ten minutes."""
    body, other = expected.get("body"), got.get("body")
    if not isinstance(body, dict) or not isinstance(other, dict) or body.get("kind") != "Table":
        return ""
    for row, own in zip(body["rows"] or (), other["rows"] or (), strict=True):
        for cell, shown in zip(row["cells"], own["cells"], strict=True):
            if cell != shown and hidden(str(cell)) != hidden(str(shown)):
                return f"{cell!r} != {shown!r} in {row['cells']}"
    return ""


def _resource(collection: str) -> str:
    """`deployments.v1.apps`, as kubectl names one version's resource."""
    words = collection.strip("/").split("/")
    return words[-1] if words[0] == "api" else f"{words[-1]}.{words[2]}.{words[1]}"


def _message(answer: Answer) -> str:
    body = answer.get("body")
    return f"{answer['status']} {body.get('message', '')[:300] if isinstance(body, dict) else ''}"


def main() -> int:
    parser: argparse.ArgumentParser = comparing(__doc__, random=100)
    parser.add_argument("--kubectl", default="kubectl")
    parser.add_argument("--kind", default="", help="only collections whose path has this in it")
    parser.add_argument(
        "--part", action="append", choices=_PARTS, help="what to do (default: all, in order); created is once"
    )
    arguments = parser.parse_args()
    oracle, server = (
        Client(url, token)
        for url, token in ((arguments.oracle, arguments.oracle_token), (arguments.server, arguments.token))
    )
    with tempfile.TemporaryDirectory() as cache:
        printing = Printing(oracle, server, arguments.kubectl, cache, arguments.kind)
        parts = arguments.part or _PARTS
        if "create" not in parts and not printing.created():
            printing.create()
        for part in parts:
            if part == "random":
                printing.random(arguments.seed, arguments.random)
            else:
                getattr(printing, part)()
    for part, count in printing.asked.items():
        print(f"{part}: {printing.equal[part]} of {count} equal")
    return 0 if printing.asked == printing.equal else 1


if __name__ == "__main__":
    sys.exit(main())
