"""Attacks with definitions, and with custom resources of a definition that makes each check of schemas expensive."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from conformance.robustness.attacks.attack import BODY, Attack, Call, Object, encoded, filled, named, pairs, posted

_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_GROUP: Final = "attack.example.com"
THINGS: Final = f"/apis/{_GROUP}/v1/namespaces/default/things"
_TEXT: Final = {"type": "string"}
_ROWS: Final = {
    "type": "array",
    "items": {"type": "object", "properties": {"k": _TEXT, "v": {"type": "integer"}}, "required": ["k"]},
}


def _rules(*rules: str) -> Object:
    return {"x-kubernetes-validations": [{"rule": rule} for rule in rules]}


def _numbers(most: int) -> Object:
    return {"type": "object", "properties": {"n": {"type": "array", "items": {"type": "integer"}, "maxItems": most}}}


def _fields() -> Object:
    return {
        "enum": {"type": "array", "items": {"type": "string", "enum": [f"e{i}" for i in range(5000)]}},
        "anyOf": {
            "type": "array",
            "items": {"type": "integer", "anyOf": [{"minimum": i, "maximum": i} for i in range(200)]},
        },
        "oneOf": {
            "type": "array",
            "items": {"type": "integer", "oneOf": [{"minimum": i, "maximum": i} for i in range(200)]},
        },
        "texts": {"type": "array", "items": _TEXT},
        "set": {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "set"},
        "rows": {**_ROWS, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
        "atoms": {**_ROWS, "x-kubernetes-list-type": "atomic"},
        "map": {"type": "object", "additionalProperties": _TEXT},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "pattern": {"type": "array", "items": {"type": "string", "pattern": "^(a+)+$"}},
        "dates": {"type": "array", "items": {"type": "string", "format": "date-time"}},
        "durations": {"type": "array", "items": {"type": "string", "format": "duration"}},
        "addresses": {"type": "array", "items": {"type": "string", "format": "ipv6"}},
        "multiples": {"type": "array", "items": {"type": "number", "multipleOf": 0.1}},
        "eitherType": {"type": "array", "items": {"x-kubernetes-int-or-string": True}},
        "embedded": {
            "type": "array",
            "items": {
                "type": "object",
                "x-kubernetes-embedded-resource": True,
                "x-kubernetes-preserve-unknown-fields": True,
            },
        },
        "defaults": {
            "type": "array",
            "items": {"type": "object", "properties": {f"d{i}": {"type": "integer", "default": i} for i in range(100)}},
        },
        "cross": {**_numbers(1000), **_rules("self.n.all(a, self.n.all(b, a + b >= 0))")},
        "cubed": {**_numbers(100), **_rules("self.n.all(a, self.n.all(b, self.n.all(c, a + b + c >= 0)))")},
        "each": {
            "type": "array",
            "maxItems": 100_000,
            "items": {"type": "integer", **_rules("self >= 0", "self < 10 || self > 2")},
        },
        "matched": {
            "type": "array",
            "maxItems": 500,
            "items": {"type": "string", "maxLength": 10_000, **_rules("!self.matches('^(a|a)*b$')")},
        },
    }


def definition(plural: str, schema: Object, **more: object) -> Object:
    kind = plural[:-1].capitalize()
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **more}
    names = {"plural": plural, "singular": plural[:-1], "kind": kind, "listKind": f"{kind}List"}
    obj = named("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"{plural}.{_GROUP}")
    return {**obj, "spec": {"group": _GROUP, "scope": "Namespaced", "names": names, "versions": [version]}}


def of_spec(fields: Object) -> Object:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}


def thing(name: str, **spec: object) -> Object:
    return named(f"{_GROUP}/v1", "Thing", name, spec=spec)


DEFINED: Final = (posted(_DEFINITIONS, lambda: definition("things", of_spec(_fields()))),)
_FREE: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_SPECS: Final[dict[str, tuple[str, Callable[[], Any]]]] = {
    "50,000 items under an enum of 5,000": ("enum", lambda: [f"x{i}" for i in range(50_000)]),
    "the last of an enum of 5,000": ("enum", lambda: filled(lambda i: "e4999")),
    "20,000 items under anyOf of 200": ("anyOf", lambda: [1000] * 20_000),
    "anyOf of 200": ("anyOf", lambda: filled(lambda i: 199)),
    "oneOf of 200": ("oneOf", lambda: filled(lambda i: 100 + i % 100)),
    "500,000 wrongly typed items": ("texts", lambda: [1] * 500_000),
    "wrongly typed items": ("texts", lambda: filled(lambda i: 1)),
    "null items": ("texts", lambda: filled(lambda i: None)),
    "a set": ("set", lambda: filled(lambda i: f"s{i}")),
    "a set of repetitions": ("set", lambda: filled(lambda i: f"s{i // 2}")),
    "a list by key": ("rows", lambda: filled(lambda i: {"k": f"k{i}", "v": i})),
    "a list by key, all the same": ("rows", lambda: filled(lambda i: {"k": "k"})),
    "a list by key without keys": ("rows", lambda: filled(lambda i: {})),
    "an atomic list": ("atoms", lambda: filled(lambda i: {"k": f"k{i}"})),
    "a map": ("map", lambda: pairs(lambda i: (f"k{i}", "v"))),
    "a map, wrongly typed": ("map", lambda: pairs(lambda i: (f"k{i}", 1))),
    "unknown fields": ("unknown", lambda: pairs(lambda i: (f"k{i}", 1))),
    "fields without a schema": ("free", lambda: pairs(lambda i: (f"k{i}", {"a": []}))),
    "patterns": ("pattern", lambda: filled(lambda i: "a" * 40 + "!")),
    "a long text under a pattern": ("pattern", lambda: ["a" * (BODY - 100) + "!"]),
    "dates": ("dates", lambda: filled(lambda i: "2026-11-26T00:00:00Z")),
    "durations": ("durations", lambda: filled(lambda i: "1h1m1s")),
    "a long duration": ("durations", lambda: ["1h" * (BODY // 2 - 100)]),
    "addresses": ("addresses", lambda: filled(lambda i: "fe80::1")),
    "multiples": ("multiples", lambda: filled(lambda i: i / 10)),
    "integers or texts": ("eitherType", lambda: filled(lambda i: 1.5)),
    "embedded resources": (
        "embedded",
        lambda: filled(lambda i: {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "n"}}),
    ),
    "100 defaults for each item": ("defaults", lambda: [{}] * 2000),
    "rule: 300 times 300": ("cross", lambda: {"n": list(range(300))}),
    "rule: 1,000 times 1,000": ("cross", lambda: {"n": list(range(1000))}),
    "rule: 100 times 100 times 100": ("cubed", lambda: {"n": list(range(100))}),
    "rule: each of 100,000": ("each", lambda: list(range(100_000))),
    "rule: a pattern for each of 300": ("matched", lambda: ["a" * 9_000] * 300),
}


def _nested_arrays(depth: int) -> bytes:
    return encoded(thing("deep", free={"a": "DEEP"})).replace(b'"DEEP"', b"[" * depth + b"]" * depth)


def _nested_maps(depth: int) -> bytes:
    return encoded(thing("deep", free={"a": "DEEP"})).replace(b'"DEEP"', b'{"a":' * depth + b"1" + b"}" * depth)


def _number(text: bytes) -> bytes:
    return encoded(thing("number", free={"a": "NUMBER"})).replace(b'"NUMBER"', text)


_BYTES: Final[dict[str, Callable[[], bytes]]] = {
    "3 MB of [": lambda: b"[" * BODY,
    '3 MB of {"a":': lambda: b'{"a":' * (BODY // 5),
    "9,900 arrays": lambda: _nested_arrays(9_900),
    "9,900 maps": lambda: _nested_maps(9_900),
    "1,000 arrays": lambda: _nested_arrays(1_000),
    "400 maps": lambda: _nested_maps(400),
    "a million arrays beside each other": lambda: _number(b"[" + b"[]," * 900_000 + b"[]]"),
    "an integer of 3 MB": lambda: _number(b"1" * (BODY - 200)),
    "a fraction of 3 MB": lambda: _number(b"0." + b"1" * (BODY - 200)),
    "an exponent of 3 MB": lambda: _number(b"1e" + b"1" * (BODY - 200)),
    "1e999": lambda: _number(b"1e999"),
    "integers of 19 digits": lambda: _number(b"[" + b"9223372036854775807," * 140_000 + b"1]"),
    "floats": lambda: _number(b"[" + b"1.0," * 700_000 + b"1]"),
    "escapes": lambda: _number(b'"' + rb"\u0000" * 500_000 + b'"'),
    "lone surrogates": lambda: _number(b'"' + rb"\ud800" * 500_000 + b'"'),
    "bytes that aren't UTF-8": lambda: _number(b'"' + b"\xff" * (BODY - 200) + b'"'),
    "a repeated key": lambda: _number(b"{" + b'"a":1,' * 490_000 + b'"a":1}'),
    "repeated keys, two each": lambda: _number(b"{" + b",".join(b'"k%d":1' % (i // 2) for i in range(240_000)) + b"}"),
}


def _texts(count: int) -> Object:
    return {f"p{i}": _TEXT for i in range(count)}


def _definitions() -> Iterator[tuple[str, Callable[[], Object]]]:
    yield "properties", lambda: definition("as", of_spec(pairs(lambda i: (f"p{i}", _TEXT))))
    yield "versions", _with_versions
    yield (
        "printer columns",
        lambda: definition(
            "bs",
            of_spec(_texts(10)),
            additionalPrinterColumns=filled(lambda i: {"name": f"c{i}", "type": "string", "jsonPath": f".spec.p{i}"}),
        ),
    )
    yield (
        "a long path of a column",
        lambda: definition(
            "cs",
            of_spec(_texts(10)),
            additionalPrinterColumns=[{"name": "c", "type": "string", "jsonPath": ".a" * (BODY // 2 - 500)}],
        ),
    )
    yield (
        "selectable fields",
        lambda: definition("ds", of_spec(_texts(10)), selectableFields=filled(lambda i: {"jsonPath": f".spec.p{i}"})),
    )
    yield "enum", lambda: definition("es", of_spec({"a": {"type": "string", "enum": filled(lambda i: f"e{i}")}}))
    yield (
        "enum, all the same",
        lambda: definition("fs", of_spec({"a": {"type": "string", "enum": filled(lambda i: "e")}})),
    )
    yield "required", lambda: definition("gs", {**of_spec(_texts(1)), "required": filled(lambda i: f"r{i}")})
    yield (
        "anyOf",
        lambda: definition("hs", of_spec({"a": {"type": "integer", "anyOf": filled(lambda i: {"minimum": i})}})),
    )
    yield from _rule_definitions()


def _rule_definitions() -> Iterator[tuple[str, Callable[[], Object]]]:
    yield (
        "rules",
        lambda: definition(
            "is", of_spec({"a": {"type": "string", **_rules(*filled(lambda i: f"self != 'n{i}'", BODY // 2))}})
        ),
    )
    yield (
        "a long rule",
        lambda: definition("js", of_spec({"a": {"type": "string", **_rules(" && ".join(["true"] * 300_000))}})),
    )
    yield (
        "a deep rule",
        lambda: definition("ks", of_spec({"a": {"type": "string", **_rules("(" * 500_000 + "true" + ")" * 500_000)}})),
    )
    yield (
        "a rule of 1 MB without a space",
        lambda: definition("ls", of_spec({"a": {"type": "string", **_rules("a" * 1_000_000)}})),
    )
    yield "short names", _with_short_names
    yield "a deep schema", _deep
    yield "defaults", lambda: definition("ms", of_spec(pairs(lambda i: (f"p{i}", {"type": "integer", "default": i}))))
    yield (
        "a large default",
        lambda: definition("ns", of_spec({"a": {**_FREE, "default": pairs(lambda i: (f"k{i}", 1))}})),
    )
    yield (
        "patterns",
        lambda: definition(
            "os", of_spec(pairs(lambda i: (f"p{i}", {"type": "string", "pattern": f"^a{{1,{i % 1000}}}$"})))
        ),
    )
    yield (
        "a pattern that repeats",
        lambda: definition("ps", of_spec({"a": {"type": "string", "pattern": "((a{100}){100}){100}"}})),
    )
    yield (
        "a pattern of optional parts",
        lambda: definition("ws", of_spec({"a": {"type": "string", "pattern": "a?" * 50_000}})),
    )
    yield "a pattern of 1 MB", lambda: definition("qs", of_spec({"a": {"type": "string", "pattern": "a?" * 500_000}}))
    yield "wrongly typed", lambda: definition("rs", {"type": "object", "properties": pairs(lambda i: (f"p{i}", 1))})


def _with_versions() -> Object:
    obj = definition("ts", of_spec({}))
    schema = {"openAPIV3Schema": {"type": "object"}}
    obj["spec"]["versions"] = filled(
        lambda i: {"name": f"v{i + 1}", "served": True, "storage": i == 0, "schema": schema}
    )
    return obj


def _with_short_names() -> Object:
    obj = definition("us", of_spec({}))
    obj["spec"]["names"]["shortNames"] = filled(lambda i: f"s{i}")
    return obj


def _deep() -> Object:
    schema: Object = _TEXT
    for _ in range(300):
        schema = {"type": "object", "properties": {"a": schema}}
    return definition("vs", schema)


def attacks() -> Iterator[Attack]:
    for name, (field, value) in _SPECS.items():
        body = lambda field=field, value=value: thing("attack", **{field: value()})  # noqa: E731
        yield Attack(f"custom resource: {name}", posted(THINGS, body), DEFINED)
    for name, data in _BYTES.items():
        yield Attack(f"JSON: {name}", Call("POST", THINGS, data), DEFINED)
    for name, obj in _definitions():
        yield Attack(f"definition: {name}", posted(_DEFINITIONS, obj))
