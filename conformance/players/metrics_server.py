"""Metrics for a real cluster, set as a test sets them here: an HTTPS server that its aggregator asks.

It takes what `/fakeapiserver/metrics` takes, and answers metrics.k8s.io, custom.metrics.k8s.io and external.metrics.k8s.io of the pods
that the cluster has. It knows no more than scripts need: usage of pods, custom metrics, external ones.
"""

import json
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any, Final
from urllib.parse import parse_qs, quote, unquote, urlsplit

from conformance.exchange import Client
from conformance.players.tls_server import TLSServer

_VERSIONS: Final = {
    "resource": ("v1beta1.metrics.k8s.io",),
    "custom": ("v1beta2.custom.metrics.k8s.io", "v1beta1.custom.metrics.k8s.io"),
    "external": ("v1beta1.external.metrics.k8s.io",),
}
_SERVICE: Final = "/api/v1/namespaces/kube-system/services"
_API_SERVICES: Final = "/apis/apiregistration.k8s.io/v1/apiservices"
_READY_SECONDS: Final = 30.0
# As they are shown where a metric is about them.
_KINDS: Final = {"pods": "Pod", "services": "Service", "deployments.apps": "Deployment", "namespaces": "Namespace"}


class MetricsServer(TLSServer):
    """Runs in a thread, as a context manager, beside the cluster at `url`."""

    def __init__(self, url: str, token: str) -> None:
        self._url, self._token = url, token
        self._rules: dict[str, list[dict[str, Any]]] = {"pods": [], "custom": [], "external": []}

        class Handler(_Handler):
            server_of = self

        super().__init__(Handler)

    def set(self, what: str, body: Mapping[str, Any]) -> None:
        """Sets the metrics of a script's step."""
        if what == "served":
            self._serve(body["served"])
        else:
            self._rules[what].append(dict(body))

    def clear(self) -> None:
        """Forgets all values, and serves nothing."""
        for rules in self._rules.values():
            rules.clear()
        self._serve([])

    def _serve(self, names: list[str]) -> None:
        """Registers it for these APIs; waits until the cluster knows."""
        wanted = {version for name in (_VERSIONS if "*" in names else names) for version in _VERSIONS[name]}
        spec = {"type": "ExternalName", "externalName": "localhost"}
        self._ask("POST", _SERVICE, {"metadata": {"name": "metrics"}, "spec": spec})
        for version in (version for versions in _VERSIONS.values() for version in versions):
            self._ask("DELETE", f"{_API_SERVICES}/{version}")
            if version in wanted:
                name, _, group = version.partition(".")
                service = {"namespace": "kube-system", "name": "metrics", "port": self.port}
                registered = {
                    "group": group,
                    "version": name,
                    "service": service,
                    "insecureSkipTLSVerify": True,
                    "groupPriorityMinimum": 100,
                    "versionPriority": 200 if name == "v1beta2" else 100,
                }
                self._ask("POST", _API_SERVICES, {"metadata": {"name": version}, "spec": registered})
        start = time.monotonic()
        while not all(map(self._is_available, wanted)) and time.monotonic() - start < _READY_SECONDS:
            time.sleep(0.2)

    def _is_available(self, name: str) -> bool:
        conditions = (self._ask("GET", f"{_API_SERVICES}/{name}").get("status") or {}).get("conditions") or []
        return any(found["type"] == "Available" and found["status"] == "True" for found in conditions)

    def _ask(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        request: dict[str, Any] = {"method": method, "path": path, "type": "application/json"}
        if body is not None:
            request["body"] = body
        # Each request has a thread, and minutes may be between two of them.
        found: dict[str, Any] = Client(self._url, self._token).send(request, []).get("body") or {}
        return found

    # ------------------------------------------------------------------------------- answers

    def answer(self, path: str, params: Mapping[str, list[str]]) -> tuple[int, dict[str, Any]]:
        """Status and document."""
        parts = [unquote(part) for part in path.strip("/").split("/")]
        if len(parts) < 3 or parts[0] != "apis":
            return 404, {}
        version, rest = f"{parts[1]}/{parts[2]}", parts[3:]
        if not rest:
            return 200, {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": []}
        if rest[0] != "namespaces" or len(rest) < 3:
            return 404, {}
        namespace, what = rest[1], rest[2:]
        selector = params.get("labelSelector", [""])[0]
        if parts[1] == "metrics.k8s.io":
            return 200, _list("PodMetricsList", version, [*self._pods(namespace, selector)])
        if parts[1] == "external.metrics.k8s.io":
            return 200, _list("ExternalMetricValueList", version, [*self._external(namespace, what[0], selector)])
        series = params.get("metricLabelSelector", [""])[0]
        if what[0] == "metrics":
            resource, name, metric, namespace = "namespaces", namespace, what[1], ""
        else:
            resource, name, metric = what
        items = [*self._custom(namespace, resource, name, metric, selector, series)]
        if not items:
            about = "" if name == "*" else f" {name}"
            message = f"the server could not find the metric {metric} for {resource}{about}"
            status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
            return 404, {**status, "message": message}
        return 200, _list("MetricValueList", version, items)

    def _selected(self, namespace: str, selector: str) -> list[dict[str, Any]]:
        """Pods that run."""
        path = f"/api/v1/namespaces/{namespace}/pods?labelSelector={quote(selector)}"
        pods: list[dict[str, Any]] = self._ask("GET", path).get("items") or []
        return [pod for pod in pods if (pod.get("status") or {}).get("phase") == "Running"]

    def _pods(self, namespace: str, selector: str) -> Iterator[dict[str, Any]]:
        for pod in self._selected(namespace, selector):
            rules = [rule for rule in self._rules["pods"] if _matches(rule, pod)]
            if rules and rules[-1].get("missing"):
                continue
            containers = [found["name"] for found in pod["spec"]["containers"]]
            shown = [{"name": name, "usage": _usage(rules, name, len(containers))} for name in containers]
            yield {"metadata": _metadata(pod), "timestamp": _now(), "window": "15s", "containers": shown}

    def _custom(
        self, namespace: str, resource: str, name: str, metric: str, selector: str, series: str
    ) -> Iterator[dict[str, Any]]:
        rules = [
            rule
            for rule in self._rules["custom"]
            if (rule["metric"], rule.get("resource", "pods")) == (metric, resource)
        ]
        pods = self._selected(namespace, selector) if resource == "pods" and name == "*" else []
        for obj in pods or [{"metadata": {"name": name, "namespace": namespace}}]:
            own = [rule for rule in rules if _matches(rule, obj)]
            chosen = [rule for rule in own if _has(rule.get("labels") or {}, series)]
            if chosen and chosen[-1]["value"] is not None:
                about = {"kind": _KINDS[resource], "name": obj["metadata"]["name"], "apiVersion": "/v1"}
                told = {"timestamp": _now(), "value": str(chosen[-1]["value"]), "metric": {"name": metric}}
                yield {"describedObject": {**about, "namespace": namespace}, **told}

    def _external(self, namespace: str, metric: str, selector: str) -> Iterator[dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for rule in self._rules["external"]:
            own = rule.get("labels") or {}
            if rule["metric"] == metric and rule.get("namespace", "") in ("", namespace) and _has(own, selector):
                found[json.dumps(own, sort_keys=True)] = rule
        for rule in found.values():
            if rule["value"] is not None:
                labels = rule.get("labels") or {}
                yield {"metricName": metric, "metricLabels": labels, "timestamp": _now(), "value": str(rule["value"])}


def _list(kind: str, version: str, items: list[dict[str, Any]]) -> dict[str, Any]:
    return {"kind": kind, "apiVersion": version, "metadata": {}, "items": items}


def _metadata(pod: Mapping[str, Any]) -> dict[str, Any]:
    return {key: pod["metadata"][key] for key in ("name", "namespace", "labels") if key in pod["metadata"]}


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _matches(rule: Mapping[str, Any], obj: Mapping[str, Any]) -> bool:
    metadata = obj["metadata"]
    return (
        rule.get("namespace", "") in ("", metadata.get("namespace", ""))
        and rule.get("name", "") in ("", metadata["name"])
        and _has(metadata.get("labels") or {}, rule.get("selector", ""))
    )


def _has(labels: Mapping[str, str], selector: str) -> bool:
    """Reports whether the labels match a selector of the form `a=b,c=d`."""
    return all(
        labels.get(key) == value for key, _, value in (part.partition("=") for part in selector.split(",") if part)
    )


def _usage(rules: list[dict[str, Any]], container: str, containers: int) -> dict[str, str]:
    """The last word on each resource. What a whole pod uses is said of pods with one container alone."""
    found = {"cpu": "1m", "memory": "10Mi"}
    for rule in rules:
        if rule.get("container", "") in ("", container):
            assert rule.get("container") or containers == 1 or not rule.get("usage"), "say of which container"
            found |= {name: str(value) for name, value in (rule.get("usage") or {}).items()}
    return found


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_of: MetricsServer

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        status, document = self.server_of.answer(url.path, parse_qs(url.query))
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any) -> None:
        """Quiet."""
