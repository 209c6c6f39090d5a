"""Compares what the controllers here do in the scripts with the recordings of the real kube-controller-manager."""

import pytest

from conformance.players.controller_runs import neutral
from conformance.players.controllers import FIRST_VERSION, FLAGS, VERSIONS, recorded_scripts, replay_fresh
from fakeapiserver.controller_manager.descriptor import AVAILABLE, canonical

# The controllers that have scripts, by the folder's name, which is a name of theirs, and the version that has recordings of them.
SCRIPTED = sorted(
    {
        (path.parent.name, version)
        for version in VERSIONS
        for path in recorded_scripts((), version)
        if path.parent.name in FLAGS or canonical(path.parent.name) in AVAILABLE
    }
)
# Those whose scripts take a second or two; the others are slow.
QUICK = (
    "bootstrapsigner",
    "clusterrole-aggregation",
    "csrsigning",
    "endpointslicemirroring",
    "pvc-protection",
    "serviceaccount",
)


@pytest.mark.timeout(240)  # caches of resources that aren't served any more are retried by the real clock
@pytest.mark.parametrize(
    ("controller", "version"),
    [
        pytest.param(name, version, marks=() if name in QUICK and version == FIRST_VERSION else pytest.mark.slow)
        for name, version in SCRIPTED
    ],
)
def test_every_state_is_as_the_real_manager_left_it(controller: str, version: str) -> None:
    equal, total, misses = replay_fresh([f"{controller}/"], version)
    if misses:  # pods are ranked by the seconds of their times, and one may end between two of them: not twice in a row
        equal, total, misses = replay_fresh([f"{controller}/"], version)
    assert not misses, "\n".join(misses)
    assert equal == total > 0


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('jobs.batch "c-29920013" is forbidden', 'jobs.batch "c-MINUTES" is forbidden'),
        # every digit of this minute is one that a hash may have
        ('jobs.batch "c-29922425" is forbidden', 'jobs.batch "c-MINUTES" is forbidden'),
        ('pods "c-29922425-x7k2d" is forbidden', 'pods "c-MINUTES-*****" is forbidden'),
        ('replicasets.apps "d-769c6bd54b" is forbidden', 'replicasets.apps "d-HASH" is forbidden'),
    ],
)
def test_what_differs_from_run_to_run_is_neutral(text: str, found: str) -> None:
    assert neutral(text, {}) == found
