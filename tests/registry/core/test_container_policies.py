"""Validation of a container's resize policy, restart policy and claims, as the real server does it."""

from typing import Any

import pytest

from fakeapiserver.apimachinery.field import Path
from fakeapiserver.registry.core.pod.container_policies import (
    claim_errors,
    init_resize_policy_errors,
    resize_policy_errors,
    restart_policy_errors,
)

Object = dict[str, Any]
IN_PLACE = {"resourceName": "cpu", "restartPolicy": "NotRequired"}
AGAIN = {"resourceName": "memory", "restartPolicy": "RestartContainer"}


@pytest.mark.parametrize(
    ("policies", "pod_policy", "errors"),
    [
        ([IN_PLACE, AGAIN], "Always", []),
        ([IN_PLACE, IN_PLACE], "Always", ['c.resizePolicy[1]: Duplicate value: "cpu"']),
        (
            [{"resourceName": "pods", "restartPolicy": "NotRequired"}],
            "Always",
            ['c.resizePolicy: Unsupported value: "pods": supported values: "cpu", "memory"'],
        ),
        (
            [{"resourceName": "cpu", "restartPolicy": "Wrong"}],
            "Always",
            ['c.resizePolicy: Unsupported value: "Wrong": supported values: "NotRequired", "RestartContainer"'],
        ),
        (
            [AGAIN],
            "Never",
            [
                "c.resizePolicy: Invalid value: \"RestartContainer\": must be 'NotRequired' "
                "when pod `restartPolicy` is 'Never'"
            ],
        ),
    ],
)
def test_resize_policies(policies: list[Object], pod_policy: str, errors: list[str]) -> None:
    assert [str(one) for one in resize_policy_errors(policies, pod_policy, Path("c.resizePolicy"))] == errors


def test_who_runs_once_is_not_begun_again_for_a_resize() -> None:
    [error] = init_resize_policy_errors({"resizePolicy": [IN_PLACE, AGAIN]}, Path("c"))
    assert str(error) == (
        "c.resizePolicy[1].restartPolicy: Invalid value: \"RestartContainer\": must not be set to 'RestartContainer' "
        "for non-sidecar initContainers"
    )


RULE = {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}


@pytest.mark.parametrize(
    ("container", "errors"),
    [
        ({}, []),
        ({"restartPolicy": "Never", "restartPolicyRules": [RULE]}, []),
        (
            {"restartPolicyRules": [RULE]},
            ["c.restartPolicy: Required value: must specify restartPolicy when restart rules are used"],
        ),
        (
            {"restartPolicy": "Sometimes"},
            ['c.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "Never", "OnFailure"'],
        ),
        (
            {"restartPolicy": "Never", "restartPolicyRules": [RULE] * 21},
            ["c.restartPolicyRules: Too many: 21: must have at most 20 items"],
        ),
        (
            {"restartPolicy": "Never", "restartPolicyRules": [{"action": "Stop"}]},
            [
                'c.restartPolicyRules[0].action: Unsupported value: "Stop": '
                'supported values: "Restart", "RestartAllContainers"',
                "c.restartPolicyRules[0].exitCodes: Required value: must be specified",
            ],
        ),
    ],
)
def test_restart_policies(container: Object, errors: list[str]) -> None:
    assert [str(one) for one in restart_policy_errors(container, Path("c"))] == errors


@pytest.mark.parametrize(
    ("claims", "known", "errors"),
    [
        ([{"name": "gpu"}], {"gpu"}, []),
        ([{"name": "gpu", "request": "a"}, {"name": "gpu", "request": "b"}], {"gpu"}, []),
        ([{"name": "gpu"}, {"name": "gpu", "request": "a"}], {"gpu"}, ['c[1]: Duplicate value: "gpu"']),
        ([{"name": "gpu", "request": "a"}, {"name": "gpu"}], {"gpu"}, ['c[1]: Duplicate value: "gpu"']),
        (
            [{"name": "gpu"}],
            set(),
            ['c[0]: Not found: "gpu": must be one of the names in pod.spec.resourceClaims which is empty'],
        ),
    ],
)
def test_claims(claims: list[Object], known: set[str], errors: list[str]) -> None:
    assert [str(one) for one in claim_errors(claims, known, Path("c"))] == errors
