"""Random schemas, structural and broken, with random objects, sent to a real server and to another one.

    python -m conformance.compare.customresources --oracle URL --oracle-token T --server URL --token T
        [--seed N] [--schemas N] [--rounds N] [--objects N]

First `--schemas` definitions are tried out (dryRun). Then in each of `--rounds` some definitions are created, and `--objects`
requests sent to the resource of each. Prints each kind of difference once. The group is `differential.example.com`.
"""

import json
import random
import re
import sys
import time
from collections.abc import Callable
from typing import Any, Final

from conformance.exchange import Answer, Client, comparing, difference
from conformance.free_values import plain

Request = dict[str, Any]
Schema = dict[str, Any]

GROUP: Final = "differential.example.com"
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_AT_ONCE: Final = 6
_NAMES: Final = ("a", "b", "c", "d")
_TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"
_FORMATS: Final = (
    "date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "cidr", "uri", "uuid", "byte", "mac", "int32",
    "int64", "float", "double", "password", "k8s-short-name", "foo", "quantity", "hexcolor", "isbn", "ip", "uuid4",
)  # fmt: skip
_TEXTS: Final = (
    "", "x", "abc", "ABC", "a-b", "é", "日本", "1", "true", "null", "2020-01-01", "2020-01-01T00:00:00Z", "2020-13-01", "1h",
    "5m3s", "10 days", "a@b.c", "a@b", "example.com", "-a", "10.0.0.1", "10.0.0", "::1", "10.0.0.0/8", "http://a/b", "/x", "a b",
    "YQ==", "YQ=", "01:23:45:67:89:ab", "#fff", "5", "5%", "<&>", '"', "0f0e4d1a-1b1b-4c4c-8d8d-0123456789ab", "a" * 40,
)  # fmt: skip
_NUMBERS: Final = (
    0, 1, 2, 3, 5, 7, 10, -1, -5, 100, 2**31, 2**53, 2**63 - 1, -(2**63), 2**63, 0.5, 1.0, 1.5, 2.0, -0.5, 1e6, 1e21, 1e-7, 3.3,
)  # fmt: skip
_PATTERNS: Final = ("^a", "^[a-z]+$", "b$", "^\\d+$", "[A-Z]", ".", "(?i)abc", "^(a|b)*$")
_UNDECLARED: Final = "field not declared in schema"
_BROKEN_PATTERNS: Final = ("(", "[", "a**", "(?<x>a", "(?=a)", "\\", "a{2000}", "*")


