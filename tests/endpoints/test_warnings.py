"""Tests how warnings become headers."""

import pytest

from fakeapiserver.endpoints.respond import warning_headers


@pytest.mark.parametrize(
    ("texts", "headers"),
    [
        ([], []),
        (["careful", "careful", "very"], ['299 - "careful"', '299 - "very"']),
        (['say "no"', "back\\slash"], ['299 - "say \\"no\\""', '299 - "back\\\\slash"']),
        (["", "two\nlines", "ü"], ['299 - "ü"']),
        (["x" * 4096], [f'299 - "{"x" * 4096}"']),
        (["x" * 300, "y" * 5000], [f'299 - "{"x" * 256}"', f'299 - "{"y" * 256}"']),
        ([str(i) + "x" * 300 for i in range(10, 40)], [f'299 - "{i}{"x" * 254}"' for i in range(10, 26)]),
    ],
)
def test_warnings(texts: list[str], headers: list[str]) -> None:
    assert [value.decode() for _, value in warning_headers(texts)] == headers
