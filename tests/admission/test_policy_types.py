"""Type checking of ValidatingAdmissionPolicies: its warnings (the texts are a real cluster's), and that the status has them."""

from collections.abc import Iterable
from typing import Any

import pytest

from conformance.exchange import Client
from fakeapiserver import Cluster
from fakeapiserver.admission.policy.type_checking import TypeChecker
from fakeapiserver.apimachinery.gvk import GroupVersionKind

# the server alone: no controller writes
pytestmark = pytest.mark.fake_cluster(controllers=())

POD, DEPLOYMENT = GroupVersionKind("", "v1", "Pod"), GroupVersionKind("apps", "v1", "Deployment")
STRING, PORT = {"type": "string"}, {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]}
TYPE = {"apiVersion": STRING, "kind": STRING}
META = {"type": "object", "properties": {"name": STRING, "generateName": STRING, "namespace": STRING}}
SCHEMAS: dict[GroupVersionKind, dict[str, Any]] = {
    POD: {
        "type": "object",
        "properties": {**TYPE, "metadata": META, "spec": {"type": "object", "properties": {"port": PORT}}},
    },
    DEPLOYMENT: {
        "type": "object",
        "properties": {
            **TYPE,
            "metadata": META,
            "spec": {"type": "object", "properties": {"replicas": {"type": "integer"}, "size": {"oneOf": []}}},
        },
    },
}


def kinds_for(group: str, version: str, resource: str) -> Iterable[GroupVersionKind]:
    return [kind for kind in SCHEMAS if (kind.group, f"{kind.kind.lower()}s") == (group, resource)]


CHECKER = TypeChecker(kinds_for, SCHEMAS.get, lambda: 7)


def rule(group: str, *resources: str) -> dict[str, Any]:
    return {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["*"], "resources": list(resources)}


@pytest.mark.parametrize(
    ("rules", "expression", "issues"),
    [
        ([rule("apps", "deployments")], "object.spec.replicas > 1", []),
        ([rule("", "pods")], "object.spec.port == 'http' || object.spec.port == 80", []),
        ([rule("", "pods")], "object.metadata.namespace == 'x' && params.anything && request.dryRun", []),
        ([rule("*", "deployments"), rule("apps", "*"), rule("apps", "deployments/scale")], "object.nope", []),
        (
            [rule("apps", "deployments"), rule("", "pods")],
            "object.spec.replicas == 'a'",
            [
                ("/v1, Kind=Pod", 12, "undefined field 'replicas'"),
                ("apps/v1, Kind=Deployment", 22, "found no matching overload for '_==_' applied to '(int, string)'"),
            ],
        ),
        (
            [rule("apps", "deployments")],
            "object.spec.size",
            [("apps/v1, Kind=Deployment", 12, "undefined field 'size'")],
        ),
        (
            [rule("", "pods")],
            "oldObject.spec + 1 == 1",
            [("/v1, Kind=Pod", 16, "found no matching overload for '_+_' applied to '(Pod7.spec, int)'")],
        ),
    ],
)
def test_an_expression_is_checked_against_each_kind(
    rules: list[Any], expression: str, issues: list[tuple[str, int, str]]
) -> None:
    spec = {
        "paramKind": {"apiVersion": "g/v1", "kind": "Unknown"},
        "matchConstraints": {"resourceRules": rules},
        "validations": [{"expression": expression}],
    }
    said = [
        f"{kind}: ERROR: <input>:1:{column}: {problem}\n | {expression}\n | {'.' * (column - 1)}^\n"
        for kind, column, problem in issues
    ]
    field = "spec.validations[0].expression"
    assert CHECKER.check(spec) == ([{"fieldRef": field, "warning": "\n".join(said)}] if said else [])


def test_variables_have_the_types_of_their_expressions() -> None:
    spec = {
        "matchConstraints": {"resourceRules": [rule("apps", "deployments")]},
        "variables": [
            {"name": "replicas", "expression": "object.spec.replicas"},
            {"name": "wrong", "expression": "object.spec.nope"},
        ],
        "validations": [{"expression": "variables.wrong || true", "messageExpression": "variables.replicas + 'x'"}],
    }
    (warning,) = CHECKER.check(spec)
    assert warning["fieldRef"] == "spec.validations[0].messageExpression"
    assert "found no matching overload for '_+_' applied to '(int, string)'" in warning["warning"]


@pytest.mark.fake_cluster(controllers=["validatingadmissionpolicy-status-controller"])
def test_the_status_reports_each_generation(fake_cluster: Cluster) -> None:
    client = Client(fake_cluster.url, fake_cluster.token)
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"

    def settled(generation: int) -> Any:
        for _ in range(1000):
            body = client.send({"method": "GET", "path": f"{path}/p"}, [])["body"]
            if body["status"].get("observedGeneration") == generation:
                return body["status"]["typeChecking"]
        raise AssertionError(body["status"])

    spec = {
        "matchConstraints": {"resourceRules": [rule("", "pods")]},
        "validations": [{"expression": "object.spec.replicas > 1"}],
    }
    client.send({"method": "POST", "path": path, "body": {"metadata": {"name": "p"}, "spec": spec}}, [])
    assert "undefined field 'replicas'" in settled(1)["expressionWarnings"][0]["warning"]
    spec["validations"] = [{"expression": "has(object.spec.nodeName)"}]
    merge = {"method": "PATCH", "path": f"{path}/p", "type": "application/merge-patch+json", "body": {"spec": spec}}
    client.send(merge, [])
    assert settled(2) is None  # emptied, it is gone
