"""A generated application and the chapters of its life."""

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

Object = dict[str, Any]
NAMESPACE: Final = "shop"
Step = tuple[str, ...]


_TOLERATIONS: Final = [
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 4}
    for key in ("not-ready", "unreachable")
]

_CLAIM: Final = {
    "metadata": {"name": "data"},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "manual",
        "resources": {"requests": {"storage": "1Gi"}},
    },
}
_VOLUMES: Final = [
    {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"shop-{number}"},
        "spec": {
            "capacity": {"storage": f"{number}Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "manual",
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": {"path": f"/data/{number}"},
        },
    }
    for number in range(1, 4)
]


def _template(name: str, **spec: object) -> Object:
    container = {
        "name": name,
        "image": f"registry.example/{name}:1",
        "ports": [{"containerPort": 8080, "name": "http"}],
    }
    return {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 1, "tolerations": _TOLERATIONS, **spec},
    }


def _spread(name: str) -> Object:
    """Pods of a revision are evenly on the nodes: which have how many isn't chance."""
    constraint = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "nodeTaintsPolicy": "Honor",
        "labelSelector": _selector(name),
        "matchLabelKeys": ["pod-template-hash"],
    }
    return {"topologySpreadConstraints": [constraint]}


def _on(*nodes: str, preferred: str = "") -> Object:
    def terms(names: Sequence[str]) -> Object:
        return {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [*names]}]}

    found: Object = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [terms(nodes)]}}
    if preferred:
        found["preferredDuringSchedulingIgnoredDuringExecution"] = [{"weight": 100, "preference": terms([preferred])}]
    return {"affinity": {"nodeAffinity": found}}


def _named(version: str, kind: str, name: str, /, **more: object) -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}, **more}


def _selector(name: str) -> Object:
    return {"matchLabels": {"app": name}}


def _settings() -> list[Object]:
    """Returns the namespace, the volumes, and what limits and configures the application."""
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        *_VOLUMES,
        _named(
            "v1",
            "LimitRange",
            "limits",
            spec={"limits": [{"type": "Container", "defaultRequest": {"cpu": "100m"}, "default": {"cpu": "1"}}]},
        ),
        _named(
            "v1", "ResourceQuota", "quota", spec={"hard": {"pods": "24", "requests.cpu": "10", "count/jobs.batch": "5"}}
        ),
        _named("v1", "ServiceAccount", "web"),
        _named("v1", "ConfigMap", "settings", data={"colour": "blue"}),
        _named("v1", "Secret", "password", stringData={"password": "secret"}),
    ]


def _deployments(chance: random.Random) -> list[Object]:
    """Returns the deployments; numbers and strategies differ by chance."""
    surge = chance.choice((1, 2, "25%", "50%"))
    unavailable = chance.choice((0, 1, "25%"))
    return [
        _named(
            "apps/v1",
            "Deployment",
            "web",
            spec={
                "replicas": chance.choice((3, 4)),
                "selector": _selector("web"),
                "strategy": {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}},
                "progressDeadlineSeconds": 9,
                "revisionHistoryLimit": chance.choice((2, 10)),
                "template": _template("web", serviceAccountName="web", **_spread("web")),
            },
        ),
        _named(
            "apps/v1",
            "Deployment",
            "worker",
            spec={
                "replicas": 2,
                "selector": _selector("worker"),
                "strategy": {"type": "Recreate"},
                "template": _template("worker", **_spread("worker"), **_on("node-3", "node-4")),
            },
        ),
    ]


def _services(chance: random.Random) -> list[Object]:
    """Returns the services and the budgets of disruptions."""
    return [
        _named(
            "v1", "Service", "web", spec={"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http"}]}
        ),
        _named("v1", "Service", "db", spec={"selector": {"app": "db"}, "clusterIP": "None", "ports": [{"port": 5432}]}),
        _named("policy/v1", "PodDisruptionBudget", "web", spec={"minAvailable": 2, "selector": _selector("web")}),
        _named(
            "policy/v1",
            "PodDisruptionBudget",
            "db",
            spec={"maxUnavailable": chance.choice((1, "34%")), "selector": _selector("db")},
        ),
    ]


def _other_workloads(chance: random.Random) -> list[Object]:
    """Returns the stateful set, the daemon set and the jobs."""
    return [
        _named(
            "apps/v1",
            "StatefulSet",
            "db",
            spec={
                "replicas": 3,
                "serviceName": "db",
                "selector": _selector("db"),
                "podManagementPolicy": chance.choice(("OrderedReady", "Parallel")),
                "persistentVolumeClaimRetentionPolicy": {
                    "whenScaled": chance.choice(("Retain", "Delete")),
                    "whenDeleted": "Retain",
                },
                "template": _template("db", **_on("node-2", "node-4", preferred="node-2")),
                "volumeClaimTemplates": [_CLAIM],
            },
        ),
        _named("apps/v1", "DaemonSet", "agent", spec={"selector": _selector("agent"), "template": _template("agent")}),
        _named(
            "batch/v1",
            "Job",
            "migrate",
            spec={
                "completions": chance.choice((1, 3)),
                "parallelism": 2,
                "template": _template("migrate", restartPolicy="Never", **_on("node-1")),
            },
        ),
        _named(
            "batch/v1",
            "CronJob",
            "report",
            spec={
                "schedule": "0 0 29 2 *",
                "jobTemplate": {"spec": {"template": _template("report", restartPolicy="Never")}},
            },
        ),
    ]


