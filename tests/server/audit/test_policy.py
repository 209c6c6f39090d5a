"""Tests which requests a policy audits, and which policies are invalid. The messages are a real kube-apiserver's."""

import re
from pathlib import Path

import pytest

from fakeapiserver.auth.interfaces import Attributes, UserInfo
from fakeapiserver.server.filters.audit.policy import Level, load_policy, read_policy

JANE = UserInfo("jane", groups=("dev", "system:authenticated"))
HEAD = "apiVersion: audit.k8s.io/v1\nkind: Policy\n"


def about(path: str, verb: str = "get", name: str = "one", namespace: str = "default") -> Attributes:
    """A request about `group/resource/subresource`, or a path."""
    if path.startswith("/"):
        return Attributes(JANE, verb, path)
    group, resource, subresource = (*path.split("/"), "")[:3]
    return Attributes(JANE, verb, "", True, group, "v1", resource, subresource, namespace, name)


@pytest.mark.parametrize(
    ("rule", "request_", "matches"),
    [
        ("{}", about("/pods"), True),
        ("{}", about("/healthz"), True),
        ("{users: [jane]}", about("/pods"), True),
        ("{users: [joe]}", about("/pods"), False),
        ("{userGroups: [dev, ops]}", about("/pods"), True),
        ("{userGroups: [ops]}", about("/pods"), False),
        ("{verbs: [list, get]}", about("/pods"), True),
        ("{verbs: [list]}", about("/pods"), False),
        ("{namespaces: [default]}", about("apps/deployments"), True),
        ("{namespaces: [default]}", about("/healthz"), False),
        ("{namespaces: ['']}", about("apps/deployments", namespace=""), True),
        ("{resources: [{group: apps}]}", about("apps/deployments"), True),
        ("{resources: [{group: batch}]}", about("apps/deployments"), False),
        ("{resources: [{group: '*'}]}", about("apps/deployments/scale"), True),
        ("{resources: [{group: apps, resources: [deployments]}]}", about("apps/deployments/scale"), False),
        ("{resources: [{group: apps, resources: [deployments/scale]}]}", about("apps/deployments/scale"), True),
        ("{resources: [{group: apps, resources: [deployments/*]}]}", about("apps/deployments/scale"), True),
        ("{resources: [{group: apps, resources: [deployments/*]}]}", about("apps/deployments"), True),
        ("{resources: [{group: apps, resources: ['*/scale']}]}", about("apps/deployments/scale"), True),
        ("{resources: [{group: apps, resources: ['*/scale']}]}", about("apps/deployments/status"), False),
        ("{resources: [{group: apps, resources: ['*'], resourceNames: [one]}]}", about("apps/deployments"), True),
        ("{resources: [{group: apps, resources: ['*'], resourceNames: [two]}]}", about("apps/deployments"), False),
        ("{nonResourceURLs: ['/healthz']}", about("/healthz"), True),
        ("{nonResourceURLs: ['/health*']}", about("/healthz/ping"), True),
        ("{nonResourceURLs: ['*']}", about("/version"), True),
        ("{nonResourceURLs: ['/api*']}", about("apps/deployments"), False),
    ],
)
def test_a_rule_matches(rule: str, request_: Attributes, matches: bool) -> None:
    policy = read_policy(f"{HEAD}rules:\n- {{level: Metadata, {rule[1:]}".encode())
    assert policy.evaluate(request_).level == (Level.METADATA if matches else Level.NONE)


def test_the_first_rule_decides_and_adds_to_what_the_policy_omits() -> None:
    policy = read_policy(
        f"""{HEAD}
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- {{level: None, verbs: [watch]}}
- {{level: Request, verbs: [get], omitStages: [Panic], omitManagedFields: false}}
- level: RequestResponse
""".encode()
    )
    found = [policy.evaluate(about("/pods", verb)) for verb in ("watch", "get", "list")]
    assert [config.level.text for config in found] == ["None", "Request", "RequestResponse"]
    assert [config.omit_managed_fields for config in found] == [True, False, True]
    assert found[1].omit_stages == {"RequestReceived", "Panic"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "unknown group version field audit.k8s.io/__internal, Kind=Policy in policy"),
        (
            "apiVersion: audit.k8s.io/v1beta1\nkind: Policy\n",
            'failed decoding: no kind "Policy" is registered for version "audit.k8s.io/v1beta1" '
            'in scheme "pkg/runtime/scheme.go:111"',
        ),
        (
            "apiVersion: audit.k8s.io/v1\nkind: Event\n",
            "failed decoding: converting (v1.Event) to (audit.Policy): unknown conversion",
        ),
        (f"{HEAD}rules: []", "loaded illegal policy with 0 rules"),
        (
            f"{HEAD}rules: text",
            "failed decoding: json: cannot unmarshal string into Go struct field Policy.rules of type []v1.PolicyRule",
        ),
        (f"{HEAD}rules: [{{users: [a]}}]", "rules[0].level: Required value"),
        (
            f"{HEAD}rules: [{{level: Foo}}]",
            'rules[0].level: Unsupported value: "Foo": supported values: "None", "Metadata", "Request", "RequestResponse"',
        ),
        (
            f"{HEAD}rules: [{{level: None, omitStages: [Last]}}]",
            'rules[0].omitStages[0]: Invalid value: "Last": '
            "allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic",
        ),
        (
            f"{HEAD}rules: [{{level: None, nonResourceURLs: [x, '/a*b', '*', '/a*']}}]",
            "[rules[0].nonResourceURLs[0]: Invalid value: \"x\": non-resource URL rules must begin with a '/' character, "
            'rules[0].nonResourceURLs[1]: Invalid value: "/a*b": '
            "non-resource URL wildcards '*' must be the final character of the rule]",
        ),
        (
            f"{HEAD}rules: [{{level: None, nonResourceURLs: ['/x'], namespaces: [a]}}]",
            'rules[0].nonResourceURLs: Invalid value: ["/x"]: '
            "rules cannot apply to both regular resources and non-resource URLs",
        ),
        (
            f"{HEAD}rules: [{{level: None, resources: [{{resourceNames: [q]}}]}}]",
            'rules[0].resources.resourceNames: Invalid value: ["q"]: using resourceNames requires at least one resource',
        ),
    ],
)
def test_a_policy_that_cant_be_used_is_refused(text: str, why: str, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(text)
    sentence = f"loading audit policy file: {why}: from file {file}"
    with pytest.raises(ValueError, match=re.escape(sentence) + "$"):
        load_policy(file)
