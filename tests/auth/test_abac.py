"""The mode ABAC: a policy per line, and the errors of invalid lines."""

import asyncio
from pathlib import Path

import pytest

from fakeapiserver.auth.authorizers.abac import ABAC, Policy, load_policy_file, parse_policy
from fakeapiserver.auth.interfaces import Attributes, Decision, UserInfo

START = '{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": '
SCHEME = 'in scheme "pkg/runtime/scheme.go:111"'
JANE = UserInfo("jane", groups=("dev", "system:authenticated"))
STRANGER = UserInfo("system:anonymous", groups=("system:unauthenticated",))


def pods(user: UserInfo, verb: str = "get", namespace: str = "shop", group: str = "") -> Attributes:
    return Attributes(user, verb, "", True, group, "v1", "pods", "", namespace)


def path(user: UserInfo, where: str, verb: str = "get") -> Attributes:
    return Attributes(user, verb, where)


@pytest.mark.parametrize(
    ("policy", "attributes", "allowed"),
    [
        ('{"user": "jane", "namespace": "shop", "resource": "pods"}}', pods(JANE), True),
        ('{"user": "jane", "namespace": "shop", "resource": "pods"}}', pods(JANE, "delete"), True),
        ('{"user": "jane", "namespace": "shop", "resource": "pods", "readonly": true}}', pods(JANE, "delete"), False),
        ('{"user": "jane", "namespace": "shop", "resource": "pods", "readonly": true}}', pods(JANE, "watch"), True),
        ('{"user": "jane", "namespace": "shop", "resource": "pods"}}', pods(JANE, namespace="x"), False),
        ('{"user": "jane", "namespace": "*", "resource": "*"}}', pods(JANE, group="apps"), False),
        ('{"user": "jane", "namespace": "*", "resource": "*", "apiGroup": "*"}}', pods(JANE, group="apps"), True),
        ('{"user": "jane", "group": "ops", "namespace": "*", "resource": "*"}}', pods(JANE), False),
        ('{"user": "jane", "group": "dev", "namespace": "*", "resource": "*"}}', pods(JANE), True),
        ('{"user": "*", "namespace": "*", "resource": "*"}}', pods(JANE), True),
        ('{"user": "*", "namespace": "*", "resource": "*"}}', pods(STRANGER), False),
        ('{"namespace": "*", "resource": "*"}}', pods(JANE), False),
        ('{"group": "dev", "nonResourcePath": "/logs/*"}}', path(JANE, "/logs/a"), True),
        ('{"group": "dev", "nonResourcePath": "/logs"}}', path(JANE, "/logs/a"), False),
        ('{"group": "dev", "nonResourcePath": "*", "readonly": true}}', path(JANE, "/x", "post"), False),
    ],
)
def test_policies(policy: str, attributes: Attributes, allowed: bool) -> None:
    authorizer = ABAC([parse_policy(START + policy)])
    wanted = (Decision.ALLOW, "") if allowed else (Decision.NO_OPINION, "No policy matched.")
    assert asyncio.run(authorizer.authorize(attributes)) == wanted


def test_lines_without_a_version_leave_out_what_they_allow() -> None:
    assert parse_policy("{}") == parse_policy(
        START
        + '{"group": "system:authenticated", "apiGroup": "*", "resource": "*", "namespace": "*", "nonResourcePath": "*"}}'
    )
    assert parse_policy('{"user": "jane", "resource": "pods"}').non_resource_path == ""


def test_rules_are_listed_by_policy() -> None:
    lines = ['{"user": "jane", "namespace": "*", "resource": "pods", "readonly": true}}', '{"user": "joe"}}']
    authorizer = ABAC([parse_policy(START + line) for line in lines])
    rule = {"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["pods"]}
    assert asyncio.run(authorizer.rules_for(JANE, "shop")) == ([rule], [], False, "")


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('{"apiVersion": "v1", "kind": "Pod"}', f'no kind "Pod" is registered for version "v1" {SCHEME}'),
        (
            START + '{"user": 1}}',
            "json: cannot unmarshal number into Go struct field PolicySpec.spec.user of type string",
        ),
        ('{"user": 5}', "json: cannot unmarshal number into Go struct field Policy.user of type string"),
        (START + "[]}", "json: cannot unmarshal array into Go struct field Policy.spec of type v1beta1.PolicySpec"),
        (START + '{"user": "x"', "couldn't get version/kind; json parse error: unexpected end of JSON input"),
        ('{"user": "x"} y', "couldn't get version/kind; json parse error: invalid character 'y' after top-level value"),
        (
            START.replace('"kind": "Policy", ', "") + "{}}",
            "converting (v1beta1.Policy) to (v0.Policy): unknown conversion",
        ),
    ],
)
def test_an_invalid_line_is_named(tmp_path: Path, line: str, complaint: str) -> None:
    file = tmp_path / "policies.jsonl"
    file.write_text(f'# everybody may look\n\n{{"readonly": true}}\n{line}\n')
    with pytest.raises(ValueError, match="line 4") as refused:
        load_policy_file(file)
    assert str(refused.value) == f"error reading policy file {file}, line 4: {line}: {complaint}"


def test_the_kind_is_found_in_any_case() -> None:
    assert parse_policy(START.replace("kind", "KIND") + '{"user": "x"}}') == Policy(user="x")


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(OSError, match="open /no/such/file: no such file or directory"):
        load_policy_file(Path("/no/such/file"))
