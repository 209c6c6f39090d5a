"""ValidatingAdmissionPolicies: what they refuse and how. Most cases are in the recorded exchanges
(conformance/scenarios/admission/{policies,policy-validation,match-conditions}.json)."""

import subprocess
import sys
from typing import Any

import pytest

from conformance.exchange import Client
from fakeapiserver import Cluster
from fakeapiserver.admission.policy.validator import Validator

# the server alone: no controller writes
pytestmark = pytest.mark.fake_cluster(controllers=())

Json = dict[str, Any]
GROUP = "/apis/admissionregistration.k8s.io/v1"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
RULE = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
DENIED = """configmaps "c" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: """
PARAMS = {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}


class Server:
    def __init__(self, cluster: Cluster) -> None:
        self.client = Client(cluster.url, cluster.token)

    def send(self, method: str, path: str, body: Json | None = None) -> Json:
        request = {"method": method, "path": path} | ({} if body is None else {"body": body})
        return self.client.send(request, [])

    def apply(self, spec: Json, binding: Json) -> None:
        spec = {"matchConstraints": {"resourceRules": [RULE]}, **spec}
        binding = {"policyName": "p", "validationActions": ["Deny"], **binding}
        for kind, name, body in (("policies", "p", spec), ("policybindings", "b", binding)):
            answer = self.send("POST", f"{GROUP}/validatingadmission{kind}", {"metadata": {"name": name}, "spec": body})
            assert answer["status"] == 201, answer

    def create(self) -> Json:
        return self.send("POST", CONFIGMAPS, {"metadata": {"name": "c"}, "data": {"k": "v"}})


@pytest.fixture
def server(fake_cluster: Cluster) -> Server:
    return Server(fake_cluster)


def rules(*expressions: str, **more: Any) -> Json:
    return {"validations": [{"expression": expression} for expression in expressions], **more}


@pytest.mark.parametrize(
    ("spec", "binding", "message"),
    [
        (rules("object.data.k == 'v'"), {}, ""),
        (rules("object.data.k == 'w'"), {}, "failed expression: object.data.k == 'w'"),
        (rules("object.no == 1"), {}, "expression 'object.no == 1' resulted in error: no such key: no"),
        (rules("object.no == 1", failurePolicy="Ignore"), {}, ""),
        (rules("false", matchConditions=[{"name": "n", "expression": "object.data.k == 'w'"}]), {}, ""),
        (
            rules(
                "variables.b == 2",
                variables=[{"name": "a", "expression": "1"}, {"name": "b", "expression": "variables.a"}],
            ),
            {},
            "failed expression: variables.b == 2",
        ),
        (
            {"validations": [{"expression": "false", "messageExpression": "'no ' + object.metadata.name"}]},
            {},
            "no c",
        ),
        (rules("authorizer.requestResource.check('create').allowed()"), {}, ""),
        (
            rules(
                "authorizer.serviceAccount('default', 'x').group('').resource('pods').check('get').allowed() || false"
            ),
            {},
            "failed expression: authorizer.serviceAccount('default', 'x').group('').resource('pods').check('get').allowed() "
            "|| false",
        ),
        (
            rules("params.data.x == 'y'", **PARAMS),
            {"paramRef": {"name": "none", "parameterNotFoundAction": "Deny"}},
            "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction",
        ),
        (rules("false", **PARAMS), {"paramRef": {"name": "none", "parameterNotFoundAction": "Allow"}}, ""),
        (
            rules(*["lists.range(70000).all(x, x >= 0)"] * 40),
            {},
            "validation failed due to running out of cost budget, no further validation rules will be run",
        ),
    ],
)
def test_a_policy_takes_effect_at_once(server: Server, spec: Json, binding: Json, message: str) -> None:
    server.apply(spec, binding)
    answer = server.create()
    if not message:
        assert answer["status"] == 201, answer
        return
    assert answer["status"] == 422
    assert answer["body"]["message"] == DENIED + message
    assert answer["body"]["details"]["causes"] == [{"message": answer["body"]["message"].partition(": ")[2]}]


@pytest.mark.parametrize(("reason", "code"), [("Forbidden", 403), ("Invalid", 422), ("RequestEntityTooLarge", 413)])
def test_a_validation_says_its_reason(server: Server, reason: str, code: int) -> None:
    server.apply({"validations": [{"expression": "false", "reason": reason}]}, {})
    answer = server.create()
    assert (answer["status"], answer["body"]["reason"]) == (code, reason)


