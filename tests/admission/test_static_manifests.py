"""Folders of static manifests in a plugin's configuration: kube-apiserver 1.36.3 said this of them."""

import re
from pathlib import Path

import pytest

from fakeapiserver.admission.static_manifests import check
from fakeapiserver.apis.feature_gates import FeatureGates

ON = FeatureGates("v1.36", {"ManifestBasedAdmissionControlConfig": True})
FORBIDDEN = "Forbidden: staticManifestsDir requires the ManifestBasedAdmissionControlConfig feature gate to be enabled"


@pytest.mark.parametrize(
    ("folder", "gates", "problem"),
    [
        ("/", FeatureGates("v1.36"), FORBIDDEN),
        ("rel", ON, 'Invalid value: "rel": must be an absolute file path'),
        ("/nope", ON, 'Invalid value: "/nope": unable to read: stat /nope: no such file or directory'),
        (__file__, ON, f'Invalid value: "{__file__}": must be a directory'),
    ],
)
def test_refuses(folder: str, gates: FeatureGates, problem: str) -> None:
    with pytest.raises(ValueError, match=f"^staticManifestsDir: {re.escape(problem)}$"):
        check(folder, gates)


def test_reports_the_files_that_it_does_not_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    check(str(tmp_path), ON)
    assert f"staticManifestsDir {tmp_path} is not read here" in caplog.text
