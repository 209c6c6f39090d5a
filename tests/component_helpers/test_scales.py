"""Tests how selectors of scales are converted, and which are invalid."""

import pytest

from fakeapiserver.component_helpers.scales import label_selector


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("app=web", "app=web"),
        ("b==2,a=1", "a=1,b=2"),
        ("tier!=back", "tier notin (back)"),
        ("zone in (b,a),!old,new", "new,!old,zone in (a,b)"),
    ],
)
def test_a_selector_prints_like_a_label_selector(given: str, expected: str) -> None:
    assert str(label_selector(given)) == expected


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (
            "a in (b",
            "couldn't parse the selector string \"a in (b\": unable to parse requirement: found '', expected: ',' or ')'",
        ),
        ("size>3", '"gt" is not a valid label selector operator'),
    ],
)
def test_a_selector_that_is_no_label_selector_is_refused(given: str, problem: str) -> None:
    with pytest.raises(ValueError, match="selector") as refused:
        label_selector(given)
    assert str(refused.value) == problem
