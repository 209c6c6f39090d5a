"""Kubeconfig files: contents, rights and replacement."""

import base64
import stat
from pathlib import Path

import yaml

from fakeapiserver.transport.key_pair import KeyPair
from fakeapiserver.transport.kubeconfigs import kubeconfig


def test_a_kubeconfig_is_private_yaml_and_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("old")
    path.chmod(0o644)
    client = KeyPair(b"cert", b"key")
    kubeconfig.write(path, kubeconfig.render("https://127.0.0.1:6443", authority=b"ca", token="t", client=client))
    config = yaml.safe_load(path.read_text())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]
    assert config["current-context"] == config["contexts"][0]["name"] == config["clusters"][0]["name"]
    assert base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]) == b"ca"
    user = config["users"][0]["user"]
    assert user["token"] == "t"
    assert base64.b64decode(user["client-key-data"]) == b"key"


def test_credentials_are_optional() -> None:
    config = kubeconfig.render("http://localhost:8080", namespace="ns")
    assert config["users"][0]["user"] == {}
    assert config["clusters"][0]["cluster"] == {"server": "http://localhost:8080"}
    assert config["contexts"][0]["context"]["namespace"] == "ns"