class Generator:
    """Makes schemas and objects out of one random source."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def pick(self, *options: Any) -> Any:
        return self._random.choice(options)

    def _one(self, *options: Schema) -> Schema:
        found: Schema = self._random.choice(options)
        return found

    def chance(self, share: float) -> bool:
        return self._random.random() < share

    # ------------------------------------------------------------- schemas

    def definition(self, plural: str, broken: float) -> dict[str, Any]:
        """A definition; `broken` is how likely each of its parts is broken."""
        version = self._version("v1", broken)
        versions = [{**version, "storage": True}]
        if self.chance(0.2):
            versions.append({**self._version("v2", broken), "storage": self.chance(broken)})
        names = {"plural": plural, "kind": plural.capitalize()}
        spec = {"group": GROUP, "names": names, "scope": "Namespaced", "versions": versions}
        if self.chance(broken):
            self._break_spec(spec)
        meta = {"name": f"{plural}.{GROUP}"}
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": meta,
            "spec": spec,
        }

    def _version(self, name: str, broken: float) -> dict[str, Any]:
        properties = {"spec": self.schema(3, broken), "status": self._object(2, broken)}
        if self.chance(0.3):
            properties["extra"] = self.schema(1, broken)
        root: Schema = {"type": "object", "properties": properties}
        if self.chance(0.3):
            root["required"] = [self.pick("spec", "status", "extra")]
        if self.chance(broken):
            root.update(self.pick({"nullable": True}, {"type": "string"}, {"additionalProperties": True}, {"type": ""}))
        found: dict[str, Any] = {"name": name, "served": True, "storage": False, "schema": {"openAPIV3Schema": root}}
        if self.chance(0.5):
            found["subresources"] = {"status": {}}
            if self.chance(0.5):
                path = self.pick(".spec.a", ".spec.b", ".spec.a.b", *([".x", "spec.a"] if broken else []))
                found["subresources"]["scale"] = {"specReplicasPath": path, "statusReplicasPath": ".status.a"}
                if self.chance(0.5):
                    found["subresources"]["scale"]["labelSelectorPath"] = self.pick(".status.b", ".spec.b")
        if self.chance(0.7):
            found["additionalPrinterColumns"] = [self._column(broken) for _ in range(self.pick(1, 2, 3))]
        return found

    def _column(self, broken: float) -> dict[str, Any]:
        paths = (".spec", ".spec.a", ".spec.b[0]", ".spec.b[*]", ".spec.a.b", ".metadata.labels", ".metadata.name")
        more = (
            ".spec.c[?(@.a=='x')].b",
            ".status.a",
            ".metadata.creationTimestamp",
            ".spec.b[-1:]",
            ".spec.b[0:2]",
            "..a",
        )
        column = {"name": self.pick("A", "B"), "jsonPath": self.pick(*paths, *more)}
        column["type"] = self.pick("string", "string", "integer", "number", "boolean", "date")
        if self.chance(0.3):
            column["priority"] = 1
        if self.chance(0.2):
            column["format"] = self.pick("int32", "date-time", "byte", *(["foo"] if broken else []))
        if self.chance(broken):
            column[self.pick("name", "type", "jsonPath")] = self.pick("", "x", ".a[", "$")
        return column

    def _break_spec(self, spec: dict[str, Any]) -> None:
        kind = self.pick("names", "scope", "group", "version", "conversion", "preserve", "selectable", "storage")
        first = spec["versions"][0]
        if kind == "names":
            key = self.pick("plural", "kind", "singular", "listKind")
            spec["names"][key] = self.pick("", "A", "a b", "x" * 64, spec["names"]["kind"])
        elif kind == "scope":
            spec["scope"] = self.pick("", "x", "Cluster")
        elif kind == "group":
            spec["group"] = self.pick("", "x", "A.b", "x.k8s.io")
        elif kind == "version":
            first["name"] = self.pick("", "V1", "1", "v2")
        elif kind == "conversion":
            spec["conversion"] = {"strategy": self.pick("None", "Webhook", "", "x"), "webhook": self._webhook()}
        elif kind == "preserve":
            spec["preserveUnknownFields"] = self.pick(True, False)
        elif kind == "selectable":
            paths = [
                self.pick(".spec.a", ".spec", ".metadata.name", "x", ".spec.b[0]", "", ".spec.a.b") for _ in range(3)
            ]
            first["selectableFields"] = [{"jsonPath": path} for path in paths]
        else:
            first["storage"] = False

    def _webhook(self) -> dict[str, Any]:
        client = self.pick(
            {}, {"url": self.pick("https://a.b/c", "http://a", "https://u@h/?q#f", "x")}, self._service()
        )
        return {"conversionReviewVersions": self.pick([], ["v1"], ["v2"], ["v1", "v1", "V"]), "clientConfig": client}

    def _service(self) -> dict[str, Any]:
        path = self.pick("/", "/a", "a", "/a//b", "/A")
        return {
            "service": {
                "name": self.pick("n", ""),
                "namespace": self.pick("s", ""),
                "path": path,
                "port": self.pick(1, 0),
            }
        }

    def schema(self, depth: int, broken: float = 0.0) -> Schema:
        kinds = ["string", "integer", "number", "boolean", "any", "int-or-string"] + ["object", "array", "map"] * bool(
            depth
        ) * 2
        kind = self.pick(*kinds)
        makers: dict[str, Callable[[], Schema]] = {
            "object": lambda: self._object(depth, broken),
            "array": lambda: self._array(depth, broken),
            "map": lambda: {"type": "object", "additionalProperties": self.schema(depth - 1, broken)},
            "any": lambda: {"x-kubernetes-preserve-unknown-fields": True},
            "int-or-string": lambda: {"x-kubernetes-int-or-string": True},
        }
        found = makers[kind]() if kind in makers else {"type": kind, **self._limits(kind)}
        if kind == "map" and self.chance(0.3):
            found[self.pick("minProperties", "maxProperties")] = self.pick(1, 2)
        if self.chance(0.15):
            found["nullable"] = True
        if self.chance(0.15):
            found["default"] = self.value(found, 0.15 if broken else 0.0)
            if found["default"] is None:
                del found["default"]
        if self.chance(0.15):
            found.update(self._junctor(found, depth, broken))
        if kind == "any" and self.chance(0.5):
            found["type"] = "object"
            if self.chance(0.5):
                found["properties"] = {self.pick(*_NAMES): self.schema(0, broken)}
        if self.chance(broken):
            found.update(self._broken())
        return found

    def _object(self, depth: int, broken: float) -> Schema:
        properties = {name: self.schema(max(depth - 1, 0), broken) for name in _NAMES[: self.pick(1, 2, 3, 4)]}
        found: Schema = {"type": "object", "properties": properties}
        if self.chance(0.3):
            found["required"] = [self.pick(*_NAMES)]
        if self.chance(0.1):
            found["x-kubernetes-map-type"] = self.pick("atomic", "granular")
        if self.chance(0.1):
            found["x-kubernetes-preserve-unknown-fields"] = True
        if self.chance(0.1):
            found["x-kubernetes-embedded-resource"] = True
        if self.chance(0.1):
            found[self.pick("minProperties", "maxProperties")] = self.pick(1, 2)
        return found

    def _array(self, depth: int, broken: float) -> Schema:
        found: Schema = {"type": "array", "items": self.schema(depth - 1, broken)}
        if self.chance(0.4):
            found[self.pick("minItems", "maxItems")] = self.pick(0, 1, 2)
        kind = self.pick("", "", "atomic", "set", "map")
        if kind:
            found["x-kubernetes-list-type"] = kind
        if kind == "set" and not self.chance(broken):
            found["items"] = {"type": self.pick("string", "integer")}
        if kind == "map":
            keys = [self.pick("a", "b")] if self.chance(0.6) else ["a", "b"]
            found["x-kubernetes-list-map-keys"] = keys
            if not self.chance(broken):
                properties = {key: {"type": self.pick("string", "integer")} for key in ("a", "b")}
                found["items"] = {"type": "object", "required": keys, "properties": {**properties, "c": self.schema(0)}}
        return found

    def _limits(self, kind: str) -> Schema:
        found: Schema = {}
        if self.chance(0.25):
            found["enum"] = [self._scalar(kind) for _ in range(self.pick(1, 2, 3))]
        if self.chance(0.3):
            found["format"] = self.pick(*_FORMATS)
        if kind == "string" and self.chance(0.4):
            found[self.pick("minLength", "maxLength")] = self.pick(0, 1, 2, 3)
        if kind == "string" and self.chance(0.2):
            found["pattern"] = self.pick(*_PATTERNS)
        if kind in ("integer", "number") and self.chance(0.5):
            bound = self.pick("minimum", "maximum")
            found[bound] = self.pick(0, 1, 3, 1.5, -2, 10)
            if self.chance(0.3):
                found["exclusive" + bound.capitalize()] = True
        if kind in ("integer", "number") and self.chance(0.2):
            found["multipleOf"] = self.pick(1, 2, 3, 0.5, 0.1)
        return found

    def _junctor(self, schema: Schema, depth: int, broken: float) -> Schema:
        def narrow() -> Schema:
            if "properties" in schema:
                name = self.pick(*schema["properties"])
                inner = self._limits(str(schema["properties"][name].get("type", "")))
                return self._one(
                    {"required": [name]},
                    {"properties": {name: inner}},
                    {"required": [name], "properties": {name: inner}},
                )
            return self._limits(str(schema.get("type", ""))) or {"enum": [self._scalar("string")]}

        if "x-kubernetes-int-or-string" in schema and self.chance(0.5):
            return {"anyOf": [{"type": "integer"}, {"type": "string"}]}
        kind = self.pick("anyOf", "oneOf", "allOf", "not")
        found: Schema = {kind: narrow() if kind == "not" else [narrow() for _ in range(self.pick(1, 2, 3))]}
        if self.chance(broken):
            sub = found[kind] if kind == "not" else found[kind][0]
            sub.update(
                self.pick(
                    {"type": "object"},
                    {"properties": {"zz": {}}},
                    {"description": "x"},
                    {"default": 1},
                    {"nullable": True},
                )
            )
        return found

    def _broken(self) -> Schema:
        return self._one(
            {"type": self.pick("", "null", "foo", "string", "array", "object")},
            {"pattern": self.pick(*_BROKEN_PATTERNS)},
            {"uniqueItems": True},
            {"x-kubernetes-preserve-unknown-fields": False},
            {"x-kubernetes-list-type": self.pick("set", "map", "foo")},
            {"x-kubernetes-map-type": self.pick("atomic", "foo")},
            {"x-kubernetes-int-or-string": True},
            {"x-kubernetes-embedded-resource": True},
            {"x-kubernetes-list-map-keys": ["a", "a"]},
            {"additionalProperties": self.pick(True, False, {"type": "string"}, {})},
            {"properties": {"metadata": {"type": "string"}, "kind": {"type": "integer"}}},
            {"items": self.pick({}, [{}], {"type": "string"})},
            {"default": self.pick(1, "x", {"a": 1}, [None], {})},
            {"id": "x"},
            {"$ref": "#/x"},
            {"definitions": {"x": {"type": "foo"}}},
            {"patternProperties": {"x": {"type": "string"}}},
            {"not": {"properties": {"metadata": {}}}},
        )  # fmt: skip

    # ------------------------------------------------------------- objects

    def _scalar(self, kind: str) -> Any:
        if kind == "string":
            return self.pick(*_TEXTS)
        if kind == "boolean":
            return self.pick(True, False)
        if kind == "integer":
            return self.pick(*(n for n in _NUMBERS if isinstance(n, int)))
        return self.pick(*_NUMBERS)

    def value(self, schema: Schema, wrong: float) -> Any:
        """A value of a schema; `wrong` is how likely each part doesn't fit."""
        if self.chance(wrong):
            return self._anything(2)
        if schema.get("enum") and self.chance(0.7):
            return self.pick(*schema["enum"])
        if schema.get("x-kubernetes-int-or-string"):
            return self.pick(1, 5, "5%", "x")
        if schema.get("x-kubernetes-preserve-unknown-fields") and "properties" not in schema:
            return self._anything(2)
        kind = schema.get("type", "")
        if kind == "array":
            items = schema.get("items")
            return [self.value(items, wrong) for _ in range(self.pick(0, 1, 2, 3))] if isinstance(items, dict) else []
        if kind != "object":
            return self._scalar(kind)
        others = schema.get("additionalProperties")
        if isinstance(others, dict):
            return {self.pick("x", "y", "a.b", "z/w"): self.value(others, wrong) for _ in range(self.pick(0, 1, 2))}
        found = {
            key: self.value(sub, wrong)
            for key, sub in schema.get("properties", {}).items()
            if key in schema.get("required", ()) or self.chance(0.6)
        }
        if schema.get("x-kubernetes-embedded-resource") and not self.chance(wrong):
            found |= {"apiVersion": self.pick("v1", "a/b", "a/b/c", ""), "kind": self.pick("Pod", "_", "")}
            if self.chance(0.5):
                found["metadata"] = self.pick(
                    {"name": "x"}, {"foo": 1}, {"labels": {"a": "-"}}, None, {"name": "A/b"}, {"labels": 1}
                )
        if self.chance(wrong):
            found[self.pick("zz", "kind", "metadata")] = self._anything(1)
        return found

    def _anything(self, depth: int) -> Any:
        kind = self.pick("null", "string", "number", "boolean", *(["object", "array"] * bool(depth)))
        if kind == "object":
            return {self.pick(*_NAMES, "x"): self._anything(depth - 1) for _ in range(self.pick(0, 1, 2))}
        if kind == "array":
            return [self._anything(depth - 1) for _ in range(self.pick(0, 1, 2))]
        return None if kind == "null" else self._scalar(kind)

    def requests(self, definition: dict[str, Any], count: int) -> list[Request]:
        """Requests to the resource of a definition, some of which build on what earlier ones left."""
        plural, kind = definition["spec"]["names"]["plural"], definition["spec"]["names"]["kind"]
        return [self._request(definition, plural, kind) for _ in range(count)]

    def _request(self, definition: dict[str, Any], plural: str, kind: str) -> Request:
        version = self.pick(*definition["spec"]["versions"])
        path, name = f"/apis/{GROUP}/{version['name']}/namespaces/default/{plural}", self.pick("f1", "f2")
        wrong = self.pick(0.0, 0.0, 0.05, 0.3)
        root = version["schema"]["openAPIV3Schema"]["properties"]
        content = {key: self.value(sub, wrong) for key, sub in root.items() if self.chance(0.8)}
        body = {"apiVersion": f"{GROUP}/{version['name']}", "kind": kind, "metadata": {"name": name}, **content}
        if self.chance(0.05):
            body["metadata"]["finalizers"] = [self.pick("x", "x.y", "x/y", "kubernetes")]
        if self.chance(0.05):
            body[self.pick("zz", "kind", "metadata")] = self.pick("x", None, 1)
        query = self.pick("", "", "", "?fieldValidation=Strict", "?fieldValidation=Ignore", "?dryRun=All")
        below = f"{path}/{name}{self.pick('', '', '/status', '/scale')}"
        patch = content if self.chance(0.7) else {"spec": {self.pick(*_NAMES): None}}
        table = self.pick("application/json", _TABLE)
        choices: list[Request] = [
            {"method": "POST", "path": path + query, "body": body},
            {"method": "PATCH", "path": below + query, "body": patch, "type": "application/merge-patch+json"},
            {"method": "GET", "path": self.pick(path, f"{path}/{name}"), "accept": table},
            {"method": "GET", "path": below},
            {"method": "DELETE", "path": f"{path}/{name}"},
        ]  # fmt: skip
        (found,) = self._random.choices(choices, (40, 35, 12, 5, 12))
        return dict(found)


