"""Random webhook configurations, and random answers of webhooks: sound ones, odd ones and broken ones.

Made for `conformance.compare.access.webhooks`. An answer is a plan for `webhook.Webhook`: what becomes of the review.
"""

import base64
import copy
import json
import random
from typing import Any, Final

from conformance.players.webhook import ADMISSION, RAW, REVIEW_FAULTS, Object, ReviewFault

_MESSAGES: Final = ("no", "", "two\nlines", "tab\there", "é日本", '"quoted" \\ <&>', "x" * 300, "%s %d", "\x00\x1b[31m")
_REASONS: Final = (
    "Forbidden",
    "Invalid",
    "Conflict",
    "NotFound",
    "Odd",
    "",
    "AlreadyExists",
    "InternalError",
    "Timeout",
)
_CODES: Final = (
    0,
    1,
    200,
    201,
    299,
    300,
    302,
    399,
    400,
    401,
    403,
    404,
    409,
    410,
    418,
    422,
    429,
    500,
    503,
    504,
    599,
    -1,
)
_WARNINGS: Final = (
    "careful", "", " padded ", "new\nline", "tab\t", "\x00nul", "\x7f", "é日本", '"quoted"', "back\\slash", "x" * 130, "y" * 300,
    "z" * 5000, "\u2028", "\x85", "a\r\nb", "\ud83d\ude00" * 100, "careful",
)  # fmt: skip
_KEYS: Final = ("a", "b/c", "", "a b", "x" * 70, "é", "a.b-c_d", "-a", "example.com/a")
_PATCH_TYPES: Final = (
    "JSONPatch",
    "JSONPatch",
    "JSONPatch",
    "JSONPatch",
    "JSONPatch",
    "MergePatch",
    "",
    None,
    "jsonpatch",
)
_VALUES: Final[tuple[Any, ...]] = (
    "text", "", 5, -1, 1.5, True, None, {}, [], {"a": "b"}, ["a"], {"a": {"b": 1}}, [{"name": "x"}], "2020-01-01T00:00:00Z", "5m",
)  # fmt: skip
_PATHS: Final = (
    "/metadata/labels", "/metadata/labels/a", "/metadata/annotations", "/metadata/annotations/a~1b", "/metadata/name",
    "/metadata/namespace", "/metadata/generateName", "/metadata/uid", "/metadata/resourceVersion", "/metadata/generation",
    "/metadata/creationTimestamp", "/metadata/deletionTimestamp", "/metadata/finalizers", "/metadata/finalizers/-",
    "/metadata/ownerReferences", "/metadata/managedFields", "/metadata/managedFields/0/manager", "/metadata/selfLink", "/metadata",
    "/metadata/nothing", "/data", "/data/a", "/data/b", "/data/c~0d", "/immutable", "/binaryData", "/spec", "/spec/replicas",
    "/spec/containers/0/image", "/spec/containers/-", "/spec/containers/5", "/spec/template/metadata/labels/x", "/spec/size",
    "/spec/nothing", "/status", "/status/phase", "/status/replicas", "/kind", "/apiVersion", "", "/", "nothing", "/nothing/deeper",
    "/spec/maxReplicas", "/spec/priorityClassName",
)  # fmt: skip
_OPERATIONS: Final = ("add", "add", "add", "replace", "replace", "remove", "test", "move", "copy", "grow", "", None, 7)
_FIELDS: Final[dict[str, tuple[Any, ...]]] = {
    "uid": ("", "other", 5, None),
    "allowed": (None, "true", 1),
    "status": ("text", [], None, {"code": "x"}, {"message": 5}, {"details": "x"}, {"code": 1.5}, {}),
    "patch": ("%%%", 5, "", None, "e30=", "bnVsbA==", "W10=", "Ig==", ["a"]),
    "patchType": (5, "", None, {}),
    "auditAnnotations": ("x", [], {"a": 1}, {"a": None}, None),
    "warnings": ("x", [1], [None], {}, None),
    "unknown": (1,),
}
_EVERY: Final = ("CREATE", "UPDATE", "DELETE", "CONNECT")
_CONDITIONS: Final = (
    "true", "false", "request.operation != 'DELETE'", "!has(object.metadata.labels.skip)", "object.metadata.name != 'x'",
    "oldObject == null", "request.dryRun == false", "object.spec.size > 1", "request.subResource == ''", "1 / 0 == 1",
    "request.kind.version == 'v1'", "has(object.data) && 'a' in object.data", "request.userInfo.username == 'admin'",
    "request.resource.resource == 'configmaps'", "request.name == ''", "request.requestKind.group == ''",
)  # fmt: skip


