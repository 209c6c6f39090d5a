"""`fakeapiserver clone`: a live cluster is read, and never written to."""

import asyncio
import gzip
import json
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fakeapiserver import Cluster
from fakeapiserver.cli.clone import main
from fakeapiserver.client import kubeconfig, pager
from fakeapiserver.client.rest import RESTClient
from fakeapiserver.client.round_tripper import HTTPRoundTripper
from fakeapiserver.state.cloning import ReadOnlyRoundTripper
from tests.state.test_loading_from_elsewhere import DEFINITION, WIDGET, namespace

Object = dict[str, Any]
PASSWORD = "aHVudGVyMg=="
SECRET: Object = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {
        "name": "login",
        "namespace": "shop",
        "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": json.dumps({"data": {"password": PASSWORD}})
        },
    },
    "data": {"password": PASSWORD},
}
UNUSED: Object = {
    **DEFINITION,
    "metadata": {"name": "gadgets.example.com"},
    "spec": {**DEFINITION["spec"], "names": {"plural": "gadgets", "kind": "Gadget"}},
}


def config_map(name: str, namespace: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}


@pytest.fixture(scope="module")
def prod() -> Iterator[Cluster]:
    with Cluster(controllers=(), kept_requests=2000) as cluster:
        cluster.apply([namespace("shop"), namespace("billing"), DEFINITION, UNUSED, WIDGET, SECRET])
        cluster.apply([config_map("settings", "shop"), config_map("settings", "billing")])
        cluster.apply(
            {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 5}
        )
        yield cluster


@pytest.fixture
def clone(prod: Cluster, tmp_path: Path) -> Callable[..., list[Object]]:
    """Runs the command, and returns the objects in the file."""

    def run(*words: str, path: str = "clone.json", kubeconfig: str = "") -> list[Object]:
        file = tmp_path / path
        connection = [f"--kubeconfig={kubeconfig or prod.kubeconfig}", "--context=fakeapiserver"]
        assert main([str(file), *connection, *words]) == 0
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        data = file.read_bytes()
        items: list[Object] = json.loads(gzip.decompress(data) if path.endswith(".gz") else data)["items"]
        return items

    return run


def named(objects: list[Object]) -> set[str]:
    return {f"{obj['kind']} {obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}" for obj in objects}


def test_a_namespace_is_read_with_its_definitions(prod: Cluster, clone: Callable[..., list[Object]]) -> None:
    objects = clone("--namespace=shop")
    assert named(objects) == {
        "Namespace /shop",
        "CustomResourceDefinition /widgets.example.com",
        "ConfigMap shop/settings",
        "Widget shop/w",
        "Secret shop/login",
    }
    (widget,) = [obj for obj in objects if obj["kind"] == "Widget"]
    assert widget == prod.get("widgets/w", namespace="shop")


@pytest.mark.parametrize(
    ("words", "more"),
    [
        (["--namespace=shop,billing"], {"ConfigMap billing/settings"}),
        (
            ["--namespace=shop", "--cluster-scoped"],
            {"PriorityClass /high", "CustomResourceDefinition /gadgets.example.com"},
        ),
        (["--all-namespaces"], {"PriorityClass /high", "ConfigMap billing/settings", "Namespace /default"}),
    ],
)
def test_more_is_read_when_it_is_asked_for(
    clone: Callable[..., list[Object]], words: list[str], more: set[str]
) -> None:
    assert more | {"ConfigMap shop/settings"} <= named(clone(*words))


def test_values_of_secrets_stay_where_they_are(clone: Callable[..., list[Object]], tmp_path: Path) -> None:
    (secret,) = [obj for obj in clone("--namespace=shop") if obj["kind"] == "Secret"]
    assert secret["data"] == {"password": ""}
    assert PASSWORD not in (tmp_path / "clone.json").read_text()
    (secret,) = [obj for obj in clone("--namespace=shop", "--with-secrets") if obj["kind"] == "Secret"]
    assert secret["data"] == {"password": PASSWORD}


