"""Long lists are sorted as `sorted` does it."""

import pytest

from fakeapiserver.apimachinery import labels
from fakeapiserver.apimachinery.sorting import RUN, sorted_in_runs


@pytest.mark.parametrize("count", [0, 1, RUN, RUN + 1, 3 * RUN, 5 * RUN - 1])
def test_long_lists_are_sorted(count: int) -> None:
    items = [number * 7919 % 100_003 for number in range(count)]
    assert sorted_in_runs(items) == sorted(items)


def test_requirements_of_one_key_stay_in_their_order() -> None:
    keys = [f"k{number * 7919 % 100}" for number in range(RUN + 100)]
    requirements = labels.parse(",".join(f"{key}!=v{number}" for number, key in enumerate(keys))).requirements
    expected = sorted(enumerate(keys), key=lambda numbered: numbered[1])
    assert [(each.key, each.values) for each in requirements] == [(key, (f"v{number}",)) for number, key in expected]
