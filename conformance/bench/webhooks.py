"""Measures what calling an admission webhook costs, beyond the webhook's own time."""

import base64
import json
import socket
import ssl
import statistics
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from conformance.exchange import Client
from conformance.players.tls_server import self_signed

_CONFIGURATIONS: Final = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
_NAMESPACES: Final = ("unhooked", "hooked")
_SETTLING: Final = 2.0  # seconds until a real server uses new configurations
_WARMING: Final = 50


def overhead(client: Client, loader: Path, count: int) -> float:
    """Milliseconds: the median of creations that one webhook sees, less that of others in between, less what the webhook took."""
    with _webhook(loader) as (url, bundle):
        _configure(client, url, bundle)
        seconds: dict[str, list[float]] = {namespace: [] for namespace in _NAMESPACES}
        for number in range(_WARMING + count):
            for namespace, found in seconds.items():
                started = time.perf_counter()
                _create(client, namespace, number)
                if number >= _WARMING:
                    found.append(time.perf_counter() - started)
        client.send({"method": "DELETE", "path": f"{_CONFIGURATIONS}/bench"}, [])
        own = _own_seconds(url)
    plain, hooked = (statistics.median(seconds[namespace]) for namespace in _NAMESPACES)
    return (hooked - plain - own) * 1000


def _create(client: Client, namespace: str, number: int) -> None:
    body = {"metadata": {"name": f"c{number}"}, "data": {"text": "x" * 500}}
    answer = client.send({"method": "POST", "path": f"/api/v1/namespaces/{namespace}/configmaps", "body": body}, [])
    assert answer["status"] == 201, answer


def _configure(client: Client, url: str, bundle: str) -> None:
    for namespace in _NAMESPACES:
        client.send({"method": "POST", "path": "/api/v1/namespaces", "body": {"metadata": {"name": namespace}}}, [])
    hook = {
        "name": "bench.example.com",
        "clientConfig": {"url": f"{url}/allow", "caBundle": bundle},
        "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "hooked"}},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
    }
    body = {"metadata": {"name": "bench"}, "webhooks": [hook]}
    client.send({"method": "POST", "path": _CONFIGURATIONS, "body": body}, [])
    time.sleep(_SETTLING)


@contextmanager
def _webhook(loader: Path) -> Iterator[tuple[str, str]]:
    """Its URL, and its certificate for a `caBundle`."""
    key, certificate = self_signed()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    with tempfile.TemporaryDirectory() as folder:
        files = {"certificate": certificate, "key": key}
        for name, content in files.items():
            (Path(folder) / name).write_bytes(content)
        flags = [f"-{name}={folder}/{name}" for name in files]
        with subprocess.Popen([str(loader), "-mode=hook", f"-address={address}", *flags]) as process:
            try:
                yield f"https://{address}", base64.b64encode(certificate).decode()
            finally:
                process.kill()


def _own_seconds(url: str) -> float:
    with urllib.request.urlopen(f"{url}/stats", context=ssl._create_unverified_context()) as answer:
        found = json.load(answer)
    return float(found["us"]) / 1e6 / int(found["calls"])
