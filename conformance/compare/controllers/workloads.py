"""Random lives of deployments, replica sets, stateful sets, daemon sets and cron jobs, with two controller managers.

    python -m conformance.compare.controllers.workloads --oracle URL --oracle-token T --server URL --token T
        [--kinds Deployment,...] [--lives N] [--rounds N] [--seed N] [--seeds N] [--output text|json]

Beside each server a controller manager runs, without node lifecycle and pod garbage collection: this script plays the pods and nodes. Every
life is one workload in a namespace of its own. In each round one thing happens to it on both sides: it is scaled, rolled, paused, rolled
back, deleted (with each propagation policy) or created again, its pods get ready, fail, succeed, are deleted, taken out of it or put back,
its nodes come, go and are tainted, its schedule was missed. Then the script waits until nothing changes, and compares everything in the
namespace: whole objects, with identities, times, generated names and hashes made neutral, and events with their counts. Pods can't be
distinguished by their names, so the pods of each step are chosen by their state. A life ends at its first difference; each kind of
difference is printed once, with the seed of its run. With `--server` the oracle itself, what differs is chance.
"""

import argparse
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from conformance.compare.controllers.jobs import Side as JobSide
from conformance.compare.controllers.jobs import wait
from conformance.exchange import Client
from conformance.players.controllers import counted, difference, hashes_of, neutral

Object = dict[str, Any]
_LONG_AGO: Final = "2020-01-01T00:00:00Z"
_STRATEGIC: Final = "application/strategic-merge-patch+json"
_MERGE: Final = "application/merge-patch+json"
_JSON: Final = "application/json-patch+json"
_REVISION: Final = "deployment.kubernetes.io/revision"
_HASH: Final = "pod-template-hash"
_NODES: Final = "/api/v1/nodes"
_RESOURCES: Final = {
    "Deployment": "apps/v1/deployments",
    "ReplicaSet": "apps/v1/replicasets",
    "StatefulSet": "apps/v1/statefulsets",
    "DaemonSet": "apps/v1/daemonsets",
    "CronJob": "batch/v1/cronjobs",
    "Job": "batch/v1/jobs",
    "ControllerRevision": "apps/v1/controllerrevisions",
}
_SHOWN: Final = {
    "Deployment": ("Deployment", "ReplicaSet"),
    "ReplicaSet": ("ReplicaSet",),
    "StatefulSet": ("StatefulSet", "ControllerRevision"),
    "DaemonSet": ("DaemonSet", "ControllerRevision"),
    "CronJob": ("CronJob", "Job"),
}
KINDS: Final = tuple(_SHOWN)


@dataclass(frozen=True)
class Act:
    """An act on a life. `verb` is a request's verb or one of the names that `_done` handles; `at` is the index of a pod, node or object."""

    verb: str
    body: Any = None
    at: int = 0
    of: str = ""


class Side(JobSide):
    """A server, and the namespaces of this run on it."""

    def __init__(self, client: Client, prefix: str) -> None:
        super().__init__(client, prefix)
        self._names: dict[int, dict[str, str]] = {}

    def path(self, life: int, kind: str) -> str:
        return f"/apis/{_RESOURCES[kind].replace('v1/', f'v1/namespaces/{self.namespace(life)}/')}"

    def core(self, life: int, resource: str) -> str:
        return f"/api/v1/namespaces/{self.namespace(life)}/{resource}"

    def items(self, path: str) -> list[Object]:
        found: list[Object] = self.ask("GET", path)["body"]["items"]
        return found

    def nodes(self, life: int) -> list[Object]:
        return self.items(f"{_NODES}?labelSelector=life={self.namespace(life)}")

    def pods(self, life: int) -> list[Object]:
        pods = self.items(self.core(life, "pods"))
        return sorted(pods, key=lambda pod: (look(pod, self.namespace(life)), pod["metadata"]["creationTimestamp"]))

    def of_kind(self, life: int, kind: str) -> list[Object]:
        """In the order of their revisions, else of their age."""
        return sorted(self.items(self.path(life, kind)), key=_age)

    def versions(self) -> set[str]:
        # a claim without a provisioner gets events forever
        events = "/api/v1/events?fieldSelector=involvedObject.kind!=PersistentVolumeClaim"
        paths = ("/api/v1/pods", events, *(f"/apis/{path}" for path in _RESOURCES.values()))
        return {
            obj["metadata"]["resourceVersion"]
            for path in paths
            for obj in self.items(path)
            if obj["metadata"]["namespace"].startswith(self._prefix)
        }

    def state_of(self, life: int, kind: str) -> Object:
        """Returns the content of the namespace, with identities, times and generated names made neutral."""
        objects = {shown: self.of_kind(life, shown) for shown in _SHOWN[kind]}
        objects["Pod"] = self.pods(life)
        if kind == "StatefulSet":
            objects["PersistentVolumeClaim"] = self.items(self.core(life, "persistentvolumeclaims"))
        names = self._names.get(life, {}) | hashes_of([obj for found in objects.values() for obj in found])
        names[self.namespace(life)] = "NAMESPACE"
        self._names[life] = names
        told: Counter[str] = Counter()
        for event in self.items(self.core(life, "events")):
            about = event["involvedObject"]
            if about["kind"] in _RESOURCES:
                text = f"{about['kind']} {about['name']}: {event['type']} {event['reason']}: {event['message']}"
                told[neutral(text, names)] += event.get("count") or 1
        return {
            **{name: counted(neutral(obj, names) for obj in found) for name, found in objects.items()},
            "Event": told,
        }


