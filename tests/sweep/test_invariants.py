"""Invariants hold at every moment of a run."""

from collections.abc import Sequence

import pytest

from fakeapiserver import Cluster
from fakeapiserver.sweep.invariants import Invariant, Moment, of_cel, violations


def member(name: str, role: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"role": role}}}


def primaries(moment: Moment) -> Sequence[object]:
    return [each for each in moment.list("configmaps", "default") if each["metadata"]["labels"]["role"] == "primary"]


def at_most_one(moment: Moment) -> None:
    assert len(primaries(moment)) <= 1, "there are two"


INVARIANTS = [
    Invariant("python", lambda moment: len(primaries(moment)) <= 1),
    Invariant("assertion", at_most_one),
    Invariant("of others", lambda moment: False, "secrets"),
    of_cel("cel", "configmaps", "objects.filter(o, o.metadata.labels.role == 'primary').size() <= 1"),
]


@pytest.mark.parametrize(
    ("roles", "broken"), [(["primary", "replica"], []), (["primary", "primary"], ["python", "assertion", "cel"])]
)
def test_what_is_over_in_the_end_is_seen(roles: list[str], broken: list[str]) -> None:
    with Cluster(controllers=()) as cluster:
        start = cluster.changes()[-1].revision
        cluster.apply([member(f"member-{number}", role) for number, role in enumerate(roles)])
        cluster.patch("configmaps/member-1", {"metadata": {"labels": {"role": "replica"}}})
        cluster.delete("configmaps/member-0")
        changes = cluster.changes(after=start)
        assert [(change.resource, change.before is None, change.after is None) for change in changes] == [
            ("configmaps", True, False),
            ("configmaps", True, False),
            *([("configmaps", False, False)] if roles[1] == "primary" else []),
            ("configmaps", False, True),
        ]
        found = violations(changes, INVARIANTS)
    assert [each.invariant for each in found] == broken
    assert [each.text for each in found] == ["", "there are two", ""][: len(broken)]
    assert all(each.revision == changes[1].revision for each in found)


def test_an_expression_with_a_mistake() -> None:
    with pytest.raises(ValueError, match="undeclared reference to 'pods'"):
        of_cel("cel", "pods", "pods.size() == 1")
