"""The symptoms in the record of a case."""

from typing import Any

import pytest

from fakeapiserver.sweep import states
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


def steps(*values: str) -> list[dict[str, str]]:
    """The uids before the surprise of each step and after it."""
    return [each for value in values for each in uids(value, value)]


@pytest.mark.parametrize(
    ("disturbed", "known", "is_kept"),
    [
        pytest.param(steps("a", "a", "a"), [True] * 3, True, id="never replaced"),
        pytest.param(steps("a", "b", "b"), [True] * 3, False, id="replaced"),
        pytest.param(steps("a", "a", "b"), [True] * 3, False, id="replaced late"),
        pytest.param(steps("a", "", "b"), [True] * 3, False, id="deleted and made again later"),
        pytest.param(steps("a", "a", "a"), [True, False, True], False, id="not all states were seen"),
        pytest.param(steps("", "a", "a"), [True] * 3, False, id="made late"),
    ],
)
def test_objects_that_are_not_replaced(disturbed: list[dict[str, str]], known: list[bool], is_kept: bool) -> None:
    undisturbed = [steps("a", "b", "b"), steps("c", "d", "d")]
    expected = Expected([], replaced=states.replaced(*undisturbed))
    symptoms = judge(Run(uids=disturbed, known=known), Run(uids=undisturbed[0]), expected, Scenario())
    assert [each.text for each in symptoms if each.kind == "kept"] == (
        ["the Pod default/db stays, although the undisturbed run replaces it"] if is_kept else []
    )


@pytest.mark.parametrize(
    ("second", "ignore"),
    [
        pytest.param(steps("c", "c"), [], id="by one of two undisturbed runs"),
        pytest.param(steps("c", ""), [], id="deleted by one of them"),
        pytest.param(steps("c", "d"), ["pods"], id="ignored"),
    ],
)
def test_what_is_not_always_replaced(second: list[dict[str, str]], ignore: list[str]) -> None:
    assert states.replaced(steps("a", "b"), second, ignore) == [set(), set()]
