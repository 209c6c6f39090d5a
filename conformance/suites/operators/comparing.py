"""Sends requests about an operator to both servers and compares the whole answers, with all prose."""

import json
import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from conformance.compare.customresources import Generator, comparable
from conformance.compare.requests import left_to_chance
from conformance.exchange import Answer, Client, difference
from conformance.suites.operators.packages import Object, Operator

Request = dict[str, Any]
# What kubectl prints of a server's plural in a group version.
Explain = Callable[[str, str, str], str]

DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
APPLY: Final = "application/apply-patch+yaml"
MERGE: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"
# Upstream holds creations back for two seconds after a definition is established.
SETTLE_SECONDS: Final = 4.0
_WAIT_SECONDS: Final = 60.0
_ODD: Final[tuple[Any, ...]] = (
    None,
    "",
    "x",
    "a b",
    "1h",
    0,
    1,
    -1,
    2**40,
    1.5,
    True,
    [],
    {},
    ["x"],
    {"x": "y"},
    [None],
    [{}],
)
# The real server describes what every kind has; this one does so where the prose is installed.
_EVERY_KIND: Final = ("apiVersion", "kind", "metadata")


@dataclass(slots=True)
class Result:
    """The score of an operator. `differences` holds the first difference of each kind."""

    definitions: int = 0
    samples: int = 0
    accepted: int = 0
    requests: int = 0
    equal: int = 0
    differences: dict[str, str] = field(default_factory=dict)


class Pair:
    """Both servers, asked at once. `seconds` sums up by address how long they took."""

    def __init__(self, oracle: Client, server: Client) -> None:
        self.clients = (oracle, server)
        self.seconds: dict[str, float] = {}
        self._pool = ThreadPoolExecutor(2)

    def send(self, request: Request) -> tuple[Answer, Answer]:
        return self.each(lambda client: self._timed(client, request))

    def _timed(self, client: Client, request: Request) -> Answer:
        started = time.monotonic()
        answer = client.send(request, [])
        self.seconds[client.url] = self.seconds.get(client.url, 0.0) + time.monotonic() - started
        return answer

    def each(self, act: Callable[[Client], Any]) -> tuple[Any, Any]:
        first, second = self._pool.map(act, self.clients)
        return first, second

    def wait(self, request: Request, ready: Callable[[Answer], bool]) -> None:
        """Waits until both answers are ready, at most a minute; the comparison then shows which server isn't."""
        deadline = time.monotonic() + _WAIT_SECONDS
        for client in self.clients:
            while not ready(client.send(request, [])) and time.monotonic() < deadline:
                time.sleep(0.1)


