"""Policies of jobs that a server refuses, in the words of the real one."""

from typing import Any

import pytest

import fakeapiserver.registry.core  # noqa: F401  (the groups' packages import parts of each other, this one first)
from fakeapiserver.apimachinery.field import Path
from fakeapiserver.registry.batch.job_policy_validation import pod_failure_policy_errors, success_policy_errors
from fakeapiserver.registry.batch.job_validation import job_spec_errors

Object = dict[str, Any]
TEMPLATE = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}}


def codes(**requirement: Any) -> Object:
    return {"action": "Count", "onExitCodes": {"operator": "In", "values": [1], **requirement}}


@pytest.mark.parametrize(
    ("rule", "errors"),
    [
        (codes(), []),
        (codes(containerName="d"), ["onExitCodes.containerName"]),
        (codes(values=[]), ["onExitCodes.values"]),
        (codes(values=[0, 1]), ["onExitCodes.values[0]"]),
        (codes(operator="NotIn", values=[0, 1]), []),
        (codes(values=[2, 1]), ["onExitCodes.values"]),
        (codes(values=[1, 1]), ["onExitCodes.values[1]"]),
        (codes(values=[*range(1, 258)]), ["onExitCodes.values"]),
        (codes(operator="Out"), ["onExitCodes.operator"]),
        ({**codes(), "action": "FailIndex"}, ["action"]),  # without a limit for each index
        ({**codes(), "action": ""}, ["action"]),
        ({"action": "Count"}, [""]),
        ({**codes(), "onPodConditions": [{"type": "Ready", "status": "True"}]}, [""]),
        (
            {"action": "Ignore", "onPodConditions": [{"type": "a b", "status": "Maybe"}]},
            ["onPodConditions[0].type", "onPodConditions[0].status"],
        ),
    ],
)
def test_rules_for_pods_that_fail(rule: Object, errors: list[str]) -> None:
    spec = {"template": TEMPLATE, "podFailurePolicy": {"rules": [rule]}}
    reported = pod_failure_policy_errors(spec, Path("p"))
    assert [error.field.removeprefix("p.rules[0]").removeprefix(".") for error in reported] == errors


@pytest.mark.parametrize(
    ("rule", "details"),
    [
        ({"succeededIndexes": "0,2-4"}, []),
        ({"succeededIndexes": "0,2-4", "succeededCount": 4}, []),
        ({}, ["at least one of succeededCount or succeededIndexes must be specified"]),
        ({"succeededIndexes": "5"}, ['error parsing succeededIndexes: too large index: "5"']),
        (
            {"succeededIndexes": "x"},
            ['error parsing succeededIndexes: cannot convert string to integer for index: "x"'],
        ),
        (
            {"succeededIndexes": "3-1"},
            ["error parsing succeededIndexes: non-increasing order, previous: 3, current: 1"],
        ),
        (
            {"succeededIndexes": "1,1"},
            ["error parsing succeededIndexes: non-increasing order, previous: 1, current: 1"],
        ),
        ({"succeededCount": 6}, ["must be less than or equal to 5 (the number of specified completions)"]),
        (
            {"succeededIndexes": "0-1", "succeededCount": 3},
            ["must be less than or equal to 2 (the number of indexes in the specified succeededIndexes field)"],
        ),
    ],
)
def test_rules_for_success(rule: Object, details: list[str]) -> None:
    errors = success_policy_errors({"completions": 5, "successPolicy": {"rules": [rule]}}, Path("p"))
    assert [error.detail for error in errors] == details


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        ({"maxFailedIndexes": 2}, []),
        ({"maxFailedIndexes": 4}, ["maxFailedIndexes"]),  # of three
        ({"parallelism": 100_001}, ["parallelism"]),
        ({"completions": 100_001}, ["maxFailedIndexes"]),  # must be said then
        (
            {"completions": 100_001, "parallelism": 10_001, "maxFailedIndexes": 10_001},
            ["parallelism", "maxFailedIndexes"],
        ),
        ({"managedBy": "nobody"}, ["managedBy"]),
        ({"managedBy": "example.com/" + "x" * 60}, ["managedBy"]),
        ({"successPolicy": {"rules": []}}, ["successPolicy.rules"]),
    ],
)
def test_limits_of_indexed_jobs(spec: Object, errors: list[str]) -> None:
    job = {"template": TEMPLATE, "completionMode": "Indexed", "completions": 3, "backoffLimitPerIndex": 1, **spec}
    fields = [error.field.removeprefix("spec.") for error in job_spec_errors(job, Path("spec"))]
    assert [name for name in fields if not name.startswith("template.")] == errors  # which has no defaults here