# --------------------------------------------------------------- comparing


def comparable(answer: Answer) -> Answer:
    """Returns an answer in a form that can be compared.

    Upstream iterates over maps in random order: causes and warnings are compared sorted, and their text not at all. For values that don't
    fit a map's type, upstream reports only up to the first unknown field.
    """
    found: Answer = json.loads(json.dumps(answer))
    if "warnings" in found:
        found["warnings"] = sorted(found["warnings"])
    body: Any = found.get("body")
    if isinstance(body, dict) and _UNDECLARED in str(body.get("message")):
        body["message"] = _UNDECLARED
    causes = body.get("details", {}).get("causes") if isinstance(body, dict) and body.get("kind") == "Status" else None
    if causes:
        causes.sort(key=lambda cause: (cause.get("field", ""), cause.get("message", "")))
        body["message"] = "" if len(causes) > 1 else body["message"]
    return found


def _causes(answer: Answer) -> set[tuple[str, str]]:
    body = answer.get("body")
    details = body.get("details", {}) if isinstance(body, dict) else {}
    return {(cause.get("field", ""), plain(cause.get("message", ""))) for cause in details.get("causes", ())}


def _told(answer: Answer) -> str:
    body = answer.get("body")
    return str(body.get("message", "")) if isinstance(body, dict) else str(answer.get("text", ""))


