"""Validation of values against OpenAPI v3 schemas, worded as kube-openapi words it.

Upstream: k8s.io/kube-openapi/pkg/validation/validate (schema.go and one file per kind of validator),
k8s.io/apiextensions-apiserver/pkg/apiserver/validation/{validation,ratcheting}.go

A schema becomes a Validator: for each JSON type a tuple of checks, made when the first value of that type arrives.
Errors are gathered in Findings, which also counts what matched: anyOf and oneOf report the errors of their best match.
"""

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from fakeapiserver.apimachinery.allowance import spend
from fakeapiserver.apimachinery.field import ErrorList, Path, required, type_invalid
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.schema.list_type import MISSING, items_by_key, repeated
from fakeapiserver.apimachinery.schema.resolve import Schema
from fakeapiserver.apimachinery.schema.validate_value import (
    Check,
    Findings,
    field_name,
    format_of,
    is_json_integer,
    number_check,
    string_check,
    value_checks,
)
from fakeapiserver.languages.cel.versions import NEWEST


class Uncorrelated:
    """Marks a value that has no old value to compare with."""


UNCORRELATED: Final = Uncorrelated()
# Of a look at one branch of anyOf, oneOf or allOf, in the units of effort.py.
_BRANCH_COST: Final = 25
# What Go decodes as an integer; the rest becomes a float.
_INT64: Final = 1 << 63
# JSON type of a Python value -> OpenAPI's name of it, and the format of Go's type for it.
_NAMES: Final[dict[type, tuple[str, str]]] = {
    str: ("string", ""),
    bool: ("boolean", ""),
    int: ("integer", "int64"),
    float: ("number", "float64"),
    list: ("array", ""),
    dict: ("object", ""),
}


def validate_object(validator: "Validator", value: Any, old: Any = UNCORRELATED) -> ErrorList:
    """The errors of a whole object."""
    findings = Findings()
    _check_child(validator, value, "", findings, old)
    return list(findings.errors.values())


def placed(errors: ErrorList, path: Path) -> ErrorList:
    """The errors of a value that is not a whole object but stands at a path."""
    return [
        replace(error, field=str(path) if error.field == str(Path()) else str(path.child(error.field)))
        for error in errors
    ]


def _check_child(validator: "Validator", value: Any, path: str, findings: Findings, old: Any) -> None:
    """Checks a field or element; an old value that equals it excuses its errors."""
    if old is UNCORRELATED:
        validator.check(value, path, findings, old)
        return
    inner = Findings()
    validator.check(value, path, inner, old)
    if inner.errors and validator.is_same(value, old):
        inner.errors.clear()
    findings.merge(inner)


def _same(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(v, b[k]) for k, v in a.items())
    if isinstance(a, list):
        return len(a) == len(b) and all(map(_same, a, b))
    return bool(a == b)


