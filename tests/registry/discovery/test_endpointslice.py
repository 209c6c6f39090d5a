"""Errors in endpoint slices, and the fields that v1 leaves out."""

from typing import Any

import pytest

from fakeapiserver.registry.discovery import RESOURCES

SLICES = RESOURCES["endpointslices"]


def told(address: str) -> list[str]:
    endpoints = {"addressType": "FQDN", "endpoints": [{"addresses": [address]}]}
    return [str(error).removeprefix("endpoints[0].addresses[0]: ") for error in SLICES.validate(endpoints)]


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("a.example.com", []),
        ("example.com.", []),
        ("", ["Required value"]),
        ("a", ['Invalid value: "a": should be a domain with at least two segments separated by dots']),
        (f"a.{'b' * 64}", [f'Invalid value: "{"b" * 64}": must be no more than 63 characters']),
    ],
)
def test_domains(address: str, expected: list[str]) -> None:
    assert told(address) == expected


@pytest.mark.parametrize(
    ("field", "most"), [("endpoints", 1000), ("endpoints[0].addresses", 100), ("endpoints[0].hints.forZones", 8)]
)
def test_there_may_be_so_many(field: str, most: int) -> None:
    def slice_of(number: int) -> dict[str, Any]:
        endpoint: dict[str, Any] = {"addresses": ["10.0.0.1"]}
        count = number if field == "endpoints" else 1
        if field.endswith("addresses"):
            endpoint["addresses"] *= number
        if field.endswith("forZones"):
            endpoint["hints"] = {"forZones": [{"name": f"z{i}"} for i in range(number)]}
        return {"addressType": "IPv4", "endpoints": [endpoint] * count}

    assert SLICES.validate(slice_of(most)) == []
    refused = f"{field}: Too many: {most + 1}: must have at most {most} items"
    assert [str(error) for error in SLICES.validate(slice_of(most + 1))] == [refused]


def test_a_topology_that_is_dropped_counts_as_a_change() -> None:
    old = {"metadata": {"generation": 1}, "endpoints": [{"addresses": ["10.0.0.1"]}]}
    new = {"metadata": {"generation": 1}, "endpoints": [{"addresses": ["10.0.0.1"], "deprecatedTopology": {"a": "b"}}]}
    SLICES.prepare_for_update(new, old)
    assert new == {"metadata": {"generation": 2}, "endpoints": old["endpoints"]}
