"""Differences that an operator can't avoid are no findings of `explore`, and those that it can avoid are."""

from copy import deepcopy
from typing import Any

import pytest

from fakeapiserver.sweep.exploring.oracles import Judge
from fakeapiserver.sweep.exploring.trial import Seen, Trial
from fakeapiserver.sweep.states import State

SITE = "sites.example.com default/shop"


def obj(kind: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": name, "namespace": "default"}, **fields}


def state(*others: tuple[str, dict[str, Any]], **status: Any) -> State:
    return {SITE: obj("Site", "shop", spec={}, status=status), **dict(others)}


def config(value: str) -> tuple[str, dict[str, Any]]:
    return "configmaps default/shop", obj("ConfigMap", "shop", data={"a": value})


def claim(size: str = "1Gi", class_name: str = "standard", name: str = "data", **labels: str) -> tuple[str, Any]:
    spec = {"storageClassName": class_name, "resources": {"requests": {"storage": size}}}
    made = obj("PersistentVolumeClaim", name, spec=spec)
    made["metadata"]["labels"] = labels
    return f"persistentvolumeclaims default/{name}", made


def job(image: str = "a:1", status: str = "True", parallelism: int = 1) -> tuple[str, Any]:
    template = {"spec": {"containers": [{"name": "a", "image": image}]}}
    conditions = [{"type": "Complete", "status": status}]
    spec = {"template": template, "parallelism": parallelism}
    return "jobs default/init", obj("Job", "init", spec=spec, status={"conditions": conditions})


def stateful(storage: str = "1Gi", replicas: int = 1, ready: int = 1, revision: str = "1") -> tuple[str, Any]:
    template = {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": storage}}}}
    status = {"readyReplicas": ready, "updateRevision": revision}
    spec = {"volumeClaimTemplates": [template], "replicas": replicas}
    return "statefulsets default/shop", obj("StatefulSet", "shop", spec=spec, status=status)


def pod(owner: str, phase: str) -> tuple[str, Any]:
    made = obj("Pod", f"{owner}-0", status={"phase": phase})
    made["metadata"]["ownerReferences"] = [{"kind": "StatefulSet", "name": owner}]
    return f"pods default/{owner}-0", made


def condition(kind: str, status: str) -> dict[str, Any]:
    return {"conditions": [{"type": kind, "status": status}]}


def subjects(created: State | None, there: State, back: State | None, learnt: State) -> set[tuple[str, str]]:
    judge = Judge(deepcopy(learnt), SITE, "Site", frozenset(), (), {("Site", "shop"), ("Secret", "given")})
    trial = Trial(Seen(created) if created is not None else None, Seen(there), Seen(back) if back is not None else None)
    return {(each.kind, each.subject) for each in judge.symptoms(trial, "spec.a = 2")}


def annotated(name: str, value: str) -> tuple[str, Any]:
    made = obj("Pod", "shop-0")
    made["metadata"]["annotations"] = {name: value}
    return "pods default/shop-0", made


CREATED = [
    pytest.param(
        state(annotated("example.com/version", "1")), state(annotated("example.com/version", "3")), set(), id="a count"
    ),
    pytest.param(
        state(annotated("example.com/version", "a")),
        state(annotated("example.com/version", "b")),
        {("fresh", 'pods metadata.annotations["example.com/version"]')},
        id="a version",
    ),
    pytest.param(
        state(annotated("example.com/size", "1")),
        state(annotated("example.com/size", "2")),
        {("fresh", 'pods metadata.annotations["example.com/size"]')},
        id="a size",
    ),
    pytest.param(state(config("2")), state(config("1")), {("fresh", "configmaps data.a")}, id="a field"),
    pytest.param(state(claim()), state(), {("fresh", "persistentvolumeclaims missing")}, id="a missing claim"),
    pytest.param(state(), state(claim(), config("1")), {("fresh", "configmaps additional")}, id="a claim is kept"),
    pytest.param(state(claim("2Gi")), state(claim("3Gi")), set(), id="a claim doesn't shrink"),
    pytest.param(
        state(claim("2Gi")),
        state(claim("1Gi")),
        {("fresh", "persistentvolumeclaims spec.resources.requests.storage")},
        id="a claim grows",
    ),
    pytest.param(state(claim(class_name="a")), state(claim(class_name="b")), set(), id="the class of a claim is fixed"),
    pytest.param(
        state(claim(a="1")), state(claim(a="2")), {("fresh", "persistentvolumeclaims metadata.labels.a")}, id="a label"
    ),
    pytest.param(
        state(stateful(), claim(name="data-shop-0", a="1")),
        state(stateful(), claim(name="data-shop-0", a="2")),
        set(),
        id="the claim of a StatefulSet",
    ),
    pytest.param(state(job()), state(), {("fresh", "jobs missing")}, id="a missing job"),
    pytest.param(state(config("1")), state(config("1"), job()), set(), id="a job that is over is kept"),
    pytest.param(
        state(config("1")),
        state(config("1"), job(status="False")),
        {("fresh", "jobs additional")},
        id="a job goes on",
    ),
    pytest.param(state(job("a:1")), state(job("a:2")), set(), id="a job's template is fixed"),
    pytest.param(
        state(job(parallelism=2)), state(job()), {("fresh", "jobs spec.parallelism")}, id="a job's parallelism"
    ),
    pytest.param(
        state(stateful("2Gi"), pod("shop", "Pending")),
        state(stateful(ready=0), pod("shop", "Running")),
        set(),
        id="what follows from a fixed template",
    ),
    pytest.param(
        state(stateful("2Gi"), pod("other", "Pending")),
        state(stateful(), pod("other", "Running")),
        {("fresh", "pods status.phase")},
        id="other pods don't follow from it",
    ),
    pytest.param(
        state(stateful(revision="1"), pod("shop", "Pending")),
        state(stateful(revision="2"), pod("shop", "Running")),
        {("fresh", "pods status.phase")},
        id="a revision is no fixed template",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("created", "there", "found"), CREATED)
def test_created_and_changed(created: State, there: State, found: set[tuple[str, str]]) -> None:
    assert subjects(created, there, None, state(config("0"), claim(), job())) == found


FAILED = condition("ReconcileSuccess", "False")
REPORTED = [
    pytest.param(FAILED, "1", set(), id="reported, and left as it was"),
    pytest.param(FAILED, "3", {("fresh", "configmaps data.a")}, id="reported, and wrong in another way"),
    pytest.param(condition("Ready", "False"), "1", {("fresh", "configmaps data.a")}, id="not reported"),
    pytest.param({"phase": "Failed"}, "1", set(), id="reported as a phase"),
]


@pytest.mark.parametrize(("status", "value", "found"), REPORTED)
def test_an_error_is_reported(status: dict[str, Any], value: str, found: set[tuple[str, str]]) -> None:
    there = state(config(value), **status)
    assert subjects(state(config("2"), **status), there, None, state(config("1"))) == found


CLAIMS = [
    pytest.param({"observedGeneration": "behind"}, {("ready", f"{SITE} status.observedGeneration")}, id="not noticed"),
    pytest.param({"observedGeneration": "behind", **FAILED}, set(), id="refused, and reported"),
    pytest.param({"observedGeneration": "current"}, set(), id="noticed"),
    pytest.param({"observedGeneration": "behind", "state": "error"}, set(), id="an error as before"),
    pytest.param(
        {"observedGeneration": "current", **condition("Ready", "True")},
        {("ready", "statefulsets default/shop")},
        id="ready too early",
    ),
]


@pytest.mark.parametrize(("status", "found"), CLAIMS)
def test_what_the_status_claims(status: dict[str, Any], found: set[tuple[str, str]]) -> None:
    title, workload = stateful(replicas=2)
    workload["metadata"]["ownerReferences"] = [{"kind": "Site", "name": "shop"}]
    learnt = state((title, workload), observedGeneration="current", state=status.get("state", ""))
    there = state((title, workload), **status)
    assert subjects(there, there, None, learnt) == found


def test_what_is_waited_for() -> None:
    learnt = state(config("1"), observedGeneration="current")
    judge = Judge(learnt, SITE, "Site", frozenset())
    wanted, behind = state(config("2"), observedGeneration="current"), state(config("2"), observedGeneration="behind")
    assert judge.is_like(wanted, wanted)
    assert not judge.is_like(wanted, behind)
    assert judge.is_like(wanted, behind, {f"{SITE} status.observedGeneration"})
    assert not judge.is_like(wanted, learnt)
    assert judge.is_like(wanted, learnt, {"configmaps data.a"})


@pytest.mark.parametrize(("before", "after", "is_found"), [("True", "False", True), ("True", "Unknown", False)])
def test_a_condition_that_is_not_decided(before: str, after: str, is_found: bool) -> None:
    created, there = (state(config("1"), **condition("Checked", each)) for each in (before, after))
    found = subjects(created, there, None, state(config("0"), **condition("Checked", "True")))
    assert bool(found) == is_found


def test_an_error_is_reported_on_the_way_back() -> None:
    learnt, there = state(config("1")), state(config("2"))
    assert subjects(None, there, state(config("2"), **FAILED), learnt) == set()
    assert subjects(None, there, state(config("3"), **FAILED), learnt) == {("back", "configmaps data.a")}
    assert ("back", "configmaps data.a") in subjects(None, there, state(config("2")), learnt)


REJECTED = [
    pytest.param(state(), state(config("1")), set(), id="nothing is made, nothing is changed"),
    pytest.param(
        state(), state(config("2")), {("fresh", "configmaps additional")}, id="nothing is made, something is changed"
    ),
    pytest.param(state(claim()), state(config("1")), {("fresh", "configmaps additional"), ("fresh", "persistentvolumeclaims missing")},
        id="something is made"),
    pytest.param(
        state(("secrets default/given", obj("Secret", "given"))),
        state(config("1"), ("secrets default/given", obj("Secret", "given"))),
        set(),
        id="what the user has made is nothing",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("created", "there", "found"), REJECTED)
def test_a_spec_that_the_operator_refuses(created: State, there: State, found: set[tuple[str, str]]) -> None:
    given = {title: each for title, each in there.items() if title.startswith("secrets ")}
    assert subjects(created, there, None, {**state(config("1")), **given}) == found


@pytest.mark.parametrize(("former", "restarted"), [("1", "2"), ("2", "1"), ("1", "1")])
def test_what_a_restart_brings_up_to_date(former: str, restarted: str) -> None:
    trial = Trial(Seen(state(config(restarted)), former=state(config(former))), Seen(state(config("2"))), None)
    found = Judge(state(config("0")), SITE, "Site", frozenset()).symptoms(trial, "spec.a = 2")
    assert [each.subject for each in found] == (["configmaps data.a"] if former == restarted else [])


@pytest.mark.parametrize(("strategy", "is_found"), [("OnDelete", False), ("RollingUpdate", True)])
def test_pods_that_an_operator_must_delete(strategy: str, is_found: bool) -> None:
    title, workload = stateful()
    workload["spec"]["updateStrategy"] = {"type": strategy}
    created, there = (state((title, workload), pod("shop", phase)) for phase in ("Running", "Pending"))
    assert bool(subjects(created, there, None, there)) == is_found
