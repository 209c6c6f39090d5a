"""Values are equal when their quantities are, however these are written; other texts are compared as they are."""

from typing import Any

import pytest

from fakeapiserver.apis.quantity_fields import IN_WORKLOAD, QuantityFields, same


def workload(memory: str, argument: str = "1Gi", **more: Any) -> dict[str, Any]:
    container = {"name": "c", "args": [argument], "resources": {"limits": {"memory": memory}}, **more}
    return {"spec": {"template": {"spec": {"containers": [container]}}}}


@pytest.mark.parametrize(
    ("new", "old", "equal"),
    [
        (workload("1Gi"), workload("1Gi"), True),
        (workload("1Gi"), workload("1073741824"), True),
        (workload("01Gi"), workload("1Gi"), True),
        (workload("1Gi"), workload("1G"), False),
        (workload("1Gi", "1Gi"), workload("1Gi", "1073741824"), False),  # an argument isn't a quantity
        (workload("1Gi", tty=True), workload("1073741824"), False),
        (workload("1Gi"), {"spec": {"template": {"spec": {"containers": []}}}}, False),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_quantities_are_compared_by_their_amounts(new: Any, old: Any, equal: bool, turned: bool) -> None:
    assert same(*((old, new) if turned else (new, old)), IN_WORKLOAD) == equal


@pytest.mark.parametrize(
    ("fields", "equal"),
    [({"a": None}, True), ({"*": None}, True), ({"b": None}, False), ({"a": {}, "*": None}, False), ({}, False)],
)
def test_a_field_that_is_named_goes_before_every_other(fields: QuantityFields, equal: bool) -> None:
    assert same({"a": "1k"}, {"a": "1e3"}, fields) == equal
