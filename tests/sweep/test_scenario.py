"""Scenarios: what is read from YAML, what the steps do, and the sentences about mistakes."""

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from fakeapiserver import Cluster
from fakeapiserver.apimachinery.errors import new_internal_error
from fakeapiserver.client.errors import StatusError
from fakeapiserver.controller_runtime import Manager, Request, Result, controller_managed_by, gvk
from fakeapiserver.sweep import scenario
from fakeapiserver.sweep.scenario import Scenario, Step
from tests.site.blocks import DOCS, blocks_of

CONFIG_MAP = gvk("v1", "ConfigMap")

DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web:1"}]},
        },
    },
}


def read(document: Any, folder: Path) -> scenario.Scenario:
    path = folder / "scenario.yaml"
    path.write_text(yaml.safe_dump(document))
    return scenario.read(path)


def test_the_steps_do_what_users_do(tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(yaml.safe_dump(DEPLOYMENT))
    steps = [
        {"apply": "web.yaml"},
        {"wait": "deploy/web", "for": "Available"},
        {"scale": "deploy/web", "to": 2},
        {"patch": "deploy/web", "with": {"metadata": {"labels": {"a": "b"}}}},
        {"advance": "1h"},
        {"delete": "deploy/web"},
    ]
    read_one = read({"steps": steps, "nodes": 1}, tmp_path)
    titles = [step.title for step in read_one.steps]
    assert titles == [
        "apply Deployment web", "wait deploy/web", "scale deploy/web", "patch deploy/web", "advance 1h", "delete deploy/web",
    ]  # fmt: skip
    with Cluster(**read_one.options) as cluster:
        for step in read_one.steps[:4]:
            step.run(cluster)
        web = cluster.get("deploy/web")
        assert (web["spec"]["replicas"], web["metadata"]["labels"]) == (2, {"a": "b"})
        before = cluster.clock.now()
        read_one.steps[4].run(cluster)
        assert cluster.clock.now() >= before + 3600
        read_one.steps[5].run(cluster)
        with pytest.raises(StatusError, match="not found"):
            cluster.get("deploy/web")


def test_a_node_is_lost_and_comes_back(tmp_path: Path) -> None:
    steps = [{"stop": "nodes/node-1"}, {"advance": "1m"}, {"start": "nodes/node-1"}]
    read_one = read({"steps": steps, "nodes": 1}, tmp_path)
    with Cluster(**read_one.options) as cluster:
        ready = []
        for step in read_one.steps:
            step.run(cluster)
            cluster.settle()
            conditions = cluster.get("nodes/node-1")["status"]["conditions"]
            ready.append(next(each["status"] for each in conditions if each["type"] == "Ready"))
    assert ready == ["True", "Unknown", "True"]


class Patient:
    """Removes the finalizer of a ConfigMap ten seconds after it has seen the deletion."""

    def __init__(self, manager: Manager) -> None:
        self._client = manager.client
        self._has_seen = False

    async def reconcile(self, request: Request) -> Result:
        obj = await self._client.find(CONFIG_MAP, request.name, request.namespace)
        if obj is None or not obj["metadata"].get("finalizers") or "deletionTimestamp" not in obj["metadata"]:
            return Result()
        if self._has_seen:
            await self._client.patch(obj, {"metadata": {"finalizers": None}})
        self._has_seen = True
        return Result(requeue_after=10.0)


def test_a_clock_that_stands_still_goes_on_while_a_step_waits() -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "finalizers": ["example.com/wait"]}}
    steps = scenario.of_document({"steps": [{"apply": config}, {"delete": "cm/a"}]}, Path(), "it").steps

    def setup(manager: Manager) -> None:
        controller_managed_by(manager).for_(CONFIG_MAP).complete(Patient(manager))

    with Cluster(stopped_at="2026-01-01T00:00:00Z") as cluster, cluster.operator(setup):
        before = cluster.clock.now()
        for step in steps:
            step.run(cluster)
        assert 10 <= cluster.clock.now() - before < 30


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "is no scenario: it needs `steps`"),
        ({"step": []}, "there is no 'step' in a scenario"),
        ({}, "needs `steps`"),
        ({"steps": [{"aply": "x"}]}, "step 1 must be one of apply, patch"),
        ({"steps": [{"apply": "a.yaml", "delete": "x/y"}]}, "step 1 must be one of"),
        ({"steps": [{"delete": "x/y", "force": True}]}, "step 1: delete takes no 'force'"),
        ({"steps": [{"delete": "web"}]}, "delete needs an object such as widgets/web"),
        ({"steps": [{"delete": 3}]}, "delete is a text"),
        ({"steps": [{"delete": "x/y"}], "invariants": [{"that": "true"}]}, "an invariant has a name, a resource"),
        (
            {"steps": [{"delete": "x/y"}], "invariants": [{"name": "a", "resource": "pods", "that": "1 +"}]},
            "the invariant 'a' is no CEL expression over `objects`",
        ),
        ({"steps": [{"stop": "pods/web"}]}, "stop needs a simulated node such as nodes/node-1, not 'pods/web'"),
        ({"steps": [{"start": "node-1"}]}, "start needs a simulated node such as nodes/node-1"),
        ({"steps": [{"delete": "x/y"}], "serviceAccount": "manager"}, "serviceAccount is a namespace and a name"),
        ({"steps": [{"patch": "x/y"}]}, "patch needs `with`"),
        ({"steps": [{"patch": "x/y", "with": 3}]}, "patch needs the fields to change"),
        ({"steps": [{"scale": "x/y", "to": -1}]}, "scale needs a number of replicas"),
        ({"steps": [{"wait": "x/y", "for": "Ready", "timeout": "soon"}]}, "invalid duration"),
        ({"steps": [{"advance": "x"}]}, "invalid duration"),
        ({"steps": [{"apply": 3}]}, "3 is neither a path nor an object"),
        ({"steps": [{"delete": "x/y"}], "nodes": -1}, "nodes is a number from 0 to 1000"),
        (
            {"steps": [{"delete": "x/y"}], "webhookPort": "9443"},
            "webhookPort is a number from 0 to 65535, not '9443'",
        ),
        ({"steps": [{"delete": "x/y"}], "env": ["A=b"]}, "env has names and values"),
        ({"steps": [{"delete": "x/y"}], "env": {"SIZE": 1}}, "env: the value of SIZE is a text: write it in quotes"),
        ({"steps": [{"delete": "x/y"}], "nodes": 1, "scripts": {"name": "db"}}, "scripts is a list"),
        ({"steps": [{"delete": "x/y"}], "nodes": 1, "scripts": [{"run": 1}]}, "script 1: unknown field .run."),
        ({"steps": [{"delete": "x/y"}], "scripts": [{"runs_for": 1}]}, "scripts need simulated nodes: add `nodes: 1`"),
        ({"steps": [{"delete": "x/y"}], "crds": [1]}, "crds are files, folders or objects, not 1"),
    ],
)
def test_mistakes_are_one_sentence(document: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        read(document, tmp_path)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "scenario.yaml"))


