"""The symptoms in the record of a case."""

from typing import Any

import pytest

from fakeapiserver.sweep.case import Expected, Run
from fakeapiserver.sweep.judging import judge
from fakeapiserver.sweep.scenario import Scenario

RIGHT: dict[str, Any] = {"configmaps default/db": {"metadata": {"name": "db"}, "data": {"size": "1"}}}
WRONG: dict[str, Any] = {"configmaps default/db": {"metadata": {"name": "db"}, "data": {"size": "0"}}}


@pytest.mark.parametrize(
    ("states", "disturbed", "has_symptoms"),
    [
        ([RIGHT, RIGHT, WRONG], 1, True),
        ([RIGHT, WRONG, RIGHT], 1, True),
        ([WRONG, RIGHT, RIGHT], 1, False),  # before the surprise
        ([WRONG, RIGHT, RIGHT], 0, True),
        ([RIGHT, RIGHT, RIGHT], 0, False),
    ],
)
def test_only_states_after_the_surprise_count(states: list[Any], disturbed: int, has_symptoms: bool) -> None:
    run = Run(states=states, known=[True] * 3, disturbed=disturbed)
    assert bool(judge(run, Run(), Expected([RIGHT] * 3), Scenario())) == has_symptoms
