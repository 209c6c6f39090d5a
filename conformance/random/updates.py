"""Random writes to one stored object, for `conformance.compare.updates`: most of their content looks valid.

An object is what the server answered last, with some of its fields changed, removed or added. Values come from where another
object has a field of the same name (rich_objects.json), else from the schema. update_recipes.json has changes that a kind's own
rules are about.
"""

import copy
import json
import random
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from conformance.exchange import HERE
from conformance.random import writes
from conformance.random.objects import Maker, Schema, Types
from conformance.random.writes import OBJECTS

Request = dict[str, Any]
RICH: Final = writes.RICH | writes.objects_on_request()
# What a kind's own rules are about: merge patches, by resource.
RECIPES: Final[dict[str, list[dict[str, Any]]]] = json.loads((HERE / "update_recipes.json").read_text())

_REMOVED: Final = object()
_OWN: Final = ("apiVersion", "kind", "metadata", "status")
_QUERIES: Final = ("",) * 12 + ("dryRun=All", "fieldManager=a", "fieldManager=b", "fieldValidation=Strict")
_OWNER: Final = {"apiVersion": "v1", "kind": "Node", "name": "o", "uid": "u1"}
_METADATA: Final[tuple[tuple[str, tuple[Any, ...]], ...]] = (
    ("labels", ({"a": "b"}, {"a": "c", "d": ""}, {}, None)),
    ("labels", ({"a": "b"}, {"a": "c", "d": ""}, {}, None)),
    ("annotations", ({"n": "1"}, {"n": "2", "m.io/x": ""}, {}, None)),
    ("annotations", ({"n": "1"}, {"n": "2", "m.io/x": ""}, {}, None)),
    ("finalizers", (["t.io/x"], ["t.io/x", "t.io/y"], ["t.io/y"], [], None, ["foregroundDeletion"], ["orphan"])),
    ("finalizers", (["t.io/x"], [], None)),
    (
        "ownerReferences",
        (
            [],
            None,
            [_OWNER],
            [_OWNER, {**_OWNER, "uid": "u2", "controller": True}],
            [{**_OWNER, "blockOwnerDeletion": True}],
        ),
    ),
    ("generateName", ("gen-", None)),
    ("uid", ("u", "", None)),
    ("resourceVersion", ("1", "0", "", None)),
    ("generation", (7, 0, None)),
    ("creationTimestamp", ("2020-01-01T00:00:00Z", None)),
    ("deletionTimestamp", ("2020-01-01T00:00:00Z", "2050-01-01T00:00:00Z", None)),
    ("deletionGracePeriodSeconds", (5, 0, None)),
    ("selfLink", ("/x",)),
    ("managedFields", ([], [{}], None)),
    ("namespace", ("other", None)),
    ("name", ("another", None)),
)
# What only says who the object is: rarely changed, as most such writes end there.
_IDENTITY: Final = ("uid", "resourceVersion", "namespace", "name", "generateName", "managedFields")
_DELETIONS: Final[tuple[Any, ...]] = (
    *(None, {}, {"gracePeriodSeconds": 0}, {"gracePeriodSeconds": 5}, {"gracePeriodSeconds": 1000}),
    *({"gracePeriodSeconds": 1}, {"dryRun": ["All"]}, {"dryRun": ["All"], "gracePeriodSeconds": 0}),
    *({"propagationPolicy": "Foreground"}, {"propagationPolicy": "Orphan"}, {"propagationPolicy": "Background"}),
    *({"orphanDependents": True}, {"orphanDependents": False}, {"preconditions": {"uid": "x"}}),
    *({"preconditions": {"resourceVersion": "1"}}, {"gracePeriodSeconds": -1}),
    {"propagationPolicy": "Foreground", "gracePeriodSeconds": 0},
)
_PATCHES: Final = ("merge", "json", "strategic")
_MAX_DEPTH: Final = 14
_ADDRESS: Final = re.compile(r"\d\.\d|:")


Known = Mapping[tuple[str, str], list[Any]]


