"""Built-in kinds decode as a real server (v1.36.3) decoded the recorded bodies.

builtin_cases.json: kind, body and what the server said: `error` (the tail of its 400), or `unknown` (its warnings) and
`decoded` (the part of its answer that decoding alone decides; its own defaults are left out). builtin_mismatches.json: one
wrong value each, in fields of all kinds, and the tail of the server's 400.
"""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fakeapiserver
from fakeapiserver.apimachinery.schema.builtin import BuiltinType, DecodeError, compile_builtin
from fakeapiserver.apimachinery.serializer import json as json_serializer

DEFINITIONS = json.loads((Path(fakeapiserver.__file__).parent / "apis/versions/v1.36/schemas.json").read_bytes())
CASES = json.loads(Path(__file__).with_name("builtin_cases.json").read_bytes())
MISMATCHES = json.loads(Path(__file__).with_name("builtin_mismatches.json").read_bytes())
FIELDS = [
    "containers",
    "name",
    "ports",
    "env",
    "resources",
    "limits",
    "volumes",
    "hostNetwork",
    "emptyDir",
    "nodeSelector",
    "x",
]


def kind(name: str) -> BuiltinType:
    return compile_builtin(DEFINITIONS, f"io.k8s.api.{name}")


@pytest.mark.parametrize("case", CASES)
def test_decodes_as_the_server_does(case: dict[str, Any]) -> None:
    obj = copy.deepcopy(case["body"])
    compiled = compile_builtin(DEFINITIONS, case["kind"])
    if "error" in case:
        body = json_serializer.decode_as_written(json.dumps(obj).encode())
        with pytest.raises(DecodeError) as raised:
            compiled.decode(body)
        assert str(raised.value) == case["error"]
        assert body == obj
        return
    assert compiled.decode(obj) == case["unknown"]
    assert obj == case["decoded"]


@pytest.mark.parametrize("case", MISMATCHES, ids=lambda case: case["error"].partition("into ")[2] or case["error"])
def test_reports_mismatches_with_gos_messages(case: dict[str, Any]) -> None:
    with pytest.raises(DecodeError) as raised:
        compile_builtin(DEFINITIONS, case["kind"]).decode(case["body"])
    assert str(raised.value) == case["error"]


@pytest.mark.parametrize("case", [c for c in CASES if "decoded" in c])
def test_what_is_decoded_decodes_to_itself(case: dict[str, Any]) -> None:
    again = copy.deepcopy(case["decoded"])
    assert compile_builtin(DEFINITIONS, case["kind"]).decode(again) == []
    assert again == case["decoded"]


@pytest.mark.parametrize("name", [name for name, schema in DEFINITIONS.items() if "properties" in schema])
def test_every_definition_compiles(name: str) -> None:
    assert compile_builtin(DEFINITIONS, name).decode({}) == []


def test_zero_values_appear_where_go_has_no_omitempty() -> None:
    pod: dict[str, Any] = {"spec": {"containers": [None]}}
    kind("core.v1.Pod").decode(pod)
    assert pod == {"metadata": {}, "spec": {"containers": [{"name": "", "resources": {}}]}, "status": {}}


def test_optional_zero_values_vanish_unless_a_pointer_holds_them() -> None:
    deployment: dict[str, Any] = {"spec": {"replicas": 0, "paused": False, "minReadySeconds": 0}}
    kind("apps.v1.Deployment").decode(deployment)
    assert deployment["spec"]["replicas"] == 0
    assert deployment["spec"].keys() == {"replicas", "selector", "template", "strategy"}


def test_the_first_mismatch_is_reported_and_a_malformed_scalar_ends_the_reading() -> None:
    service = {"spec": {"ports": [{"port": "x"}], "type": 5}}
    with pytest.raises(DecodeError, match=r"ServicePort\.spec\.ports\.port of type int32$"):
        kind("core.v1.Service").decode(service)
    pod = {"spec": {"hostNetwork": 1, "overhead": {"cpu": "x"}}}
    with pytest.raises(DecodeError, match=r"^quantities must match"):
        kind("core.v1.Pod").decode(pod)


