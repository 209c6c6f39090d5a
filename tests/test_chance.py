"""The one source of chance: seeded, it draws the same values for the same uses."""

import uuid

import pytest

from fakeapiserver import chance
from fakeapiserver.chance import Chance


def test_without_a_seed_values_differ() -> None:
    first, second = Chance(), Chance()
    assert first.uid("pods", "web") != second.uid("pods", "web")
    assert first.source("name").random() != second.source("name").random()


def test_a_uid_is_one_of_version_4() -> None:
    for each in (Chance(), Chance(7)):
        uid = each.uid("pods")
        parsed = uuid.UUID(uid)
        assert (parsed.version, parsed.variant, str(parsed)) == (4, uuid.RFC_4122, uid)


def test_values_depend_on_the_use_and_not_on_other_uses() -> None:
    first, second = Chance(7), Chance(7)
    second.uid("services", "other")
    drawn = [first.uid("pods", "web") for _ in range(3)]
    assert drawn == [second.uid("pods", "web") for _ in range(3)]
    assert len({*drawn}) == 3
    assert first.source("name", "a-").random() == second.source("name", "a-").random()
    assert first.uid("a", "b") != first.uid("ab")


@pytest.mark.parametrize("other", [Chance(8), Chance(7, 100), Chance(0)])
def test_another_seed_or_salt_gives_other_values(other: Chance) -> None:
    assert Chance(7).uid("pods", "web") != other.uid("pods", "web")


def test_counts_are_bounded_and_no_uid_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chance, "_MOST_COUNTED", 5)
    drawn = Chance(7)
    uids = [drawn.uid("pods", str(number % 20)) for number in range(200)]
    assert len({*uids}) == 200
    assert len(drawn._counts) <= 5
