"""Durations, as Go's time.ParseDuration reads them."""

import re

import pytest

from fakeapiserver.apimachinery.duration import parse_duration, parse_nanoseconds

_HOUR = 3600 * 10**9


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("-0", 0),
        ("+5s", 5 * 10**9),
        ("1h30m", _HOUR * 3 // 2),
        ("1.s", 10**9),
        (".5h", _HOUR // 2),
        ("1µs1μs1us", 3000),
        # Each part is cut to whole nanoseconds before the next one is added.
        ("0.9ns0.9ns", 0),
        ("0.3333333333333333333h", 1200 * 10**9),
        # Digits of a fraction beyond 64 bits are ignored.
        (f"0.1{'0' * 5000}h", _HOUR // 10),
        (f"{'0' * 5000}1s", 10**9),
        ("2562047h47m16.854775807s", 2**63 - 1),
        ("-9223372036854775808ns", -(2**63)),
    ],
)
def test_a_duration_is_read_to_the_nanosecond(text: str, nanoseconds: int) -> None:
    assert parse_nanoseconds(text) == nanoseconds
    assert parse_duration(text) == nanoseconds / 1e9


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", 'invalid duration ""'),
        ("-", 'invalid duration "-"'),
        (".s", 'invalid duration ".s"'),
        (" 1s", 'invalid duration " 1s"'),
        ("1_0s", 'unknown unit "_" in duration "1_0s"'),
        ("١s", r'invalid duration "\xd9\xa1s"'),
        ("00", 'missing unit in duration "00"'),
        ("1..5s", 'missing unit in duration "1..5s"'),
        ("1d", 'unknown unit "d" in duration "1d"'),
        ("9223372036854775808ns", 'invalid duration "9223372036854775808ns"'),
        ("2562047h47m16.854775808s", 'invalid duration "2562047h47m16.854775808s"'),
        (f"{'9' * 5000}s", f'invalid duration "{"9" * 5000}s"'),
    ],
)
def test_other_text_is_refused_in_go_s_words(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=f"^time: {re.escape(problem)}$"):
        parse_duration(text)
