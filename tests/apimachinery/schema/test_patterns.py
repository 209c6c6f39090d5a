"""Patterns of schemas: those that are too expensive to compile are refused, and others aren't taken for them."""

import pytest

from fakeapiserver.apimachinery.schema.patterns import TextTooLong, matches, pattern_problem

ACCEPTED = {
    "parts that may be left out": "a?" * 3000,
    "repeated ones": "(?:a?){750}" * 4,
    "repetitions up to a number": "a{0,1000}" * 3,
    "quantifiers within a class": "[a?*({]" * 5000,
    "quoted quantifiers": r"\Q??*\E" * 2000 + r"\?" * 5000,
    "alternatives": "|".join(f"word{i}" for i in range(5000)),
    "groups": "(?:a)" * 5000 + "(?i)b",
    "a domain": r"^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$",
    "letters": r"^[\p{L}\p{N}_-]{1,63}$",
    "as long as may be": "a" * 65_536,
}
REFUSED = {
    "parts that may be left out": "a?" * 3001,
    "repeated ones": "(?:a?){750}" * 5,
    "nested repetitions": "(?:(?:ab?){30}){30}" * 4,
    "repetitions up to a number": "a{0,1000}" * 4,
    "too long": "a" * 65_537,
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name: str) -> None:
    assert pattern_problem(ACCEPTED[name]) == ""


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    assert pattern_problem(REFUSED[name]).startswith("error parsing regexp: expression too large: `")


@pytest.mark.parametrize(
    "pattern",
    ["a{1001}", "a{99999999999}", "a{1,99999999999}", "(a{1000}){1000}", "((a{100}){100}){100}", "a{2,1}", "a**"],
)
def test_absurd_repetitions_are_malformed(pattern: str) -> None:
    assert pattern_problem(pattern).startswith("error parsing regexp: invalid ")


@pytest.mark.parametrize("pattern", ["[{99999999999}]", "a{0999999999999}", r"\Q{99999999999}\E", r"\{99999999999}"])
def test_long_numbers_that_repeat_nothing_are_text(pattern: str) -> None:
    assert pattern_problem(pattern) == ""


def test_a_text_is_refused_that_could_take_minutes() -> None:
    assert not matches("[ab]*a[ab]{500}c", "ab" * 5_000)
    assert matches("^(a+)+$", "a" * 1_000_000)
    with pytest.raises(TextTooLong, match=r"^100000 characters .* 507 instructions$"):
        matches("[ab]*a[ab]{500}c", "ab" * 50_000)
