"""`@pytest.mark.faults`: the clusters of a test have the fault from the start."""

import pytest

pytest_plugins = ["pytester"]
SUITE = """
import pytest
from fakeapiserver import Cluster
pytestmark = pytest.mark.fake_cluster(controllers=())

@pytest.mark.faults(verb="list", resource="pods", status=503, times=2)
@pytest.mark.faults(verb="get", latency="1s")
def test_there_are_two(fake_cluster): assert [repr(fault) for fault in fake_cluster.faults.list()] == [
    "<fault 1 (verb=list resource=pods status=503 times=2): 0 hits>", "<fault 2 (verb=get latency=1s): 0 hits>"]

@pytest.mark.faults(hang=True)
def test_of_a_shared_cluster(fake_cluster_module): assert len(fake_cluster_module.faults.list()) == 1

def test_the_next_one_has_none(fake_cluster_module): assert fake_cluster_module.faults.list() == []

@pytest.mark.faults(verb="gett", status=1)
def test_a_bad_field(fake_cluster): pass

@pytest.mark.faults("get")
def test_no_name(fake_cluster): pass
"""


def test_markers(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SUITE)
    result = pytester.runpytest("-p", "no:xdist", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=3, errors=2)
    result.stdout.fnmatch_lines(
        [
            "*faults: there is no verb 'gett' (did you mean 'get'[?]): *",
            "*the marker faults takes fields by name, as in faults(status=409), not 'get'*",
        ]
    )