def test_a_binding_may_only_warn(server: Server) -> None:
    server.apply(rules("false"), {"validationActions": ["Warn"]})
    answer = server.create()
    assert answer["status"] == 201
    assert "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b'" in "".join(answer["warnings"])


def test_a_policy_is_gone_with_its_binding(server: Server) -> None:
    server.apply(rules("false"), {})
    assert server.create()["status"] == 422
    server.send("DELETE", f"{GROUP}/validatingadmissionpolicybindings/b")
    assert server.create()["status"] == 201


def test_a_variable_costs_once(server: Server) -> None:
    """Thirty evaluations of it would be out of budget."""
    dear = {"name": "dear", "expression": "lists.range(100000).all(x, x >= 0)"}
    server.apply(rules(*["variables.dear"] * 30, variables=[dear]), {})
    assert server.create()["status"] == 201


def test_expressions_are_not_imported_at_start() -> None:
    code = (
        "import sys, fakeapiserver.admission.plugins.validatingadmissionpolicy\n"
        "print([m for m in sys.modules if m.startswith('fakeapiserver.apimachinery.cel')])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


LABELLED = 'Object{metadata: Object.metadata{labels: {"team": "a"}}}'
PATCHED = '[JSONPatch{op: "add", path: "/data/" + jsonpatch.escapeKey("x"), value: "y"}]'


def mutate(server: Server, *mutations: Json, **more: Any) -> None:
    spec = {"matchConstraints": {"resourceRules": [RULE]}, "reinvocationPolicy": "Never", "mutations": list(mutations)}
    binding = {"policyName": "p"}
    for kind, name, body in (("policies", "p", spec | more), ("policybindings", "b", binding)):
        answer = server.send("POST", f"{GROUP}/mutatingadmission{kind}", {"metadata": {"name": name}, "spec": body})
        assert answer["status"] == 201, answer


def applied(expression: str) -> Json:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def patched(expression: str) -> Json:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def test_mutations_see_what_those_before_have_made(server: Server) -> None:
    again = patched('[JSONPatch{op: "add", path: "/data/team", value: object.metadata.labels.team}]')
    mutate(server, applied(LABELLED), patched(PATCHED), again)
    made = server.create()["body"]
    assert made["metadata"]["labels"] == {"team": "a"}
    assert made["data"] == {"k": "v", "x": "y", "team": "a"}


@pytest.mark.parametrize(
    ("mutation", "message"),
    [
        (
            applied("Object{metadata: Object.wrong{}}"),
            'type mismatch: unexpected type name "Object.wrong", expected "Object.metadata", which matches field name path from '
            "root Object type",
        ),
        (
            patched('[JSONPatch{op: "remove", path: "/data/no"}]'),
            "JSON Patch: error in remove for path: '/data/no': Unable to remove nonexistent key: no: missing value",
        ),
        (
            applied("Object{metadata: Object.metadata{labels: {'a': object.no}}}"),
            "expression 'Object{metadata: Object.metadata{labels: {'a': object.no}}}' resulted in error: no such key: no",
        ),
    ],
)
def test_a_mutation_that_fails_refuses_the_write(server: Server, mutation: Json, message: str) -> None:
    mutate(server, mutation)
    answer = server.create()
    assert (answer["status"], answer["body"]["reason"]) == (403, "Invalid")
    assert answer["body"]["message"] == f"policy 'p' with binding 'b' denied request: {message}"


def test_failures_of_a_policy_can_be_ignored(server: Server) -> None:
    mutate(server, patched('[JSONPatch{op: "remove", path: "/data/no"}]'), failurePolicy="Ignore")
    assert server.create()["status"] == 201


@pytest.mark.parametrize(("policy", "count"), [("IfNeeded", "xx"), ("Never", "x")])
def test_a_policy_is_run_again_where_it_asks_for_it(server: Server, policy: str, count: str) -> None:
    value = "has(object.data.count) ? object.data.count + 'x' : 'x'"
    mutate(server, patched(f'[JSONPatch{{op: "add", path: "/data/count", value: {value}}}]'), reinvocationPolicy=policy)
    assert server.create()["body"]["data"]["count"] == count


@pytest.mark.parametrize(
    ("expression", "data"),
    [
        ("Object{?data: optional.of({'x': 'y'})}", {"k": "v", "x": "y"}),
        ("Object{?data: optional.none()}", {"k": "v"}),
    ],
)
def test_fields_of_an_apply_configuration_can_be_optional(server: Server, expression: str, data: Json) -> None:
    mutate(server, applied(expression))
    assert server.create()["body"]["data"] == data


@pytest.mark.parametrize(
    ("expression", "shown"),
    [("b'ab'", "[]uint8{0x61, 0x62}"), ("duration('90m')", "5400000000000"), ("null", "0")],
)
def test_what_json_does_not_have_is_no_text(server: Server, expression: str, shown: str) -> None:
    mutate(server, applied(f"Object{{data: Object.data{{x: {expression}}}}}"))
    said = f"failed to convert patch object to typed object: .data.x: expected string, got &value.valueUnstructured{{Value:{shown}}}"
    assert server.create()["body"]["message"].endswith(said)


@pytest.mark.parametrize(
    ("patch", "status", "message"),
    [
        ("[JSONPatch{op: 'add', path: '/data/x', value: 'y'}].filter(p, p.op == 'add')", 201, ""),
        ("[JSONPatch{op: 'test', path: '/data/k', value: 'w'}]", 201, ""),
        (
            "[JSONPatch{op: 'remove', path: ''}]",
            403,
            'remove operation does not apply: doc is missing path: "": missing value',
        ),
        (
            "[JSONPatch{op: 'add', path: '/kind', value: 'Other'}]",
            500,
            'no kind "Other" is registered for version "v1"',
        ),
    ],
)
def test_a_json_patch_is_made_of_values_like_others(server: Server, patch: str, status: int, message: str) -> None:
    mutate(server, patched(patch))
    answer = server.create()
    assert answer["status"] == status
    assert message in answer["body"].get("message", "")


def test_mutations_in_other_versions_are_lost_on_built_in_kinds(server: Server) -> None:
    """Upstream takes what a policy for autoscaling/v1 has made of a write in v2 for an object of v2."""
    rule = {**RULE, "apiGroups": ["autoscaling"], "resources": ["horizontalpodautoscalers"]}
    mutate(server, applied("Object{spec: Object.spec{minReplicas: 2}}"), matchConstraints={"resourceRules": [rule]})
    body = {"metadata": {"name": "h"}, "spec": {"scaleTargetRef": {"kind": "D", "name": "x"}, "maxReplicas": 2}}
    answer = server.send("POST", "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", body)
    converting = "converting (v1.HorizontalPodAutoscaler) to (v2.HorizontalPodAutoscaler): unknown conversion"
    assert answer["body"]["message"] == f"policy 'p' with binding 'b' denied request: {converting}"


def test_annotations_have_no_authorizer(server: Server) -> None:
    asks = {"key": "k", "valueExpression": "authorizer.path('/').check('get').reason()"}
    server.apply({"auditAnnotations": [asks]}, {})
    assert server.create()["body"]["message"].endswith("resulted in error: no such attribute(s): authorizer")


def test_what_is_deleted_with_others_has_no_name(server: Server) -> None:
    server.apply(
        rules("request.name == 'c'"), {"matchResources": {"resourceRules": [{**RULE, "operations": ["DELETE"]}]}}
    )
    server.send("DELETE", f"{GROUP}/validatingadmissionpolicies/p")
    spec = {"matchConstraints": {"resourceRules": [{**RULE, "operations": ["DELETE"]}]}, **rules("request.name == 'c'")}
    server.send("POST", f"{GROUP}/validatingadmissionpolicies", {"metadata": {"name": "p"}, "spec": spec})
    server.create()
    answer = server.send("DELETE", CONFIGMAPS)
    assert answer["body"]["details"]["name"] == "Unknown"
    assert answer["body"]["message"].endswith("expression 'request.name == 'c'' resulted in error: no such key: name")
    assert server.send("DELETE", f"{CONFIGMAPS}/c")["status"] == 200


@pytest.mark.parametrize(
    ("variables", "field"), [([("a", "variables.a")], "a"), ([("a", "variables.b"), ("b", "1")], "b")]
)
def test_a_variable_knows_those_before_it(server: Server, variables: list[tuple[str, str]], field: str) -> None:
    spec = {
        "matchConstraints": {"resourceRules": [RULE]},
        "variables": [{"name": name, "expression": expression} for name, expression in variables],
        **rules("true"),
    }
    answer = server.send("POST", f"{GROUP}/validatingadmissionpolicies", {"metadata": {"name": "p"}, "spec": spec})
    assert f"undefined field '{field}'" in answer["body"]["message"]


def test_a_policy_is_compiled_once(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[Any] = []
    original = Validator.__init__
    monkeypatch.setattr(Validator, "__init__", lambda self, *args: (compiled.append(args), original(self, *args))[1])
    server.apply(rules("true"), {})
    server.create()
    other = {"policyName": "none", "validationActions": ["Deny"]}
    server.send("POST", f"{GROUP}/validatingadmissionpolicybindings", {"metadata": {"name": "other"}, "spec": other})
    server.create()
    merge = {"spec": {"validations": [{"expression": "false"}]}}
    changed = {
        "method": "PATCH",
        "path": f"{GROUP}/validatingadmissionpolicies/p",
        "type": "application/merge-patch+json",
    }
    assert server.client.send({**changed, "body": merge}, [])["status"] == 200
    assert server.create()["status"] == 422
    assert len(compiled) == 2


@pytest.mark.parametrize(
    ("rule", "status"),
    [
        ({"apiGroups": ["*"], "resources": ["*"]}, 422),
        ({"apiGroups": ["", "apps"], "resources": ["*/*"]}, 422),
        ({"apiVersions": ["*"], "resources": ["pods", "configmaps/*"]}, 422),
        ({"resources": ["configmaps/status"]}, 201),
        ({"resources": ["pods"]}, 201),
        ({"apiGroups": ["apps"]}, 201),
        ({"apiVersions": ["v2"]}, 201),
        ({"operations": ["UPDATE"]}, 201),
        ({"scope": "Cluster"}, 201),
        ({"resourceNames": ["d"]}, 201),
    ],
)
def test_a_policy_concerns_what_its_rules_name(server: Server, rule: Json, status: int) -> None:
    server.create()  # what has been of no concern before is looked at again
    server.send("DELETE", f"{CONFIGMAPS}/c")
    server.apply(rules("false", matchConstraints={"resourceRules": [{**RULE, **rule}]}), {})
    assert server.create()["status"] == status


def test_an_event_is_an_event_in_either_group(server: Server) -> None:
    rule = {**RULE, "apiGroups": ["events.k8s.io"], "resources": ["events"]}
    server.apply(rules("has(object.regarding)", matchConstraints={"resourceRules": [rule]}), {})
    body = {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default", "name": "x"}}
    assert server.send("POST", "/api/v1/namespaces/default/events", body)["status"] == 201


@pytest.mark.parametrize(
    ("resource", "status"), [("validatingwebhookconfigurations", 422), ("validatingadmissionpolicies", 201)]
)
def test_policies_judge_webhooks_but_not_policies(server: Server, resource: str, status: int) -> None:
    rule = {**RULE, "apiGroups": ["*"], "resources": ["*"]}
    server.apply(rules("false", matchConstraints={"resourceRules": [rule]}), {})
    spec = {"matchConstraints": {"resourceRules": [RULE]}, **rules("true")}
    body = {"metadata": {"name": "other"}, **({"spec": spec} if status == 201 else {})}
    assert server.send("POST", f"{GROUP}/{resource}", body)["status"] == status


@pytest.mark.parametrize(
    ("mutation", "replicas", "message"),
    [
        (patched("[JSONPatch{op: 'replace', path: '/spec/replicas', value: 4}]"), 4, ""),
        (
            applied("Object{spec: Object.spec{replicas: 4}}"),
            None,
            "error applying patch: failed to convert patch object to typed object: no corresponding type for autoscaling/v1, "
            "Kind=Scale",
        ),
    ],
)
def test_what_is_scaled_is_a_scale(server: Server, mutation: Json, replicas: int | None, message: str) -> None:
    rule = {**RULE, "apiGroups": ["apps"], "resources": ["deployments/scale"], "operations": ["UPDATE"]}
    mutate(server, mutation, matchConstraints={"resourceRules": [rule]})
    deployments, labels = "/apis/apps/v1/namespaces/default/deployments", {"a": "b"}
    pods = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    made = {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": labels}, "template": pods}}
    assert server.send("POST", deployments, made)["status"] == 201
    scale = {"metadata": {"name": "d", "namespace": "default"}, "spec": {"replicas": 2}}
    body = server.send("PUT", f"{deployments}/d/scale", scale)["body"]
    assert (body.get("spec") or {}).get("replicas") == replicas
    assert body.get("message", "").endswith(message)
