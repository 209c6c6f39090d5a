"""Plays scripts for controllers: recorded with the real kube-controller-manager, replayed with others.

    python -m conformance.players.controllers record --server URL --token T [NAME ...]     beside a running kube-controller-manager
    python -m conformance.players.controllers replay [--server URL --token T] [NAME ...]   by default a `fakeapiserver serve` of its own
    python -m conformance.players.controllers cross --assets DIR [--pair SERVER/MANAGER ...] [NAME ...]  each with the other's manager

A script is `controller_scripts/<controller>/<name>.json`: `{"show": [paths], "steps": [...]}`. Every script has a namespace of its
own, which `${namespace}` stands for. A step is one of
`{"create": object}`, `{"apply": object}` (server-side, forced),
`{"patch": path, "body": object, "type"?: "merge" | "json" | "strategic"}`,
`{"delete": path, "options"?: DeleteOptions}`,
`{"pods": selector, "status": object, "count"?: n}`: the status of the (first n) pods that match, as a kubelet would write it,
`{"finish": selector}`: pods that are being deleted end, as a kubelet would let them,
`{"evict": name}`: a pod,
`{"second": s}`: the next minute's second s comes, at which schedules can be relied on.
An object that names its namespace is created there, and stays: the script deletes it.
`{"metrics": "pods" | "custom" | "external", "body": what POST /fakeapiserver/metrics/... takes}`: values of the metrics APIs, and
`{"metrics": "served", "body": {"served": [names]}}`: which of these there are (a real cluster gets them from `metrics_server.py`).
A step with `"wait": seconds` is followed by this many seconds, for what a controller does later.
`${uid:path}` is the uid of an object that is there; in a status, `${now}` is the time, and `${now-90}` that of 90 seconds before.
Paths are below the namespace: `apps/v1/deployments/web`, `v1/pods`; `/api/v1/persistentvolumes/x` are whole paths.
The real manager needs `pairs.FOR_SCRIPTS` for all of them.
After each step the script waits until nothing changes, and records what `show` names, as far as it differs from before. Identities,
times and generated names are made neutral; equal objects are counted. Events are recorded as (about, reason, message), each once.
`cross` starts pairs itself: `real/ours` is kube-apiserver with `fakeapiserver controller-manager`, `ours/real` this server without
controllers and kube-controller-manager; these two unless `--pair` names others. DIR holds kube-apiserver, etcd and
kube-controller-manager. Its last lines are a table: how many states of each controller's scripts are equal.
`--flag=--use-service-account-credentials` goes to the managers, `--server-flag` to the servers. Forbidden requests of a manager are
printed and count as a difference; so does a manager that has ended. Scripts for components that kube-controller-manager doesn't have
(a scheduler, a cloud's load balancers) are left out.
"""

import argparse
import calendar
import json
import re
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from conformance import recordings
from conformance.bench.servers import TOKEN, Ours
from conformance.exchange import Client
from conformance.free_values import plain
from conformance.players.metrics_server import MetricsServer
from conformance.players.pairs import FOR_SCRIPTS, GATES, Pair
from conformance.rows import Sources, shortened

