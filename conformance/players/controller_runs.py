"""Runs of a controller script against a server, and the states that its objects take."""

import calendar
import json
import re
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from conformance.exchange import Client
from conformance.free_values import plain
from conformance.players.metrics_server import MetricsServer

_REPLICA_SETS: Final = "apps/v1/replicasets"
_CHANGE: Final = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}
_QUIET_SECONDS: Final = 2.5
_MAX_SECONDS: Final = 60.0
_HASHES: Final = ("pod-template-hash", "controller-revision-hash", "controller.kubernetes.io/hash")
# What a server or a controller chooses freely; that there is something must be equal.
_FREE: Final = frozenset({"certificate", "clusterIP", "clusterIPs", "nodePort", "podIP", "healthCheckNodePort"})
_GONE: Final = frozenset({"uid", "resourceVersion", "managedFields", "selfLink"})
# What the real controllers put into an order of chance.
_UNORDERED: Final = frozenset({"endpoints", "subsets", "taints"})
_OF_UID: Final = re.compile(r"\$\{uid:([^}]+)\}")
_OF_NOW: Final = re.compile(r"\$\{now(?:-([0-9]+))?\}")
_RFC_3339: Final = "%Y-%m-%dT%H:%M:%SZ"
_PEM: Final = re.compile(r"(-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n)+")
# The same in secrets; tokens and namespaces there.
_CODED: Final = re.compile(r"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t[\w+/=]+|(?:ZXlKaGJHY|c2NyaXB0L)[\w+/=]+")
# Times in zones, as cron jobs' annotations have them: the zone stays.
_ZONED: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?=[+-]\d\d:\d\d)")
# The minute that a cron job's job is of.
_OF_JOBS: Final = re.compile(r"(?<=-)\d{8}(?![\da-f])")
# A replica set whose creation was rejected: its hash is unknown.
_OF_NONE: Final = re.compile(r"(?<=-)[bcdfghjklmnpqrstvwxz2456789]{8,10}(?=\")")
# The hash of certificates in the name of kube-apiserver's bundle.
_OF_AUTHORITY: Final = re.compile(r"(?<=:kube-apiserver-serving:)[\da-f]{24}(?![\da-f])")
# The two autoscalers that have the same pods, in an order of chance.
_OF_TWO: Final = re.compile(r"(?<= more than one HPA \(e\.g\. \[)[^\]]+")
# The free device that a selector fails for first: pods are tried in an order that depends on their back-offs.
_OF_DEVICES: Final = re.compile(r"(?<= on device )\S+(?=: CEL )")
_OF_PODS: Final = re.compile(r"(?<=-)[bcdfghjklmnpqrstvwxz2456789]{5}(?![\w-])")
# In this order: the digits of some minutes (29922425) are all such as a hash may have.
_NEUTRAL: Final = (
    (_CODED, "CODED"),
    (_PEM, "CERTIFICATES"),
    (_OF_AUTHORITY, "HASH"),
    (_OF_TWO, "TWO"),
    (_OF_DEVICES, "DEVICE"),
    (_OF_PODS, "*****"),
    (_OF_JOBS, "MINUTES"),
    (_OF_NONE, "HASH"),
    (_ZONED, "TIME"),
)


