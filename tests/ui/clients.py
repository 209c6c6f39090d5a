"""Clients of a cluster with names of their own, as operators have, and objects to send."""

import json
import ssl
import urllib.error
import urllib.request
from typing import Any

from fakeapiserver import Cluster


class NamedClient:
    """Sends requests with `name` as their User-Agent, as the admin or as `user`. Refusals are returned as their Status."""

    def __init__(self, cluster: Cluster, name: str, user: str = "") -> None:
        self._url, self._token, self._name = cluster.url, cluster.token, name
        self._impersonated = {"Impersonate-User": user} if user else {}
        self._context = ssl.create_default_context(cadata=cluster.ca.decode())

    def send(self, method: str, path: str, body: object = None, content_type: str = "application/json") -> Any:
        headers = {
            "Content-Type": content_type,
            "User-Agent": f"{self._name}/v1.0",
            "Authorization": f"Bearer {self._token}",
            **self._impersonated,
        }
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, context=self._context, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            return json.load(error)

    def merge(self, path: str, body: object) -> Any:
        return self.send("PATCH", path, body, "application/merge-patch+json")


def deployment(name: str, replicas: int, **requests: str) -> dict[str, Any]:
    """A Deployment whose only container requests e.g. `cpu="100m"`."""
    labels = {"app": name}
    container = {"name": "main", "image": "nginx", "resources": {"requests": requests}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
