"""The expressions of one MutatingAdmissionPolicy, and what their patches make of an object.

Upstream: k8s.io/apiserver/pkg/admission/plugin/policy/mutating/{compilation.go,patch}, k8s.io/apiserver/pkg/cel/mutation.
"""

import base64
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from fakeapiserver.admission.policy.expressions import (
    BUDGET,
    Evaluation,
    Expression,
    OutOfBudget,
    Run,
    compiled,
    compiled_conditions,
    compiled_variables,
    hold,
)
from fakeapiserver.apimachinery.cel.admission import JSON_PATCH, OBJECT, Environment
from fakeapiserver.apimachinery.duration import format_duration
from fakeapiserver.apimachinery.managedfields.merge import merge
from fakeapiserver.apimachinery.managedfields.validate import validate
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.patch import json as json_patch
from fakeapiserver.apimachinery.patch.go_format import GoValue
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.apis.recorded import NEWEST
from fakeapiserver.languages.cel.times import duration_text, timestamp_text
from fakeapiserver.languages.cel.values import Duration, StructValue, Timestamp

if TYPE_CHECKING:
    from fakeapiserver.apimachinery.managedfields.typed import Node, TypedSchema


class MutationError(Exception):
    """A mutation that could not be made; the failure policy decides."""


class Mutation(NamedTuple):
    """`merges`: it makes an apply configuration, else a JSON patch."""

    expression: Expression
    merges: bool


class Mutator:
    def __init__(self, spec: Mapping[str, Any], version: str = NEWEST) -> None:
        """`spec` is the policy's, `version` Kubernetes's. What doesn't compile fails when it is evaluated."""
        environment = Environment(spec.get("paramKind") is not None, composes=True, version=version)
        self._ignores_failures = spec.get("failurePolicy") == "Ignore"
        self._variables = compiled_variables(environment, spec.get("variables") or ())
        self._conditions = compiled_conditions(environment, spec.get("matchConditions") or ())
        self.mutations = [_mutation(environment, mutation) for mutation in spec.get("mutations") or ()]

    async def is_wanted(self, evaluation: Evaluation) -> bool:
        """ConditionError."""
        return await hold(self._conditions, evaluation, self._variables, ignores_failures=self._ignores_failures)

    async def patched(self, mutation: Mutation, evaluation: Evaluation, schema: "TypedSchema | None") -> Object:
        """Returns the evaluation's object after a mutation. Raises MutationError."""
        if mutation.expression.program is None:
            raise MutationError(mutation.expression.error)
        try:
            value, error = await Run(evaluation, self._variables, BUDGET).evaluate(mutation.expression)
        except OutOfBudget as out:
            raise MutationError(str(out)) from None
        if error:
            raise MutationError(error)
        obj: Object = evaluation.names["object"]
        if not mutation.merges:
            return _json_patched(value, obj)
        _check_names(value)
        if schema is None:
            raise MutationError(
                f"error applying patch: failed to convert patch object to typed object: {_unknown(obj)}"
            )
        return _applied(value, obj, schema)


def _mutation(environment: Environment, mutation: Object) -> Mutation:
    merges = mutation["patchType"] != "JSONPatch"
    text = mutation["applyConfiguration" if merges else "jsonPatch"]["expression"]
    return Mutation(compiled(environment, text, OBJECT if merges else JSON_PATCH, makes_patches=True), merges)


# ---------------------------------------------------------------- ApplyConfiguration


def _applied(made: StructValue, obj: Object, schema: "TypedSchema") -> Object:
    patch = {**_to_go(made), "apiVersion": obj["apiVersion"], "kind": obj["kind"]}
    if problem := validate(patch, schema):
        raise MutationError(f"error applying patch: failed to convert patch object to typed object: {problem}")
    if atomics := ", ".join(_atomics(schema.root, patch, "")):
        raise MutationError(
            f"error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {atomics}"
        )
    if problem := validate(obj, schema, duplicates=True):
        raise MutationError(f"error applying patch: failed to convert original object to typed object: {problem}")
    merged: Object = merge(schema.root, obj, patch)
    return merged


