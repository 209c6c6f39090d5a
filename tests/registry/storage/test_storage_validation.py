"""Errors in the kinds of the storage group."""

from typing import Any

import pytest

from fakeapiserver.registry.storage import RESOURCES

DRIVER = {"name": "csi.example.com", "nodeID": "n"}
SPEC = {"attachRequired": True, "fsGroupPolicy": "File", "volumeLifecycleModes": ["Persistent"]}
CLASS = {"provisioner": "x", "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}
ATTACHMENT = {"attacher": "x", "nodeName": "n", "source": {"persistentVolumeName": "v"}}


def told(resource: str, obj: dict[str, Any]) -> list[str]:
    return [str(error) for error in RESOURCES[resource].validate({"metadata": {"name": "x"}, **obj})]


def token(audience: str, seconds: int) -> dict[str, Any]:
    return {"audience": audience, "expirationSeconds": seconds}


def topology(*values: str, key: str = "zone") -> dict[str, Any]:
    return {"matchLabelExpressions": [{"key": key, "values": list(values)}]}


@pytest.mark.parametrize(
    ("drivers", "expected"),
    [
        ([DRIVER], []),
        ([DRIVER, DRIVER], ['spec.drivers[1].name: Duplicate value: "csi.example.com"']),
        ([{"name": "a", "nodeID": ""}], ["spec.drivers[0].nodeID: Required value"]),
        ([{**DRIVER, "topologyKeys": ["a", "a"]}], ['spec.drivers[0]: Duplicate value: "a"']),
        (
            [{**DRIVER, "allocatable": {"count": -1}}],
            ["spec.drivers[0].allocatable.count: Invalid value: -1: must be greater than or equal to 0"],
        ),
    ],
)
def test_nodes_of_drivers(drivers: list[dict[str, Any]], expected: list[str]) -> None:
    assert told("csinodes", {"spec": {"drivers": drivers}}) == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, []),
        (
            {"fsGroupPolicy": "x"},
            ['spec.fsGroupPolicy: Unsupported value: "x": supported values: "File", "None", "ReadWriteOnceWithFSType"'],
        ),
        (
            {"volumeLifecycleModes": ["x"]},
            ['spec.volumeLifecycleModes: Unsupported value: "x": supported values: "Persistent", "Ephemeral"'],
        ),
        (
            {"nodeAllocatableUpdatePeriodSeconds": 9},
            ["spec.nodeAllocatableUpdatePeriodSeconds: Invalid value: 9: must be greater than or equal to 10 seconds"],
        ),
        (
            {"tokenRequests": [token("a", 599), token("a", 1)]},
            [
                "spec.tokenRequests[0].expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes",
                'spec.tokenRequests[1].audience: Duplicate value: "a"',
            ],
        ),
        (
            {"serviceAccountTokenInSecrets": False},
            [
                "spec.serviceAccountTokenInSecrets: Invalid value: false: serviceAccountTokenInSecrets is set but no "
                "tokenRequests are specified"
            ],
        ),
    ],
)
def test_drivers(change: dict[str, Any], expected: list[str]) -> None:
    assert told("csidrivers", {"spec": {**SPEC, **change}}) == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"allowedTopologies": [topology("a"), topology("b")]}, []),
        ({"parameters": {"": "x"}}, ['parameters: Invalid value: "": field can not be empty.']),
        ({"parameters": {str(i): "" for i in range(513)}}, ["parameters: Too long: may not be more than 512 bytes"]),
        (
            {"reclaimPolicy": "Recycle"},
            ['reclaimPolicy: Unsupported value: "Recycle": supported values: "Delete", "Retain"'],
        ),
        (
            {"allowedTopologies": [topology("a", "b"), topology("b", "a")]},
            ['allowedTopologies[1].matchLabelExpressions: Duplicate value: ""'],
        ),
        ({"allowedTopologies": [{}]}, ['allowedTopologies[0].matchLabelExpressions: Duplicate value: ""']),
        (
            {"allowedTopologies": [topology("a", "a")]},
            ['allowedTopologies[0].matchLabelExpressions[0].values[1]: Duplicate value: "a"'],
        ),
    ],
)
def test_storage_classes(change: dict[str, Any], expected: list[str]) -> None:
    assert told("storageclasses", {**CLASS, **change}) == expected


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"attachError": {"message": "x" * 1024}}, []),
        (
            {"attachError": {"message": "x" * 1025}},
            ["status.attachError.message: Too long: may not be more than 262144 bytes"],
        ),
        (
            {"detachError": {"errorCode": -1}},
            ["status.detachError.errorCode: Invalid value: -1: must be between 0 and 2147483647, inclusive"],
        ),
        (
            {"attachmentMetadata": {"a": "x" * 262144}},
            ["status.attachmentMetadata: Too long: may not be more than 262144 bytes"],
        ),
    ],
)
def test_statuses_of_attachments(status: dict[str, Any], expected: list[str]) -> None:
    assert told("volumeattachments", {"spec": ATTACHMENT, "status": status}) == expected
