"""Random roles, bindings, pods and questions about them, sent to a real server and to another one: prints what differs.

    python -m conformance.differential_authorization --oracle URL --oracle-token T --server URL --token T [--seed N] [--count N]

Both servers need `--authorization-mode=Node,RBAC`, and should be fresh. Each of `count` rounds writes some roles and bindings as
admin, waits until the real server's informers have seen them, and asks as users, service accounts and nodes (by impersonation):
requests, reviews of every kind, and writes of roles and bindings by every verb, which may give away only what their writer has.
"""

import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from conformance.exchange import Answer, Client, comparing

_RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
_REVIEWS: Final = "/apis/authorization.k8s.io/v1"
_GROUP: Final = "rbac.authorization.k8s.io"
_NAMESPACES: Final = ("da", "db")
_USERS: Final = ("jane", "joe", "system:serviceaccount:da:robot", "system:serviceaccount:db:robot", "kim")
_TEAMS: Final = ("dev", "ops", "system:serviceaccounts:da", "system:authenticated")
_NODES: Final = ("system:node:n1", "system:node:n2")
_SEEN: Final = 0.4  # seconds
_QUESTIONS: Final = 40

Request = dict[str, Any]


class Generator:
    """Makes requests out of one random source."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def _pick(self, *options: Any) -> Any:
        return self._random.choice(options)

    def _some(self, *options: str, most: int = 2) -> list[str]:
        return self._random.sample(options, self._random.randint(1, min(most, len(options))))

    # ----------------------------------------------------------- what is written

    def rule(self) -> dict[str, Any]:
        verbs = self._some("get", "list", "watch", "create", "update", "patch", "delete", "*", "bind", "escalate")
        if self._random.random() < 0.15:
            return {"verbs": verbs, "nonResourceURLs": self._some("/metrics", "/logs/*", "/healthz*", "*", "/debug/x")}
        resources = (
            "pods",
            "pods/log",
            "secrets",
            "configmaps",
            "*",
            "*/scale",
            "deployments",
            "deployments/scale",
            "nodes",
        )
        rule = {"verbs": verbs, "apiGroups": self._some("", "apps", "*"), "resources": self._some(*resources)}
        if self._random.random() < 0.3:
            rule["resourceNames"] = self._some("a", "b", "web")
        return rule

    def role(self, kind: str, name: str) -> dict[str, Any]:
        role: dict[str, Any] = {
            "metadata": {"name": name},
            "rules": [self.rule() for _ in range(self._pick(0, 1, 1, 2, 3))],
        }
        if kind == "ClusterRole" and self._random.random() < 0.08:
            role["aggregationRule"] = {"clusterRoleSelectors": self._pick([{"matchLabels": {"a": "b"}}], [])}
        if self._random.random() < 0.2:
            role["metadata"]["labels"] = {"a": self._pick("b", "c")}
        if self._random.random() < 0.1:
            role["metadata"]["finalizers"] = ["a.io/b"]
        return role

    def binding(self, kind: str, name: str) -> dict[str, Any]:
        role_kind = "ClusterRole" if kind == "ClusterRoleBinding" else self._pick("Role", "ClusterRole")
        to = self._pick("r1", "r2", "r3", "lost", *(("view", "cluster-admin") if role_kind == "ClusterRole" else ()))
        subjects = [self._subject(kind) for _ in range(self._pick(0, 1, 1, 2))]
        reference = {"apiGroup": _GROUP, "kind": role_kind, "name": to}
        return {"metadata": {"name": name}, "roleRef": reference, "subjects": subjects}

    def _subject(self, kind: str) -> dict[str, str]:
        if self._random.random() < 0.3:
            return {"kind": "ServiceAccount", "name": "robot", "namespace": self._pick(*_NAMESPACES)}
        if self._random.random() < 0.5:
            return {"kind": "Group", "apiGroup": _GROUP, "name": self._pick(*_TEAMS[:3])}
        return {"kind": "User", "apiGroup": _GROUP, "name": self._pick(*_USERS)}

    def write(self) -> Request:
        """One write of a role or a binding, by any verb."""
        kind = self._pick("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")
        name = self._pick("r1", "r2", "r3") if kind.endswith("Role") else self._pick("b1", "b2", "b3", "b4")
        place = _RBAC if kind.startswith("Cluster") else f"{_RBAC}/namespaces/{self._pick(*_NAMESPACES)}"
        path = f"{place}/{kind.lower()}s"
        obj = self.role(kind, name) if kind.endswith("Role") else self.binding(kind, name)
        typed = {"apiVersion": f"{_GROUP}/v1", "kind": kind, **obj}
        patch = {"method": "PATCH", "path": f"{path}/{name}"}
        match self._pick(*["create", "put", "put", "merge", "json", "apply", "delete", "labels"]):
            case "create":
                return {"method": "POST", "path": path, "body": obj}
            case "put":
                return {"method": "PUT", "path": f"{path}/{name}", "body": obj}
            case "merge":
                return {**patch, "body": obj, "type": "application/merge-patch+json"}
            case "labels":
                labels = {"metadata": {self._pick("labels", "annotations"): {"x": self._pick("y", "z", None)}}}
                return {**patch, "body": labels, "type": "application/merge-patch+json"}
            case "json":
                field = "rules" if kind.endswith("Role") else "subjects"
                operation = {"op": self._pick("add", "replace"), "path": f"/{field}", "value": obj[field]}
                return {**patch, "body": [operation], "type": "application/json-patch+json"}
            case "apply":
                query = f"?fieldManager=m{self._pick('', '&force=true')}"
                return {**patch, "path": f"{path}/{name}{query}", "body": typed, "type": "application/apply-patch+yaml"}
        return {"method": "DELETE", "path": f"{path}/{name}"}

    def preparation(self) -> Iterator[Request]:
        for _ in range(self._pick(3, 6, 10)):
            yield self.write()
        if self._random.random() < 0.4:
            yield from self._pod()

    def _pod(self) -> Iterator[Request]:
        """Pods that come and go, with what their nodes may read."""
        name, namespace = self._pick("web", "job"), self._pick(*_NAMESPACES)
        path = f"/api/v1/namespaces/{namespace}/pods"
        yield {"method": "DELETE", "path": f"{path}/{name}?gracePeriodSeconds=0"}
        container: dict[str, Any] = {"name": "c", "image": "i"}
        if self._random.random() < 0.5:
            container["envFrom"] = [{self._pick("secretRef", "configMapRef"): {"name": self._pick("a", "b")}}]
        volumes: list[dict[str, Any]] = [
            {"secret": {"secretName": self._pick("a", "b")}},
            {"configMap": {"name": self._pick("a", "b")}},
            {"persistentVolumeClaim": {"claimName": self._pick("a", "b")}},
            {"projected": {"sources": [{"secret": {"name": "b"}}]}},
        ]
        chosen = self._random.sample(volumes, self._random.randint(0, 2))
        spec: dict[str, Any] = {
            "containers": [container],
            "volumes": [{"name": f"v{i}", **volume} for i, volume in enumerate(chosen)],
            "serviceAccountName": self._pick("robot", "default"),
        }
        if node := self._pick("n1", "n1", "n2", ""):
            spec["nodeName"] = node
        yield {"method": "POST", "path": path, "body": {"metadata": {"name": name}, "spec": spec}}
        claim = {"namespace": namespace, "name": self._pick("a", "b")}
        secret = {"namespace": namespace, "name": "c"}
        source: dict[str, Any] = {
            "csi": {
                "driver": "d",
                "volumeHandle": "h",
                self._pick("nodeStageSecretRef", "controllerPublishSecretRef"): secret,
            }
        }
        volume = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "claimRef": claim, **source}
        disk = self._pick("disk1", "disk2")
        yield {"method": "DELETE", "path": f"/api/v1/persistentvolumes/{disk}"}
        yield {
            "method": "PATCH",
            "path": f"/api/v1/persistentvolumes/{disk}",
            "type": "application/merge-patch+json",
            "body": {"metadata": {"finalizers": None}},
        }
        yield {
            "method": "POST",
            "path": "/api/v1/persistentvolumes",
            "body": {"metadata": {"name": disk}, "spec": volume},
        }

    # ------------------------------------------------------------- what is asked

    def question(self) -> Request:
        chance = self._random.random()
        if chance < 0.25:
            return self._as(self.write(), "kim" if chance < 0.2 else None)
        if chance < 0.45:
            return self._review()
        if chance < 0.6:
            return self._as(self._node_request(), self._pick(*_NODES))
        return self._as(self._request())

    def _as(self, request: Request, user: str | None = None) -> Request:
        headers = {"Impersonate-User": user or self._pick(*_USERS)}
        if headers["Impersonate-User"] not in _NODES and self._random.random() < 0.5:
            headers["Impersonate-Group"] = self._pick(*_TEAMS)
        return {**request, "headers": headers}

    def _request(self) -> Request:
        if self._random.random() < 0.15:
            return {"method": "GET", "path": self._pick("/metrics/x", "/logs/a", "/healthzz", "/debug/x", "/debug")}
        method = self._pick("GET", "GET", "GET", "DELETE", "PUT", "POST")
        base = self._pick("/api/v1/", "/apis/apps/v1/") + self._pick(
            "", *(f"namespaces/{name}/" for name in _NAMESPACES)
        )
        path = base + self._pick("pods", "secrets", "configmaps", "deployments", "nodes", "events")
        if method != "POST" and self._random.random() < 0.7:
            path += "/" + self._pick("a", "b", "zz") + self._pick("", "", "/log", "/scale", "/status")
        elif method == "GET":
            path += self._pick(
                "", "", "?fieldSelector=metadata.name%3Da", "?watch=1&timeoutSeconds=1", "?labelSelector=a"
            )
        query = ("&" if "?" in path else "?") + "dryRun=All" if method != "GET" else ""
        return {
            "method": method,
            "path": path + query,
            **({"body": {"metadata": {"name": "zz"}}} if method in ("PUT", "POST") else {}),
        }

    def _node_request(self) -> Request:
        method = self._pick("GET", "GET", "GET", "DELETE", "PATCH")
        namespace = self._pick(*_NAMESPACES)
        path = self._pick(
            *(
                f"/api/v1/namespaces/{namespace}/{kind}/{name}"
                for kind in ("secrets", "configmaps", "persistentvolumeclaims")
                for name in "abc"
            ),
            *(
                f"/api/v1/namespaces/{namespace}/{rest}"
                for rest in ("secrets", "pods", "pods/web", "pods/job", "serviceaccounts/robot", "pods/web/log")
            ),
            *(
                f"/api/v1/{rest}"
                for rest in (
                    "nodes",
                    "nodes/n1",
                    "nodes/n2",
                    "persistentvolumes/disk1",
                    "persistentvolumes/disk2",
                    "services",
                    "namespaces/da",
                )
            ),
            *(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{node}" for node in ("n1", "n2", "")),
            *(f"/apis/coordination.k8s.io/v1/namespaces/{place}/leases/n1" for place in ("kube-node-lease", "da")),
            *(
                f"/apis/storage.k8s.io/v1/{rest}"
                for rest in ("csinodes/n1", "csinodes/n2", "csidrivers", "volumeattachments/a")
            ),
            *(
                f"/apis/resource.k8s.io/v1/{rest}"
                for rest in (
                    "resourceslices",
                    "resourceslices?fieldSelector=spec.nodeName%3Dn1",
                    "namespaces/da/resourceclaims/a",
                )
            ),
        )
        if method == "GET":
            return {"method": method, "path": path}
        path += ("&" if "?" in path else "?") + "dryRun=All"
        return {
            "method": method,
            "path": path,
            **({"body": {}, "type": "application/merge-patch+json"} if method == "PATCH" else {}),
        }

    def _review(self) -> Request:
        spec: dict[str, Any] = {"resourceAttributes": self._attributes()}
        if self._random.random() < 0.15:
            spec = {
                "nonResourceAttributes": {
                    "path": self._pick("/metrics", "/logs/x", "", "/"),
                    "verb": self._pick("get", ""),
                }
            }
        if self._random.random() < 0.05:
            spec = self._pick({}, {**spec, "nonResourceAttributes": {}})
        who: dict[str, Any] = {"user": self._pick(*_USERS, *_NODES, "")}
        if self._random.random() < 0.6:
            who["groups"] = self._some(*_TEAMS, "system:nodes", "system:masters")
        match self._pick("subject", "subject", "local", "self", "rules"):
            case "subject":
                return {"method": "POST", "path": f"{_REVIEWS}/subjectaccessreviews", "body": {"spec": spec | who}}
            case "local":
                path = f"{_REVIEWS}/namespaces/{self._pick(*_NAMESPACES)}/localsubjectaccessreviews"
                return {"method": "POST", "path": path, "body": {"spec": spec | who}}
            case "self":
                return self._as(
                    {"method": "POST", "path": f"{_REVIEWS}/selfsubjectaccessreviews", "body": {"spec": spec}}
                )
        body = {"spec": {"namespace": self._pick(*_NAMESPACES)}}
        request = {"method": "POST", "path": f"{_REVIEWS}/selfsubjectrulesreviews", "body": body}
        return self._as(request, self._pick(*_USERS, *_NODES))

    def _attributes(self) -> dict[str, Any]:
        found = {
            "verb": self._pick("get", "list", "create", "delete", "*", "bind", ""),
            "group": self._pick("", "apps", "*", _GROUP),
            "resource": self._pick("pods", "secrets", "deployments", "*", "clusterroles", ""),
            "subresource": self._pick("", "", "log", "scale", "*"),
            "namespace": self._pick("", *_NAMESPACES),
            "name": self._pick("", "a", "r1"),
        }
        for kind in ("fieldSelector", "labelSelector"):
            if self._random.random() < 0.1:
                found[kind] = self._pick(
                    {"rawSelector": "spec.nodeName=n1"},
                    {"rawSelector": "(("},
                    {},
                    {
                        "requirements": [
                            {
                                "key": self._pick("a", "", "b c"),
                                "operator": self._pick("In", "Exists", "X"),
                                "values": self._pick([], ["x"], ["x", "y"]),
                            }
                        ]
                    },
                )
        return {name: value for name, value in found.items() if value}


def shown(answer: Answer) -> str:
    """What is compared: of allowed requests that they are, of refused ones the Status, of reviews all but what a real server
    leaves to chance (by which of several bindings, in which order)."""
    body = answer.get("body")
    if not isinstance(body, dict):
        return f"{answer['status']} {str(answer.get('text', ''))[:60] if answer['status'] >= 400 else ''}"
    if body.get("kind") == "Status":
        details = {name: value for name, value in (body.get("details") or {}).items() if name != "uid"}
        return f"{answer['status']} {_ordered(body.get('message', ''))} {json.dumps(details, sort_keys=True)}"
    if "Review" in str(body.get("kind")):
        status = body.get("status", {})
        for rules in ("resourceRules", "nonResourceRules"):
            if rules in status:
                status[rules] = sorted(json.dumps(rule, sort_keys=True) for rule in status[rules])
        if status.get("allowed"):
            status["reason"] = (
                "" if str(status.get("reason", "")).startswith("RBAC: allowed by") else status.get("reason")
            )
        status = {name: _ordered(value) if isinstance(value, str) else value for name, value in status.items()}
        return f"{answer['status']} {json.dumps(status, sort_keys=True)}"
    if str(body.get("apiVersion", "")).startswith(_GROUP):
        kept = {name: body.get(name) for name in ("kind", "rules", "subjects", "roleRef", "aggregationRule")}
        return f"{answer['status']} {json.dumps(kept, sort_keys=True)}"
    return f"{answer['status']} {body.get('kind')}"


def _ordered(text: str) -> str:
    """Several errors, in any order, one by one."""
    return re.sub(r"\[((?:[^\[\]]*not found(?:, )?)+)\]", lambda found: str(sorted(found[1].split(", "))), text)


def main() -> int:
    arguments = comparing(__doc__, count=20).parse_args()
    generator = Generator(arguments.seed)
    clients = (Client(arguments.oracle, arguments.oracle_token), Client(arguments.server, arguments.token))
    kinds: Counter[str] = Counter()
    asked = 0

    def compare(request: Request, *, tell: bool = True) -> None:
        expected, got = (shown(client.send(request, [])) for client in clients)
        if expected != got and tell:
            kind = re.sub(r'"[^"]*"|\d+', "_", f"{request['method']} {expected[:70]} | {got[:70]}")
            kinds[kind] += 1
            if kinds[kind] == 1:
                print(f"{json.dumps(request)}\n    {expected[:600]}\n    {got[:600]}")

    for namespace in _NAMESPACES:
        compare({"method": "POST", "path": "/api/v1/namespaces", "body": {"metadata": {"name": namespace}}})
    writer = {
        "verbs": ["get", "list", "create", "update", "patch", "delete"],
        "apiGroups": [_GROUP],
        "resources": ["*"],
    }
    compare(
        {"method": "POST", "path": f"{_RBAC}/clusterroles", "body": {"metadata": {"name": "writer"}, "rules": [writer]}}
    )
    everyone = [
        {"kind": "User", "apiGroup": _GROUP, "name": "kim"},
        {"kind": "Group", "apiGroup": _GROUP, "name": "ops"},
    ]
    reference = {"apiGroup": _GROUP, "kind": "ClusterRole", "name": "writer"}
    body = {"metadata": {"name": "writer"}, "roleRef": reference, "subjects": everyone}
    compare({"method": "POST", "path": f"{_RBAC}/clusterrolebindings", "body": body})
    for _ in range(arguments.count):
        for request in generator.preparation():
            compare(request)
            asked += 1
        time.sleep(_SEEN)
        for _ in range(_QUESTIONS):
            request = generator.question()
            compare(request)
            asked += 1
            if request["method"] != "GET" and request["path"].startswith(_RBAC):
                time.sleep(_SEEN / 8)
    print(f"{asked} requests, {kinds.total()} differ in {len(kinds)} ways")
    return 0


if __name__ == "__main__":
    sys.exit(main())