class Differences:
    """Counts what differs, and prints the first of each kind."""

    def __init__(self) -> None:
        self._kinds: dict[str, int] = {}
        self._requests = 0

    def compare(self, label: str, request: Request, expected: Answer, got: Answer) -> None:
        self._requests += 1
        found = difference(comparable(expected), comparable(got))
        if not found:
            return
        if _causes(expected) != _causes(got):
            missing, more = sorted(_causes(expected) - _causes(got)), sorted(_causes(got) - _causes(expected))
            found = f"causes missing: {missing}, too many: {more}"
        if expected["status"] != got["status"]:
            found = f"{expected['status']} != {got['status']}: {_told(expected)} != {_told(got)}"
        kind = re.sub(r"\d+|\[\w+\]", "N", found[:90])
        self._kinds[kind] = self._kinds.get(kind, 0) + 1
        if self._kinds[kind] == 1:
            shown = json.dumps(request.get("body"))
            print(f"{label} {request['method']} {request['path']} {shown[:3000]}\n    {found[:1500]}", flush=True)

    def tell(self, what: str, found: str) -> None:
        """A difference that isn't one of whole answers."""
        self._kinds[what] = self._kinds.get(what, 0) + 1
        print(f"{what}\n    {found[:1500]}", flush=True)

    def __str__(self) -> str:
        return f"{self._requests} requests, {sum(self._kinds.values())} differ in {len(self._kinds)} ways"


