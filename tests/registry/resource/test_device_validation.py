"""Validation of device claims, classes and slices."""

from typing import Any

import pytest

from fakeapiserver.registry.resource.claim_status_validation import claim_status_errors
from fakeapiserver.registry.resource.claim_validation import claim_spec_errors, class_errors
from fakeapiserver.registry.resource.slice_validation import slice_errors

NAMED = {"name": "gpu", "exactly": {"deviceClassName": "x", "allocationMode": "ExactCount", "count": 1}}
DEVICE = {"request": "gpu", "driver": "d", "pool": "p", "device": "a"}
NO_REQUEST = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"


@pytest.mark.parametrize(
    ("devices", "problems"),
    [
        ({"requests": [NAMED]}, []),
        (
            {"requests": [NAMED, NAMED, {"name": "none"}]},
            [
                "requests[2]: Required value: exactly one of `exactly` or `firstAvailable` is required",
                'requests[1]: Duplicate value: "gpu"',
            ],
        ),
        (
            {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "x", "allocationMode": "All", "count": 1}}]},
            ["requests[0].exactly.count: Invalid value: 1: must not be specified when allocationMode is 'All'"],
        ),
        (
            {"requests": [NAMED], "constraints": [{"requests": ["cpu"], "matchAttribute": "numa"}]},
            [
                f'constraints[0].requests[0]: Invalid value: "cpu": {NO_REQUEST}',
                'constraints[0].matchAttribute: Invalid value: "numa": '
                "a fully qualified name must be a domain and a name separated by a slash",
            ],
        ),
        (
            {"requests": [NAMED], "config": [{"opaque": {"driver": "d", "parameters": [1]}}, {}]},
            [
                'config[0].opaque.parameters: Invalid value: "<value omitted>": must be a valid JSON object',
                "config[1].opaque: Required value",
            ],
        ),
        ({"requests": [NAMED] * 33}, ["requests: Too many: 33: must have at most 32 items"]),
    ],
)
def test_claims(devices: dict[str, Any], problems: list[str]) -> None:
    assert [str(error).removeprefix("spec.devices.") for error in claim_spec_errors({"devices": devices})] == problems


def test_parameters_may_stay_as_long_as_they_were() -> None:
    spec = {"config": [{"opaque": {"driver": "d", "parameters": {"a": "x" * 10240}}}]}
    assert [error.reason for error in class_errors(spec)] == ["FieldValueTooLong"]
    assert class_errors(spec, spec) == []


@pytest.mark.parametrize(
    ("device", "problems"),
    [
        ({"attributes": {"model": {"string": "a"}, "example.com/numa": {"int": 0}}}, []),
        (
            {"attributes": {"v": {"version": "1.2"}, "two": {"int": 1, "bool": True}, "none": {}}},
            [
                'attributes[v].version: Invalid value: "1.2": must be a string compatible with semver.org spec 2.0.0',
                'attributes[two]: Invalid value: {"IntValue":1,"BoolValue":true,"StringValue":null,"VersionValue":null,'
                '"IntValues":null,"BoolValues":null,"StringValues":null,"VersionValues":null}: '
                "exactly one value must be specified",
                'attributes[none]: Invalid value: "": exactly one value must be specified',
            ],
        ),
        (
            {"capacity": {"memory": {"value": "1Gi", "requestPolicy": {}}}},
            ["capacity[memory].requestPolicy: Forbidden: allowMultipleAllocations must be true"],
        ),
        (
            {
                "allowMultipleAllocations": True,
                "capacity": {
                    "a": {"value": "10", "requestPolicy": {"default": "3", "validValues": ["1", "2"]}},
                    "b": {"value": "10", "requestPolicy": {"default": "3", "validRange": {"min": "2", "step": "4"}}},
                },
            },
            [
                'capacity[a].requestPolicy.validValues: Invalid value: "3": '
                "default value is not valid according to the requestPolicy",
                'capacity[b].requestPolicy.validRange.step: Invalid value: "3": '
                "value is not a multiple of a given step (4) from (2)",
            ],
        ),
        (
            {"bindingConditions": ["a", "a"], "bindingFailureConditions": ["a"]},
            [
                'bindingConditions[1]: Duplicate value: "a"',
                'bindingFailureConditions[0]: Invalid value: "a": '
                "bindingFailureConditions must not overlap with bindingConditions",
            ],
        ),
        (
            {"nodeName": "n"},
            [
                ": Invalid value: null: `nodeName`, `nodeSelector` and `allNodes` can only be set if "
                "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
            ],
        ),
    ],
)
def test_devices(device: dict[str, Any], problems: list[str]) -> None:
    pool = {"name": "p", "resourceSliceCount": 1}
    errors = slice_errors({"driver": "d", "pool": pool, "nodeName": "n", "devices": [{"name": "a", **device}]})
    assert [str(error).removeprefix("spec.devices[0]").removeprefix(".") for error in errors] == problems


@pytest.mark.parametrize(
    ("status", "problems"),
    [
        ({"allocation": {"devices": {"results": [DEVICE]}}, "devices": [DEVICE]}, []),
        (
            {"devices": [{**DEVICE, "device": "b"}]},
            [
                'devices[0]: Invalid value: {"Driver":"d","Pool":"p","Device":"b","ShareID":""}: '
                "must be an allocated device in the claim"
            ],
        ),
        (
            {"allocation": {"devices": {"results": [{**DEVICE, "request": "no", "shareID": "x"}]}}},
            [
                f'allocation.devices.results[0].request: Invalid value: "no": {NO_REQUEST}',
                'allocation.devices.results[0].shareID: Invalid value: "x": '
                "error validating uid: invalid UUID length: 1",
            ],
        ),
        (
            {"reservedFor": [{"resource": "pods", "name": "x", "uid": "1"}] * 2},
            [
                'reservedFor[1]: Duplicate value: "1"',
                "reservedFor: Forbidden: may not be specified when `allocated` is not set",
            ],
        ),
        (
            {
                "allocation": {"devices": {"results": [DEVICE]}},
                "devices": [{**DEVICE, "networkData": {"ips": ["10.0.0.1", "10.0.0.01/8", "2001:DB8::1/64"]}}],
            },
            [
                'devices[0].networkData.ips[0]: Invalid value: "10.0.0.1": '
                "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)",
                'devices[0].networkData.ips[1]: Invalid value: "10.0.0.01/8": must be in canonical form ("10.0.0.1/8")',
                'devices[0].networkData.ips[2]: Invalid value: "2001:DB8::1/64": '
                'must be in canonical form ("2001:db8::1/64")',
            ],
        ),
    ],
)
def test_statuses(status: dict[str, Any], problems: list[str]) -> None:
    claim = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [NAMED]}}}
    assert [
        str(error).removeprefix("status.") for error in claim_status_errors(claim, status, {}, allocates=True)
    ] == problems
