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


def uids(*values: str) -> list[dict[str, str]]:
    return [{"pods default/db": value} if value else {} for value in values]


@pytest.mark.parametrize(
    ("undisturbed", "disturbed", "is_lost"),
    [
        pytest.param(uids("a", "a"), uids("a", "a"), False, id="kept"),
        pytest.param(uids("a", "a"), uids("a", ""), True, id="deleted"),
        pytest.param(uids("a", "a"), uids("a", "b"), True, id="made again"),
        pytest.param(uids("a", ""), uids("a", ""), False, id="deleted undisturbed, too"),
        pytest.param(uids("a", "b", "b"), uids("a", "a", "b"), False, id="replaced late"),
        pytest.param(uids("a", "b", "b"), uids("a", "b", "c"), True, id="replaced once more"),
    ],
)
def test_lost_objects(undisturbed: list[dict[str, str]], disturbed: list[dict[str, str]], is_lost: bool) -> None:
    symptoms = judge(Run(uids=disturbed), Run(uids=undisturbed), Expected([]), Scenario())
    assert [each.kind for each in symptoms] == (["lost"] if is_lost else [])
