"""Recordings of any size for the page: a Deployment's rollout as it happens in a cluster, again and again, with its joins."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

BEGAN: Final = 1_780_000_000.0
KINDS: Final = (
    ("namespaces", "", "v1", "Namespace", False, ("ns",)),
    ("configmaps", "", "v1", "ConfigMap", True, ("cm",)),
    ("pods", "", "v1", "Pod", True, ("po",)),
    ("deployments.apps", "apps", "v1", "Deployment", True, ("deploy",)),
    ("replicasets.apps", "apps", "v1", "ReplicaSet", True, ("rs",)),
)
_API_VERSIONS: Final = {r: f"{group}/{version}" if group else version for r, group, version, *_ in KINDS}
_KIND_NAMES: Final = {r: kind for r, _, _, kind, *_ in KINDS}


class Recorder:
    """Writes records. Each request takes 2 ms of real time and of the cluster's."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.states: dict[int, Any] = {}
        self.requests: dict[int, Any] = {}
        self.at = 0.0
        self.revision = 0
        self._added = 0
        self._seq = 0
        self._reconcile = 0
        self._current: dict[tuple[str, str, str], dict[str, Any]] = {}
        self._watches: dict[tuple[str, str], int] = {}
        self._add(
            "start",
            version="v1.36.3",
            began=BEGAN,
            time=BEGAN,
            revision=0,
            nodes=3,
            controllers={"deployment-controller": "run", "replicaset-controller": "run"},
            levers=False,
        )
        kinds = [
            {
                "r": r,
                "group": group,
                "version": version,
                "resource": r.split(".")[0],
                "kind": kind,
                "namespaced": namespaced,
                "short": list(short),
            }
            for r, group, version, kind, namespaced, short in KINDS
        ]
        self._add("kinds", kinds=kinds)

    def _add(self, kind: str, **fields: Any) -> None:
        self.records.append({"t": kind, "n": self._added, **fields})
        self._added += 1

    def gap(self, before: int) -> None:
        """Records that everything older than a revision is forgotten."""
        self._add("gap", before=before)

    def clock(self, change: str, seconds: float = 0.0) -> None:
        """Records a change of the clock."""
        self._add("clock", at=self.at, time=BEGAN + self.at, change=change, seconds=seconds)

    def fault(self, number: int, change: str, **fields: Any) -> None:
        """Records that a fault was added or removed."""
        self._add("fault", at=self.at, time=BEGAN + self.at, id=number, change=change, fault=fields)

    def request(self, client: str, verb: str, r: str, ns: str, name: str, **more: Any) -> int:
        """Records a request, 200 unless `status` is in `more`, and returns its seq."""
        self._seq += 1
        self.at += 0.002
        path = f"/apis/{_API_VERSIONS[r]}/namespaces/{ns}/{r.split('.', maxsplit=1)[0]}/{name}"
        fields = {
            "sub": "",
            "query": "",
            "user": f"system:serviceaccount:kube-system:{client}" if more.get("bundled") else "admin",
            "agent": f"{client}/v1.36.3 (linux/amd64)",
            "bundled": False,
            "status": 200,
            "reason": "",
            "message": "",
            "fault": "",
            "dry": False,
            "rev": 0,
            "began": self.revision,
            "changed": False,
            "why": "",
            "admission": [],
            "reconcile": 0,
            "bytes_in": 0,
            "bytes_out": 512,
        }
        fields |= {
            "seq": self._seq,
            "at": self.at - 0.0015,
            "time": BEGAN + self.at,
            "ms": 1.5,
            "verb": verb,
            "path": path,
        }
        self._add("request", **{**fields, "r": r, "ns": ns, "name": name, "client": client, **more})
        return self._seq

    def write(self, client: str, verb: str, r: str, ns: str, name: str, body: Mapping[str, Any], **more: Any) -> int:
        """Records a write with the state that it leads to, and its delivery to the watches; returns the revision."""
        self.revision += 1
        revision = self.revision
        seq = self.request(client, verb, r, ns, name, rev=revision, changed=True, **more)
        former = self._current.get((r, ns, name))
        obj = _object(r, ns, name, revision, former, body)
        operation = "delete" if verb == "delete" else "update" if former else "create"
        meta = obj["metadata"]
        self._add(
            "state",
            rev=revision,
            at=self.at,
            time=BEGAN + self.at,
            r=r,
            ns=ns,
            name=name,
            uid=meta["uid"],
            op=operation,
            owners=[owner["uid"] for owner in meta.get("ownerReferences", [])],
            labels=meta.get("labels", {}),
            created=BEGAN + self.at,
            deleting="deletionTimestamp" in meta,
            by=seq,
        )
        self.states[revision] = {"object": obj, "cells": [name, "1/1", "5m"]}
        self.requests[seq] = {"body": dict(body), "answer": obj, "before": former, "after": obj, "admission": []}
        if operation == "delete":
            del self._current[r, ns, name]
        else:
            self._current[r, ns, name] = obj
        for (watcher, resource), watch in self._watches.items():
            if resource == r:
                self.at += 0.0005
                self._add("delivery", seq=watch, at=self.at, rev=[revision], client=watcher)
        return revision

    def watch(self, client: str, r: str) -> None:
        """Opens a watch, to which all later writes of the kind are delivered."""
        self._watches[client, r] = self.request(client, "watch", r, "", "", bundled=client.endswith("-controller"))

    def reconcile(self, controller: str, key: str, causes: Sequence[int], error: str = "") -> int:
        """Records a reconcile and returns its id."""
        self._reconcile += 1
        self.at += 0.001
        number = self._reconcile
        self._add(
            "reconcile",
            id=number,
            controller=controller,
            key=key,
            at=self.at,
            ms=4.0,
            waited=1.0,
            causes=list(causes),
            error=error,
            again=None,
        )
        self._add("queue", at=self.at, controller=controller, ready=1, delayed=0, processing=1)
        return number

    def recording(self, **more: Any) -> dict[str, Any]:
        """Returns the content of the element that a page's recording is in."""
        return {
            "records": self.records,
            "states": self.states,
            "columns": {r: [{"name": "Name", "priority": 0}, {"name": "Ready", "priority": 0}] for r in _API_VERSIONS},
            "requests": self.requests,
            "title": "tests/test_shop.py::test_rollout",
            "failure": "",
            **more,
        }


