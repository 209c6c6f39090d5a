"""Pod Security: which labels give which policy, which configurations won't do, and the standards' own pods."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fakeapiserver.admission.podsecurity.configuration import read_configuration
from fakeapiserver.admission.podsecurity.evaluator import evaluate
from fakeapiserver.admission.podsecurity.levels import (
    LATEST,
    LEVELS,
    LevelVersion,
    Policy,
    parse_version,
    policy_to_evaluate,
)
from fakeapiserver.apimachinery.serializer import yaml

Json = dict[str, Any]
PREFIX = "pod-security.kubernetes.io/"
FIXTURES = "k8s.io/pod-security-admission@v0.36.3"


@pytest.mark.parametrize(
    ("labels", "modes", "complaints"),
    [
        ({}, "privileged:latest privileged:latest privileged:latest", 0),
        ({"enforce": "baseline"}, "baseline:latest privileged:latest baseline:latest", 0),
        (
            {"enforce": "baseline", "enforce-version": "v1.20"},
            "baseline:v1.20 privileged:latest baseline:v1.20",
            0,
        ),
        ({"enforce": "restricted", "warn": "baseline"}, "restricted:latest privileged:latest baseline:latest", 0),
        (
            {"enforce": "nope", "audit": "nope", "warn": "nope"},
            "restricted:latest privileged:latest privileged:latest",
            3,
        ),
        ({"enforce-version": "v1.01"}, "privileged:latest privileged:latest privileged:latest", 1),
    ],
)
def test_labels_of_a_namespace_give_its_policy(labels: dict[str, str], modes: str, complaints: int) -> None:
    policy, errors = policy_to_evaluate({PREFIX + name: value for name, value in labels.items()}, Policy())
    assert f"{policy.enforce} {policy.audit} {policy.warn}" == modes
    assert len(errors) == complaints


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        (
            {"defaults": {"enforce": "bad", "warn-version": "v2"}},
            "PodSecurity configuration error: [enforce: must be one of privileged, baseline, restricted, "
            'warn-version: must be "latest" or "v1.x"]',
        ),
        (
            {"exemptions": {"namespaces": ["x", "x"]}},
            'PodSecurity invalid: exemptions.namespaces[1]: Duplicate value: "x"',
        ),
        ({"exemptions": {"users": []}}, 'strict decoding error: unknown field "exemptions.users"'),
        ({"kind": "Foo"}, 'no kind "Foo" is registered for version "pod-security.admission.config.k8s.io/v1"'),
    ],
)
def test_an_invalid_configuration_has_upstreams_message(document: Json, complaint: str) -> None:
    type_meta = {"apiVersion": "pod-security.admission.config.k8s.io/v1", "kind": "PodSecurityConfiguration"}
    with pytest.raises(ValueError, match=re.escape(complaint)):
        read_configuration({**type_meta, **document})


@pytest.mark.parametrize("version", [0, 7, 8, 18, 19, 22, 25, 30, 35, LATEST])
def test_each_level_forbids_what_the_one_below_forbids(version: int) -> None:
    risky = {
        "hostPID": True,
        "containers": [{"name": "c", "securityContext": {"privileged": True, "procMount": "Unmasked"}}],
    }
    found = [set(evaluate(LevelVersion(level, version), {}, risky).findings) for level in LEVELS]
    assert found[0] < found[1] <= found[2]


def _fixtures() -> Path:
    go = shutil.which("go")
    if go is None:
        pytest.skip("no Go on the PATH to fetch the published fixtures with")
    command = [go, "mod", "download", "-json", FIXTURES]
    environment = {**os.environ, "GOFLAGS": "-mod=mod"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", env=environment)
    if done.returncode:
        pytest.skip(f"{FIXTURES} can't be fetched")
    return Path(json.loads(done.stdout)["Dir"]) / "test" / "testdata"


def test_the_standards_own_pods_are_decided_as_they_say() -> None:
    decided = 0
    for path in sorted(_fixtures().glob("*/v1.*/*/*.yaml")):
        level, version, wanted = path.parts[-4:-1]
        pod = yaml.decode(path.read_bytes())
        for volume in pod["spec"].get("volumes") or ():
            if len(volume) == 1:
                volume["emptyDir"] = {}  # the default
        result = evaluate(LevelVersion(level, parse_version(version)), pod["metadata"], pod["spec"])
        assert result.allowed == (wanted == "pass"), f"{path.name} at {level}:{version}: {result.detail}"
        decided += 1
    assert decided > 4000