class Validator:
    """A schema's checks."""

    __slots__ = ("_any_format", "_by_type", "_children", "_format", "_junctors", "_schema", "_types", "_version")

    def __init__(self, schema: Schema, version: str = NEWEST, *, any_format: bool = False) -> None:
        """`version`: Kubernetes's. `any_format`: formats count even where upstream knows none of that name for the type."""
        self._schema, self._any_format, self._version = schema, any_format, version
        self._types: list[str] = [schema["type"]] if schema.get("type") else []
        if schema.get("x-kubernetes-int-or-string"):
            self._types = ["integer", "string"]
        self._format = schema.get("format", "") if any_format else format_of(schema, self._types)
        self._by_type: dict[type, tuple[int, tuple[Check, ...]]] = {}
        self._children: dict[str, Validator] = {}
        self._junctors: dict[str, list[Validator]] = {
            key: [self._of(s) for s in schema[key]] for key in ("allOf", "anyOf", "oneOf") if schema.get(key)
        }
        if schema.get("not") is not None:
            self._junctors["not"] = [self._of(schema["not"])]

    def _of(self, schema: Schema) -> "Validator":
        return Validator(schema, self._version, any_format=self._any_format)

    def check(self, value: Any, path: str, findings: Findings, old: Any) -> None:
        """Adds what is wrong with a value at a path such as `spec.ports[0]`."""
        if value is None:
            self._check_null(path, findings)
            return
        if type(value) is int and not -_INT64 <= value < _INT64:
            value = float(value)
        compiled = self._by_type.get(type(value))
        if compiled is None:
            compiled = self._by_type[type(value)] = self._compile(type(value))
        matches, checks = compiled
        findings.matches += matches
        for check in checks:
            check(value, path, findings, old)

    def is_same(self, value: Any, old: Any) -> bool:
        """Reports whether a value is the old one, as far as the two can be correlated: what the schema has no field for can't, nor can an
        element of a list of type map without its keys (upstream: k8s.io/apiserver/pkg/cel/common/equality.go).
        """
        if isinstance(value, dict) and isinstance(old, dict):
            return len(value) == len(old) and all(
                key in old and self._is_same(key, item, old[key]) for key, item in value.items()
            )
        if isinstance(value, list) and isinstance(old, list) and self._is_map_list:
            old_item = items_by_key(old, self._schema)
            return len(value) == len(old) and all(self._is_same_item(item, old_item(item)) for item in value)
        return _same(value, old)

    def _is_same(self, key: str, value: Any, old: Any) -> bool:
        child = self._child("." + key) or self._child("additionalProperties")
        return child is not None and child.is_same(value, old)

    def _is_same_item(self, item: Any, old: Any) -> bool:
        items = self._child("items")
        return items is not None and old is not MISSING and items.is_same(item, old)

    @property
    def _is_map_list(self) -> bool:
        return bool(self._schema.get("x-kubernetes-list-type") == "map")

    def _check_null(self, path: str, findings: Findings) -> None:
        if self._types and not self._schema.get("nullable"):
            _wrong_type(path, findings, ",".join(self._types), "null")
        else:
            findings.matches += 1
        if self._schema.get("enum"):
            for check in value_checks(self._schema):
                check(None, path, findings, UNCORRELATED)

    def _compile(self, kind: type) -> tuple[int, tuple[Check, ...]]:
        """Returns what a value of a type matches before anything is checked, and its checks in upstream's order."""
        schema, checks = self._schema, list[Check]()
        # Upstream counts each validator that applies, most of the others, and the schema itself.
        matches = 4
        if self._types or self._format:
            matches += 2
            checks += self._type_checks(kind)
        if self._junctors:
            checks.append(self._check_junctors)
        if kind is str:
            text_checks, has_format = string_check(schema, self._format)
            matches += 1 + has_format
            checks += text_checks
        elif kind in (int, float):
            matches += 2
            checks += number_check(schema, self._types, format_of(schema, self._types), self._version)
        elif kind is list:
            matches += 2
            checks.append(self._check_items)
        if schema.get("enum"):
            checks += value_checks(schema)
        if kind is dict:
            matches += 1
            checks.append(self._check_fields)
        return matches, tuple(checks)

    def _type_checks(self, kind: type) -> list[Check]:
        name, go_format = _NAMES[kind]
        types, expected = self._types, ",".join(self._types)
        fits = name in types or (kind is int and "number" in types)
        float_as_int = kind is float and "integer" in types
        wanted, got = expected, name
        if kind in (str, list):
            if self._format and not {"number", "integer"} & set(types):
                return []
        elif self._format and go_format != self._format:
            wanted, got = self._format, go_format
        if fits:
            return []

        def check_type(value: Any, path: str, findings: Findings, _: Any) -> None:
            if not (float_as_int and is_json_integer(value, self._version)):
                findings.matches -= 1
                _wrong_type(path, findings, wanted, got)

        return [check_type]

    def _child(self, key: str) -> "Validator | None":
        """The validator of a field: `.name` for a property, `items` or `additionalProperties` for the rest."""
        if key not in self._children:
            schema = self._schema.get("properties", {}).get(key[1:]) if key[0] == "." else self._schema.get(key)
            if not isinstance(schema, dict):
                return None
            self._children[key] = self._of(schema)
        return self._children[key]

    def _check_items(self, value: list[Any], path: str, findings: Findings, old: Any) -> None:
        if (items := self._child("items")) is not None:
            old_item = self._old_items(old)
            for i, item in enumerate(value):
                _check_child(items, item, f"{path}[{i}]", findings, old_item(item))
        schema, size = self._schema, len(value)
        if (least := schema.get("minItems")) is not None and size < least:
            findings.invalid(path, size, f"{path} in body should have at least {least} items")
        if (most := schema.get("maxItems")) is not None and size > most:
            findings.too_many(path, size, most, f"{path} in body should have at most {most} items")
        if schema.get("uniqueItems") and repeated(value):
            findings.invalid(path, "", f"{path} in body shouldn't contain duplicates")

    def _old_items(self, old: Any) -> Callable[[Any], Any]:
        """Returns the function that finds an element's old state: only elements of lists of type map are known to be the same as before."""
        if not isinstance(old, list) or not self._is_map_list:
            return lambda item: UNCORRELATED
        find = items_by_key(old, self._schema)
        return lambda item: UNCORRELATED if (state := find(item)) is MISSING else state

    def _check_fields(self, value: dict[str, Any], path: str, findings: Findings, old: Any) -> None:
        schema, size = self._schema, len(value)
        if (least := schema.get("minProperties")) is not None and size < least:
            findings.invalid(path, size, f"{path} in body should have at least {least} properties")
        if (most := schema.get("maxProperties")) is not None and size > most:
            findings.too_many(path, size, most, f"{path} in body should have at most {most} properties")
        properties = schema.get("properties", {})
        spend(len(properties) + len(schema.get("required", ())))
        if (others := self._child("additionalProperties")) is not None:
            for key, item in value.items():
                if key not in properties:
                    _check_child(others, item, f"{path}.{key}", findings, _old_field(key, path, old))
        for key in properties:
            if key in value and (child := self._child("." + key)) is not None:
                name = f"{path}.{key}" if path else key
                _check_child(child, value[key], name, findings, _old_field(key, path, old))
        for key in schema.get("required", ()):
            if key not in value:
                name = f"{path}.{key}"
                findings.add(f"{name} in body is required", required(field_name(name)))

    def _check_junctors(self, value: Any, path: str, findings: Findings, _: Any) -> None:
        # Upstream correlates nothing below these with the old object.
        junctors = self._junctors
        spend(_BRANCH_COST * sum(map(len, junctors.values())))
        if "anyOf" in junctors:
            self._check_any_of(value, path, findings)
        if "oneOf" in junctors:
            self._check_one_of(value, path, findings)
        if "allOf" in junctors:
            results = [_result(v, value, path) for v in junctors["allOf"]]
            for result in results:
                findings.merge(result)
            if any(result.errors for result in results):
                none = "" if any(not result.errors for result in results) else ". None validated"
                findings.message(f"{go_quote(path)} must validate all the schemas (allOf){none}")
        if "not" in junctors and not _result(junctors["not"][0], value, path).errors:
            findings.message(f"{go_quote(path)} must not validate the schema (not)")

    def _check_any_of(self, value: Any, path: str, findings: Findings) -> None:
        best: Findings | None = None
        for validator in self._junctors["anyOf"]:
            result = _result(validator, value, path)
            if not result.errors:
                findings.merge(result)
                return
            if best is None or result.matches > best.matches:
                best = result
        findings.message(f"{go_quote(path)} must validate at least one schema (anyOf)")
        if best is not None:
            findings.merge(best)

    def _check_one_of(self, value: Any, path: str, findings: Findings) -> None:
        results = [_result(v, value, path) for v in self._junctors["oneOf"]]
        valid = [result for result in results if not result.errors]
        if len(valid) == 1:
            findings.merge(valid[0])
            return
        told = f"Found {len(valid)} valid alternatives" if valid else "Found none valid"
        findings.message(f"{go_quote(path)} must validate one and only one schema (oneOf). {told}")
        if not valid:
            # The first of equals, as upstream only replaces it by a better one.
            findings.merge(max(results, key=lambda result: result.matches))


def _result(validator: Validator, value: Any, path: str) -> Findings:
    result = Findings()
    validator.check(value, path, result, UNCORRELATED)
    return result


def _old_field(key: str, path: str, old: Any) -> Any:
    if not isinstance(old, dict) or (not path and key in ("kind", "apiVersion")):
        return UNCORRELATED
    return old.get(key, UNCORRELATED)


def _wrong_type(path: str, findings: Findings, wanted: str, got: str) -> None:
    text = f"{path} in body must be of type {wanted}: {go_quote(got)}"
    findings.add(text, type_invalid(field_name(path), got, text))
