"""Expressions that select devices."""

from typing import Any

import pytest

from fakeapiserver.apimachinery.cel.device import MAX_COST, compile_selector, matches, max_cost, variables_of

DEVICE: dict[str, Any] = {
    "name": "d",
    "attributes": {
        "model": {"string": "a100"},
        "cores": {"int": 8},
        "shiny": {"bool": True},
        "firmware": {"version": "1.10.0"},
        "other.example.com/model": {"string": "x"},
    },
    "capacity": {"memory": {"value": "80Gi"}},
    "allowMultipleAllocations": True,
}
OURS = "device.attributes['gpu.example.com']"


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("device.driver == 'gpu.example.com'", True),
        ("device.allowMultipleAllocations", True),
        (f"{OURS}.model == 'a100'", True),
        (f"{OURS}.model.startsWith('b')", False),
        (f"{OURS}.cores > 4 && {OURS}.shiny", True),
        (f"{OURS}.shiny", True),
        (f"{OURS}.firmware.isGreaterThan(semver('1.9.0'))", True),
        ("device.attributes['other.example.com'].model == 'x'", True),
        ("device.capacity['gpu.example.com'].memory.compareTo(quantity('40Gi')) > 0", True),
        (f"cel.bind(ours, {OURS}, ours.cores == 8 && ours.model == 'a100')", True),
        # the attributes of an absent driver are empty
        ("has(device.attributes['nobody'].model)", False),
        ("device.attributes[?'nobody'].?model.hasValue()", False),
        ("'nobody' in device.attributes", False),
        ("'gpu.example.com' in device.attributes", True),
        ("size(device.attributes) == 2", True),
        ("device.attributes.exists(domain, domain == 'other.example.com')", True),
    ],
)
def test_a_device_is_selected(expression: str, wanted: bool) -> None:
    assert matches(compile_selector(expression), variables_of("gpu.example.com", DEVICE)) is wanted


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (f"{OURS}.speed == 1", "no such key: speed"),
        (f"{OURS}.model", "CEL result of type string could not be converted to bool: type conversion error from"),
        (f"{OURS}.model > 4", "no such overload"),
    ],
)
def test_an_expression_fails(expression: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        matches(compile_selector(expression), variables_of("gpu.example.com", DEVICE))


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("device.speed", "compilation failed: ERROR: <input>:1:7: undefined field 'speed'"),
        ("1", "must evaluate to bool or the unknown type, not int"),
        (f"{OURS}.model[0]", "must evaluate to bool or the unknown type, not dyn"),
        (f"{OURS}", "must evaluate to bool or the unknown type, not map\\(string, google.protobuf.Any\\)"),
        (f"{OURS}.model.exists(x, true)", "expression of type 'any' cannot be range of a comprehension"),
        ("cel.bind(1, 2, true)", "cel.bind\\(\\) variable names must be simple identifiers"),
        ("cel.bind(a, 2)", "undeclared reference to 'bind'"),
    ],
)
def test_an_invalid_device_expression(expression: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compile_selector(expression)


@pytest.mark.parametrize(
    ("expression", "is_cheap"),
    [
        ("device.attributes.all(k, device.attributes[k].all(l, device.attributes[k][l] == 'asdf'))", True),
        ("device.attributes.all(k, device.attributes.all(l, device.attributes.all(m, k.matches(l + m))))", False),
    ],
)
def test_what_an_expression_may_cost(expression: str, is_cheap: bool) -> None:
    assert (max_cost(compile_selector(expression)) <= MAX_COST) is is_cheap