def _age(obj: Object) -> tuple[int, str, int, str]:
    metadata = obj["metadata"]
    revision = metadata.get("annotations", {}).get(_REVISION) or obj.get("revision", 0)
    return int(revision), metadata["creationTimestamp"], metadata.get("generation", 0), metadata["name"]


def look(pod: Object, namespace: str) -> str:
    """Returns the state by which a pod is recognized: everything but its identity, and instead of its hash only its image."""
    metadata, status, spec = pod["metadata"], pod["status"], pod["spec"]
    ordinal = metadata.get("labels", {}).get("apps.kubernetes.io/pod-index", "")
    shown = [
        int(ordinal or 0),
        spec["containers"][0]["image"],
        status.get("phase"),
        "deletionTimestamp" in metadata,
        [
            [found["type"], found["status"], found.get("lastTransitionTime") == _LONG_AGO]
            for found in status.get("conditions", [])
        ],
        [found["kind"] for found in metadata.get("ownerReferences", [])],
        {name: value for name, value in metadata.get("labels", {}).items() if "hash" not in name},
        spec.get("nodeName", ""),
        spec.get("affinity", {}),
    ]
    return json.dumps(shown, sort_keys=True).replace(namespace, "NAMESPACE")


# ------------------------------------------------------------------------------------- what there may be


def random_workload(chance: random.Random, kind: str, namespace: str, now: float) -> Object:
    """Named "w". `namespace` chooses a daemon set's nodes; `now` is the minute that schedules keep away from."""
    if kind == "CronJob":
        return _workload(kind, random_cron_job(chance, now))
    pod: Object = {"containers": [{"name": "c", "image": "image:1"}], "terminationGracePeriodSeconds": 3}
    spec: Object = {
        "selector": {"matchLabels": {"app": "w"}},
        "template": {"metadata": {"labels": {"app": "w"}}, "spec": pod},
    }
    if chance.random() < 0.25:
        spec["minReadySeconds"] = 3600
    if kind == "DaemonSet":
        pod["nodeSelector"] = {"life": namespace}
        if chance.random() < 0.4:
            pod["tolerations"] = [
                {"key": "taint", "operator": "Exists", "effect": chance.choice(["NoSchedule", "NoExecute"])}
            ]
        if chance.random() < 0.7:
            spec["updateStrategy"] = random_daemon_strategy(chance)
    else:
        spec["replicas"] = chance.randint(0, 4)
        if chance.random() < 0.4:
            pod["nodeName"] = "nobody"
    if kind == "Deployment":
        if chance.random() < 0.8:
            spec["strategy"] = random_strategy(chance)
        if chance.random() < 0.2 and "minReadySeconds" not in spec:
            spec["progressDeadlineSeconds"] = 1
        if chance.random() < 0.1:
            spec["paused"] = True
    if kind == "StatefulSet":
        spec |= random_stateful_fields(chance)
    if kind != "ReplicaSet" and chance.random() < 0.3:
        spec["revisionHistoryLimit"] = chance.randint(0, 2)
    return _workload(kind, spec)


