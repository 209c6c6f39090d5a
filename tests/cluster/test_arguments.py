"""The arguments of a Cluster: what is accepted because its meaning is plain, and what is refused with one sentence."""

from pathlib import Path
from typing import Any

import pytest

from fakeapiserver import AsyncCluster, Cluster
from fakeapiserver.cluster.options import config_of

DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
}


@pytest.mark.parametrize(
    ("option", "value", "read"),
    [
        ("kubernetes_version", 1.33, "v1.33"),
        ("kubernetes_version", "1.33", "v1.33"),
        ("kubernetes_version", "v1.33", "v1.33"),
        ("kubernetes_version", "v1.34.2", "v1.34"),
        ("nodes", "3", 3),
        ("controllers", "none", ("none",)),
        ("controllers", "*,-ttl", ("*", "-ttl")),
        ("controllers", ["deployment", "replicaset-controller"], ("deployment", "replicaset-controller")),
        ("controllers", (), ()),
        ("step_controllers", "job-controller", ("job-controller",)),
        ("authorization_mode", "AlwaysAllow", ("AlwaysAllow",)),
        ("authorization_mode", "Node,RBAC", ("Node", "RBAC")),
        ("metrics", "resource", ("resource",)),
        ("metrics", ["*"], ("*",)),
        ("feature_gates", {"GenericWorkload": "true"}, {"GenericWorkload": True}),
        ("runtime_config", {"api/all": True}, {"api/all": "true"}),
        ("runtime_config", {"batch/v1": "False"}, {"batch/v1": "false"}),
        ("crds", DEFINITION, [DEFINITION]),
        ("crds", [], ()),
        ("webhook_port", "9443", 9443),
    ],
    ids=str,
)
def test_is_accepted(option: Any, value: Any, read: Any) -> None:
    options: Any = {option: value}
    assert getattr(config_of(options), option) == read


def test_a_port_may_be_digits() -> None:
    assert config_of({"port": "8080"}).secure_port == 8080


REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"node": 3}, TypeError, "Cluster() has no option 'node' (did you mean 'nodes'?): there are port, authorization_mode, "),
    ({"kubernetesVersion": "1.33"}, TypeError, "no option 'kubernetesVersion' (did you mean 'kubernetes_version'?)"),
    ({"etcd_servers": ()}, ValueError, "etcd_servers must have at least one endpoint"),
    ({"etcd_servers": "ftp://etcd"}, ValueError, "etcd_servers: 'ftp://etcd' has the scheme 'ftp': an endpoint is written"),
    ({"etcd_servers": 2379}, TypeError, "etcd_servers must be a name or a list of names, not 2379"),
    ({"etcd_servers": "http://e", "data_dir": "d"}, ValueError, "etcd_servers says where the state is: leave data_dir out"),
    ({"etcd_servers": "http://e", "sync": "off"}, ValueError, "etcd_servers says where the state is: leave sync out"),
    ({"etcd_prefix": "/p"}, ValueError, "etcd_prefix is for an etcd: name its endpoints by etcd_servers"),
    ({"etcd_prefix": 1}, TypeError, "etcd_prefix must be a text, not 1"),
    ({"etcd_cafile": "no-such"}, FileNotFoundError, "etcd_cafile: there is no file 'no-such'"),
    ({"etcd_keyfile": 5}, TypeError, "etcd_keyfile must be the path of a file, not 5"),
    ({"encryption_provider_config": "no"}, FileNotFoundError, "encryption_provider_config: there is no file 'no'"),
    ({"storage_media_type": "yaml"}, ValueError, "storage_media_type has no 'yaml': the choices are application/vnd."),
    ({"read_only": True}, ValueError, "read_only is for a state that exists already: name it by etcd_servers or data_dir"),
    ({"read_only": "yes"}, TypeError, "read_only must be True or False, not 'yes'"),
    ({"zebra": 1}, TypeError, "Cluster() has no option 'zebra': there are port, "),
    ({"kubernetes_version": 1.4}, ValueError, "kubernetes_version has no 1.4: the choices are v1.33, v1.34, v1.35, v1.36, v1.37"),
    ({"kubernetes_version": "1.32"}, ValueError, "kubernetes_version has no '1.32': the choices are v1.33"),
    ({"kubernetes_version": "latest"}, ValueError, "kubernetes_version has no 'latest': the choices are"),
    ({"kubernetes_version": ""}, ValueError, "kubernetes_version has no '': the choices are"),
    ({"kubernetes_version": 1}, TypeError, "kubernetes_version must be a version such as '1.37', not 1"),
    ({"kubernetes_version": (1, 33)}, TypeError, "kubernetes_version must be a version such as '1.37', not (1, 33)"),
    ({"kubernetes_version": None}, TypeError, "kubernetes_version must be a version such as '1.37', not None"),
    ({"nodes": -1}, ValueError, "nodes must be 0 or more, not -1"),
    ({"nodes": True}, TypeError, "nodes must be a whole number, not True"),
    ({"nodes": 2.5}, TypeError, "nodes must be a whole number, not 2.5"),
    ({"nodes": "three"}, TypeError, "nodes must be a whole number, not 'three'"),
    ({"nodes": ["node-1"]}, TypeError, "nodes must be a whole number, not ['node-1']"),
    ({"nodes": None}, TypeError, "nodes must be a whole number, not None"),
    ({"port": 70000}, ValueError, "port must be a number from 0 to 65535, not 70000"),
    ({"port": -1}, ValueError, "port must be a number from 0 to 65535, not -1"),
    ({"port": "http"}, TypeError, "port must be a whole number, not 'http'"),
    ({"webhook_port": 99999}, ValueError, "webhook_port must be a number from 0 to 65535, not 99999"),
    ({"authorization_mode": "Rbac"}, ValueError, "authorization_mode has no 'Rbac' (did you mean 'RBAC'?): the choices are"),
    ({"authorization_mode": []}, ValueError, "authorization_mode must have at least one mode, not []"),
    ({"authorization_mode": ["RBAC", "RBAC"]}, ValueError, "authorization_mode has 'RBAC' more than once"),
    ({"authorization_mode": ["Webhook"]}, ValueError, "authorization_mode has no 'Webhook': the choices are AlwaysAllow, "),
    ({"authorization_mode": 3}, TypeError, "authorization_mode must be a name or a list of names, not 3"),
    ({"controllers": "deploymnt"}, ValueError, "controllers has no controller 'deploymnt' (did you mean 'deployment-controller'?)"),
    ({"controllers": ["-wizard"]}, ValueError, "controllers has no controller '-wizard': the choices are \"*\", \"none\""),
    ({"controllers": None}, TypeError, "controllers must be a name or a list of names, not None"),
    ({"controllers": [1]}, TypeError, "controllers must be a list of names, but has 1"),
    ({"controllers": {"deployment": True}}, TypeError, "controllers must be a name or a list of names, not {'deployment': True}"),
    ({"step_controllers": ["*"]}, ValueError, "step_controllers has no controller '*'"),
    ({"metrics": "resources"}, ValueError, "metrics has no 'resources' (did you mean 'resource'?): the choices are resource, "),
    ({"metrics": True}, TypeError, "metrics must be a name or a list of names, not True"),
    ({"feature_gates": {"GenericWorklod": True}}, ValueError, "feature_gates has no 'GenericWorklod' in Kubernetes v1.37 (did you"),
    ({"feature_gates": {"GenericWorkload": "on"}}, TypeError, "feature_gates: GenericWorkload must be True or False, not 'on'"),
    ({"feature_gates": {"GenericWorkload": 1}}, TypeError, "feature_gates: GenericWorkload must be True or False, not 1"),
    ({"feature_gates": "GenericWorkload"}, TypeError, "feature_gates must be a dict such as"),
    ({"feature_gates": ["GenericWorkload"]}, TypeError, "feature_gates must be a dict such as"),
    ({"runtime_config": {"bach/v1": "true"}}, ValueError, "runtime_config: unknown api groups bach/v1 (did you mean 'batch/v1'?)"),
    ({"runtime_config": {"batch/v7": "true"}}, ValueError, "runtime_config: group version batch/v7 that has not been registered"),
    ({"runtime_config": {"batch/v1": "maybe"}}, TypeError, 'runtime_config: batch/v1 must be "true" or "false", not \'maybe\''),
    ({"runtime_config": "api/all=true"}, TypeError, "runtime_config must be a dict such as"),
    ({"local_storage": "yes"}, TypeError, "local_storage must be True or False, not 'yes'"),
    ({"load_balancers": 1}, TypeError, "load_balancers must be True or False, not 1"),
    ({"crds": "no/such/folder"}, OSError, "crds: there is no file or folder no/such/folder"),
    ({"crds": {"kind": "Deployment"}}, ValueError, "crds: there is no CustomResourceDefinition in the object {'kind': 'Deployment'}"),
    ({"crds": "kind: ConfigMap\n"}, ValueError, "crds: there is no CustomResourceDefinition in 'kind: ConfigMap\\n'"),
    ({"crds": 3}, TypeError, "crds must be a file, a folder, an object, or a list of these, not 3"),
    ({"crds": [3]}, TypeError, "crds must be files, folders or objects, but has 3"),
    ({"webhooks": DEFINITION}, ValueError, "webhooks: there is no MutatingWebhookConfiguration or ValidatingWebhookConfiguration in"),
    ({"webhooks": None}, TypeError, "webhooks must be a file, a folder, an object, or a list of these, not None"),
    ({"stages": DEFINITION}, ValueError, "stages: there is no Stage in the object"),
    ({"objects": 7}, TypeError, "objects must be a file, a folder, an object, or a list of these, not 7"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "error", "problem"), REFUSED, ids=lambda value: str(value)[:40])
@pytest.mark.parametrize("face", [Cluster, AsyncCluster])
def test_is_refused_with_one_sentence(face: Any, options: Any, error: type[Exception], problem: str) -> None:
    """At construction, and without the errors that led to it."""
    with pytest.raises(error) as raised:
        face(**options)
    message = str(raised.value)
    assert problem in message
    assert "\n" not in message
    assert all(option in message for option in options)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__ or raised.value.__context__ is None


@pytest.mark.parametrize("folder", ["empty", "other"])
def test_a_folder_without_any_definition_is_refused(folder: str, tmp_path: Path) -> None:
    if folder == "other":
        (tmp_path / "config.yaml").write_text("kind: ConfigMap\napiVersion: v1\n")
    with pytest.raises(ValueError, match="crds: there is no CustomResourceDefinition in") as raised:
        Cluster(crds=tmp_path)
    assert str(tmp_path) in str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("", ()), "name must be a user's name, not ''"),
        (("jane", [1]), "groups must be a list of names, but has 1"),
        (("jane", 3), "groups must be a name or a list of names, not 3"),
    ],
)
def test_users_that_cannot_be(arguments: Any, problem: str) -> None:
    with Cluster(controllers=()) as cluster, pytest.raises((TypeError, ValueError)) as raised:
        cluster.user(*arguments)
    assert str(raised.value) == problem


def test_service_accounts_that_cannot_be() -> None:
    with (
        Cluster(controllers=()) as cluster,
        pytest.raises(ValueError, match="name must be namespace/name of a service"),
    ):
        cluster.service_account("robot")