@pytest.mark.parametrize(
    ("spec", "decoded"),
    [
        # lists element by element, of which null leaves what is there; what is beyond the second one's end is gone
        (
            '"containers":[{"name":"a","image":"x"},{"name":"b"}],"containers":[{"image":"y"}]',
            {"name": "a", "image": "y"},
        ),
        ('"containers":[{"name":"a","command":["x","y"],"command":[null]}]', {"name": "a", "command": ["x"]}),
        (
            '"containers":[{"name":"a","command":["x"],"command":[null,null,"z"]}]',
            {"name": "a", "command": ["x", "", "z"]},
        ),
        # null leaves scalars, and empties what may be absent
        ('"containers":[{"name":"a","name":null,"tty":true,"tty":null}]', {"name": "a", "tty": True}),
        ('"containers":[{"name":"a","lifecycle":{"preStop":{}},"lifecycle":null}]', {"name": "a"}),
        ('"containers":[{"name":"a","command":["x"],"command":null}]', {"name": "a"}),
        # structs add up, at any depth
        (
            '"containers":[{"name":"a","lifecycle":{"preStop":{"sleep":{}}},"lifecycle":{"preStop":{"sleep":{"seconds":3}}}}]',
            {"name": "a", "lifecycle": {"preStop": {"sleep": {"seconds": 3}}}},
        ),
        # maps get more keys
        (
            '"containers":[{"name":"a","resources":{"limits":{"cpu":"1"},"limits":{"memory":"1"}}}]',
            {"name": "a", "resources": {"limits": {"cpu": "1", "memory": "1"}}},
        ),
    ],
)
def test_a_key_that_stands_twice_is_decoded_into_what_is_there(spec: str, decoded: Any) -> None:
    obj, _ = json_serializer.with_duplicates(f'{{"spec":{{{spec}}}}}'.encode())
    kind("core.v1.Pod").decode(obj)
    container = obj["spec"]["containers"][0]
    assert {key: value for key, value in container.items() if value or key != "resources"} == decoded
    assert len(obj["spec"]["containers"]) == 1


def test_the_first_mismatch_of_duplicate_keys_is_reported() -> None:
    obj, _ = json_serializer.with_duplicates(b'{"spec":{"hostNetwork":true,"hostname":5,"hostNetwork":"x"}}')
    with pytest.raises(DecodeError, match=r"number into Go struct field PodSpec\.spec\.hostname of type string"):
        kind("core.v1.Pod").decode(obj)


def test_at_most_a_hundred_unknown_fields_are_reported() -> None:
    assert len(kind("core.v1.Pod").decode({f"f{i}": 1 for i in range(150)})) == 100


@pytest.mark.parametrize(
    ("name", "spec", "expected"),
    [
        (
            "core.v1.Pod",
            {"containers": [{"ports": [{"containerPort": 5}, {"containerPort": 6, "protocol": "UDP"}]}]},
            [{"containerPort": 5, "protocol": "TCP"}, {"containerPort": 6, "protocol": "UDP"}],
        ),
        (
            "apps.v1.Deployment",
            {"template": {"spec": {"initContainers": [{"ports": [{"containerPort": 5, "protocol": ""}]}]}}},
            [{"containerPort": 5, "protocol": "TCP"}],
        ),
        ("core.v1.Service", {"ports": [{"port": 80}]}, [{"port": 80, "targetPort": 0, "protocol": "TCP"}]),
    ],
)
def test_static_defaults(name: str, spec: dict[str, Any], expected: Any) -> None:
    obj = {"spec": spec}
    compiled = kind(name)
    compiled.decode(obj)
    compiled.default(obj)
    found = obj["spec"].get("template", obj)["spec"]
    containers = found.get("containers") or found.get("initContainers") or [found]
    assert containers[0]["ports"] == expected


def test_an_empty_text_behind_a_pointer_stays() -> None:
    pod: dict[str, Any] = {"spec": {"volumes": [{"name": "x", "azureDisk": {"diskName": "a", "fsType": ""}}]}}
    kind("core.v1.Pod").decode(pod)
    kind("core.v1.Pod").default(pod)
    disk = {"diskName": "a", "diskURI": "", "fsType": "", "cachingMode": "ReadWrite", "kind": "Shared"}
    assert pod["spec"]["volumes"][0]["azureDisk"] == disk


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=5),
    max_leaves=20,
)


@settings(max_examples=150)
@given(spec=st.dictionaries(st.sampled_from(FIELDS), JSON_VALUES, max_size=6))
def test_any_body_is_decoded_once_and_for_all_or_refused(spec: dict[str, Any]) -> None:
    pod = {"spec": spec}
    try:
        kind("core.v1.Pod").decode(pod)
    except DecodeError:
        return
    once = copy.deepcopy(pod)
    assert kind("core.v1.Pod").decode(pod) == []
    assert pod == once