def random_stateful_fields(chance: random.Random) -> Object:
    """Returns random values for the fields that only stateful sets have."""
    spec: Object = {"serviceName": "s"}
    spec["podManagementPolicy"] = chance.choice(["OrderedReady", "OrderedReady", "Parallel"])
    if chance.random() < 0.7:
        spec["updateStrategy"] = random_stateful_strategy(chance)
    if chance.random() < 0.3:
        spec["ordinals"] = {"start": chance.randint(0, 3)}
    if chance.random() < 0.3:
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        spec["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": {**claim, "storageClassName": "none"}}]
        spec["persistentVolumeClaimRetentionPolicy"] = random_retention(chance)
    return spec


def _workload(kind: str, spec: Object) -> Object:
    version = _RESOURCES[kind].rpartition("/")[0]
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "w", "labels": {"of": "w"}}, "spec": spec}


def random_count(chance: random.Random, least: int = 0) -> int | str:
    count = chance.randint(least, 3)
    return count if chance.random() < 0.5 else f"{chance.choice([25, 34, 50, 100])}%"


def random_strategy(chance: random.Random) -> Object:
    if chance.random() < 0.25:
        return {"type": "Recreate", "rollingUpdate": None}
    surge = random_count(chance)
    return {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": surge, "maxUnavailable": random_count(chance, least=surge == 0)},
    }


def random_daemon_strategy(chance: random.Random) -> Object:
    if chance.random() < 0.25:
        return {"type": "OnDelete", "rollingUpdate": None}
    rolling: Object = {"maxSurge": 0, "maxUnavailable": 0}
    rolling[chance.choice([*rolling])] = random_count(chance, least=1)
    return {"type": "RollingUpdate", "rollingUpdate": rolling}


def random_stateful_strategy(chance: random.Random) -> Object:
    if chance.random() < 0.25:
        return {"type": "OnDelete", "rollingUpdate": None}
    rolling: Object = {"partition": chance.choice([0, 0, 0, 1, 2, 3])}
    if chance.random() < 0.4:
        rolling["maxUnavailable"] = random_count(chance, least=1)
    return {"type": "RollingUpdate", "rollingUpdate": rolling}


def random_retention(chance: random.Random) -> Object:
    return {when: chance.choice(["Retain", "Delete"]) for when in ("whenDeleted", "whenScaled")}


def random_cron_job(chance: random.Random, now: float) -> Object:
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "image:1"}]}
    spec: Object = {
        "schedule": random_schedule(chance, now),
        "concurrencyPolicy": chance.choice(["Allow", "Forbid", "Replace"]),
        "jobTemplate": {"metadata": {"labels": {"app": "w"}}, "spec": {"backoffLimit": 0, "template": {"spec": pod}}},
    }
    for name in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        if chance.random() < 0.5:
            spec[name] = chance.randint(0, 2)
    if chance.random() < 0.25:
        spec["startingDeadlineSeconds"] = chance.choice([5, 3600, 7200, 1_000_000])
    if chance.random() < 0.2:
        spec["suspend"] = True
    if chance.random() < 0.3:
        spec["timeZone"] = chance.choice(["Etc/UTC", "Europe/Zurich", "Asia/Kolkata"])
    return spec


def random_schedule(chance: random.Random, now: float) -> str:
    """Hourly, or twice an hour; nothing in the next minutes."""
    minutes = sorted({int(now / 60 - chance.randint(3, 40)) % 60 for _ in range(chance.randint(1, 2))})
    return f"{','.join(map(str, minutes))} {chance.choice(['*', '*', '*', '*/2'])} * * *"


# -------------------------------------------------------------------------------------- what happens


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
    since = chance.choice([_LONG_AGO, _LONG_AGO, _LONG_AGO, "${now}"])

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
    ended = {"exitCode": int(phase == "Failed"), "startedAt": _LONG_AGO, "finishedAt": _LONG_AGO}
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
    path = f"{_NODES}/{nodes[done.at]['metadata']['name']}"
    if done.verb == "remove node":
        return int(side.ask("DELETE", path)["status"])
    return int(side.ask("PATCH", path, body, _MERGE)["status"])


def add_node(side: Side, life: int, number: int) -> int:
    name = f"{side.namespace(life)}-{number}"
    labels = {"life": side.namespace(life), "zone": "ab"[number % 2]}
    return int(side.ask("POST", _NODES, {"metadata": {"name": name, "labels": labels}})["status"])