HERE: Final = Path(__file__).parents[1] / "controller_scripts"
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
# How a server of ours has what a recording had beside the real manager, and hasn't what it hadn't, by the scripts' folder. Those of the
# scheduler were recorded beside a real one, with a node node-1.
FLAGS: Final = {
    "service": ("--load-balancers",),
    "tokencleaner": ("--controllers=*,token-cleaner-controller",),
    "bootstrapsigner": ("--controllers=bootstrap-signer-controller,token-cleaner-controller",),
    "selinux-warning": ("--controllers=selinux-warning-controller",),
    "storage-version-migrator": ("--feature-gates=StorageVersionMigrator=true",),
    "kube-scheduler": ("--nodes=1", "--controllers=*,-node-lifecycle-controller"),
    "attachdetach": ("--controllers=*,-node-lifecycle-controller",),
    # it would remove the taints of new nodes: no kubelet has reported yet whether they are ready
    "daemonset": ("--controllers=*,-node-lifecycle-controller",),
    "ttl": ("--controllers=*,-node-lifecycle-controller",),
    # it would end pods of nodes that aren't there
    "namespace": ("--controllers=*,-pod-garbage-collector-controller",),
}
# What no kube-controller-manager does.
_ELSEWHERE: Final = frozenset({"service", "kube-scheduler"})
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
_OF_PODS: Final = re.compile(r"(?<=-)[bcdfghjklmnpqrstvwxz2456789]{5}(?![\w-])")
# In this order: the digits of some minutes (29922425) are all such as a hash may have.
_NEUTRAL: Final = (
    (_CODED, "CODED"),
    (_PEM, "CERTIFICATES"),
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


# ------------------------------------------------------------------------- the command


def scripts(names: Sequence[str]) -> Iterator[Path]:
    """All, or those whose path has one of the names in it."""
    for path in sorted(HERE.glob("*/*.json")):
        if not names or any(name in str(path.relative_to(HERE)) for name in names):
            yield path


def recording_of(path: Path) -> Path:
    return HERE.with_name("controller_states") / path.parent.name / path.name


def record(client: Client, names: Sequence[str], haste: float) -> None:
    """Writes down what the server's controllers make of the scripts. `haste`: they look at things so many times as often."""
    for path in scripts(names):
        states = [*_states(client, json.loads(path.read_text()), settles=False, haste=haste)]
        target = recording_of(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(recordings.lines(shortened(states, Sources()), sort_keys=True))
        print(f"{path.parent.name}/{path.stem}: {len(states)} states", file=sys.stderr, flush=True)


def _states(
    client: Client, script: Mapping[str, Any], *, settles: bool, haste: float = 1.0
) -> Iterator[dict[str, Any]]:
    """Yields the states of a run. A real cluster gets a metrics server if the script sets metrics."""
    if settles or not any("metrics" in step for step in script["steps"]):
        yield from Run(client, script, settles=settles, haste=haste).states()
        return
    with MetricsServer(client.url, client.token) as metrics:
        yield from Run(client, script, settles=settles, metrics=metrics, haste=haste).states()
        metrics.clear()


def replay(client: Client, names: Sequence[str], *, settles: bool) -> tuple[int, int, list[str]]:
    """(equal states, all states, what differs)."""
    found = [replay_one(client, path, settles=settles) for path in scripts(names)]
    misses = [miss for _, of_one in found for miss in of_one]
    total = sum(states for states, _ in found)
    return total - len(misses), total, misses


def replay_one(client: Client, path: Path, *, settles: bool) -> tuple[int, list[str]]:
    """(how many states the script has, what differs: at most one line of each)."""
    expected = recordings.read(recording_of(path))
    states = _states(client, json.loads(path.read_text()), settles=settles)
    misses = []
    for number, (want, got) in enumerate(zip(expected, states, strict=True), 1):
        if found := difference(want, json.loads(json.dumps(got)), ""):
            misses.append(f"{path.parent.name}/{path.stem}, after step {number}: {found}")
    return len(expected), misses


def difference(want: Any, got: Any, at: str) -> str:
    """The first, "" for none."""
    if isinstance(want, dict) and isinstance(got, dict):
        for key in sorted(want.keys() | got.keys()):
            if found := difference(want.get(key), got.get(key), f"{at}.{key}"):
                return found
        return ""
    if isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        for number, (left, right) in enumerate(zip(want, got, strict=True)):
            if found := difference(left, right, f"{at}[{number}]"):
                return found
        return ""
    return "" if want == got else f"{at}: {json.dumps(want)[:600]} != {json.dumps(got)[:600]}"


def replay_fresh(names: Sequence[str] = ()) -> tuple[int, int, list[str]]:
    """`replay` against a server of its own, with all its controllers."""
    flags = {flag for path in scripts(names) for flag in FLAGS.get(path.parent.name, ())}
    server = Ours(flags=["--controllers=*", "--disable-admission-plugins=ServiceAccount", *sorted(flags)])
    server.start()
    try:
        client = Client(server.url, TOKEN)
        # events that are due a second later happen when the script waits for them, and at no other time
        client.send({"method": "PUT", "path": "/fakeapiserver/clock", "body": {"stopped": True}}, [])
        return replay(client, names, settles=True)
    finally:
        server.stop()


def cross(pair: Pair, names: Sequence[str], workers: int) -> dict[str, tuple[int, int]]:
    """(equal, all) states of each controller's scripts, with a pair that is started for it. What differs is printed."""
    found: dict[str, tuple[int, int]] = {}
    pair.start()

    def replayed(path: Path) -> None:
        total, misses = replay_one(Client(pair.url, TOKEN), path, settles=False)
        for miss in misses:
            print(f"{pair.name}: {miss}", flush=True)
        equal, others = found.get(path.parent.name, (0, 0))
        found[path.parent.name] = (equal + total - len(misses), others + total)

    try:
        Run(Client(pair.url, TOKEN), {"show": [], "steps": []}, settles=False).wait_for_controllers()
        paths = [path for path in scripts(names) if path.parent.name not in _ELSEWHERE]
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(replayed, [path for path in paths if not _is_of_all(path)]))
        for path in filter(_is_of_all, paths):
            replayed(path)
        pair.check()
        refusals = pair.refusals()
        for refusal in refusals[:20]:
            print(f"{pair.name}: {refusal}", flush=True)
        if refusals:
            found["what a manager may do"] = (0, len(refusals))
    finally:
        pair.stop()
    return found


def _is_of_all(path: Path) -> bool:
    """Reports whether a script has to run alone: it shows, changes or deletes objects outside its namespace, or sets metrics, which a
    cluster has once.
    """
    script = json.loads(path.read_text())
    touched = [step.get("delete") or step.get("patch") or "" for step in script["steps"]]
    return any(at.startswith("/") for at in (*script["show"], *touched)) or any(
        "metrics" in step for step in script["steps"]
    )


def table(found: Mapping[str, Mapping[str, tuple[int, int]]]) -> str:
    """Markdown: a row for each controller, a column for each pair."""
    rows = [f"| equal states | {' | '.join(found)} |", "|---" * (len(found) + 1) + "|"]
    for controller in sorted({name for of_pair in found.values() for name in of_pair}):
        cells = ("{} of {}".format(*of_pair.get(controller, (0, 0))) for of_pair in found.values())
        rows.append(f"| {controller} | {' | '.join(cells)} |")
    sums = ("{} of {}".format(*map(sum, zip(*of_pair.values(), strict=True))) for of_pair in found.values())
    return "\n".join([*rows, f"| all | {' | '.join(sums)} |"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("record", "replay", "cross"))
    parser.add_argument("names", nargs="*")
    parser.add_argument("--server", default="")
    parser.add_argument("--token", default="")
    parser.add_argument(
        "--haste", type=float, default=1.0, help="waits are divided by this: for a manager with shorter periods, 3 say"
    )
    parser.add_argument("--polls", action="store_true", help="the server isn't ours: wait until nothing changes")
    parser.add_argument("--assets", type=Path, help="cross: folder of the real binaries")
    parser.add_argument("--pair", action="append", help="cross: real/ours, ours/real, real/real or ours/ours")
    parser.add_argument("--flag", action="append", default=[], help="cross: for the managers")
    parser.add_argument("--server-flag", action="append", default=[], help="cross: for the API servers")
    parser.add_argument("--workers", type=int, default=4, help="cross: how many scripts run at a time")
    arguments = parser.parse_intermixed_args()
    if arguments.command == "cross":
        crossed = {}
        for words in arguments.pair or ("real/ours", "ours/real"):
            server, manager = words.split("/")
            flags = (*FOR_SCRIPTS, *arguments.flag)
            pair = Pair(arguments.assets, server, manager, flags, server_flags=(*GATES, *arguments.server_flag))
            crossed[pair.name] = cross(pair, arguments.names, arguments.workers)
        print(table(crossed))
        return 0 if all(equal == total for of in crossed.values() for equal, total in of.values()) else 1
    client = Client(arguments.server, arguments.token)
    if arguments.command == "record":
        record(client, arguments.names, arguments.haste)
        return 0
    if arguments.server:
        equal, total, misses = replay(client, arguments.names, settles=not arguments.polls)
    else:
        equal, total, misses = replay_fresh(arguments.names)
    for miss in misses:
        print(miss)
    print(f"{equal} of {total} states equal")
    return 0 if equal == total else 1


if __name__ == "__main__":
    sys.exit(main())
