"""KWOK's own stages do for its own examples what KWOK says they do (where its Go module is on this machine)."""

import glob
import os
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from fakeapiserver.apimachinery.serializer import yaml
from fakeapiserver.languages.gotemplate import function
from fakeapiserver.nodes.stages.expressions import Subject
from fakeapiserver.nodes.stages.functions import functions_for
from fakeapiserver.nodes.stages.stage import Apply, Delete, Patch, SendEvent, Stage, read_stage
from fakeapiserver.server.projects import manifests

NOW: Final = 1136214245.0  # 2006-01-02T15:04:05Z
MODULES: Final = Path(os.environ.get("GOMODCACHE") or Path(os.environ.get("GOPATH") or Path.home() / "go") / "pkg/mod")
INPUTS: Final = sorted(glob.glob(str(MODULES / "sigs.k8s.io/kwok@v0.8.*/kustomize/stage/*/*/testdata/*.input.yaml")))
ONE: Final = ("NodeIP", "NodeName", "NodePort", "PodIP", "NodeIPWith", "PodIPWith", "Now", "now", "Version")
SEVERAL: Final = ("NodeIPsWith", "PodIPsWith")


class Nowhere:
    def of_node(self, name: str) -> list[str]:
        return []

    def of_pod(self, node: str, uid: str) -> list[str]:
        return []


def go_syntax(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f'"{value}"'


def called(name: str, place: str = "") -> Any:
    def call(*given: Any) -> str:
        arguments = f"({', '.join(map(go_syntax, given))})" if given else ""
        return f"<{place}{name}{arguments}>"

    return call


def all_called(name: str) -> Any:
    def call(*given: Any) -> list[Any]:
        return [called(name, f"{at} of ")(*given) for at in (0, 1)]

    return call


PLACEHOLDERS: Final = {
    **{name: function(name, called(name)) for name in ONE},
    **{name: function(name, all_called(name)) for name in SEVERAL},
}


def possible(stages: list[Stage], subject: Subject) -> list[Stage]:
    matching = [stage for stage in stages if stage.matches(subject)]
    if len(matching) < 2:
        return matching
    weights = [stage.weight(subject) for stage in matching]
    if any(weights):
        return [stage for stage, weight in zip(matching, weights, strict=True) if weight]
    return [stage for stage, weight in zip(matching, weights, strict=True) if weight is not None] or matching


def told(stage: Stage, subject: Subject) -> list[Any]:
    found: list[Any] = []
    for step in stage.steps:
        for action in stage.actions(step, subject, PLACEHOLDERS):
            match action:
                case SendEvent(event_type, reason, message):
                    found.append({"kind": "event", "type": event_type, "reason": reason, "message": message})
                case Delete():
                    found.append({"kind": "delete"})
                case Patch(body, _, subresource) | Apply(body, _, subresource):
                    kind = "patch" if isinstance(action, Patch) else "apply"
                    found.append({"kind": kind, "data": body, **({"subresource": subresource} if subresource else {})})
    return [*found, {"kind": "immediate"}] if stage.immediate else found


@pytest.mark.skipif(not INPUTS, reason="KWOK's stages aren't here: go mod download sigs.k8s.io/kwok@v0.8.0")
@pytest.mark.parametrize("path", INPUTS, ids=lambda path: "/".join(Path(path).parts[-4:]).replace("/testdata", ""))
def test_examples(path: str) -> None:
    found = yaml.decode(Path(path).read_bytes())
    expected = yaml.decode(Path(path.replace(".input.", ".output.")).read_bytes())
    subject = Subject(found, NOW)
    functions = functions_for(lambda: NOW, Random(1), Nowhere())
    read = [read_stage(stage, functions) for stage in manifests.read(Path(path).parents[1], "Stage")]
    stages = [stage for stage in read if stage is not None and stage.ref == (found["apiVersion"], found["kind"])]
    answers = []
    for stage, wanted in zip(possible(stages, subject), expected["stages"], strict=True):
        answer: dict[str, Any] = {"stage": stage.name, "next": told(stage, subject)}
        if "delay" in wanted:
            least, most = stage.duration(subject), stage.jitter(subject)
            assert least is not None
            seconds = [least] if most is None else [most] if most <= least else [least, most]
            answer["delay"] = [round(second * 1e9) for second in seconds]
        if (weight := stage.weight(subject)) is not None:
            answer["weight"] = weight
        answers.append(answer)
    for wanted in expected["stages"]:
        for action in wanted["next"]:
            if action["kind"] in ("patch", "apply"):
                del action["type"]  # of nodes and pods KWOK's own test doesn't know the types
    assert answers == expected["stages"]