class Comparison:
    """Asks about one operator and counts."""

    def __init__(self, pair: Pair, operator: Operator, seed: int) -> None:
        self.pair, self.operator, self.result = pair, operator, Result(len(operator.definitions), len(operator.samples))
        self._random = random.Random(f"{operator.name}/{seed}")
        self._generator = Generator(self._random.randrange(2**32))

    # ------------------------------------------------------------- comparing

    def ask(self, request: Request, narrow: Callable[[Any], Any] | None = None) -> tuple[Answer, Answer]:
        """Sends a request to both and compares; `narrow` picks what of the bodies is compared, as it is written."""
        expected, got = self.pair.send(request)
        self.judge(request, expected, got, narrow)
        return expected, got

    def judge(
        self, request: Request, expected: Answer, got: Answer, narrow: Callable[[Any], Any] | None = None
    ) -> None:
        shown = [
            {**answer, "body": narrow(answer.get("body"))} if narrow else written(answer) for answer in (expected, got)
        ]
        found = _outcome(expected, got) or difference(*map(comparable, shown))
        if found and left_to_chance(expected, got):
            found = ""
        self.note(f"{request['method']} {request['path']}", json.dumps(request.get("body")), found)

    def note(self, label: str, body: str, found: str) -> None:
        """Counts the outcome of a comparison and keeps the first difference of each kind with its request."""
        self.result.requests += 1
        self.result.equal += not found
        if found:
            kind = re.sub(r"\d+|\[\w+\]|\"[^\"]*\"", "N", found[:120])
            self.result.differences.setdefault(kind, f"{label} {body[:1500]}\n    {found[:900]}")

    # ----------------------------------------------------------- definitions

    def define(self) -> None:
        """Each definition tried out, applied, and applied once more without a change."""
        for name, definition in self.operator.definitions.items():
            self.ask({"method": "POST", "path": f"{DEFINITIONS}?dryRun=All&fieldValidation=Strict", "body": definition})
            apply = {
                "method": "PATCH",
                "path": f"{DEFINITIONS}/{name}?fieldManager=kubectl",
                "type": APPLY,
                "body": definition,
            }
            self.ask({**apply, "path": f"{apply['path']}&dryRun=All&fieldValidation=Strict"})
            self.pair.send(apply)

    def established(self) -> None:
        """Waits for the definitions, and compares what has become of them."""
        for name, definition in self.operator.definitions.items():
            read = {"method": "GET", "path": f"{DEFINITIONS}/{name}"}
            self.pair.wait(read, _is_settled)
            self.ask(read)
            self.ask({**read, "accept": TABLE})
            self.ask(
                {"method": "PATCH", "path": f"{read['path']}?fieldManager=kubectl", "type": APPLY, "body": definition}
            )

    # ------------------------------------------------------------ publishing

    def publish(self, explain: Explain | None) -> None:
        """Discovery and the documents of the operator's group versions; `explain(url, plural, group version)` runs kubectl."""
        groups = sorted({found["spec"]["group"] for found in self.operator.definitions.values()})
        for group in groups:
            self.ask({"method": "GET", "path": f"/apis/{group}"})
            self.ask({"method": "GET", "path": "/apis", "accept": AGGREGATED}, partial(_group, name=group))
        for gv in sorted(self.group_versions()):
            self.ask({"method": "GET", "path": f"/apis/{gv}"}, _by_name)
            path = f"/openapi/v3/apis/{gv}"
            self.pair.wait({"method": "GET", "path": path}, partial(_tells, kinds=set(self._kinds(gv))))
            self.ask({"method": "GET", "path": path}, document)
        for plural, gv in sorted(self._resources()) if explain else ():
            assert explain is not None
            texts = self.pair.each(partial(_explained, explain, plural, gv))
            self.note(f"explain {plural} {gv}", "", _first_line(*texts))

    def version_2(self, documents: tuple[Any, Any]) -> None:
        """Compares the operator's parts of the OpenAPI v2 documents."""
        prefixes = tuple(f"/apis/{gv}/" for gv in self.group_versions())
        for key, wanted in (("paths", lambda name, _: name.startswith(prefixes)), ("definitions", self._defined)):
            sides = [{name: value for name, value in found[key].items() if wanted(name, value)} for found in documents]
            for name in sorted(sides[0].keys() | sides[1].keys()):
                pair = [
                    {"body": exact(_without_prose(side.get(name))) if key == "definitions" else side.get(name)}
                    for side in sides
                ]
                self.note(f"/openapi/v2 {name}", "", difference(*pair))

    def group_versions(self) -> set[str]:
        return {gv for _, gv in self._resources()}

    def _resources(self) -> set[tuple[str, str]]:
        return {
            (found["spec"]["names"]["plural"], f"{found['spec']['group']}/{version['name']}")
            for found in self.operator.definitions.values()
            for version in found["spec"]["versions"]
            if version["served"]
        }

    def _kinds(self, gv: str) -> Iterator[str]:
        for found in self.operator.definitions.values():
            if any(f"{found['spec']['group']}/{v['name']}" == gv and v["served"] for v in found["spec"]["versions"]):
                yield found["spec"]["names"]["kind"]

    def _defined(self, name: str, schema: Any) -> bool:
        kinds = schema.get("x-kubernetes-group-version-kind") or ()
        return any(f"{kind['group']}/{kind['version']}" in self.group_versions() for kind in kinds) and len(kinds) == 1

    # --------------------------------------------------------------- objects

    def use(self, invalid: int, made: int) -> None:
        """Every sample through all verbs, with so many random mistakes each; and objects made by the schemas at random."""
        paths: set[str] = set()
        for number, sample in enumerate(self.operator.samples):
            found = self.operator.version_of(sample)
            if found is None:
                continue
            path, version = collection(*found), found[1]
            paths.add(path)
            self._use(path, version, named(sample, f"s{number}"), invalid)
        for path in sorted(paths):
            self.ask({"method": "GET", "path": path, "accept": TABLE})
            self.ask({"method": "GET", "path": f"{path}?limit=3"}, _listed)
        for definition in self.operator.definitions.values():
            self._make(definition, made)
        for path in sorted(paths):
            self.pair.send({"method": "DELETE", "path": path})

    def _use(self, path: str, version: Object, obj: Object, invalid: int) -> None:
        place = f"{path}/{obj['metadata']['name']}"
        self.ask({"method": "POST", "path": f"{path}?dryRun=All&fieldValidation=Strict", "body": obj})
        created, ours = self.ask({"method": "POST", "path": f"{path}?fieldManager=creator", "body": obj})
        self.result.accepted += ours["status"] == 201
        apply = {"method": "PATCH", "path": f"{place}?fieldManager=applier", "type": APPLY, "body": obj}
        self.ask(apply)
        self.ask(
            {
                **apply,
                "path": f"{place}?fieldManager=other&dryRun=All&fieldValidation=Strict",
                "body": self._mistaken(obj),
            }
        )
        self.ask(
            {
                "method": "PATCH",
                "path": f"{place}?fieldManager=m",
                "type": MERGE,
                "body": {"metadata": {"labels": {"a": "b"}}},
            }
        )
        self.ask({"method": "PATCH", "path": place, "type": MERGE, "body": {"spec": {"noSuchField": 1}}})
        if version.get("subresources", {}).get("status") is not None:
            schema = schema_of(version).get("properties", {}).get("status", {})
            body = {"status": self._value(schema, 0.02)}
            self.ask({"method": "PATCH", "path": f"{place}/status", "type": MERGE, "body": body})
        if version.get("subresources", {}).get("scale") is not None:
            self.ask({"method": "GET", "path": f"{place}/scale"})
            self.ask({"method": "PATCH", "path": f"{place}/scale", "type": MERGE, "body": {"spec": {"replicas": 2}}})
        self.ask({"method": "GET", "path": place})
        if created["status"] != 201:
            place = path
        for _ in range(invalid):
            body = self._mistaken(obj)
            choice = self._random.randrange(3)
            if choice == 0 or place == path:
                self.ask({"method": "POST", "path": f"{path}?dryRun=All", "body": body})
            elif choice == 1:
                self.ask({"method": "PUT", "path": f"{place}?dryRun=All", "body": body})
            else:
                spec = {key: value for key, value in body.items() if key not in _EVERY_KIND}
                self.ask({"method": "PATCH", "path": f"{place}?dryRun=All", "type": MERGE, "body": spec})

    def _make(self, definition: Object, count: int) -> None:
        spec = definition["spec"]
        for version in spec["versions"]:
            if not version["served"]:
                continue
            path = collection(spec, version)
            for number in range(count):
                content = self._value(schema_of(version), self._random.choice((0.0, 0.0, 0.01, 0.1)))
                if not isinstance(content, dict):
                    continue
                head = {"apiVersion": f"{spec['group']}/{version['name']}", "kind": spec["names"]["kind"]}
                body = {**content, **head, "metadata": {"name": f"r{number}"}}
                self.ask({"method": "POST", "path": f"{path}?dryRun=All&fieldManager=made", "body": body})

    def _value(self, schema: Object, wrong: float) -> Any:
        """A value by a schema, with a few of the optional fields of each object: real schemas are vast."""
        return self._generator.value(_thinned(schema, self._random, 0), wrong)

    def _mistaken(self, obj: Object) -> Object:
        """The object with one or two random mistakes below its metadata."""
        found = deepcopy(obj)
        for _ in range(self._random.choice((1, 1, 2))):
            places = list(_places({key: value for key, value in found.items() if key not in _EVERY_KIND}))
            if not places:
                found["spec"] = deepcopy(self._random.choice(_ODD))
                return found
            holder, key = self._random.choice(places)
            self._spoil(holder, key)
        return found

    def _spoil(self, holder: Any, key: Any) -> None:
        choice = self._random.randrange(5)
        if choice == 0:
            del holder[key]
        elif choice == 1 and isinstance(holder, list):
            holder.append(deepcopy(holder[key]))
        elif choice == 1:
            holder["noSuchField"] = deepcopy(self._random.choice(_ODD))
        elif choice == 2 and isinstance(holder[key], str):
            holder[key] = self._random.choice((holder[key] + "!", holder[key].upper(), "x" * 300, holder[key][:1]))
        elif choice == 2 and isinstance(holder[key], int):
            holder[key] = self._random.choice((-holder[key], holder[key] * 10**9, holder[key] + 0.5, str(holder[key])))
        else:
            holder[key] = deepcopy(self._random.choice(_ODD))


