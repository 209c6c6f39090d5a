"""Objects in a project's files."""

from pathlib import Path

import pytest

from fakeapiserver.server.projects import manifests

ROLE = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: manager}\n"


def test_kustomizations_are_no_manifests(tmp_path: Path) -> None:
    """Kubebuilder's config/rbac has both."""
    (tmp_path / "kustomization.yaml").write_text("resources: [role.yaml]\n")
    (tmp_path / "role.yaml").write_text(ROLE)
    assert [manifests.title(obj) for obj in manifests.read_all(tmp_path)] == ["ClusterRole manager"]


def test_a_file_without_an_object_is_named(tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text("replicas: 3\n")
    with pytest.raises(ValueError, match=r"values\.yaml: an object must have apiVersion and kind"):
        list(manifests.read_all(tmp_path))
