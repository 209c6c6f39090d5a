"""Fields that a CustomResourceDefinition leaves open have the schemas that their names and the object's values suggest."""

from typing import Any, Final

import pytest

from fakeapiserver.sweep.exploring import changes, kubernetes

ANY: Final = {"x-kubernetes-preserve-unknown-fields": True}
OPEN: Final = {"type": "object", **ANY}
LIST: Final = {"type": "array", "items": OPEN}
RESOURCES: Final = {"limits": {"cpu": "1"}}
TOLERATION: Final = {"key": "a", "operator": "Exists"}
POD: Final = {"containers": [{"name": "db", "image": "db:1"}], "tolerations": [TOLERATION]}


@pytest.mark.parametrize(
    ("name", "schema", "value", "expected"),
    [
        ("podTemplate", OPEN, None, ['podTemplate = {"metadata": {"annotations": {"example.com/explored": "a"}}}']),
        ("podTemplate", OPEN, {"spec": POD}, ['podTemplate.spec.containers[0].image = "db:explored"']),
        ("podTemplate", OPEN, {"spec": POD}, ["podTemplate.spec.tolerations unset"]),
        ("podSpec", OPEN, POD, ['podSpec.tolerations[0].key = "a2"', 'podSpec.nodeSelector = {"example.com/explored": "a"}']),
        ("statefulSet", {"type": "object", "properties": {"spec": OPEN}}, {"spec": {}}, ["statefulSet.spec.revisionHistoryLimit = 1"]),
        ("tolerations", ANY, [TOLERATION], ['tolerations[0].operator = "Equal"', "tolerations unset"]),
        ("tolerations", LIST, None, []),
        ("nodeSelector", OPEN, {"a": "b"}, ['nodeSelector = {"a": "b", "example.com/explored": "a"}', "nodeSelector = {}"]),
        ("resources", OPEN, RESOURCES, ['resources.limits.cpu = "2"', "resources.limits unset"]),
        ("config", OPEN, {"log.level": "info", "size": 3, "on": True}, ['config["log.level"] = "info2"', "config.on = false"]),
        ("cluster", OPEN, {"resources": RESOURCES, "more": {"size": 3}}, ['cluster.resources.limits.cpu = "2"', "cluster.more.size = 4"]),
        ("sets", OPEN, [{"size": 3}], ["sets[0].size = 4"]),
        ("config", {**OPEN, "properties": {"a": {"type": "integer"}}}, {"a": 1, "size": 3}, ["config.a = 2", "config.size = 4"]),
    ],
)  # fmt: skip
def test_open_fields_are_changed(name: str, schema: dict[str, Any], value: Any, expected: list[str]) -> None:
    whole = {"type": "object", "properties": {name: schema}}
    obj = {} if value is None else {name: value}
    found = {each.id for each in changes.of_schema(kubernetes.completed(whole, obj), obj)}
    assert {*expected} <= found


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("podTemplate", {"type": "object"}),  # the server drops fields that no schema names
        ("podTemplate", {"type": "object", "properties": {"size": {"type": "integer"}}}),
        ("resources", {"type": "object", "additionalProperties": {"type": "string"}}),
        ("settings", OPEN),
        ("affinity", {"type": "string"}),
    ],
)
def test_other_schemas_are_left_alone(name: str, schema: dict[str, Any]) -> None:
    whole = {"type": "object", "properties": {name: schema}}
    assert kubernetes.completed(whole, {}) == whole


def test_what_is_deep_in_unset_structures_is_left_out() -> None:
    whole = {"type": "object", "properties": {"podTemplate": OPEN}}
    fields = [*changes.fields_of(kubernetes.completed(whole, {}))]
    assert "podTemplate.spec.containers[].resources.limits" in fields
    assert len(fields) < 500
