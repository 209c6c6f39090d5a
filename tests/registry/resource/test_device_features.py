"""Devices with features switched (pkg/apis/resource/validation, k8s.io/dynamic-resource-allocation/cel)."""

import pytest

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apis.feature_gates import feature_gates
from fakeapiserver.registry.resource.claim_validation import claim_spec_errors, device_features
from fakeapiserver.registry.resource.slice_validation import slice_errors

_SHARED = "device.allowMultipleAllocations == true"
_LISTED = "device.attributes['a.b'].list.includes('x')"


def _claim(expression: str) -> Object:
    selectors = [{"cel": {"expression": expression}}]
    exactly = {"deviceClassName": "c", "allocationMode": "ExactCount", "count": 1, "selectors": selectors}
    return {"devices": {"requests": [{"name": "a", "exactly": exactly}], "constraints": [{}]}}


@pytest.mark.parametrize(
    ("expression", "gates", "complaints"),
    [
        (_SHARED, {}, ['constraints[0]: Required value: exactly one of "matchAttribute" or "distinctAttribute"']),
        (
            _SHARED,
            {"DRAConsumableCapacity": False},
            ["undefined field 'allowMultipleAllocations'", "matchAttribute: Req"],
        ),
        (_LISTED, {}, ["undeclared reference to 'includes'", "constraints[0]"]),
        (_LISTED, {"DRAListTypeAttributes": True}, ["constraints[0]"]),
    ],
)
def test_features_decide_what_selectors_know(expression: str, gates: dict[str, bool], complaints: list[str]) -> None:
    features = device_features(feature_gates("v1.36", gates))
    messages = [str(error) for error in claim_spec_errors(_claim(expression), features=features)]
    assert len(messages) == len(complaints)
    assert all(complaint in error for complaint, error in zip(complaints, messages, strict=True))


@pytest.mark.parametrize(
    ("device", "complaint"),
    [
        ({"attributes": {"a": {"strings": ["x", "y"]}}}, ""),
        (
            {"attributes": {"a": {"strings": []}}},
            "attributes[a].strings: Invalid value: []: must not be empty if specified",
        ),
        ({"attributes": {"a": {"versions": ["1"]}}}, "attributes[a].versions[0]: Invalid value"),
        ({"attributes": {"a": {"ints": [1], "int": 1}}}, "exactly one value must be specified"),
        ({"attributes": {"a": {"ints": list(range(49))}}}, "the total number of attribute values must not exceed 48"),
        (
            {"nodeAllocatableResourceMappings": {"cpu": {}}},
            "at least one of allocationMultiplier or capacityKey must be",
        ),
        ({"nodeAllocatableResourceMappings": {"cpu": {"capacityKey": "x"}}}, 'capacityKey: Not found: "x"'),
        ({"nodeAllocatableResourceMappings": {"a.b/c": {"allocationMultiplier": "1"}}}, "must be a node allocatable"),
        ({"nodeAllocatableResourceMappings": {"cpu": {"allocationMultiplier": "0"}}}, "must be positive"),
    ],
)
def test_lists_and_what_devices_take_of_nodes(device: Object, complaint: str) -> None:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d.example.com", "nodeName": "n", "pool": pool, "devices": [{"name": "x", **device}]}
    problems = "; ".join(map(str, slice_errors(spec)))
    assert complaint in problems if complaint else not problems


_UNUSED = "must be referenced by at least one matchAttribute or distinctAttribute constraint targeting this request"


@pytest.mark.parametrize(
    ("expression", "targets", "complaint"),
    [
        ("device.attributes['a.b'].numa", [], ""),
        ("1", ["r"], ""),
        ("1", ["other"], _UNUSED),
        ("1.5", [], "must evaluate to a primitive scalar (string, integer, boolean, semver), not double"),
        ("[1]", [], "must evaluate to a primitive scalar (string, integer, boolean, semver), not list(int)"),
        ("1 +", [], "compilation failed"),
    ],
)
def test_derived_attributes(expression: str, targets: list[str], complaint: str) -> None:
    derived = [{"name": "derived/numa", "expression": expression}]
    exactly = {"deviceClassName": "c", "allocationMode": "All", "derivedAttributes": derived}
    requests = [{"name": name, "exactly": exactly if name == "r" else {"deviceClassName": "c", "allocationMode": "All"}}
                for name in ("r", "other")]  # fmt: skip
    constraints = [{"matchAttribute": "derived/numa", "requests": targets}]
    errors = claim_spec_errors({"devices": {"requests": requests, "constraints": constraints}})
    assert [complaint in str(error) for error in errors] == [True] * bool(complaint)


def test_derived_attributes_share_one_budget() -> None:
    numbers = "[1,2,3,4,5,6,7,8,9,10]"
    expression = "true"
    for depth in range(5):
        expression = f"{numbers}.all(v{depth}, {expression})"
    derived = [{"name": f"derived/n{i}", "expression": expression} for i in range(8)]
    exactly = {"deviceClassName": "c", "allocationMode": "All", "derivedAttributes": derived}
    constraints = [{"matchAttribute": row["name"]} for row in derived]
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}], "constraints": constraints}}
    assert [error.detail for error in claim_spec_errors(spec)] == [
        "too complex, total cost of derived attribute CEL expressions in the claim exceeds cost limit"
    ]