def _object(
    r: str, ns: str, name: str, revision: int, former: Mapping[str, Any] | None, body: Mapping[str, Any]
) -> dict[str, Any]:
    uid = former["metadata"]["uid"] if former else f"uid-{revision}"
    metadata = {"name": name, "uid": uid, "resourceVersion": str(revision), **({"namespace": ns} if ns else {})}
    return {
        "apiVersion": _API_VERSIONS[r],
        "kind": _KIND_NAMES[r],
        **body,
        "metadata": {**metadata, **body.get("metadata", {})},
    }


def rollout(recorder: Recorder, ns: str, name: str, replicas: int) -> None:
    """A Deployment gets a ReplicaSet and pods, and then its status."""
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}}
    note = {"note": "<script>window.ran = true</script><img src=x onerror='window.ran = true'>"}
    labels = {"app": name}
    created = recorder.write(
        "kubectl",
        "create",
        "deployments.apps",
        ns,
        name,
        {"metadata": {"annotations": note, "labels": labels}, "spec": spec},
    )
    key = f"{ns}/{name}"
    reconcile = recorder.reconcile("deployment-controller", key, [created])
    owner = [{"uid": f"uid-{created}", "kind": "Deployment", "name": name, "controller": True}]
    replica_set = recorder.write(
        "deployment-controller",
        "create",
        "replicasets.apps",
        ns,
        f"{name}-7d4b9",
        {"metadata": {"ownerReferences": owner, "labels": labels}, "spec": spec},
        bundled=True,
        reconcile=reconcile,
    )
    reconcile = recorder.reconcile("replicaset-controller", f"{key}-7d4b9", [replica_set])
    owner = [{"uid": f"uid-{replica_set}", "kind": "ReplicaSet", "name": f"{name}-7d4b9", "controller": True}]
    pods = []
    for number in range(replicas):
        pod = {"metadata": {"ownerReferences": owner, "labels": labels}, "status": {"phase": "Pending"}}
        pods.append(
            recorder.write(
                "replicaset-controller",
                "create",
                "pods",
                ns,
                f"{name}-7d4b9-{number:05d}",
                pod,
                bundled=True,
                reconcile=reconcile,
            )
        )
    for number in range(replicas):
        recorder.request("kubelet", "get", "pods", ns, f"{name}-7d4b9-{number:05d}", bundled=True)
        pod = {"metadata": {"ownerReferences": owner, "labels": labels}, "status": {"phase": "Running"}}
        recorder.write("kubelet", "patch", "pods", ns, f"{name}-7d4b9-{number:05d}", pod, sub="status", bundled=True)
    reconcile = recorder.reconcile("deployment-controller", key, pods[-1:])
    recorder.write(
        "deployment-controller",
        "update",
        "deployments.apps",
        ns,
        name,
        {"metadata": {"annotations": note, "labels": labels}, "spec": spec, "status": {"replicas": replicas}},
        sub="status",
        bundled=True,
        reconcile=reconcile,
    )


