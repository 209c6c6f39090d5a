"""Errors in limit ranges."""

from typing import Any

import pytest

from fakeapiserver.apimachinery import names
from fakeapiserver.registry.core import RESOURCES

Json = dict[str, Any]


def told(*items: Json) -> list[str]:
    errors = RESOURCES["limitranges"].validate({"spec": {"limits": list(items)}})
    return [str(error).removeprefix("spec.limits[0].") for error in errors]


def container(**lists: Json) -> Json:
    return {"type": "Container", **lists}


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (container(max={"cpu": "2"}, min={"cpu": "1"}, maxLimitRequestRatio={"cpu": "2"}), []),
        (
            container(max={"cpu": "2"}, min={"cpu": "1"}, maxLimitRequestRatio={"cpu": "2100m"}),
            ['maxLimitRequestRatio[cpu]: Invalid value: "2100m": ratio 2100m is greater than max/min = 2.000000'],
        ),
        (container(max={"cpu": "2"}, min={"cpu": "0"}, maxLimitRequestRatio={"cpu": "9"}), []),
        (
            container(maxLimitRequestRatio={"cpu": "500m"}),
            ['maxLimitRequestRatio[cpu]: Invalid value: "500m": ratio 500m is less than 1'],
        ),
        (
            container(max={"storage": "1"}),
            ['max[storage]: Invalid value: "storage": must be a standard resource for containers'],
        ),
        ({"type": "PersistentVolumeClaim", "max": {"storage": "1"}}, []),
        (
            {"type": "example.com/x", "max": {"x": "1", "pods": "1"}},
            ['max[x]: Invalid value: "x": must be a standard resource type or fully qualified'],
        ),
        (
            {"type": "example.com/x", "max": {"a/b<c": "1"}},
            [
                f'max[a/b<c]: Invalid value: "a/b\\u003cc": name part {names.is_qualified_name("a/b<c")[0].removeprefix("name part ")}'
            ],
        ),
        (
            {"type": "Pod", "default": {"x": "1"}},
            ["default: Forbidden: may not be specified when `type` is 'Pod'"],
        ),
        (
            container(default={"example.com/gpu": "2"}, defaultRequest={"example.com/gpu": "1"}),
            [
                'defaultRequest[example.com/gpu]: Invalid value: "1": default value 2 must equal to defaultRequest value 1 in '
                "example.com/gpu"
            ],
        ),
    ],
)
def test_limits(item: Json, expected: list[str]) -> None:
    assert told(item) == expected
