"""Random webhooks with random answers, called by a real server and another one: compares what clients and webhooks receive.

    python -m conformance.compare.access.webhooks --oracle URL --oracle-token T --server URL --token T
        [--seed N] [--groups N] [--requests N]

Each of the `--groups` has one to four webhooks of its own, which see the objects with its label, and gets `--requests` requests; its
webhooks give new answers to each. Prints each kind of difference once.
"""

import base64
import copy
import json
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any, Final

from conformance.compare.customresources import DEFINITIONS, Differences, Request
from conformance.exchange import Answer, Client, comparing
from conformance.players.webhook import Object, Webhook
from conformance.random.webhooks import Random

_CONFIGURATIONS: Final = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations"
_SETTLING: Final = 2.0  # seconds until a real server uses new configurations
_ALLOWING: Final = {
    "kind": "AdmissionReview",
    "apiVersion": "admission.k8s.io/v1",
    "response": {"uid": "", "allowed": True},
}
_MERGE: Final = "application/merge-patch+json"
_PATCHES: Final = (
    _MERGE,
    "application/json-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
_POD: Final = {"containers": [{"name": "a", "image": "i"}]}
_TEMPLATE: Final = {"metadata": {"labels": {"a": "b"}}, "spec": _POD}
_TARGET: Final = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
_INVOLVED: Final = {"kind": "Pod", "name": "p"}
# (path of the collection in a namespace, apiVersion, kind, what an object has beside metadata, its subresources)
_KINDS: Final[tuple[tuple[str, str, str, Object, tuple[str, ...]], ...]] = (
    ("/api/v1/namespaces/{}/configmaps", "v1", "ConfigMap", {"data": {"a": "b"}}, ()),
    ("/api/v1/namespaces/{}/configmaps", "v1", "ConfigMap", {"data": {"a": "b"}}, ()),
    ("/api/v1/namespaces/{}/pods", "v1", "Pod", {"spec": _POD}, ("status",)),
    (
        "/apis/apps/v1/namespaces/{}/deployments",
        "apps/v1",
        "Deployment",
        {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": _TEMPLATE}},
        ("status", "scale"),
    ),
    (
        "/apis/autoscaling/v1/namespaces/{}/horizontalpodautoscalers",
        "autoscaling/v1",
        "HorizontalPodAutoscaler",
        {"spec": {"scaleTargetRef": _TARGET, "maxReplicas": 3, "targetCPUUtilizationPercentage": 50}},
        ("status",),
    ),
    (
        "/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers",
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        {"spec": {"scaleTargetRef": _TARGET, "maxReplicas": 3}},
        ("status",),
    ),
    ("/apis/hooks.example.com/v1/namespaces/{}/things", "hooks.example.com/v1", "Thing", {"spec": {"size": 2}}, ("status", "scale")),
    ("/apis/hooks.example.com/v2/namespaces/{}/things", "hooks.example.com/v2", "Thing", {"spec": {"size": 2}}, ("status",)),
    ("/api/v1/namespaces/{}/events", "v1", "Event", {"involvedObject": _INVOLVED, "reason": "r", "message": "m"}, ()),
    ("/api/v1/namespaces", "v1", "Namespace", {}, ("status",)),
)  # fmt: skip


class Group:
    """The webhooks of one label, the same on both servers but for their address."""

    def __init__(self, number: int, prefix: str, source: Random) -> None:
        self.label = f"{prefix}-{number}"
        self._source = source
        self.sorts = ["mutating"] * source.pick(0, 1, 1, 2, 2) or ["validating"]
        self.sorts += ["validating"] * source.pick(0, 0, 1, 1, 2)
        self._hooks = [
            source.hook(f"h{i}.example.com", f"URL/{self.label}/{i}", "BUNDLE", self.label, mutating=sort == "mutating")
            for i, sort in enumerate(self.sorts)
        ]

    def configurations(self, webhook: Webhook) -> Iterator[Request]:
        for i, (sort, hook) in enumerate(zip(self.sorts, self._hooks, strict=True)):
            text = json.dumps({"metadata": {"name": f"{self.label}-{i}"}, "webhooks": [hook]})
            body = json.loads(text.replace("URL", webhook.url).replace("BUNDLE", webhook.ca_bundle))
            yield {"method": "POST", "path": _CONFIGURATIONS.format(sort), "body": body}

    def plan(self, webhooks: tuple[Webhook, ...]) -> str:
        """New answers, and what to call them."""
        told = []
        for i, sort in enumerate(self.sorts):
            plan = self._source.plan(mutating=sort == "mutating")
            for webhook in webhooks:
                webhook.plans[f"{self.label}/{i}"] = plan
            found = plan(copy.deepcopy(_ALLOWING))
            if isinstance(found, dict) and isinstance(found.get("response"), dict):
                found = found["response"]
                with suppress(ValueError, TypeError):
                    found = {**found, "patch": base64.b64decode(found.get("patch") or "").decode()}
            told.append(f"{sort} {json.dumps(found)[:300]}")
        return " | ".join(told)


class Writes:
    """Requests for one group."""

    def __init__(self, group: Group, source: Random, namespace: str) -> None:
        self._source, self._label, self._namespace = source, group.label, namespace
        self._kind = source.pick(*_KINDS)
        self._made: list[str] = []
        self._number = 0

    def next(self) -> Request:
        source = self._source
        path, _, kind, _, subresources = self._kind
        place = path.format(self._namespace)
        query = source.pick("", "", "", "", "?dryRun=All", "?fieldManager=me", "?fieldValidation=Strict")
        if not self._made or source.chance(0.35):
            self._number += 1
            name = f"{self._label}-{kind.lower()[:3]}{self._number}"
            self._made.append(name)
            return {"method": "POST", "path": place + query, "body": self._object(name)}
        name = source.pick(*self._made)
        what = source.pick("PUT", "PATCH", "PATCH", "PATCH", "DELETE", "SUB", "SUB", "GET")
        if what == "GET":
            return {"method": "GET", "path": f"{place}/{name}"}
        if what == "DELETE":
            grace = {"gracePeriodSeconds": source.pick(0, 0, 5)}
            if kind != "Namespace" and source.chance(0.15):
                return {"method": "DELETE", "path": f"{place}?labelSelector=group%3D{self._label}", "body": grace}
            return {"method": "DELETE", "path": f"{place}/{name}{query if 'field' not in query else ''}", "body": grace}
        if what == "SUB" and subresources:
            return self._subresource(f"{place}/{name}", source.pick(*subresources), query)
        if what == "PUT":
            return {"method": "PUT", "path": f"{place}/{name}{query}", "body": self._object(name)}
        return self._patch(f"{place}/{name}", query)

    def _object(self, name: str) -> Object:
        _, version, kind, more, _ = self._kind
        labels = {"group": self._label, **self._source.pick({}, {}, {"skip": "x"}, {"n": str(self._number)})}
        meta: Object = {"name": name, "labels": labels}
        if self._source.chance(0.1):
            meta["annotations"] = {"a": "b"}
        found = {"apiVersion": version, "kind": kind, "metadata": meta, **json.loads(json.dumps(more))}
        if kind == "Event":
            meta["namespace"] = self._namespace
            found["involvedObject"]["namespace"] = self._namespace
        return found

    def _patch(self, place: str, query: str) -> Request:
        _, version, kind, more, _ = self._kind
        sort = self._source.pick(*_PATCHES)
        label = self._source.pick("x", "y", "z")
        body: Any = {"metadata": {"labels": {"p": label}}}
        if sort == "application/json-patch+json":
            body = [{"op": "add", "path": "/metadata/labels/p", "value": label}]
        if sort == "application/apply-patch+yaml":
            query = f"?fieldManager=applier&force={self._source.pick('true', 'false')}"
            body = {"apiVersion": version, "kind": kind, **more, **body}
            body["metadata"]["labels"]["group"] = self._label
        return {"method": "PATCH", "path": f"{place}{query}", "type": sort, "body": body}

    def _subresource(self, place: str, name: str, query: str) -> Request:
        body: Object = {"spec": {"replicas": self._source.pick(1, 2, 3)}}
        if name == "status":
            body = self._source.pick({"status": {"replicas": 1}}, {"status": {"phase": "Running"}}, {"status": {}})
        return {"method": "PATCH", "path": f"{place}/{name}{query}", "type": _MERGE, "body": body}


def main() -> int:
    arguments = comparing(__doc__, groups=25, requests=25).parse_args()
    clients = Client(arguments.oracle, arguments.oracle_token), Client(arguments.server, arguments.token)
    source, differences = Random(arguments.seed), Differences()
    prefix, namespace = f"h{arguments.seed}", f"hooks-{arguments.seed}"
    with ExitStack() as stack:
        webhooks = stack.enter_context(Webhook()), stack.enter_context(Webhook())

        def send(label: str, request: Request) -> None:
            for webhook in webhooks:
                webhook.asked.clear()
            answers: list[Answer] = []
            for client, webhook in zip(clients, webhooks, strict=True):
                answer = client.send(request, [])
                asked = sorted(webhook.asked, key=lambda call: call[0])
                answers.append(json.loads(webhook.hidden(json.dumps({**answer, "asked": asked}))))
            calls = [{"status": 0, "body": {"calls": list(map(_call, answer.pop("asked")))}} for answer in answers]
            differences.compare(label, request, answers[0], answers[1])
            differences.compare(f"{label}, what is asked,", request, calls[0], calls[1])

        groups = [Group(number, prefix, source) for number in range(arguments.groups)]
        for client, webhook in zip(clients, webhooks, strict=True):
            client.send({"method": "POST", "path": DEFINITIONS, "body": _definition()}, [])
            body = {"metadata": {"name": namespace, "labels": {"hooked": "yes"}}}
            client.send({"method": "POST", "path": "/api/v1/namespaces", "body": body}, [])
            for group in groups:
                for request in group.configurations(webhook):
                    answer = client.send(request, [])
                    assert answer["status"] == 201, answer
        time.sleep(_SETTLING)
        for group in groups:
            writes = Writes(group, source, namespace)
            for number in range(arguments.requests):
                told = group.plan(webhooks)
                send(f"{group.label} request {number} [{told}]", writes.next())
        for client in clients:
            for group in groups:
                for i, sort in enumerate(group.sorts):
                    client.send({"method": "DELETE", "path": f"{_CONFIGURATIONS.format(sort)}/{group.label}-{i}"}, [])
    print(differences)
    return 0


def _call(call: tuple[str, Object]) -> Object:
    """Returns the request that a webhook received, in a form that can be compared: times and identities don't count."""
    path, review = call
    for obj in (review["request"].get(name) for name in ("object", "oldObject")):
        if isinstance(obj, dict) and "managedFields" in obj.get("metadata", {}):
            obj["metadata"]["managedFields"].sort(key=json.dumps)
    return {"path": path, **review}


def _definition() -> Object:
    spec = {
        "type": "object",
        "properties": {"size": {"type": "integer", "default": 1, "maximum": 9}, "replicas": {"type": "integer"}},
    }
    status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    versions = [
        {
            "name": name,
            "served": True,
            "storage": name == "v1",
            "schema": {"openAPIV3Schema": schema},
            "subresources": {"status": {}, **({"scale": scale} if name == "v1" else {})},
        }
        for name in ("v1", "v2")
    ]
    names = {"plural": "things", "kind": "Thing"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.hooks.example.com"},
        "spec": {"group": "hooks.example.com", "scope": "Namespaced", "names": names, "versions": versions},
    }


if __name__ == "__main__":
    sys.exit(main())
