"""Subjects for `conformance.compare.ownership` made from a server's own OpenAPI documents: every kind, each of its fields.

An object is its kind's smallest valid one with some more fields, most with values that the kind takes. Names, keys and enum-like
texts come from small pools, so that items of lists with merge keys meet.
"""

import copy
import random
from collections.abc import Iterator, Mapping
from typing import Any, Final

from conformance.exchange import Client
from conformance.random.subjects import Make, Subject
from conformance.random.writes import OBJECTS

Schema = Mapping[str, Any]
_RESTLESS: Final = (
    *("flowschemas", "prioritylevelconfigurations", "servicecidrs", "namespaces", "ipaddresses", "wrs"),
    *("certificatesigningrequests", "services"),
)
# What is no part of an object's content; and what makes the answer differ by what a server chooses.
_CHOSEN: Final = frozenset({"metadata", "nodeName", "clusterIP", "clusterIPs", "nodePort", "healthCheckNodePort"})
_LEFT_OUT: Final = _CHOSEN | {"apiVersion", "kind", "status"}
_REF: Final = "#/components/schemas/"
_TEXTS: Final[Mapping[str, tuple[str, ...]]] = {
    "name": ("c", "d", "a-b"),
    "namespace": ("default", "other"),
    "image": ("i:1", "i:2"),
    "ip": ("1.1.1.1", "2.2.2.2"),
    "podIP": ("1.1.1.1",),
    "operator": ("Exists", "In", "NotIn", "Equal", "DoesNotExist"),
    "effect": ("NoSchedule", "NoExecute"),
    "protocol": ("TCP", "UDP"),
    "restartPolicy": ("Always", "Never", "OnFailure"),
    "type": ("A", "B", "Opaque", "RollingUpdate", "Recreate", "ClusterIP", "Utilization", "Resource"),
    "status": ("True", "False", "Unknown"),
    "mountPath": ("/a", "/b"),
    "devicePath": ("/a", "/b"),
    "key": ("k", "l"),
    "path": ("/a", "b"),
    "topologyKey": ("zone", "host"),
    "whenUnsatisfiable": ("DoNotSchedule", "ScheduleAnyway"),
    "apiVersion": ("v1", "apps/v1"),
    "apiGroup": ("", "apps", "rbac.authorization.k8s.io"),
    "policyTypes": ("Ingress", "Egress"),
    "accessModes": ("ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany"),
    "cidr": ("10.0.0.0/8", "10.1.0.0/16"),
    "schedule": ("* * * * *", "*/5 * * * *"),
    "imagePullPolicy": ("Always", "IfNotPresent", "Never"),
    "dnsPolicy": ("ClusterFirst", "Default", "None"),
    "pathType": ("Prefix", "Exact", "ImplementationSpecific"),
    "host": ("a.b", "*.a.b"),
    "sizeLimit": ("1Gi",),
}
_PLAIN: Final = ("x", "y", "a/b", "A", "1")
_ODD: Final = ("", " ", "é", "a_b", "-x", "X" * 64, "a.b/c/d", "1Gi", "2020-01-01T00:00:00Z", "<&>", "\u0000")
_QUANTITIES: Final[tuple[Any, ...]] = (1, "100m", "1Gi", "2", "1.5", "0.5", "1e3", "1000m", "1024Mi", "0", 0.5)
_ODD_QUANTITIES: Final[tuple[Any, ...]] = (
    "-1",
    "1.5Gi",
    "x",
    "",
    "1 Gi",
    "0.0001",
    "1e30",
    None,
    True,
    "1Zi",
    "+1",
    ".5",
    "1.",
    "1E",
)
_TIMES: Final = ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00.123456Z", "2020-01-01T01:00:00+01:00")
_ODD_TIMES: Final[tuple[Any, ...]] = (
    "2020-01-01",
    "",
    None,
    5,
    "2020-13-01T00:00:00Z",
    "2020-01-01T00:00:00.123Z",
    "x",
)
_INTEGERS: Final = (0, 1, 2, 3, 80, 100)
_ODD_INTEGERS: Final[tuple[Any, ...]] = (
    -1,
    1.0,
    1.5,
    "1",
    2**31,
    2**63 - 1,
    2**63,
    -(2**63),
    1e3,
    None,
    True,
    [],
    70000,
    -0.0,
)
_BYTES: Final = ("YQ==", "Yg==", "")
_ODD_BYTES: Final[tuple[Any, ...]] = ("YQ", "a b", "Y\nQ==", "_-==", None, 1, [97])
_ANYTHING: Final[tuple[Any, ...]] = (
    None,
    "x",
    "",
    1,
    1.5,
    True,
    {},
    [],
    {"unknown": 1},
    ["x", "x"],
    [None],
    [[]],
    {"name": None},
    [{}],
    -1,
)


