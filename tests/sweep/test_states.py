"""States of two runs are compared without what follows from chance."""

import json
from typing import Any

import pytest

from fakeapiserver import Cluster
from fakeapiserver.cluster.options import ClusterOptions
from fakeapiserver.sweep import history, states

CLAIM: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web"},
    "spec": {"ports": [{"port": 80}], "type": "NodePort"},
}
WEB: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web:1"}]},
        },
    },
}


DATABASE: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "metadata": {"name": "db"},
    "spec": {
        "serviceName": "db",
        "selector": {"matchLabels": {"app": "db"}},
        "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "db", "image": "db:1"}]}},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": CLAIM["spec"]}],
    },
}


def state(*objects: Any, nodes: int = 0, seed: int | None = None) -> states.State:
    options = ClusterOptions(nodes=nodes, local_storage=nodes > 0)
    if seed is not None:
        options["seed"] = seed
    with Cluster(**options) as cluster:
        fresh = {stored.key for _, stored, _ in states.objects_of(cluster.snapshot())}
        cluster.apply([*objects])
        cluster.settle()
        return states.state_of(cluster.snapshot(), without=fresh)


def texts(found: list[states.Difference]) -> list[str]:
    return [f"{each.title}: {each.text}" for each in found]


def test_two_runs_of_the_same_are_equal() -> None:
    first, second = (state(WEB, SERVICE, CLAIM, nodes=1) for _ in range(2))
    assert {"deployments default/web", "services default/web", "persistentvolumeclaims default/data"} <= first.keys()
    assert sum(title.startswith("pods default/web-") for title in first) == 2
    assert texts(states.differences(first, second, frozenset())) == []


def test_the_node_of_a_volume_is_chance() -> None:
    first, second = (state(DATABASE, nodes=5, seed=seed) for seed in (1, 2))
    assert any(title.startswith("persistentvolumes ") for title in first)
    assert texts(states.differences(first, second, frozenset())) == []


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("10.0.0.7", "<address>"),
        ("10.0.0.7:2181", "<address>:2181"),
        ("redis://10.0.0.7:6379/0", "redis://<address>:6379/0"),
        ("10.0.0.7,10.0.0.8", "<address>,<address>"),
        ("app:1.2.3.4", "app:1.2.3.4"),
        ("v1.2.3.4-rc.1", "v1.2.3.4-rc.1"),
        ("1.2.3", "1.2.3"),
    ],
)
def test_addresses_are_chance(text: str, plain: str) -> None:
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "site"}, "data": {"text": text}}
    assert state(obj)["configmaps default/site"]["data"] == {"text": plain}


def test_a_pod_of_a_stateful_set_has_a_name_of_its_own() -> None:
    with Cluster(nodes=1, local_storage=True) as cluster:
        cluster.apply([WEB, DATABASE])
        cluster.settle()
        pods = [title for title in states.uids_of(cluster.snapshot()) if title.startswith("pods ")]
        assert pods == ["pods default/db-0"]
        assert "pods default/db-0" in states.state_of(cluster.snapshot())


def test_an_object_that_is_being_deleted_is_lost() -> None:
    with Cluster() as cluster:
        cluster.apply({**CLAIM, "metadata": {"name": "data", "finalizers": ["example.com/wait"]}})
        assert "persistentvolumeclaims default/data" in states.uids_of(cluster.snapshot())
        cluster.delete("persistentvolumeclaims/data")
        assert "persistentvolumeclaims default/data" not in states.uids_of(cluster.snapshot())


def test_differences_are_named() -> None:
    other = {**WEB, "spec": {**WEB["spec"], "paused": True}}
    found = states.differences(state(WEB, CLAIM), state(other, SERVICE), frozenset())
    assert "persistentvolumeclaims default/data: is missing" in texts(found)
    assert "services default/web: exists, but should not" in texts(found)
    assert "deployments default/web: has spec.paused true, which should be unset" in texts(found)


def test_what_differs_by_chance_and_what_is_ignored_is_left_out() -> None:
    first, second = (
        {"configmaps a/b": {"data": {"at": time, "mode": mode}}} for time, mode in (("1", "x"), ("2", "x"))
    )
    noise = states.noise_of(first, second)
    assert noise == {"configmaps a/b data.at"}
    third = {"configmaps a/b": {"data": {"at": "3", "mode": "y"}}}
    assert texts(states.differences(first, third, noise)) == ['configmaps a/b: has data.mode "y" instead of "x"']
    assert states.differences(first, third, noise, ["configmaps.data.mode"]) == []
    assert states.differences(first, third, noise, ["configmaps"]) == []


