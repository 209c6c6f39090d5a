"""--feature-gates and --runtime-config: what they switch, and how they are refused."""

import re
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

from fakeapiserver import registry
from fakeapiserver.apimachinery.gvk import GroupVersionResource
from fakeapiserver.apis import scheme
from fakeapiserver.apis.feature_gates import feature_gates
from fakeapiserver.apis.recorded import NEWEST, read_table
from fakeapiserver.registry.core.pod import options as pod_options
from fakeapiserver.server.options.config import FEATURE_GATES, OLDER_FEATURE_GATES


@pytest.mark.parametrize(
    ("switches", "gate", "on"),
    [
        ({}, "GenericWorkload", False),
        ({}, "NodeDeclaredFeatures", True),
        ({"GenericWorkload": True}, "GenericWorkload", True),
        ({"AllAlpha": True}, "GenericWorkload", True),
        ({"AllBeta": True, "PodCertificateRequest": False}, "PodCertificateRequest", False),
        ({}, "SidecarContainers", True),  # locked
        ({}, "NoSuchGate", False),
    ],
)
def test_a_gate_is_as_switched_or_as_recorded(switches: dict[str, bool], gate: str, on: bool) -> None:
    assert feature_gates("v1.36", switches).enabled(gate) is on


@pytest.mark.parametrize(
    ("switches", "message"),
    [
        ({"NoSuchGate": True}, "unrecognized feature gate: NoSuchGate"),
        (
            {"SidecarContainers": False},
            "cannot set feature gate SidecarContainers to false, feature is locked to true",
        ),
        (
            {"WorkloadWithJob": True},
            "WorkloadWithJob is enabled, but depends on features that are disabled: [GenericWorkload]",
        ),
        (
            {"DRADeviceTaintRules": True, "DRADeviceTaints": False},
            "DRADeviceTaintRules is enabled, but depends on features that are disabled: [DRADeviceTaints]",
        ),
        (
            {"AllAlpha": False, "GenericWorkload": False, "WorkloadWithJob": True, "GangScheduling": True},
            "[GangScheduling is enabled, but depends on features that are disabled: [GenericWorkload], "
            "WorkloadWithJob is enabled, but depends on features that are disabled: [GenericWorkload]]",
        ),
    ],
)
def test_what_cannot_be_switched_is_refused(switches: dict[str, bool], message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("[", r"\[")):
        feature_gates("v1.36", switches)


_ALPHA = GroupVersionResource("resource.k8s.io", "v1alpha3", "devicetaintrules")
_GATED = GroupVersionResource("scheduling.k8s.io", "v1alpha2", "podgroups")
_STABLE = GroupVersionResource("batch", "v1", "jobs")
_REMOVED = GroupVersionResource("policy", "v1beta1", "poddisruptionbudgets")


@pytest.mark.parametrize(
    ("runtime_config", "gates", "resource", "served"),
    [
        ({}, {}, _ALPHA, False),
        ({"api/all": "true"}, {}, _ALPHA, True),
        ({"api/alpha": "true"}, {}, _ALPHA, True),
        ({"api/beta": "true"}, {}, _ALPHA, False),
        ({"resource.k8s.io/v1alpha3": ""}, {}, _ALPHA, True),
        ({"resource.k8s.io/v1alpha3/devicetaintrules": "true"}, {}, _ALPHA, True),
        ({"api/all": "true", "resource.k8s.io/v1alpha3": "false"}, {}, _ALPHA, False),
        ({"api/all": "true"}, {}, _GATED, False),
        ({}, {"GenericWorkload": True}, _GATED, False),
        ({"api/all": "true"}, {"GenericWorkload": True}, _GATED, True),
        ({"batch/v1": "false"}, {}, _STABLE, False),
        ({"batch/v1/jobs": "false"}, {}, _STABLE, False),
        ({"batch/v1/cronjobs": "false"}, {}, _STABLE, True),
        ({"api/v1": "false"}, {}, GroupVersionResource("", "v1", "pods"), False),
        ({"v1": "false"}, {}, _STABLE, True),
        ({"api/legacy": "false"}, {}, GroupVersionResource("", "v1", "pods"), True),
        ({"api/all": "true"}, {}, _REMOVED, False),
        ({"api/removed": "true"}, {}, _REMOVED, True),
        ({"api/removed": "true"}, {}, _STABLE, True),
        ({"api/removed": "false"}, {}, _REMOVED, False),
    ],
)
def test_versions_and_resources_are_served_as_asked(
    runtime_config: dict[str, str], gates: dict[str, bool], resource: GroupVersionResource, served: bool
) -> None:
    assert (resource in scheme.serving("v1.36", gates, runtime_config).resources) is served


@pytest.mark.parametrize(
    ("runtime_config", "message"),
    [
        ({"api/all": "false"}, "invalid runtime-config with only api/all=false"),
        ({"api/all": "maybe"}, "invalid value api/all=maybe"),
        ({"nobody/v1": "true"}, "unknown api groups nobody/v1"),
        ({"batch/v9": "true"}, "group version batch/v9 that has not been registered"),
        ({"api": "true"}, "runtime-config invalid key api"),
        (
            {"api/removed": "x"},
            'invalid value of api/removed: x, err: strconv.ParseBool: parsing "x": invalid syntax',
        ),
        ({"batch/v1": "x"}, 'invalid value of batch/v1: x, err: strconv.ParseBool: parsing "x": invalid syntax'),
        (
            {"batch/v1/Jobs": "true"},
            'invalid key batch/v1/Jobs: group/version/resource and resource is always lowercase plural, not "Jobs"',
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(runtime_config: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        scheme.serving("v1.36", {}, runtime_config)


def test_every_gate_that_is_looked_at_is_known_to_have_an_effect() -> None:
    """Gates outside the list cause a warning."""
    groups = [
        import_module(f"fakeapiserver.registry.{name.name}") for name in iter_modules(registry.__path__) if name.ispkg
    ]
    gates = {gate for group in groups for row in getattr(group, "RESOURCES", {}).values() for gate in row.gated_fields}
    gates.update(pod_options.GATES.values())
    recorded = read_table(NEWEST, "feature_gates.json")
    gates.update(gate for gate, row in recorded.items() if row.get("resources"))
    older = {gate for gate in gates if gate not in recorded or recorded[gate].get("locked")}
    assert gates - older <= set(FEATURE_GATES)
    tables = [read_table(version, "feature_gates.json") for version in ("v1.33", "v1.34", "v1.35", "v1.36")]
    switched = {gate for table in tables for gate, row in table.items() if not row.get("locked")}
    assert older & switched <= set(OLDER_FEATURE_GATES) <= switched
    assert not [gate for gate in FEATURE_GATES if gate not in recorded or recorded[gate].get("locked")]


def test_every_gate_is_accounted_for() -> None:
    """docs/feature-gates.md lists what has no effect here."""
    page = (Path(__file__).parents[2] / "docs/feature-gates.md").read_text().partition("## Missing")[2]
    listed = re.findall(r"^- (\w+)(?: \(.*\))?$", page, re.MULTILINE)
    gates = read_table(NEWEST, "feature_gates.json")
    assert sorted(listed) == sorted(
        gate for gate, row in gates.items() if not row.get("locked") and gate not in FEATURE_GATES
    )


def test_stages_of_a_version_say_what_is_on() -> None:
    stages = {gate: (stage, on) for gate, stage, on in feature_gates("v1.34", {"JobManagedBy": False}).stages()}
    assert stages["JobManagedBy"] == ("BETA", False)
    assert stages["APIServerTracing"] == ("GA", True)
