"""`Cluster.load` of files that other programs have written: lists, manifests, bundles, archives."""

import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from fakeapiserver import Cluster
from fakeapiserver.apimachinery.serializer.protobuf import envelope
from fakeapiserver.apis import protobuf
from tests.state.etcd.keyspace_builder import Etcd

Object = dict[str, Any]
DEFINITION: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
WIDGET: Object = {
    "apiVersion": "example.com/v1",
    "kind": "Widget",
    "metadata": {"name": "w", "namespace": "shop"},
    "size": 3,
}
DEPLOYMENT: Object = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web:1"}]},
        },
    },
}
KINDS = ("namespaces", "customresourcedefinitions", "deployments", "replicasets", "pods", "services", "widgets")


def namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


@pytest.fixture(scope="module")
def dumped() -> Iterator[dict[str, list[Object]]]:
    """The objects of a cluster with a deployment that is available, by resource."""
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    }
    with Cluster(nodes=1) as cluster:
        cluster.apply([namespace("shop"), DEFINITION, DEPLOYMENT, WIDGET, service])
        cluster.wait("deploy/web", "Available", namespace="shop")
        cluster.settle()
        dumped = {kind: cluster.list(kind) for kind in KINDS[:2]}
        yield dumped | {kind: cluster.list(kind, namespace="shop") for kind in KINDS[2:]}


def as_list(objects: list[Object]) -> Object:
    """Returns the list that `kubectl get -o yaml` prints."""
    return {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": objects}


def everything(dumped: dict[str, list[Object]]) -> list[Object]:
    return [obj for objects in dumped.values() for obj in objects]


def untyped(objects: list[Object]) -> list[Object]:
    return [{name: value for name, value in obj.items() if name not in ("apiVersion", "kind")} for obj in objects]


def one_yaml(dumped: dict[str, list[Object]], folder: Path) -> Path:
    path = folder / "shop.yaml"
    path.write_text(yaml.safe_dump(as_list(everything(dumped))))
    return path


def one_json(dumped: dict[str, list[Object]], folder: Path) -> Path:
    path = folder / "shop.json"
    path.write_text(json.dumps(as_list(everything(dumped))))
    return path


def many_documents(dumped: dict[str, list[Object]], folder: Path) -> Path:
    path = folder / "shop.yaml"
    path.write_text(yaml.safe_dump_all(everything(dumped)[::-1]))
    return path


def support_bundle(dumped: dict[str, list[Object]], folder: Path) -> Path:
    """Writes a folder as troubleshoot.sh does: arrays without types for built-in resources, one file for each namespace."""
    cluster = folder / "support-bundle" / "cluster-resources"
    for kind, objects in dumped.items():
        if kind in KINDS[:2]:
            place = cluster / f"{'custom-resource-definitions' if kind == KINDS[1] else kind}.json"
        elif kind == "widgets":
            place = cluster / "custom-resources" / "widgets.example.com" / "shop.json"
        else:
            place = cluster / kind / "shop.json"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(objects if kind == "widgets" else untyped(objects)))
    (cluster / "pods" / "logs").mkdir()
    (cluster / "pods" / "logs" / "web.json").write_text('{"level": "info"}')
    return folder


def must_gather(dumped: dict[str, list[Object]], folder: Path) -> Path:
    """Writes a folder as `oc adm inspect` does: lists for each namespace, and some objects a second time in files of their own."""
    namespaced = folder / "namespaces" / "shop"
    for kind, objects in dumped.items():
        group = objects[0]["apiVersion"].rpartition("/")[0] or "core"
        if kind in KINDS[:2]:
            for obj in objects:
                place = folder / "cluster-scoped-resources" / group / kind / f"{obj['metadata']['name']}.yaml"
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(f"---\n{yaml.safe_dump(obj)}")
            continue
        place = namespaced / group / f"{kind}.yaml"
        place.parent.mkdir(parents=True, exist_ok=True)
        listed = {
            "apiVersion": objects[0]["apiVersion"],
            "kind": f"{objects[0]['kind']}List",
            "items": untyped(objects),
        }
        place.write_text(f"---\n{yaml.safe_dump(listed)}")
    pod = dumped["pods"][0]
    (namespaced / "pods").mkdir()
    (namespaced / "pods" / f"{pod['metadata']['name']}.yaml").write_text(yaml.safe_dump(pod))
    return folder


def tar(dumped: dict[str, list[Object]], folder: Path) -> Path:
    path = folder / "bundle.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(support_bundle(dumped, folder / "content"), "bundle")
    return path


def zipped(dumped: dict[str, list[Object]], folder: Path) -> Path:
    path = folder / "gathered.zip"
    content = must_gather(dumped, folder / "content")
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(content.rglob("*.yaml")):
            archive.write(file, f"must-gather/{file.relative_to(content)}")
    return path


