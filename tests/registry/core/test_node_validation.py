"""Validation of nodes."""

from typing import Any

import pytest

from fakeapiserver.registry.core import RESOURCES

RULE = (
    "must start with an UpperCamelCase segment, with subsequent segments separated by '/' "
    "(e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"declaredFeatures": ["A", "B/c"], "capacity": {"cpu": "1500m", "pods": "10"}}, []),
        (
            {"declaredFeatures": ["a", "a"]},
            [
                f'status.declaredFeatures[0]: Invalid value: "a": invalid feature name "a": {RULE}',
                'status.declaredFeatures[1]: Duplicate value: "a"',
                f'status.declaredFeatures[1]: Invalid value: "a": invalid feature name "a": {RULE}',
            ],
        ),
        (
            {"declaredFeatures": ["B", "A"]},
            ['status.declaredFeatures[1]: Invalid value: "A": list must be sorted alphabetically'],
        ),
        ({"capacity": {"cpu": "-1"}}, ['status.capacity.cpu: Invalid value: "-1": must be greater than or equal to 0']),
        (
            {"allocatable": {"example.com/gpu": "1500m"}},
            ['status.allocatable.example.com/gpu: Invalid value: "1500m": must be an integer'],
        ),
    ],
)
def test_statuses(status: dict[str, Any], expected: list[str]) -> None:
    node = {"metadata": {"name": "n"}, "status": status}
    strategy = RESOURCES["nodes"]
    assert [str(error) for error in strategy.validate(node)] == expected
    assert [str(error) for error in strategy.validate_status_update(node, node)] == expected