def _time(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


# ------------------------------------------------------------------------------------------- the run


@dataclass(frozen=True)
class Found:
    """The result of comparing a life: `problem` is "" if both sides are equal, `key` is the kind of the problem."""

    seed: int
    kind: str
    life: int
    problem: str = ""
    key: str = ""
    history: Sequence[Any] = ()


def run(sides: tuple[Side, Side], kinds: Sequence[str], count: int, rounds: int, seed: int) -> Iterator[Found]:
    chance = random.Random(seed)
    now = time.time()
    lives = {life: kinds[life % len(kinds)] for life in range(count)}
    histories: dict[int, list[Any]] = {life: [] for life in lives}
    for life, kind in lives.items():
        for side in sides:
            side.ask("POST", "/api/v1/namespaces", {"metadata": {"name": side.namespace(life)}})
            if kind == "DaemonSet":
                for number in range(3):
                    add_node(side, life, number)
    with ThreadPoolExecutor(2) as pool:
        for _ in range(rounds):
            for life, kind in [*lives.items()]:
                found = sides[0].ask("GET", f"{sides[0].path(life, kind)}/w")
                workload = found["body"] if found["status"] == 200 else None
                acts = happening(chance, kind, workload, sides[0], life, now)
                pods = [side.pods(life) for side in sides]
                for done in acts:
                    histories[life].append([done.verb, *filter(None, (done.of, done.at, done.body))])
                    at = time.time()
                    answers = [act(side, life, kind, done, own, at) for side, own in zip(sides, pods, strict=True)]
                    if answers[0] != answers[1]:
                        problem = f"{done.verb} is answered {answers}"
                        yield Found(seed, kind, life, problem, problem, histories[life])
            wait(sides)
            for life, kind in [*lives.items()]:
                states = [*pool.map(lambda side, life=life, kind=kind: _plain(side.state_of(life, kind)), sides)]
                problem = difference(states[0], states[1], "")
                yield Found(seed, kind, life, problem, kind_of(problem), histories[life])
                if problem:
                    del lives[life]
    for side in sides:
        for life in range(count):
            side.ask("DELETE", f"/api/v1/namespaces/{side.namespace(life)}")
            for node in side.nodes(life):
                side.ask("DELETE", f"{_NODES}/{node['metadata']['name']}")
            for pod in side.pods(life):
                side.ask("DELETE", f"{side.core(life, 'pods')}/{pod['metadata']['name']}", {"gracePeriodSeconds": 0})


def _plain(state: Object) -> Any:
    return json.loads(json.dumps(state))


def kind_of(problem: str) -> str:
    """A difference without its numbers."""
    return re.sub(r"\d+", "N", problem)[:200]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("oracle", "oracle-token", "server", "token"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--lives", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1, help="how many, from --seed on")
    parser.add_argument("--output", choices=("text", "json"), default="text")
    arguments = parser.parse_args()
    equal: Counter[str] = Counter()
    differences: dict[tuple[str, str], list[Found]] = {}
    for seed in range(arguments.seed, arguments.seed + arguments.seeds):
        run_id = f"{seed}-{int(time.time()) % 100000}"
        sides = (
            Side(Client(arguments.oracle, arguments.oracle_token), f"wo-{run_id}"),
            Side(Client(arguments.server, arguments.token), f"ws-{run_id}"),
        )
        for found in run(sides, arguments.kinds.split(","), arguments.lives, arguments.rounds, seed):
            if not found.problem:
                equal[found.kind] += 1
                continue
            known = differences.setdefault((found.kind, found.key), [])
            known.append(found)
            if len(known) == 1 and arguments.output == "text":
                print(f"seed {seed}, {found.kind} {found.life}: {found.problem}", flush=True)
                print(f"    {json.dumps(found.history)}", flush=True)
        different = sum(map(len, differences.values()))
        print(f"seed {seed}: {sum(equal.values())} states equal, {different} lives differ", file=sys.stderr, flush=True)
    if arguments.output == "json":
        print(json.dumps(_report(equal, differences), indent=1))
    else:
        print("; ".join(f"{kind}: {equal[kind]} states equal" for kind in arguments.kinds.split(",")))
    return 1 if differences else 0


def _report(equal: Mapping[str, int], differences: Mapping[tuple[str, str], Sequence[Found]]) -> Object:
    return {
        "equal": equal,
        "different": [
            {
                "kind": kind,
                "seed": found[0].seed,
                "life": found[0].life,
                "count": len(found),
                "problem": found[0].problem,
                "history": found[0].history,
            }
            for (kind, _), found in differences.items()
        ],
    }


if __name__ == "__main__":
    sys.exit(main())
