"""A controller waits until it has seen the effects of its own writes."""

from fakeapiserver.component_helpers.workloads.expectations import (
    EXPECTATIONS_TIMEOUT,
    ControllerExpectations,
    UIDTrackingControllerExpectations,
)


class Clock:
    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time

    monotonic = now


def test_without_expectations_no_sync_waits() -> None:
    assert ControllerExpectations(Clock()).satisfied("ns/a")


def test_expectations_are_met_when_everything_was_observed() -> None:
    expectations = ControllerExpectations(Clock())
    expectations.expect_creations("ns/a", 2)
    expectations.creation_observed("ns/a")
    assert not expectations.satisfied("ns/a")
    assert expectations.pending("ns/a") == (1, 0)
    expectations.creation_observed("ns/a")
    assert expectations.satisfied("ns/a")


def test_who_waits_in_vain_goes_on_after_five_minutes() -> None:
    clock = Clock()
    expectations = ControllerExpectations(clock)
    expectations.expect_creations("ns/a", 1)
    clock.time = EXPECTATIONS_TIMEOUT
    assert not expectations.satisfied("ns/a")
    clock.time += 1
    assert expectations.satisfied("ns/a")


def test_a_deletion_counts_once_and_only_if_it_was_expected() -> None:
    expectations = UIDTrackingControllerExpectations(Clock())
    expectations.expect_deletions("ns/a", ["ns/p1", "ns/p2"])
    for seen in ("ns/p1", "ns/p1", "ns/other"):  # marked, then gone; another one
        expectations.deletion_observed("ns/a", seen)
    assert expectations.pending("ns/a") == (0, 1)
    expectations.deletion_observed("ns/a", "ns/p2")
    assert expectations.satisfied("ns/a")


def test_an_object_of_the_same_name_begins_again() -> None:
    expectations = UIDTrackingControllerExpectations(Clock())
    expectations.expect_deletions("ns/a", ["ns/p1"])
    expectations.forget("ns/a")
    assert expectations.satisfied("ns/a")
    expectations.deletion_observed("ns/a", "ns/p1")
    assert expectations.pending("ns/a") == (0, 0)
