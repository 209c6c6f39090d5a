"""Validation of updates of a pod's status."""

from typing import Any

import pytest

from fakeapiserver.registry.core.pod.status_validation import status_update_errors

Json = dict[str, Any]
RULE = {"action": "Restart", "exitCodes": {"operator": "In", "values": [3]}}
SPEC: Json = {
    "nodeName": "n1",
    "restartPolicy": "Never",
    "resourceClaims": [{"name": "dev"}],
    "containers": [
        {"name": "c", "resources": {"requests": {"cpu": "1"}, "claims": [{"name": "dev"}]}},
        {"name": "again", "restartPolicy": "Never", "restartPolicyRules": [RULE]},
    ],
}


def of_container(name: str = "c", **more: Any) -> Json:
    return {"containerStatuses": [{"name": name, **more}]}


def ended(name: str, code: int) -> Json:
    return of_container(name, state={"terminated": {"exitCode": code}})


@pytest.mark.parametrize(
    ("status", "before", "complaint"),
    [
        ({"conditions": [{"type": ""}]}, {}, "status.conditions[0].Type: Invalid value"),
        ({"conditions": [{"type": "Ready", "observedGeneration": -1}]}, {}, "must be a non-negative integer"),
        ({"nominatedNodeName": "n2"}, {}, "may not be set on pods that are already bound to a node"),
        ({"nominatedNodeName": "n2"}, {"nominatedNodeName": "n2"}, ""),
        (of_container(state={"running": {}}), ended("c", 0), "containerStatuses[0].state: Forbidden: may not be trans"),
        (of_container("again", state={"running": {}}), ended("again", 3), ""),
        (of_container("again", state={"running": {}}), ended("again", 4), "may not be transitioned"),
        ({"resourceClaimStatuses": [{"name": "x"}]}, {}, "must match the name of an entry in `spec.resourceClaims`"),
        ({"resourceClaimStatuses": [{"name": "dev"}] * 2}, {}, 'Duplicate value: "dev"'),
        ({"extendedResourceClaimStatus": {}}, {}, "at least one request mapping is required"),
        (
            {"podIPs": [{"ip": "1.2.3.4"}, {"ip": "x"}]},
            {},
            "failed to check for dual stack with error:invalid IP[1]: x",
        ),
        ({"podIPs": [{"ip": "1.2.3.4"}, {"ip": "fd00::1"}]}, {}, ""),
        (of_container(user={"linux": {"uid": -1}}), {}, "user.linux.uid: Invalid value: -1"),
        (
            of_container(allocatedResourcesStatus=[{"name": "gpu"}]),
            {},
            "must match one of the container's resource requ",
        ),
        (of_container(allocatedResourcesStatus=[{"name": "claim:dev"}]), {}, ""),
    ],
)
def test_status_updates(status: Json, before: Json, complaint: str) -> None:
    problems = "; ".join(map(str, status_update_errors(status, before, SPEC)))
    assert complaint in problems if complaint else not problems
