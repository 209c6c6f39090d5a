"""Random lives of claims and what they claim: volumes, attachments, devices, taints of devices, at two servers whose controllers run.

    python -m conformance.compare.controllers.claims --oracle URL --oracle-token T --server URL --token T
        [--seed N] [--lives N] [--steps N] [--workers N] [--kind binder|attach|devices|taints]

The real server needs a kube-controller-manager with `--controllers='*,-nodelifecycle,-podgc' --kube-api-content-type=application/json`
beside it, ours `--controllers='*,-node-lifecycle-controller,-pod-garbage-collector-controller'`; both
`--disable-admission-plugins=ServiceAccount`. Each life has its own namespace, and names that no other life uses. Steps are a moment apart;
in the end both must have the same objects, with the same events.
"""

import hashlib
import json
import re
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any, Final

from conformance.exchange import Client, comparing

Object = dict[str, Any]
Step = tuple[str, str, Any]  # method, path, body
_PAUSE: Final = 1.5  # seconds
_REST: Final = 18.0
_DRIVER: Final = "life.example.com"
_CHANGE: Final = "application/merge-patch+json"
_GONE: Final = frozenset(
    {"uid", "resourceVersion", "managedFields", "creationTimestamp", "timeAdded", "allocationTimestamp"}
)
_TIMES: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_UIDS: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_MADE: Final = re.compile(r"(?<=-)[bcdfghjklmnpqrstvwxz2456789]{5}(?![\w-])")
_RESOURCE: Final = "/apis/resource.k8s.io/v1"
_PROTECTION: Final = "resource.kubernetes.io/delete-protection"  # on claims that the scheduler has allocated
_STORAGE: Final = "/apis/storage.k8s.io/v1"
_MODES: Final = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")


class Life:
    """The steps of a namespace's life. `steps` may name an object's uid as ${uid:PATH}."""

    def __init__(self, random: Random, name: str) -> None:
        self.random = random
        self.name = name
        self.below = f"/api/v1/namespaces/{name}"
        self.devices = f"{_RESOURCE}/namespaces/{name}"
        self.steps: list[Step] = [("POST", "/api/v1/namespaces", {"metadata": {"name": name}})]
        self.shown = [f"{self.below}/pods", f"{self.below}/events"]
        self.cleanup: list[str] = []
        self.pods: list[str] = []
        self.claims: list[str] = []
        self.count = 0

    def fresh(self, kind: str) -> str:
        self.count += 1
        return f"{self.name}-{kind}{self.count}"

    def add(self, method: str, path: str, body: Any = None) -> None:
        self.steps.append((method, path, body))

    def node(self) -> str:
        name = self.fresh("n")
        annotations = {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
        self.add("POST", "/api/v1/nodes", {"metadata": {"name": name, "annotations": annotations}})
        self.cleanup.append(f"/api/v1/nodes/{name}")
        return name

    def pod(self, node: str = "", **spec: Any) -> str:
        name = self.fresh("p")
        where = {"nodeName": node} if node else {"nodeSelector": {"nobody": "has"}}
        body = {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "x"}], **where, **spec}}
        self.add("POST", f"{self.below}/pods", body)
        self.pods.append(name)
        return name

    def end(self) -> None:
        """Ends a random pod."""
        if not self.pods:
            return
        path = f"{self.below}/pods/{self.random.choice(self.pods)}"
        if self.random.random() < 0.4:
            self.add("PATCH", f"{path}/status", {"status": {"phase": self.random.choice(["Succeeded", "Failed"])}})
        else:
            self.add("DELETE", path, {"gracePeriodSeconds": 0} if self.random.random() < 0.8 else None)


def _volume(life: Life, size: str, storage_class: str) -> str:
    """Creates a volume, sometimes reserved for a claim, and returns its name."""
    random = life.random
    name = life.fresh("v")
    spec: Object = {
        "capacity": {"storage": size},
        "accessModes": random.sample(_MODES[:3], random.randint(1, 2)),
        "storageClassName": storage_class,
        "persistentVolumeReclaimPolicy": random.choice(["Retain", "Delete", "Recycle"]),
        "hostPath": {"path": f"/tmp/{name}"},
    }
    if random.random() < 0.2:
        claim = (
            random.choice(life.claims) if life.claims and random.random() < 0.5 else f"{life.name}-c{life.count + 1}"
        )
        spec["claimRef"] = {"namespace": life.name, "name": claim}
    labels = {"tier": random.choice("ab")}
    life.add("POST", "/api/v1/persistentvolumes", {"metadata": {"name": name, "labels": labels}, "spec": spec})
    life.cleanup.append(f"/api/v1/persistentvolumes/{name}")
    return name


