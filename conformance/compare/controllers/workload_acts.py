"""Random acts in the life of a workload: changes of the workload, of its pods and of its nodes."""

import json
import random
import time
from collections.abc import Sequence
from typing import Any, Final

from conformance.compare.controllers.workload_server import LONG_AGO, NODES, Act, Object, Side
from conformance.random.workloads import (
    random_daemon_strategy,
    random_retention,
    random_schedule,
    random_stateful_strategy,
    random_strategy,
    random_workload,
)

_STRATEGIC: Final = "application/strategic-merge-patch+json"
_MERGE: Final = "application/merge-patch+json"
_JSON: Final = "application/json-patch+json"
_HASH: Final = "pod-template-hash"


def happening(chance: random.Random, kind: str, found: Object | None, side: Side, life: int, now: float) -> list[Act]:
    """Chooses a random event, which may take several requests. `found` is the workload on one side, whose pods and nodes are read."""
    if found is None:
        return [Act("create", random_workload(chance, kind, "${namespace}", now))]
    pods = side.pods(life)
    choices = [*_to_pods(chance, pods, kind), *_to_all(chance)]
    choices += {
        "Deployment": _to_deployment,
        "ReplicaSet": _to_replica_set,
        "StatefulSet": _to_stateful_set,
        "DaemonSet": _to_daemon_set,
        "CronJob": _to_cron_job,
    }[kind](chance, found, side, life, now)
    possible = [(weight, acts) for weight, acts in choices if acts]
    return chance.choices([acts for _, acts in possible], [weight for weight, _ in possible])[0]


Choices = list[tuple[float, list[Act]]]


def _to_all(chance: random.Random) -> Choices:
    policy = chance.choice(["Background", "Foreground", "Orphan"])
    return [
        (0.7, [Act("remove", {"propagationPolicy": policy})]),
        (0.5, [_changed({"metadata": {"labels": {"of": chance.choice(["w", "v"])}, "annotations": {"note": "x"}}})]),
    ]


def _changed(body: Object) -> Act:
    return Act("patch", body)


def _spec(**fields: Any) -> list[Act]:
    return [_changed({"spec": fields})]


def _to_pods(chance: random.Random, pods: Sequence[Object], kind: str) -> Choices:
    live = [at for at, pod in enumerate(pods) if pod["status"].get("phase") in ("Pending", "Running")]
    going = [at for at in live if "deletionTimestamp" in pods[at]["metadata"]]
    active = [at for at in live if at not in going]
    unready = [at for at in active if not _is_ready(pods[at])]
    ready = [at for at in active if _is_ready(pods[at])]
    owned = [at for at in active if pods[at]["metadata"].get("ownerReferences")]
    orphans = [at for at in active if at not in owned]
    since = chance.choice([LONG_AGO, LONG_AGO, LONG_AGO, "${now}"])

    def one(of: Sequence[int], verb: str, body: Any = None) -> list[Act]:
        return [Act(verb, body, chance.choice(of))] if of else []

    first = [Act("status", _ready(since), unready[0])] if unready else []
    found: Choices = [
        (3, first if kind == "StatefulSet" else one(unready, "status", _ready(since))),
        (3, [Act("status", _ready(since), at) for at in unready]),
        (0.7, one(ready, "status", _ready(since, "False"))),
        (1.2, one(active, "status", _ended("Failed"))),
        (0.6, one(active, "status", _ended("Succeeded"))),
        (1.2, one(active, "delete")),
        (4, [Act("finish", at=at) for at in going]),
        (0.4, one([at for at in range(len(pods)) if at not in live], "delete", {"gracePeriodSeconds": 0})),
    ]
    if kind != "CronJob":
        found += [
            (0.7, one(owned, "relabel", {"app": "other"})),
            (0.7, one(orphans, "relabel", {"app": "w"})),
        ]
    return found


def _is_ready(pod: Object) -> bool:
    return any(found["type"] == "Ready" and found["status"] == "True" for found in pod["status"].get("conditions", []))


def _ready(since: str, status: str = "True") -> Object:
    return {"phase": "Running", "conditions": [{"type": "Ready", "status": status, "lastTransitionTime": since}]}