class Types:
    """The schemas of a server's kinds. `broken` is how likely each value is an odd one."""

    def __init__(self, client: Client, broken: float = 0.01) -> None:
        self._client, self._broken = client, broken
        self._documents: dict[str, Any] = {}

    def subjects(self) -> Iterator[Subject]:
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for path, minimal in OBJECTS.items():
            version, resource, namespace = _parts(path)
            if resource in _RESTLESS:
                continue
            group = version.rpartition("/")[0]
            found.setdefault((group, resource), {})[version] = (namespace, minimal)
        for (_, resource), versions in found.items():
            yield self._subject(resource, versions)

    def _subject(self, resource: str, versions: Mapping[str, tuple[str, Any]]) -> Subject:
        makes: dict[str, Make] = {}
        for version, (namespace, minimal) in versions.items():
            document = self._document(version)
            collection = _collection(version, resource, namespace)
            kind = document["paths"][collection]["post"]["x-kubernetes-group-version-kind"]["kind"]
            schema = self._named(document, version, kind)
            makes[version] = self._make(document, schema, minimal)
        at = f"{collection}/{{name}}/"
        below = {
            path.removeprefix(at)
            for path, verbs in document["paths"].items()
            if path.startswith(at) and "patch" in verbs
        }
        status = schema["properties"].get("status") if "status" in below else None
        return Subject(
            kind=kind,
            resource=resource,
            versions=makes,
            namespace=namespace,
            status=self._make(document, status, {}) if status else None,
            scaled="scale" in below,
            others=tuple(sorted(below - {"status", "scale", "proxy", "proxy/{path}"})),
        )

    def knows(self, path: str) -> bool:
        """Reports whether the server has a collection: older versions lack some."""
        version, resource, namespace = _parts(path)
        return _collection(version, resource, namespace) in self._document(version).get("paths", ())

    def schema(self, path: str) -> tuple[Schema, Mapping[str, Any]]:
        """Returns the schema of a collection's kind, and the schemas that it refers to."""
        version, resource, namespace = _parts(path)
        document = self._document(version)
        post = document["paths"][_collection(version, resource, namespace)]["post"]
        kind = post["x-kubernetes-group-version-kind"]["kind"]
        return self._named(document, version, kind), document["components"]["schemas"]

    def subresources(self, path: str) -> tuple[str, ...]:
        """Returns the subresources of a collection that hold the whole object, each with its own writers."""
        version, resource, namespace = _parts(path)
        at = f"{_collection(version, resource, namespace)}/{{name}}/"
        paths = self._document(version)["paths"]
        found = {path.removeprefix(at) for path, verbs in paths.items() if path.startswith(at) and "put" in verbs}
        return tuple(sorted(found - {"scale", "proxy", "proxy/{path}"}))

    def _document(self, version: str) -> Any:
        if version not in self._documents:
            prefix = "apis" if "/" in version else "api"
            answer = self._client.send({"method": "GET", "path": f"/openapi/v3/{prefix}/{version}"}, [])
            self._documents[version] = answer.get("body") or {}  # none of a version that isn't served
        return self._documents[version]

    def _named(self, document: Any, version: str, kind: str) -> Any:
        group, _, short = version.rpartition("/")
        wanted = {"group": group, "version": short, "kind": kind}
        schemas = document["components"]["schemas"].values()
        return next(schema for schema in schemas if wanted in schema.get("x-kubernetes-group-version-kind", ()))

    def _make(self, document: Any, schema: Schema, minimal: Any) -> Make:
        schemas = document["components"]["schemas"]
        return lambda rng: Maker(rng, schemas, self._broken).filled(schema, copy.deepcopy(minimal), 0)


def _parts(path: str) -> tuple[str, str, str]:
    """(apiVersion, resource, namespace) of a collection's path."""
    words = path.strip("/").split("/")
    version = words[1] if words[0] == "api" else "/".join(words[1:3])
    namespace = words[words.index("namespaces") + 1] if words.count("namespaces") and words[-1] != "namespaces" else ""
    return version, words[-1], namespace


