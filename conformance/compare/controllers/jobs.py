"""Random lives of jobs, with two job controllers: the jobs, pods and events must become the same.

    python -m conformance.compare.controllers.jobs --oracle URL --oracle-token T --server URL --token T [--jobs N] [--rounds N] [--seed N]

Beside each server a controller manager runs (without pod garbage collection: the pods of half the jobs are on a node that doesn't exist, so
that they linger when they are deleted). Every job has a namespace of its own. In each round something happens to every job on both sides:
its pods run, succeed, fail or are deleted, or its spec changes; then the script waits until nothing changes. Pods can't be distinguished by
their names, so the pods of each step are chosen by their state.
"""

import argparse
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from conformance.exchange import Client

Object = dict[str, Any]
_QUIET_SECONDS: Final = 2.6
_MAX_SECONDS: Final = 30.0
_LONG_AGO: Final = "2020-01-01T00:00:00Z"
_FINALIZER: Final = "batch.kubernetes.io/job-tracking"
_INDEX: Final = "batch.kubernetes.io/job-completion-index"
_FAILURES: Final = (
    "batch.kubernetes.io/job-index-failure-count",
    "batch.kubernetes.io/job-index-ignored-failure-count",
)
_POD: Final = re.compile(r"\bj(-\d+)?-[bcdfghjklmnpqrstvwxz2456789]{5}\b")


class Side:
    """A server, and the namespaces of this run on it."""

    def __init__(self, client: Client, prefix: str) -> None:
        self._client = client
        self._prefix = prefix

    def ask(self, method: str, path: str, body: object = None, content_type: str = "application/json") -> Object:
        request: Object = {"method": method, "path": path, "type": content_type}
        if body is not None:
            request["body"] = body
        return self._client.send(request, [])

    def namespace(self, job: int) -> str:
        return f"{self._prefix}-{job}"

    def job_path(self, job: int) -> str:
        return f"/apis/batch/v1/namespaces/{self.namespace(job)}/jobs"

    def pods(self, job: int) -> list[Object]:
        found: list[Object] = self.ask("GET", f"/api/v1/namespaces/{self.namespace(job)}/pods")["body"]["items"]
        return sorted(found, key=lambda pod: (json.dumps(look(pod)), pod["metadata"]["creationTimestamp"]))

    def versions(self) -> set[str]:
        """Returns the resource versions of all objects of this run."""
        paths = ("/apis/batch/v1/jobs", "/api/v1/pods", "/api/v1/events")
        return {
            obj["metadata"]["resourceVersion"]
            for path in paths
            for obj in self.ask("GET", path)["body"]["items"]
            if obj["metadata"]["namespace"].startswith(self._prefix)
        }

    def state(self, job: int) -> Object:
        found = self.ask("GET", f"{self.job_path(job)}/j")["body"]
        events = self.ask("GET", f"/api/v1/namespaces/{self.namespace(job)}/events")["body"]["items"]
        status = found.get("status", {})
        return {
            "status": {**neutral_status(status), "started": "startTime" in status, "ended": "completionTime" in status},
            "pods": sorted(Counter(json.dumps(look(pod)) for pod in self.pods(job)).items()),
            "events": sorted(
                {
                    _POD.sub("POD", f"{event['type']} {event['reason']}: {event['message']}").replace(
                        self._prefix, "NS"
                    )
                    for event in events
                    if event["involvedObject"]["kind"] == "Job"
                }
            ),
        }


def neutral_status(status: Object) -> Object:
    prefix = re.compile(r"\b[\w-]+/(?=POD\b)")
    shown = {key: value for key, value in status.items() if key not in ("startTime", "completionTime")}
    uncounted = shown.pop("uncountedTerminatedPods", {})
    shown["uncounted"] = {name: len(uids) for name, uids in uncounted.items()}
    shown["conditions"] = [
        [
            condition["type"],
            condition["status"],
            condition.get("reason"),
            prefix.sub("", _POD.sub("POD", condition.get("message", ""))),
        ]
        for condition in status.get("conditions", [])
    ]
    return shown


def look(pod: Object) -> list[Any]:
    """Returns the state by which a pod is recognized."""
    metadata, status = pod["metadata"], pod["status"]
    annotations = metadata.get("annotations", {})
    return [
        annotations.get(_INDEX, ""),
        status.get("phase"),
        "deletionTimestamp" in metadata,
        _FINALIZER in metadata.get("finalizers", []),
        [annotations.get(name, "") for name in _FAILURES],
        [[found["type"], found["status"]] for found in status.get("conditions", [])],
        [found.get("restartCount") for found in status.get("containerStatuses", [])],
        [found["kind"] for found in metadata.get("ownerReferences", [])],
        pod["spec"].get("hostname", ""),
        len(pod["spec"]["containers"][0].get("env", [])),
        metadata.get("labels", {}).get(_INDEX, ""),
    ]