def _ended(phase: str) -> Object:
    ended = {"exitCode": int(phase == "Failed"), "startedAt": LONG_AGO, "finishedAt": LONG_AGO}
    container = {"name": "c", "image": "image", "imageID": "", "ready": False, "restartCount": 0}
    return {"phase": phase, "containerStatuses": [{**container, "state": {"terminated": ended}}]}


def _to_template(chance: random.Random) -> Choices:
    """Returns changes to workloads that have a pod template at `spec.template`."""
    container = {"name": "c", "image": f"image:{chance.randint(1, 4)}"}
    label = {"app": "w", "variant": chance.choice(["a", "b"])}
    return [
        (2.5, [Act("strategic", {"spec": {"template": {"spec": {"containers": [container]}}}})]),
        (0.5, _spec(template={"metadata": {"labels": label}})),
        (0.4, _spec(template={"metadata": {"annotations": {"restarted": str(chance.randint(1, 3))}}})),
        (0.3, _spec(minReadySeconds=chance.choice([0, 3600]))),
        (0.2, _spec(selector={"matchLabels": {"app": chance.choice(["w", "v"])}})),
    ]


def _to_deployment(chance: random.Random, found: Object, side: Side, life: int, now: float) -> Choices:
    sets = side.of_kind(life, "ReplicaSet")
    at = chance.randrange(len(sets)) if sets else 0
    policy = {"propagationPolicy": chance.choice(["Background", "Orphan"])}
    return [
        *_to_template(chance),
        (2.5, _spec(replicas=chance.randint(0, 6))),
        (1, _spec(strategy=random_strategy(chance))),
        (1, _spec(paused=not found["spec"].get("paused", False))),
        (1.5, [Act("undo", at=at)] if len(sets) > 1 else []),
        (0.4, _spec(revisionHistoryLimit=chance.randint(0, 2))),
        (
            0.3,
            _spec(progressDeadlineSeconds=chance.choice([1, 600])) if not found["spec"].get("minReadySeconds") else [],
        ),
        (0.4, [Act("patch part", {"spec": {"replicas": chance.randint(0, 3)}}, at, "ReplicaSet")] if sets else []),
        (0.3, [Act("remove part", policy, at, "ReplicaSet")] if sets else []),
        (0.3, [Act("patch part", {"metadata": {"labels": {"app": "other"}}}, at, "ReplicaSet")] if sets else []),
    ]


def _to_replica_set(chance: random.Random, found: Object, side: Side, life: int, now: float) -> Choices:
    return [*_to_template(chance), (3, _spec(replicas=chance.randint(0, 6)))]


def _to_stateful_set(chance: random.Random, found: Object, side: Side, life: int, now: float) -> Choices:
    return [
        *_to_template(chance),
        (2.5, _spec(replicas=chance.randint(0, 5))),
        (1.2, _spec(updateStrategy=random_stateful_strategy(chance))),
        (0.5, _spec(persistentVolumeClaimRetentionPolicy=random_retention(chance))),
        (0.5, _spec(ordinals={"start": chance.randint(0, 3)})),
        (0.4, _spec(revisionHistoryLimit=chance.randint(0, 2))),
    ]


def _to_daemon_set(chance: random.Random, found: Object, side: Side, life: int, now: float) -> Choices:
    count = len(side.nodes(life))
    at = chance.randrange(count) if count else 0
    taint = {"key": "taint", "effect": chance.choice(["NoSchedule", "NoExecute", "PreferNoSchedule"])}
    changes = [
        {"spec": {"taints": chance.choice([[], [taint]])}},
        {"spec": {"unschedulable": chance.random() < 0.5}},
        {"metadata": {"labels": {"zone": chance.choice(["a", "b"])}}},
    ]
    selector = chance.choice([None, "a"])
    return [
        *_to_template(chance),
        (1, _spec(updateStrategy=random_daemon_strategy(chance))),
        (1, [Act("add node", chance.randint(0, 5))]),
        (0.8, [Act("remove node", at=at)] if count else []),
        (2, [Act("change node", chance.choice(changes), at)] if count else []),
        (0.5, _spec(template={"spec": {"nodeSelector": {"zone": selector}}})),
        (0.4, _spec(revisionHistoryLimit=chance.randint(0, 2))),
    ]


