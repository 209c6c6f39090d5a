"""--emulated-version: the gates and resources of an older version, recorded from real servers that emulate it."""

import pytest

from fakeapiserver.apimachinery.gvk import GroupVersionResource
from fakeapiserver.apis import scheme
from fakeapiserver.apis.emulation import NO_EMULATION, Emulation, emulation
from fakeapiserver.apis.feature_gates import feature_gates

V135 = Emulation("v1.35", "v1.34")


@pytest.mark.parametrize(
    ("emulated", "minimum", "expected"),
    [
        ("", "", NO_EMULATION),
        ("1.35", "", V135),
        ("kube=v1.35", "", V135),
        ("1.35\n", "", V135),
        ("1.36", "", Emulation("v1.36", "v1.35")),
        ("1.33", "", Emulation("v1.33", "v1.33")),
        ("1.35", "1.33", Emulation("v1.35", "v1.33")),
        ("", "1.34", Emulation("v1.36", "v1.34")),
    ],
)
def test_versions(emulated: str, minimum: str, expected: Emulation) -> None:
    assert emulation("v1.36", emulated, minimum) == expected


@pytest.mark.parametrize(
    ("version", "emulated", "message"),
    [
        ("v1.36", "1.37", r"emulation version 1\.37 is not between \[1\.33, 1\.36\.0\]"),
        (
            "v1.35",
            "1.34",
            r"v1\.35\.4 emulates no other version here: --kubernetes-version=1\.34 serves that version itself",
        ),
    ],
)
def test_versions_that_cannot_be_emulated(version: str, emulated: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        emulation(version, emulated, "")


def test_the_emulated_version_decides_about_gates() -> None:
    own, emulated = feature_gates("v1.36", {}), feature_gates("v1.36", {}, V135)
    assert (own.enabled("MutatingAdmissionPolicy"), emulated.enabled("MutatingAdmissionPolicy")) == (True, False)
    assert not emulated.enabled("NativeHistograms")  # since 1.36
    assert emulated.at_least("v1.36")  # rules without a gate stay
    assert "MutatingAdmissionPolicy" in set(emulated.flipped())
    assert feature_gates("v1.36", {"MutatingAdmissionPolicy": True}, V135).enabled("MutatingAdmissionPolicy")
    # Locked in 1.36, and free while 1.35 is emulated.
    assert not feature_gates("v1.36", {"DRAAdminAccess": False}, V135).enabled("DRAAdminAccess")
    later = "cannot set feature gate NativeHistograms to true, feature is PreAlpha at emulated version 1.35, min compatibility version 1.34"
    with pytest.raises(ValueError, match=later):
        feature_gates("v1.36", {"NativeHistograms": True}, V135)


def test_resources_that_came_later_are_not_served_unless_they_are_asked_for() -> None:
    policies = GroupVersionResource("admissionregistration.k8s.io", "v1", "mutatingadmissionpolicies")
    assert policies in scheme.serving("v1.36", {}, {}).resources
    assert policies not in scheme.serving("v1.36", {}, {}, V135).resources
    switches = {"admissionregistration.k8s.io/v1/mutatingadmissionpolicies": "true"}
    assert policies in scheme.serving("v1.36", {}, switches, V135).resources


def test_the_server_says_what_it_emulates() -> None:
    facts = scheme.serving("v1.36", {}, {}, V135).facts
    version = facts["version"]
    assert [version[name] for name in ("minor", "emulationMinor", "minCompatibilityMinor")] == ["36", "35", "34"]
    assert (version["gitVersion"], facts["openapiInfo"]["info"]["version"]) == ("v1.36.3", "1.35")