def _claim(life: Life, storage_class: str, volumes: Sequence[str]) -> None:
    """Creates a claim, sometimes with a selector or for a volume by name."""
    random = life.random
    name = life.fresh("c")
    spec: Object = {
        "resources": {"requests": {"storage": f"{random.randint(1, 6)}Gi"}},
        "accessModes": [random.choice(_MODES)],
        "storageClassName": storage_class,
    }
    if random.random() < 0.2:
        spec["selector"] = {"matchLabels": {"tier": random.choice("ab")}}
    if volumes and random.random() < 0.2:
        spec["volumeName"] = random.choice(volumes)
    life.add("POST", f"{life.below}/persistentvolumeclaims", {"metadata": {"name": name}, "spec": spec})
    life.claims.append(name)


def binder(life: Life, steps: int) -> None:
    """Volumes and claims of a class without a provisioner, and of one whose claims wait."""
    random, classes = life.random, [life.fresh("class"), life.fresh("class")]
    life.shown += [f"{life.below}/persistentvolumeclaims", "/api/v1/persistentvolumes"]
    for name, mode in zip(classes, ("Immediate", "WaitForFirstConsumer"), strict=True):
        body = {"metadata": {"name": name}, "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": mode}
        life.add("POST", f"{_STORAGE}/storageclasses", body)
        life.cleanup.append(f"{_STORAGE}/storageclasses/{name}")
    volumes: list[str] = []
    for _ in range(steps):
        size, chosen = f"{random.randint(1, 9)}Gi", random.choice([classes[0]] * 3 + [classes[1]])
        what = random.random()
        if what < 0.3:
            volumes.append(_volume(life, size, chosen))
        elif what < 0.6:
            _claim(life, chosen, volumes)
        elif what < 0.75 and life.claims:
            life.add("DELETE", f"{life.below}/persistentvolumeclaims/{random.choice(life.claims)}")
        elif what < 0.83 and volumes:
            life.add("DELETE", f"/api/v1/persistentvolumes/{random.choice(volumes)}")
        elif what < 0.9 and volumes:
            change = random.choice(
                [
                    {"claimRef": None},
                    {"persistentVolumeReclaimPolicy": random.choice(["Retain", "Delete"])},
                    {"claimRef": {"uid": None}},
                ]
            )
            life.add("PATCH", f"/api/v1/persistentvolumes/{random.choice(volumes)}", {"spec": change})
        elif life.claims:
            rows = [{"name": "d", "persistentVolumeClaim": {"claimName": random.choice(life.claims)}}]
            life.pod(volumes=rows)
        if random.random() < 0.1:
            life.end()


def attach(life: Life, steps: int) -> None:
    """Volumes of a driver, pods on two nodes, a driver that attaches or fails, kubelets that use or let go."""
    random, nodes = life.random, [life.node(), life.node()]
    life.shown += ["/api/v1/nodes", f"{_STORAGE}/volumeattachments"]
    handles = []
    for shared in (False, True):
        name = life.fresh("v")
        mode = ["ReadWriteMany" if shared else "ReadWriteOnce"]
        common = {"accessModes": mode, "storageClassName": ""}
        csi = {"driver": _DRIVER, "volumeHandle": name}
        volume = {**common, "capacity": {"storage": "1Gi"}, "csi": csi}
        life.add("POST", "/api/v1/persistentvolumes", {"metadata": {"name": name}, "spec": volume})
        claim = {**common, "resources": {"requests": {"storage": "1Gi"}}, "volumeName": name}
        life.add("POST", f"{life.below}/persistentvolumeclaims", {"metadata": {"name": name}, "spec": claim})
        life.cleanup.append(f"/api/v1/persistentvolumes/{name}")
        handles.append(name)
    for _ in range(steps):
        node, handle, what = random.choice(nodes), random.choice(handles), random.random()
        attachment = f"csi-{hashlib.sha256(f'{handle}{_DRIVER}{node}'.encode()).hexdigest()}"
        path = f"{_STORAGE}/volumeattachments/{attachment}"
        if what < 0.3:
            life.pod(node, volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": handle}}])
        elif what < 0.55:
            status = (
                {"attached": True, "attachError": None} if random.random() < 0.8 else {"attachError": {"message": "no"}}
            )
            life.add("PATCH", f"{path}/status", {"status": status})
        elif what < 0.7:
            used = [f"kubernetes.io/csi/{_DRIVER}^{name}" for name in handles if random.random() < 0.4] or None
            life.add("PATCH", f"/api/v1/nodes/{node}/status", {"status": {"volumesInUse": used}})
        elif what < 0.75:
            taint = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
            life.add("PATCH", f"/api/v1/nodes/{node}", {"spec": {"taints": random.choice([[taint], None])}})
        elif what < 0.78:
            life.add("DELETE", f"/api/v1/nodes/{node}")
        else:
            life.end()


def _slice(life: Life, name: str, taints: Sequence[Sequence[Object]]) -> Object:
    devices = [{"name": f"d{number}", **({"taints": [*rows]} if rows else {})} for number, rows in enumerate(taints)]
    spec = {
        "driver": _DRIVER,
        "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
        "allNodes": True,
        "devices": devices,
    }
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}


