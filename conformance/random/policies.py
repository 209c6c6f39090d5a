"""Random admission policies, bindings, params and the requests they concern, valid mostly, out of one random source.

Each case has a namespace of its own, named like the case and labelled `case`; its policy matches that namespace, or, for objects
outside of namespaces, their label. So it is never left to chance which policy of several speaks.
"""

import random
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from conformance.random.policy_targets import GROUP, PARAM_KINDS, TABLES, TARGETS, Spec, Target

Request = dict[str, Any]
REGISTRATION: Final = "/apis/admissionregistration.k8s.io/v1"
_MERGE: Final = "application/merge-patch+json"
_JSON: Final = "application/json-patch+json"
_STRATEGIC: Final = "application/strategic-merge-patch+json"
_APPLY: Final = "application/apply-patch+yaml"


def _applied(target: Target) -> list[str]:
    """Apply configurations for a kind, and some that fit any or none."""
    own = TABLES["applied"].get(target.kind, [])
    return [*TABLES["applied"]["*"], *own, *own]


class Case(NamedTuple):
    """A policy and its binding, where they are stored (by resource), and the kind they are about. `name` is the case's namespace."""

    name: str
    target: Target
    mutates: bool
    policy: Spec
    binding: Spec
    has_params: bool

    @property
    def resources(self) -> tuple[str, str]:
        sort = "mutatingadmissionpolic" if self.mutates else "validatingadmissionpolic"
        return f"{sort}ies", f"{sort}ybindings"