@pytest.mark.parametrize(
    "written",
    [one_yaml, one_json, many_documents, support_bundle, must_gather, tar, zipped],
    ids=lambda form: form.__name__,
)
def test_objects_are_as_they_were(
    dumped: dict[str, list[Object]], written: Callable[[dict[str, list[Object]], Path], Path], tmp_path: Path
) -> None:
    path = written(dumped, tmp_path)
    with Cluster.load(path, controllers=()) as cluster:
        assert cluster.load_report is not None
        assert not cluster.load_report.untaken, str(cluster.load_report)
        assert cluster.load_report.taken["pods"] == 1
        for kind, objects in dumped.items():
            for obj in objects:
                meta = obj["metadata"]
                assert cluster.get(kind, meta["name"], namespace=meta.get("namespace")) == obj
        newest = max(int(obj["metadata"]["resourceVersion"]) for obj in everything(dumped))
        (made,) = cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "after"}})
        assert int(made["metadata"]["resourceVersion"]) > newest


def test_the_controllers_go_on_with_loaded_objects(dumped: dict[str, list[Object]], tmp_path: Path) -> None:
    with Cluster.load(one_yaml(dumped, tmp_path), nodes=1) as cluster:
        cluster.apply({**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "replicas": 3}}, force=True)
        cluster.wait("deploy/web", jsonpath="{.status.readyReplicas}=3", namespace="shop")
        address = dumped["services"][0]["spec"]["clusterIP"]
        taken = {"ports": [{"port": 80}], "clusterIP": address}
        with pytest.raises(Exception, match="provided IP is already allocated"):
            cluster.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "second"}, "spec": taken})


def test_manifests_are_created_in_namespaces_that_are_made(tmp_path: Path) -> None:
    path = tmp_path / "app.yaml"
    path.write_text(yaml.safe_dump_all([WIDGET, DEPLOYMENT, DEFINITION]))
    with Cluster.load(path, controllers=()) as cluster:
        report = cluster.load_report
        assert report is not None
        assert report.taken == {
            "customresourcedefinitions.apiextensions.k8s.io": 1,
            "widgets.example.com": 1,
            "deployments.apps": 1,
        }
        assert list(report.namespaces) == ["shop"]
        assert cluster.get("deploy/web", namespace="shop")["spec"]["replicas"] == 1
        assert cluster.get("widgets/w", namespace="shop")["size"] == 3


def config_map(**metadata: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "default", "uid": "u", **metadata},
    }


NOT_TAKEN = [
    ({"apiVersion": "x.io/v1", "kind": "Foo", "metadata": {"name": "a", "uid": "u"}}, "x.io/v1 Foo is not served here"),
    ({**config_map(), "data": ["x"]}, "cannot unmarshal"),
    (config_map(namespace=None), "it has no namespace"),
    ({**namespace("a"), "metadata": {"name": "a", "namespace": "b", "uid": "u"}}, "have no namespace"),
    (config_map(name="../b"), "no object can have such a name"),
    (config_map(name=7), "metadata.name is not a text"),
    (config_map(name=""), "it has no metadata.name"),
    (config_map(resourceVersion="9" * 30), "there is no resourceVersion 999"),
    (config_map(resourceVersion="9223372036854775808"), "there is no resourceVersion 9223372036854775808"),
    ({"apiVersion": "v1/2/3", "kind": "ConfigMap", "metadata": {"name": "a", "uid": "u"}}, "unexpected GroupVersion string"),
    ({"apiVersion": 1, "kind": "ConfigMap", "metadata": {"name": "a"}}, "its apiVersion is not a text"),
    ({"apiVersion": "v1", "kind": "ConfigMap"}, "it has no metadata"),
    ({"metadata": {"name": "a", "uid": "u"}}, "it has no apiVersion and kind"),
    ({"apiVersion": "v1", "kind": "ComponentStatus", "metadata": {"name": "a", "uid": "u"}}, "is computed and never stored"),
    ({**config_map(), "metadata": {"name": "a", "namespace": "default", "labels": {"a b": "c"}}}, "metadata.labels: Invalid value"),
    (
        {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "a"}},
        "its webhooks belong to another cluster",
    ),
    (
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": "v1.x.io", "uid": "u"},
            "spec": {"group": "x.io", "version": "v1", "service": {"namespace": "a", "name": "b"}},
        },
        "its API server belongs to another cluster",
    ),
]  # fmt: skip