def devices(life: Life, steps: int) -> None:
    """Claims by name and by template, pods with nodes and without, a scheduler that allocates and reserves."""
    random = life.random
    life.shown.append(f"{life.devices}/resourceclaims")
    template = life.fresh("t")
    spec = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "x"}}]}}
    life.add("POST", f"{life.devices}/resourceclaimtemplates", {"metadata": {"name": template}, "spec": {"spec": spec}})
    for _ in range(steps):
        what = random.random()
        if what < 0.2:
            name = life.fresh("c")
            life.add("POST", f"{life.devices}/resourceclaims", {"metadata": {"name": name}, "spec": spec})
            life.claims.append(name)
        elif what < 0.5:
            named = life.claims and random.random() < 0.7
            row = (
                {"resourceClaimName": random.choice(life.claims)} if named else {"resourceClaimTemplateName": template}
            )
            life.pod(random.choice(["", "elsewhere"]), resourceClaims=[{"name": "c", **row}])
        elif what < 0.75 and life.claims:
            path = f"{life.devices}/resourceclaims/{random.choice(life.claims)}"
            result = {"request": "r", "driver": _DRIVER, "pool": "p", "device": f"d{random.randint(0, 9)}"}
            status: Object = {"allocation": {"devices": {"results": [result]}}}
            if life.pods and random.random() < 0.6:
                pod = random.choice(life.pods)
                uid = f"${{uid:{life.below}/pods/{pod}}}"
                status["reservedFor"] = [{"resource": "pods", "name": pod, "uid": uid}]
            life.add("PATCH", path, {"metadata": {"finalizers": [_PROTECTION]}})
            life.add("PATCH", f"{path}/status", {"status": status})
        elif what < 0.82 and life.claims:
            life.add("DELETE", f"{life.devices}/resourceclaims/{random.choice(life.claims)}")
        else:
            life.end()


def taints(life: Life, steps: int) -> None:
    """Pods that have devices, some of which their claims tolerate the taints of."""
    random, pool = life.random, life.fresh("pool")
    life.shown.append(f"{life.devices}/resourceclaims")
    life.cleanup.append(f"{_RESOURCE}/resourceslices/{pool}")
    rows: list[list[Object]] = [[] for _ in range(4)]
    life.add("POST", f"{_RESOURCE}/resourceslices", _slice(life, pool, rows))
    for number in range(4):
        exactly: Object = {"deviceClassName": "x"}
        claim = life.fresh("c")
        spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
        metadata = {"name": claim, "finalizers": [_PROTECTION]}
        life.add("POST", f"{life.devices}/resourceclaims", {"metadata": metadata, "spec": spec})
        pod = life.pod("elsewhere", resourceClaims=[{"name": "c", "resourceClaimName": claim}])
        result: Object = {"request": "r", "driver": _DRIVER, "pool": pool, "device": f"d{number}"}
        if random.random() < 0.5:
            seconds = {"tolerationSeconds": random.choice([0, 1, 600])} if random.random() < 0.5 else {}
            result["tolerations"] = [{"key": "k", "operator": "Exists", "effect": "NoExecute", **seconds}]
        reserved = [{"resource": "pods", "name": pod, "uid": f"${{uid:{life.below}/pods/{pod}}}"}]
        status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": reserved}
        life.add("PATCH", f"{life.devices}/resourceclaims/{claim}/status", {"status": status})
    for _ in range(steps):
        changed = random.choice(rows)
        changed[:] = [
            {"key": key, "effect": random.choice(["NoExecute", "NoExecute", "NoSchedule", "None"])}
            for key in "kl"
            if random.random() < 0.4
        ]
        life.add(
            "PATCH",
            f"{_RESOURCE}/resourceslices/{pool}",
            {"spec": {"devices": _slice(life, pool, rows)["spec"]["devices"]}},
        )
        if random.random() < 0.2:
            life.end()


