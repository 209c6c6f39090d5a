"""Random workloads: deployments, replica sets, stateful sets, daemon sets and cron jobs."""

import random

from conformance.compare.controllers.workload_server import RESOURCES, Object


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
    version = RESOURCES[kind].rpartition("/")[0]
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
