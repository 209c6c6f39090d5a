"""The guarantees are kept, in the size of CI."""

import pytest

from conformance.robustness.guarantees.every import GUARANTEES
from conformance.robustness.guarantees.guarantee import percentile
from conformance.robustness.guarantees.suites import TESTS

# seconds of real time, since limits are kube-apiserver's
SLOW = {"slow-senders", "soak", "malformed-http", "operations", "shutdown"}
# test_robustness.py runs the same histories, and suites are tests themselves
ELSEWHERE = {"histories", "kills", "etcd-faults", "planted-bugs", *TESTS}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in GUARANTEES if name not in ELSEWHERE],
)
def test_a_guarantee_is_kept(name: str) -> None:
    report = GUARANTEES[name].run(False)
    assert report.problems == []
    assert report.figures


def test_a_percentile_is_one_of_the_values() -> None:
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert percentile([1.0], 0.99) == 1.0
    assert percentile([], 0.5) == 0.0
