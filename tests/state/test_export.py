"""`cluster.export`: manifests that another cluster takes."""

import stat
from pathlib import Path
from typing import Any

import yaml

from fakeapiserver import Cluster, diff

WEB: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}},
    },
}
OBJECTS: list[dict[str, Any]] = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}},
    WEB,
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"p": "hunter2"}},
    {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}},
    {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}},
    },
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "a:b"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    },
]


def test_exported_manifests_make_the_same_objects(tmp_path: Path) -> None:
    with Cluster(objects=OBJECTS) as cluster:
        cluster.settle()
        paths = {str(path.relative_to(tmp_path)) for path in cluster.export(tmp_path, secrets=True)}
        assert paths == {
            "_cluster/clusterrole-a_b.yaml",
            "_cluster/namespace-shop.yaml",
            "default/job-j.yaml",
            "default/secret-s.yaml",
            "default/service-web.yaml",
            "shop/deployment-web.yaml",
        }
        assert stat.S_IMODE((tmp_path / "default/secret-s.yaml").stat().st_mode) == 0o600
        web = yaml.safe_load((tmp_path / "shop/deployment-web.yaml").read_text())
        assert web["spec"]["replicas"] == 2
        assert "status" not in web
        assert web["metadata"] == {"name": "web", "namespace": "shop"}
        with Cluster(objects=tmp_path) as other:
            other.settle()
            kinds = ("deployments", "services/specs", "secrets", "clusterroles")
            found = diff(cluster, other)
            names = [str(entry) for entry in (*found.added, *found.removed, *found.changed)]
            assert [name for name in names if name.startswith(kinds)] == []


def test_values_of_secrets_are_left_out(tmp_path: Path) -> None:
    with Cluster(controllers=(), objects=OBJECTS[2]) as cluster:
        cluster.export(tmp_path)
    assert yaml.safe_load((tmp_path / "default/secret-s.yaml").read_text())["data"] == {"p": ""}