def known_values(types: Types) -> Known:
    """Values of all known objects, by their field's name and type."""
    found: dict[tuple[str, str], dict[str, Any]] = {}

    def visit(name: str, value: Any, schema: Schema, maker: Maker) -> None:
        found.setdefault((name, _type_of(schema)), {})[json.dumps(value, sort_keys=True)] = value
        schema = maker.resolved(schema)
        properties, others = schema.get("properties") or {}, schema.get("additionalProperties") or {}
        for key, item in value.items() if isinstance(value, dict) else ():
            visit(key, item, properties.get(key) or others, maker)
        for item in value if isinstance(value, list) else ():
            visit(f"{name}[]", item, schema.get("items") or {}, maker)

    for path in {**OBJECTS, **RICH}:
        if "example.com" not in path and types.knows(path):
            schema, schemas = types.schema(path)
            maker = Maker(random.Random(0), schemas, broken=0.0)
            for obj in (*([OBJECTS[path]] if path in OBJECTS else ()), *RICH.get(path, ())):
                for key, value in obj.items():
                    if key not in ("apiVersion", "kind", "metadata"):
                        visit(key, value, schema["properties"][key], maker)
    return {name: [values[text] for text in sorted(values)] for name, values in found.items()}


def _type_of(schema: Schema) -> str:
    """Returns a text that distinguishes fields of the same name by their types."""
    inner = {
        key: _type_of(schema[key]) for key in ("items", "additionalProperties") if isinstance(schema.get(key), dict)
    }
    reference = schema.get("$ref") or [every.get("$ref") for every in schema.get("allOf", ())]
    return f"{reference} {schema.get('type')} {schema.get('format')} {inner}"