def _collection(version: str, resource: str, namespace: str) -> str:
    prefix = "/apis/" if "/" in version else "/api/"
    return f"{prefix}{version}{'/namespaces/{namespace}' if namespace else ''}/{resource}"


class Maker:
    """Values for schemas that refer to `schemas`; `broken` as Types has it."""

    def __init__(self, rng: random.Random, schemas: Mapping[str, Any], broken: float) -> None:
        self._rng, self._schemas, self._broken = rng, schemas, broken

    def filled(self, schema: Schema, value: Any, depth: int) -> Any:
        """The value with some more of the fields that its schema has."""
        schema = self.resolved(schema)
        properties = schema.get("properties")
        if isinstance(value, list):
            items = schema.get("items")
            return [self.filled(items, item, depth) for item in value] if items else value
        if not isinstance(value, dict) or not properties:
            return value
        wanted = max(0.6, 3.0 - depth) / max(len(properties), 3)
        for name, sub in properties.items():
            if name in value:
                if self._rng.random() < 0.7:
                    value[name] = self.filled(sub, value[name], depth + 1)
            elif name in (_LEFT_OUT if depth == 0 else _CHOSEN):
                continue
            elif name in schema.get("required", ()) or self._rng.random() < wanted:
                value[name] = self.value(name, sub, depth + 1)
        return value

    def value(self, name: str, schema: Schema, depth: int) -> Any:
        if self._rng.random() < self._broken:
            return copy.deepcopy(self._rng.choice(_ANYTHING))
        ref, schema = self.name_of(schema), self.resolved(schema)
        if ref.endswith("resource.Quantity"):
            return self._pick(_QUANTITIES, _ODD_QUANTITIES)
        if ref.endswith("intstr.IntOrString"):
            return self._rng.choice((1, 80, "5%", "p", 0))
        if schema.get("format") == "date-time" or ref.endswith(("v1.Time", "v1.MicroTime")):
            return self._pick(_TIMES, _ODD_TIMES)
        kind = schema.get("type")
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            return self._array(name, schema, depth)
        if kind == "integer":
            return self._pick(_INTEGERS, _ODD_INTEGERS)
        if kind == "boolean":
            return self._pick((True, False), ("true", None, 1))
        if kind == "string":
            return self._string(name, schema)
        return self._rng.choice(({"a": 1}, 1, "x", {"a": {"b": [1]}}))

    def _pick(self, good: tuple[Any, ...], odd: tuple[Any, ...]) -> Any:
        return self._rng.choice(odd if self._rng.random() < self._broken * 2 else good)

    def _string(self, name: str, schema: Schema) -> Any:
        if "enum" in schema:
            return self._pick(tuple(schema["enum"]), ("Foo", "", None, 1))
        if schema.get("format") == "byte":
            return self._pick(_BYTES, _ODD_BYTES)
        return self._pick(_TEXTS.get(name, _PLAIN), _ODD)

    def _object(self, schema: Schema, depth: int) -> Any:
        others = schema.get("additionalProperties")
        if others:
            keys = self._rng.sample(("x", "y", "cpu", "memory", "a.b/c"), self._rng.randint(0, 2))
            return {key: self.value("", others, depth + 1) for key in keys}
        return {} if depth > 7 else self.filled(schema, {}, depth)

    def _array(self, name: str, schema: Schema, depth: int) -> Any:
        found = [self.value(name, schema["items"], depth) for _ in range(self._rng.choice((0, 1, 1, 2, 2, 3)))]
        keys = schema.get("x-kubernetes-list-map-keys") or [schema.get("x-kubernetes-patch-merge-key")]
        scalars = schema.get("x-kubernetes-list-type") == "set"
        if (keys == [None] and not scalars) or self._rng.random() < self._broken * 3:
            return found
        unique: dict[str, Any] = {}
        for item in found:
            unique.setdefault(str([item.get(key) for key in keys] if isinstance(item, dict) else item), item)
        return list(unique.values())

    def name_of(self, schema: Schema) -> str:
        """Returns the name that the schema refers to, or ""."""
        if "allOf" in schema and len(schema["allOf"]) == 1:
            schema = schema["allOf"][0]
        return str(schema.get("$ref", ""))

    def resolved(self, schema: Schema) -> Schema:
        name = self.name_of(schema)
        return self._schemas[name.removeprefix(_REF)] if name else schema
