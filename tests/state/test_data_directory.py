"""A cluster with a data directory: what the next one there finds, and the commands that look after the directory."""

import os
import signal
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from fakeapiserver import Cluster
from fakeapiserver.cli.control.state import main
from fakeapiserver.server.options.config import Config
from fakeapiserver.storage.file.database import NAME


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def service(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}}


def status(cluster: Cluster, token: str, path: str) -> int:
    trusted = ssl.create_default_context(cadata=cluster.ca.decode())
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.get(cluster.url + path, verify=trusted, headers=headers).status_code


def test_the_next_cluster_goes_on_with_objects_addresses_and_credentials(tmp_path: Path) -> None:
    with Cluster(data_dir=tmp_path, sync="off") as first:
        made = first.apply([config_map("a", k="1"), service("web")])
        address = made[1]["spec"]["clusterIP"]
        token = first._core._api.service_account_token("default", "default", 3600)
        revision, credentials, ca = first._core._api.storage.revision, first.token, first.ca
    with Cluster(data_dir=tmp_path, sync="off") as second:
        assert second.get("configmap", "a") == made[0]
        assert second._core._api.storage.revision >= revision
        assert (second.token, second.ca) == (credentials, ca)
        assert status(second, token, "/apis") == 200
        assert second.get("service", "web")["spec"]["clusterIP"] == address
        others = second.apply([service(f"other{i}") for i in range(5)])
        assert address not in {other["spec"]["clusterIP"] for other in others}
        watched = second._core._api.storage.changes_now(int(made[0]["metadata"]["resourceVersion"]) - 1)
        assert next(iter(watched))[1].key.endswith("/configmaps/default/a")


def test_custom_resources_are_served_again(tmp_path: Path) -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    names = {"kind": "Thing", "plural": "things", "singular": "thing"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"size": 1}}
    with Cluster(data_dir=tmp_path, sync="off", controllers=(), crds=crd) as first:
        [made] = first.apply(thing)
    for crds in ((), crd):
        with Cluster(data_dir=tmp_path, sync="off", controllers=(), crds=crds) as again:
            assert again.get("things.example.com", "t") == made


def test_simulated_nodes_go_on(tmp_path: Path) -> None:
    container = {"name": "c", "image": "busybox", "command": ["sleep", "1000"]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container]}}
    with Cluster(data_dir=tmp_path, sync="off", nodes=1) as first:
        first.apply(pod)
        first.wait("pod/p", "condition=Ready")
        uid = first.get("pod", "p")["metadata"]["uid"]
    with Cluster(data_dir=tmp_path, sync="off", nodes=1) as second:
        second.wait("pod/p", "condition=Ready")
        assert second.get("pod", "p")["metadata"]["uid"] == uid
        second.delete("pod", "p")


def test_the_version_of_the_first_cluster_stays_unless_another_is_asked_for(tmp_path: Path) -> None:
    for options, version in (
        ({"kubernetes_version": "1.35"}, "v1.35"),
        ({}, "v1.35"),
        ({"kubernetes_version": "1.36"}, "v1.36"),
    ):
        with Cluster(data_dir=tmp_path, sync="off", controllers=(), **options) as cluster:
            assert cluster._core._api.table.scheme.version == version


def test_time_never_goes_back(tmp_path: Path) -> None:
    with Cluster(data_dir=tmp_path, sync="off", controllers=()) as first:
        first.clock.advance(10 * 24 * 3600)
        then = first.clock.now()
    with Cluster(data_dir=tmp_path, sync="off", controllers=()) as second:
        assert second.clock.now() >= then


def test_a_fork_is_in_memory(tmp_path: Path) -> None:
    with Cluster(data_dir=tmp_path, sync="off", controllers=()) as cluster, cluster.fork() as fork:
        fork.apply(config_map("in-the-fork"))
    with Cluster(data_dir=tmp_path, sync="off", controllers=()) as again:
        assert [item["metadata"]["name"] for item in again.list("configmaps", namespace="default")] == []


def test_a_state_is_loaded_into_an_empty_directory_only(tmp_path: Path) -> None:
    saved, folder = tmp_path / "saved.json", tmp_path / "data"
    with Cluster(controllers=()) as cluster:
        [made] = cluster.apply(config_map("a"))
        cluster.save(saved)
    with Cluster.load(saved, data_dir=folder, sync="off", controllers=()) as loaded:
        assert loaded.get("configmap", "a") == made
    with Cluster(data_dir=folder, sync="off", controllers=()) as again:
        assert again.get("configmap", "a") == made
    with pytest.raises(ValueError, match="has a state already: load another one into an empty directory"):
        Cluster.load(saved, data_dir=folder, controllers=()).start()


@pytest.mark.parametrize("how", ["restore", "reset"])
def test_a_state_that_was_restored_is_kept(how: str, tmp_path: Path) -> None:
    with Cluster(data_dir=tmp_path, sync="off", controllers=()) as cluster:
        snapshot, mark = cluster.snapshot(), cluster.mark()
        cluster.apply(config_map("a"))
        if how == "restore":
            cluster.restore(snapshot)
        else:
            cluster.reset(mark)
        cluster.apply(config_map("b"))
    with Cluster(data_dir=tmp_path, sync="off", controllers=()) as again:
        assert [item["metadata"]["name"] for item in again.list("configmaps", namespace="default")] == ["b"]


