"""What an autoscaler may name as its target."""

from typing import Any

import pytest

from fakeapiserver.registry.autoscaling.horizontalpodautoscaler import HorizontalPodAutoscalerStrategy


@pytest.mark.parametrize(
    ("version", "kind", "problem"),
    [
        ("apps/v1", "Deployment", ""),
        ("v1", "ReplicationController", ""),
        ("v1", "Pod", "apiVersion must specify API group"),
        ("/v1", "Pod", "apiVersion must specify API group"),
        ("a/b/c", "Deployment", "unexpected GroupVersion string: a/b/c"),
    ],
)
def test_versions(version: str, kind: str, problem: str) -> None:
    target = {"apiVersion": version, "kind": kind, "name": "web"}
    spec: dict[str, Any] = {"minReplicas": 1, "maxReplicas": 2, "scaleTargetRef": target}
    errors = HorizontalPodAutoscalerStrategy().validate({"metadata": {"name": "web"}, "spec": spec})
    assert [problem in str(error) for error in errors] == ([True] if problem else [])
