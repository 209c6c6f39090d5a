"""The facts that changed between two minor versions, as the tables of real servers have them."""

import pytest

from fakeapiserver.apis.recorded import known_versions
from fakeapiserver.cli.upgrade import facts
from fakeapiserver.cli.upgrade.facts import Change, Gate


def test_a_version_does_not_differ_from_itself() -> None:
    found = facts.between("v1.35", "v1.35")
    assert not any((found.added, found.removed, found.deprecated, found.fields, found.defaults, found.gates))
    assert list(facts.lines(found))[1:] == [
        *("", "Resources: no difference", "", "Fields: no difference"),
        *("", "Defaults: no difference", "", "Feature gates: no difference"),
    ]


def test_what_1_36_brought() -> None:
    found = facts.between("v1.35", "v1.36")
    assert "mutatingadmissionpolicies.admissionregistration.k8s.io v1" in found.added
    assert found.removed == ["workloads.scheduling.k8s.io v1alpha1"]
    lease_candidate = "coordination.k8s.io/v1beta1 LeaseCandidate is deprecated in v1.36+, unavailable in v1.39+"
    assert Change("leasecandidates.coordination.k8s.io v1beta1", "", lease_candidate) in found.deprecated
    assert Change("v1 PodSpec.schedulingGroup", "", "PodSchedulingGroup") in found.fields
    assert Change("v1 PodSpec.workloadRef", "WorkloadReference", "") in found.fields
    assert Gate("MutatingAdmissionPolicy", "beta, off", "GA, on") in found.gates


@pytest.mark.parametrize("old", known_versions())
@pytest.mark.parametrize("new", known_versions())
def test_the_way_back_shows_the_same_turned_round(old: str, new: str) -> None:
    there, back = facts.between(old, new), facts.between(new, old)
    assert (there.added, there.removed) == (back.removed, back.added)
    assert [(each.place, each.new, each.old) for each in there.fields] == [
        (each.place, each.old, each.new) for each in back.fields
    ]
    assert [(each.name, each.new, each.old) for each in there.gates] == [
        (each.name, each.old, each.new) for each in back.gates
    ]
