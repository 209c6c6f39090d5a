"""Validation of flow schemas and priority levels."""

from typing import Any

import pytest

from fakeapiserver.registry.flowcontrol.flowcontrol_validation import flow_schema_errors, priority_level_errors

USER = {"kind": "User", "user": {"name": "u"}}
RULE = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]}


@pytest.mark.parametrize(
    ("rule", "problems"),
    [
        ({"subjects": [USER], "resourceRules": [RULE]}, []),
        (
            {},
            [
                "subjects: Required value: subjects must contain at least one value",
                ": Required value: at least one of resourceRules and nonResourceRules has to be non-empty",
            ],
        ),
        (
            {"subjects": [{**USER, "group": {"name": "g"}}, {"kind": "Group"}], "resourceRules": [RULE]},
            [
                "subjects[0].group: Forbidden: group is forbidden when subject kind is not 'Group'",
                "subjects[1].group: Required value: group is required when subject kind is 'Group'",
            ],
        ),
        (
            {"subjects": [USER], "resourceRules": [{**RULE, "resources": ["*", "pods"], "namespaces": ["A"]}]},
            [
                'resourceRules[0].resources: Invalid value: ["*","pods"]: '
                "if '*' is present, must not specify other resources",
                "resourceRules[0].namespaces[0]: Invalid value: \"A\": each member of this list must be '*' or a "
                "DNS-1123 label; a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
                "and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for "
                "validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
            ],
        ),
        (
            {"subjects": [USER], "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["x", "/a*", "/b/*"]}]},
            [
                'nonResourceRules[0].nonResourceURLs[0]: Invalid value: "x": must start with slash',
                'nonResourceRules[0].nonResourceURLs[1]: Invalid value: "/a*": wildcard can only do suffix matching',
            ],
        ),
    ],
)
def test_flow_schemas(rule: dict[str, Any], problems: list[str]) -> None:
    spec = {"matchingPrecedence": 9, "priorityLevelConfiguration": {"name": "low"}, "rules": [rule]}
    errors = flow_schema_errors({"metadata": {"name": "x"}, "spec": spec})
    assert [str(error).removeprefix("spec.rules[0]").removeprefix(".") for error in errors] == problems


@pytest.mark.parametrize(
    ("queuing", "problem"),
    [
        ({"queues": 16, "handSize": 4, "queueLengthLimit": 1}, ""),
        ({"queues": 4, "handSize": 5, "queueLengthLimit": 1}, "should not be greater than queues (4)"),
        (
            {"queues": 1024, "handSize": 7, "queueLengthLimit": 1},
            "required entropy bits of deckSize 1024 and handSize 7 should not be greater than 60",
        ),
        ({"queues": 10_000_001, "handSize": 1, "queueLengthLimit": 1}, "must not be greater than 10000000"),
    ],
)
def test_queues(queuing: dict[str, int], problem: str) -> None:
    spec = {"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": queuing}}}
    errors = priority_level_errors({"metadata": {"name": "x"}, "spec": spec})
    assert [error.detail for error in errors] == ([problem] if problem else [])


def test_mandatory_objects_are_fixed() -> None:
    spec = {"matchingPrecedence": 9, "priorityLevelConfiguration": {"name": "catch-all"}}
    (error,) = flow_schema_errors({"metadata": {"name": "catch-all"}, "spec": spec})
    assert error.body() == (
        'Invalid value: {"PriorityLevelConfiguration":{"Name":"catch-all"},"MatchingPrecedence":9,'
        '"DistinguisherMethod":null,"Rules":null}: spec of \'catch-all\' must equal the fixed value'
    )
    exempt = {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 9}}
    assert priority_level_errors({"metadata": {"name": "exempt"}, "spec": exempt}) == []