def test_all_of_a_status_may_be_chance() -> None:
    first, second = (
        {"databases a/b": {"status": {"phase": phase}, "spec": {"size": size}}} for phase, size in (("x", 1), ("y", 2))
    )
    found = states.differences(first, second, {"databases a/b status"})
    assert texts(found) == ["databases a/b: has spec.size 2 instead of 1"]


def test_values_of_secrets_are_not_shown() -> None:
    first, second = ({"secrets a/b": {"data": {"password": value}}} for value in ("b25l", "dHdv"))
    (found,) = states.differences(first, second, frozenset())
    assert found.path == "data.password"
    assert "b25l" not in found.text
    assert "dHdv" not in found.text


@pytest.mark.parametrize(
    ("wanted", "actual", "sentence", "change"),
    [
        ({}, None, "the Secret a/b is missing", "missing"),
        (None, {}, "the Secret a/b exists, but should not", "additional"),
        ({"data": {"key": "one"}}, {}, "the Secret a/b lacks data", "changed"),
        ({"data": {"key": "one"}}, {"data": {"key": "two"}}, "the Secret a/b has data.key", "changed"),
    ],
)
def test_a_difference_is_a_sentence(wanted: Any, actual: Any, sentence: str, change: str) -> None:
    first, second = ({} if each is None else {"secrets a/b": each} for each in (wanted, actual))
    (difference,) = states.differences(first, second, frozenset())
    assert difference.shown.startswith(sentence)
    assert difference.change == change


def test_the_values_of_a_missing_secret_are_hidden() -> None:
    secret = {"metadata": {"annotations": {"last-applied": "dHdv"}}, "data": {"key": "dHdv"}, "type": "Opaque"}
    (difference,) = states.differences({"secrets a/b": secret}, {}, frozenset())
    assert "dHdv" not in str(difference)
    assert json.loads(difference.wanted)["type"] == "Opaque"


def test_custom_resources_are_called_by_their_kind() -> None:
    definition: dict[str, Any] = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "widgets", "kind": "Widget"},
            "scope": "Namespaced",
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
            ],
        },
    }
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    (difference,) = states.differences(state(definition, widget), state(definition), frozenset())
    assert difference.shown == "the Widget default/w is missing"


def test_when_endpoints_were_changed_is_left_out() -> None:
    trigger = {"endpoints.kubernetes.io/last-change-trigger-time": "2026-01-01T00:00:00Z"}
    endpoints: dict[str, Any] = {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "web"}}
    other = {**endpoints, "metadata": {"name": "web", "annotations": trigger}}
    assert texts(states.differences(state(endpoints), state(other), frozenset())) == []


@pytest.mark.parametrize("others", [{}, {"team": "a"}])
def test_the_mark_of_another_writer_may_be_copied(others: dict[str, str]) -> None:
    """Operators copy annotations to children and the templates in them."""
    [template] = DATABASE["spec"]["volumeClaimTemplates"]
    marks = [{**others, states.TOUCHED: "true"}, others]
    sets = [
        {**DATABASE["spec"], "volumeClaimTemplates": [{**template, "metadata": {"name": "data", "annotations": each}}]}
        for each in marks
    ]
    first, second = (state({**DATABASE, "spec": each}) for each in sets)
    assert texts(states.differences(first, second, frozenset())) == []


@pytest.mark.parametrize(
    ("status", "is_log"),
    [
        pytest.param({"conditions": [{"type": "initializing"}, {"type": "error"}], "state": "initializing"}, True, id="the phase"),
        pytest.param({"conditions": [{"type": "Creating"}, {"type": "Ready"}, {"type": "Creating"}]}, True, id="a type twice"),
        pytest.param({"conditions": [{"type": "Ready"}, {"type": "Degraded"}], "phase": "Running"}, False, id="conditions"),
        pytest.param({"conditions": [{"type": "Ready"}, {"type": "Degraded"}], "state": ["Ready"]}, False, id="no phase"),
        pytest.param({"conditions": "none"}, False, id="no conditions"),
        pytest.param("up", False, id="no status"),
    ],
)  # fmt: skip
def test_a_log_of_phases_is_left_out(status: Any, is_log: bool) -> None:
    """The number of errors on the way doesn't matter in the end."""
    obj = {"kind": "Database", "metadata": {"name": "db"}, "status": status}
    [left] = history.left_out({"databases.example.com default/db": obj}).values()
    assert left == (
        {**obj, "status": {key: value for key, value in status.items() if key != "conditions"}} if is_log else obj
    )