def _to_cron_job(chance: random.Random, found: Object, side: Side, life: int, now: float) -> Choices:
    jobs = side.of_kind(life, "Job")
    at = chance.randrange(len(jobs)) if jobs else 0
    missed = chance.choice([3600, 7200, 86_400, 90 * 86_400])
    policy = {"propagationPolicy": chance.choice(["Background", "Foreground", "Orphan"])}
    return [
        (4, [Act("missed", missed)]),
        (2, _spec(schedule=random_schedule(chance, now))),
        (1.5, _spec(suspend=not found["spec"].get("suspend", False))),
        (1, _spec(concurrencyPolicy=chance.choice(["Allow", "Forbid", "Replace"]))),
        (0.7, _spec(startingDeadlineSeconds=chance.choice([None, 5, 3600, 1_000_000]))),
        (0.7, _spec(successfulJobsHistoryLimit=chance.randint(0, 2))),
        (0.7, _spec(failedJobsHistoryLimit=chance.randint(0, 2))),
        (0.5, _spec(timeZone=chance.choice([None, "Etc/UTC", "Asia/Kolkata"]))),
        (0.7, [Act("remove part", policy, at, "Job")] if jobs else []),
        (0.4, [Act("patch part", {"spec": {"suspend": True}}, at, "Job")] if jobs else []),
    ]


def act(side: Side, life: int, kind: str, done: Act, pods: Sequence[Object], now: float) -> int:
    """The answer's status, 0 where there is nothing to ask of."""
    path, own = side.path(life, kind), f"{side.path(life, kind)}/w"
    body = json.loads(json.dumps(done.body).replace("${now}", _time(now)).replace("${namespace}", side.namespace(life)))
    if done.verb in ("status", "delete", "finish", "relabel"):
        return _to_pod(side, side.core(life, "pods"), done, body, pods)
    if "node" in done.verb:
        return _to_node(side, life, done, body)
    if "part" in done.verb or done.verb == "undo":
        parts = side.of_kind(life, done.of or "ReplicaSet")
        if done.at >= len(parts):
            return 0
        part = parts[done.at]
        if done.verb == "undo":
            template = part["spec"]["template"]
            template["metadata"]["labels"].pop(_HASH, None)
            change = [{"op": "replace", "path": "/spec/template", "value": template}]
            return int(side.ask("PATCH", own, change, _JSON)["status"])
        name = f"{side.path(life, done.of)}/{part['metadata']['name']}"
        if done.verb == "remove part":
            return int(side.ask("DELETE", name, body)["status"])
        return int(side.ask("PATCH", name, body, _MERGE)["status"])
    if done.verb == "missed":
        last = {"status": {"lastScheduleTime": _time(now - body)}}
        return int(side.ask("PATCH", f"{own}/status", last, _MERGE)["status"])
    if done.verb == "create":
        return int(side.ask("POST", path, body)["status"])
    if done.verb == "remove":
        return int(side.ask("DELETE", own, body)["status"])
    return int(side.ask("PATCH", own, body, _STRATEGIC if done.verb == "strategic" else _MERGE)["status"])


def _to_pod(side: Side, path: str, done: Act, body: Any, pods: Sequence[Object]) -> int:
    if done.at >= len(pods):
        return 0
    pod = f"{path}/{pods[done.at]['metadata']['name']}"
    if done.verb == "status":
        return int(side.ask("PATCH", f"{pod}/status", {"status": body}, _STRATEGIC)["status"])
    if done.verb == "relabel":
        return int(side.ask("PATCH", pod, {"metadata": {"labels": body}}, _MERGE)["status"])
    options = {"gracePeriodSeconds": 0} if done.verb == "finish" else body
    return int(side.ask("DELETE", pod, options)["status"])


def _to_node(side: Side, life: int, done: Act, body: Any) -> int:
    if done.verb == "add node":
        return add_node(side, life, body)
    nodes = side.nodes(life)
    if done.at >= len(nodes):
        return 0
    path = f"{NODES}/{nodes[done.at]['metadata']['name']}"
    if done.verb == "remove node":
        return int(side.ask("DELETE", path)["status"])
    return int(side.ask("PATCH", path, body, _MERGE)["status"])


def add_node(side: Side, life: int, number: int) -> int:
    name = f"{side.namespace(life)}-{number}"
    labels = {"life": side.namespace(life), "zone": "ab"[number % 2]}
    return int(side.ask("POST", NODES, {"metadata": {"name": name, "labels": labels}})["status"])


def _time(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
