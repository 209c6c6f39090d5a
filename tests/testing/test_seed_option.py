"""`--fake-cluster-seed`: a failed test names the number that repeats it."""

import re

import pytest

pytest_plugins = ["pytester"]
SUITE = """
import pytest
pytestmark = pytest.mark.fake_cluster(controllers=())

def uid(cluster): return cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})[0]["metadata"]["uid"]

def test_other(fake_cluster): uid(fake_cluster)

def test_fails(make_fake_cluster): assert [uid(make_fake_cluster()), uid(make_fake_cluster())] == 0

def test_shared(fake_cluster_module): assert uid(fake_cluster_module) == 0

@pytest.mark.fake_cluster(seed=5)
def test_own(fake_cluster): assert uid(fake_cluster) == 0
"""
_UID = re.compile(r"^E .*?assert (.*) == 0", re.MULTILINE)


def run(pytester: pytest.Pytester, *options: str) -> str:
    result = pytester.runpytest("-p", "no:xdist", "-p", "no:cacheprovider", *options)
    return result.stdout.str()


def test_a_failure_can_be_repeated(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SUITE)
    first = run(pytester)
    option = re.findall(r"--fake-cluster-seed=\d+", first)
    assert len({*option}) == 1
    uids = _UID.findall(first)
    assert len({*uids}) == 3
    assert _UID.findall(run(pytester, option[0])) == uids
    assert _UID.findall(run(pytester, option[0], "-k", "fails")) == uids[:1]  # alone, too
    others = _UID.findall(run(pytester))
    assert [other == uid for other, uid in zip(others, uids, strict=True)] == [False, False, True]


def test_a_bad_number(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest("-p", "no:xdist", "--fake-cluster-seed=-1")
    result.stderr.fnmatch_lines(["*--fake-cluster-seed must be 0 or more, not -1*"])
