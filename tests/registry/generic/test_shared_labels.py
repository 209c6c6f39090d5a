"""Objects with equal labels share one mapping of them."""

import pytest

from fakeapiserver.registry.generic import store
from fakeapiserver.registry.generic.store import shared_labels


def test_equal_labels_are_one_mapping() -> None:
    first = shared_labels({"app": "web", "tier": "front"})
    assert shared_labels({"app": "web", "tier": "front"}) is first
    assert first == {"app": "web", "tier": "front"}


@pytest.mark.parametrize("other", [{}, {"app": "web"}, {"app": "web", "tier": "back"}, {"tier": "front", "app": "web"}])
def test_others_have_their_own(other: dict[str, str]) -> None:
    found = shared_labels(other)
    assert found is not shared_labels({"app": "web", "tier": "front"})
    assert [*found.items()] == [*other.items()]


def test_a_later_change_of_the_object_changes_no_index() -> None:
    labels = {"app": "one"}
    kept = shared_labels(labels)
    labels["app"] = "another"
    assert kept == {"app": "one"}
    assert shared_labels(labels) == {"app": "another"}


def test_there_are_not_more_than_a_bound() -> None:
    for number in range(2 * store._MOST_LABELS):
        assert shared_labels({"number": str(number)}) == {"number": str(number)}
    assert store._shared.cache_info().currsize == store._MOST_LABELS
