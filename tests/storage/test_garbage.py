"""Old objects are set aside from collections of garbage, and yet freed at last."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from fakeapiserver.effort import without_collections
from fakeapiserver.storage.garbage import SetAside


class Cycle:
    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def set_aside() -> Iterator[None]:
    gc.collect()
    with SetAside(least_between=1000):
        yield


def test_survivors_are_not_looked_at_again_until_as_many_have_come(set_aside: None) -> None:
    old = Cycle()
    gc.collect()
    assert all(each is not old for each in gc.get_objects())
    gone = weakref.ref(old)
    del old
    gc.collect()
    assert gone() is not None
    kept = [[number] for number in range(gc.get_freeze_count())]
    gc.collect()  # sets these aside
    gc.collect()  # is complete
    assert gone() is None
    assert kept


def test_new_garbage_is_freed(set_aside: None) -> None:
    gone = weakref.ref(Cycle())
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("generation", [0, 1, 2])
def test_what_came_while_collections_were_paused_is_not_looked_at(set_aside: None, generation: int) -> None:
    with without_collections():
        gone = weakref.ref(Cycle())
        made = [[number] for number in range(30_000)]
        collected = gc.collect(generation)
    assert collected == 0
    assert gc.get_freeze_count() > len(made)
    gc.collect()
    gc.collect()  # is complete, since more than the least number was set aside
    assert gone() is None


def test_all_objects_are_given_back() -> None:
    with SetAside():
        old = Cycle()
        gc.collect()
    assert any(each is old for each in gc.get_objects())
    assert gc.get_freeze_count() == 0