def test_a_missing_manifest_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no file or folder .*web\.yaml"):
        read({"steps": [{"apply": "web.yaml"}]}, tmp_path)


def test_the_scenario_of_the_page_is_one(tmp_path: Path) -> None:
    page = DOCS / "sweeps.md"
    blocks = [block.text for block in blocks_of(page.name, page.read_text()) if block.language == "yaml"]
    (tmp_path / "config/samples").mkdir(parents=True)
    for name in ("namespace.yaml", "config/samples/database.yaml"):
        (tmp_path / name).write_text(yaml.safe_dump(DEPLOYMENT))
    found = read({field: value for block in blocks for field, value in yaml.safe_load(block).items()}, tmp_path)
    titles = [step.title.partition(" ")[0] for step in found.steps]
    assert titles == ["apply", "patch", "scale", "wait", "delete", "advance", "stop"]


class _Webhooks:
    waits = 0

    def wait(self, timeout: float) -> None:
        self.waits += 1


class _Stage:
    """A stage whose cluster has webhooks, and nothing else."""

    is_blinded = False

    def __init__(self) -> None:
        self.cluster: Any = SimpleNamespace(webhooks=_Webhooks())

    def begin(self, title: str) -> None: ...

    def end(self) -> None: ...


@pytest.mark.parametrize(
    ("messages", "tries", "fails"),
    [
        pytest.param([], 1, False, id="done at once"),
        pytest.param(['failed calling webhook "a.example.com": EOF'], 2, False, id="the webhook is up again"),
        pytest.param(['failed calling webhook "a.example.com": EOF'] * 2, 2, True, id="the webhook stays down"),
        pytest.param(["the server has asked for too much"], 1, True, id="another failure"),
    ],
)
def test_a_user_tries_again_if_a_webhook_cannot_be_called(messages: list[str], tries: int, fails: bool) -> None:
    left, calls = list(messages), []

    def act(cluster: Any) -> None:
        calls.append(cluster)
        if left:
            raise new_internal_error(left.pop(0))

    stage = _Stage()
    played = pytest.raises(StatusError) if fails else nullcontext()
    with played:
        Scenario([Step("patch a", act)]).play(stage)
    assert (len(calls), stage.cluster.webhooks.waits) == (tries, tries - 1)