def _unknown(obj: Object) -> str:
    """Kinds of subresources are in no document of OpenAPI that upstream looks at."""
    group, _, version = obj["apiVersion"].rpartition("/")
    return f"no corresponding type for {group}/{version}, Kind={obj['kind']}"


def _to_go(value: Any) -> Any:
    """Converts a value to Go's types, not all of which are JSON's."""
    if isinstance(value, StructValue):
        return {
            key: GoValue("NULL_VALUE", "0", "structpb.NullValue") if item is None else _to_go(item)
            for key, item in value.fields.items()
        }
    if isinstance(value, dict):
        return {key: _to_go(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_to_go(item) for item in value]
    if isinstance(value, bytes):
        syntax = ", ".join(f"{byte:#x}" for byte in value)
        return GoValue(f"[{' '.join(map(str, value))}]", f"[]uint8{{{syntax}}}", "[]uint8")
    if isinstance(value, Duration):
        return GoValue(format_duration(value.ns / 1e9), str(value.ns), "time.Duration")
    if isinstance(value, Timestamp):
        shown = timestamp_text(value).replace("T", " ").replace("Z", " +0000 UTC")
        return GoValue(shown, shown, "time.Time")
    return value


def _check_names(made: StructValue) -> None:
    """Checks that the type of each struct has the name of its place."""
    if errors := list(_misnamed(made, made.cel_type.name)):
        raise MutationError("type mismatch: " + "\n".join(errors))


def _misnamed(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, StructValue):
        name = value.cel_type.name
        if name != path:
            yield f'unexpected type name "{name}", expected "{path}", which matches field name path from root Object type'
        for key, item in value.fields.items():
            yield from _misnamed(item, f"{path}.{key}")
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _misnamed(item, path)


def _atomics(node: "Node | None", value: Any, path: str) -> Iterator[str]:
    if node is None:
        return
    if isinstance(value, dict) and node.is_map:
        if node.atomic_map:
            yield path
        for key, item in value.items():
            yield from _atomics(node.fields.get(key), item, f"{path}.{key}")
    elif isinstance(value, list) and node.items is not None:
        if node.atomic_list:
            yield path
        for i, item in enumerate(value):
            yield from _atomics(node.items, item, f"{path}[{i}]")


# ---------------------------------------------------------------- JSONPatch


def _json_patched(operations: list[StructValue], obj: Object) -> Object:
    patch = [_operation(operation.fields) for operation in operations]
    decoded = json_patch.decode(json.encode(patch), field_validation="Ignore")
    try:
        patched = json_patch.applied(obj, decoded)
    except json_patch.TestFailed:
        return obj
    except json_patch.Inapplicable as error:
        raise MutationError(f"JSON Patch: {error}") from None
    copied: Object = _sorted(patched)
    return copied


def _sorted(value: Any) -> Any:
    """Returns a copy in the order of Go's maps, in which unknown fields are reported."""
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _operation(fields: dict[str, Any]) -> Object:
    operation = {"op": fields.get("op", ""), "path": fields.get("path", "")}
    if fields.get("from"):
        operation["from"] = fields["from"]
    if "value" in fields:
        if isinstance(fields["value"], StructValue):
            _check_names(fields["value"])
        operation["value"] = _to_json(fields["value"])
    return operation


def _to_json(value: Any) -> Any:
    if isinstance(value, StructValue):
        return {key: _to_json(item) for key, item in value.fields.items()}
    if isinstance(value, dict):
        return {key: _to_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_to_json(item) for item in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Duration):
        return duration_text(value)
    if isinstance(value, Timestamp):
        return timestamp_text(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise MutationError(f"unsupported type in a patch: {type(value).__name__}")
