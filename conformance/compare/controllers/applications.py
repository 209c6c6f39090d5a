"""Whole applications, as people run them, with two pairs of API server and controller manager: both must end in the same.

    python -m conformance.compare.controllers.applications --assets DIR [--pair SERVER/MANAGER ...] [--seed N] [NAME ...]

DIR holds kube-apiserver, etcd, kube-controller-manager and kubectl. Pairs are `real/real` and `ours/ours` unless others are named
(`pairs.py`). Beside each, `fakeapiserver nodes` simulates the same nodes and a scheduler. An application is made of chance (`--seed`), and
lives through what the chapters below say, by kubectl's commands. When nothing moves any more, all objects of its namespace and all nodes,
who manages which of their fields, events, and what kubectl prints of them are compared. NAME: only these chapters, after the first.
"""

import argparse
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from conformance.bench.servers import TOKEN, end, free_port
from conformance.compare.controllers.application_life import CHAPTERS, NAMESPACE, Object, Step, application
from conformance.exchange import Client
from conformance.players.controller_runs import counted, neutral
from conformance.players.pairs import Pair

_NODES: Final = 4
_QUIET_SECONDS: Final = 4.0
_MAX_SECONDS: Final = 75.0
_MANAGER_FLAGS: Final = (
    "--v=2",
    # a machine that does much else shall not end the leadership
    "--leader-elect-lease-duration=60s",
    "--leader-elect-renew-deadline=40s",
    "--node-monitor-grace-period=40s",
    "--terminated-pod-gc-threshold=50",
)
# Groups of chance that aren't what an application is made of.
_NOT_SHOWN: Final = frozenset({"events", "leases", "bindings", "localsubjectaccessreviews", "podtemplates"})
_FREE_TEXTS: Final = (
    (re.compile(r"\b100\.\d+\.\d+\.\d+\b"), "POD-IP"),
    (re.compile(r"\b172\.18\.\d+\.\d+\b"), "HOST-IP"),
    (re.compile(r"\b10\.0\.\d+\.\d+\b"), "CLUSTER-IP"),
    (re.compile(r"\bcontainerd://[0-9a-f]+"), "CONTAINER"),
    (re.compile(r"\bnode-\d+\b"), "NODE"),
    (re.compile(r"(?<=\bScaled up replica set )(\S+) from \d+ to \d+"), r"\1"),
    (re.compile(r"(?<=\bScaled down replica set )(\S+) from \d+ to \d+"), r"\1"),
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "UID"),
)
# How often a controller has looked, and who was faster: chance, with two real pairs too.
_TRIGGER: Final = "endpoints.kubernetes.io/last-change-trigger-time"
_COMBINED: Final = "(combined from similar events)"
_REPEATED: Final = (
    "ProvisioningFailed",
    "FailedCreate",
    "ScalingReplicaSet",
    "FailedScheduling",
    "CalculateExpectedPodCountFailed",
)
_COUNTED: Final = frozenset({"endpointslices", "replicasets"})
_EVERYBODYS: Final = frozenset({"resourcequotas", "endpoints", "endpointslices", "poddisruptionbudgets"})
_PRINTED: Final = (
    (re.compile(r"\b\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}"), "TIME"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "TIME"),
    (re.compile(r"Non-terminated Pods: .*"), "PODS"),
    (re.compile(r"\(x\d+ over [^)]*\)"), ""),
    (re.compile(r"<invalid>|\b(\d+d)?(\d+h)?(\d+m)?\d+(s|m|h)( ago)?(?![\w])"), "AGE"),
    (re.compile(r"(?<=-)[bcdfghjklmnpqrstvwxz2456789]{5}(?![\w-])"), "*****"),
    (re.compile(r"[ \t]+"), " "),
)
# Lines about passing states, or about events that were combined.
_PASSING: Final = ("Waiting for ", "last-change-trigger-time", _COMBINED, "Annotations: <none>", "evicting pod")
_FAILING: Final = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "failing", "namespace": NAMESPACE},
    "spec": {
        "backoffLimit": 0,
        "template": {
            "metadata": {"labels": {"app": "failing"}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "registry.example/failing:1"}]},
        },
    },
}
_SHOWN: Final = (
    (
        "get",
        "all,pvc,pdb,quota,limits,ingress,networkpolicy,endpointslices,endpoints,controllerrevisions",
        "-o",
        "wide",
    ),
    ("get", "pv,nodes", "-o", "wide"),
    ("get", "deployments,replicasets,statefulsets,daemonsets,jobs,pods", "--show-labels"),
    ("describe", "deployments,replicasets,statefulsets,daemonsets,jobs,cronjobs"),
    ("describe", "services,pvc,pdb,quota,limits,endpointslices"),
    ("describe", "pods"),
    ("describe", "nodes"),
    ("events",),
)


