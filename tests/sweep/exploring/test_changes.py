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
        ({"type": "boolean"}, None, [False, True]),
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
        ({"type": "array", "items": {"type": "string"}}, None, [[], ["example"]]),
        (
            {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}, "b": {"default": "x"}}},
            None,
            [{"a": 0}, {"a": 0, "b": "x"}],
        ),
    ],
)  # fmt: skip
def test_the_neighbours_of_a_value(schema: dict[str, Any], value: Any, expected: list[Any]) -> None:
    assert values.neighbours(schema, value) == expected


def test_each_field_is_changed_once_before_any_is_changed_twice() -> None:
    names = [each.id for each in changes.of_schema(SCHEMA, {**SITE, "spec": {**SITE["spec"], "size": 1}})]
    assert {*names[:9]} == {
        'spec.comment = "example"',
        "spec.labels = {}",
        'spec.login = {"user": "example"}',
        'spec.mirrors = [{"name": "a1"}, {"name": "a2"}]',
        "spec.size = 2",
        'spec.storage = "1Gi"',
        'spec.theme = "plain"',
        'spec.title = "Shop2"',
        'spec.mirrors[0].name = "a2"',
    }
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
