"""Tests the user of a kubeconfig with which a webhook server is called."""

import json
from pathlib import Path

import pytest

from fakeapiserver.transport.webhook import Endpoint
from fakeapiserver.transport.webhook_users import WebhookUsers


def endpoint(place: str) -> Endpoint:
    host, _, port = place.rpartition(":")
    return Endpoint(f"https://{place}/", host, int(port))


def config(path: Path, users: list[str], usual: str = "") -> Path:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "users": [{"name": name, "user": {"token": name}} for name in users],
        "contexts": [{"name": "x", "context": {"user": usual}}],
        "current-context": "x",
    }
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize(
    ("users", "place", "chosen"),
    [
        (["hook.ns.svc:443", "hook.ns.svc", "*"], "hook.ns.svc:443", "hook.ns.svc:443"),
        (["hook.ns.svc", "*.ns.svc", "*"], "hook.ns.svc:443", "hook.ns.svc"),
        (["*.svc:443", "hook.ns.svc"], "hook.ns.svc:443", "*.svc:443"),
        (["*.svc", "*.ns.svc", "*"], "hook.ns.svc:443", "*.ns.svc"),
        (["hook.ns.svc", "*"], "hook.ns.svc:8443", "*"),
        (["*.svc:8443", "*"], "hook.ns.svc:8443", "*.svc:8443"),
        (["usual", "other"], "example.com:443", "usual"),
        (["usual", "*"], "example.com:443", "*"),
        (["other"], "example.com:443", ""),
    ],
)
def test_whose_name_fits_best(tmp_path: Path, users: list[str], place: str, chosen: str) -> None:
    found = WebhookUsers(config(tmp_path / "kubeconfig", users, "usual")).presenting(endpoint(place)).identity
    assert found.authorization == (f"Bearer {chosen}" if chosen else "")
    assert found.user_agent == "kube-apiserver-admission"
