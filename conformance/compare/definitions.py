"""Random histories of custom resources: definitions that change under stored objects, and every way to write those.

    python -m conformance.compare.definitions --oracle URL --oracle-token T --server URL --token T
        [--seed N] [--rounds N] [--changes N] [--objects N]

In each of `--rounds` some definitions are created; then `--changes` times their objects get `--objects` random requests and the
definitions a few. Prints each kind of difference once. The groups are `*.histories.example.com`.
"""

import copy
import json
import sys
import time
from typing import Any, Final

from conformance.compare.customresources import DEFINITIONS, Differences, Generator, Request, Schema
from conformance.exchange import Answer, Client, comparing
from conformance.random.rules import Generator as Rules

_AT_ONCE: Final = 6
# Upstream serves a changed definition a little later, and holds creations back after it was established.
_SETTLED: Final = 2.5
_MERGE: Final = "application/merge-patch+json"
_JSON: Final = "application/json-patch+json"
_APPLY: Final = "application/apply-patch+yaml"
_QUERIES: Final = (
    "",
    "",
    "",
    "",
    "fieldValidation=Strict",
    "fieldValidation=Ignore",
    "dryRun=All",
    "fieldManager=other",
)
_ACCEPT: Final = (
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/yaml",
)
# What x-kubernetes-validations may look like at any place.
_RULES: Final = (
    {"rule": "self == self"},
    {"rule": "self == oldSelf"},
    {"rule": "self == oldSelf", "message": "may not change", "reason": "FieldValueForbidden"},
    {"rule": "!oldSelf.hasValue() || oldSelf.value() == self", "optionalOldSelf": True},
    {"rule": "!oldSelf.hasValue()", "optionalOldSelf": True, "messageExpression": "'not new'"},
    {"rule": "false", "message": "never"},
    {"rule": "type(self) == type(oldSelf)"},
)


