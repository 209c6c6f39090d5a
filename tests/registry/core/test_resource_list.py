"""Amounts in lists of resources, as 64 bits hold them."""

import pytest

from fakeapiserver.registry.core.resource_list import int64_value, is_whole, quantity, round_up, total


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        *(("1", True), ("1500m", False), ("0.5", False), ("1e18", True)),
        # thousandths that wrap around in 64 bits
        *(("9999999999999999", False), ("999999999999999999999", False), ("1e1000", True)),
    ],
)
def test_whole_numbers(text: str, whole: bool) -> None:
    assert is_whole(text) is whole


def test_values_wrap_around() -> None:
    assert int64_value("1500m") == 2
    assert int64_value("1e1000") == 0
    assert int64_value("18446744073709551617") == 1


def test_amounts_are_exact_whatever_their_size() -> None:
    assert quantity("123456789012345678901234567890123Gi") == 123456789012345678901234567890123 * 1024**3
    assert total(["1e30", "1"]) == str(10**30 + 1)


def test_what_is_below_a_thousandth_is_rounded_up() -> None:
    amounts = {"a": "1n", "b": "1e-9", "c": "1", "d": "1e-3"}
    round_up(amounts)
    assert amounts == {"a": "1m", "b": "1e-3", "c": "1", "d": "1e-3"}