class Random:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def pick(self, *options: Any) -> Any:
        return copy.deepcopy(self._random.choice(options))

    def chance(self, share: float) -> bool:
        return self._random.random() < share

    def some(self, options: tuple[Any, ...], most: int) -> list[Any]:
        return [self.pick(*options) for _ in range(self._random.randint(0, most))]

    # ------------------------------------------------------------- answers

    def plan(self, *, mutating: bool) -> ReviewFault:
        """Returns a change to the review that allows everything."""
        if self.chance(0.12):
            return self._fault()
        changes = self.response(mutating=mutating)

        def plan(review: Object) -> Object:
            return {**review, "response": {**review["response"], **changes}}

        return plan

    def _fault(self) -> ReviewFault:
        kind = self.pick("raw", "review", "review", "admission", "admission")
        if kind == "raw":
            name = self.pick(*(name for name in RAW if name not in ("302", "huge")), "closes")
            return lambda review: name
        faults = REVIEW_FAULTS if kind == "review" else ADMISSION
        sort: str = self.pick(*(name for name in faults if name != "many-objects"))
        return faults[sort]

    def response(self, *, mutating: bool) -> Object:
        found: Object = {"allowed": self.chance(0.8)}
        if self.chance(0.3 if found["allowed"] else 0.8):
            found["status"] = self._status()
        if self.chance(0.2):
            found["warnings"] = self.some(_WARNINGS, 4)
        if self.chance(0.1):
            found["auditAnnotations"] = {key: self.pick("x", "", "y" * 400) for key in self.some(_KEYS, 3)}
        if self.chance(0.6 if mutating else 0.05):
            operations: Any = self._operations()
            found["patch"] = base64.b64encode(json.dumps(operations).encode()).decode()
            found["patchType"] = self.pick(*_PATCH_TYPES)
        if self.chance(0.08):
            name = self.pick(*_FIELDS)
            found[name] = self.pick(*_FIELDS[name])
        return {name: value for name, value in found.items() if name != "patchType" or value is not None}

    def _status(self) -> Object:
        found: Object = {}
        for name, values, share in (("message", _MESSAGES, 0.7), ("reason", _REASONS, 0.4), ("code", _CODES, 0.5)):
            if self.chance(share):
                found[name] = self.pick(*values)
        if self.chance(0.2):
            found["status"] = self.pick("Success", "Failure", "", "Odd")
        if self.chance(0.15):
            found["details"] = self.pick(
                {},
                {"name": "n", "group": "g", "kind": "k", "uid": "u", "retryAfterSeconds": 5},
                {"causes": [{"reason": "FieldValueInvalid", "message": "m", "field": "f"}, {}]},
                {"retryAfterSeconds": 1},
                {"causes": []},
            )
        if self.chance(0.1):
            found["metadata"] = self.pick({}, {"resourceVersion": "5", "continue": "x"}, {"remainingItemCount": 3})
        if self.chance(0.05):
            found |= {"kind": self.pick("Status", "Other"), "apiVersion": self.pick("v1", "v2")}
        return found

    def _operations(self) -> Any:
        if self.chance(0.03):
            return self.pick({}, None, "text", [5], [None], [[]], 7)
        return [self._operation() for _ in range(self.pick(0, 1, 1, 1, 1, 2, 2, 3))]

    def _operation(self) -> Object:
        if self.chance(0.35):
            usual: Object = self.pick(
                {"op": "add", "path": "/metadata/labels/a", "value": "b"},
                {"op": "add", "path": "/metadata/annotations", "value": {"a": "b"}},
                {"op": "add", "path": "/data", "value": {"a": "patched"}},
                {"op": "add", "path": "/metadata/finalizers", "value": ["example.com/f"]},
                {"op": "test", "path": "/metadata/labels/group", "value": "x"},
                {"op": "remove", "path": "/metadata/labels/skip"},
                {"op": "replace", "path": "/spec/replicas", "value": 3},
            )
            return usual
        found: Object = {"op": self.pick(*_OPERATIONS), "path": self.pick(*_PATHS), "value": self.pick(*_VALUES)}
        if found["op"] in ("move", "copy") or self.chance(0.02):
            found["from"] = self.pick(*_PATHS)
        if self.chance(0.08):
            del found[self.pick(*found)]
        return found

    # ------------------------------------------------------ configurations

    def hook(self, name: str, url: str, bundle: str, group: str, *, mutating: bool) -> Object:
        """Returns a webhook at `url` for objects with the label `group`."""
        client: Object = {"url": url, "caBundle": bundle}
        if self.chance(0.08):
            client = self.pick(
                {"url": "https://127.0.0.1:1/refused"},
                {"url": url},
                {"service": {"namespace": "default", "name": "nowhere", "path": "/x"}},
                {"service": {"namespace": "default", "name": "kubernetes", "port": 8443}},
                {"url": url.replace("127.0.0.1", "localhost"), "caBundle": bundle},
                {"url": f"{url}/../other//x/", "caBundle": bundle},
            )
        found: Object = {
            "name": name,
            "clientConfig": client,
            "rules": [self._rule() for _ in range(self.pick(1, 1, 1, 2, 3))],
            "admissionReviewVersions": self.pick(["v1"], ["v1"], ["v1beta1"], ["v1beta1", "v1"], ["v2", "v1"]),
            "sideEffects": self.pick("None", "None", "NoneOnDryRun"),
            "objectSelector": {"matchLabels": {"group": group}},
            "timeoutSeconds": self.pick(2, 3, 10, 30),
        }
        if self.chance(0.7):
            found["failurePolicy"] = self.pick("Fail", "Fail", "Ignore")
        if self.chance(0.5):
            found["matchPolicy"] = self.pick("Exact", "Equivalent")
        if mutating and self.chance(0.5):
            found["reinvocationPolicy"] = self.pick("Never", "IfNeeded", "IfNeeded")
        if self.chance(0.2):
            found["namespaceSelector"] = self.pick(
                {"matchLabels": {"kubernetes.io/metadata.name": "nowhere"}},
                {"matchExpressions": [{"key": "hooked", "operator": "Exists"}]},
                {"matchExpressions": [{"key": "hooked", "operator": "DoesNotExist"}]},
            )
        if self.chance(0.2):
            conditions = self.some(_CONDITIONS, 2)
            found["matchConditions"] = [{"name": f"c{i}", "expression": text} for i, text in enumerate(conditions)]
        return found

    def _rule(self) -> Object:
        group, version, resources = self.pick(
            ("*", "*", ("*", "*/*", "configmaps", "*/status")),
            ("*", "*", ("*/*",)),
            (
                "",
                "v1",
                (
                    "configmaps",
                    "pods",
                    "pods/*",
                    "namespaces",
                    "*",
                    "events",
                    "pods/status",
                    "pods/ephemeralcontainers",
                ),
            ),
            ("apps", "v1", ("deployments", "deployments/scale", "deployments/*", "*")),
            ("autoscaling", "v1", ("horizontalpodautoscalers", "scale", "*/scale")),
            ("autoscaling", "v2", ("horizontalpodautoscalers", "horizontalpodautoscalers/status")),
            ("events.k8s.io", "v1", ("events",)),
            ("hooks.example.com", "v1", ("things", "things/status", "things/scale", "*")),
            ("hooks.example.com", "v2", ("things", "things/status", "*")),
        )
        return {
            "apiGroups": [group],
            "apiVersions": [version],
            "operations": self.pick(["*"], list(_EVERY), ["CREATE"], ["UPDATE"], ["CREATE", "UPDATE"], ["DELETE"]),
            "resources": [self.pick(*resources)],
            **self.pick({}, {}, {"scope": "*"}, {"scope": "Namespaced"}, {"scope": "Cluster"}),
        }