def test_what_cant_be_taken_is_listed_with_the_reason_and_the_rest_is_taken(tmp_path: Path) -> None:
    good = config_map(name="good")
    (tmp_path / "all.json").write_text(json.dumps([*(obj for obj, _ in NOT_TAKEN), good]))
    (tmp_path / "broken.yaml").write_text("a: [\n")
    (tmp_path / "values.yaml").write_text("image: web\n")
    with Cluster.load(tmp_path, controllers=()) as cluster:
        report = cluster.load_report
        assert report is not None
        reasons = {untaken.where: untaken.reason for untaken in report.untaken}
        assert report.taken == {"configmaps": 1}
        assert len(reasons) == len(NOT_TAKEN) + 1
        assert reasons["broken.yaml"].startswith("yaml: ")
        for number, (_, reason) in enumerate(NOT_TAKEN, 1):
            assert reason in reasons[f"all.json#{number}"]
        assert cluster.get("cm/good")["metadata"]["uid"] == "u"


def test_a_definition_is_taken_without_its_conversion_webhook(tmp_path: Path) -> None:
    conversion = {
        "strategy": "Webhook",
        "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://prod.example.com"}},
    }
    definition = {**DEFINITION, "spec": {**DEFINITION["spec"], "conversion": conversion}}
    (tmp_path / "crd.yaml").write_text(yaml.safe_dump(definition))
    with Cluster.load(tmp_path, controllers=()) as cluster:
        assert cluster.get("crd/widgets.example.com")["spec"]["conversion"] == {"strategy": "None"}
        assert cluster.load_report is not None
        assert "widgets.example.com has no conversion" in cluster.load_report.changed[0]


def test_of_several_states_of_an_object_the_newest_counts(tmp_path: Path) -> None:
    states = [{**config_map(resourceVersion=version), "data": {"at": version}} for version in ("900", "1000", "7")]
    (tmp_path / "maps.yaml").write_text(yaml.safe_dump_all(states))
    with Cluster.load(tmp_path, controllers=()) as cluster:
        assert cluster.get("cm/a")["data"] == {"at": "1000"}
        assert cluster.load_report is not None
        assert cluster.load_report.taken == {"configmaps": 1}


def archive_of(name: str, size: int) -> bytes:
    """A tar archive with a file that claims to be that large."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        member = tarfile.TarInfo(name)
        member.size = size
        stream.write(member.tobuf())
        archive.offset += 512
    return stream.getvalue()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "holds no Kubernetes objects"),
        (b"image: web\n", "holds no Kubernetes objects"),
        (b"a: [\n", "can't be loaded: yaml: line 1"),
        (b'{"a": ', "can't be loaded: "),
        (b"\x00\x01\xff\xfe", "is no saved state, no YAML or JSON"),
        (b"\x1f\x8b\x08\x00broken", "is truncated or damaged"),
        (b"PK\x03\x04broken", "is truncated or damaged"),
        (archive_of("a.yaml", 100)[:600], "is truncated or damaged"),
        (archive_of("a.yaml", 3 * 1024**3), "holds more than 2 GiB of documents"),
        (b"apiVersion: v1\nkind: List\nitems: []\n", "holds no Kubernetes objects"),
        (b"apiVersion: v1\nkind: ConfigMap\n", "can't be loaded: it has no metadata"),
    ],
)
def test_a_file_without_objects_is_refused_with_one_sentence(data: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=message) as caught:
        Cluster.load(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_links_out_of_a_folder_are_not_followed(tmp_path: Path) -> None:
    secret, folder = tmp_path / "secret.yaml", tmp_path / "folder"
    folder.mkdir()
    secret.write_text(yaml.safe_dump(config_map()))
    (folder / "link.yaml").symlink_to(secret)
    with pytest.raises(ValueError, match="holds no Kubernetes objects"):
        Cluster.load(folder)


@pytest.mark.parametrize("form", ["a snapshot", "a member's file", "compressed"])
def test_a_file_of_etcd(form: str, tmp_path: Path) -> None:
    meta = {"namespace": "shop", "uid": "5f4d1c8e-0000-4000-8000-000000000001"}
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", **meta}, "data": {"a": "b"}}
    encoded = protobuf.encoder().message("k8s.io.api.core.v1.ConfigMap")(settings)
    etcd = Etcd().put(b"/registry/configmaps/shop/settings", envelope("v1", "ConfigMap", [encoded]))
    etcd.put(b"/registry/ranges/serviceips", b"k8s\0").put(b"/registry/secrets/shop/key", b"k8s:enc:aescbc:v1:key1:\0")
    data = etcd.file(checksum=form != "a member's file")
    path = tmp_path / "etcd.db"
    path.write_bytes(gzip.compress(data) if form == "compressed" else data)
    with Cluster.load(path, controllers=()) as cluster:
        loaded = cluster.get("cm/settings", namespace="shop")
        assert loaded["metadata"].items() >= {**meta, "resourceVersion": "2"}.items()
        assert loaded["data"] == {"a": "b"}
        [new] = cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "later"}})
        assert int(new["metadata"]["resourceVersion"]) > etcd.revision
        report = str(cluster.load_report)
    assert report.startswith(f"1 object of {path} loaded: 1 configmaps")
    assert "/registry/ranges/serviceips" in report
    assert "is encrypted by the provider aescbc with the key key1" in report