class Generator:
    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def pick(self, *options: Any) -> Any:
        return self._random.choice(options)

    def chance(self, share: float) -> bool:
        return self._random.random() < share

    def several(self, most: int, *options: Any) -> list[Any]:
        return self._random.sample(options, self._random.randint(1, min(most, len(options))))

    # ------------------------------------------------------------ expressions

    def boolean(self, has_params: bool, variables: bool, depth: int = 2) -> str:
        if depth and self.chance(0.35):
            left, right = (self.boolean(has_params, variables, depth - 1) for _ in range(2))
            match self.pick("and", "or", "not", "if"):
                case "and":
                    return f"({left}) && ({right})"
                case "or":
                    return f"({left}) || ({right})"
                case "not":
                    return f"!({left})"
            return f"({left}) ? ({right}) : false"
        if self.chance(0.01):
            return str(self.pick(*TABLES["expressions"]["heavy"]))
        while True:
            found = str(self.pick(*TABLES["expressions"]["bool"]))
            unknown = ("params" in found and not has_params) or ("variables" in found and not variables)
            if not unknown or self.chance(0.03):
                return found

    def text(self, has_params: bool, variables: bool) -> str:
        while True:
            found = str(self.pick(*TABLES["expressions"]["string"]))
            unknown = ("params" in found and not has_params) or ("variables" in found and not variables)
            if not unknown or self.chance(0.05):
                return found

    # --------------------------------------------------------------- policies

    def case(self, name: str) -> Case:
        target, mutates, has_params = self.pick(*TARGETS), self.chance(0.45), self.chance(0.35)
        spec: Spec = {"failurePolicy": self.pick("Fail", "Fail", "Fail", "Ignore")}
        if has_params:
            version, kind = self.pick(*PARAM_KINDS)
            spec["paramKind"] = {"apiVersion": version, "kind": kind}
        spec["matchConstraints"] = self._constraints(name, target, mutates)
        variables = self._variables() if self.chance(0.4) else []
        if variables:
            spec["variables"] = variables
        if self.chance(0.25):
            spec["matchConditions"] = [
                {"name": f"c{i}", "expression": self.boolean(has_params, bool(variables) and self.chance(0.1))}
                for i in range(self.pick(1, 1, 2))
            ]
        spec |= self._mutations(target) if mutates else self._validations(has_params, bool(variables))
        binding: Spec = {"policyName": name}
        if not mutates:
            binding["validationActions"] = self.pick(
                ["Deny"], ["Deny"], ["Deny"], ["Warn"], ["Audit", "Warn"], ["Deny", "Audit"]
            )
        if has_params and self.chance(0.9):
            binding["paramRef"] = self._reference(name)
        if self.chance(0.2):
            binding["matchResources"] = self._narrower(target, mutates)
        return Case(name, target, mutates, spec, binding, has_params)

    def _constraints(self, name: str, target: Target, mutates: bool) -> Spec:
        selector = {"matchLabels": {"case": name}}
        found: Spec = {"namespaceSelector" if target.namespaced else "objectSelector": selector}
        found["resourceRules"] = [self._rule(target, mutates) for _ in range(self.pick(1, 1, 2))]
        if self.chance(0.3):
            found["matchPolicy"] = self.pick("Exact", "Equivalent")
        if self.chance(0.12):
            found["excludeResourceRules"] = [self._rule(target, mutates)]
        if target.namespaced and self.chance(0.1):
            found["objectSelector"] = {"matchLabels": {"tier": "gold"}}
        return found

    def _rule(self, target: Target, mutates: bool) -> Spec:
        operations = ["CREATE", "UPDATE"] if mutates else ["CREATE", "UPDATE", "DELETE"]
        resources = [target.resource, *(f"{target.resource}/{sub}" for sub in target.subresources if self.chance(0.5))]
        group, version = target.group, target.version.rpartition("/")[2]
        if target.resource in ("widgets", "horizontalpodautoscalers"):
            version = self.pick("v1", "v2")
        rule: Spec = {
            "apiGroups": self.pick([group], [group], ["*"]),
            "apiVersions": self.pick([version], [version], ["*"]),
            "operations": self.pick(operations, operations, ["*"], self.several(2, *operations)),
            "resources": self.pick(resources, resources, ["*"] if not mutates else resources, [target.resource]),
        }
        if target.namespaced and "*" in rule["resources"]:
            rule["scope"] = "Namespaced"  # what is outside of namespaces has no selector to keep it away
        elif self.chance(0.1):
            rule["scope"] = self.pick("Cluster", "Namespaced", "*")
        if self.chance(0.1):
            rule["resourceNames"] = self.several(2, "a", "b", "c")
        return rule

    def _variables(self) -> list[Spec]:
        names = ["v0", "v1", "v2", "v3", "v4"] if self.chance(0.9) else self.several(4, *TABLES["variableNames"])
        if self.chance(0.3):
            self._random.shuffle(names)
        return [
            {"name": name, "expression": self.pick(*TABLES["variables"].get(name, ("1", "object.x")))} for name in names
        ]

    def _validations(self, has_params: bool, variables: bool) -> Spec:
        found: Spec = {}
        if self.chance(0.95):
            found["validations"] = [self._validation(has_params, variables) for _ in range(self.pick(1, 1, 1, 2, 3))]
        if self.chance(0.2):
            found["auditAnnotations"] = [
                {"key": self.pick("k", f"k{i}"), "valueExpression": self.text(has_params, variables)}
                for i in range(self.pick(1, 2))
            ]
        return found

    def _validation(self, has_params: bool, variables: bool) -> Spec:
        found: Spec = {"expression": self.boolean(has_params, variables)}
        if self.chance(0.3):
            found["message"] = self.pick("no way", " spaces ", "é <&>", "two\nlines", "  ", "x" * 300)
        if self.chance(0.35):
            found["messageExpression"] = self.text(has_params, variables)
        if self.chance(0.3):
            found["reason"] = self.pick(
                "Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized", "Unauthorized", "Nope"
            )
        return found

    def _mutations(self, target: Target) -> Spec:
        mutations = [self._mutation(target) for _ in range(self.pick(1, 1, 2, 3))]
        return {"mutations": mutations, "reinvocationPolicy": self.pick("Never", "Never", "IfNeeded")}

    def _mutation(self, target: Target) -> Spec:
        if self.chance(0.55):
            return {
                "patchType": "ApplyConfiguration",
                "applyConfiguration": {"expression": self.pick(*_applied(target))},
            }
        patches = [self.pick(*TABLES["patches"]) for _ in range(self.pick(1, 1, 2, 3))]
        expression = f"[{', '.join(patches)}]"
        if self.chance(0.15):
            expression = self.pick(
                f"has(object.metadata.labels) ? {expression} : []", "[]", f"{expression}.filter(p, p.op == 'add')"
            )
        return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}

    def _reference(self, name: str) -> Spec:
        found: Spec = {"parameterNotFoundAction": self.pick("Allow", "Deny")}
        if self.chance(0.7):
            found["name"] = self.pick("p1", "p1", "p2", "missing", name)
        else:
            found["selector"] = self.pick(
                {"matchLabels": {"set": "one"}}, {"matchLabels": {"set": "none"}}, {"matchLabels": {"case": name}}
            )
        if self.chance(0.4):
            found["namespace"] = self.pick(name, "default", "nowhere")
        return found

    def _narrower(self, target: Target, mutates: bool) -> Spec:
        found: Spec = {}
        if self.chance(0.5):
            found["resourceRules"] = [self._rule(target, mutates)]
        if self.chance(0.4):
            found["objectSelector"] = {"matchLabels": {"tier": self.pick("gold", "silver")}}
        if self.chance(0.3):
            found["namespaceSelector"] = self.pick(
                {"matchExpressions": [{"key": "team", "operator": "In", "values": ["blue"]}]},
                {"matchLabels": {"case": "other"}},
            )
        if self.chance(0.3):
            found["excludeResourceRules"] = [self._rule(target, mutates)]
        if self.chance(0.3):
            found["matchPolicy"] = self.pick("Exact", "Equivalent")
        return found

    # ---------------------------------------------------------------- params

    def params(self, case: Case) -> Iterator[Request]:
        """Yields requests that create the params of a case's policy, before the policy."""
        kind = (case.policy.get("paramKind") or {}).get("kind")
        for name, label in (("p1", "one"), ("p2", "two")):
            meta = {"name": name, "labels": {"set": label}}
            body: Spec = {"metadata": meta}
            match kind:
                case "ConfigMap":
                    path = f"/api/v1/namespaces/{case.name}/configmaps"
                    body["data"] = {"max": self.pick("3", "1", "x")}
                case "Secret":
                    path = f"/api/v1/namespaces/{case.name}/secrets"
                    body["data"] = {"max": "Mw=="}
                case "Rule" | "ClusterRule":
                    plural = "rules" if kind == "Rule" else "clusterrules"
                    place = f"namespaces/{case.name}/" if kind == "Rule" else ""
                    if kind == "ClusterRule":
                        meta["name"] = f"{case.name}" if name == "p1" else f"{case.name}-2"
                        meta["labels"] = {"case": case.name}
                    path = f"/apis/{GROUP}/v1/{place}{plural}"
                    body |= {"apiVersion": f"{GROUP}/v1", "kind": kind, "spec": self._rule_spec()}
                    if self.chance(0.3):
                        body["data"] = {"max": "2"}
                case _:
                    return
            yield {"method": "POST", "path": path, "body": body}

    def _rule_spec(self) -> Spec:
        return {
            "max": self.pick(1, 3, 2.5, "3"),
            "allowed": self.pick(["a"], [], ["a", "b"]),
            "on": self.pick(True, False),
            "regex": self.pick("^a", "[", "b"),
        }

    # --------------------------------------------------------------- requests

    def requests(self, case: Case) -> Iterator[Request]:
        path = case.target.path(case.name)
        for _ in range(self.pick(6, 8, 10)):
            request = self._request(case, path)
            if self.chance(0.12):
                groups = {"Impersonate-User": self.pick("jane", "joe"), "Impersonate-Group": "system:authenticated"}
                if self.chance(0.3):
                    groups["Impersonate-Extra-Scopes"] = "x"
                request["headers"] = groups
            yield request
        for name in ("a", "b", "c"):
            yield {"method": "DELETE", "path": f"{path}/{self._named(case, name)}?gracePeriodSeconds=0"}
        if case.target.namespaced and self.chance(0.5):
            yield {"method": "DELETE", "path": path}

    def _named(self, case: Case, name: str) -> str:
        return name if case.target.namespaced else f"{case.name}-{name}"

    def _request(self, case: Case, path: str) -> Request:
        name = self._named(case, self.pick("a", "a", "b", "c"))
        query = self.pick("", "", "", "", "dryRun=All", "fieldManager=m", "fieldValidation=Strict")
        match self._random.choices(
            ("create", "put", "merge", "json", "strategic", "apply", "sub", "delete", "generate"),
            (34, 10, 12, 6, 5, 12, 12, 7, 2),
        )[0]:
            case "create":
                return {"method": "POST", "path": f"{path}?{query}", "body": self._object(case, name)}
            case "generate":
                body = self._object(case, name)
                body["metadata"]["generateName"] = body["metadata"].pop("name") + "-"
                return {"method": "POST", "path": f"{path}?dryRun=All", "body": body}
            case "put":
                return {"method": "PUT", "path": f"{path}/{name}?{query}", "body": self._object(case, name)}
            case "merge":
                body = self.pick(
                    {"metadata": {"labels": {"tier": self.pick("gold", "silver", None)}}},
                    {
                        key: value
                        for key, value in self._object(case, name).items()
                        if key not in ("kind", "apiVersion")
                    },
                )
                return {"method": "PATCH", "path": f"{path}/{name}?{query}", "type": _MERGE, "body": body}
            case "json":
                operation = {
                    "op": "add",
                    "path": self.pick("/metadata/labels", "/spec/replicas", "/data/x"),
                    "value": self.pick("1", 2, {"tier": "gold"}),
                }
                return {"method": "PATCH", "path": f"{path}/{name}?{query}", "type": _JSON, "body": [operation]}
            case "strategic":
                body = {"metadata": {"annotations": {"note": self.pick("x", None)}}}
                return {"method": "PATCH", "path": f"{path}/{name}?{query}", "type": _STRATEGIC, "body": body}
            case "apply":
                manager = "fieldManager=" + self.pick("m", "n") + self.pick("", "&force=true", "&dryRun=All")
                return {
                    "method": "PATCH",
                    "path": f"{path}/{name}?{manager}",
                    "type": _APPLY,
                    "body": self._object(case, name),
                }
            case "sub" if case.target.subresources:
                return self._subresource(case, f"{path}/{name}", query)
        return {"method": "DELETE", "path": f"{path}/{name}?{self.pick('', 'dryRun=All', 'gracePeriodSeconds=0')}"}

    def _subresource(self, case: Case, path: str, query: str) -> Request:
        sub = self.pick(*case.target.subresources)
        body: Any = {"status": {"phase": self.pick("Running", "Ready", "Failed"), "replicas": self.pick(1, 2)}}
        if sub == "scale":
            body = {"spec": {"replicas": self.pick(0, 1, 2, 5)}}
            if self.chance(0.4):
                version = "autoscaling/v1"
                full = {
                    "apiVersion": version,
                    "kind": "Scale",
                    "metadata": {"name": path.rpartition("/")[2], "namespace": case.name},
                    **body,
                }
                return {"method": "PUT", "path": f"{path}/{sub}?{query}", "body": full}
        if sub == "ephemeralcontainers":
            body = {"spec": {"ephemeralContainers": [{"name": "e", "image": "good/e"}]}}
        if sub == "resize":
            body = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}}
        kind = _STRATEGIC if sub in ("ephemeralcontainers", "resize") else _MERGE
        return {"method": "PATCH", "path": f"{path}/{sub}?{query}", "type": kind, "body": body}

    # ---------------------------------------------------------------- objects

    def _object(self, case: Case, name: str) -> Spec:
        meta: Spec = {"name": name}
        if case.target.namespaced:
            meta["namespace"] = case.name
        labels = {} if case.target.namespaced else {"case": case.name}
        if self.chance(0.5):
            labels["tier"] = self.pick("gold", "silver", "")
        if labels:
            meta["labels"] = labels
        if self.chance(0.2):
            meta["annotations"] = {"note": self.pick("x", "y")}
        found = {"apiVersion": case.target.version, "kind": case.target.kind, "metadata": meta}
        return {**found, **self._content(case.target)}

    def _content(self, target: Target) -> Any:
        containers = [
            {
                "name": "c",
                "image": self.pick("good/c", "bad/c"),
                **self.pick({}, {"resources": {}}, {"env": [{"name": "E", "value": "1"}]}),
            }
        ]
        match target.kind:
            case "ConfigMap":
                return self.pick(
                    {}, {"data": {"x": self.pick("1", "y", "10.0.0.1", "1.2.3")}}, {"data": {"x": "1", "bad": ""}}
                )
            case "Secret":
                return self.pick({}, {"data": {"x": "MQ=="}}, {"stringData": {"x": "1"}, "type": "Opaque"})
            case "Service":
                ports = [{"port": self.pick(80, 443), **self.pick({}, {"targetPort": 8080}, {"targetPort": "http"})}]
                return {
                    "spec": {
                        "ports": ports,
                        **self.pick({}, {"type": "ExternalName", "externalName": "a.b"}, {"selector": {"a": "b"}}),
                    }
                }
            case "Pod":
                return {
                    "spec": {
                        "containers": containers,
                        **self.pick({}, {"hostNetwork": True}, {"nodeSelector": {"a": "b"}}),
                    }
                }
            case "Deployment":
                template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": containers}}
                replicas = self.pick({}, {"replicas": self.pick(0, 1, 2, 5)})
                return {"spec": {"selector": {"matchLabels": {"app": "x"}}, "template": template, **replicas}}
            case "HorizontalPodAutoscaler":
                return self._autoscaler(target)
            case "Ingress":
                return {"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": self.pick(80, 0)}}}}}
            case "PersistentVolume":
                return {
                    "spec": {
                        "capacity": {"storage": self.pick("1Gi", "100Mi")},
                        "accessModes": ["ReadWriteOnce"],
                        "hostPath": {"path": "/x"},
                    }
                }
            case "ClusterRole":
                return {"rules": [{"verbs": self.pick(["*"], ["get"]), "apiGroups": [""], "resources": ["pods"]}]}
            case "Widget" | "Region":
                return self.pick({}, {"spec": self._widget()}, {"spec": self._widget()}, {"spec": self._widget()})
        return {}

    def _autoscaler(self, target: Target) -> Spec:
        reference = {"kind": "Deployment", "name": "x", "apiVersion": "apps/v1"}
        more = self.pick({}, {"minReplicas": 1})
        if target.version == "autoscaling/v1":
            more |= self.pick({}, {"targetCPUUtilizationPercentage": 60})
        else:
            metric = {
                "type": "Resource",
                "resource": {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 5}},
            }
            more |= self.pick({}, {"metrics": [metric]})
        return {"spec": {"scaleTargetRef": reference, "maxReplicas": self.pick(2, 5), **more}}

    def _widget(self) -> Spec:
        fields: Spec = {
            "replicas": self.pick(0, 1, 2, 5),
            "ratio": self.pick(0.5, 1, 1.5, 2),
            "size": self.pick("s", "m", "xl"),
            "tags": self.pick(["a", "b"], ["b"], []),
            "names": ["n", "n"],
            "port": self.pick(80, "http"),
            "until": "2020-06-01T00:00:00Z",
            "period": self.pick("1h", "90m"),
            "raw": "YWJj",
            "note": self.pick(None, "n"),
            "limits": {"cpu": self.pick(1, 9)},
            "free": {"a": {"b": self.pick(1, 1.5)}},
            "fixed": {"a": "x", "b": "y"},
            "parts": self.pick([{"name": "p"}], [{"name": "p", "count": 0}, {"name": "q"}]),
        }
        return {key: fields[key] for key in self.several(8, *fields)}

    # -------------------------------------------------------- broken policies

    def broken(self, case: Case) -> tuple[Spec, Spec]:
        """A policy's and a binding's spec, each with something changed that may be wrong."""
        specs = _copied(case.policy), _copied(case.binding)
        for spec, changes in zip(specs, TABLES["broken"].values(), strict=True):
            place = self.pick(*changes)
            *parents, key = place.split(".")
            holder = spec
            for parent in parents:
                holder = holder[int(parent)] if parent.isdecimal() else holder[parent]
            holder[key] = _copied(self.pick(*changes[place]))
        return specs


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value