def test_a_server_that_is_killed_has_kept_what_it_answered(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    command = [sys.executable, "-m", "fakeapiserver", "serve", "--controllers=", f"--data-dir={tmp_path / 'data'}"]
    answered: list[str] = []
    for start in range(2):
        server = subprocess.Popen([*command, f"--write-kubeconfig={kubeconfig}"], stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        assert "is ready" in server.stdout.readline()
        with client_of(kubeconfig) as client:
            found = client.get("/api/v1/namespaces/default/configmaps").json()["items"]
            assert [item["metadata"]["name"] for item in found if "x" in item["metadata"]["name"]] == answered
            for i in range(10):
                name = f"x{start}{i}"
                sent = client.post("/api/v1/namespaces/default/configmaps", json=config_map(name))
                assert sent.status_code == 201, sent.text
                answered.append(name)
        os.kill(server.pid, signal.SIGKILL)
        server.wait()
        server.stdout.close()
        kubeconfig.unlink()


def client_of(kubeconfig: Path) -> httpx.Client:
    from base64 import b64decode

    config = yaml.safe_load(kubeconfig.read_text())
    [cluster], [user] = config["clusters"], config["users"]
    trusted = ssl.create_default_context(cadata=b64decode(cluster["cluster"]["certificate-authority-data"]).decode())
    pem = kubeconfig.with_suffix(".pem")
    pem.write_bytes(b64decode(user["user"]["client-certificate-data"]) + b64decode(user["user"]["client-key-data"]))
    trusted.load_cert_chain(pem)
    return httpx.Client(base_url=cluster["cluster"]["server"], verify=trusted)


# -------------------------------------------------------------------- commands


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Cluster(data_dir=tmp_path / "data", sync="off", controllers=()) as cluster:
        cluster.apply([config_map("a", k="1"), config_map("b")])
        cluster.apply(config_map("a", k="2"))
    return tmp_path / "data"


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    status = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return status, out, err


def test_check_and_compact(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "check", folder)
    assert (status, out.startswith(f"nothing is wrong with {folder}: ")) == (0, True)
    status, out, _ = run(capsys, "compact", folder)
    assert (status, "its history begins at revision" in out) == (0, True)
    with Cluster(data_dir=folder, sync="off", controllers=()) as cluster:
        assert cluster.get("configmap", "a")["data"] == {"k": "2"}


def test_export_as_manifests(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "export", folder)
    assert status == 0
    assert [obj["metadata"]["name"] for obj in yaml.safe_load_all(out)] == ["a", "b"]
    status, out, _ = run(capsys, "export", folder, tmp_path / "manifests")
    assert (status, out) == (
        0,
        f"2 manifests are in {tmp_path / 'manifests'}: kubectl apply -R -f {tmp_path / 'manifests'}\n",
    )


@pytest.mark.parametrize("is_damaged", [False, True])
def test_export_as_a_saved_state(
    is_damaged: bool, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "saved.json.gz"
    if is_damaged:
        data = (folder / NAME).read_bytes()
        assert data.count(b'{"k":"1"}') == 1
        (folder / NAME).write_bytes(data.replace(b'{"k":"1"}', b'{"k":"7"}'))
        with pytest.raises(ValueError, match="is damaged: revision") as refused:
            Cluster(data_dir=folder, controllers=()).start()
        assert f"`fakeapiserver state export {folder} saved.json`" in str(refused.value)
        status, _, err = run(capsys, "check", folder)
        assert (status, "isn't as it was written" in err) == (1, True)
    status, out, err = run(capsys, "export", folder, saved)
    assert (status, out) == (0, f"{saved} is saved: fakeapiserver serve --load={saved}\n")
    assert bool(err) == is_damaged
    with Cluster.load(saved, controllers=()) as cluster:
        assert cluster.get("configmap", "a")["data"] == {"k": "2"}


def test_a_directory_in_use_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Cluster(data_dir=tmp_path, sync="off", controllers=()):
        for action in ("check", "compact", "export"):
            status, _, err = run(capsys, action, tmp_path)
            assert (status, "is in use: stop the other server first" in err) == (1, True)


def test_a_folder_without_a_state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capsys, "check", tmp_path)
    assert (status, err) == (1, f"fakeapiserver: {tmp_path} is no data directory: it has no file {NAME}\n")
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(("service_range", "warns"), [("10.0.0.0/24", False), ("10.1.0.0/24", True)])
def test_the_range_of_service_addresses_is_kept(
    service_range: str, warns: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Cluster(data_dir=tmp_path, sync="off", controllers=()):
        pass
    given = frozenset(("service-cluster-ip-range",))
    config = Config(data_dir=tmp_path, sync="off", controllers=(), service_cluster_ip_range=service_range, given=given)
    with Cluster.from_config(config) as cluster:
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}}
        assert cluster.apply(service)[0]["spec"]["clusterIP"].startswith("10.0.0.")
    warning = "The default ServiceCIDR [10.0.0.0/24] does not match the controller flag configurations [10.1.0.0/24]"
    assert (warning in caplog.text) is warns