def test_the_file_is_loaded_with_the_same_uids(
    prod: Cluster, clone: Callable[..., list[Object]], tmp_path: Path
) -> None:
    objects = clone("--all-namespaces", path="all.json.gz")
    with Cluster.load(tmp_path / "all.json.gz", controllers=()) as copy:
        assert copy.load_report is not None
        assert not copy.load_report.untaken
        assert sum(copy.load_report.taken.values()) == len(objects)
        for name in ("widgets/w", "cm/settings"):
            assert copy.get(name, namespace="shop") == prod.get(name, namespace="shop")
        copy.delete("cm/settings", namespace="shop")
    assert prod.get("cm/settings", namespace="shop")


def test_only_reads_are_sent(prod: Cluster, clone: Callable[..., list[Object]]) -> None:
    mark = prod.requests.mark()
    clone("--all-namespaces", "--with-secrets")
    sent = prod.requests.since(mark).by(user_agent="fakeapiserver-clone*")
    assert len(sent) > 20
    assert {entry.verb for entry in sent} <= {"get", "list"}


def test_the_client_of_a_clone_can_not_write(prod: Cluster) -> None:
    config = kubeconfig.load(prod.kubeconfig)

    async def send(method: str) -> None:
        async with RESTClient(config, ReadOnlyRoundTripper(HTTPRoundTripper(config))) as rest:
            await rest.request(
                method, "/api/v1/namespaces/shop/configmaps/settings", body={} if method != "GET" else None
            )

    asyncio.run(send("GET"))
    for method in ("POST", "PUT", "PATCH", "DELETE", "HEAD"):
        with pytest.raises(PermissionError, match="a cluster that is cloned is only read"):
            asyncio.run(send(method))
    assert prod.get("cm/settings", namespace="shop")


def test_what_the_user_may_not_list_is_named(
    prod: Cluster, clone: Callable[..., list[Object]], capsys: pytest.CaptureFixture[str]
) -> None:
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "reader"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps", "namespaces"], "verbs": ["get", "list"]}],
    }
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "jane"},
        "subjects": [{"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"kind": "ClusterRole", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"},
    }
    prod.apply([role, binding])
    objects = clone("--namespace=shop", kubeconfig=prod.user("jane"))
    assert named(objects) == {"Namespace /shop", "ConfigMap shop/settings"}
    told = capsys.readouterr().err
    assert 'not read: secrets in shop: secrets is forbidden: User "jane" cannot list resource "secrets"' in told


def test_long_lists_are_read_in_pages(
    prod: Cluster, clone: Callable[..., list[Object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pager, "PAGE_SIZE", 2)
    monkeypatch.setattr(pager.whole, "__defaults__", (2,))
    prod.apply([config_map(f"map-{number}", "shop") for number in range(5)])
    mark = prod.requests.mark()
    assert sum(obj["kind"] == "ConfigMap" for obj in clone("--namespace=shop")) == 6
    assert len(prod.requests.since(mark)["list configmaps"]) == 3


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ([], 2, "clone needs the name of a file to write"),
        (["a.json", "--namespace=shop"], 2, "--context is missing"),
        (["a.json", "--context=fakeapiserver"], 2, "say what to read: --namespace=NAME,… or --all-namespaces"),
        (["a.json", "--context=fakeapiserver", "--namespace=a", "--all-namespaces"], 2, "say what to read"),
        (["missing/a.json", "--context=fakeapiserver", "--namespace=a"], 2, "missing/a.json can't be written"),
        (["a.json", "--context=other", "--namespace=a"], 2, 'context "other" does not exist'),
        (["a.json", "--context=fakeapiserver", "--namespace=none"], 1, "there is no namespace none"),
    ],
)
def test_mistakes(
    prod: Cluster,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    words: list[str],
    status: int,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*words, f"--kubeconfig={prod.kubeconfig}"]) == status
    assert message in capsys.readouterr().err
    assert not (tmp_path / "a.json").exists()


def test_a_server_that_is_gone_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config"
    with Cluster(controllers=()) as cluster:
        path.write_bytes(Path(cluster.kubeconfig).read_bytes())
    words = [str(tmp_path / "a.json"), f"--kubeconfig={path}", "--context=fakeapiserver", "--namespace=a"]
    assert main(words) == 1
    told = capsys.readouterr().err
    assert told.startswith("fakeapiserver: the cluster of context fakeapiserver can't be cloned: ")
    assert told.count("\n") == 1
