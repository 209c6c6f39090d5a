"""Tests which server and user a kubeconfig or a pod's environment selects."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from fakeapiserver.client import kubeconfig
from fakeapiserver.client.config import ExecConfig, ImpersonationConfig, RESTConfig
from fakeapiserver.client.credentials import client_certificate
from fakeapiserver.transport.certificates import create_authority, issue_client, save
from fakeapiserver.transport.kubeconfigs import clientcmd
from fakeapiserver.transport.kubeconfigs.clientcmd import Overrides

V1, V1BETA1 = "client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"
PLUGIN = {"command": "get-token", "apiVersion": V1, "interactiveMode": "Never"}


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
        ({"client-key-data": b64("K"), "auth-provider": None}, {}),
        (
            {"as": "jane", "as-groups": ["dev"], "as-uid": "7"},
            {"impersonate": ImpersonationConfig("jane", "7", ["dev"], {})},
        ),
        (
            {"exec": {**PLUGIN, "env": [{"name": "A", "value": "b"}], "installHint": "say \x1b[1mplease"}},
            {"exec_provider": ExecConfig("get-token", V1, (), {"A": "b"}, "say U+001B[1mplease")},
        ),
        (
            {"exec": {"command": "bin/get-token", "apiVersion": V1BETA1}},
            {"exec_provider": ExecConfig("/folder/bin/get-token", V1BETA1, interactive_mode="IfAvailable")},
        ),
    ],
    ids=["token", "basic", "certificate", "only a key", "impersonation", "exec", "exec of a file"],
)
def test_users(user: dict[str, Any], expected: dict[str, Any]) -> None:
    assert kubeconfig.from_config(config(**user), folder="/folder") == RESTConfig(
        "https://one:6443", namespace="ns-one", **expected
    )


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
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "token").write_text("t\n")
    (tmp_path / "ca.pem").write_text("CA")
    found = config("one", tokenFile="secrets/../secrets/token")
    found["clusters"][0]["cluster"]["certificate-authority"] = "ca.pem"
    loaded = kubeconfig.load(written(tmp_path / "config", found))
    assert (loaded.ca_file, loaded.token_file) == (tmp_path / "ca.pem", tmp_path / "secrets/token")
    assert loaded.token == "t"


@pytest.mark.parametrize(
    ("server", "host"),
    [
        ("https://one:6443/", "https://one:6443"),
        ("https://one/a//b/?c=1#d", "https://one/a/b"),
        ("http://one", "http://one"),
        ("one:8080", "http://one:8080"),
    ],
)
def test_credentials_are_sent_over_tls_only(server: str, host: str) -> None:
    found = config(token="t", **{"as": "jane"})
    found["clusters"][0]["cluster"].update({"server": server, "insecure-skip-tls-verify": True})
    loaded = kubeconfig.from_config(found)
    assert (loaded.host, loaded.impersonate.user_name) == (host, "jane")
    assert (loaded.token, loaded.insecure) == (("t", True) if host.startswith("https") else ("", False))


def test_clusters_may_set_how_they_are_reached() -> None:
    found = config(exec=PLUGIN)
    found["clusters"][0]["cluster"].update(
        {
            "tls-server-name": "kubernetes",
            "proxy-url": "socks5://proxy:1080",
            "disable-compression": True,
            "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}],
        }
    )
    loaded = kubeconfig.from_config(found)
    assert (loaded.server_name, loaded.proxy_url) == ("kubernetes", "socks5://proxy:1080")
    assert loaded.exec_provider is not None
    assert (loaded.disable_compression, loaded.exec_provider.cluster_extension) == (True, {"audience": "x"})


@pytest.mark.parametrize(
    ("content", "context", "message"),
    [
        ("a: [", "", "error loading config file"),
        ({}, "", "no configuration has been provided"),
        (config(), "nope", 'context "nope" does not exist'),
        ({**config(), "clusters": []}, "", "no configuration has been provided"),
        (config(**{"client-certificate-data": "?"}), "", "illegal base64 data at input byte 0"),
        (config(**{"client-certificate-data": b64("C")}), "", "client-key-data or client-key must be specified"),
        (config(exec={"apiVersion": V1}), "", "command must be specified"),
        (config(token="t", username="u"), "", "more than one authentication method found for one"),
        (config(**{"as-user-extra": {"k": "v"}}), "", r"as-user-extra of type \[\]string"),
        (config(**{"auth-provider": {}}), "", 'no Auth Provider found for name ""'),
    ],
)
def test_invalid_files_are_reported_in_one_sentence(tmp_path: Path, content: Any, context: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kubeconfig.load(written(tmp_path / "config", content), context=context)


def test_several_broken_files_are_reported_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = written(tmp_path / "first", "a: ["), written(tmp_path / "second", "clusters: x")
    monkeypatch.setenv("KUBECONFIG", f"{first}:{second}:{first}")
    with pytest.raises(
        ValueError, match=r'^\[error loading config file ".*first": .*, error loading .*second": json: .*\]$'
    ):
        kubeconfig.load()


@pytest.fixture
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a service account, and the variables of a pod."""
    authority = create_authority().certificate.decode()
    for name, text in (("token", "jwt\n"), ("ca.crt", authority), ("namespace", "shop\n")):
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.delenv("POD_NAMESPACE", raising=False)
    return tmp_path


