"""Tests how upstream's end-to-end specs are chosen and their results read; running them all takes most of an hour."""

import os
import re
import shutil
from pathlib import Path

import pytest

from conformance.suites import e2e

CREATES = "[sig-api-machinery] Namespaces [Serial] should create a namespace (once) [Conformance]"
DELETES = "[sig-api-machinery] Namespaces [Serial] should delete a namespace [Conformance]"
OUTPUT = f"""\
SSSSSSSS
------------------------------
{CREATES} [sig-api-machinery, Serial, Conformance]
/test/e2e/apimachinery/namespace.go:12
  STEP: creating it
• [0.512 seconds]
------------------------------
{DELETES} [sig-api-machinery, Serial, Conformance]
/test/e2e/apimachinery/namespace.go:34
• [FAILED] [1.250 seconds]
{DELETES} [sig-api-machinery, Serial, Conformance]
  [FAILED] it is still there
"""
# Seconds each, one of every kind: reads, policies, definitions, leases, kubectl.
SAMPLE = (
    "Table transformation should return a 406|lease API should be available|ResourceQuota should create .* the life of a secret"
    "|should run through a ConfigMap lifecycle|VolumeAttributesClass|EndpointSliceMirroring|Kubectl version|IPAddress API"
    "|creating/deleting custom resource definition|PodTemplates should replace"
)


def test_each_spec_has_its_result_and_one_that_did_not_run_has_not_passed() -> None:
    assert dict(e2e.read(OUTPUT.splitlines(), [CREATES, DELETES])) == {CREATES: True, DELETES: False}
    assert dict(e2e.read(["SSSS"], [CREATES])) == {CREATES: False}


def test_the_focus_takes_names_by_the_letter() -> None:
    pattern = e2e.focus([CREATES, DELETES])
    assert re.search(pattern, f"Kubernetes e2e suite {CREATES}")
    assert not re.search(pattern, CREATES.replace("(once)", "once"))
    assert not re.search(pattern, DELETES + " twice")


def test_specs_are_found_under_the_labels_of_the_binary() -> None:
    renamed = "[sig-node] Pods should be updated [Conformance] [NodeConformance]"
    specs = [CREATES, renamed, "[sig-node] Pods should be updated twice [Conformance]"]
    names = [CREATES, "[sig-node] Pods should be updated [NodeConformance] [Conformance]", DELETES]
    assert e2e.named_as_in(specs, names) == [CREATES, renamed]


def test_the_version_and_the_specs_are_those_of_the_binary(tmp_path: Path) -> None:
    binary = tmp_path / "e2e.test"
    binary.write_text(f"#!/bin/sh\ncase $1 in --version) echo v1.99.2;; *) cat <<'END'\n{OUTPUT}END\nesac\n")
    binary.chmod(0o755)
    assert e2e.version_of(binary) == "1.99"
    assert set(e2e.specs_in(binary)) == {CREATES, DELETES}
    binary.write_text("#!/bin/sh\necho development\n")
    with pytest.raises(RuntimeError, match="names no version"):
        e2e.version_of(binary)


def test_the_groups_name_each_spec_once() -> None:
    names = [name for group in e2e.groups().values() for name in group["specs"]]
    assert len(names) == len(set(names))
    assert all(name.startswith("[sig-") for name in names)


def test_without_a_binary_nothing_is_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv(e2e.BINARY, raising=False)
    assert e2e.main([]) == 0
    assert "no binary" in capsys.readouterr().err


@pytest.mark.skipif(
    e2e.BINARY not in os.environ or not shutil.which("kubectl"), reason=f"set {e2e.BINARY} to run a sample"
)
def test_a_sample_of_the_specs_passes() -> None:
    binary = Path(os.environ[e2e.BINARY])
    assert e2e.main([f"--binary={binary}", "--group=without nodes", f"--focus={SAMPLE}"]) == 0