# ------------------------------------------------------------------- pieces


def condition(definition: Object, kind: str) -> str | None:
    """A condition's status; None without it, and for an answer that isn't a definition."""
    status = definition.get("status")
    conditions = (status.get("conditions") or ()) if isinstance(status, dict) else ()
    return next((str(found["status"]) for found in conditions if found["type"] == kind), None)


def _is_settled(answer: Answer) -> bool:
    """Established or not, or refused when it was created."""
    return answer["status"] != 200 or condition(answer["body"], "Established") is not None


def collection(spec: Object, version: Object) -> str:
    namespace = "namespaces/default/" if spec["scope"] == "Namespaced" else ""
    return f"/apis/{spec['group']}/{version['name']}/{namespace}{spec['names']['plural']}"


def schema_of(version: Object) -> Object:
    found: Object = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    return found


def named(sample: Object, name: str) -> Object:
    """A sample under a name of its own, in the one namespace that is used."""
    meta = {key: value for key, value in sample["metadata"].items() if key in ("labels", "annotations")}
    return {**sample, "metadata": {**meta, "name": name}}


def exact(value: Any) -> Any:
    """Renames all keys, so that none is among those whose values servers choose or recordings leave out."""
    if isinstance(value, dict):
        return {f"={key}": exact(child) for key, child in value.items()}
    return [exact(child) for child in value] if isinstance(value, list) else value