def test_a_pod_uses_its_service_account(pod: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = RESTConfig(
        "https://[fd00::1]:443", ca_file=pod / "ca.crt", token="jwt", token_file=pod / "token", namespace="shop"
    )
    assert kubeconfig.in_cluster(pod) == ours
    monkeypatch.setenv("POD_NAMESPACE", "mine")
    assert kubeconfig.in_cluster(pod) == ours.with_(namespace="mine")
    (pod / "ca.crt").write_text("none")
    assert kubeconfig.in_cluster(pod).ca_file is None
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST")
    with pytest.raises(ValueError, match="KUBERNETES_SERVICE_HOST"):
        kubeconfig.in_cluster(pod)


@pytest.mark.parametrize(
    ("files", "overrides", "host", "namespace"),
    [
        ([], Overrides(), "https://[fd00::1]:443", "shop"),
        ([{}], Overrides(namespace="mine"), "https://[fd00::1]:443", "mine"),
        ([config()], Overrides(), "https://one:6443", "ns-one"),
        ([config()], Overrides(namespace="mine"), "https://one:6443", "mine"),
        (
            [{**config(), "contexts": [{"name": "one", "context": {"cluster": "one"}}]}],
            Overrides(),
            "https://one:6443",
            "shop",
        ),
    ],
)
def test_files_go_before_the_pod(
    pod: Path, files: list[dict[str, Any]], overrides: Overrides, host: str, namespace: str
) -> None:
    paths = [str(written(pod / f"config-{i}", content)) for i, content in enumerate(files)]
    loaded = clientcmd.load(paths, overrides, pod)
    assert (loaded.host, loaded.namespace) == (host, namespace)


def test_a_certificate_in_files_is_read_again(tmp_path: Path) -> None:
    authority, clock = create_authority(), Ticking()
    old, new = issue_client(authority, "old"), issue_client(authority, "new")
    save(tmp_path, "client", old)
    config = RESTConfig("https://one", cert_file=tmp_path / "client.crt", key_file=tmp_path / "client.key")
    certificate = client_certificate(config, clock)
    (tmp_path / "client.crt").write_bytes(new.certificate)
    clock.seconds += 1
    assert certificate.current() == old  # the key isn't there yet
    save(tmp_path, "client", new)
    assert certificate.current() == old
    clock.seconds += 1
    assert certificate.current() == new


class Ticking:
    """A clock that a test moves."""

    seconds = 0.0

    def now(self) -> float:
        return self.seconds

    def monotonic(self) -> float:
        return self.seconds
