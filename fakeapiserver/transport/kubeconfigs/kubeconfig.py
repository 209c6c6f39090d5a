"""Kubeconfig files. Written as JSON, which is YAML: no YAML library is needed to make one.

Upstream: k8s.io/client-go/tools/clientcmd
"""

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

from fakeapiserver.transport.files import write_file
from fakeapiserver.transport.key_pair import KeyPair


def render(
    server: str,
    *,
    authority: bytes | None = None,
    token: str | None = None,
    client: KeyPair | None = None,
    name: str = "fakeapiserver",
    user: str = "admin",
    namespace: str | None = None,
) -> dict[str, Any]:
    """A kubeconfig with one cluster, user and context. `server` is a URL, `authority` PEM; credentials are optional."""
    cluster: dict[str, Any] = {"server": server}
    if authority is not None:
        cluster["certificate-authority-data"] = _encode(authority)
    credentials: dict[str, Any] = {}
    if token is not None:
        credentials["token"] = token
    if client is not None:
        credentials["client-certificate-data"] = _encode(client.certificate)
        credentials["client-key-data"] = _encode(client.key)
    context = {"cluster": name, "user": user}
    if namespace is not None:
        context["namespace"] = namespace
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": user, "user": credentials}],
        "contexts": [{"name": name, "context": context}],
        "current-context": name,
        "preferences": {},
    }


def write(path: Path, config: dict[str, Any]) -> None:
    """Write a kubeconfig atomically, readable by its owner only. Raises OSError."""
    write_file(path, json.dumps(config, indent=2).encode() + b"\n", 0o600)


def _encode(pem: bytes) -> str:
    return b64encode(pem).decode("ascii")