class Updates:
    """Makes random writes to objects of a collection. `known`: values to use."""

    def __init__(
        self,
        rng: random.Random,
        collection: str,
        types: Types,
        known: Known,
    ) -> None:
        self._rng, self._collection, self._known = rng, collection, known
        self._schema, schemas = types.schema(collection)
        self._subresources = types.subresources(collection)
        self._recipes = RECIPES.get(collection.rpartition("/")[2], [])
        self._maker = Maker(rng, schemas, broken=0.0)

    # ------------------------------------------------------------ requests

    def creation(self, obj: Mapping[str, Any]) -> Request:
        """Makes a creation of an object with a name: mostly a POST, with some fields that only a server sets."""
        made = copy.deepcopy(dict(obj))
        if self._chance(0.5):
            for _ in range(self._pick(1, 2)):
                self._change_metadata(made["metadata"], identity=0.05)
        if self._chance(0.3) and "status" in self._properties():
            made["status"] = self._made("status", self._properties()["status"])
        form = self._rng.choices(("POST", "PUT", "apply", "generate"), (6, 2, 2, 1))[0]
        name = made["metadata"].get("name", "")
        if form == "POST":
            return {"method": "POST", "path": self._collection + self._query(), "body": made}
        if form == "generate":
            made["metadata"] = {**made["metadata"], "generateName": "gen-"}
            made["metadata"].pop("name", None)
            return {"method": "POST", "path": f"{self._collection}?dryRun=All", "body": made}
        at = f"{self._collection}/{name}{self._pick('', '', *(f'/{each}' for each in self._subresources))}"
        if form == "PUT":
            return {"method": "PUT", "path": at + self._query(), "body": made}
        return self._apply_of(at, made)

    def request(self, current: Mapping[str, Any]) -> Request:
        """Any write to the object."""
        at = f"{self._collection}/{current['metadata']['name']}"
        if self._chance(0.06):
            return self._deletion(at, current)
        subresource = self._pick(*self._subresources) if self._subresources and self._chance(0.35) else ""
        new = self.changed(current, subresource)
        if self._recipes and self._chance(0.45):
            recipe = self._pick(*self._recipes)
            new = merged(current if self._chance(0.8) else new, recipe)
            if "status" in recipe and "status" in self._subresources and self._chance(0.9):
                subresource = self._pick(*self._subresources) if self._chance(0.2) else "status"
        path = f"{at}/{subresource}".rstrip("/")
        form = self._rng.choices(("PUT", "apply", *_PATCHES), (10, 3, 3, 2, 4))[0]
        if form == "PUT":
            if self._chance(0.15):
                new["metadata"].pop("resourceVersion", None)
            return {"method": "PUT", "path": path + self._query(), "body": new}
        if form == "apply":
            return self._apply_of(path, new)
        new["metadata"].setdefault("resourceVersion", current["metadata"].get("resourceVersion"))
        body: Any
        if form == "merge":
            body = merge_patch(current, new)
        elif form == "json":
            body = list(json_patch(current, new, ""))
            if self._chance(0.1):
                body.append(
                    {"op": "test", "path": "/metadata/name", "value": self._pick("x", new["metadata"].get("name"))}
                )
        else:
            body = self._strategic(current, new, self._schema)
        return self._patch(path, f"{form}{'-merge' if form == 'strategic' else ''}-patch+json", body)

    def _deletion(self, at: str, current: Mapping[str, Any]) -> Request:
        meta = current["metadata"]
        body = self._pick(
            *_DELETIONS,
            {"preconditions": {"uid": meta.get("uid")}},
            {"preconditions": {"uid": meta.get("uid"), "resourceVersion": meta.get("resourceVersion")}},
        )
        path = at if self._chance(0.8) else f"{self._collection}?fieldSelector=metadata.name={meta['name']}"
        return {"method": "DELETE", "path": path} | ({} if body is None else {"body": body})

    def _patch(self, path: str, kind: str, body: Any) -> Request:
        return {"method": "PATCH", "path": path + self._query(), "type": f"application/{kind}", "body": body}

    def _apply_of(self, path: str, obj: Mapping[str, Any]) -> Request:
        """Returns a manager's apply configuration: some of the object's fields."""
        body = {key: copy.deepcopy(obj[key]) for key in ("apiVersion", "kind") if key in obj}
        meta = obj.get("metadata", {})
        kept = ("name", "labels", "annotations", "finalizers", "ownerReferences", "uid", "generateName", "selfLink")
        body["metadata"] = {key: meta[key] for key in kept if key in meta and (key == "name" or self._chance(0.5))}
        if meta.get("managedFields") == [] and self._chance(0.5):
            body["metadata"]["managedFields"] = []
        share = self._pick(0.3, 0.7, 1.0)
        for key, value in sorted(obj.items()):
            if key not in ("apiVersion", "kind", "metadata") and self._chance(0.9):
                body[key] = self._some(value, share, 0)
        query = f"?fieldManager={self._pick('a', 'b')}{self._pick('', '&force=true')}{self._pick('', '', '', '&dryRun=All')}"
        return {"method": "PATCH", "path": path + query, "type": "application/apply-patch+yaml", "body": body}

    def _some(self, value: Any, share: float, depth: int) -> Any:
        if not isinstance(value, dict) or depth > 3:
            return copy.deepcopy(value)
        return {key: self._some(value[key], share, depth + 1) for key in sorted(value) if self._chance(share)}

    # ------------------------------------------------------------- changes

    def changed(self, current: Mapping[str, Any], subresource: str = "") -> dict[str, Any]:
        """The object with a few changes; for a subresource, changes all over it."""
        new = copy.deepcopy(dict(current))
        everywhere = self._chance(0.6) if subresource else self._chance(0.05)
        if everywhere or self._chance(0.4):
            for _ in range(self._pick(2, 4) if everywhere else 1):
                self._change_metadata(new["metadata"], identity=0.06)
        properties = self._properties()
        names = sorted(name for name in properties if name not in _OWN)
        if everywhere:
            for name in names:
                self._change_property(new, name, properties)
        elif names and self._chance(0.8):
            for _ in range(self._pick(1, 1, 1, 2, 3)):
                self._change_property(new, self._pick(*names), properties)
        if "status" in properties and (everywhere or self._chance(0.7 if subresource == "status" else 0.08)):
            for _ in range(self._pick(1, 1, 2)):
                self._change_property(new, "status", properties)
        return new

    def _change_property(self, obj: dict[str, Any], name: str, properties: Mapping[str, Any]) -> None:
        new = self._altered(name, obj[name], properties[name], 1) if name in obj else self._made(name, properties[name])
        _set(obj, name, new)

    def _change_metadata(self, meta: dict[str, Any], identity: float) -> None:
        name, values = self._pick(*_METADATA)
        if name in _IDENTITY and not self._chance(identity):
            name, values = _METADATA[self._pick(0, 2)]
        value = copy.deepcopy(self._pick(*values))
        if isinstance(value, dict) and isinstance(meta.get(name), dict) and self._chance(0.7):
            value = {**meta[name], **value}
        if value is None:
            meta.pop(name, None)
        else:
            meta[name] = value

    def _properties(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._maker.resolved(self._schema).get("properties") or {}
        return found

    def _altered(self, name: str, value: Any, schema: Schema, depth: int) -> Any:
        """Another value, or _REMOVED."""
        schema = self._maker.resolved(schema) if schema else {}
        if isinstance(value, dict) and depth < _MAX_DEPTH:
            return self._altered_map(name, value, schema, depth)
        if isinstance(value, list):
            return self._altered_list(name, value, schema, depth)
        roll = self._rng.random()
        if roll < 0.15:
            return _REMOVED
        if isinstance(value, bool):
            return not value
        if roll < 0.5 and isinstance(value, int):
            return value + self._pick(1, 1, 2, -1)
        if roll < 0.3 and isinstance(value, str) and not _ADDRESS.search(value):
            return f"{value}{self._pick('x', '2')}"
        return self._made(name, schema)

    def _altered_map(self, name: str, value: dict[str, Any], schema: Schema, depth: int) -> Any:
        properties = schema.get("properties") or {}
        others = schema.get("additionalProperties") or {}
        missing = sorted(key for key in properties if key not in value)
        roll = self._rng.random()
        if value and roll < 0.65:
            key = self._pick(*sorted(value))
            new = self._altered(key, value[key], properties.get(key) or others or {}, depth + 1)
            return _with(value, key, new)
        if missing and roll < 0.93:
            key = self._pick(*missing)
            return _with(value, key, self._made(key, properties[key]))
        if others and roll < 0.93:
            return _with(value, self._pick("x", "y", "cpu", "memory", "storage"), self._made("", others))
        return _REMOVED if roll < 0.97 else self._made(name, schema)

    def _altered_list(self, name: str, value: list[Any], schema: Schema, depth: int) -> Any:
        items = schema.get("items") or {}
        roll = self._rng.random()
        if not value:
            return [self._made(f"{name}[]", items)] if roll < 0.7 else _REMOVED
        index = self._rng.randrange(len(value))
        if roll < 0.5:
            new = self._altered(f"{name}[]", value[index], items, depth + 1)
            return value[:index] + ([] if new is _REMOVED else [new]) + value[index + 1 :]
        if roll < 0.62:
            return value[:index] + value[index + 1 :]
        if roll < 0.77:
            return [*value, self._another(value[index])]
        if roll < 0.87:
            return [*value, self._made(f"{name}[]", items)]
        if roll < 0.94:
            return value[::-1] if len(value) > 1 else [*value, copy.deepcopy(value[0])]
        return [] if roll < 0.97 else _REMOVED

    def _another(self, item: Any) -> Any:
        """Like it, under another name."""
        if isinstance(item, str):
            return item if _ADDRESS.search(item) else f"{item}2"
        if not isinstance(item, dict):
            return item
        new = copy.deepcopy(item)
        for key in ("name", "key", "type", "mountPath", "port", "containerPort", "ip", "uid"):
            if key in new:
                new[key] = new[key] + 1 if isinstance(new[key], int) else f"{new[key]}2"
                break
        return new

    def _made(self, name: str, schema: Schema) -> Any:
        known = self._known.get((name, _type_of(schema)))
        if known and self._chance(0.65):
            return copy.deepcopy(self._pick(*known))
        if not schema:
            return "x"
        if name.endswith("[]"):
            name = name[:-2]
        return self._maker.value(name, schema, 3)

    # ----------------------------------------------------- strategic merge

    def _strategic(self, old: Mapping[str, Any], new: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
        schema = self._maker.resolved(schema) if schema else {}
        properties = schema.get("properties") or {}
        patch: dict[str, Any] = {}
        for key in sorted(old.keys() | new.keys()):
            sub = properties.get(key) or {}
            if key not in new:
                patch[key] = None
            elif key not in old or type(old[key]) is not type(new[key]):
                patch[key] = new[key]
            elif old[key] != new[key]:
                self._strategic_field(patch, key, old[key], new[key], sub)
        if "retainKeys" in str(schema.get("x-kubernetes-patch-strategy", "")) or (patch and self._chance(0.03)):
            patch["$retainKeys"] = sorted(new)
        return patch

    def _strategic_field(self, patch: dict[str, Any], key: str, old: Any, new: Any, schema: Schema) -> None:
        merge_key = schema.get("x-kubernetes-patch-merge-key")
        if isinstance(new, dict):
            found = self._strategic(old, new, schema)
            if "retainKeys" in str(schema.get("x-kubernetes-patch-strategy", "")):
                found["$retainKeys"] = sorted(new)
            elif self._chance(0.05):
                found = {**new, "$patch": "replace"}
            patch[key] = found
        elif isinstance(new, list) and merge_key and all(isinstance(item, dict) for item in [*old, *new]):
            patch.update(self._strategic_list(key, merge_key, old, new, schema.get("items") or {}))
        elif isinstance(new, list) and "merge" in str(schema.get("x-kubernetes-patch-strategy", "")):
            patch[key] = [item for item in new if item not in old]
            patch[f"$deleteFromPrimitiveList/{key}"] = [item for item in old if item not in new]
        else:
            patch[key] = new

    def _strategic_list(
        self, key: str, merge_key: str, old: list[Any], new: list[Any], items: Schema
    ) -> dict[str, Any]:
        if self._chance(0.08):
            return {key: [*new, {"$patch": "replace"}]}
        before = {json.dumps(item.get(merge_key)): item for item in old}
        after = {json.dumps(item.get(merge_key)): item for item in new}
        found: list[Any] = []
        for text, item in after.items():
            if text not in before:
                found.append(item)
            elif before[text] != item:
                found.append({**self._strategic(before[text], item, items), merge_key: item.get(merge_key)})
        gone = [before[text].get(merge_key) for text in before if text not in after]
        found += [{merge_key: value, "$patch": "delete"} for value in gone]
        patch: dict[str, Any] = {key: found}
        if self._chance(0.6):
            patch[f"$setElementOrder/{key}"] = [{merge_key: item.get(merge_key)} for item in new]
        return patch

    # -------------------------------------------------------------- chance

    def _query(self) -> str:
        query = self._pick(*_QUERIES)
        return f"?{query}" if query else ""

    def _pick(self, *options: Any) -> Any:
        return self._rng.choice(options)

    def _chance(self, share: float) -> bool:
        return self._rng.random() < share


def _with(value: Mapping[str, Any], key: str, new: Any) -> dict[str, Any]:
    found = dict(value)
    _set(found, key, new)
    return found


def _set(target: dict[str, Any], key: str, new: Any) -> None:
    if new is _REMOVED:
        target.pop(key, None)
    else:
        target[key] = new


def merged(obj: Any, patch: Any) -> Any:
    """RFC 7386: the object with the patch."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    found = copy.deepcopy(obj) if isinstance(obj, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), value)
    return found


def merge_patch(old: Any, new: Any) -> Any:
    """RFC 7386: what makes one of the other."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    patch = {key: None for key in old if key not in new}
    return patch | {key: merge_patch(old.get(key), new[key]) for key in sorted(new) if old.get(key) != new[key]}


def json_patch(old: Any, new: Any, at: str) -> Iterator[Request]:
    """RFC 6902: what makes one of the other, lists as a whole."""
    for key in sorted(old.keys() | new.keys()):
        path = f"{at}/{key.replace('~', '~0').replace('/', '~1')}"
        if key not in new:
            yield {"op": "remove", "path": path}
        elif key not in old:
            yield {"op": "add", "path": path, "value": new[key]}
        elif isinstance(old[key], dict) and isinstance(new[key], dict):
            yield from json_patch(old[key], new[key], path)
        elif old[key] != new[key]:
            yield {"op": "replace", "path": path, "value": new[key]}
