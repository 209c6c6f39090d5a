"""The changes that an operator could see in an undisturbed run."""

from typing import Any

import pytest

from fakeapiserver.state.changes import ObjectChange
from fakeapiserver.sweep.case import Run
from fakeapiserver.sweep.planning import observations
from fakeapiserver.sweep.planning.observations import Observed

OWNER = {"ownerReferences": [{"kind": "Widget", "name": "w", "uid": "1", "controller": True}]}
RECORD = {"annotations": {"control-plane.alpha.kubernetes.io/leader": "{}"}}


def managed_by(*managers: str) -> dict[str, Any]:
    return {"managedFields": [{"manager": each, "operation": "Update"} for each in managers]}


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({}, [True]),
        (managed_by("kubectl"), [True]),
        (managed_by("kubectl", "kube-controller-manager"), [True]),
        (managed_by("kube-controller-manager", "kube-scheduler"), [False]),
        (OWNER, [False]),
        (RECORD, []),
    ],
)
def test_users_write_what_no_component_writes(metadata: dict[str, Any], expected: list[bool]) -> None:
    created = ObjectChange(1, "configmaps", None, {"metadata": {"name": "db", "namespace": "default", **metadata}})
    [seen] = observations.steps_of(Run(watched=["configmaps"], changes=[created], change_marks=[0, 1]))
    assert [*seen.values()] == [Observed("configmaps", "default/db", 1, each) for each in expected]