# ------------------------------------------------------------------------------------- what there may be


def random_job(chance: random.Random) -> Object:
    """Small, so that its end comes in sight."""
    indexed = chance.random() < 0.6
    on_node, restart = chance.random() < 0.5, chance.choice(["Never", "Never", "Never", "OnFailure"])
    pod: Object = {"restartPolicy": restart, "containers": [{"name": "c", "image": "busybox"}]}
    if on_node:
        pod["nodeName"] = "nobody"
    spec: Object = {"template": {"spec": pod}, "parallelism": chance.randint(1, 4)}
    if indexed or chance.random() < 0.8:
        spec["completions"] = chance.randint(1, 5)
    if indexed:
        spec["completionMode"] = "Indexed"
        if chance.random() < 0.4 and restart == "Never":
            spec["backoffLimitPerIndex"] = chance.randint(0, 2)
            if chance.random() < 0.5:
                spec["maxFailedIndexes"] = chance.randint(0, spec["completions"])
        if chance.random() < 0.35:
            spec["successPolicy"] = {"rules": [random_success_rule(chance, spec["completions"])]}
    if chance.random() < 0.7:
        spec["backoffLimit"] = chance.randint(0, 5)
    if restart == "Never" and chance.random() < 0.45:
        per_index = "backoffLimitPerIndex" in spec
        spec["podFailurePolicy"] = {"rules": [random_rule(chance, per_index) for _ in range(chance.randint(1, 3))]}
    if "podFailurePolicy" not in spec and chance.random() < 0.4:
        spec["podReplacementPolicy"] = chance.choice(["Failed", "TerminatingOrFailed"])
    if chance.random() < 0.2:
        spec["suspend"] = True
    if chance.random() < 0.05:
        spec["managedBy"] = "example.com/nobody"
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec}


def random_success_rule(chance: random.Random, completions: int) -> Object:
    rule: Object = {}
    if chance.random() < 0.6:
        rule["succeededIndexes"] = str(chance.randrange(completions))
        if completions > 2 and chance.random() < 0.5:
            rule["succeededIndexes"] = f"0-{chance.randint(1, completions - 1)}"
    if not rule:
        rule["succeededCount"] = chance.randint(1, completions)
    return rule