@dataclass
class Side:
    """A pair, with nodes beside it."""

    pair: Pair
    assets: Path
    _nodes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _control: str = ""
    _names: dict[str, str] = field(default_factory=dict)

    def start(self, objects: Sequence[Object]) -> None:
        self.pair.start()
        items = {"apiVersion": "v1", "kind": "List", "items": objects}
        (self.pair.folder / "application.json").write_text(json.dumps(items))
        (self.pair.folder / "failing.json").write_text(json.dumps(_FAILING))
        port = free_port()
        self._control = f"http://127.0.0.1:{port}/fakeapiserver"
        words = ["nodes", "--kubeconfig", self._config, f"--nodes={_NODES}", f"--control-port={port}"]
        with (self.pair.folder / "nodes.log").open("wb") as log:
            command = [sys.executable, "-m", "fakeapiserver", *words]
            self._nodes = [subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=dict(os.environ))]
        deadline = time.monotonic() + _MAX_SECONDS
        while time.monotonic() < deadline:
            nodes = self._list("/api/v1/nodes")
            if len(nodes) == _NODES and not any(node["spec"].get("taints") for node in nodes):
                return
            self.pair.check()
            time.sleep(0.2)
        raise TimeoutError(f"{self.pair.name}: the nodes don't get ready")

    def stop(self) -> None:
        end(self._nodes)
        self.pair.stop()

    @property
    def _config(self) -> str:
        return str(self.pair.folder / "kubeconfig")

    def do(self, step: Step) -> str:
        """Performs a step and returns its output."""
        match step:
            case ("wait", seconds):
                time.sleep(float(seconds))
            case ("script", text):
                self._tell("POST", "scripts", text)
            case ("plug", node, where):
                self._tell("PUT", f"nodes/{node}", json.dumps({"runs": where == "in"}))
            case _:
                return self.kubectl(*step)
        return ""

    def kubectl(self, *words: str) -> str:
        command = [str(self.assets / "kubectl"), f"--kubeconfig={self._config}", f"--namespace={NAMESPACE}", *words]
        done = subprocess.run(command, check=False, cwd=self.pair.folder, capture_output=True, text=True)
        return f"{done.stdout}{done.stderr}"

    def _tell(self, method: str, path: str, text: str) -> None:
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self._control}/{path}", text.encode(), headers, method=method)
        with urllib.request.urlopen(request) as answer:
            answer.read()

    def _list(self, path: str) -> list[Object]:
        answer = Client(self.pair.url, TOKEN).send({"method": "GET", "path": path}, [])
        found: list[Object] = answer["body"].get("items") or []
        return found

    def _paths(self) -> Iterator[tuple[str, str]]:
        """Yields (name, path) for each resource that an application can have objects of."""
        client = Client(self.pair.url, TOKEN)
        groups = client.send({"method": "GET", "path": "/apis"}, [])["body"]["groups"]
        versions = ["/api/v1", *(f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups)]
        for version in versions:
            for resource in client.send({"method": "GET", "path": version}, [])["body"]["resources"]:
                name = resource["name"]
                if "list" in resource["verbs"] and name not in _NOT_SHOWN and resource["namespaced"]:
                    yield f"{version}/{name}", f"{version}/namespaces/{NAMESPACE}/{name}"
        yield "nodes", "/api/v1/nodes"
        yield "persistentvolumes", "/api/v1/persistentvolumes"
        yield "namespaces", f"/api/v1/namespaces?fieldSelector=metadata.name={NAMESPACE}"

    def wait(self) -> None:
        """Waits until nothing moves any more."""
        paths = [path for name, path in self._paths() if name != "nodes"]
        client = Client(self.pair.url, TOKEN)

        def versions() -> list[str]:
            return [
                obj["metadata"]["resourceVersion"]
                for path in paths
                for obj in client.send({"method": "GET", "path": path}, [])["body"].get("items") or ()
            ]

        before, since, start = versions(), time.monotonic(), time.monotonic()
        while time.monotonic() - since < _QUIET_SECONDS and time.monotonic() - start < _MAX_SECONDS:
            time.sleep(0.4)
            now = versions()
            if now != before:
                before, since = now, time.monotonic()
        self.pair.check()

    def state(self) -> dict[str, Any]:
        """Objects, managers of fields and events, made neutral; by what they are."""
        objects = {name: self._list(path) for name, path in self._paths()}
        self._names |= {
            value: name for found in objects.values() for obj in found for value, name in _hashes(obj).items()
        }
        found: dict[str, Any] = {}
        for name, items in objects.items():
            found[name] = counted(
                _cleared(neutral(_lasting(obj, name.rpartition("/")[2]), self._names)) for obj in items
            )
            if name.rpartition("/")[2] in _EVERYBODYS:
                continue
            found[f"{name}, who manages"] = counted(
                _cleared(neutral([obj.get("kind", ""), _bare(obj), managed], self._names))
                for obj in items
                for managed in _managed(obj)
            )
        events: Counter[str] = Counter()
        for namespace in (NAMESPACE, "default"):
            for event in self._list(f"/api/v1/namespaces/{namespace}/events"):
                about = event["involvedObject"]
                text = f"{about['kind']} {about['name']}: {event['type']} {event['reason']}: {event.get('message', '')}"
                source = event.get("source") or {}
                text += f" ({event.get('reportingComponent', '')}/{source.get('component', '')})"
                if _COMBINED not in text:
                    often = event["reason"] in _REPEATED
                    events[_cleared(neutral(text, self._names))] += 0 if often else event.get("count") or 1
        found["events"] = [*sorted(events)]
        found["events, how often"] = [f"{count} x {text}" for text, count in sorted(events.items())]
        return found

    def printed(self) -> dict[str, list[str]]:
        """Returns what kubectl prints, as lines without an order."""
        found = {" ".join(words): self.lines(self.kubectl(*words)) for words in _SHOWN}
        # which pods are on which node is chance
        found["describe nodes"] = [line for line in found["describe nodes"] if "%)" not in line]
        return found

    def lines(self, text: str) -> list[str]:
        for name, plain in self._names.items():
            text = text.replace(name, plain)
        found = _cleared(text)
        for pattern, plain in _PRINTED:
            found = pattern.sub(plain, found)
        return sorted(line.strip() for line in found.splitlines() if not any(word in line for word in _PASSING))