def main() -> int:
    arguments = comparing(__doc__, schemas=300, rounds=3, objects=60).parse_args()
    clients = Client(arguments.oracle, arguments.oracle_token), Client(arguments.server, arguments.token)
    generator, differences = Generator(arguments.seed), Differences()

    def send(label: str, request: Request) -> tuple[Answer, Answer]:
        try:
            expected = clients[0].send(request, [])
        except OSError:
            expected = {"status": 0}  # upstream panics at some schemas
        got = clients[1].send(request, [])
        if expected["status"]:
            differences.compare(label, request, expected, got)
        return expected, got

    for number in range(arguments.schemas):
        body = generator.definition("as", generator.pick(0.0, 0.02, 0.1, 0.3))
        send(f"schema {number}", {"method": "POST", "path": f"{DEFINITIONS}?dryRun=All", "body": body})
    for number in range(arguments.rounds):
        round_of(generator, send, f"round {number}", f"{chr(98 + number % 24)}{arguments.seed}x", arguments.objects)
    print(differences)
    return 0


def round_of(
    generator: Generator,
    send: Callable[[str, Request], tuple[Answer, Answer]],
    label: str,
    prefix: str,
    objects: int,
) -> None:
    """Creates some definitions, uses their resources, and removes them."""
    definitions = [generator.definition(f"{prefix}{i}s", 0.0) for i in range(_AT_ONCE)]
    served = []
    for definition in definitions:
        answers = send(label, {"method": "POST", "path": DEFINITIONS, "body": definition})
        if all(answer["status"] == 201 for answer in answers):
            served.append(definition)
    time.sleep(4)  # upstream holds creations back for two seconds after a definition is established
    for definition in served:
        path = f"{DEFINITIONS}/{definition['metadata']['name']}"
        send(label, {"method": "GET", "path": path})
        schema = json.dumps(definition["spec"]["versions"])
        for i, request in enumerate(generator.requests(definition, objects)):
            send(f"{label}.{i} {schema[:2500]}\n  ", request)
        send(label, {"method": "DELETE", "path": path})


if __name__ == "__main__":
    sys.exit(main())
