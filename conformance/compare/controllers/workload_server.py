"""A server whose controllers run random workloads: sends it requests and reads what its controllers made."""

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

from conformance.compare.controllers.jobs import Side as JobSide
from conformance.exchange import Client
from conformance.players.controller_runs import counted, hashes_of, neutral

Object = dict[str, Any]
LONG_AGO: Final = "2020-01-01T00:00:00Z"
_REVISION: Final = "deployment.kubernetes.io/revision"
NODES: Final = "/api/v1/nodes"
RESOURCES: Final = {
    "Deployment": "apps/v1/deployments",
    "ReplicaSet": "apps/v1/replicasets",
    "StatefulSet": "apps/v1/statefulsets",
    "DaemonSet": "apps/v1/daemonsets",
    "CronJob": "batch/v1/cronjobs",
    "Job": "batch/v1/jobs",
    "ControllerRevision": "apps/v1/controllerrevisions",
}
SHOWN: Final = {
    "Deployment": ("Deployment", "ReplicaSet"),
    "ReplicaSet": ("ReplicaSet",),
    "StatefulSet": ("StatefulSet", "ControllerRevision"),
    "DaemonSet": ("DaemonSet", "ControllerRevision"),
    "CronJob": ("CronJob", "Job"),
}


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
        return f"/apis/{RESOURCES[kind].replace('v1/', f'v1/namespaces/{self.namespace(life)}/')}"

    def core(self, life: int, resource: str) -> str:
        return f"/api/v1/namespaces/{self.namespace(life)}/{resource}"

    def items(self, path: str) -> list[Object]:
        found: list[Object] = self.ask("GET", path)["body"]["items"]
        return found

    def nodes(self, life: int) -> list[Object]:
        return self.items(f"{NODES}?labelSelector=life={self.namespace(life)}")

    def pods(self, life: int) -> list[Object]:
        pods = self.items(self.core(life, "pods"))
        return sorted(pods, key=lambda pod: (look(pod, self.namespace(life)), pod["metadata"]["creationTimestamp"]))

    def of_kind(self, life: int, kind: str) -> list[Object]:
        """In the order of their revisions, else of their age."""
        return sorted(self.items(self.path(life, kind)), key=_age)

    def versions(self) -> set[str]:
        # a claim without a provisioner gets events forever
        events = "/api/v1/events?fieldSelector=involvedObject.kind!=PersistentVolumeClaim"
        paths = ("/api/v1/pods", events, *(f"/apis/{path}" for path in RESOURCES.values()))
        return {
            obj["metadata"]["resourceVersion"]
            for path in paths
            for obj in self.items(path)
            if obj["metadata"]["namespace"].startswith(self._prefix)
        }

    def state_of(self, life: int, kind: str) -> Object:
        """Returns the content of the namespace, with identities, times and generated names made neutral."""
        objects = {shown: self.of_kind(life, shown) for shown in SHOWN[kind]}
        objects["Pod"] = self.pods(life)
        if kind == "StatefulSet":
            objects["PersistentVolumeClaim"] = self.items(self.core(life, "persistentvolumeclaims"))
        names = self._names.get(life, {}) | hashes_of([obj for found in objects.values() for obj in found])
        names[self.namespace(life)] = "NAMESPACE"
        self._names[life] = names
        told: Counter[str] = Counter()
        for event in self.items(self.core(life, "events")):
            about = event["involvedObject"]
            if about["kind"] in RESOURCES:
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
            [found["type"], found["status"], found.get("lastTransitionTime") == LONG_AGO]
            for found in status.get("conditions", [])
        ],
        [found["kind"] for found in metadata.get("ownerReferences", [])],
        {name: value for name, value in metadata.get("labels", {}).items() if "hash" not in name},
        spec.get("nodeName", ""),
        spec.get("affinity", {}),
    ]
    return json.dumps(shown, sort_keys=True).replace(namespace, "NAMESPACE")
