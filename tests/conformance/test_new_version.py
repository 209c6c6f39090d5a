"""The command that adds a Kubernetes version: what it reads out of the comparisons, and where it sends the reader."""

import json
from pathlib import Path

import pytest

from conformance.new_version.facts import RecordingError, Release, release_in, switchable
from conformance.new_version.findings import finding, listed, read_output, unexplained
from conformance.new_version.places import place_of
from conformance.record.gates import asked_for


@pytest.mark.parametrize(
    ("path", "difference", "place"),
    [
        ("/apis/apps/v1/namespaces/default/statefulsets/x?dryRun=All", "body.spec", "fakeapiserver/registry/apps/statefulset.py"),
        ("/api/v1/pods", "body.spec", "fakeapiserver/registry/core/pod"),
        ("/api/v1/nodes/n/status", "body.status", "fakeapiserver/registry/core/node"),
        ("/apis/networking.k8s.io/v1/ingressclasses", "", "fakeapiserver/registry/networking/ingressclass.py"),
        ("/apis/networking.k8s.io/v1/networkpolicies", "", "fakeapiserver/registry/networking/networkpolicy.py"),
        ("/apis/example.com/v1/things", "", "fakeapiserver/registry/apiextensions (no folder for example.com)"),
        ("/apis/internal.apiserver.k8s.io/v1alpha1/storageversions", "", "fakeapiserver/registry/apiserverinternal/storageversion.py"),
        ("/api/v1/pods", "body.metadata.managedFields[0]", "fakeapiserver/apimachinery/managedfields"),
        ("/api/v1/pods", "body.columnDefinitions[3]", "fakeapiserver/apis/versions: columns.json"),
        ("/openapi/v3/api/v1", "body.components", "fakeapiserver/endpoints/openapi"),
        ("/apis/apps/v1", "body.resources", "fakeapiserver/endpoints/discovery.py"),
        ("/apis", "body.groups", "fakeapiserver/endpoints/discovery.py"),
        ("/version", "body.minor", "fakeapiserver/server/pages"),
    ],
)  # fmt: skip
def test_places(path: str, difference: str, place: str) -> None:
    assert place_of(path, difference) == place


OUTPUT = """\
refused: /apis/batch/v1/namespaces/default/jobs 2: Job is invalid
POST /apis/apps/v1/namespaces/default/deployments valid: body.spec.a: 1 != null
    200 != 201: x != y
/apis/apps/v1/namespaces/default/deployments: valid 3/4
12 PUT /api/v1/nodes/n {"spec": {}}
    body.status: null != {}
text: describe pods: 3 lines
-  a
+  b
valid: 3 of 4 (75.0 %)
"""


def test_output_of_comparisons() -> None:
    found = [(row.request, row.difference) for row in read_output("kinds", OUTPUT)]
    assert found == [
        ("POST /apis/batch/v1/namespaces/default/jobs", "the real server refuses this rich object: Job is invalid"),
        ("POST /apis/apps/v1/namespaces/default/deployments", "valid: body.spec.a: 1 != null\n    200 != 201: x != y"),
        ("PUT /api/v1/nodes/n", '{"spec": {}}\n    body.status: null != {}'),
        ("describe pods", "3 lines\n-  a\n+  b"),
    ]


def test_each_kind_of_difference_is_listed_once() -> None:
    path = "/api/v1/namespaces/default/configmaps"
    rows = [finding("writes/a request 1", f"POST {path}", f'body.data.k{i}: "{i}" != null') for i in range(3)]
    explained = finding("writes/a request 2", f"POST {path}", "status: 500 != 400")
    (only,) = unexplained([*rows, explained])
    assert (only.count, only.place) == (3, "fakeapiserver/registry/core/configmap.py")
    assert listed([only]).splitlines() == [
        "fakeapiserver/registry/core/configmap.py",
        f"  3 × POST {path} (writes/a request 1)",
        '      body.data.k0: "0" != null',
    ]


def test_the_gates_to_switch_are_those_that_the_sources_ask_for(tmp_path: Path) -> None:
    for name, text in (
        (
            "pkg/features/kube_features.go",
            '\tOwn featuregate.Feature = "OwnGate"\n\tOther featuregate.Feature = "Other"\n',
        ),
        ("pkg/registry/apps/rest/storage_apps.go", "if utilfeature.DefaultFeatureGate.Enabled(features.Own) {"),
        ("pkg/registry/apps/rest/storage_apps_test.go", "features.Other"),
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert asked_for([tmp_path]) == ["OwnGate"]


def test_releases(tmp_path: Path) -> None:
    program = tmp_path / "kube-apiserver"
    program.write_text("#!/bin/sh\necho Kubernetes v1.99.0-alpha.1\n")
    program.chmod(0o755)
    release = release_in(tmp_path, tmp_path / "modules")
    assert (release.name, release.minor, release.is_preview) == ("1.99.0-alpha.1", "1.99", True)
    with pytest.raises(RecordingError, match=r"k8s.io/api@v0.99.0-alpha.1 is missing: build the programs first"):
        release.module("api")


def test_no_programs(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="has no kube-apiserver that runs"):
        release_in(tmp_path, tmp_path)


def test_gates_that_a_version_lacks_are_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("conformance.new_version.facts.VERSIONS", tmp_path)
    release = Release("1.99.1", tmp_path, tmp_path)
    release.folder.mkdir()
    gates = {"A": {"default": True}, "B": {"default": True, "locked": True}}
    (release.folder / "feature_gates.json").write_text(json.dumps(gates))
    flags = ["--kubernetes-version=1.35", "--feature-gates=A=false,B=false,C=true", "--x"]
    assert switchable(release, flags) == ["--feature-gates=A=false", "--x"]


def test_gates_that_need_a_gate_go_off_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Release, "folder", tmp_path)
    needy = {"default": True, "needs": ["A"]}
    gates = {"A": {"default": True}, "B": needy, "C": {"default": True, "needs": ["B"]}, "D": {**needy, "locked": True}}
    (tmp_path / "feature_gates.json").write_text(json.dumps(gates))
    release = Release("1.37.0", tmp_path, tmp_path)
    assert switchable(release, ["--feature-gates=A=false"]) == ["--feature-gates=A=false,B=false,C=false"]
    assert switchable(release, ["--feature-gates=A=true"]) == ["--feature-gates=A=true"]