def _hashes(obj: Object) -> dict[str, str]:
    """Maps the hash of a template in a revision to a name for the template's content."""
    labels = obj["metadata"].get("labels") or {}
    spec = obj.get("spec") or {}
    if "revision" in obj:
        value, of = obj["metadata"]["name"].rpartition("-")[2], obj["data"]
    elif "pod-template-hash" in labels and "template" in spec:
        value, of = labels["pod-template-hash"], spec["template"]
    else:
        return {}
    text = json.dumps(neutral(of, {value: "HASH"}), sort_keys=True)
    return {value: f"{labels.get('app', '')}{hashlib.sha256(text.encode()).hexdigest()[:4]}"}


def _lasting(obj: Object, resource: str) -> Object:
    """Without what depends on when its controllers had their turn."""
    metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    if _TRIGGER in (metadata.get("annotations") or {}):
        others = {key: value for key, value in metadata["annotations"].items() if key != _TRIGGER}
        metadata["annotations"] = others
        if not others:
            del metadata["annotations"]
    found = {**obj, "metadata": metadata}
    if resource in _COUNTED:
        metadata.pop("generation", None)
        if "observedGeneration" in (found.get("status") or {}):
            found["status"] = {**found["status"], "observedGeneration": "*"}
    return found


def _bare(obj: Object) -> str:
    name: str = obj["metadata"]["name"]
    return name