class Run:
    """A run of a script against a server."""

    def __init__(
        self,
        client: Client,
        script: Mapping[str, Any],
        *,
        settles: bool,
        metrics: MetricsServer | None = None,
        haste: float = 1.0,
    ) -> None:
        self._client = client
        self._haste = haste
        self._metrics = metrics
        self._show: Sequence[str] = script["show"]
        self._steps: Sequence[Mapping[str, Any]] = script["steps"]
        self._settles = settles
        self.namespace = f"script-{uuid.uuid4().hex[:8]}"
        # The last names of hashes: events refer to objects that are gone.
        self._names: dict[str, str] = {}

    def states(self) -> Iterator[dict[str, Any]]:
        """Yields after each step the state, as far as it has changed."""
        self._ask("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        self._wait()
        before: dict[str, Any] = {}
        try:
            for step in self._steps:
                problem = self._do(self._filled(step)).replace(self.namespace, "NAMESPACE")
                self._wait()
                if "wait" in step:
                    self._pass(step["wait"])
                state = self._state()
                changed = {path: found for path, found in state.items() if found != before.get(path)}
                yield {**({"refused": problem} if problem else {}), **changed}
                before = state
        finally:
            self._ask("DELETE", f"/api/v1/namespaces/{self.namespace}")

    def wait_for_controllers(self) -> None:
        """Waits until a manager that was just started works: a namespace has its account."""
        self._ask("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        deadline = time.monotonic() + _MAX_SECONDS
        while self._ask("GET", self._path("v1/serviceaccounts/default"))[1]:
            if time.monotonic() > deadline:
                raise TimeoutError("the controller manager does nothing")
            time.sleep(0.1)
        self._ask("DELETE", f"/api/v1/namespaces/{self.namespace}")

    # ------------------------------------------------------------------------- steps

    def _filled(self, step: Mapping[str, Any]) -> Any:
        text = json.dumps(step).replace("${namespace}", self.namespace)
        return json.loads(_OF_UID.sub(lambda found: self._ask("GET", self._path(found[1]))[0]["metadata"]["uid"], text))

    def _do(self, step: Mapping[str, Any]) -> str:
        """Performs a step and returns the server's error message, or ""."""
        if (obj := step.get("create") or step.get("apply")) is not None:
            path = self._path_of(obj)
            if "create" in step:
                return self._ask("POST", path, obj)[1]
            query = "?fieldManager=script&force=true"
            return self._ask("PATCH", f"{path}/{obj['metadata']['name']}{query}", obj, "application/apply-patch+yaml")[
                1
            ]
        if "patch" in step:
            return self._ask("PATCH", self._path(step["patch"]), step["body"], _CHANGE[step.get("type", "merge")])[1]
        if "delete" in step:
            return self._ask("DELETE", self._path(step["delete"]), step.get("options"))[1]
        if "metrics" in step:
            return self._measure(step["metrics"], step["body"])
        if "evict" in step:
            eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": step["evict"]}}
            return self._ask("POST", f"{self._path('v1/pods')}/{step['evict']}/eviction", eviction)[1]
        if "second" in step:
            self._pass((step["second"] - self._second()) % 60 or 60)
            return ""
        if "pods" in step:
            return self._pods(step["pods"], step["status"], step.get("count"))
        assert "finish" in step, f"an unknown step: {step}"
        for pod in self._selected(step["finish"]):
            if pod["metadata"].get("deletionTimestamp"):
                path = f"{self._path('v1/pods')}/{pod['metadata']['name']}"
                self._ask("DELETE", path, {"gracePeriodSeconds": 0})
        return ""

    def _measure(self, what: str, body: Mapping[str, Any]) -> str:
        if self._metrics is not None:
            self._metrics.set(what, body)
            return ""
        if what == "served":
            return self._ask("PUT", "/fakeapiserver/metrics", body)[1]
        return self._ask("POST", f"/fakeapiserver/metrics/{what}", body)[1]

    def _now(self) -> float:
        """Returns the time of the server whose clock can be set, or of this machine."""
        if not self._settles:
            return time.time()
        now: str = self._ask("GET", "/fakeapiserver/clock")[0]["now"]
        return calendar.timegm(time.strptime(now, _RFC_3339))

    def _pods(self, selector: str, status: Mapping[str, Any], count: int | None) -> str:
        now = self._now()
        text = _OF_NOW.sub(
            lambda found: time.strftime(_RFC_3339, time.gmtime(now - int(found[1] or 0))),
            json.dumps({"status": status}),
        )
        body = json.loads(text)
        for pod in self._selected(selector)[:count]:
            path = f"{self._path('v1/pods')}/{pod['metadata']['name']}/status"
            problem = self._ask("PATCH", path, body, _CHANGE["strategic"])[1]
            # a controller may have deleted it since it was listed, which takes less time on one machine than on another
            if problem and not problem.startswith("404 "):
                return problem
        return ""

    def _selected(self, selector: str) -> list[dict[str, Any]]:
        """The oldest first; those of one second by their names."""
        found: list[dict[str, Any]] = self._ask("GET", f"{self._path('v1/pods')}?labelSelector={selector}")[0]["items"]
        return sorted(found, key=lambda pod: (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]))

    def _path_of(self, obj: Mapping[str, Any]) -> str:
        """Returns the path of the object's collection, as discovery lists it."""
        version = obj["apiVersion"]
        prefix = f"/apis/{version}" if "/" in version else f"/api/{version}"
        for resource in self._ask("GET", prefix)[0]["resources"]:
            if resource["kind"] == obj["kind"] and "/" not in resource["name"]:
                if resource["namespaced"]:
                    namespace = obj["metadata"].get("namespace", self.namespace)
                    return f"{prefix}/namespaces/{namespace}/{resource['name']}"
                return f"{prefix}/{resource['name']}"
        raise ValueError(f"no server has {version} {obj['kind']}")

    def _path(self, path: str) -> str:
        if path.startswith("/"):
            return path
        parts = path.split("/")
        group, rest = (parts[:1], parts[1:]) if parts[0] == "v1" else (parts[:2], parts[2:])
        prefix = "api" if parts[0] == "v1" else "apis"
        return "/".join(("", prefix, *group, "namespaces", self.namespace, *rest))

    def _ask(
        self, method: str, path: str, body: object = None, content_type: str = "application/json"
    ) -> tuple[dict[str, Any], str]:
        """(answer, what it refuses)."""
        request: dict[str, Any] = {"method": method, "path": path, "type": content_type}
        if body is not None:
            request["body"] = body
        answer = self._client.send(request, [])
        found = answer.get("body") or {}
        return found, "" if answer["status"] < 300 else f"{answer['status']} {plain(str(found.get('message', '')))}"

    # ------------------------------------------------------------------------- waiting

    def _wait(self) -> None:
        """Waits until nothing changes any more."""
        if self._settles:
            if problem := self._ask("POST", "/fakeapiserver/settle")[1]:
                raise TimeoutError(problem)
            return
        before, since, start = self._versions(), time.monotonic(), time.monotonic()
        while time.monotonic() - since < _QUIET_SECONDS and time.monotonic() - start < _MAX_SECONDS:
            time.sleep(0.1)
            now = self._versions()
            if now != before:
                before, since = now, time.monotonic()

    def _pass(self, seconds: int) -> None:
        """Time; that of a server whose clock can be turned at once."""
        if self._settles:
            self._ask("PUT", "/fakeapiserver/clock", {"advance": f"{seconds}s"})
        else:
            time.sleep(seconds / self._haste)
        self._wait()

    def _second(self) -> int:
        """Returns the second of the current minute."""
        return int(self._now()) % 60

    def _versions(self) -> set[str]:
        return {obj["metadata"]["resourceVersion"] for path in self._show for obj in self._listed(path)}

    def _listed(self, path: str) -> list[dict[str, Any]]:
        path = self._path(path.replace("${namespace}", self.namespace))
        found: list[dict[str, Any]] = self._ask("GET", path)[0].get("items", [])
        return found

    # ------------------------------------------------------------------------- states

    def _state(self) -> dict[str, Any]:
        objects = {path: self._listed(path) for path in self._show}
        # Events and messages refer to replica sets that aren't shown.
        others = [] if _REPLICA_SETS in objects else self._listed(_REPLICA_SETS)
        names = self._names | hashes_of([*others, *(obj for found in objects.values() for obj in found)])
        names[self.namespace] = "NAMESPACE"
        self._names = names
        return {
            path: sorted({_event(obj, names) for obj in found})
            if path.partition("?")[0].endswith("/events")
            else counted(neutral(obj, names) for obj in found)
            for path, found in objects.items()
        }


def counted(objects: Iterable[Any]) -> list[Any]:
    """Each once, in order; with how many there are of it where it isn't one."""
    found = Counter(json.dumps(obj, sort_keys=True) for obj in objects)
    return [
        json.loads(text) if count == 1 else {"count": count, "object": json.loads(text)}
        for text, count in sorted(found.items())
    ]


def hashes_of(objects: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Maps each hash to a name for it: by the revision of the object that has the hash, else in order of appearance."""
    ranked: dict[str, tuple[int, str]] = {}
    for obj in objects:
        metadata = obj["metadata"]
        labels = metadata.get("labels") or {}
        revision = labels.get("pod-template-generation", obj.get("revision", 0))  # of a daemon set's pod, of a revision
        revision = (metadata.get("annotations") or {}).get("deployment.kubernetes.io/revision", revision)
        for label in _HASHES:
            value = labels.get(label)
            if value:
                value = value.rsplit("-", 1)[-1]
                known = ranked.get(value, (0, ""))
                ranked[value] = max(known, (int(revision or 0), metadata["creationTimestamp"]))
    ordered = sorted(ranked, key=lambda value: ranked[value])
    return {value: f"HASH{number}" for number, value in enumerate(ordered, 1)}


def neutral(value: Any, names: Mapping[str, str], key: str = "") -> Any:
    if key in _FREE:
        return "*"
    if key == "ingress":
        value = [{**row, "ip": "*"} if "ip" in row else row for row in value]
    if isinstance(value, dict):
        shown = {name: item for name, item in value.items() if name not in _GONE}
        return {_renamed(name, names): neutral(item, names, name) for name, item in shown.items()}
    if isinstance(value, list):
        found = [neutral(item, names) for item in value]
        return sorted(found, key=json.dumps) if key in _UNORDERED else found
    return _text(value, names) if isinstance(value, str) else value


def _text(text: str, names: Mapping[str, str]) -> str:
    text = _renamed(text, names)
    for pattern, neutral in _NEUTRAL:
        text = pattern.sub(neutral, text)
    found: str = plain(text)
    return found


def _renamed(text: str, names: Mapping[str, str]) -> str:
    for name, neutral in names.items():
        text = text.replace(name, neutral)
    return text


def _event(event: Mapping[str, Any], names: Mapping[str, str]) -> str:
    about = event["involvedObject"]
    text = f"{about['kind']} {about['name']}: {event['type']} {event['reason']}: {event['message']}"
    return _text(f"{text} ({event.get('reportingComponent', '')})", names)
