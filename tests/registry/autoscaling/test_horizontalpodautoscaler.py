"""The targets of an autoscaler."""

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


TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
AVERAGE = {"type": "AverageValue", "averageValue": "1"}
POLICY = {"type": "Pods", "value": 1, "periodSeconds": 1}


@pytest.mark.parametrize(
    ("metric", "problems"),
    [
        ({"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": AVERAGE}}, []),
        (
            {"type": "Pods"},
            ["spec.metrics[0].pods: Required value: must populate information for the given metric source"],
        ),
        (
            {"type": "Pods", "pods": {"metric": {"name": "a/b"}, "target": {"type": "Value", "value": "0"}}},
            [
                "spec.metrics[0].pods.metric.name: Invalid value: \"a/b\": may not contain '/'",
                'spec.metrics[0].pods.target.value: Invalid value: "0": must be positive',
                "spec.metrics[0].pods.target.averageValue: Required value: must specify a positive target averageValue",
            ],
        ),
        (
            {"type": "Resource", "resource": {"name": "cpu", "target": AVERAGE}, "external": {}},
            [
                "spec.metrics[0].external.metric.name: Required value: must specify a metric name",
                "spec.metrics[0].external.target.type: Required value: must specify a metric target type",
                'spec.metrics[0].external.target.type: Invalid value: "": must be either Utilization, Value, or AverageValue',
                "spec.metrics[0].external.target.averageValue: Required value: "
                "must set either a target value for metric or a per-pod target",
                "spec.metrics[0].external: Forbidden: must populate the given metric source only",
            ],
        ),
        (
            # a type of its own in Go, so shown as JSON
            {"type": "Resource", "resource": {"name": "cpu", "target": {**AVERAGE, "type": "\0"}}},
            [
                'spec.metrics[0].resource.target.type: Invalid value: "\\u0000": must be either Utilization, Value, or AverageValue',
            ],
        ),
    ],
)
def test_metrics(metric: dict[str, Any], problems: list[str]) -> None:
    spec = {"minReplicas": 1, "maxReplicas": 2, "scaleTargetRef": TARGET, "metrics": [metric]}
    errors = HorizontalPodAutoscalerStrategy().validate({"metadata": {"name": "web"}, "spec": spec})
    assert [str(error) for error in errors] == problems


@pytest.mark.parametrize(
    ("rules", "problems"),
    [
        ({"policies": [POLICY]}, []),
        ({}, ["policies: Required value: must specify at least one Policy"]),
        (
            {"policies": [{"type": "No", "value": 0, "periodSeconds": 1801}], "stabilizationWindowSeconds": 3601},
            [
                "stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600",
                'policies[0].type: Unsupported value: "No": supported values: "Percent", "Pods"',
                "policies[0].value: Invalid value: 0: must be greater than zero",
                "policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to 1800",
            ],
        ),
        (
            {"policies": [POLICY], "selectPolicy": "No", "tolerance": "-1"},
            [
                'selectPolicy: Unsupported value: "No": supported values: "Disabled", "Max", "Min"',
                'tolerance: Invalid value: "-1": must be greater than or equal to 0',
            ],
        ),
    ],
)
def test_behavior(rules: dict[str, Any], problems: list[str]) -> None:
    spec = {"minReplicas": 1, "maxReplicas": 2, "scaleTargetRef": TARGET, "behavior": {"scaleUp": rules}}
    errors = HorizontalPodAutoscalerStrategy().validate({"metadata": {"name": "web"}, "spec": spec})
    assert [str(error).removeprefix("spec.behavior.scaleUp.") for error in errors] == problems