class Histories:
    """Generates requests to definitions and to their custom resources from a random source."""

    def __init__(self, seed: int) -> None:
        self._generator = Generator(seed)
        self._rules = Rules(seed)
        self.pick = self._generator.pick
        self.chance = self._generator.chance

    # ------------------------------------------------------------ definitions

    def definition(self, plural: str, group: str) -> dict[str, Any]:
        made = self._generator.definition(plural, 0.0)
        spec = made["spec"]
        made["metadata"] = {"name": f"{plural}.{group}"}
        spec["group"] = group
        if self.chance(0.2):
            spec["scope"] = "Cluster"
        for version in spec["versions"]:
            self._furnish(version)
        if self.chance(0.4):
            spec["names"] |= self._names(plural)
        return dict(made)

    def _furnish(self, version: dict[str, Any]) -> None:
        """Adds what the plain generator leaves out: rules and selectable fields."""
        schema = version["schema"]["openAPIV3Schema"]
        for _ in range(self.pick(0, 0, 1, 2)):
            at = self.pick(*_places(schema))
            at.setdefault("x-kubernetes-validations", []).append(dict(self.pick(*_RULES)))
        if self.chance(0.15):
            schema["properties"]["rules"] = self._ruled()
        fields = [path for path, of in _leaves(schema) if of.get("type") in ("string", "boolean", "integer")]
        if fields and self.chance(0.5):
            version["selectableFields"] = [
                {"jsonPath": path} for path in dict.fromkeys([self.pick(*fields), fields[0]])
            ]
        if self.chance(0.1):
            version["deprecated"] = True
            if self.chance(0.5):
                version["deprecationWarning"] = self.pick("gone soon", 'use "v2"', "é")

    def _ruled(self) -> Schema:
        from conformance.random.rules import SCHEMA

        return {**SCHEMA, "x-kubernetes-validations": [{"rule": self._rules.rule()} for _ in range(2)]}

    def _names(self, plural: str) -> dict[str, Any]:
        return dict(
            self.pick(
                {"shortNames": [f"{plural}1"]},
                {"shortNames": [f"{plural}1", f"{plural}2"], "categories": ["all"]},
                {"categories": ["all", "b"]},
                {"singular": plural.removesuffix("s")},
                {"listKind": "SomeList"},
                {"shortNames": ["shared"]},
            )
        )

    def change(self, definition: dict[str, Any]) -> list[Request]:
        """A write to a definition, and a look at it afterwards. `definition` is what the history believes is stored."""
        path = f"{DEFINITIONS}/{definition['metadata']['name']}"
        query = self._query()
        kind = self.pick("spec", "spec", "spec", "spec", "status", "meta", "apply", "get")
        if kind == "get":
            return [{"method": "GET", "path": path, "accept": self.pick(*_ACCEPT)}]
        if kind == "status":
            return [self._status_change(path, definition)]
        if kind == "meta":
            patch = {"metadata": self._metadata()}
            return [{"method": "PATCH", "path": path + query, "type": _MERGE, "body": patch}]
        changed = copy.deepcopy(definition)
        self._change_spec(changed["spec"])
        if kind == "apply":
            manager = self.pick("one", "two")
            force = self.pick("&force=true", "&force=true", "")
            changed["spec"] = {k: v for k, v in changed["spec"].items() if k in ("group", "names", "scope", "versions")}
            return [
                {"method": "PATCH", "path": f"{path}?fieldManager={manager}{force}", "type": _APPLY, "body": changed}
            ]
        if self.chance(0.5):
            return [{"method": "PATCH", "path": path + query, "type": _MERGE, "body": {"spec": changed["spec"]}}]
        changed["metadata"]["resourceVersion"] = "${0.metadata.resourceVersion}"
        return [{"method": "GET", "path": path}, {"method": "PUT", "path": path + query, "body": changed}]

    def _query(self) -> str:
        found = self.pick(*_QUERIES)
        return f"?{found}" if found else ""

    def _metadata(self) -> dict[str, Any]:
        return dict(
            self.pick(
                {"labels": {"a": self.pick("b", "-", None)}},
                {"annotations": {"a": self.pick("b", "é", None), "api-approved.kubernetes.io": "x"}},
                {"finalizers": self.pick([], ["x.y/z"], ["bad finalizer"], ["plain"])},
                {"generation": 7, "creationTimestamp": None, "uid": "x"},
                {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "y"}]},
                {"name": "other"},
                {"foo": "bar"},
            )
        )

    def _status_change(self, path: str, definition: dict[str, Any]) -> Request:
        names = [version["name"] for version in definition["spec"]["versions"]]
        status = self.pick(
            {"storedVersions": self.pick(names, names[:1], names[-1:], [], ["v9"], None)},
            {"acceptedNames": {"shortNames": ["-"]}},
            {"acceptedNames": None},
            {"conditions": []},
            {"conditions": [{"type": "Mine", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"}]},
            {"conditions": [{"type": "Mine", "status": "Maybe"}, {"type": "Mine"}]},
            {"foo": 1},
        )
        body = {"status": status, "spec": {"scope": "x"}, "metadata": {"labels": {"status": "yes"}}}
        return {"method": "PATCH", "path": f"{path}/status{self._query()}", "type": _MERGE, "body": body}

    def _change_spec(self, spec: dict[str, Any]) -> None:
        versions = spec["versions"]
        version = self.pick(*versions)
        made = self._generator.definition("x", self.pick(0.0, 0.0, 0.1))["spec"]["versions"][0]
        match self.pick(*range(14)):
            case 0 | 1:
                version["schema"] = made["schema"]
                version.pop("selectableFields", None)
            case 2:
                self._furnish(version)
            case 3:
                fresh = {**made, "name": self.pick("v3", "v2", "v1alpha1"), "storage": False}
                versions.append(fresh)
            case 4 if len(versions) > 1:
                versions.remove(version)
            case 5:
                for other in versions:
                    other["storage"] = other is version
            case 6:
                version["served"] = not version["served"]
            case 7:
                version["subresources"] = made.get("subresources")
            case 8:
                version["additionalPrinterColumns"] = made.get("additionalPrinterColumns")
            case 9:
                spec["names"] = {**spec["names"], **self._names(spec["names"]["plural"])}
            case 10:
                spec[self.pick("scope", "group", "preserveUnknownFields")] = self.pick(
                    "Cluster", "Namespaced", "x.y", True
                )
            case 11:
                spec["names"] = {**spec["names"], self.pick("kind", "plural", "singular"): self.pick("Other", "other")}
            case 12:
                spec["conversion"] = self.pick(None, {"strategy": "None"}, {"strategy": "Webhook"}, {"strategy": "x"})
            case _:
                schema = version["schema"]["openAPIV3Schema"]
                at = self.pick(*_places(schema))
                at.update(self._generator._limits(str(at.get("type", ""))))

    # ---------------------------------------------------------------- objects

    def objects(self, definition: dict[str, Any], count: int) -> list[list[Request]]:
        return [self._object(definition) for _ in range(count)]

    def _object(self, definition: dict[str, Any]) -> list[Request]:
        spec = definition["spec"]
        version = self.pick(*spec["versions"])
        group_version = f"{spec['group']}/{version['name']}"
        space = "" if spec["scope"] == "Cluster" else "/namespaces/default"
        everywhere = f"/apis/{group_version}/{spec['names']['plural']}"
        path, name = f"/apis/{group_version}{space}/{spec['names']['plural']}", self.pick("h1", "h2", "h3")
        content = self._content(version)
        body = {"apiVersion": group_version, "kind": spec["names"]["kind"], "metadata": {"name": name}, **content}
        if self.chance(0.1):
            body["metadata"] |= self._metadata()
        query, one = self._query(), f"{path}/{name}"
        below = one + self.pick("", "", "", "/status", "/scale")
        match self.pick(*range(16)):
            case 0 | 1 | 2:
                return [{"method": "POST", "path": path + query, "body": body}]
            case 3 | 4:
                body["metadata"]["resourceVersion"] = "${0.metadata.resourceVersion}"
                return [{"method": "GET", "path": one}, {"method": "PUT", "path": below + query, "body": body}]
            case 5:
                body = self._scale(spec, name)
                return [{"method": "GET", "path": one}, {"method": "PUT", "path": f"{one}/scale{query}", "body": body}]
            case 6 | 7:
                patch = content if self.chance(0.8) else {"metadata": self._metadata()}
                return [{"method": "PATCH", "path": below + query, "type": _MERGE, "body": patch}]
            case 8:
                return [{"method": "PATCH", "path": below + query, "type": _JSON, "body": self._operations(content)}]
            case 9 | 10 | 11:
                manager = f"?fieldManager={self.pick('one', 'two')}" + self.pick("&force=true", "")
                return [{"method": "PATCH", "path": below + manager, "type": _APPLY, "body": body}]
            case 12:
                return [
                    {"method": "GET", "path": self.pick(path, one, everywhere, below), "accept": self.pick(*_ACCEPT)}
                ]
            case 13:
                field = self.pick(*self._selectors(version))
                method = self.pick("GET", "GET", "DELETE")
                return [{"method": method, "path": f"{path}?fieldSelector={field}"}]
            case 14:
                policy = self.pick("Foreground", "Orphan", "Background", "x")
                options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy}
                return [{"method": "DELETE", "path": one, **self.pick({}, {"body": options})}]
        watch = self.pick("watch=1&timeoutSeconds=1", "limit=1", "labelSelector=a%3Db", "limit=1&resourceVersion=0")
        return [{"method": "GET", "path": f"{path}?{watch}"}]

    def _content(self, version: dict[str, Any]) -> dict[str, Any]:
        wrong = self.pick(0.0, 0.0, 0.05, 0.3)
        properties = version["schema"]["openAPIV3Schema"]["properties"]
        return {
            key: self._rules.value() if key == "rules" else self._generator.value(schema, wrong)
            for key, schema in properties.items()
            if self.chance(0.8)
        }

    def _scale(self, spec: dict[str, Any], name: str) -> dict[str, Any]:
        meta = {"name": name, **self.pick({}, {"resourceVersion": "${0.metadata.resourceVersion}"})}
        if spec["scope"] == "Namespaced" and self.chance(0.8):
            meta["namespace"] = "default"
        replicas = self.pick({}, {"replicas": self.pick(0, 1, 3, -1, 2**31, "x", 1.5)})
        return {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": meta, "spec": replicas}

    def _operations(self, content: dict[str, Any]) -> list[dict[str, Any]]:
        paths = [f"/{key}" for key in content] + [
            f"/{key}/{inner}" for key, value in content.items() if isinstance(value, dict) for inner in value
        ]
        found = []
        for _ in range(self.pick(1, 2)):
            path = self.pick(*paths, "/spec", "/spec/a", "/metadata/labels", "/spec/b/0", "/spec/b/-")
            value = self._generator._anything(1)
            found.append({"op": self.pick("add", "replace", "remove", "test"), "path": path, "value": value})
        return found

    def _selectors(self, version: dict[str, Any]) -> list[str]:
        paths = [field["jsonPath"].removeprefix(".") for field in version.get("selectableFields", ())]
        values = ("", "x", "1", "true", "abc", "5")
        found = [f"{path}{self.pick('%3D', '!%3D')}{self.pick(*values)}" for path in paths for _ in range(3)]
        return [*found, "metadata.name%3Dh1", "metadata.namespace%3Ddefault", "spec.zz%3Dx"]


def _places(schema: Schema) -> list[Schema]:
    """A schema and those of its fields, items and values."""
    below = list(schema.get("properties", {}).values())
    below += [sub for key in ("items", "additionalProperties") if isinstance(sub := schema.get(key), dict)]
    return [schema, *(place for sub in below for place in _places(sub))]


def _leaves(schema: Schema, path: str = "") -> list[tuple[str, Schema]]:
    found = [(path, schema)] if path else []
    for name, sub in schema.get("properties", {}).items():
        found += _leaves(sub, f"{path}.{name}")
    return found


class Pair:
    """Both servers. Each fills references to earlier answers from its own."""

    def __init__(self, oracle: Client, server: Client, differences: Differences) -> None:
        self._clients, self._differences = (oracle, server), differences

    def send(self, label: str, requests: list[Request]) -> tuple[Answer, Answer]:
        """The answers to the last of some requests, of which later ones refer to earlier ones."""
        histories: tuple[list[Answer], list[Answer]] = ([], [])
        for request in requests:
            for client, answers in zip(self._clients, histories, strict=True):
                answers.append(_send(client, request, answers))
            if histories[0][-1]["status"]:
                self._differences.compare(label, request, histories[0][-1], histories[1][-1])
        return histories[0][-1], histories[1][-1]


def _send(client: Client, request: Request, answers: list[Answer]) -> Answer:
    for _ in range(8):
        try:
            answer = client.send(request, answers)
        except OSError:
            return {"status": 0}  # upstream panics at some requests
        if answer["status"] != 429:
            break
        time.sleep(0.5)  # storage is (re)initializing
    return answer


def main() -> int:
    arguments = comparing(__doc__, rounds=3, changes=4, objects=30).parse_args()
    differences = Differences()
    clients = Client(arguments.oracle, arguments.oracle_token), Client(arguments.server, arguments.token)
    histories, pair = Histories(arguments.seed), Pair(*clients, differences)
    for number in range(arguments.rounds):
        # An interrupted run leaves its definitions behind.
        prefix = f"r{arguments.seed}x{number}t{int(time.time()) % 100_000}"
        _round(histories, pair, prefix, arguments.changes, arguments.objects)
    print(differences)
    return 0


def _round(histories: Histories, pair: Pair, prefix: str, changes: int, objects: int) -> None:
    group = f"{prefix}.histories.example.com"
    definitions: list[dict[str, Any]] = []
    for i in range(_AT_ONCE):
        definition = histories.definition(f"{prefix}n{i}s", group)
        answers = pair.send(prefix, [{"method": "POST", "path": DEFINITIONS, "body": definition}])
        if all(answer["status"] == 201 for answer in answers):
            definitions.append(definition)
    time.sleep(_SETTLED * 2)
    for _ in range(changes):
        for definition in definitions:
            label = f"{prefix} {json.dumps(definition['spec'])[:20000]}\n  "
            for requests in histories.objects(definition, objects):
                pair.send(label, requests)
        for i, definition in enumerate(definitions):
            path = f"{DEFINITIONS}/{definition['metadata']['name']}"
            requests = histories.change(definition)
            pair.send(f"{prefix} {json.dumps(definition['spec'])[:20000]}\n  ", requests)
            time.sleep(0.3)
            _, found = pair.send(prefix, [{"method": "GET", "path": path}])
            if found["status"] == 200:
                spec = found["body"]["spec"]
                definitions[i] = {**definition, "spec": spec}
        time.sleep(_SETTLED)
    for definition in definitions:
        pair.send(prefix, [{"method": "DELETE", "path": f"{DEFINITIONS}/{definition['metadata']['name']}"}])


if __name__ == "__main__":
    sys.exit(main())