def _managed(obj: Object) -> Iterator[Object]:
    for row in obj["metadata"].get("managedFields") or ():
        yield {
            "manager": row["manager"],
            "operation": row["operation"],
            "subresource": row.get("subresource", ""),
            "fields": sorted(_leaves(row["fieldsV1"], "")),
        }


def _leaves(fields: Object, at: str) -> Iterator[str]:
    for key, inner in fields.items():
        if inner:
            yield from _leaves(inner, f"{at}.{key}")
        else:
            yield f"{at}.{key}"


def _cleared(value: Any) -> Any:
    """Without addresses and nodes' numbers; endpoints in an order."""
    text = json.dumps(value)
    for pattern, plain in _FREE_TEXTS:
        text = pattern.sub(plain, text)
    found = json.loads(text)
    for holder in (found, *((found.get("subsets") or ()) if isinstance(found, dict) else ())):
        for key in ("endpoints", "addresses", "notReadyAddresses"):
            if isinstance(holder, dict) and isinstance(holder.get(key), list):
                holder[key].sort(key=lambda row: json.dumps(row, sort_keys=True))
    return found


def compare(left: Mapping[str, Any], right: Mapping[str, Any]) -> Iterator[str]:
    """Yields the differences by name; `-` marks the left side."""
    for name in sorted(left.keys() | right.keys()):
        ours, theirs = left.get(name) or [], right.get(name) or []
        texts = [Counter(json.dumps(row, sort_keys=True) for row in rows) for rows in (ours, theirs)]
        missing, more = [*(texts[0] - texts[1]).elements()], [*(texts[1] - texts[0]).elements()]
        if missing or more:
            yield f"{name}:\n" + "\n".join([*(f"    - {row}" for row in missing), *(f"    + {row}" for row in more)])


def chapter(sides: Sequence[Side], steps: Sequence[Step], pool: ThreadPoolExecutor) -> list[str]:
    """Lives through it on both sides; what differs then."""

    def lived(side: Side) -> tuple[dict[str, Any], dict[str, Any]]:
        said = {f"kubectl {' '.join(step)[:90]}": side.do(step) for step in steps}
        side.wait()
        state = side.state()
        return state, {**{words: side.lines(text) for words, text in said.items()}, **side.printed()}

    (left, said_left), (right, said_right) = pool.map(lived, sides)
    return [*compare(left, right), *compare(said_left, said_right)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--assets", type=Path, required=True)
    parser.add_argument("--pair", action="append")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    pairs = [pair.split("/") for pair in arguments.pair or ("real/real", "ours/ours")]
    sides = [
        Side(Pair(arguments.assets, server, manager, flags=_MANAGER_FLAGS), arguments.assets)
        for server, manager in pairs
    ]
    names = [name for name in CHAPTERS if name == "create" or not arguments.names or name in arguments.names]
    different = 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda side: side.start(application(random.Random(arguments.seed))), sides))
            for name in names:
                found = chapter(sides, CHAPTERS[name], pool)
                different += bool(found)
                print(f"== {name}: {len(found)} differences", flush=True)
                print(*found, sep="\n", flush=True)
    finally:
        for side in sides:
            side.stop()
    print(f"{len(names) - different} of {len(names)} chapters end in the same")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
