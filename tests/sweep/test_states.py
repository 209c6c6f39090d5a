"""States of two runs are compared without what follows from chance."""

from typing import Any

from fakeapiserver import Cluster
from fakeapiserver.sweep import states

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


def state(*objects: Any, nodes: int = 0) -> states.State:
    with Cluster(nodes=nodes) as cluster:
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


def test_differences_are_named() -> None:
    other = {**WEB, "spec": {**WEB["spec"], "paused": True}}
    found = states.differences(state(WEB, CLAIM), state(other, SERVICE), frozenset())
    assert "persistentvolumeclaims default/data: is missing" in texts(found)
    assert "services default/web: is one too many" in texts(found)
    assert "deployments default/web: spec.paused is true in place of (absent)" in texts(found)


def test_what_differs_by_chance_and_what_is_ignored_is_left_out() -> None:
    first, second = (
        {"configmaps a/b": {"data": {"at": time, "mode": mode}}} for time, mode in (("1", "x"), ("2", "x"))
    )
    noise = states.noise_of(first, second)
    assert noise == {"configmaps a/b data.at"}
    third = {"configmaps a/b": {"data": {"at": "3", "mode": "y"}}}
    assert texts(states.differences(first, third, noise)) == ['configmaps a/b: data.mode is "y" in place of "x"']
    assert states.differences(first, third, noise, ["configmaps.data.mode"]) == []
    assert states.differences(first, third, noise, ["configmaps"]) == []


def test_values_of_secrets_are_not_shown() -> None:
    first, second = ({"secrets a/b": {"data": {"password": value}}} for value in ("b25l", "dHdv"))
    (found,) = states.differences(first, second, frozenset())
    assert found.path == "data.password"
    assert "b25l" not in found.text
    assert "dHdv" not in found.text
