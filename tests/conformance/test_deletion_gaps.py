"""The tool that measures how far apart a deletion's events arrive."""

import json

import pytest

from conformance.compare.controllers.deletion_gaps import Gaps, Watch, last_two
from fakeapiserver.cluster import Cluster


def test_events_belong_to_the_read_that_completed_them() -> None:
    def chunk(*kinds: str) -> bytes:
        lines = b"".join(
            json.dumps({"type": kind, "object": {"metadata": {"name": "a"}}}).encode() + b"\n" for kind in kinds
        )
        return b"%x\r\n%s\r\n" % (len(lines), lines)

    watch = Watch("", "", "")
    for at, data in enumerate((b"HTTP/1.1 200 OK\r\n\r\n", chunk("ADDED"), chunk("MODIFIED", "DELETED"))):
        watch.body += data
        watch.reads.append((float(at), len(watch.body)))
    assert [(event["type"], read) for event, read, _ in watch.events()] == [
        ("ADDED", 1),
        ("MODIFIED", 2),
        ("DELETED", 2),
    ]
    assert last_two(watch, ["a"]) == [((2, 2.0), (2, 2.0))]
    assert last_two(watch, ["a", "b"]) is None


@pytest.mark.parametrize(
    "name",
    ["pod without a node", "pod with a node, at once", "pods without a node, together", "last finalizer removed"],
)
def test_every_deletion_is_seen_in_two_events(name: str) -> None:
    with Cluster(controllers=()) as cluster:
        gaps = Gaps(cluster.url, cluster.token, 3)
        with gaps.prepared(load=1, watchers=1):
            _, between, _ = gaps.run(gaps.steps()[name])
        assert len(between) == 3