KINDS: Final[dict[str, Callable[[Life, int], None]]] = {
    "binder": binder,
    "attach": attach,
    "devices": devices,
    "taints": taints,
}


def _sent(client: Client, step: Step) -> Object:
    method, path, body = step
    text = json.dumps(body)
    for found in re.findall(r"\$\{uid:([^}]+)\}", text):
        answer = client.send({"method": "GET", "path": found}, []).get("body") or {}
        text = text.replace(f"${{uid:{found}}}", (answer.get("metadata") or {}).get("uid", "none"))
    request: Object = {"method": method, "path": path}
    if body is not None:
        request["body"] = json.loads(text)
    if method == "PATCH":
        request["type"] = _CHANGE
    return client.send(request, [])


def _neutral(value: Any, life: Life) -> Any:
    if isinstance(value, dict):
        return {key: _neutral(item, life) for key, item in value.items() if key not in _GONE}
    if isinstance(value, list):
        return [_neutral(item, life) for item in value]
    if isinstance(value, str):
        return _MADE.sub("MADE", _UIDS.sub("UID", _TIMES.sub("TIME", value)))
    return value


def _state(client: Client, life: Life) -> dict[str, Any]:
    """Returns the life's objects at each of its shown paths."""
    found: dict[str, Any] = {}
    for path in life.shown:
        items = (client.send({"method": "GET", "path": path}, []).get("body") or {}).get("items") or []
        items = [item for item in items if life.name in json.dumps(item)]
        if path.endswith("/events"):
            rows = {
                f"{item['involvedObject']['kind']} {item['involvedObject']['name']}: {item['reason']}: {item.get('message', '')}"
                for item in items
                if (item.get("source") or {}).get("component") != "default-scheduler"
            }
            found[path] = sorted(_neutral(sorted(rows), life))
        else:
            found[path] = sorted(
                (_neutral(item, life) for item in items), key=lambda item: json.dumps(item, sort_keys=True)
            )
    return found


def live(servers: Sequence[tuple[str, str]], kind: str, seed: int, steps: int) -> list[str]:
    """Runs a life at both servers and returns the differences at its end. `servers`: (URL, token)."""
    clients = [Client(url, token) for url, token in servers]
    life = Life(Random(f"{kind}{seed}"), f"life-{kind}-{seed}")
    KINDS[kind](life, steps)
    differing: list[str] = []
    for number, step in enumerate(life.steps):
        codes = [_sent(client, step)["status"] for client in clients]
        if len({*codes}) > 1:
            differing.append(f"{life.name}, step {number}: {codes[0]} != {codes[1]}: {json.dumps(step)}")
        time.sleep(_PAUSE)
    time.sleep(_REST)
    want, got = (_state(client, life) for client in clients)
    for path in want:
        for sign, rows, others in (("only real", want[path], got[path]), ("only ours", got[path], want[path])):
            differing += [f"{life.name} {path}: {sign}: {json.dumps(row)}" for row in rows if row not in others]
    for client in clients:
        for pod in life.pods:
            client.send({"method": "DELETE", "path": f"{life.below}/pods/{pod}", "body": {"gracePeriodSeconds": 0}}, [])
        for path in [f"/api/v1/namespaces/{life.name}", *life.cleanup]:
            client.send({"method": "DELETE", "path": path}, [])
    return differing


def main() -> int:
    parser = comparing(__doc__, seed=1, lives=5, steps=12, workers=4)
    parser.add_argument("--kind", action="append", choices=sorted(KINDS))
    arguments = parser.parse_args()
    servers = [(arguments.oracle, arguments.oracle_token), (arguments.server, arguments.token)]
    wanted = [
        (kind, seed)
        for seed in range(arguments.seed, arguments.seed + arguments.lives)
        for kind in arguments.kind or sorted(KINDS)
    ]
    failures = 0
    with ThreadPoolExecutor(arguments.workers) as pool:
        lives = [pool.submit(live, servers, kind, seed, arguments.steps) for kind, seed in wanted]
        for (kind, seed), life in zip(wanted, lives, strict=True):
            found = life.result()
            failures += bool(found)
            print(f"{kind} {seed}: {'equal' if not found else f'{len(found)} differences'}", flush=True)
            for row in found:
                print(f"    {row}", flush=True)
    print(f"{len(wanted) - failures} of {len(wanted)} lives equal", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