def written(answer: Answer) -> Answer:
    """An object whose fields are compared as they are written, but for its metadata."""
    body = answer.get("body")
    for row in (body.get("rows") or ()) if isinstance(body, dict) else ():
        # Managers who wrote within a second stand in the order of their names.
        row["object"]["metadata"].get("managedFields", []).sort(
            key=lambda entry: (entry["operation"], entry["manager"])
        )
    if not isinstance(body, dict) or body.get("kind") in ("Status", "Table") or "metadata" not in body:
        return answer
    if body["kind"] == "CustomResourceDefinition" and (body.get("status") or {}).get("conditions"):
        # Several controllers write them.
        body["status"]["conditions"].sort(key=lambda found: found["type"])
    return {**answer, "body": {key: value if key in _EVERY_KIND else exact(value) for key, value in body.items()}}


def document(body: Any) -> Any:
    """An OpenAPI document of version 3: the custom kinds' own schemas exactly, the rest without prose."""
    if not isinstance(body, dict) or "components" not in body:
        return body
    schemas = body["components"].get("schemas", {})
    own = {name: exact(_without_prose(found)) for name, found in schemas.items() if not name.startswith("io.k8s.api")}
    return {**body, "components": {**body["components"], "schemas": {**schemas, **own}}}


def _without_prose(schema: Any) -> Any:
    """A kind's schema without the prose that every kind's has: of its type, its metadata and its list, and in resources inside."""
    if not isinstance(schema, dict) or "properties" not in schema:
        return schema
    fields = {name: _plain_field(name, found) for name, found in _inside(schema)["properties"].items()}
    listed = "items" in schema["properties"] and "required" in schema and "items" in schema["required"]
    return {
        key: value for key, value in {**schema, "properties": fields}.items() if not (listed and key == "description")
    }


