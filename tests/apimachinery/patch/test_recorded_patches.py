"""Patches a real kube-apiserver 1.36.3 was sent, and what became of them.

A case of recorded_patches.json has either `at` and `result` (the one place of the original that changed; what is there afterwards
gave, when written to the server, the object its own patch gave), `unchanged`, or the `error` to answer. `upstream` says what the
server does where we answer 400 instead.
"""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

import fakeapiserver
from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.patch import json as json_patch
from fakeapiserver.apimachinery.patch import merge, strategic

RECORDED = json.loads((Path(__file__).parent / "recorded_patches.json").read_text())
SCHEMAS = Path(fakeapiserver.__file__).parent / "apis" / "versions" / "v1.36" / "schemas.json"
DEFINITIONS = json.loads(SCHEMAS.read_text())
KINDS = {
    "configmaps": "io.k8s.api.core.v1.ConfigMap",
    "services": "io.k8s.api.core.v1.Service",
    "podtemplates": "io.k8s.api.core.v1.PodTemplate",
    "deployments": "io.k8s.api.apps.v1.Deployment",
}


def patched(case: dict[str, Any], original: dict[str, Any]) -> Any:
    if case["type"] == "json":
        return json_patch.apply(original, json_patch.decode(case["patch"].encode()))
    patch = json.loads(case["patch"])
    if case["type"] == "merge":
        return merge.apply(original, patch)
    return strategic.apply(original, patch, DEFINITIONS[KINDS[case["original"]]], DEFINITIONS)


def expected(case: dict[str, Any], original: dict[str, Any]) -> Any:
    """The original with `result` at the place `at`."""
    if case.get("unchanged"):
        return original
    changed = place = {"": copy.deepcopy(original)}
    path = ["", *filter(None, case["at"].split("/"))]
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = case["result"]
    return changed[""]


@pytest.mark.parametrize(
    "case", RECORDED["cases"], ids=lambda case: f"{case['type']}-{case['original']}-{case['patch']}"[:120]
)
def test_recorded_patch(case: dict[str, Any]) -> None:
    original = RECORDED["originals"][case["original"]]
    before = json.dumps(original)
    if "error" in case:
        with pytest.raises(StatusError) as raised:
            patched(case, original)
        members = ("code", "reason", "message", "details")
        assert {key: raised.value.status[key] for key in members if key in raised.value.status} == case["error"]
    else:
        assert patched(case, original) == expected(case, original)
    assert json.dumps(original) == before