def story(objects: int = 10, requests: int = 40) -> Recorder:
    """A recording with at least so many objects and requests: rollouts, an operator that polls, refusals, a fault, a turned clock."""
    recorder = Recorder()
    for client, r in _watchers():
        recorder.watch(client, r)
    recorder.fault(1, "add", verb="update", resource="configmaps", status=409)
    written, seen = 0, 0
    while written < objects:
        ns = f"shop-{written // 500}"
        if written % 500 == 0:
            recorder.write("kubectl", "create", "namespaces", "", ns, {})
        replicas = min(8, max(1, objects - written - 2))
        rollout(recorder, ns, f"web-{written}", replicas)
        written += replicas + 2
        _refusals(recorder, ns)
    recorder.clock("stop")
    recorder.clock("advance", 600.0)
    recorder.clock("start")
    recorder.fault(1, "remove")
    seen = sum(record["t"] == "request" for record in recorder.records)
    for number in range(max(0, requests - seen)):
        poll(recorder, number)
    return recorder


def poll(recorder: Recorder, number: int) -> None:
    """An operator reads an object, or writes it each fifth time."""
    recorder.at += 0.003
    name = f"settings-{number % 7}"
    if number % 5:
        recorder.request("my-operator", "get", "configmaps", "shop-0", name, bytes_out=900)
    else:
        recorder.write("my-operator", "patch", "configmaps", "shop-0", name, {"data": {"turn": str(number)}})


def _watchers() -> Iterator[tuple[str, str]]:
    yield "deployment-controller", "deployments.apps"
    yield "deployment-controller", "replicasets.apps"
    yield "replicaset-controller", "pods"
    yield "my-operator", "configmaps"


def _refusals(recorder: Recorder, ns: str) -> None:
    recorder.request(
        "my-operator",
        "update",
        "configmaps",
        ns,
        "settings",
        status=409,
        reason="Conflict",
        fault="1",
        message='Operation cannot be fulfilled on configmaps "settings": the object has been modified',
    )
    recorder.request(
        "replicaset-controller",
        "create",
        "pods",
        ns,
        "",
        status=403,
        reason="Forbidden",
        bundled=True,
        message='pods "web" is forbidden: exceeded quota: pods, requested: pods=1, used: pods=5, limited: pods=5',
    )


def embedded(recording: Mapping[str, Any]) -> str:
    """Returns the element that a saved page has its recording in."""
    return f'<script type="application/json" id="recording">{json.dumps(recording).replace("<", chr(92) + "u003c")}</script>'
