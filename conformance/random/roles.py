"""Random roles, bindings, questions about them and attempts to gain more by writing them, out of one random source."""

import random
from collections.abc import Iterator
from typing import Any, Final

GROUP: Final = "rbac.authorization.k8s.io"
RBAC: Final = f"/apis/{GROUP}/v1"
REVIEWS: Final = "/apis/authorization.k8s.io/v1"
NAMESPACES: Final = ("da", "db")
USERS: Final = (
    "jane",
    "joe",
    "kim",
    "*",
    "system:anonymous",
    *(f"system:serviceaccount:{n}:robot" for n in NAMESPACES),
)
TEAMS: Final = ("dev", "ops", "*", "system:serviceaccounts", "system:serviceaccounts:da", "system:authenticated")
# May write roles and bindings, and else what random bindings give.
WRITERS: Final = ("kim", "system:serviceaccount:da:robot")
_VERBS: Final = (
    *("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "*"),
    *("bind", "escalate", "impersonate", "approve", "sign", "GET", "", "use"),
)
_API_GROUPS: Final = ("", "", "apps", "*", GROUP, "certificates.k8s.io", "a.io", "Apps")
_RESOURCES: Final = (
    *(
        "pods",
        "pods/log",
        "pods/*",
        "pods/exec",
        "secrets",
        "configmaps",
        "*",
        "*/scale",
        "*/*",
        "*/log",
        "/log",
        "pods/",
    ),
    *(
        "deployments",
        "deployments/scale",
        "nodes",
        "roles",
        "clusterroles",
        "serviceaccounts/token",
        "users",
        "PODS",
        "*/",
    ),
)
_NAMES: Final = ("a", "b", "web", "", "*", "A", "r1", "view", "jane")
_URLS: Final = (
    *("/metrics", "/metrics/*", "/logs*", "/logs/*", "/healthz*", "*", "/*", "/debug/x", "/debug/*/x", "/api**", "x"),
    *("", "/metrics/", "//a", "*/x"),
)
_PATHS: Final = (
    "/metrics",
    "/metrics/",
    "/metrics/a",
    "/logs",
    "/logsx",
    "/logs/a/b",
    "/healthzz",
    "/debug/x",
    "/",
    "x",
    "*",
    "",
)

Request = dict[str, Any]


class Roles:
    """Makes requests."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def pick(self, *options: Any) -> Any:
        return self.random.choice(options)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def some(self, options: tuple[str, ...], most: int = 2) -> list[str]:
        return [self.random.choice(options) for _ in range(self.random.randint(1, most))]

    # ----------------------------------------------------------- what is written

    def rule(self) -> dict[str, Any]:
        rule: dict[str, Any] = {"verbs": self.some(_VERBS, 4)}
        if self.chance(0.2):
            rule["nonResourceURLs"] = self.some(_URLS, 3)
            return rule if self.chance(0.95) else {**rule, "resources": ["pods"], "apiGroups": [""]}
        rule |= {"apiGroups": self.some(_API_GROUPS), "resources": self.some(_RESOURCES, 3)}
        if self.chance(0.3):
            rule["resourceNames"] = self.some(_NAMES, 3)
        return rule

    def role(self, kind: str, name: str) -> dict[str, Any]:
        role: dict[str, Any] = {
            "metadata": {"name": name},
            "rules": [self.rule() for _ in range(self.pick(0, 1, 1, 2, 3, 6))],
        }
        if kind == "ClusterRole" and self.chance(0.08):
            selectors: tuple[Any, ...] = (
                [{"matchLabels": {"a": "b"}}],
                [{"matchExpressions": [{"key": "a", "operator": self.pick("In", "Exists", "X"), "values": ["b"]}]}],
                [{}],
                [],
            )
            role["aggregationRule"] = {"clusterRoleSelectors": self.pick(*selectors)}
        if self.chance(0.2):
            role["metadata"]["labels"] = {"a": self.pick("b", "c")}
        if self.chance(0.1):
            role["metadata"]["finalizers"] = ["a.io/b"]
        return role

    def binding(self, kind: str, name: str) -> dict[str, Any]:
        role_kind = "ClusterRole" if kind == "ClusterRoleBinding" else self.pick("Role", "ClusterRole")
        if self.chance(0.03):
            role_kind = self.pick("Role", "role", "", "Group")
        to = self.pick(
            "r1", "r2", "r3", "lost", *(("view", "admin", "cluster-admin") if role_kind == "ClusterRole" else ())
        )
        subjects = [self._subject() for _ in range(self.pick(0, 1, 1, 2, 3))]
        reference = {"apiGroup": GROUP, "kind": role_kind, "name": to}
        if self.chance(0.05):
            reference["apiGroup"] = self.pick("", "apps", "*")
        return {"metadata": {"name": name}, "roleRef": reference, "subjects": subjects}

    def _subject(self) -> dict[str, str]:
        if self.chance(0.3):
            account = {"kind": "ServiceAccount", "name": "robot", "namespace": self.pick(*NAMESPACES)}
            if self.chance(0.2):
                account["namespace"] = ""
            return account if self.chance(0.95) else {**account, "apiGroup": GROUP}
        kind = self.pick("Group", "User") if self.chance(0.97) else self.pick("user", "", "ServiceAccount")
        found = {"kind": kind, "name": self.pick(*(TEAMS if kind == "Group" else USERS))}
        if self.chance(0.9):
            found["apiGroup"] = GROUP if self.chance(0.97) else self.pick("", "apps", "rbac.authorization.k8s.io/v1")
        return found

    def write(self) -> Request:
        """Makes a write of a role or a binding, with any verb."""
        kind = self.pick("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")
        is_role = kind.endswith("Role")
        name = self.pick("r1", "r2", "r3") if is_role else self.pick("b1", "b2", "b3", "b4", "b5")
        path = f"{RBAC}/{kind.lower()}s"
        if not kind.startswith("Cluster"):
            path = f"{RBAC}/namespaces/{self.pick(*NAMESPACES)}/{kind.lower()}s"
        obj = self.role(kind, name) if is_role else self.binding(kind, name)
        field = "rules" if is_role else "subjects"
        patch = {"method": "PATCH", "path": f"{path}/{name}"}
        dry = self.pick("", "", "", "?dryRun=All")
        ways = ("create", "create", "put", "put", "put", "merge", "strategic", "json", "apply", "delete", "meta", "all")
        match self.pick(*ways):
            case "create":
                if self.chance(0.05):
                    obj["metadata"] = {"generateName": "g-"}
                return {"method": "POST", "path": path + dry, "body": obj}
            case "put":
                return {"method": "PUT", "path": f"{path}/{name}{dry}", "body": obj}
            case "merge" | "strategic" as way:
                changed = obj if self.chance(0.5) else {field: obj[field]}
                return {**patch, "body": changed, "type": f"application/{_TYPES[way]}"}
            case "meta":
                return {**patch, "body": {"metadata": self._meta()}, "type": "application/merge-patch+json"}
            case "json":
                return {**patch, "body": self._operations(field, obj[field]), "type": "application/json-patch+json"}
            case "apply":
                typed = {"apiVersion": f"{GROUP}/v1", "kind": kind, **obj}
                query = f"?fieldManager={self.pick('m', 'n')}{self.pick('', '&force=true')}"
                return {**patch, "path": f"{path}/{name}{query}", "body": typed, "type": "application/apply-patch+yaml"}
            case "all":
                query = self.pick("?labelSelector=a%3Dc", f"?fieldSelector=metadata.name%3D{name}", "?dryRun=All")
                return {"method": "DELETE", "path": path + query}
        return {"method": "DELETE", "path": f"{path}/{name}"}

    def _meta(self) -> dict[str, Any]:
        """Returns metadata for a patch. All users may change the fields that the garbage collector changes, but not labels."""
        match self.pick("labels", "annotations", "finalizers", "ownerReferences"):
            case "finalizers":
                return {"finalizers": self.pick(None, ["a.io/b"], ["a.io/c", "a.io/b"])}
            case "ownerReferences":
                owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u"}
                return {"ownerReferences": self.pick(None, [owner])}
            case where:
                return {where: {"x": self.pick("y", "z", None)}}

    def _operations(self, field: str, values: list[Any]) -> list[dict[str, Any]]:
        if values and self.chance(0.4):
            return [{"op": "add", "path": f"/{field}/{self.pick('-', '0')}", "value": values[0]}]
        if self.chance(0.1):
            return [{"op": self.pick("copy", "move"), "from": f"/{field}/0", "path": f"/{field}/1"}]
        return [{"op": self.pick("add", "replace", "remove"), "path": f"/{field}", "value": values}]

    # ------------------------------------------------------------- what is asked

    def user(self) -> dict[str, Any]:
        """Returns a random user in the form of reviews."""
        who: dict[str, Any] = {"user": self.pick(*USERS, *USERS, "", "nobody", "system:node:n1")}
        if self.chance(0.6):
            who["groups"] = self.some((*TEAMS, *TEAMS, "system:nodes", "system:masters", ""), 3)
        if self.chance(0.05):
            who |= {"uid": "1", "extra": {"a": ["b"]}}
        return who

    def impersonated(self, request: Request, *users: str) -> Request:
        headers = {"Impersonate-User": self.pick(*(users or USERS))}
        if self.chance(0.5):
            headers["Impersonate-Group"] = self.pick(*TEAMS)
        return {**request, "headers": headers}

    def question(self) -> Request:
        """Makes a request that changes nothing, so that many of them can follow each other."""
        kind = self.random.random()
        if kind < 0.2:
            return self.impersonated(self._request())
        if kind < 0.3:
            path, body = (
                f"{REVIEWS}/selfsubjectrulesreviews",
                {"spec": {"namespace": self.pick(*NAMESPACES, "none", "")}},
            )
            return self.impersonated({"method": "POST", "path": path, "body": body})
        spec: dict[str, Any] = {"resourceAttributes": self._attributes()}
        if self.chance(0.2):
            spec = {"nonResourceAttributes": {"path": self.pick(*_PATHS), "verb": self.pick("get", "GET", "*", "")}}
        if self.chance(0.03):
            spec = self.pick({}, {**spec, "nonResourceAttributes": {}})
        if kind < 0.4:
            return self.impersonated(
                {"method": "POST", "path": f"{REVIEWS}/selfsubjectaccessreviews", "body": {"spec": spec}}
            )
        body = {"spec": spec | self.user()}
        if kind < 0.5:
            namespace = self.pick(*NAMESPACES)
            if self.chance(0.7) and "resourceAttributes" in spec:
                spec["resourceAttributes"]["namespace"] = namespace
            return {
                "method": "POST",
                "path": f"{REVIEWS}/namespaces/{namespace}/localsubjectaccessreviews",
                "body": body,
            }
        return {"method": "POST", "path": f"{REVIEWS}/subjectaccessreviews", "body": body}

    def _attributes(self) -> dict[str, Any]:
        found = {
            "verb": self.pick(*_VERBS),
            "group": self.pick(*_API_GROUPS),
            "resource": self.pick(
                "pods", "pods", "secrets", "deployments", "*", "clusterroles", "nodes", "", "pods/log", "PODS"
            ),
            "subresource": self.pick("", "", "", "log", "scale", "*", "exec", "/"),
            "namespace": self.pick("", *NAMESPACES, *NAMESPACES, "*", "none"),
            "name": self.pick("", *_NAMES),
            "version": self.pick("", "", "v1", "*"),
        }
        for kind in ("fieldSelector", "labelSelector"):
            if self.chance(0.1):
                found[kind] = self._selector()
        return {name: value for name, value in found.items() if value}

    def _selector(self) -> dict[str, Any]:
        if self.chance(0.5):
            return {
                "rawSelector": self.pick(
                    "a=b", "a in (b,c)", "((", "", "a", "!a", "a!=b,c=d", "a>1", "a==b", "a=b c", ","
                )
            }
        requirement = {
            "key": self.pick("a", "", "b c", "a.io/b"),
            "operator": self.pick("In", "NotIn", "Exists", "DoesNotExist", "X", ""),
            "values": self.pick([], ["x"], ["x", "y"], ["-"]),
        }
        return {"requirements": [requirement, *([{"key": "c", "operator": "Exists"}] if self.chance(0.2) else [])]}

    def _request(self) -> Request:
        if self.chance(0.2):
            return {
                "method": self.pick("GET", "HEAD", "POST", "PUT"),
                "path": self.pick(*_PATHS[:8], "/debug", "/api", "/x"),
            }
        method = self.pick("GET", "GET", "GET", "DELETE", "PUT", "POST", "HEAD", "OPTIONS")
        base = self.pick("/api/v1/", "/apis/apps/v1/", "/apis/a.io/v1/")
        path = base + self.pick("", "watch/", *(f"namespaces/{name}/" for name in NAMESPACES))
        path += self.pick("pods", "secrets", "configmaps", "deployments", "nodes", "events")
        if method != "POST" and self.chance(0.7):
            path += "/" + self.pick("a", "b", "zz") + self.pick("", "", "/log", "/scale", "/status", "/")
        elif method == "GET":
            path += self.pick("", "?watch=1&timeoutSeconds=1", "?labelSelector=a", "?watch=false", "?limit=1")
            if self.chance(0.4):
                path += (
                    "&" if "?" in path else "?"
                ) + f"fieldSelector=metadata.name%3D{self.pick('a', 'b', '*', '', 'A%2Cx%3Dy')}"
        query = "" if method in ("GET", "HEAD", "OPTIONS") else ("&" if "?" in path else "?") + "dryRun=All"
        body = {"body": {"metadata": {"name": "zz"}}} if method in ("PUT", "POST") else {}
        return {"method": method, "path": path + query, **body}

    def attempt(self) -> Request:
        """Makes a request with which a writer of roles tries to gain more rights."""
        if self.chance(0.85):
            return self.impersonated(self.write(), *WRITERS)
        return self.impersonated(self._roundabout(), *USERS)

    def _roundabout(self) -> Request:
        """Makes a request for another user's rights without roles: by tokens, signatures or impersonation."""
        home = f"/api/v1/namespaces/{self.pick(*NAMESPACES)}"
        match self.pick("token", "approval", "exec"):
            case "token":
                return {"method": "POST", "path": f"{home}/serviceaccounts/robot/token", "body": {"spec": {}}}
            case "approval":
                where = "/apis/certificates.k8s.io/v1/certificatesigningrequests/c"
                condition = {"type": self.pick("Approved", "Denied"), "status": "True", "reason": "r"}
                body = {"metadata": {"name": "c"}, "status": {"conditions": [condition]}}
                return {"method": "PUT", "path": f"{where}/{self.pick('approval', 'status')}?dryRun=All", "body": body}
        return {
            "method": self.pick("POST", "GET"),
            "path": f"{home}/pods/web/{self.pick('exec', 'attach', 'portforward')}?command=x",
        }

    def preparation(self) -> Iterator[Request]:
        for _ in range(self.pick(4, 8, 16)):
            yield self.write()


_TYPES: Final = {"merge": "merge-patch+json", "strategic": "strategic-merge-patch+json"}