def _plain_field(name: str, schema: Any) -> Any:
    known = name in (*_EVERY_KIND, "items")
    return {key: value for key, value in schema.items() if not (known and key == "description")}


def _inside(schema: Any) -> Any:
    """With the resources inside without that prose."""
    if isinstance(schema, list):
        return [_inside(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: _inside(value) for key, value in schema.items()}
    if found.get("x-kubernetes-embedded-resource") is True and "properties" in found:
        found["properties"] = {name: _plain_field(name, child) for name, child in found["properties"].items()}
    return found


def _tells(answer: Answer, kinds: set[str]) -> bool:
    """Reports whether an OpenAPI document has these kinds."""
    body = answer.get("body")
    schemas = body.get("components", {}).get("schemas", {}) if isinstance(body, dict) else {}
    told = {kind["kind"] for found in schemas.values() for kind in found.get("x-kubernetes-group-version-kind", ())}
    return kinds <= told


def _outcome(expected: Answer, got: Answer) -> str:
    """Returns the statuses and messages of two answers if their statuses differ, or ""."""
    if expected["status"] == got["status"]:
        return ""
    said = ((answer.get("body") or {}).get("message", "no message") for answer in (expected, got))
    return " != ".join(f"{answer['status']} {text}" for answer, text in zip((expected, got), said, strict=True))


def _group(body: Object, name: str) -> Any:
    return _by_name([item for item in body["items"] if item["metadata"]["name"] == name])


def _explained(explain: Explain, plural: str, gv: str, client: Client) -> str:
    return explain(client.url, plural, gv)


def _by_name(value: Any) -> Any:
    """Discovery with resources in order: the real server lists a group version's as its cache's map has them."""
    if isinstance(value, list):
        return [_by_name(item) for item in value]
    if not isinstance(value, dict):
        return value
    found = {key: _by_name(child) for key, child in value.items()}
    if isinstance(found.get("resources"), list):
        found["resources"].sort(key=lambda row: str(row.get("resource") or row.get("name")))
    return found


def _listed(body: Any) -> Any:
    """Returns the number of items in a list; returns other answers unchanged."""
    return len(body.get("items") or ()) if isinstance(body, dict) else body


def _first_line(expected: str, got: str) -> str:
    """The first line in which two texts differ."""
    left, right = expected.splitlines(), got.splitlines()
    for number, (one, other) in enumerate(zip(left, right, strict=False), 1):
        if one != other:
            return f"line {number}: {one!r} != {other!r}"
    return "" if len(left) == len(right) else f"{len(left)} lines, got {len(right)}"


def _thinned(schema: Object, source: random.Random, depth: int) -> Object:
    """A schema with some of its optional properties, fewer further down."""
    found = dict(schema)
    if isinstance(found.get("properties"), dict):
        required = found.get("required") or ()
        share = (0.9, 0.5, 0.3)[depth] if depth < 3 else 0.15
        found["properties"] = {
            name: _thinned(child, source, depth + 1)
            for name, child in found["properties"].items()
            if name in required or source.random() < share
        }
    for key in ("items", "additionalProperties"):
        if isinstance(found.get(key), dict):
            found[key] = _thinned(found[key], source, depth + 1)
    return found


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (holder, key) below a value's first level."""
    children: Sequence[tuple[Any, Any]] = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    for _, child in children:
        if isinstance(child, dict):
            yield from ((child, key) for key in child)
        elif isinstance(child, list):
            yield from ((child, index) for index in range(len(child)))
        yield from _places(child)
