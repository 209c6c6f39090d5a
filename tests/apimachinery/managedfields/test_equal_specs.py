"""The fields of a new object are those that differ from the schema's empty one, whether its spec was seen before or not."""

import json
from typing import Any

import pytest

from fakeapiserver.apimachinery.managedfields import Operation, update
from fakeapiserver.apimachinery.managedfields.compare import compare
from fakeapiserver.apimachinery.managedfields.fieldset import OrderedFields, in_order
from fakeapiserver.apimachinery.managedfields.typed import NoPathElement, TypedSchema, builtin_schema, structural_schema
from fakeapiserver.apis.scheme import load

_DEFINITIONS = load().definitions
_POD = builtin_schema(_DEFINITIONS, "io.k8s.api.core.v1.Pod")
_DEPLOYMENT = builtin_schema(_DEFINITIONS, "io.k8s.api.apps.v1.Deployment")
_CUSTOM = structural_schema({"type": "object", "properties": {"spec": {"type": "object"}}}, _DEFINITIONS)
_CONTAINER = {"name": "web", "ports": [{"containerPort": 80, "protocol": "TCP"}], "env": [{"name": "b"}, {"name": "a"}]}


def pod(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a", "labels": {"a": "b"}}, "spec": spec, "status": {"phase": "Pending"}}


@pytest.mark.parametrize("schema", [_POD, _DEPLOYMENT, _CUSTOM])
@pytest.mark.parametrize(
    "new",
    [
        pod(containers=[_CONTAINER]),
        pod(containers=[_CONTAINER], nodeName="n"),
        pod(containers=[{**_CONTAINER, "name": "other"}], hostNetwork=True),
        pod(replicas=1),
        pod(replicas=1.0),
        pod(replicas=True),
        pod(replicas=None),
        pod(),
        {"metadata": {"name": "a"}},
        {"metadata": {"name": "a"}, "spec": None},
        {"metadata": {"name": "a"}, "spec": []},
        {**pod(containers=[_CONTAINER]), "data": {"a": "b"}},
        pod(nodeName="n" * (20 << 10)),
    ],
)
def test_equal_specs_have_equal_fields(schema: TypedSchema, new: dict[str, Any]) -> None:
    first, again = compare(None, new, schema), compare(None, new, schema)
    assert first == again == compare(schema.empty, new, schema)
    added = again[0].get("f:spec")
    if isinstance(added, OrderedFields):
        # what is shared is written as it is
        assert json.dumps(in_order(added)) == json.dumps(in_order({**added}))


def test_a_spec_without_path_elements_is_refused_each_time() -> None:
    for _ in range(2):
        with pytest.raises(NoPathElement):
            compare(None, pod(containers=[None]), _POD)


def test_stored_sets_are_plain() -> None:
    operation = Operation(_POD, "web", "v1")
    for _ in range(2):
        stored = update(None, pod(containers=[_CONTAINER]), operation)
        fields = stored["metadata"]["managedFields"][0]["fieldsV1"]
        assert {type(node) for node in (fields, *fields.values())} == {dict}
