"""Sequences of creates, updates, patches and applies by several managers, as a real kube-apiserver 1.36.3 answered them.

Each step is replayed on the server's own last answer. `object` is what was applied, or what the server was about to store before
admission; `answer` is what it stored or refused with.
"""

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.managedfields import Operation, apply, update
from fakeapiserver.apimachinery.managedfields.typed import TypedSchema, builtin_schema, structural_schema

HERE = Path(__file__).parent
SCHEMAS = HERE.parents[2] / "fakeapiserver/apis/versions/v1.36/schemas.json"
SEQUENCES = [json.loads(line) for line in (HERE / "sequences.jsonl").read_text().splitlines()]

Object = dict[str, Any]


@cache
def definitions() -> dict[str, Any]:
    return json.loads(SCHEMAS.read_bytes())


@cache
def schema_of(name: str) -> TypedSchema:
    if name == "Thing":
        return structural_schema(json.loads((HERE / "thing_schema.json").read_bytes()), definitions())
    return builtin_schema(definitions(), name)


def replay(step: Object, live: Object | None, schema: TypedSchema) -> Object:
    """Returns the object that a step stores, or the Status that rejects the step."""
    version = step["object"]["apiVersion"]
    more = {key: step[key] for key in ("subresource", "reset_fields") if key in step}
    operation = Operation(schema, step["manager"], version, now=step["now"], **more)
    if step["operation"] == "update":
        return update(live, step["object"], operation)
    try:
        return apply(live, step["object"], operation, force=step.get("force", False))
    except StatusError as error:
        return error.status


def stored(obj: Object, custom: bool) -> Object:
    """An object as decoding and defaulting leave it, without what the registry sets."""
    obj = copy.deepcopy(obj)
    for key in ("managedFields", "uid", "creationTimestamp", "resourceVersion", "generation", "namespace"):
        obj["metadata"].pop(key, None)
    for port in (obj.get("spec") or {}).get("ports", ()) if custom else ():
        port.setdefault("protocol", "TCP")
    return obj | {"metadata": without_empty(obj["metadata"])} if custom else without_empty(obj)


def without_empty(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    kept = {key: without_empty(item) for key, item in value.items()}
    return {key: item for key, item in kept.items() if item not in (None, {}, [])}


@pytest.mark.parametrize(
    "sequence", SEQUENCES, ids=[f"{i}-{s['type'].rsplit('.', 1)[-1]}" for i, s in enumerate(SEQUENCES)]
)
def test_a_real_server_gives_equal_answers(sequence: Object) -> None:
    schema, custom = schema_of(sequence["type"]), sequence["type"] == "Thing"
    live = None
    for i, step in enumerate(sequence["steps"]):
        before = copy.deepcopy((live, step["object"]))
        got, answer = replay(step, live, schema), step["answer"]
        assert (live, step["object"]) == before, f"step {i} changed its input"
        if step["code"] >= 400:
            assert got["code"] == answer["code"]
            # The server lists managers in random order in the causes, and sorted in the message.
            assert got["message"] == answer["message"]
            assert sorted(map(str, got["details"]["causes"])) == sorted(map(str, answer["details"]["causes"]))
            continue
        assert got["metadata"].get("managedFields") == answer["metadata"].get("managedFields"), f"step {i}"
        if not custom:
            assert json.dumps(got["metadata"].get("managedFields")) == json.dumps(
                answer["metadata"].get("managedFields")
            )
        if step["operation"] == "apply" and (custom or sequence["type"].endswith(".ConfigMap")):
            assert stored(got, custom) == stored(answer, custom), f"step {i}"
        live = answer
