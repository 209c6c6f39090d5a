"""What strategies have in common."""

from typing import Any

import pytest

from fakeapiserver.registry.generic.strategy import drop_fields


@pytest.mark.parametrize(
    ("path", "left"),
    [
        (("spec", "a"), {"spec": {"b": [{"c": {"d": 1}}, {"c": {"d": 1, "e": 2}}, {"c": {}}]}}),
        (("spec", "b", "*", "c", "d"), {"spec": {"a": 1, "b": [{"c": {}}, {"c": {"e": 2}}, {"c": {}}]}}),
        # What holds the field goes along only where the field was the last in it.
        (("spec", "b", "*", "c?", "d"), {"spec": {"a": 1, "b": [{}, {"c": {"e": 2}}, {"c": {}}]}}),
        (("spec", "a", "*", "x"), {"spec": {"a": 1, "b": [{"c": {"d": 1}}, {"c": {"d": 1, "e": 2}}, {"c": {}}]}}),
        (("spec", "b", "*~c"), {"spec": {"a": 1, "b": []}}),
        (("no", "such"), {"spec": {"a": 1, "b": [{"c": {"d": 1}}, {"c": {"d": 1, "e": 2}}, {"c": {}}]}}),
    ],
)
def test_disabled_fields_are_dropped(path: tuple[str, ...], left: dict[str, Any]) -> None:
    obj = {"spec": {"a": 1, "b": [{"c": {"d": 1}}, {"c": {"d": 1, "e": 2}}, {"c": {}}]}}
    drop_fields(obj, [path])
    assert obj == left