def _network() -> list[Object]:
    """Returns the network policy and the ingress."""
    return [
        _named(
            "networking.k8s.io/v1",
            "NetworkPolicy",
            "db",
            spec={"podSelector": _selector("db"), "ingress": [{"from": [{"podSelector": _selector("web")}]}]},
        ),
        _named(
            "networking.k8s.io/v1",
            "Ingress",
            "web",
            spec={"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}},
        ),
    ]


def application(chance: random.Random) -> list[Object]:
    """Returns the application's objects; what differs by chance are numbers and strategies."""
    return [*_settings(), *_deployments(chance), *_services(chance), *_other_workloads(chance), *_network()]


def _template_patch(release: str) -> str:
    containers = [{"name": "web", "image": f"registry.example/web:{release}"}]
    return json.dumps(
        {"spec": {"template": {"metadata": {"labels": {"release": release}}, "spec": {"containers": containers}}}}
    )


# What happens: kubectl's words, or `script {…}`, `plug node in|out`, `wait seconds` without it.
CHAPTERS: Final[Mapping[str, Sequence[Step]]] = {
    "create": [("apply", "-f", "application.json"), ("rollout", "status", "deployment/web", "--timeout=60s")],
    "scale": [("scale", "deployment/web", "--replicas=6"), ("scale", "statefulset/db", "--replicas=4")],
    "quota": [("scale", "deployment/web", "--replicas=40")],
    "shrink": [("scale", "deployment/web", "--replicas=4"), ("scale", "statefulset/db", "--replicas=2")],
    "rollout": [
        ("set", "image", "deployment/web", "web=registry.example/web:2"),
        ("rollout", "status", "deployment/web", "--timeout=60s"),
        ("set", "image", "deployment/worker", "worker=registry.example/worker:2"),
        ("rollout", "status", "deployment/worker", "--timeout=60s"),
        ("set", "image", "statefulset/db", "db=registry.example/db:2"),
        ("rollout", "status", "statefulset/db", "--timeout=60s"),
        ("set", "image", "daemonset/agent", "agent=registry.example/agent:2"),
        ("rollout", "status", "daemonset/agent", "--timeout=60s"),
    ],
    "broken": [
        ("script", json.dumps({"selector": "release=broken", "pull_error": "no such image"})),
        ("patch", "deployment", "web", "-p", _template_patch("broken")),
        ("wait", "11"),
        ("rollout", "status", "deployment/web", "--timeout=30s"),
        ("rollout", "history", "deployment/web"),
    ],
    "undo": [
        ("rollout", "undo", "deployment/web"),
        ("rollout", "status", "deployment/web", "--timeout=60s"),
        ("rollout", "undo", "statefulset/db"),
        ("rollout", "status", "statefulset/db", "--timeout=60s"),
        ("rollout", "undo", "daemonset/agent"),
        ("rollout", "status", "daemonset/agent", "--timeout=60s"),
        ("rollout", "history", "deployment/web"),
        ("rollout", "history", "deployment/web", "--revision=1"),
        ("rollout", "history", "statefulset/db"),
        ("rollout", "history", "daemonset/agent"),
    ],
    "pause": [
        ("rollout", "pause", "deployment/web"),
        ("set", "image", "deployment/web", "web=registry.example/web:3"),
        ("scale", "deployment/web", "--replicas=5"),
        ("set", "env", "deployment/web", "COLOUR=red"),
    ],
    "resume": [("rollout", "resume", "deployment/web"), ("rollout", "status", "deployment/web", "--timeout=60s")],
    "restart": [
        ("rollout", "restart", "deployment/web", "statefulset/db", "daemonset/agent"),
        ("rollout", "status", "deployment/web", "--timeout=60s"),
        ("rollout", "status", "statefulset/db", "--timeout=60s"),
        ("rollout", "status", "daemonset/agent", "--timeout=60s"),
    ],
    "failing job": [
        ("script", json.dumps({"selector": "app=failing", "exit_codes": [3], "message": "it broke"})),
        ("create", "-f", "failing.json"),
        ("create", "job", "again", "--from=cronjob/report"),
        ("wait", "12"),
    ],
    "cordon": [("cordon", "node-1"), ("scale", "deployment/web", "--replicas=8")],
    "uncordon": [
        ("uncordon", "node-1"),
        ("rollout", "restart", "deployment/web"),
        ("rollout", "status", "deployment/web", "--timeout=60s"),
    ],
    "drain": [("drain", "node-2", "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=60s")],
    "back": [
        ("uncordon", "node-2"),
        ("rollout", "restart", "deployment/web"),
        ("rollout", "status", "deployment/web", "--timeout=60s"),
    ],
    "node loss": [("plug", "node-3", "out"), ("wait", "60")],
    "node back": [("plug", "node-3", "in"), ("wait", "15")],
    "orphan": [
        ("delete", "deployment", "worker", "--cascade=orphan"),
        ("delete", "statefulset", "db", "--cascade=orphan"),
        ("delete", "daemonset", "agent", "--cascade=orphan"),
        ("delete", "job", "migrate", "--cascade=orphan"),
    ],
    "adopt": [("apply", "-f", "application.json")],
    "foreground": [
        ("delete", "deployment", "worker", "--cascade=foreground"),
        ("delete", "job", "migrate", "--cascade=foreground"),
        ("delete", "cronjob", "report"),
    ],
    "background": [
        ("delete", "statefulset", "db"),
        ("delete", "daemonset", "agent"),
        ("delete", "pvc", "--all", "--wait=false"),
    ],
    "deleted node": [("delete", "node", "node-4"), ("wait", "75")],
    "namespace": [("delete", "namespace", NAMESPACE, "--timeout=60s")],
}
