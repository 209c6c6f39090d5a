"""Quantities add up exactly and are shown as upstream shows them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakeapiserver.apimachinery.quantity import ZERO, amount, canonical_quantity, parse

TEXTS = st.builds("{}{}".format, st.integers(-(10**6), 10**6), st.sampled_from(["", "m", "k", "M", "Ki", "Gi", "e3"]))


@pytest.mark.parametrize(
    ("left", "right", "total"),
    [
        ("1500m", "500m", "2"),
        ("1Gi", "1Gi", "2Gi"),
        ("1Gi", "512Mi", "1536Mi"),
        ("0", "1Gi", "1Gi"),
        ("1Gi", "1", "1073741825"),
        ("1G", "1Gi", "2073741824"),
        ("1e3", "1", "1001"),
        ("100m", "1n", "100000001n"),
        ("1k", "-1k", "0"),
    ],
)
def test_sums_keep_the_suffixes_of_the_first(left: str, right: str, total: str) -> None:
    assert str(parse(left) + parse(right)) == total


def test_as_written_where_that_is_canonical_enough() -> None:
    assert [str(parse(text)) for text in ("1500m", "1.5Gi", "+5", "1000m", "2048Ki")] == [
        "1500m",
        "1536Mi",
        "+5",
        "1",
        "2Mi",
    ]


def test_only_blanks_are_trimmed() -> None:
    assert canonical_quantity(" 5Gi ") == "5Gi"
    for text in ("5Gi\n", "\t5Gi", "5Gi\x1f", ""):
        with pytest.raises(ValueError, match="quantities must match"):
            canonical_quantity(text)


@given(TEXTS, TEXTS)
def test_order_and_sums_are_those_of_the_amounts(left: str, right: str) -> None:
    one, other = parse(left), parse(right)
    assert (one < other) == (amount(left) < amount(right))
    assert parse(str(one + other)) == one + other
    assert parse(str(one - other)) + other == one
    assert str(ZERO + one) == canonical_quantity(str(parse(left) + ZERO))
