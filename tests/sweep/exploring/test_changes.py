"""The changes that a schema suggests for an object."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from fakeapiserver.sweep.exploring import changes, values

HERE = Path(__file__).parent
SCHEMA: dict[str, Any] = yaml.safe_load((HERE / "site-crd.yaml").read_text())["spec"]["versions"][0]["schema"][
    "openAPIV3Schema"
]
SITE: dict[str, Any] = yaml.safe_load((HERE / "site.yaml").read_text())


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"type": "boolean"}, True, [False]),
        ({"type": "boolean"}, None, [True, False]),
        ({"type": "string", "enum": ["a", "b", "c"]}, "b", ["a", "c"]),
        ({"type": "integer"}, 3, [4, 2, 0, 1]),
        ({"type": "integer"}, 0, [1]),
        ({"type": "integer", "minimum": 1, "maximum": 9}, 9, [8, 1, 5]),
        ({"type": "integer", "minimum": 0, "exclusiveMinimum": True, "maximum": 10, "multipleOf": 5}, 5, [10]),
        ({"type": "integer", "minimum": -3}, 0, [1, -1, -3]),
        ({"type": "string"}, "web", ["web2", "webx", "we", "example"]),
        ({"type": "string", "minLength": 3, "maxLength": 4}, "web", ["web2", "webx", "aaa", "aaaa"]),
        ({"type": "string", "pattern": "^[0-9]+Gi$"}, "10Gi", ["11Gi", "1Gi"]),
        ({"type": "string", "format": "date-time"}, None, ["2026-01-01T00:00:00Z", "2030-01-01T00:00:00Z", "example", ""]),
        ({"x-kubernetes-int-or-string": True}, "25%", ["26%", 1, 2, "1"]),
        ({"type": "string", "pattern": "(?!unknown to Python"}, "a", ["a2", "ax", "", "b"]),
        ({"type": "array", "items": {"type": "string"}}, None, [["example"], []]),
        (
            {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}, "b": {"default": "x"}}},
            None,
            [{"a": 0}],
        ),
        ({"type": "object", "additionalProperties": {"type": "string"}}, None, [{"example": "example"}, {}]),
        ({"type": "integer", "anyOf": [{"maximum": 2}, {"minimum": 7, "maximum": 8}]}, 1, [2, 0, 7, 8]),
        ({"type": "string", "allOf": [{"enum": ["a", "b"]}]}, "a", ["b"]),
        ({"type": "string", "example": "shown"}, None, ["shown", "example", ""]),
    ],
)  # fmt: skip
def test_the_neighbours_of_a_value(schema: dict[str, Any], value: Any, expected: list[Any]) -> None:
    assert values.neighbours(schema, value) == expected


def test_each_field_is_changed_once_before_any_is_changed_twice() -> None:
    names = [each.id for each in changes.of_schema(SCHEMA, {**SITE, "spec": {**SITE["spec"], "size": 1}})]
    assert {*names[:11]} == {
        'spec.comment = "example"',
        'spec.labels = {"example.com/explored": "a"}',
        'spec.login = {"user": "example"}',
        'spec.login = {"user": "example2"}',
        'spec.login = {"user": "example", "seconds": 60}',
        'spec.mirrors = [{"name": "a1"}, {"name": "a2"}]',
        "spec.size = 2",
        'spec.storage = "1Gi"',
        'spec.theme = "plain"',
        'spec.title = "Shop2"',
        'spec.mirrors[0].name = "a2"',
    }
    assert names[13:16] == ["spec.size unset", 'spec.theme = "dark"', "spec.mirrors unset"]
    assert {"spec.mirrors = []", "spec.mirrors unset", "spec.size = 8", "spec.size unset"} <= {*names}
    assert not {"spec unset", "spec.title unset", "spec.size = 9"} & {*names}
    assert len(names) == len({*names})


def test_all_changes_are_patches_of_their_kind() -> None:
    for change in changes.of_schema(SCHEMA, SITE):
        before, after = SITE["spec"], change.of(SITE)["spec"]
        assert before != after
        [operation] = change.patch
        assert operation["op"] == ("add" if change.value else "remove") or change.path[-1] == 0


def test_the_fields_of_the_schema() -> None:
    fields = [*changes.fields_of(SCHEMA)]
    assert {"spec.login.seconds", "spec.mirrors[].region", "spec.labels"} <= {*fields}
    assert not [each for each in fields if each.startswith(("metadata", "status"))]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (("spec", "users", 0, "name"), "spec.users[0].name"),
        (("spec", "labels", "example.com/a"), 'spec.labels["example.com/a"]'),
    ],
)
def test_paths_are_shown(path: changes.Path, expected: str) -> None:
    assert changes.shown(path) == expected


CONTAINER = {"limits": {"type": "object"}, "requests": {"type": "object"}}
NAMED = {"type": "object", "properties": {"name": {"type": "string"}, "n": {"type": "integer"}}}


def changes_of(properties: dict[str, Any], obj: dict[str, Any], **constraints: Any) -> list[str]:
    """The names of the changes within `spec`."""
    schema = {"properties": {"spec": {"type": "object", "properties": properties, **constraints}}}
    return [each.id for each in changes.of_schema(schema, {"spec": obj})]


@pytest.mark.parametrize(
    ("properties", "obj", "expected"),
    [
        pytest.param(
            {"resources": {"type": "object", "properties": CONTAINER}}, {}, 'spec.resources = {"limits": {"memory": "1Gi"}}',
            id="resources",
        ),
        pytest.param({"image": {"type": "string"}}, {"image": "a.io:80/b:1.2"}, 'spec.image = "a.io:80/b:explored"', id="an image"),
        pytest.param({"pullPolicy": {"type": "string"}}, {}, 'spec.pullPolicy = "Always"', id="a policy"),
        pytest.param({"size": {"type": "string"}}, {"size": "1Gi"}, 'spec.size = "1024Mi"', id="another spelling"),
        pytest.param({"size": {"type": "string"}}, {"size": "1Gi"}, 'spec.size = "2Gi"', id="another quantity"),
        pytest.param(
            {"labels": {"type": "object", "additionalProperties": {"type": "string"}}}, {"labels": {"a": "b", "c": "d"}},
            'spec.labels = {"c": "d"}', id="a label fewer",
        ),
        pytest.param(
            {"type": {"type": "string"}, "clusterIP": {"type": "string"}}, {}, 'spec.type = "NodePort"', id="a service's type",
        ),
        pytest.param(
            {"users": {"type": "array", "items": NAMED}}, {"users": [{"name": "a"}, {"name": "b"}]}, 'spec.users[1].n = 0',
            id="the last item",
        ),
        pytest.param(
            {"users": {"type": "array", "items": NAMED}}, {"users": [{"name": "a"}, {"name": "b"}]},
            'spec.users = [{"name": "b"}, {"name": "a"}]', id="another order",
        ),
        pytest.param(
            {"users": {"type": "array", "maxItems": 3, "items": {"type": "string"}}}, {"users": ["a"]},
            'spec.users = ["a", "a2", "a3"]', id="a full list",
        ),
        pytest.param(
            {"tls": {"type": "object", "properties": {"secret": {"type": "object", "properties": {"name": {"type": "string"}}}}}}, {},
            'spec.tls = {"secret": {"name": "example"}}', id="a field of unset objects",
        ),
        pytest.param(
            {"users": {"type": "array", "items": NAMED}}, {}, 'spec.users = [{"name": "example"}]', id="a field of an unset list's item",
        ),
        pytest.param(
            {"template": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            {"template": {"spec": {"tolerations": [{"key": "a"}], "replicas": 3}}}, "spec.template.spec.tolerations unset",
            id="a field that no schema has",
        ),
        pytest.param(
            {"template": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}, {"template": {"spec": {"replicas": 3}}},
            "spec.template.spec.replicas = 4", id="a number that no schema has",
        ),
        pytest.param(
            {"mode": {"type": "string", "x-kubernetes-validations": [{"rule": "self in ['fast', 'safe']"}]}}, {},
            'spec.mode = "safe"', id="a text of a rule",
        ),
    ],
)  # fmt: skip
def test_telling_values_are_among_the_changes(properties: dict[str, Any], obj: dict[str, Any], expected: str) -> None:
    assert expected in changes_of(properties, obj)


def test_numbers_of_a_rule_about_two_fields() -> None:
    integer = {"type": "integer"}
    rules = [{"rule": "self.least >= 7 && self.least <= self.most"}]
    names = changes_of(
        {"least": integer, "most": integer}, {"least": 8, "most": 9}, **{"x-kubernetes-validations": rules}
    )
    assert {"spec.least = 7", "spec.least = 6"} <= {*names}


def test_unset_fields_of_large_structures_come_last() -> None:
    container = {name: {"type": "string"} for name in ("image", "command", "livenessProbe", "workingDir", "tty")}
    names = changes_of({"container": {"type": "object", "properties": container}}, {"container": {"command": "a"}})
    assert names.index('spec.container.workingDir = "example"') > names.index("spec.container.command unset")
    assert len([each for each in names if "workingDir" in each]) == 1
