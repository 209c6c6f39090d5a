"""Which server and which user a kubeconfig, or a pod, leads to."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from fakeapiserver.client import kubeconfig
from fakeapiserver.client.config import ExecConfig, ImpersonationConfig, RESTConfig


def config(name: str = "one", **user: Any) -> dict[str, Any]:
    return {
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}:6443/"}}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": f"ns-{name}"}}],
        "current-context": name,
    }


def written(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ({"token": "t"}, {"token": "t"}),
        ({"username": "u", "password": "p"}, {"username": "u", "password": "p"}),
        (
            {"client-certificate-data": b64("C"), "client-key-data": b64("K")},
            {"cert_data": b"C", "key_data": b"K"},
        ),
        (
            {"as": "jane", "as-groups": ["dev"], "as-uid": "7"},
            {"impersonate": ImpersonationConfig("jane", "7", ["dev"], {})},
        ),
        (
            {"exec": {"command": "get-token", "apiVersion": "v1", "env": [{"name": "A", "value": "b"}]}},
            {"exec_provider": ExecConfig("get-token", "v1", (), {"A": "b"})},
        ),
    ],
    ids=["token", "basic", "certificate", "impersonation", "exec"],
)
def test_users(user: dict[str, Any], expected: dict[str, Any]) -> None:
    assert kubeconfig.from_config(config(**user)) == RESTConfig("https://one:6443", namespace="ns-one", **expected)


def test_files_are_merged_and_the_first_one_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = written(tmp_path / "first", {**config("one", token="first"), "current-context": ""})
    second = written(
        tmp_path / "second",
        {
            **config("two", token="second"),
            "users": [*config("one", token="x")["users"], *config("two", token="second")["users"]],
        },
    )
    monkeypatch.setenv("KUBECONFIG", f"{first}:{tmp_path / 'missing'}:{second}")
    assert kubeconfig.load() == RESTConfig("https://two:6443", token="second", namespace="ns-two")
    assert kubeconfig.load(context="one", namespace="mine") == RESTConfig(
        "https://one:6443", token="first", namespace="mine"
    )
    assert kubeconfig.load(user="one").token == "first"


def test_paths_are_meant_from_their_own_file(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("CA")
    found = config("one", tokenFile="secrets/token")
    found["clusters"][0]["cluster"]["certificate-authority"] = "ca.pem"
    loaded = kubeconfig.load(written(tmp_path / "config", found))
    assert (loaded.ca_data, loaded.token_file) == (b"CA", tmp_path / "secrets/token")


@pytest.mark.parametrize(
    ("content", "context", "message"),
    [
        ("a: [", "", "error loading config file"),
        ({}, "", "no configuration has been provided"),
        (config(), "nope", 'context "nope" does not exist'),
        ({**config(), "clusters": []}, "", 'cluster "one" was not found'),
        ({**config(), "users": []}, "", 'user "one" was not found'),
        (config(**{"client-certificate-data": "?"}), "", "client-certificate-data is no base64"),
        (config(**{"client-certificate-data": b64("C")}), "", "a client certificate needs its key"),
        (config(exec={"apiVersion": "v1"}), "", "command must be specified"),
        (config(token="t", username="u"), "", "may be set, but not both"),
    ],
)
def test_bad_files_are_told_in_one_sentence(tmp_path: Path, content: Any, context: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kubeconfig.load(written(tmp_path / "config", content), context=context)


def test_a_pod_uses_its_service_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("token", "jwt\n"), ("ca.crt", "CA"), ("namespace", "shop")):
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    assert kubeconfig.in_cluster(tmp_path) == RESTConfig(
        "https://[fd00::1]:443", ca_data=b"CA", token="jwt", token_file=tmp_path / "token", namespace="shop"
    )
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST")
    with pytest.raises(ValueError, match="KUBERNETES_SERVICE_HOST"):
        kubeconfig.in_cluster(tmp_path)
