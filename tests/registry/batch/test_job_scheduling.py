"""The `scheduling` of jobs that kube-apiserver 1.37.2 refuses."""

from typing import Any

import pytest

import fakeapiserver.registry.core  # noqa: F401  (the groups' packages import parts of each other, this one first)
from fakeapiserver.apimachinery.field import Path
from fakeapiserver.apis.feature_gates import feature_gates
from fakeapiserver.registry.batch.job_scheduling import (
    changed_policy_errors,
    declared_scheduling_errors,
    job_scheduling_errors,
)

Object = dict[str, Any]
AT = "spec.scheduling"
POLICY = f"{AT}.schedulingPolicy"
MODE = f"{AT}.disruptionMode"
CLAIM = f"{AT}.resourceClaims"
BASIC, GANG = {"schedulingPolicy": {"basic": {}}}, {"schedulingPolicy": {"gang": {"minCount": 1}}}
ALL = {"disruptionMode": {"all": {}}}
BY_HAND = f'{MODE}: Invalid value: "": the disruptionMode `all` is not supported with the Basic scheduling policy'
ONCE = "Invalid value: null: field cannot be"
VARIANT = (
    "the basic/gang policy variant is immutable after creation; only schedulingPolicy.gang.minCount may be updated"
)
SOURCES = "`resourceClaimName`, `resourceClaimTemplateName`"


def complaints(scheduling: Object | None, before: Object | None = None, *, is_update: bool = False) -> list[str]:
    spec, old = (
        {"parallelism": 2, **({} if value is None else {"scheduling": value})} for value in (scheduling, before)
    )
    features, path = feature_gates("v1.37", {"GenericWorkload": True, "WorkloadWithJob": True}), Path("spec")
    errors = job_scheduling_errors(spec, path) + (changed_policy_errors(spec, old, path) if is_update else [])
    errors += declared_scheduling_errors(spec, old if is_update else None, features, path)
    return [str(error) for error in errors]


@pytest.mark.parametrize(
    ("scheduling", "expected"),
    [
        ({}, []),
        (BASIC, []),
        ({**GANG, **ALL}, []),
        ({"schedulingConstraints": {"topology": [{"key": "a"}]}}, []),
        (ALL, [BY_HAND]),
        ({**BASIC, **ALL}, [BY_HAND]),
        (
            {"disruptionMode": {"single": {}, "all": {}}},
            [f'{MODE}: Invalid value: "{{single, all}}": must specify exactly one of: `single`, `all`'],
        ),
        ({"schedulingPolicy": {}}, [f'{POLICY}: Invalid value: "": must specify one of: `basic`, `gang`']),
        (
            {"schedulingPolicy": {"gang": {"minCount": 0}}},
            [f"{POLICY}.gang.minCount: Invalid value: 0: must be greater than or equal to 1"],
        ),
        (
            {"schedulingPolicy": {"gang": {"minCount": 3}}},
            [f"{POLICY}.gang.minCount: Invalid value: 3: must not be greater than parallelism (2)"],
        ),
        (
            {"resourceClaims": [{"name": ""}]},
            [f'{CLAIM}[0]: Invalid value: "": must specify one of: {SOURCES}', f"{CLAIM}[0].name: Required value"],
        ),
        (
            {"resourceClaims": [{"name": name, "resourceClaimName": "x"} for name in "abcde"]},
            [f"{CLAIM}: Too many: 5: must have at most 4 items"],
        ),
    ],
)
def test_scheduling_of_a_new_job(scheduling: Object, expected: list[str]) -> None:
    assert complaints(scheduling) == expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (None, {}, [f"{AT}: {ONCE} set once created"]),
        ({}, None, [f"{AT}: {ONCE} cleared once set"]),
        ({}, BASIC, [f"{POLICY}: {ONCE} set once created"]),
        (BASIC, GANG, [f"{POLICY}: Invalid value: null: {VARIANT}"]),
        (GANG, {"schedulingPolicy": {"gang": {"minCount": 2}}}, []),
        (GANG, {**GANG, "disruptionMode": {"single": {}}}, [f"{MODE}: Invalid value: null: field is immutable"]),
    ],
)
def test_scheduling_of_a_changed_job(before: Object | None, after: Object | None, expected: list[str]) -> None:
    assert complaints(after, before, is_update=True) == expected
