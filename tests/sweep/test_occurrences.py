"""Writes of an object are counted in each step, so that a name means the same one in each run."""

from functools import partial
from pathlib import Path

import pytest

from fakeapiserver.sweep import case, scenario
from fakeapiserver.sweep.case import Target
from fakeapiserver.sweep.in_process import InProcess
from fakeapiserver.sweep.planning import naming
from fakeapiserver.sweep.planning import plan as planning
from tests.examples.operators_with_bugs import claims_of_the_former_database as pattern
from tests.examples.operators_with_bugs import databases

TARGET = Target(
    InProcess(partial(pattern.setup, bug=False)),
    scenario.of_document(databases.scenario(pattern.SPEC, pattern.STEPS), Path(), "claims"),
)
CREATE = "create persistentvolumeclaims default/data-db-0"


def test_names_of_writes() -> None:
    assert [str(point) for point, _ in planning.points_of(case.run(TARGET))] == [
        "patch databases.example.com default/db",
        CREATE,
        "delete persistentvolumeclaims default/data-db-0",
        "patch databases.example.com default/db (in step 2)",
        "patch databases.example.com default/db (in step 3)",
        f"{CREATE} (in step 3)",
    ]


@pytest.mark.parametrize(
    ("name", "step"),
    [(f"crash after {CREATE}", 0), (f"crash after {CREATE} (in step 3)", 2), (f"crash after {CREATE} (99th in step 3)", -1)],
)  # fmt: skip
def test_the_write_that_is_struck(name: str, step: int) -> None:
    run = case.run(TARGET, naming.read(name))
    assert (run.reached, run.disturbed) == (step >= 0, step)