def random_rule(chance: random.Random, per_index: bool) -> Object:
    action = chance.choice(["FailJob", "Ignore", "Count", *(["FailIndex"] if per_index else [])])
    if chance.random() < 0.3:
        return {"action": action, "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    codes: Object = {"operator": chance.choice(["In", "NotIn"]), "values": sorted(chance.sample([1, 3, 42], 2))}
    if chance.random() < 0.5:
        codes["containerName"] = "c"
    return {"action": action, "onExitCodes": codes}


# -------------------------------------------------------------------------------------- what happens


def happening(chance: random.Random, job: Object, pods: Sequence[Object]) -> list[tuple[Any, ...]]:
    """Chooses what happens on both sides; pods are given by their index among those in the same state."""
    live = [at for at, pod in enumerate(pods) if pod["status"].get("phase") in ("Pending", "Running")]
    going = [at for at in live if "deletionTimestamp" in pods[at]["metadata"]]
    active = [at for at in live if at not in going]
    spec = job["spec"]
    # The same for all: which of several failures is looked at first, is chance.
    code, disrupted = chance.choice([1, 3, 42]), chance.random() < 0.25
    chosen = chance.sample(active, min(len(active), chance.choice([1, 1, 2, 3]))) if active else []
    choices: list[tuple[int, list[tuple[Any, ...]]]] = [
        (5, [("succeed", at) for at in chosen]),
        (5, [("fail", at, code, disrupted) for at in chosen]),
        (2, [("run", at) for at in chosen]),
        (1, [("restart", at) for at in chosen]),
        (2, [("delete", at) for at in chosen[:1]]),
        (3, [("end", at, chance.choice(["Failed", "Succeeded"])) for at in going]),
        (2, [("spec", {"suspend": not spec.get("suspend", False)})]),
        (2, [("spec", {"parallelism": chance.randint(0, 5)})]),
        (1, [("spec", {"activeDeadlineSeconds": 1})]),
    ]
    if spec.get("completionMode") == "Indexed" and "successPolicy" not in spec:
        size = chance.randint(1, 6)
        choices.append((2, [("spec", {"parallelism": size, "completions": size})]))
    possible = [(weight, actions) for weight, actions in choices if actions]
    return chance.choices([actions for _, actions in possible], [weight for weight, _ in possible])[0]


def act(side: Side, job: int, action: tuple[Any, ...], pods: Sequence[Object]) -> int:
    """The answer's status."""
    kind, *details = action
    if kind == "spec":
        path = f"{side.job_path(job)}/j"
        return int(side.ask("PATCH", path, {"spec": details[0]}, "application/merge-patch+json")["status"])
    path = f"/api/v1/namespaces/{side.namespace(job)}/pods/{pods[details[0]]['metadata']['name']}"
    if kind == "delete":
        return int(side.ask("DELETE", path)["status"])
    done = _status(kind, details[1:])
    answer = side.ask("PATCH", f"{path}/status", {"status": done}, "application/strategic-merge-patch+json")
    if kind == "end":
        side.ask("DELETE", path, {"gracePeriodSeconds": 0})
    return int(answer["status"])


def _status(kind: str, details: Sequence[Any]) -> Object:
    ended = {"startedAt": _LONG_AGO, "finishedAt": _LONG_AGO}
    if kind == "run":
        return {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    if kind == "restart":
        return {
            "phase": "Running",
            "containerStatuses": [{**_container(), "restartCount": 3, "state": {"running": {}}}],
        }
    phase = "Succeeded" if kind == "succeed" else "Failed" if kind == "fail" else details[0]
    code = 0 if phase == "Succeeded" else details[0] if kind == "fail" else 143
    state = {"terminated": {"exitCode": code, **ended}}
    status: Object = {"phase": phase, "containerStatuses": [{**_container(), "state": state}]}
    if kind == "fail" and details[1]:
        status["conditions"] = [{"type": "DisruptionTarget", "status": "True"}]
    return status


def _container() -> Object:
    return {"name": "c", "image": "busybox", "imageID": "", "ready": False, "restartCount": 0}


# ------------------------------------------------------------------------------------------- the run


def wait(sides: Sequence[Side]) -> None:
    """Waits until nothing changes on any."""
    before: list[set[str]] = []
    since = start = time.monotonic()
    while time.monotonic() - since < _QUIET_SECONDS and time.monotonic() - start < _MAX_SECONDS:
        time.sleep(0.2)
        now = [side.versions() for side in sides]
        if now != before:
            before, since = now, time.monotonic()


def run(oracle: Side, server: Side, jobs: int, rounds: int, seed: int) -> Iterator[tuple[int, str]]:
    """(looks that were equal, what differs or "")."""
    chance = random.Random(seed)
    sides = (oracle, server)
    lives: dict[int, list[Any]] = {}
    for job in range(jobs):
        made = random_job(chance)
        lives[job] = [made["spec"]]
        for side in sides:
            side.ask("POST", "/api/v1/namespaces", {"metadata": {"name": side.namespace(job)}})
        answers = [side.ask("POST", side.job_path(job), made)["status"] for side in sides]
        if answers != [201, 201]:
            if answers[0] != answers[1]:
                yield 0, f"creation is answered {answers}: {json.dumps(made['spec'])}"
            del lives[job]
    for _ in range(rounds + 1):
        wait(sides)
        for job in [*lives]:
            states = [side.state(job) for side in sides]
            if states[0] != states[1]:
                yield (
                    0,
                    f"job {job}: {json.dumps(lives[job])}\n  oracle {json.dumps(states[0])}\n  server {json.dumps(states[1])}",
                )
                del lives[job]
                continue
            yield 1, ""
            pods = [side.pods(job) for side in sides]
            found = oracle.ask("GET", f"{oracle.job_path(job)}/j")["body"]
            for action in happening(chance, found, pods[0]):
                lives[job].append(action)
                answers = [act(side, job, action, own) for side, own in zip(sides, pods, strict=True)]
                if answers[0] != answers[1]:
                    yield 0, f"job {job}: {action} is answered {answers}: {json.dumps(lives[job])}"
    for side in sides:
        for job in range(jobs):
            side.ask("DELETE", f"/api/v1/namespaces/{side.namespace(job)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("oracle", "oracle-token", "server", "token"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--jobs", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    prefix = f"jobs-{arguments.seed}-{int(time.time()) % 100000}"
    oracle = Side(Client(arguments.oracle, arguments.oracle_token), prefix)
    server = Side(Client(arguments.server, arguments.token), prefix)
    equal, different = 0, 0
    for count, problem in run(oracle, server, arguments.jobs, arguments.rounds, arguments.seed):
        equal += count
        if problem:
            different += 1
            print(problem, flush=True)
    print(f"{equal} looks equal, {different} different", file=sys.stderr)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
